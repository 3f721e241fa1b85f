//! The YAML at the start of a note, read within a budget. This is the only file that uses the YAML library.

use std::cell::Cell;
use std::collections::HashSet;
use std::ops::Range;

use serde::de::DeserializeSeed;

use super::property::{Properties, Property, Value, number_text};
use super::tag::frontmatter_tag;
use super::wikilink::{LinkText, split_link};
use crate::error::{Warning, WarningKind};

/// Longer YAML is not read.
const MAX_BYTES: usize = 64 << 10;

/// Deeper brackets are not read, because the library's time grows with depth times length.
const MAX_DEPTH: usize = 64;

/// The budget of one frontmatter: one for each value and one for each byte of text; aliases are counted each time they
/// are used. Documents without aliases never exceed it.
const BUDGET: usize = 2 * MAX_BYTES;

/// The span of the frontmatter with its fences, and the span between the fences.
pub(super) struct Fences {
    pub(super) whole: Range<usize>,
    pub(super) yaml: Range<usize>,
    /// The start of the line after the opening fence.
    pub(super) inside: usize,
}

/// Finds the frontmatter of a text that starts at `start` (after a byte order mark): from a first line `---` up to the
/// next line `---`. Without a closing line there is no frontmatter.
pub(super) fn find(text: &str, start: usize) -> Option<Fences> {
    let (first, inside) = line_at(text, start)?;
    if !is_fence(first) {
        return None;
    }
    let mut at = inside;
    while let Some((line, next)) = line_at(text, at) {
        if is_fence(line) {
            return Some(Fences { whole: start..next, yaml: start..at, inside });
        }
        at = next;
    }
    None
}

fn is_fence(line: &str) -> bool {
    line.trim_end_matches([' ', '\t']) == "---"
}

/// The line that starts at `at`, and the start of the next line.
fn line_at(text: &str, at: usize) -> Option<(&str, usize)> {
    let rest = text.get(at..).filter(|rest| !rest.is_empty())?;
    let end = rest.find(['\n', '\r']).unwrap_or(rest.len());
    let length = if rest[end..].starts_with("\r\n") { 2 } else { 1 };
    Some((&rest[..end], (at + end + length).min(text.len())))
}

/// The span of the frontmatter of a Markdown text, fences included, if it has one. A byte order mark may precede it.
///
/// ```
/// assert_eq!(vault_index::note::frontmatter_span("---\na: 1\n---\ntext"), Some(0..13));
/// ```
pub fn frontmatter_span(text: &str) -> Option<Range<usize>> {
    let start = if text.starts_with('\u{feff}') { '\u{feff}'.len_utf8() } else { 0 };
    find(text, start).map(|fences| fences.whole)
}

/// The properties of a block of frontmatter without its fences, as they are written: in order, with repeated keys, and
/// with tags and aliases like any other.
///
/// # Errors
/// A warning with the line, from 1, when the block is not valid YAML, does not consist of keys and values, or exceeds
/// its budget.
pub fn frontmatter_properties(yaml: &str) -> Result<Properties, Warning> {
    if first_line(yaml).is_none() { Ok(Properties::default()) } else { entries(yaml) }
}

/// The contents of a frontmatter.
#[derive(Debug, Default)]
pub(super) struct Frontmatter {
    pub(super) title: Option<String>,
    pub(super) aliases: Vec<String>,
    /// Without `#`, in order, including repetitions.
    pub(super) tags: Vec<String>,
    pub(super) properties: Properties,
    /// Links of the form `"[[…]]"`, with the span of the brackets.
    pub(super) links: Vec<(Range<usize>, LinkText)>,
    /// Whether the block as a whole is not valid YAML; `warnings` says why.
    pub(super) is_broken: bool,
    pub(super) warnings: Vec<Warning>,
}

/// The key by which a property's name is compared: in lower case, and the same for the two names of a list, where it
/// has two.
pub fn property_key(name: &str) -> String {
    let lower = name.to_lowercase();
    match lower.as_str() {
        "tag" => "tags".to_owned(),
        "alias" => "aliases".to_owned(),
        "cssclass" => "cssclasses".to_owned(),
        _ => lower,
    }
}

