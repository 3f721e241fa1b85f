//! The syntax of references in a plan's arguments, and their values.
//!
//! | written | value |
//! | --- | --- |
//! | `$steps.ID.path`, `$vars.NAME.path` as a whole text | the value itself: a list, an object, a number (where the tool asks for a text, its text) |
//! | `${$steps.ID.path}`, `${item.text}`, `${selection}` as a whole text | likewise |
//! | `${…}` within a text | its text |
//! | `${$steps.ID.items[*].name|join:", "}` | the entries of a list as one text, with the text in quotes between them |
//! | `[*]` in a path | the list of what the path leads to in every entry: `$steps.ID.items[*].path`; as an entry of a list, each of them is an entry |
//! | `$${` | the characters `${` |
//! | `$$steps.`, `$$vars.` at the beginning of a text | the characters `$steps.`, `$vars.` |
//!
//! Values are inserted into the parsed tree, never into JSON text, and are not scanned for references again: a quote, a
//! line break or a `${` in a selection is inserted unchanged. In an argument that is a path, a value within a text
//! becomes one segment of the path. A reference never puts a list into a list, unless the tool expects lists there.

use serde_json::Value;
use unicode_normalization::UnicodeNormalization;

use crate::sandbox::SafePath;
use crate::tool::{Issue, PATH_MARK, pointer};
use crate::toolbox::text_of;

/// The maximum number of characters of a value or a reference in a message.
const SHOWN_CHARACTERS: usize = 60;

/// The start of a reference.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Root {
    /// The output of a step.
    Step(String),
    /// The output of the step that captures it under this name.
    Var(String),
    /// The item or index of a loop, or a parameter.
    Name(String),
}

/// One reference.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Reference {
    pub root: Root,
    /// Keys of objects, indexes of lists and [`EACH`], outermost first.
    pub path: Vec<String>,
    /// The separator between the entries of a list that becomes a text.
    pub join: Option<String>,
    /// The source text, without the join.
    pub written: String,
}

/// In a path: all entries of a list.
pub(super) const EACH: &str = "*";

impl Reference {
    /// Returns whether its value is the list of the values in several entries.
    pub(super) fn collects(&self) -> bool {
        self.path.iter().any(|key| key == EACH)
    }
}

/// A part of a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Piece {
    Text(String),
    Reference(Reference),
}

/// The beginnings of a text that is a whole reference without `${`.
const ROOTS: [&str; 2] = ["$steps.", "$vars."];

/// Splits a text into pieces. A single reference has its own value, of any type; otherwise the pieces form a text.
///
/// # Errors
/// A description of the syntax error.
pub(super) fn parse(text: &str) -> Result<Vec<Piece>, String> {
    if ROOTS.iter().any(|root| text.starts_with(root)) {
        return match expression(text) {
            Ok(reference) => Ok(vec![Piece::Reference(reference)]),
            Err(_) => Err(format!(
                "`{}` is not a reference; within a text write ${{$steps.ID.field}}, and to begin a text with these \
                 characters write one more $ before them",
                shortened(text)
            )),
        };
    }
    let escaped = text.strip_prefix('$').filter(|rest| ROOTS.iter().any(|root| rest.starts_with(root)));
    let mut pieces = Vec::new();
    let mut plain = String::new();
    let mut rest = escaped.unwrap_or(text);
    while let Some(at) = rest.find("${") {
        if rest[..at].ends_with('$') {
            plain.push_str(&rest[..at - 1]);
            plain.push_str("${");
            rest = &rest[at + 2..];
            continue;
        }
        plain.push_str(&rest[..at]);
        let Some(end) = closing(&rest[at..]) else {
            return Err(format!(
                "`{}` is not closed with }} (write $${{ for the characters ${{)",
                shortened(&rest[at..])
            ));
        };
        if !plain.is_empty() {
            pieces.push(Piece::Text(std::mem::take(&mut plain)));
        }
        pieces.push(Piece::Reference(joined_expression(rest[at + 2..at + end].trim())?));
        rest = &rest[at + end + 1..];
    }
    plain.push_str(rest);
    if !plain.is_empty() {
        pieces.push(Piece::Text(plain));
    }
    Ok(pieces)
}

