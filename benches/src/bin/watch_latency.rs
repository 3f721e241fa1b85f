//! Measures the time from a save until a semantic search finds the new text: `watch_latency --help`.
//!
//! One thread watches the vault. Another thread, with its own handle like another program, edits a section of one long
//! note, and searches for the new sentence until a hit contains it. It searches when the watcher reports a sync, and
//! also every 50 ms; the time of the search is included.

#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a program that reports")]

use std::error::Error;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread;
use std::time::{Duration, Instant};

use benches::{VaultPlan, demo_vault, make_vault, notes_in};
use clap::Parser;
use vault_index::{Index, Mode, Options, Query, VaultPath, WatchEvent, WatchOptions};

type Result<T> = std::result::Result<T, Box<dyn Error>>;

/// Measures the time from a save until a semantic search finds it, while the vault is watched.
#[derive(Debug, Parser)]
struct Args {
    /// The vault, which is generated if the folder does not exist. One of its notes is edited, and restored at the end
    #[arg(long, value_name = "DIR")]
    vault: PathBuf,
    /// The index, with vectors of the bundled model. It is built if it does not exist, which takes minutes, and kept
    #[arg(long, value_name = "FILE")]
    index: PathBuf,
    /// Number of notes in a generated vault
    #[arg(long, default_value_t = 5000)]
    notes: usize,
    /// Number of measured edits, after one that does not count
    #[arg(long, default_value_t = 20)]
    edits: usize,
    /// Milliseconds without a change before the watcher syncs
    #[arg(long, default_value_t = 200)]
    debounce: u64,
}

/// The time limit of a search for a sentence.
const PATIENCE: Duration = Duration::from_secs(30);
/// The interval between searches while the watcher reports nothing.
const POLL: Duration = Duration::from_millis(50);
/// The minimum number of bytes of the edited note, large enough that its new section is a separate passage.
const LONG: u64 = 3000;

fn main() -> Result<()> {
    let args = Args::parse();
    if !args.vault.exists() {
        let plan = VaultPlan { notes: args.notes, bytes: 1500, links: 6, seed: 2 };
        make_vault(&args.vault, &demo_vault(), &plan)?;
    }
    let open = || Index::open(&args.vault, Options::new().index_file(&args.index));
    let index = open()?;
    eprintln!("indexing, if there is something to index …");
    let report = index.sync()?;
    eprintln!("{} texts embedded in {:.1} s", report.embedded, report.took_ms as f64 / 1000.0);

    let note = Note::choose(index.vault())?;
    let cancel = AtomicBool::new(false);
    let (send, events) = channel();
    let (index, stop) = (&index, &cancel);
    let latencies = thread::scope(|scope| -> Result<Vec<Duration>> {
        let watcher = scope.spawn(move || {
            let debounce = Duration::from_millis(args.debounce);
            let options = WatchOptions::new().debounce(debounce).cancel(stop);
            // Ignore the error: once the edits are done, there is no receiver.
            index.watch(&options)?.try_for_each(|event| event.map(|event| drop(send.send(event))))
        });
        let latencies = open().map_err(Into::into).and_then(|reader| edit(&note, &reader, &events, args.edits));
        let restored = fs::write(&note.file, &note.text);
        // Stop the watcher even after an error, because otherwise the scope would wait for it forever.
        cancel.store(true, Ordering::Relaxed);
        watcher.join().map_err(|_| "the watcher panicked")??;
        restored?;
        latencies
    })?;

    let mut sorted = latencies;
    sorted.sort();
    let ms = |at: usize| sorted[at].as_secs_f64() * 1000.0;
    println!(
        "{} edits of {} in a vault of {} notes, debounce {} ms, from save to found by meaning",
        sorted.len(),
        note.path,
        index.status()?.notes,
        args.debounce
    );
    println!("least {:.0} ms, median {:.0} ms, most {:.0} ms", ms(0), ms(sorted.len() / 2), ms(sorted.len() - 1));
    Ok(())
}

