//! Changes properties and leaves all other bytes of the note unchanged: comments, order, quotes, the body.
//!
//! The block is not rewritten: only the lines of the changed properties are replaced, in their current style. Then the
//! new block is parsed as YAML and compared, value by value, with the expected properties; if anything differs, the
//! change is refused.

mod scalar;
mod entries;

use serde_json::{Map, Value};
use vault_index::Warning;
use vault_index::note::{Properties, Property, frontmatter_properties, frontmatter_span, is_inline_tag, property_key};

use crate::edit::{LineEnding, TextEdit, apply_edits};
use crate::error::{Error, ErrorKind, Result};
use entries::{Entry, entries};
pub(crate) use scalar::property;
use scalar::write_value;

/// Sets properties; `null` removes one. Keys are matched without regard to case; new keys are added at the end, sorted
/// by name.
///
/// A note without frontmatter gets a block; a note that loses all properties keeps an empty one.
///
/// # Errors
/// [`ErrorKind::Frontmatter`] for a block that is not closed, not valid YAML or not a list of keys, for a duplicate key,
/// and when the change would affect other properties; [`ErrorKind::InvalidArguments`] for an invalid key, and for a
/// number that is too large to be exact.
pub fn update(text: &str, updates: &Map<String, Value>) -> Result<String> {
    with_nulls(text, updates, Nulls::Remove)
}

/// Like [`update`], but `null` sets a property without a value.
///
/// # Errors
/// The errors of [`update`].
pub fn set(text: &str, properties: &Map<String, Value>) -> Result<String> {
    with_nulls(text, properties, Nulls::Set)
}

/// Converts texts to lists where a list is expected. This concerns `tags`, `aliases`, `cssclasses` and properties that
/// are lists now, if the text is a list in JSON, and tags that are separated by commas. Returns notices about the
/// conversions.
///
/// # Errors
/// [`ErrorKind::InvalidArguments`] for a text of tags that contains an invalid tag, such as `two words`.
pub fn read_lists(text: &str, updates: &mut Map<String, Value>) -> Result<Vec<String>> {
    let before = properties(text).unwrap_or_default();
    let mut notices = Vec::new();
    for (key, value) in updates {
        let Some(given) = value.as_str() else { continue };
        let name = property_key(key);
        let is_list = matches!(name.as_str(), "tags" | "aliases" | "cssclasses")
            || matches!(before.get(key), Some(Property::List(_)));
        let json = serde_json::from_str::<Vec<Value>>(given).ok().filter(|_| is_list);
        let is_tag = |tag: &str| is_inline_tag(tag.trim().trim_start_matches('#'));
        let list = match json {
            Some(items) => items,
            None if name != "tags" || given.trim().is_empty() || is_tag(given) => continue,
            None if given.contains(',') && given.split(',').all(is_tag) => {
                given.split(',').map(|tag| Value::from(tag.trim())).collect()
            }
            None => {
                let what = format!("{given:?} is not a tag: a tag has letters, digits, _, - and /, and no space");
                return Err(Error::new(ErrorKind::InvalidArguments, what)
                    .at(format!("/{key}"))
                    .with_remedy("give a list of tags"));
            }
        };
        notices.push(format!("{key}: the text was read as a list of {}", list.len()));
        *value = list.into();
    }
    Ok(notices)
}

/// The effect of a null on its property.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Nulls {
    Remove,
    Set,
}

fn with_nulls(text: &str, updates: &Map<String, Value>, nulls: Nulls) -> Result<String> {
    if updates.is_empty() {
        return Ok(text.to_owned());
    }
    if let Some(key) = updates.keys().find(|key| key.trim().is_empty() || key.contains(['\n', '\r'])) {
        return Err(Error::new(ErrorKind::InvalidArguments, format!("{key:?} cannot be the name of a property")));
    }
    if let Some(number) = updates.values().find_map(inexact) {
        let message = format!("the number {number} is too large to be exact");
        return Err(Error::new(ErrorKind::InvalidArguments, message).with_remedy("give it as a text"));
    }
    let mark = text.len() - text.trim_start_matches('\u{feff}').len();
    let Some(block) = frontmatter_span(text) else {
        let is_set = |value: &Value| nulls == Nulls::Set || !value.is_null();
        let set: Vec<(&String, &Value)> = updates.iter().filter(|(_, value)| is_set(value)).collect();
        if set.is_empty() {
            return Ok(text.to_owned());
        }
        if is_unclosed(&text[mark..]) {
            return Err(unclosed());
        }
        let eol = LineEnding::of(text).as_str();
        let lines: String = set.iter().map(|(key, value)| write_value(key, value, eol)).collect();
        let new = format!("{}---{eol}{lines}---{eol}{}", &text[..mark], &text[mark..]);
        compare(&lines, &Properties::default(), updates)?;
        return Ok(new);
    };
    if !text[block.clone()].contains('\n') {
        return Err(Error::new(ErrorKind::Frontmatter, "the lines of the note end in a carriage return alone")
            .with_remedy("write its text again with other line endings first"));
    }
    let (yaml, eol) = inside(text, &block);
    let old_block = &text[yaml.clone()];
    let before = read(old_block)?;
    let new_block = updated(old_block, &before, updates, eol, nulls)?;
    compare(&new_block, &before, updates)?;
    Ok(format!("{}{new_block}{}", &text[..yaml.start], &text[yaml.end..]))
}