/// Returns the end of a reference: the first `}` outside quotes.
fn closing(text: &str) -> Option<usize> {
    let (mut is_quoted, mut is_escaped) = (false, false);
    let mut ends = text.char_indices().filter(|(_, c)| {
        let is_end = *c == '}' && !is_quoted;
        is_quoted ^= *c == '"' && !is_escaped;
        is_escaped = *c == '\\' && !is_escaped;
        is_end
    });
    ends.next().map(|(at, _)| at)
}

/// Parses a reference, or one with `|join:"…"` after it.
fn joined_expression(text: &str) -> Result<Reference, String> {
    let Some((reference, filter)) = text.split_once('|') else { return expression(text) };
    let separator = filter.trim().strip_prefix("join:").and_then(|text| serde_json::from_str(text).ok());
    let separator: String = separator.ok_or_else(|| {
        format!("`|{}` is not known; to make a text of a list, write |join:\", \"", shortened(filter))
    })?;
    Ok(Reference { join: Some(separator), ..expression(reference.trim())? })
}

/// Shortens a text for a message.
pub(super) fn shortened(text: &str) -> String {
    match text.char_indices().nth(SHOWN_CHARACTERS) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

/// Parses `$steps.a.items[0].text`, `$vars.x`, `item.text` or `selection`.
fn expression(text: &str) -> Result<Reference, String> {
    let wrong = || {
        format!(
            "`{}` is not a reference; write $steps.ID.field, $vars.NAME, or the name of a loop's item or a parameter",
            shortened(text)
        )
    };
    let of_step = text.strip_prefix("$steps.");
    let of_var = text.strip_prefix("$vars.");
    let named = of_step.or(of_var).unwrap_or(text);
    let end = named.find(['.', '[']).unwrap_or(named.len());
    let name = Some(&named[..end]).filter(|name| is_name(name)).ok_or_else(wrong)?.to_string();
    let root = match (of_step, of_var) {
        (Some(_), _) => Root::Step(name),
        (_, Some(_)) => Root::Var(name),
        _ => Root::Name(name),
    };
    let path = keys(&named[end..]).ok_or_else(wrong)?;
    Ok(Reference { root, path, join: None, written: text.to_string() })
}

/// Parses any number of `.key`, `[index]` and `[*]`; `None` for anything else.
fn keys(mut text: &str) -> Option<Vec<String>> {
    let mut keys = Vec::new();
    while !text.is_empty() {
        let (key, rest) = if let Some(rest) = text.strip_prefix('[') {
            let (number, rest) = rest.split_once(']')?;
            let is_index = number == EACH || number.bytes().all(|byte| byte.is_ascii_digit());
            (Some(number).filter(|_| is_index)?, rest)
        } else {
            let rest = text.strip_prefix('.')?;
            let key = &rest[..rest.find(['.', '[']).unwrap_or(rest.len())];
            let is_key = key.chars().all(|c| c.is_alphanumeric() || matches!(c, '_' | '-'));
            (Some(key).filter(|_| is_key)?, &rest[key.len()..])
        };
        if key.is_empty() {
            return None;
        }
        keys.push(key.to_string());
        text = rest;
    }
    Some(keys)
}

/// Finds apparent references to steps within a text that are plain text because they lack `${` and `}`.
pub(super) fn literals(text: &str) -> Vec<Reference> {
    let mut literals = Vec::new();
    for (number, piece) in parse(text).unwrap_or_default().into_iter().enumerate() {
        let Piece::Text(text) = piece else { continue };
        // A reference with an additional `$` before it is meant literally.
        for (at, _) in text.match_indices('$').filter(|(at, _)| *at > 0 || number > 0) {
            let is_key = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-' | '[' | ']');
            let end = text[at + 1..].find(|c| !is_key(c)).map_or(text.len(), |end| at + 1 + end);
            // A full stop after it can end the sentence.
            let reference = expression(text[at..end].trim_end_matches(['.', '-'])).ok();
            literals.extend(reference.filter(|reference| !matches!(reference.root, Root::Name(_))));
        }
    }
    literals
}

/// Returns whether a text is a letter, followed by letters, digits, `_` and `-`.
pub(super) fn is_name(text: &str) -> bool {
    let mut chars = text.chars();
    chars.next().is_some_and(|c| c.is_ascii_alphabetic())
        && chars.all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-'))
}

/// Returns whether a value is a text with references, so that it is unknown before the plan runs.
pub(super) fn is_open(value: &Value) -> bool {
    let is_reference = |piece: &Piece| matches!(piece, Piece::Reference(_));
    value.as_str().is_some_and(|text| parse(text).map_or(true, |pieces| pieces.iter().any(is_reference)))
}

/// Replaces values that are unknown before the plan runs. As a part of a path it does not change which folder the path
/// leads to.
pub(super) const PLACEHOLDER: &str = "x";

/// Returns the reference that makes up the whole text.
pub(super) fn only_reference(text: &str) -> Option<Reference> {
    let mut pieces = parse(text).ok()?;
    match (pieces.pop(), pieces.is_empty()) {
        (Some(Piece::Reference(reference)), true) => Some(reference),
        _ => None,
    }
}

/// How a value is inserted into a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PathPart {
    /// As one segment.
    Segment,
    /// As all the segments that a person gave.
    Given,
    /// As a folder of the vault; if it is the root, the slash after it is removed too.
    Folder,
}

