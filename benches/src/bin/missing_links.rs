//! Removes links from copies of vaults and checks which of them are suggested again: `missing_links --help`.

#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a program that reports")]

use std::collections::HashMap;
use std::error::Error;
use std::path::{Path, PathBuf};

use benches::{Random, copy_tree};
use clap::Parser;
use vault_index::{Index, LinkKind, LinkRow, LinkSuggestion, Options, VaultPath};

/// Removes links from copies of vaults, and counts how many are among the first five suggestions for their note.
///
/// Chooses random links that are the only one between two notes, and replaces one after the other by its display text.
/// Then gets the suggestions for its note. For comparison, counts how often that note is among the first five that
/// mention the link's target.
#[derive(Debug, Parser)]
struct Args {
    /// The vaults. They are only read
    #[arg(value_name = "VAULT_DIR", required = true)]
    vaults: Vec<PathBuf>,
    /// Number of links to remove from each vault, one at a time
    #[arg(long, default_value_t = 200)]
    links: usize,
    /// Seed for the choice of links
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Also remove the words of the link
    #[arg(long)]
    with_words: bool,
    /// Print the links that are not among the first five
    #[arg(long)]
    missed: bool,
    /// Print the parts of the score of every suggestion: the note, the removed target, the suggested one, the parts
    #[arg(long)]
    parts: bool,
    /// Print this many other suggestions of the first five, chosen at random
    #[arg(long, default_value_t = 0)]
    show: usize,
}

/// The number of suggestions that count.
const FIRST: usize = 5;

fn main() -> Result<(), Box<dyn Error>> {
    let args = Args::parse();
    println!(
        "| vault | taken out | suggested again | in the first 5 | by mentions | ratio |\n| --- | --- | --- | --- | --- | --- |"
    );
    for vault in &args.vaults {
        measure(vault, &args)?;
    }
    Ok(())
}

fn measure(vault: &Path, args: &Args) -> Result<(), Box<dyn Error>> {
    let folder = tempfile::tempdir()?;
    let copy = folder.path().join("vault");
    copy_tree(vault, &copy)?;
    let index = Index::open(&copy, Options::new().index_file(folder.path().join("index.db")))?;
    index.sync()?;
    let mut random = Random(args.seed);
    let mut links = candidates(&index)?;
    random.shuffle(&mut links);
    let (mut taken, mut all, mut first, mut mentioned) = (0, 0, 0, 0);
    let mut shown = Vec::new();
    for link in links {
        let file = index.vault().join(link.source.as_str());
        let before = std::fs::read(&file)?;
        let Some(text) = without(&link, &String::from_utf8_lossy(&before), args.with_words) else { continue };
        std::fs::write(&file, text)?;
        index.sync()?;
        let target = link.target.as_ref().expect("only links that lead somewhere are taken out");
        let suggestions = index.suggest_links(Some(link.source.as_str()))?;
        let rank = suggestions.iter().position(|suggestion| suggestion.target == *target);
        let mut places: Vec<VaultPath> = index.mentions(target.as_str())?.into_iter().map(|place| place.path).collect();
        places.dedup();
        std::fs::write(&file, before)?;
        taken += 1;
        all += usize::from(rank.is_some());
        first += usize::from(rank.is_some_and(|rank| rank < FIRST));
        mentioned += usize::from(places.iter().take(FIRST).any(|path| *path == link.source));
        if args.parts {
            for LinkSuggestion { target: suggested, why, .. } in &suggestions {
                println!("{}\t{target}\t{suggested}\t{}", link.source, serde_json::to_string(why)?);
            }
        }
        if args.missed && rank.is_none_or(|rank| rank >= FIRST) {
            println!("{} {:?} -> {target}: {rank:?}", link.source, link.raw);
        }
        shown.extend(suggestions.into_iter().take(FIRST).filter(|suggestion| suggestion.target != *target));
        if taken == args.links {
            break;
        }
    }
    let name = vault.file_name().unwrap_or_default().display();
    let ratio = first as f64 / mentioned.max(1) as f64;
    println!("| {name} | {taken} | {all} | {first} | {mentioned} | {ratio:.2} |");
    for _ in 0..args.show.min(shown.len()) {
        let LinkSuggestion { source, line, text, sentence, target, score, reason, why, .. } =
            shown.swap_remove(random.below(shown.len()));
        println!("{score:.2} {reason:?} {:?} {source}:{line} {text:?} -> {target}\n      {sentence}", why.cosine);
    }
    Ok(())
}

/// Returns the links that are the only one from one note to another.
fn candidates(index: &Index) -> Result<Vec<LinkRow>, Box<dyn Error>> {
    let mut links = Vec::new();
    index.all_links(&mut |link| {
        links.push(link);
        Ok(())
    })?;
    let mut counts: HashMap<(VaultPath, Option<VaultPath>), usize> = HashMap::new();
    links.iter().for_each(|link| *counts.entry((link.source.clone(), link.target.clone())).or_default() += 1);
    links.retain(|link| {
        let is_note =
            link.target.as_ref().is_some_and(|target| target.as_str().ends_with(".md") && *target != link.source);
        is_note && link.kind != LinkKind::Embed && counts[&(link.source.clone(), link.target.clone())] == 1
    });
    Ok(links)
}

/// Returns the text of a note without a link in its body. `None` if the link is elsewhere, or twice on its line.
fn without(link: &LinkRow, text: &str, with_words: bool) -> Option<String> {
    let body = vault_index::note::frontmatter_span(text).map_or(0, |span| span.end);
    let start: usize = text.split_inclusive('\n').take(link.line as usize - 1).map(str::len).sum();
    let line = text.get(start.max(body)..)?.split_inclusive('\n').next()?;
    let mut places = line.match_indices(&link.raw);
    let (at, None) = (places.next()?.0 + start, places.next()) else { return None };
    let words = if with_words { String::new() } else { shown(link) };
    Some(format!("{}{words}{}", &text[..at], &text[at + link.raw.len()..]))
}

/// Returns the display text of a link.
fn shown(link: &LinkRow) -> String {
    let raw = &link.raw;
    if let Some(inner) = raw.strip_prefix("[[").and_then(|raw| raw.strip_suffix("]]")) {
        let text = inner.split_once('|').map_or(inner, |(_, text)| text);
        return text.split('#').next().unwrap_or(text).to_owned();
    }
    raw.strip_prefix('[').and_then(|raw| raw.split_once(']')).map_or_else(String::new, |(text, _)| text.to_owned())
}
