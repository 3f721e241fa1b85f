//! Answers one query per line while another thread watches the folder: `… --example watch_and_search -- FOLDER`

use std::env;
use std::io::stdin;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use vault_index::{Index, Options, Query, WatchEvent, WatchOptions};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let folder = env::args().nth(1).ok_or("usage: watch_and_search FOLDER, then a query a line")?;
    let mut options = Options::new();
    options.index_file = env::var_os("VAULT_INDEX_FILE").map(PathBuf::from);
    // One handle serves all threads: it holds the model, and readers never wait for the writer.
    let index = Index::open(folder, options)?;

    // Before the first sync there is no index to search.
    index.sync()?;
    eprintln!("ready");

    let ended = AtomicBool::new(false);
    thread::scope(|scope| {
        let watcher = scope.spawn(|| {
            let options = WatchOptions::new().cancel(&ended);
            for event in index.watch(&options)? {
                match event? {
                    WatchEvent::Synced(report) => eprintln!(
                        "{} added, {} changed, {} renamed, {} removed",
                        report.added, report.changed, report.renamed, report.removed
                    ),
                    other => eprintln!("{other:?}"),
                }
            }
            Ok::<(), vault_index::Error>(())
        });
        let answered = answer(&index);
        // However the queries ended, this ends the watcher, because otherwise the scope would wait for it forever.
        ended.store(true, Ordering::Relaxed);
        let watched = watcher.join().expect("watching does not panic");
        answered?;
        Ok(watched?)
    })
}

/// Reads queries up to the end of the input.
fn answer(index: &Index) -> Result<(), Box<dyn std::error::Error>> {
    for line in stdin().lines() {
        // A query that cannot be parsed is reported, and the next one is read.
        match Query::parse(&line?).and_then(|query| index.search(&query)) {
            Ok(hits) => {
                for hit in hits.results.iter().take(3) {
                    println!("{:.2}  {}:{}  {}", hit.score, hit.path, hit.line, hit.title);
                }
                println!("{} found", hits.results.len());
            }
            Err(error) => println!("{error}"),
        }
    }
    Ok(())
}