/// A tree in which values have replaced the references.
pub(super) struct ResolvedValue {
    /// The value; null at the place of an issue.
    pub value: Value,
    /// Syntax errors, and references without a value.
    pub issues: Vec<Issue>,
    /// Lists and objects that were written as JSON within a text.
    pub as_json: Vec<String>,
}

/// Replaces the references in a tree by the values that `value_of` returns. `value_of` also gets the schema of the
/// place if the reference is the whole text. `schema` determines which texts are paths.
pub(super) fn resolve(
    value: &Value,
    schema: &Value,
    at: &str,
    mut value_of: impl FnMut(&Reference, Option<&Value>) -> Result<Value, String>,
    in_path: impl Fn(&Reference) -> PathPart,
) -> ResolvedValue {
    let mut resolver = Resolver { value_of: &mut value_of, in_path: &in_path, issues: Vec::new(), as_json: Vec::new() };
    let value = resolver.tree(value, schema, at);
    ResolvedValue { value, issues: resolver.issues, as_json: resolver.as_json }
}

type ValueLookup<'a> = &'a mut dyn FnMut(&Reference, Option<&Value>) -> Result<Value, String>;

struct Resolver<'a> {
    value_of: ValueLookup<'a>,
    in_path: &'a dyn Fn(&Reference) -> PathPart,
    issues: Vec<Issue>,
    as_json: Vec<String>,
}