/// Reads the YAML of `text[fences.yaml]`. Its lines are those of the file.
pub(super) fn read(text: &str, fences: &Fences) -> Frontmatter {
    let yaml = &text[fences.yaml.clone()];
    let mut found = Frontmatter::default();
    let entries = match entries(yaml) {
        Ok(entries) => entries,
        Err(warning) => {
            found.warnings.push(warning);
            found.is_broken = true;
            entries_line_by_line(yaml)
        }
    };
    let mut linked = Vec::new();
    entries.iter().for_each(|(_, value)| collect_links(value, &mut linked));
    // In a broken block Obsidian does not treat them as links, and no tool could rewrite them.
    if !linked.is_empty() && !found.is_broken {
        found.links = quoted_links(yaml, fences.yaml.start, &linked);
    }
    // Lists with two possible names become one property, after the others.
    let mut lists: [(&str, Option<Vec<Property>>); 3] = [("tags", None), ("aliases", None), ("cssclasses", None)];
    let mut others: Vec<(String, Property)> = Vec::new();
    let (mut keys, mut names) = (HashSet::new(), HashSet::new());
    for (key, value) in entries.0 {
        let folded = property_key(&key);
        if folded == "title" && found.title.is_none() {
            found.title = title(&value);
        }
        match folded.as_str() {
            "tags" => {
                // A tag contains neither commas nor white space, so a single text may contain several.
                let items: Vec<&str> = match &value {
                    Property::Text(text) => text.split(|c: char| c == ',' || c.is_whitespace()).collect(),
                    other => other.texts(),
                };
                let tags: Vec<String> = items.into_iter().filter_map(frontmatter_tag).map(str::to_owned).collect();
                lists[0].1.get_or_insert_default().extend(tags.iter().cloned().map(Property::Text));
                found.tags.extend(tags);
            }
            "aliases" => {
                let properties = lists[1].1.get_or_insert_default();
                for alias in value.texts().into_iter().map(str::trim) {
                    if !alias.is_empty() && names.insert(alias.to_owned()) {
                        found.aliases.push(alias.to_owned());
                        properties.push(Property::from_text(alias.to_owned()));
                    }
                }
            }
            "cssclasses" => {
                let classes = value.texts().into_iter().map(|class| Property::Text(class.to_owned()));
                lists[2].1.get_or_insert_default().extend(classes);
            }
            _ if !keys.insert(key.clone()) => found.warnings.push(repeated(yaml, &key)),
            _ => others.push((key, value)),
        }
    }
    for (key, list) in lists {
        others.extend(list.map(|items| (key.to_owned(), Property::List(items))));
    }
    found.properties = Properties::from(others);
    found
}

fn title(value: &Property) -> Option<String> {
    let text = match value {
        Property::Number(number) => number_text(*number),
        other => other.as_str()?.to_owned(),
    };
    let line = text.split(char::is_control).map(str::trim).filter(|part| !part.is_empty());
    let line = line.collect::<Vec<_>>().join(" ");
    (!line.is_empty()).then_some(line)
}

fn repeated(yaml: &str, key: &str) -> Warning {
    let names_key = |line: &str| line.strip_prefix(key).is_some_and(|rest| rest.trim_start().starts_with(':'));
    let line = yaml.lines().enumerate().filter(|(_, line)| names_key(line)).nth(1);
    let warning = Warning::new(
        WarningKind::Frontmatter,
        format!("the frontmatter has the property {key:?} twice; the first one counts"),
    );
    match line {
        Some((index, _)) => warning.on_line(index as u32 + 1),
        None => warning,
    }
}

