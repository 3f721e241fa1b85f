//! Searches a folder of notes: `cargo run -p examples --example search_a_folder -- testdata/vaults/demo keep bread fresh`

use std::env;
use std::path::PathBuf;

use vault_index::{Index, Options, Query};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = env::args().skip(1);
    let folder = arguments.next().ok_or("usage: search_a_folder FOLDER QUERY…")?;
    let words: Vec<String> = arguments.collect();

    // Unless you set a file, the index is in the user's cache folder, never among the notes.
    let mut options = Options::new();
    options.index_file = env::var_os("VAULT_INDEX_FILE").map(PathBuf::from);
    let index = Index::open(folder, options)?;

    // The first sync is slow; later ones read only changed notes.
    let report = index.sync()?;
    eprintln!("{} new, {} changed, {} unchanged", report.added, report.changed, report.unchanged);

    // `tag:x`, `path:glob`, "phrases" and -words are supported, so you can pass the user's query unchanged.
    let hits = index.search(&Query::parse(&words.join(" "))?)?;
    for hit in &hits.results {
        println!("{:.2}  {}:{}  {}", hit.score, hit.path, hit.line, hit.title);
    }
    // Scores are absolute, so there is a minimum score, and it is possible that no note reaches it.
    if hits.results.is_empty() {
        println!("nothing; nearest: {:?}", hits.near_misses.iter().map(|near| &near.title).collect::<Vec<_>>());
    }
    Ok(())
}
