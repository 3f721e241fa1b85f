//! Merges two notes: their frontmatter, property by property, and their texts.

use std::ops::Range;

use serde_json::{Map, Value};
use vault_index::note::{Properties, Property, TagKey, property_key};

use super::frontmatter::{self, to_json};
use super::insert::{append_to_end, append_to_section};
use super::list::{contains, items_of};
use super::section::{footnotes, note};
use super::spans::{LineEnding, offset_of};
use crate::error::Result;
use crate::host::Position;

/// The result of [`merge`].
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct MergedText {
    /// The whole new text.
    pub text: String,
    /// The span of the merged note's text in it.
    pub added: Range<usize>,
    /// Properties that both notes had, each with the value that was dropped.
    pub dropped: Vec<(String, Value)>,
    /// The labels of footnotes that both notes define. Only one of two such definitions is displayed.
    pub footnotes: Vec<String>,
}

/// Adds a note at the end of another, or of a section of it, which is created if it is missing. Lists in the
/// frontmatter are united and missing properties are added; if both have a value, the one in `text` is kept.
///
/// # Errors
/// The errors of [`frontmatter::update`], [`append_to_end`] and [`append_to_section`].
pub fn merge(text: &str, other: &str, heading: Option<&str>) -> Result<MergedText> {
    let mut merged = MergedText::default();
    let updates = joined(&frontmatter::properties(text)?, &frontmatter::properties(other)?, &mut merged.dropped);
    merged.text = frontmatter::update(text, &updates)?;
    merged.footnotes = footnotes(text).intersection(&footnotes(other)).cloned().collect();
    let parsed = note(other);
    let body = other[parsed.body].trim_end().trim_start_matches(['\n', '\r']);
    let body = body.strip_prefix('\u{feff}').unwrap_or(body);
    if body.trim().is_empty() {
        merged.added = merged.text.len()..merged.text.len();
        return Ok(merged);
    }
    let appended = match heading {
        Some(heading) => append_to_section(&merged.text, heading, body)?,
        None => append_to_end(&merged.text, body)?,
    };
    let start = offset_of(&appended.text, Position { line: appended.line - 1, ch: 0 })?;
    let length = LineEnding::of(&appended.text).put(body).len();
    merged.added = start..(start + length).min(appended.text.len());
    merged.text = appended.text;
    Ok(merged)
}

/// Returns the properties to set in the frontmatter of the first note so that it has the properties of both.
fn joined(first: &Properties, second: &Properties, dropped: &mut Vec<(String, Value)>) -> Map<String, Value> {
    let mut updates: Map<String, Value> = Map::new();
    for (key, value) in second.iter() {
        let folded = property_key(key);
        let there = first.iter().find(|(known, _)| property_key(known) == folded);
        let Some((known, now)) = there.filter(|(_, now)| **now != Property::Null) else {
            updates.insert(there.map_or(key, |(known, _)| known).to_owned(), to_json(value));
            continue;
        };
        let is_list = matches!(folded.as_str(), "tags" | "aliases" | "cssclasses")
            || matches!(now, Property::List(_))
            || matches!(value, Property::List(_));
        let has_keys = matches!(now, Property::Map(_)) || matches!(value, Property::Map(_));
        if value == now || *value == Property::Null {
            continue;
        }
        if !is_list || has_keys {
            dropped.push((known.to_owned(), to_json(value)));
            continue;
        }
        let mut items = items_of(&folded, now);
        let count = items.len();
        for item in items_of(&folded, value) {
            let is_there = match item.as_str().filter(|_| folded == "tags") {
                Some(tag) => items.iter().filter_map(Value::as_str).any(|other| TagKey::new(other) == TagKey::new(tag)),
                None => contains(&items, &item),
            };
            if !is_there {
                items.push(item);
            }
        }
        if items.len() > count {
            updates.insert(known.to_owned(), Value::Array(items));
        }
    }
    updates
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn properties_and_texts_are_joined() {
        let text = "---\ntags: [a, b] # mine\nstatus: open\nauthor: X\nempty:\n---\nFirst\n";
        let other = "---\nTag: B, c\nstatus: done\nauthor: [X, Z]\nempty: 1\nnew: {k: v}\n---\n\n# Other\r\nSecond";
        let merged = merge(text, other, None).unwrap();
        assert_eq!(
            merged.text,
            "---\ntags: [a, b, c] # mine\nstatus: open\nauthor:\n  - X\n  - Z\nempty: 1\nnew: {k: v}\n---\nFirst\n\n\
             # Other\nSecond\n"
        );
        assert_eq!(&merged.text[merged.added], "# Other\nSecond");
        assert_eq!(merged.dropped, [("status".to_owned(), json!("done"))]);
        for (text, other, heading, expected, added) in [
            ("a", "b", None, "a\n\nb", "b"),
            ("", "\u{feff}b\n", None, "b", "b"),
            ("a\r\n", "b\nc\n", None, "a\r\n\r\nb\r\nc\r\n", "b\r\nc"),
            ("# A\n# B\n", "x\n", Some("A"), "# A\n\nx\n\n# B\n", "x"),
            ("a\n", "x", Some("New"), "a\n\n## New\n\nx\n", "x"),
            ("a\n", "---\nk: v\n---\n\n", None, "---\nk: v\n---\na\n", ""),
        ] {
            let merged = merge(text, other, heading).unwrap();
            assert_eq!((merged.text.as_str(), &merged.text[merged.added.clone()]), (expected, added));
        }
        let twice = merge("a[^1]\n\n[^1]: x\n\n[^2]: y\n", "b[^1] [^3]\n\n[^1]: z\n", None).unwrap();
        assert_eq!(twice.footnotes, ["1"]);
        assert!(merge("```\nopen", "b", None).is_err());
        assert!(merge("a", "---\nk: [\n---\nb", None).is_err());
    }
}