impl Resolver<'_> {
    fn tree(&mut self, value: &Value, schema: &Value, at: &str) -> Value {
        let below = |keyword: &str, name: &str| schema.get(keyword).and_then(|s| s.get(name)).unwrap_or(&Value::Null);
        match value {
            Value::String(text) => match self.text(text, schema, at) {
                // If the schema expects a text, a number or a boolean is written as one.
                Some(value @ (Value::Number(_) | Value::Bool(_))) if is_text(schema) => value.to_string().into(),
                resolved => resolved.unwrap_or_default(),
            },
            Value::Array(entries) => self.list(entries, schema, at),
            Value::Object(fields) => {
                let field = |(name, value): (&String, &Value)| {
                    (name.clone(), self.tree(value, below("properties", name), &pointer(at, name)))
                };
                Value::Object(fields.iter().map(field).collect())
            }
            other => other.clone(),
        }
    }

    fn list(&mut self, entries: &[Value], schema: &Value, at: &str) -> Value {
        let of_entry = schema.get("items").unwrap_or(&Value::Null);
        let takes_lists = of_entry.get("type").is_some_and(|name| name == "array");
        let mut list = Vec::with_capacity(entries.len());
        for (index, entry) in entries.iter().enumerate() {
            let at = format!("{at}/{index}");
            let reference = entry.as_str().and_then(only_reference);
            let collects = reference.as_ref().is_some_and(Reference::collects);
            match (self.tree(entry, if collects { schema } else { of_entry }, &at), reference) {
                (Value::Array(found), Some(_)) if collects => list.extend(found),
                (Value::Array(_), Some(reference)) if !takes_lists => {
                    let written = &reference.written;
                    let message = format!(
                        "`{written}` is a list, which would be a list within a list; write `{written}[*]` (in version 1.1) \
                         for its entries"
                    );
                    self.issues.push(Issue { pointer: at, message });
                }
                (value, _) => list.push(value),
            }
        }
        Value::Array(list)
    }

    fn text(&mut self, text: &str, schema: &Value, at: &str) -> Option<Value> {
        let pieces = self.located(parse(text), at)?;
        if let [Piece::Reference(only)] = &pieces[..] {
            let value = (self.value_of)(only, Some(schema));
            return self.located(value, at);
        }
        let is_path = schema.get(PATH_MARK).is_some();
        let mut whole = Some(String::new());
        let mut is_root = false;
        for piece in pieces {
            let part = match piece {
                Piece::Text(text) if is_root => Some(text.strip_prefix('/').unwrap_or(&text).to_string()),
                Piece::Text(text) => Some(text),
                Piece::Reference(reference) => {
                    let value = (self.value_of)(&reference, None);
                    if let Ok(Value::Array(_) | Value::Object(_)) = value {
                        let written = &reference.written;
                        self.as_json.push(format!(
                            "`{written}` is written as JSON; for the entries of a list as text, write ${{{written}|join:\", \"}}"
                        ));
                    }
                    let value = value.and_then(|value| part_of_text(&reference, &value, is_path));
                    let value = value.and_then(|value| match (self.in_path)(&reference) {
                        _ if !is_path => Ok(value),
                        PathPart::Segment => Ok(SafePath::segment(&value)),
                        PathPart::Given => folders(&value, &reference),
                        PathPart::Folder => Ok(value),
                    });
                    self.located(value, at)
                }
            };
            is_root = is_path && part.as_ref().is_some_and(String::is_empty);
            whole = whole.zip(part).map(|(whole, part)| whole + &part);
        }
        whole.map(Value::String)
    }

    /// Returns the value; `None` after an error, which is recorded as an issue.
    fn located<T>(&mut self, result: Result<T, String>, at: &str) -> Option<T> {
        result.map_err(|message| self.issues.push(Issue { pointer: at.to_string(), message })).ok()
    }
}

/// Joins the entries of a list to a text.
///
/// # Errors
/// If the value is not a list, or an entry is not a plain value.
pub(super) fn join(reference: &Reference, value: &Value, separator: &str) -> Result<String, String> {
    let written = &reference.written;
    let Value::Array(entries) = value else {
        return Err(format!("`{written}` is not a list, so nothing can be joined"));
    };
    let plain = |entry: &Value| match entry {
        Value::Array(_) | Value::Object(_) => {
            Err(format!("`{written}` has {} in it, which is not text; name a field of it", name_of(entry)))
        }
        entry => Ok(text_of(entry)),
    };
    let texts: Result<Vec<String>, String> = entries.iter().filter(|entry| !entry.is_null()).map(plain).collect();
    Ok(texts?.join(separator))
}

/// Converts a value to a part of a text.
fn part_of_text(reference: &Reference, value: &Value, is_path: bool) -> Result<String, String> {
    let written = &reference.written;
    match value {
        Value::Null => Err(format!("`{written}` is null, not a text")),
        Value::Array(_) | Value::Object(_) if is_path => {
            Err(format!("`{written}` is {}, not a part of a path", name_of(value)))
        }
        value => Ok(text_of(value)),
    }
}