/// The entries of the top-level mapping, in order, including repeated keys.
fn entries(yaml: &str) -> Result<Properties, Warning> {
    let refuse = |line: usize, why: &str| {
        let message = format!("the frontmatter is read as text: {why}");
        Warning::new(WarningKind::Frontmatter, message).on_line(line as u32)
    };
    if yaml.len() > MAX_BYTES {
        return Err(refuse(1, "it is longer than 64 kB"));
    }
    if let Some(line) = too_deep(yaml) {
        return Err(refuse(line, "its brackets are nested too deeply"));
    }
    match value(yaml, &Cell::new(BUDGET)) {
        Ok(Property::Map(properties)) => Ok(properties),
        Ok(Property::Null) => Ok(Properties::default()),
        Ok(_) => Err(refuse(first_line(yaml).unwrap_or(1), "it is not valid YAML: expected keys and values")),
        Err(error) => {
            let line = error.location().map_or(1, |location| location.line());
            // The parser counts lines from the start of the block, but a reader needs the line in the file, which the
            // warning has.
            let error = error.to_string();
            let why = error.split(" at line ").next().unwrap_or_default();
            Err(refuse(line.max(1), &format!("it is not valid YAML: {why}")))
        }
    }
}

fn value(yaml: &str, budget: &Cell<usize>) -> Result<Property, serde_yaml::Error> {
    Value(budget).deserialize(serde_yaml::Deserializer::from_str(yaml))
}

/// The entries of a block that is not valid as a whole. Each is a line `key: value` and the indented lines and items
/// below it, read as YAML by itself. An entry that is still invalid becomes a text, or a list if it looks like one.
fn entries_line_by_line(yaml: &str) -> Properties {
    let mut entries = Vec::new();
    if yaml.len() > MAX_BYTES || too_deep(yaml).is_some() {
        return Properties::default();
    }
    let budget = Cell::new(BUDGET);
    let mut at = 0;
    while let Some((line, mut next)) = line_at(yaml, at) {
        let start = at;
        at = next;
        let Some((key, first)) = key_and_value(line) else { continue };
        while let Some((below, after)) = line_at(yaml, next)
            && (below.trim().is_empty() || below.starts_with([' ', '\t', '-']))
        {
            next = after;
        }
        let below = &yaml[at..next];
        at = next;
        let value = match value(&yaml[start..next], &budget) {
            Ok(Property::Map(Properties(mut read))) if matches!(&read[..], [(_, value)] if *value != Property::Null) => {
                read.remove(0).1
            }
            _ => as_text(first, below),
        };
        entries.push((key.to_owned(), value));
    }
    Properties(entries)
}

/// A line that begins with a key, and the text after its colon.
fn key_and_value(line: &str) -> Option<(&str, &str)> {
    let (key, value) = line.split_once(':')?;
    let is_key = key.starts_with(|c: char| c.is_alphanumeric() || c == '_') && !key.contains(['"', '[', '{', '#']);
    let is_apart = value.is_empty() || value.starts_with([' ', '\t']);
    (is_key && is_apart).then_some((key.trim_end(), value.trim()))
}

/// A value that is not valid YAML: its items, if dashes follow on the next lines or it begins with a bracket, otherwise
/// its text.
fn as_text(first: &str, below: &str) -> Property {
    let text = |text: &str| Property::from_text(text.trim().trim_matches(['"', '\'']).trim().to_owned());
    let list = |items: &mut dyn Iterator<Item = &str>| Property::List(items.map(text).collect());
    if let Some(items) = first.strip_prefix('[') {
        return list(&mut items.split(']').next().unwrap_or_default().split(','));
    }
    let mut items = below.lines().filter_map(|line| line.trim_start().strip_prefix("- ")).peekable();
    match first.is_empty() {
        true if items.peek().is_some() => list(&mut items),
        true => Property::Null,
        false => text(first),
    }
}

/// The first line that is not blank, a comment or the opening fence, from 1.
fn first_line(yaml: &str) -> Option<usize> {
    let says_nothing = |line: &str| line.is_empty() || line.starts_with('#') || is_fence(line);
    yaml.lines().position(|line| !says_nothing(line.trim_start())).map(|at| at + 1)
}

