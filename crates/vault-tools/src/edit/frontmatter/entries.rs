//! Finds the lines of each property in a block, and replaces the value of a property in its current style.

use std::ops::Range;

use serde_json::Value;
use vault_index::note::{Property, frontmatter_properties};

use super::scalar::{Quote, inner, property, scalar, write_value};

/// A property: its key, and its lines in the block.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Entry {
    pub key: String,
    /// Whole lines, without the blank lines and apparent comments after the value; see [`Entry::whole`].
    pub span: Range<usize>,
    /// The offset at which the next property begins.
    next: usize,
    /// The offset after the colon, in the block.
    value: usize,
}

/// Returns the properties of a block, in order; `None` if the block is not written as one key per line.
pub(super) fn entries(block: &str) -> Option<Vec<Entry>> {
    let mut entries: Vec<Entry> = Vec::new();
    let mut at = 0;
    for line in block.split_inclusive('\n') {
        let (start, end) = (at, at + line.len());
        at = end;
        let bare = line.trim_end_matches(['\n', '\r']);
        let is_blank = bare.trim().is_empty() || looks_like_comment(bare);
        if is_blank {
            continue;
        }
        // An item of a list can have the same indentation as its key.
        let continues = bare.starts_with([' ', '\t']) || bare == "-" || bare.starts_with("- ");
        match entries.last_mut() {
            Some(last) if continues => last.span.end = end,
            None if continues => return None,
            last => match key(bare) {
                Some((key, colon)) => {
                    last.into_iter().for_each(|last| last.next = start);
                    entries.push(Entry { key, span: start..end, next: block.len(), value: start + colon + 1 });
                }
                // The next line of a flow list or a quoted text; a `}` or `]` at the left edge.
                None => last?.span.end = end,
            },
        }
    }
    Some(entries)
}

/// Whether a line is a comment, unless it is in a text of several lines.
fn looks_like_comment(line: &str) -> bool {
    line.trim_start().starts_with('#')
}

/// Returns the key at the beginning of a line, and the position of its colon.
fn key(line: &str) -> Option<(String, usize)> {
    let quote = line.chars().next().filter(|c| matches!(c, '"' | '\''));
    let colon = match quote {
        Some(quote) => {
            let end = 1 + line[1..].find(quote)?;
            end + line[end..].find(':')?
        }
        None => line.char_indices().find_map(|(at, c)| {
            let next = line[at + c.len_utf8()..].chars().next();
            (c == ':' && next.is_none_or(|c| matches!(c, ' ' | '\t'))).then_some(at)
        })?,
    };
    let written = line[..colon].trim_end();
    if written.is_empty() || written.starts_with(['[', '{', '&', '*', '!', '|', '>', '%', '@', '`', '?', ',', ']', '}'])
    {
        return None;
    }
    let read = frontmatter_properties(&format!("{written}: 0\n")).ok()?;
    let (key, _) = read.iter().next()?;
    Some((key.to_owned(), colon))
}

impl Entry {
    /// Returns the entry including the blank lines and apparent comments after it, if they belong to its value. This is
    /// so in a text of several lines, which would not be read as its current value without them.
    pub(super) fn whole(&self, block: &str, now: Option<&Property>) -> Self {
        let reads = |end: usize| {
            let alone = frontmatter_properties(&block[self.span.start..end]);
            alone.is_ok_and(|alone| alone.len() == 1 && alone.iter().next().map(|(_, value)| value) == now)
        };
        let mut end = self.span.end;
        while !reads(end) {
            if end >= self.next {
                return self.clone();
            }
            end += block[end..self.next].find('\n').map_or(self.next - end, |newline| newline + 1);
        }
        Self { span: self.span.start..end, ..self.clone() }
    }

    /// Returns the lines that remain of this property when its value goes: the comments between the lines of the value.
    pub(super) fn comments(&self, block: &str) -> String {
        let lines = &block[self.span.clone()];
        let read = frontmatter_properties(lines).ok();
        let mut at = 0;
        let comments = lines.split_inclusive('\n').filter(|line| {
            let (before, after) = (&lines[..at], &lines[at + line.len()..]);
            at += line.len();
            // In a text of several lines, `#` begins no comment.
            let is_comment = || frontmatter_properties(&format!("{before}{after}")).ok() == read;
            looks_like_comment(line) && is_comment()
        });
        comments.collect()
    }

