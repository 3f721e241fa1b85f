//! From a note to its fields in the keyword index, as terms, and the words that the vocabulary may lack.

use std::borrow::Cow;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::note::{Properties, Property, property_key};
use crate::path::VaultPath;
use crate::store::{NoteFields, Word};
use crate::terms::{BETWEEN_ITEMS, HYPHENATED, Terms, stem};

/// The texts of a note's own fields.
pub(super) struct NoteTexts<'a> {
    pub title: &'a str,
    /// Whether the title is only the file's name.
    pub named_by_file: bool,
    pub aliases: &'a [String],
    pub tags: &'a [String],
    pub properties: &'a Properties,
    pub path: &'a VaultPath,
}

/// Creates terms, and collects the words among them that may be new.
pub(super) struct WordReader<'a> {
    terms: Terms,
    sent: &'a SentWords,
    new: Vec<Word>,
}

impl<'a> WordReader<'a> {
    pub(super) fn new(sent: &'a SentWords) -> Self {
        Self { terms: Terms::new(), sent, new: Vec::new() }
    }

    /// The terms of some texts, and their compounds. A phrase does not cross from one text to the next.
    pub(super) fn joined<'t>(&mut self, texts: impl IntoIterator<Item = &'t str>) -> String {
        let mut out = String::new();
        let mut compounds = String::new();
        for text in texts {
            if !out.is_empty() {
                out.push(' ');
                out.push(BETWEEN_ITEMS);
            }
            self.terms.write_joined(text, &mut out, |word| {
                if self.sent.is_first(word) {
                    let stem = stem(word);
                    self.new.push((word.to_owned(), (stem != word).then(|| stem.into_owned())));
                }
            });
            self.terms.compounds(text, |compound, _| {
                let term = format!("{HYPHENATED}{compound}");
                compounds.extend([" ", &term]);
                if self.sent.is_first(&term) {
                    self.new.push((term, Some(stem(compound).into_owned())));
                }
            });
        }
        if !compounds.is_empty() {
            out.extend([' ', BETWEEN_ITEMS]);
            out.push_str(&compounds);
        }
        out
    }

    /// The fields of a note by which all its passages are found.
    pub(super) fn note_fields(&mut self, note: &NoteTexts<'_>) -> NoteFields {
        let mut values = Vec::new();
        for (key, value) in note.properties.iter() {
            let has_field = match property_key(key).as_str() {
                "title" => !matches!(value, Property::List(_) | Property::Map(_)),
                key => matches!(key, "aliases" | "tags"),
            };
            if !has_field {
                collect_values(value, &mut values);
            }
        }
        // People also search for a note by its file's name if the title differs.
        let stem = (!note.named_by_file).then(|| note.path.stem());
        let folders = note.path.as_str().rsplit_once('/').map_or("", |(folders, _)| folders);
        NoteFields {
            title: self.joined([note.title]),
            aliases: self.joined(note.aliases.iter().map(String::as_str).chain(stem)),
            tags: self.joined(note.tags.iter().map(String::as_str)),
            properties: self.joined(values.iter().map(String::as_str)),
            path: self.joined(folders.split('/').filter(|folder| !folder.is_empty())),
        }
    }

    /// The words that may be new.
    pub(super) fn into_new(self) -> Vec<Word> {
        self.new
    }
}

/// A text without the drawing data that Excalidraw stores in the note, because this data has no words and must not
/// count towards the length.
pub(super) fn without_drawings(text: &str) -> Cow<'_, str> {
    const DATA: [&str; 2] = ["```compressed-json", "```json"];
    let mut out = String::new();
    let mut rest = text;
    // Other blocks of JSON are content of the note.
    let is_drawing = |before: &str, at: usize| {
        before[at..].starts_with(DATA[0])
            || before[..at].trim_end().lines().last().is_some_and(|line| line == "## Drawing" || line == "# Drawing")
    };
    while let Some(at) = DATA.iter().filter_map(|fence| rest.find(fence)).min() {
        let end = rest[at + 3..].find("\n```").map_or(rest.len(), |end| at + 3 + end + 4);
        out.push_str(if is_drawing(rest, at) { &rest[..at] } else { &rest[..end] });
        rest = &rest[end..];
    }
    if out.is_empty() { Cow::Borrowed(text) } else { Cow::Owned(out + rest) }
}

/// All values, in order. Booleans are not words of a note.
fn collect_values(property: &Property, values: &mut Vec<String>) {
    match property {
        Property::Null | Property::Bool(_) => {}
        Property::Number(number) => values.push(number.to_string()),
        Property::Text(text) | Property::Date(text) | Property::DateTime(text) => values.push(text.clone()),
        Property::List(items) => items.iter().for_each(|item| collect_values(item, values)),
        Property::Map(entries) => entries.iter().for_each(|(_, value)| collect_values(value, values)),
    }
}

/// The words that this sync has already passed to the writer, as a cache that forgets: two words that share a slot are
/// passed again and again, which is harmless because the vocabulary stores each word once. Shared by many threads. A
/// word is marked before the writer has it; but it arrives with its batch, which is written as a whole or ends the
/// sync.
pub(super) struct SentWords(Vec<AtomicU64>);

/// A power of two; each slot has eight bytes.
const SLOTS: usize = 1 << 17;

impl SentWords {
    pub(super) fn new() -> Self {
        Self(std::iter::repeat_with(AtomicU64::default).take(SLOTS).collect())
    }

    /// Whether the word was not passed before, or has been forgotten.
    fn is_first(&self, word: &str) -> bool {
        let hash = hash(word.as_bytes());
        let slot = &self.0[(hash >> 40) as usize & (SLOTS - 1)];
        // Most words were passed before, and a read is cheaper than a write that other processors notice.
        slot.load(Ordering::Relaxed) != hash && slot.swap(hash, Ordering::Relaxed) != hash
    }
}

/// Hashes a word. The result is never 0.
fn hash(word: &[u8]) -> u64 {
    let mut hash = word.len() as u64;
    for part in word.chunks(8) {
        let mut eight = [0; 8];
        eight[..part.len()].copy_from_slice(part);
        hash = (hash ^ u64::from_le_bytes(eight)).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        hash ^= hash >> 29;
    }
    hash | 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn data_of_drawings_are_left_out() {
        for (text, expected) in [
            ("A bird.", "A bird."),
            ("```json\n{\"a\": 1}\n```\nA bird.", "```json\n{\"a\": 1}\n```\nA bird."),
            ("Bird ^x\n%%\n## Drawing\n```compressed-json\nN4KAk\n\nx8\n```\n%%", "Bird ^x\n%%\n## Drawing\n\n%%"),
            ("# Drawing\n```json\n{\"type\":\"excalidraw\"}\n```\nBird", "# Drawing\n\nBird"),
            ("```json\n{}\n```\n```compressed-json\nN4KAk", "```json\n{}\n```\n"),
        ] {
            assert_eq!(without_drawings(text), expected, "{text}");
        }
    }
}
