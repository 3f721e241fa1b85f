//! The Open Knowledge Format, version 0.2: the requirements for a folder to conform to it (`okf/SPEC.md` of
//! GoogleCloudPlatform/knowledge-catalog, sections 3.1, 8, 9, 11 and 12).
//!
//! - A concept is every `.md` file but `index.md` and `log.md`. It has frontmatter that can be read, with a `type` that is a
//!   text and not empty.
//! - An `index.md` has no frontmatter; the one in the root may have the key `okf_version`. Its entries are below headings.
//! - The second-level headings of a `log.md` are dates, `YYYY-MM-DD`, the newest first.
//!
//! Nothing else is an error: unknown types and keys, broken links and missing fields are allowed.

use vault_index::note::{BlockKind, Note, Property};

use crate::edit::frontmatter;
use crate::sandbox::SafePath;

/// Returns the violations in a file, by line; `None` for the file as a whole.
pub(super) fn faults(path: &SafePath, note: &Note) -> Vec<(Option<u32>, String)> {
    match path.vault_path().file_name() {
        "index.md" => index(path, note),
        "log.md" => log(note),
        _ => concept(note).into_iter().map(|fault| (None, fault)).collect(),
    }
}

fn concept(note: &Note) -> Option<String> {
    if note.frontmatter.is_none() {
        return Some("a concept has frontmatter with a type".to_owned());
    }
    match frontmatter::properties(&note.text).as_ref().map(|properties| properties.get("type")) {
        Err(error) => Some(format!("the frontmatter of a concept can be read: {}", error.message())),
        Ok(Some(Property::Text(text))) if !text.trim().is_empty() => None,
        Ok(_) => Some("the frontmatter of a concept has a type, which is a text".to_owned()),
    }
}

fn index(path: &SafePath, note: &Note) -> Vec<(Option<u32>, String)> {
    let mut faults = Vec::new();
    let is_root = path.vault_path().folder().is_empty();
    let keys: Vec<String> = note.properties.iter().map(|(key, _)| key.to_owned()).collect();
    if note.frontmatter.is_some() && !(is_root && keys.iter().all(|key| key == "okf_version")) {
        let what = "an index.md has no frontmatter, but for okf_version in the root";
        faults.push((Some(1), what.to_owned()));
    }
    let list = note.blocks.iter().find(|block| block.kind == BlockKind::List);
    let first_heading = note.headings.first().map_or(usize::MAX, |heading| heading.span.start);
    if let Some(list) = list.filter(|list| list.span.start < first_heading) {
        let line = note.lines.line_at(list.span.start);
        faults.push((Some(line), "the entries of an index.md are below a heading".to_owned()));
    }
    faults
}

fn log(note: &Note) -> Vec<(Option<u32>, String)> {
    let mut faults = Vec::new();
    let mut newest: Option<jiff::civil::Date> = None;
    for heading in note.headings.iter().filter(|heading| heading.level == 2) {
        let text = heading.text.trim();
        match text.parse::<jiff::civil::Date>().ok().filter(|date| date.to_string() == text) {
            None => faults.push((Some(heading.line), format!("{text:?} is not a date such as 2026-05-22"))),
            Some(date) if newest.is_some_and(|newest| date > newest) => {
                faults.push((Some(heading.line), format!("{date} is newer than the date above it")));
            }
            Some(date) => newest = Some(date),
        }
    }
    faults
}
