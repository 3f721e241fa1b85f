//! Known-item search: the words that a person chose for a link, and the note that it leads to.
//!
//! Only links are used whose words differ from the note's name, path, title and aliases, ignoring case and punctuation.
//! Links with the same words are one query, whose answers are all notes that they lead to. The notes that contain such
//! a link are left out of the results, because they contain exactly these words.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fs;
use std::path::{Path, PathBuf};

use serde::Serialize;
use vault_index::note::{Link, Note, ParseOptions, parse};
use vault_index::{FileKind, Grouping, Index, LinkKind, VaultPath};

use super::{Indexed, Judgments, Means, Plan, QueryRow, Result, Scores};
use crate::median::median;
use crate::notes::notes_in;

/// The number of results that count.
const SHOWN: usize = 10;
/// The minimum number of letters in a query, because links such as `[[note|*]]` and `[[note|2024]]` say nothing about
/// the note.
const LEAST: usize = 3;

/// One query.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KnownItem {
    /// The words as in the first such link.
    pub text: String,
    /// The notes that links with these words lead to.
    pub answers: BTreeSet<VaultPath>,
    /// The notes that contain such links.
    pub left_out: BTreeSet<VaultPath>,
}

/// The report on a vault.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct KnownItemReport {
    /// The name of its folder.
    pub vault: String,
    /// The model.
    pub model: String,
    /// The number of notes in it.
    pub notes: usize,
    /// The number of queries.
    pub queries: usize,
    /// The results of each mode.
    pub modes: Vec<KnownItemMode>,
}

/// The results of one mode.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct KnownItemMode {
    /// The mode.
    pub mode: String,
    /// Mean reciprocal rank of the first answer, 0 beyond rank 10.
    pub mrr10: f64,
    /// The share of queries whose first result is an answer.
    pub hit1: f64,
    /// The share of queries with an answer among the first ten.
    pub hit10: f64,
    /// The median of milliseconds per query.
    pub ms: f64,
}

/// Indexes the vault, which is only read, into `index_file`, and searches for the notes that its links lead to.
///
/// # Errors
/// If notes cannot be read, indexed or searched, or no link can be used.
pub fn find_known_items(
    name: &str,
    vault: &Path,
    index_file: &Path,
    plan: &Plan,
) -> Result<(KnownItemReport, Vec<QueryRow>)> {
    let indexed = Indexed::sync(vault, index_file, plan)?;
    let items = known_items(&indexed.index)?;
    let items = &items[..plan.queries.min(items.len())];
    let Some(first) = items.first() else {
        return Err(format!("{name}: no link has words of its own").into());
    };
    let (mut modes, mut rows) = (Vec::new(), Vec::new());
    for &mode in &plan.modes {
        indexed.warm_up(&first.text, mode)?;
        let (mut scores, mut times) = (Vec::new(), Vec::new());
        for item in items {
            let limit = SHOWN + item.left_out.len();
            let (mut hits, ms) = indexed.ask_timed(&item.text, mode, Grouping::BestPassage, limit)?;
            hits.retain(|hit| !item.left_out.contains(&hit.path));
            hits.truncate(SHOWN);
            let judgments: Judgments = item.answers.iter().map(|path| (path.to_string(), 1)).collect();
            let found = Scores::of(hits.iter().map(|hit| hit.path.as_str()), &judgments, SHOWN);
            rows.push(QueryRow {
                collection: name.to_owned(),
                mode: mode.name().to_owned(),
                query: item.text.clone(),
                scores: found,
                top: hits.iter().map(|hit| hit.path.to_string()).collect(),
            });
            scores.push(found);
            times.push(ms);
        }
        let Means { mrr10, hit1, hit10, .. } = Means::of(&scores);
        modes.push(KnownItemMode { mode: mode.name().to_owned(), mrr10, hit1, hit10, ms: median(&times) });
    }
    let (notes, queries) = (indexed.notes, items.len());
    Ok((KnownItemReport { vault: name.to_owned(), model: indexed.model, notes, queries, modes }, rows))
}

