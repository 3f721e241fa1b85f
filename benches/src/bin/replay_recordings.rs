//! Parses recorded replies of providers with the wires of agent-loop: `replay_recordings --help`.

#![allow(clippy::print_stdout, reason = "a program that reports")]

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use benches::{Verdict, recordings_in, replay};
use clap::Parser;

/// Reports per wire how many recorded replies are parsed correctly: text, calls, end and tokens, or an error as an
/// error.
///
/// Files are cassettes of vcrpy or httpmock (YAML or JSON), or the body of one response: events, lines or JSON. The
/// wire is detected from the content. Exits with 1 if a reply is parsed incorrectly.
#[derive(Debug, Parser)]
struct Args {
    /// A folder of recordings, including its sub-folders
    folder: PathBuf,
    /// Also list responses that are not replies, for example lists of models
    #[arg(long)]
    skipped: bool,
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let args = Args::parse();
    let (mut wires, mut wrong) = (BTreeMap::<String, (usize, usize)>::new(), 0);
    for path in files_in(&args.folder)? {
        let shown = path.strip_prefix(&args.folder).unwrap_or(&path).display();
        let recordings = match recordings_in(&path) {
            Ok(recordings) => recordings,
            Err(error) => {
                println!("{shown}: {error}");
                continue;
            }
        };
        for (number, recording) in (1..).zip(&recordings) {
            let (wire, verdict) = replay(recording).await;
            let wire = wire.map_or_else(|| "no reply".to_owned(), |wire| format!("{wire:?}"));
            let (all, right) = wires.entry(wire.clone()).or_default();
            *all += 1;
            match verdict {
                Verdict::Right => *right += 1,
                Verdict::Wrong(why) => {
                    wrong += 1;
                    println!("{shown} #{number} ({wire}): {why}");
                }
                Verdict::NoReply if args.skipped => println!("{shown} #{number} ({}): no reply", recording.path),
                Verdict::NoReply => {}
            }
        }
    }
    for (wire, (all, right)) in &wires {
        match wire.as_str() {
            "no reply" => println!("{wire}: {all}"),
            _ => println!("{wire}: {right} of {all} right ({:.1} %)", *right as f64 * 100.0 / *all as f64),
        }
    }
    std::process::exit(i32::from(wrong > 0));
}

fn files_in(folder: &Path) -> std::io::Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            files.extend(files_in(&path)?);
        } else {
            files.push(path);
        }
    }
    files.sort();
    Ok(files)
}
