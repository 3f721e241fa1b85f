//! Unlinked mentions: places where other notes name a note without a link.
//!
//! As in Obsidian's backlinks pane, a note is mentioned by its file's name or an alias, and here by its title too,
//! ignoring case. The keyword index gives the notes that contain a name; these are read again.

use std::collections::{BTreeMap, HashSet};
use std::ops::Range;

use crate::error::Result;
use crate::files::{DiskFile, KnownFile, MAX_NOTE_BYTES, read_note};
use crate::index::Index;
use crate::note::{Note, ParseOptions, is_boundary, opaque_spans, parse};
use crate::path::{FileId, VaultPath};
use crate::report::Mention;
use crate::search::{find_note, passages_with_phrase};
use crate::store::{ReadContents, StoredFile};
use crate::terms::TermMatch;

impl Index {
    /// The places where other notes mention a note (its path, or a link to it) by its file's name, title or an alias
    /// without a link, ordered by path and position. Links, code, formulas, HTML, addresses, tags and frontmatter do
    /// not count as mentions. Reads the notes that contain a name.
    ///
    /// # Errors
    /// [`ErrorKind::NotFound`](crate::ErrorKind::NotFound) with the nearest names.
    pub fn mentions(&self, note: &str) -> Result<Vec<Mention>> {
        self.read(|store| {
            let (id, names) = names_of(store, note)?;
            let mut holders: HashSet<FileId> = HashSet::new();
            for name in &names {
                let found = passages_with_phrase(store, &name.text, TermMatch::Whole)?.unwrap_or_default();
                holders.extend(store.notes_of(&found)?);
            }
            holders.remove(&id);
            let mut mentions = Vec::new();
            for StoredFile { known, disk, .. } in store.files()?.into_iter().filter(|f| holders.contains(&f.known.id)) {
                let KnownFile { path, stat, .. } = known;
                let file = DiskFile { path, disk, stat, indexed: true, symlink: false };
                // A note that was deleted, or can no longer be read, has no mentions.
                let Ok(content) = read_note(&self.vault, &file, MAX_NOTE_BYTES) else { continue };
                let note = parse(&file.path, &content.bytes, &ParseOptions::of_vault(&self.vault));
                mentions.extend(mentions_in(&note, &file.path, &names));
            }
            Ok(mentions)
        })
    }

    /// The names by which [`mentions`](Self::mentions) looks for a note.
    ///
    /// # Errors
    /// [`ErrorKind::NotFound`](crate::ErrorKind::NotFound) with the nearest names.
    pub fn names_of(&self, note: &str) -> Result<Vec<String>> {
        self.read(|store| Ok(names_of(store, note)?.1.into_iter().map(|name| name.text).collect()))
    }
}

/// A name of the note.
struct Name {
    text: String,
    folded: Vec<char>,
}

/// Each name once, the longest first, because of two names at one position the longer one counts.
fn names_of(store: &dyn ReadContents, note: &str) -> Result<(FileId, Vec<Name>)> {
    let id = find_note(store, note)?;
    let mut names: BTreeMap<Vec<char>, String> = BTreeMap::new();
    for name in store.names_of(id)? {
        let text = name.text.trim();
        if text.contains(char::is_alphanumeric) {
            names.entry(folded(text).collect()).or_insert_with(|| text.to_string());
        }
    }
    let mut names: Vec<Name> = names.into_iter().map(|(folded, text)| Name { text, folded }).collect();
    names.sort_by_key(|name| std::cmp::Reverse(name.folded.len()));
    Ok((id, names))
}

fn mentions_in(note: &Note, path: &VaultPath, names: &[Name]) -> Vec<Mention> {
    let body = &note.text[note.body.clone()];
    let opaque = opaque_spans(note);
    let mut mentions = Vec::new();
    let mut resume = 0;
    let mut before = None;
    for (at, c) in body.char_indices() {
        let is_word_start = before.is_none_or(|before| is_boundary(before, c));
        before = Some(c);
        if at < resume || !is_word_start {
            continue;
        }
        let found = names.iter().find_map(|name| Some(at..at + length_of(&body[at..], name)?));
        let Some(found) = found else { continue };
        resume = found.end;
        let span = note.body.start + found.start..note.body.start + found.end;
        let is_opaque = opaque.iter().take_while(|o| o.start < span.end).any(|o| span.start < o.end);
        if !is_opaque && !is_in_tag_or_address(body, &found) {
            mentions.push(Mention {
                path: path.clone(),
                line: note.lines.line_at(span.start),
                name: body[found.clone()].to_string(),
                text: line_around(body, &found).trim().to_string(),
            });
        }
    }
    mentions
}