    /// Returns the lines of this property with a new value; `None` if a comment would be lost.
    pub(super) fn with(&self, block: &str, value: &Value, now: Option<&Property>, eol: &str) -> Option<String> {
        let lines = &block[self.span.clone()];
        let head = &block[self.span.start..self.value];
        if let (Value::Array(items), true) = (value, block[self.value..].trim_start().starts_with('[')) {
            return flow_list(&block[self.value..self.span.end], items).map(|list| format!("{head}{list}"));
        }
        let (first, rest) = match block[self.value..self.span.end].split_once('\n') {
            Some((first, rest)) => (first.trim_end_matches('\r'), rest),
            None => (&block[self.value..self.span.end], ""),
        };
        let (written, comment) = split_comment(first);
        let last_eol = if lines.ends_with('\n') { eol } else { "" };
        if !rest.trim().is_empty() {
            let kept = match value {
                Value::Array(items) if written.is_empty() => self.with_items(rest, items, now, eol),
                _ => None,
            };
            return Some(match kept {
                Some(items) => format!("{head}{first}{eol}{items}"),
                None => self.rewritten(head, value, comment, eol) + &self.comments(block),
            });
        }
        Some(match value {
            Value::Array(items) if !items.is_empty() => self.rewritten(head, value, comment, eol),
            _ => format!("{head} {}{comment}{last_eol}", scalar(value, Quote::of(written))),
        })
    }

    /// Returns the lines of the property with a new value, keeping the key as it is written.
    fn rewritten(&self, head: &str, value: &Value, comment: &str, eol: &str) -> String {
        let lines = write_value("k", value, eol);
        let lines = lines.strip_prefix("k:").unwrap_or(&lines);
        let (first, rest) = lines.split_once('\n').unwrap_or((lines, ""));
        format!("{head}{}{comment}{eol}{rest}", first.trim_end_matches('\r'))
    }

    /// Returns a list with one item per line, in which remaining items keep their lines and their comments.
    fn with_items(&self, rest: &str, items: &[Value], now: Option<&Property>, eol: &str) -> Option<String> {
        if items.is_empty() {
            return None;
        }
        let mut old: Vec<(Option<Property>, String)> = Vec::new();
        let (mut indent, mut before) = (None, String::new());
        for line in rest.split_inclusive('\n') {
            let bare = line.trim_end_matches(['\n', '\r']);
            let trimmed = bare.trim_start();
            if trimmed.is_empty() || looks_like_comment(trimmed) {
                before.push_str(line);
                continue;
            }
            let item = trimmed.strip_prefix("- ")?;
            let own = &bare[..bare.len() - trimmed.len()];
            if *indent.get_or_insert(own) != own {
                return None;
            }
            let read = frontmatter_properties(&format!("k: {item}\n")).ok();
            let value = read.and_then(|read| read.get("k").cloned());
            old.push((value, format!("{}{line}", std::mem::take(&mut before))));
        }
        // An item of several lines is not supported here.
        let Some(Property::List(actual)) = now else { return None };
        if !old.iter().map(|(value, _)| value.as_ref()).eq(actual.iter().map(Some)) {
            return None;
        }
        let mut text = String::new();
        // An item that replaces another keeps its line, including quotes and comment.
        let takes_its_place = |at: usize, wanted: &Property| {
            let stays = |value: &Property| items.iter().any(|item| property(item) == *value);
            items.len() == actual.len() && !actual.contains(wanted) && !stays(&actual[at])
        };
        for (at, item) in items.iter().enumerate() {
            let wanted = property(item);
            if takes_its_place(at, &wanted) {
                text.push_str(&in_place(&old[at].1, item, eol));
                old[at].0 = None;
                continue;
            }
            match old.iter_mut().find(|(value, _)| value.as_ref() == Some(&wanted)) {
                Some((value, lines)) => {
                    *value = None;
                    text.push_str(lines);
                    if !lines.ends_with('\n') {
                        text.push_str(eol);
                    }
                }
                None => text.push_str(&format!("{}- {}{eol}", indent.unwrap_or("  "), scalar(item, None))),
            }
        }
        // The comments above an item that is gone may be about the whole list.
        let gone = old.iter().filter(|(value, _)| value.is_some());
        let lines = gone.flat_map(|(_, lines)| lines.split_inclusive('\n'));
        text.extend(lines.filter(|line| looks_like_comment(line)));
        text.push_str(&before);
        Some(text)
    }
}

/// Returns the lines of an item with a new value, which is on the last of them.
fn in_place(lines: &str, item: &Value, eol: &str) -> String {
    let lines = lines.trim_end_matches(['\n', '\r']);
    let last = lines.rfind('\n').map_or(0, |newline| newline + 1);
    let Some((mark, value)) = lines[last..].split_once("- ") else { return lines.to_owned() };
    let (written, comment) = split_comment(value);
    let text = scalar(item, Quote::of(written));
    format!("{}{mark}- {text}{comment}{eol}", &lines[..last])
}