/// The line on which brackets are nested deeper than [`MAX_DEPTH`]. Brackets in texts count too, because only data that
/// is not frontmatter exceeds this high limit by accident.
fn too_deep(yaml: &str) -> Option<usize> {
    let mut depth = 0usize;
    for (index, line) in yaml.lines().enumerate() {
        for byte in line.bytes() {
            match byte {
                b'[' | b'{' => depth += 1,
                b']' | b'}' => depth = depth.saturating_sub(1),
                _ => {}
            }
            if depth > MAX_DEPTH {
                return Some(index + 1);
            }
        }
    }
    None
}

/// Collects texts that consist of exactly one wikilink.
fn collect_links<'p>(value: &'p Property, links: &mut Vec<&'p str>) {
    match value {
        Property::Text(text) if wikilink_inner(text).is_some() => links.push(text),
        Property::List(items) => items.iter().for_each(|item| collect_links(item, links)),
        Property::Map(map) => map.iter().for_each(|(_, item)| collect_links(item, links)),
        _ => {}
    }
}

fn wikilink_inner(text: &str) -> Option<&str> {
    let inner = text.trim().strip_prefix("[[")?.strip_suffix("]]")?;
    (!inner.contains("[[") && !inner.contains("]]") && !inner.contains(['\n', '\r'])).then_some(inner)
}

/// Finds the positions of the links: quoted values on one line that contain one of the texts in `linked`. The YAML
/// library does not report positions, so this looks for quotes where a value can start.
fn quoted_links(yaml: &str, base: usize, linked: &[&str]) -> Vec<(Range<usize>, LinkText)> {
    let mut links = Vec::new();
    let mut at = 0;
    while let Some((line, next)) = line_at(yaml, at) {
        // Between values: the last character that is neither white space nor part of a quoted value.
        let mut last = None;
        let mut spaced = true;
        let mut column = 0;
        let bytes = line.as_bytes();
        while column < bytes.len() {
            let byte = bytes[column];
            match byte {
                b'#' if spaced => break,
                b'"' | b'\'' if starts_value(last, spaced) => {
                    let Some(length) = quoted_length(&bytes[column..]) else { break };
                    let quoted = &line[column..column + length];
                    if let Some(link) = quoted_link(quoted, linked) {
                        let start = quoted.find("[[").unwrap_or(0);
                        let end = quoted.rfind("]]").map_or(length, |end| end + 2);
                        let offset = base + at + column;
                        links.push((offset + start..offset + end, link));
                    }
                    column += length;
                    (last, spaced) = (Some(byte), false);
                    continue;
                }
                b' ' | b'\t' => spaced = true,
                _ => (last, spaced) = (Some(byte), false),
            }
            column += 1;
        }
        at = next;
    }
    links
}

fn starts_value(last: Option<u8>, spaced: bool) -> bool {
    match last {
        None | Some(b'[' | b'{' | b',') => true,
        Some(b':' | b'-' | b'?') => spaced,
        Some(_) => false,
    }
}

/// The length of a quoted text with its quotes, if it ends on this line.
fn quoted_length(bytes: &[u8]) -> Option<usize> {
    let quote = bytes[0];
    let mut at = 1;
    while at < bytes.len() {
        match bytes[at] {
            b'\\' if quote == b'"' => at += 1,
            byte if byte == quote => {
                if quote == b'\'' && bytes.get(at + 1) == Some(&quote) {
                    at += 1;
                } else {
                    return Some(at + 1);
                }
            }
            _ => {}
        }
        at += 1;
    }
    None
}

fn quoted_link(quoted: &str, linked: &[&str]) -> Option<LinkText> {
    let raw = &quoted[1..quoted.len() - 1];
    let trimmed = raw.trim();
    if !trimmed.starts_with("[[") || !trimmed.ends_with("]]") {
        return None;
    }
    let escaped = if quoted.starts_with('"') { raw.contains('\\') } else { raw.contains("''") };
    let text = if escaped { serde_yaml::from_str(quoted).ok()? } else { raw.to_owned() };
    let link = split_link(wikilink_inner(&text)?);
    (linked.contains(&text.as_str()) && !link.is_empty()).then_some(link)
}