/// Converts a value that a person gave to one or more segments of a path.
fn folders(value: &str, reference: &Reference) -> Result<String, String> {
    let segments: Vec<&str> = value.trim().trim_end_matches('/').split('/').collect();
    if segments.iter().any(|segment| matches!(segment.trim(), "" | "." | "..")) {
        return Err(format!("`{}` is {value:?}, which is not a path within the vault", reference.written));
    }
    let names = segments.iter().map(|segment| SafePath::segment(segment)).collect::<Vec<_>>();
    // A value that a person gave is used unchanged or refused.
    match segments.iter().zip(&names).all(|(segment, name)| segment.trim().nfc().eq(name.chars())) {
        true => Ok(names.join("/")),
        false => {
            Err(format!("`{}` is {value:?}, which no path can have; write {:?}", reference.written, names.join("/")))
        }
    }
}

fn name_of(value: &Value) -> &'static str {
    if value.is_array() { "a list" } else { "an object" }
}

fn is_text(schema: &Value) -> bool {
    schema.get("type").is_some_and(|name| name == "string")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn invalid_syntax_is_an_error() {
        for text in [
            "${",
            "a ${b",
            "${}",
            "${a b}",
            "$steps.a.b c",
            "${$steps}",
            "${a..b}",
            "${1a}",
            "${$steps.a]slug}",
            "${$st]eps.a.slug}",
            "${a[}",
            "${a[]}",
            "${a[x]}",
            "${a[0]b}",
            "${a.*}",
            "${a[**]}",
            "${a.}",
            "$steps.one is done",
            "${a|join}",
            "${a|join:,}",
            "${a|upper:\"x\"}",
            "${a|join:\"}",
            "${|join:\", \"}",
        ] {
            assert!(parse(text).is_err(), "{text}");
        }
        for (text, separator) in [
            (r#"${a|join:", "}"#, ", "),
            (r#"${ a[*].b | join:"\n- " }"#, "\n- "),
            (r#"${a|join:"}"}"#, "}"),
            (r#"${a|join:"\"|"}"#, "\"|"),
        ] {
            assert_eq!(only_reference(text).unwrap().join.as_deref(), Some(separator), "{text}");
        }
        assert!(parse("$steps.one is done").unwrap_err().contains("one more $"));
        assert_eq!(only_reference("${a[0].b[12][*].c}").unwrap().path, ["0", "b", "12", EACH, "c"]);
        assert!(only_reference("${a}${b}").is_none() && only_reference("a").is_none());
    }

    #[test]
    fn what_looks_like_a_reference_within_a_text() {
        let found = |text: &str| literals(text).into_iter().map(|found| found.written).collect::<Vec<_>>();
        assert_eq!(found("First: $steps.e.count."), ["$steps.e.count"]);
        assert_eq!(found("${a}$vars.x[0] and $steps.b-c/d"), ["$vars.x[0]", "$steps.b-c"]);
        for text in ["$$steps.e.count", "$steps.e.count", "x ${$steps.e.count}", "$5 $steps $item.x 🚲$"] {
            assert!(found(text).is_empty(), "{text}");
        }
    }

    proptest::proptest! {
        #[test]
        fn any_text_is_read_or_refused(text in "[ -~🌲]{0,8}|([$.{}\\[\\]*0a🌲|\"-]|steps|vars|join:){0,10}") {
            let only_text = |pieces: &[Piece]| matches!(pieces, [Piece::Text(plain)] if *plain == text);
            let pieces = parse(&text);
            if !text.is_empty() && !text.contains('$') {
                proptest::prop_assert!(pieces.is_ok_and(|pieces| only_text(&pieces)), "{}", text);
            }
            proptest::prop_assert!(literals(&text).len() <= text.matches('$').count(), "{}", text);
        }
    }
}