/// Returns the properties of a note as they are written; a duplicate key occurs twice.
///
/// # Errors
/// [`ErrorKind::Frontmatter`] for a block that is not valid YAML or not a list of keys.
pub fn properties(text: &str) -> Result<Properties> {
    match frontmatter_span(text) {
        Some(block) => read(&text[inside(text, &block).0]),
        None => Ok(Properties::default()),
    }
}

/// Converts a property to the JSON that [`update`] takes.
pub(crate) fn to_json(property: &Property) -> Value {
    serde_json::to_value(property).unwrap_or_default()
}

/// Returns the range between the fences, and its line ending.
fn inside(text: &str, block: &std::ops::Range<usize>) -> (std::ops::Range<usize>, &'static str) {
    let whole = &text[block.clone()];
    let first = whole.find('\n').map_or(whole.len(), |end| end + 1);
    let eol = if whole[..first].ends_with("\r\n") { "\r\n" } else { "\n" };
    let closed = whole.trim_end_matches(['\n', '\r', ' ', '\t']);
    let last = closed.rfind('\n').map_or(closed.len(), |start| start + 1);
    (block.start + first..block.start + last.max(first), eol)
}

fn read(yaml: &str) -> Result<Properties> {
    frontmatter_properties(yaml).map_err(unreadable)
}

fn unreadable(warning: Warning) -> Error {
    // The block begins on the second line of its file.
    let line = warning.line.map_or(String::new(), |line| format!("line {}: ", line + 1));
    Error::new(ErrorKind::Frontmatter, format!("{line}{}", warning.message))
        .with_remedy("correct the YAML of the frontmatter first")
}

/// Returns a text's frontmatter with its fences; if it is not closed, the whole text; empty if there is no frontmatter.
pub(crate) fn as_written(text: &str) -> &str {
    match frontmatter_span(text) {
        Some(block) => &text[block],
        None if text.trim_start_matches('\u{feff}').starts_with("---") => text,
        None => "",
    }
}

/// Returns the error in a text's frontmatter, with the line and, if only quotes are missing, the corrected line; `None`
/// if it can be read or there is no frontmatter. An unclosed `---` in the first line may not be meant as frontmatter;
/// it is treated as frontmatter if the note had some before.
pub(crate) fn fault(text: &str, had_some: bool) -> Option<Error> {
    let Some(block) = frontmatter_span(text) else {
        let opens = text.trim_start_matches('\u{feff}');
        let is_open =
            is_unclosed(opens) || had_some && opens.lines().next().is_some_and(|line| line.trim_end() == "---");
        return is_open.then(unclosed);
    };
    let (yaml, _) = inside(text, &block);
    let yaml = &text[yaml];
    let warning = frontmatter_properties(yaml).err()?;
    // The parser may notice a mistake in a line only at the end.
    let mut start = 0;
    let repaired = yaml.split_inclusive('\n').zip(1..).find_map(|(line, number)| {
        let (before, after) = (&yaml[..start], &yaml[start + line.len()..]);
        start += line.len();
        let quoted = quoted(line.trim_end())?;
        frontmatter_properties(&format!("{before}{quoted}\n{after}")).is_ok().then_some((number, quoted))
    });
    Some(match repaired {
        Some((number, line)) => {
            unreadable(Warning { line: Some(number), ..warning }).with_remedy(format!("write `{line}`"))
        }
        None => unreadable(warning),
    })
}

/// Returns a line `key: value` with the value in quotes.
fn quoted(line: &str) -> Option<String> {
    let (key, value) = line.split_once(": ")?;
    let indent = &key[..key.len() - key.trim_start().len()];
    let text = Value::String(value.trim().trim_matches('"').to_owned());
    Some(format!("{indent}{}: {text}", key.trim_start()))
}