/// Returns the queries from the links of an indexed vault, in the order of their words.
///
/// # Errors
/// If notes cannot be read.
pub fn known_items(index: &Index) -> Result<Vec<KnownItem>> {
    let notes = Notes::of(index.vault())?;
    let mut targets: HashMap<(VaultPath, u32, String), VaultPath> = HashMap::new();
    index.all_links(&mut |row| {
        let is_note = row.target.as_ref().is_some_and(|target| target.kind() == FileKind::Markdown);
        if let Some(target) = row.target.filter(|_| is_note && row.kind != LinkKind::Embed) {
            targets.insert((row.source, row.line, row.raw), target);
        }
        Ok(())
    })?;
    let sources: BTreeSet<&VaultPath> = targets.keys().map(|(source, ..)| source).collect();
    let mut items: BTreeMap<String, KnownItem> = BTreeMap::new();
    for source in sources {
        let Some(note) = notes.read(source)? else { continue };
        for link in note.links {
            let Some(display) = &link.display else { continue };
            let Some(target) = targets.get(&(source.clone(), link.line, link.raw.clone())) else { continue };
            let words = folded(display);
            let letters = words.chars().filter(|c| c.is_alphabetic()).count();
            let Some(answer) = notes.read(target)?.filter(|_| target != source && letters >= LEAST) else { continue };
            if is_called(&words, target, &answer, &link) {
                continue;
            }
            let item = items.entry(words).or_insert_with(|| KnownItem {
                text: display.clone(),
                answers: BTreeSet::new(),
                left_out: BTreeSet::new(),
            });
            item.answers.insert(target.clone());
            item.left_out.insert(source.clone());
        }
    }
    let mut items: Vec<KnownItem> = items.into_values().collect();
    for item in &mut items {
        item.answers = item.answers.difference(&item.left_out).cloned().collect();
    }
    items.retain(|item| !item.answers.is_empty());
    Ok(items)
}

/// Reads the notes of a vault.
struct Notes(HashMap<VaultPath, PathBuf>);

impl Notes {
    fn of(vault: &Path) -> Result<Self> {
        let mut files = HashMap::new();
        for file in notes_in(vault)? {
            if let Some(path) = file.strip_prefix(vault).ok().and_then(VaultPath::from_disk) {
                files.insert(path, file);
            }
        }
        Ok(Self(files))
    }

    fn read(&self, path: &VaultPath) -> Result<Option<Note>> {
        let Some(file) = self.0.get(path) else { return Ok(None) };
        let bytes = fs::read(file).map_err(|error| format!("{}: {error}", file.display()))?;
        Ok(Some(parse(path, &bytes, &ParseOptions::default())))
    }
}

/// Whether the folded words are a name of a note.
fn is_called(words: &str, path: &VaultPath, note: &Note, link: &Link) -> bool {
    let whole = path.as_str();
    let without_end = whole.strip_suffix(".md").unwrap_or(whole);
    let names = [whole, without_end, path.file_name(), path.stem(), note.title.text.as_str(), link.path.as_str()];
    names.into_iter().chain(note.aliases.iter().map(String::as_str)).any(|name| folded(name) == words)
}

/// Folds a text: only words in lower case, separated by spaces.
fn folded(text: &str) -> String {
    let lower = text.to_lowercase();
    let words = lower.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
    words.collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_note_is_called() {
        let path = VaultPath::new("Garden/Apple tree.md").unwrap();
        let text = "---\naliases: [Old friend]\n---\n# The apple\n";
        let note = parse(&path, text.as_bytes(), &ParseOptions::default());
        let source = parse(&VaultPath::new("a.md").unwrap(), b"[[Apple tree|x]]", &ParseOptions::default());
        for (display, expected) in [
            ("apple-tree", true),
            ("Apple tree.md", true),
            ("garden / apple tree", true),
            ("THE APPLE!", true),
            ("old friend", true),
            ("the tree behind the house", false),
            ("apple", false),
        ] {
            assert_eq!(is_called(&folded(display), &path, &note, &source.links[0]), expected, "{display}");
        }
    }
}