/// The length of the name at the start of the text, if it ends there at a word boundary.
fn length_of(text: &str, name: &Name) -> Option<usize> {
    let mut wanted = name.folded.iter();
    let mut last = None;
    for (at, c) in text.char_indices() {
        if wanted.as_slice().is_empty() {
            return is_boundary(last?, c).then_some(at);
        }
        for letter in c.to_lowercase() {
            let is_same =
                wanted.next().is_some_and(|wanted| *wanted == letter || is_space(*wanted) && is_space(letter));
            if !is_same {
                return None;
            }
        }
        last = Some(c);
    }
    wanted.as_slice().is_empty().then_some(text.len())
}

fn folded(text: &str) -> impl Iterator<Item = char> {
    text.chars().flat_map(char::to_lowercase)
}

/// Whether a character is white space within a line: a name does not continue on the next line.
fn is_space(c: char) -> bool {
    c.is_whitespace() && c != '\n'
}

/// `#tag`, `^block`, `https://…`: a part of them cannot become a link.
fn is_in_tag_or_address(body: &str, found: &Range<usize>) -> bool {
    let from = body[..found.start].rfind(char::is_whitespace).map_or(0, |at| at + 1);
    let to = body[found.end..].find(char::is_whitespace).map_or(body.len(), |at| found.end + at);
    let word = body[from..to].trim_start_matches(['(', '<']);
    word.contains("://") || word.starts_with(['#', '^']) && from < found.start
}

fn line_around<'t>(body: &'t str, found: &Range<usize>) -> &'t str {
    let from = body[..found.start].rfind('\n').map_or(0, |at| at + 1);
    let to = body[found.end..].find('\n').map_or(body.len(), |at| found.end + at);
    &body[from..to]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: &str, names: &[&str]) -> Vec<(u32, String)> {
        let path = VaultPath::new("a.md").unwrap();
        let note = parse(&path, text.as_bytes(), &ParseOptions::default());
        let mut names: Vec<Name> =
            names.iter().map(|name| Name { text: name.to_string(), folded: folded(name).collect() }).collect();
        names.sort_by_key(|name| std::cmp::Reverse(name.folded.len()));
        mentions_in(&note, &path, &names).into_iter().map(|mention| (mention.line, mention.name)).collect()
    }

    #[test]
    fn names_are_whole_words_of_prose() {
        for (text, expected) in [
            ("The soil here, and SOIL there.", vec![(1, "soil"), (1, "SOIL")]),
            ("---\ntitle: soil\n---\nNo soils, no topsoil.\n\nSoil_x, soil-like", vec![(6, "soil")]),
            ("[[Soil]] ![[soil]] [soil](Soil.md) [x](soil.md) soil", vec![(1, "soil")]),
            ("soil, see [x]\n\n[x]: Soil.md \"Soil\"\n[soil]: a.md\n", vec![(1, "soil")]),
            ("`soil` $soil$ <b soil> https://soil.org/soil\n\n```\nsoil\n```\n\n    soil\n\nsoil", vec![(9, "soil")]),
            ("#soil #garden/soil ^soil **soil** (soil)\n# Soil", vec![(1, "soil"), (1, "soil"), (2, "Soil")]),
            ("Clay Soil and clay\nsoil, clay\u{a0}soil", vec![(1, "Clay Soil"), (2, "soil"), (2, "clay\u{a0}soil")]),
            ("", vec![]),
        ] {
            let expected: Vec<(u32, String)> = expected.into_iter().map(|(line, name)| (line, name.into())).collect();
            assert_eq!(found(text, &["soil", "clay soil"]), expected, "{text:?}");
        }
    }

    #[test]
    fn scripts_without_spaces_have_no_ends_of_words() {
        assert_eq!(found("最近熬夜太多", &["熬夜"]), [(1, "熬夜".to_string())]);
        assert_eq!(found("die STRASSE, die Straße, İzmir", &["straße", "izmir"]), [(1, "Straße".to_string())]);
    }
}