/// Returns whether a text begins like frontmatter with properties that no line `---` ends.
fn is_unclosed(text: &str) -> bool {
    let Some((first, rest)) = text.split_once('\n') else { return false };
    let lines: String = rest.split_inclusive('\n').take_while(|line| !line.trim().is_empty()).collect();
    first.trim_end() == "---" && frontmatter_properties(&lines).is_ok_and(|read| !read.is_empty())
}

fn unclosed() -> Error {
    Error::new(ErrorKind::Frontmatter, "the frontmatter is not closed").with_remedy(
        "end it with a line ---, or put an empty line after the first line if it is not meant as frontmatter",
    )
}

/// Returns a whole number that was rounded to a float when it was parsed.
fn inexact(value: &Value) -> Option<&serde_json::Number> {
    const EXACT: f64 = (1_u64 << 53) as f64;
    match value {
        Value::Number(number) => {
            let is_cut = |float: f64| float.fract() == 0.0 && float.abs() >= EXACT;
            Some(number).filter(|number| number.is_f64() && number.as_f64().is_some_and(is_cut))
        }
        Value::Array(items) => items.iter().find_map(inexact),
        Value::Object(map) => map.values().find_map(inexact),
        _ => None,
    }
}

fn updated(block: &str, before: &Properties, updates: &Map<String, Value>, eol: &str, nulls: Nulls) -> Result<String> {
    let entries = entries(block).ok_or_else(|| {
        Error::new(ErrorKind::Frontmatter, "the frontmatter is not a list of keys, one a line")
            .with_remedy("write it as `key: value` lines first")
    })?;
    let mut edits: Vec<TextEdit> = Vec::new();
    let mut new = String::new();
    for (key, value) in updates {
        let exact: Vec<&Entry> = entries.iter().filter(|entry| entry.key == *key).collect();
        let folded = || entries.iter().filter(|entry| entry.key.to_lowercase() == key.to_lowercase()).collect();
        let found: Vec<&Entry> = if exact.is_empty() { folded() } else { exact };
        match (&found[..], value) {
            ([], Value::Null) if nulls == Nulls::Remove => {}
            ([], value) => new.push_str(&write_value(key, value, eol)),
            ([entry], value) => {
                let now = before.iter().find(|(known, _)| *known == entry.key).map(|(_, value)| value);
                let entry = entry.whole(block, now);
                let lines = match value {
                    Value::Null if nulls == Nulls::Remove => entry.comments(block),
                    value => entry.with(block, value, now, eol).ok_or_else(|| {
                        Error::new(ErrorKind::Frontmatter, format!("a comment within {key:?} would be lost"))
                            .with_remedy("change this property with edit_note")
                    })?,
                };
                edits.push(TextEdit { span: entry.span, text: lines });
            }
            _ => {
                return Err(Error::new(ErrorKind::Frontmatter, format!("the property {key:?} occurs twice"))
                    .with_remedy("remove one of the two first"));
            }
        }
    }
    edits.sort_by_key(|edit| edit.span.start);
    Ok(apply_edits(block, &edits)? + &new)
}

/// Checks that a block has the same properties as before, except for the updates.
fn compare(block: &str, before: &Properties, updates: &Map<String, Value>) -> Result<()> {
    let refused = |what: String| {
        Error::new(ErrorKind::Frontmatter, format!("the properties cannot be changed without changing {what}"))
            .with_remedy("nothing was done; edit the block as text instead")
    };
    let after = frontmatter_properties(block).map_err(|warning| refused(format!("its YAML ({})", warning.message)))?;
    let is_updated = |key: &str| updates.keys().any(|other| other.to_lowercase() == key.to_lowercase());
    let kept = |properties: &Properties| -> Vec<(String, Property)> {
        let all = properties.iter().map(|(key, value)| (key.to_owned(), value.clone()));
        all.filter(|(key, _)| !is_updated(key)).collect()
    };
    let (old, new) = (kept(before), kept(&after));
    if old != new {
        let other = old.iter().find(|pair| !new.contains(pair)).or_else(|| new.iter().find(|pair| !old.contains(pair)));
        return Err(refused(other.map_or("the order".to_owned(), |(key, _)| format!("{key:?} as well"))));
    }
    for (key, value) in updates {
        let found = after.iter().find(|(known, _)| *known == key).map(|(_, value)| value).or_else(|| after.get(key));
        let as_wanted = match (found, value) {
            (None, Value::Null) => true,
            (Some(found), value) => *found == property(value),
            (None, _) => false,
        };
        if !as_wanted {
            return Err(refused(format!("the meaning of {key:?}")));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests;