/// Returns a list between brackets, on one or more lines, with other items. Remaining items and the text around them
/// are unchanged. `None` if a comment between the items would be lost.
fn flow_list(written: &str, new: &[Value]) -> Option<String> {
    let open = written.find('[')? + 1;
    let last_line = written.trim_end().rfind('\n').map_or(0, |newline| newline + 1);
    let (_, comment) = split_comment(written[last_line..].trim_end());
    let close = written[..written.trim_end().len() - comment.len()].rfind(']').filter(|close| *close >= open)?;
    let (old, wanted): (_, Vec<Property>) = (&written[open..close], new.iter().map(property).collect());
    let kept = flow_items(old);
    let as_is =
        |item: &Property| kept.iter().find(|(value, _)| value == item).map(|(_, span)| old[span.clone()].to_owned());
    let of_first = Quote::of(old);
    let appends = !kept.is_empty() && kept.iter().map(|(value, _)| value).eq(wanted.iter().take(kept.len()));
    let between = separator(old);
    let list = if appends {
        let end = kept.last().map_or(0, |(_, span)| span.end);
        let added: Vec<String> = new[kept.len()..].iter().map(|item| inner(item, of_first)).collect();
        let before = if added.is_empty() { "" } else { between };
        format!("{}{before}{}{}", &old[..end], added.join(between), &old[end..])
    } else if kept.len() == new.len() {
        // An item that replaces another keeps its quotes.
        let (mut list, mut at) = (String::new(), 0);
        for ((_, span), (value, item)) in kept.iter().zip(wanted.iter().zip(new)) {
            let there = &old[span.clone()];
            list.push_str(&old[at..span.start]);
            list.push_str(&match as_is(value) {
                Some(text) => text,
                None if has_comment(there) => return None,
                None => inner(item, Quote::of(there)),
            });
            at = span.end;
        }
        list + &old[at..]
    } else if has_comment(old) {
        return None;
    } else {
        let text = |(item, value)| as_is(value).unwrap_or_else(|| inner(item, of_first));
        new.iter().zip(&wanted).map(text).collect::<Vec<_>>().join(between)
    };
    Some(format!("{}{list}{}", &written[..open], &written[close..]))
}

fn has_comment(list: &str) -> bool {
    list.split('\n').any(|line| !split_comment(line).1.is_empty())
}

/// Returns the separator between the items of a list between brackets.
fn separator(list: &str) -> &'static str {
    let is_tight = list.contains(',') && !list.contains(", ") && !list.contains('\n');
    if is_tight { "," } else { ", " }
}

/// Returns the items of a list between brackets, each with its value and its position.
fn flow_items(list: &str) -> Vec<(Property, Range<usize>)> {
    let (mut items, mut rest) = (Vec::new(), list);
    while !rest.is_empty() {
        // The shortest prefix that can be read as one item, because a comma within quotes or brackets does not end an
        // item.
        let ends = rest.match_indices(',').map(|(at, _)| at).chain([rest.len()]);
        let read = |end: usize| {
            let list = frontmatter_properties(&format!("k: [{}]\n", &rest[..end])).ok()?;
            match list.get("k") {
                Some(Property::List(items)) if items.len() == 1 => Some((end, items[0].clone())),
                _ => None,
            }
        };
        let Some((end, value)) = ends.into_iter().find_map(read) else { break };
        let start = list.len() - rest.len() + rest[..end].len() - rest[..end].trim_start().len();
        items.push((value, start..start + rest[..end].trim().len()));
        rest = rest.get(end + 1..).unwrap_or_default();
    }
    items
}

/// Splits a line into its value and its comment, which includes the white space before it.
fn split_comment(line: &str) -> (&str, &str) {
    let bytes = line.as_bytes();
    let (mut at, mut quote, mut is_start) = (0, None, true);
    while at < bytes.len() {
        match (quote, bytes[at]) {
            (None, b'#') if at == 0 || matches!(bytes[at - 1], b' ' | b'\t') => {
                let value = line[..at].trim_end();
                return (value.trim_start(), &line[value.len()..]);
            }
            (None, byte @ (b'"' | b'\'')) if is_start => quote = Some(byte),
            (Some(b'"'), b'\\') => at += 1,
            (Some(open), byte) if open == byte => quote = None,
            _ => {}
        }
        // Within brackets a quote can begin after each comma.
        is_start = matches!(bytes.get(at), Some(b' ' | b'\t' | b'[' | b',' | b'{')) && quote.is_none();
        at += 1;
    }
    (line.trim(), "")
}