/// Saves repeatedly. The first save does not count, because it happens during the first sync of the watcher.
fn edit(note: &Note, reader: &Index, events: &Receiver<WatchEvent>, edits: usize) -> Result<Vec<Duration>> {
    while events.recv_timeout(PATIENCE)? != WatchEvent::Started {}
    // Load the model and the vectors.
    reader.search(&sentence_query("a bird"))?;
    let mut latencies = Vec::with_capacity(edits);
    for n in 0..=edits.max(1) {
        let sentence = sentence(n);
        note.save(&sentence, n)?;
        let saved = Instant::now();
        wait_until_found(note, reader, events, &sentence, saved)?;
        if n > 0 {
            latencies.push(saved.elapsed());
        }
    }
    Ok(latencies)
}

fn wait_until_found(
    note: &Note,
    reader: &Index,
    events: &Receiver<WatchEvent>,
    sentence: &str,
    saved: Instant,
) -> Result<()> {
    let query = sentence_query(sentence);
    while saved.elapsed() < PATIENCE {
        match events.recv_timeout(POLL) {
            Ok(WatchEvent::Notice(notice)) => eprintln!("{notice}"),
            Ok(_) | Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return Err("the watcher has ended".into()),
        }
        let hits = reader.search(&query)?;
        if hits.results.iter().any(|hit| hit.path == note.path && hit.text.contains(sentence)) {
            return Ok(());
        }
    }
    Err(format!("`{sentence}` was not found in {} s", PATIENCE.as_secs()).into())
}

fn sentence_query(text: &str) -> Query {
    Query::literal(text).mode(Mode::Semantic)
}

/// Returns a sentence that is in no note, and different for each of the first 560 numbers.
fn sentence(n: usize) -> String {
    const WHO: [&str; 8] = ["heron", "walrus", "badger", "parrot", "camel", "lobster", "panther", "tortoise"];
    const WHAT: [&str; 7] = ["the cello", "a trumpet", "chess", "the accordion", "billiards", "a drum", "the harp"];
    const WHERE: [&str; 10] = [
        "in the lighthouse",
        "on the ferry",
        "under the bridge",
        "at the airport",
        "in the courtroom",
        "on the glacier",
        "in the submarine",
        "behind the casino",
        "at the embassy",
        "in the planetarium",
    ];
    let (who, what, at) = (WHO[n % 8], WHAT[n / 8 % 7], WHERE[n / 56 % 10]);
    format!("The {who} played {what} {at}.")
}

/// The note that is edited.
struct Note {
    file: PathBuf,
    path: VaultPath,
    /// Its original text.
    text: String,
}

impl Note {
    /// Returns the first long note of a vault.
    fn choose(vault: &Path) -> Result<Self> {
        for file in notes_in(vault)? {
            if fs::metadata(&file)?.len() >= LONG {
                let path = VaultPath::from_disk(file.strip_prefix(vault)?).ok_or("a note without a path")?;
                let text = fs::read_to_string(&file)?;
                return Ok(Self { file, path, text });
            }
        }
        Err(format!("{}: no note has {LONG} bytes", vault.display()).into())
    }

    /// Writes the sentence into the note's last section, alternately in place and by a rename, because editors do both.
    fn save(&self, sentence: &str, n: usize) -> Result<()> {
        let rest = "It was still at it when the lamps were lit, and nobody who came by could say who had taught it, \
                    or why it had chosen this hour.";
        let text = format!("{}\n\n## Seen today\n\n{sentence} {rest}\n", self.text.trim_end());
        if n.is_multiple_of(2) {
            fs::write(&self.file, text)?;
        } else {
            let beside = self.file.with_file_name(".watch-latency.tmp");
            fs::write(&beside, text)?;
            fs::rename(&beside, &self.file)?;
        }
        Ok(())
    }
}
