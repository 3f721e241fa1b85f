//! Writes a collection as notes: meaningless file names, titles as headings, unchanged texts.

use std::collections::HashSet;
use std::fs;
use std::path::Path;

use vault_index::VaultPath;

use super::{Document, Result};
use crate::notes::notes_in;

/// A note to write.
pub(super) struct NewNote {
    pub path: VaultPath,
    pub text: String,
}

/// Returns the path of a document's note: a folder per thousand documents, and a distinct name for each id. The name is
/// distinct even on file systems that ignore case, and no query has such a word, so that the name of a note without a
/// title does not affect the ranking.
pub(super) fn path_of(id: &str, position: usize) -> VaultPath {
    let letter = |number: u8| char::from(b'a' + number);
    let name: String = match id.len() {
        1..=60 => id.bytes().flat_map(|byte| [letter(byte >> 4), letter(byte & 15)]).collect(),
        // Too long for a file name. Only such names have a second z.
        _ => ['z'].into_iter().chain(position.to_string().bytes().map(|digit| letter(digit - b'0'))).collect(),
    };
    VaultPath::new(&format!("{:03}/z{name}.md", position / 1000)).expect("letters and digits")
}

/// Returns a document as a person would write it: its title as a heading, if it has one, then its text.
pub(super) fn note_text(document: &Document) -> String {
    let (title, text) = (one_line(&document.title), whole_lines(&document.text));
    if !title.is_empty() {
        format!("# {title}\n\n{text}\n")
    } else if text.starts_with("---") {
        // Otherwise it would be parsed as frontmatter.
        format!("\n{text}\n")
    } else {
        format!("{text}\n")
    }
}

/// Replaces runs of white space by single spaces.
pub(super) fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Trims a text and normalizes its line endings to line feeds.
pub(super) fn whole_lines(text: &str) -> String {
    text.trim().replace("\r\n", "\n").replace('\r', "\n")
}

/// Writes the notes that do not exist yet or differ, so that unchanged notes in a kept folder are not read again.
///
/// # Errors
/// If a note cannot be written, or the folder has other notes, because nothing is ever deleted.
pub(super) fn write_notes(folder: &Path, notes: impl IntoIterator<Item = NewNote>) -> Result<()> {
    let mut written = HashSet::new();
    for note in notes {
        let path = folder.join(note.path.as_str());
        if fs::read(&path).ok().as_deref() != Some(note.text.as_bytes()) {
            fs::create_dir_all(path.parent().unwrap_or(folder))?;
            fs::write(&path, &note.text).map_err(|error| format!("{}: {error}", path.display()))?;
        }
        written.insert(path);
    }
    match notes_in(folder)?.into_iter().find(|path| !written.contains(path)) {
        Some(other) => Err(format!("{}: it is not of this collection; choose another folder", other.display()).into()),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_id_has_a_path_of_its_own() {
        let long = "x".repeat(61);
        let ids = ["1", "a", "A", "a/b", "a b", "../x", "", "é", "con", long.as_str(), "a.b", "a:b"];
        let mut seen = HashSet::new();
        for (position, id) in ids.iter().enumerate() {
            let path = path_of(id, position).as_str().to_owned();
            assert!(path.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || "/.".contains(c)), "{path}");
            assert!(seen.insert(path.to_lowercase()), "{path}");
        }
        assert_eq!(path_of("1a", 12_345).as_str(), "012/zdbgb.md");
        assert_eq!(path_of(&long, 1_234).as_str(), "001/zzbcde.md");
    }

    #[test]
    fn documents_become_notes() {
        let text =
            |title: &str, text: &str| note_text(&Document { id: "1".into(), title: title.into(), text: text.into() });
        assert_eq!(text(" a\nb ", "c\r\nd\n"), "# a b\n\nc\nd\n");
        assert_eq!(text("", "c"), "c\n");
        assert_eq!(text("", "---\nc"), "\n---\nc\n");
    }

    #[test]
    fn a_folder_is_kept_or_refused() {
        let folder = tempfile::tempdir().unwrap();
        let note = |text: &str| [NewNote { path: path_of("1", 0), text: text.into() }];
        write_notes(folder.path(), note("one")).unwrap();
        write_notes(folder.path(), note("two")).unwrap();
        assert_eq!(fs::read_to_string(folder.path().join("000/zdb.md")).unwrap(), "two");
        fs::write(folder.path().join("mine.md"), "mine").unwrap();
        assert!(write_notes(folder.path(), note("two")).unwrap_err().to_string().contains("mine.md"));
    }
}
