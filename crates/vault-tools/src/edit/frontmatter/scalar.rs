//! Writes values as YAML: plain if every YAML reader reads the same value back, otherwise quoted.

use serde_json::Value;
use vault_index::note::{Properties, Property, frontmatter_properties};

/// The quotes around a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Quote {
    Single,
    Double,
}

impl Quote {
    /// Returns the quotes at the beginning of a value.
    pub fn of(written: &str) -> Option<Self> {
        match written.trim_start().chars().next() {
            Some('"') => Some(Self::Double),
            Some('\'') => Some(Self::Single),
            _ => None,
        }
    }
}

/// Writes a property with its value, as whole lines. Lists of scalars become blocks with one item per line; nested
/// values are written as JSON, which is valid YAML.
pub(super) fn write_value(key: &str, value: &Value, eol: &str) -> String {
    let key = scalar(&Value::String(key.to_owned()), None);
    match value {
        Value::Array(items) if !items.is_empty() && items.iter().all(|item| !item.is_array() && !item.is_object()) => {
            let items: String = items.iter().map(|item| format!("  - {}{eol}", scalar(item, None))).collect();
            format!("{key}:{eol}{items}")
        }
        Value::Null => format!("{key}:{eol}"),
        value => format!("{key}: {}{eol}", scalar(value, None)),
    }
}

/// Writes a value on one line.
pub(super) fn scalar(value: &Value, quote: Option<Quote>) -> String {
    match value {
        Value::Null => "null".to_owned(),
        Value::Bool(value) => value.to_string(),
        Value::Number(number) => number.to_string(),
        Value::String(text) => self::text(text, quote),
        Value::Array(items) => {
            let items: Vec<String> = items.iter().map(|item| inner(item, quote)).collect();
            format!("[{}]", items.join(", "))
        }
        Value::Object(map) => {
            let pairs: Vec<String> = map
                .iter()
                .map(|(key, value)| format!("{}: {}", inner(&Value::String(key.clone()), None), inner(value, None)))
                .collect();
            format!("{{{}}}", pairs.join(", "))
        }
    }
}

/// Writes a value between brackets, where a comma or bracket in a plain text would end it.
pub(super) fn inner(value: &Value, quote: Option<Quote>) -> String {
    match value {
        Value::String(text) if text.contains([',', '[', ']', '{', '}']) => {
            self::text(text, quote.or(Some(Quote::Double)))
        }
        value => scalar(value, quote),
    }
}

/// Converts a JSON value to the property that its YAML would be read as.
pub(crate) fn property(value: &Value) -> Property {
    match value {
        Value::Null => Property::Null,
        Value::Bool(value) => Property::Bool(*value),
        Value::Number(_) => frontmatter_properties(&format!("k: {}\n", scalar(value, None)))
            .ok()
            .and_then(|read| read.get("k").cloned())
            .unwrap_or(Property::Null),
        Value::String(text) => Property::from_text(text.clone()),
        Value::Array(items) => Property::List(items.iter().map(property).collect()),
        Value::Object(map) => {
            let entries: Vec<_> = map.iter().map(|(key, value)| (key.clone(), property(value))).collect();
            Property::Map(Properties::from(entries))
        }
    }
}

fn text(text: &str, quote: Option<Quote>) -> String {
    match quote {
        Some(Quote::Single) if !text.chars().any(char::is_control) => format!("'{}'", text.replace('\'', "''")),
        None if is_plain(text) => text.to_owned(),
        _ => double(text),
    }
}

/// Writes a text in double quotes, on one line.
fn double(text: &str) -> String {
    let mut quoted = String::from("\"");
    for c in text.chars() {
        match c {
            '"' => quoted.push_str("\\\""),
            '\\' => quoted.push_str("\\\\"),
            '\n' => quoted.push_str("\\n"),
            '\r' => quoted.push_str("\\r"),
            '\t' => quoted.push_str("\\t"),
            c if c.is_control() || matches!(c, '\u{2028}' | '\u{2029}' | '\u{feff}') => {
                quoted.push_str(&format!("\\u{:04x}", u32::from(c)));
            }
            c => quoted.push(c),
        }
    }
    quoted.push('"');
    quoted
}

/// Returns whether a text needs no quotes: readers of YAML 1.1 also read it as this text.
fn is_plain(text: &str) -> bool {
    let first = text.chars().next();
    let starts = first.is_some_and(|c| c.is_alphanumeric() || matches!(c, '_' | '/' | '(' | '.' | '+'));
    let ends = text.chars().next_back().is_some_and(|c| !c.is_whitespace() && c != ':');
    // Readers of YAML 1.1 read `y`, `no`, `on` and similar words as booleans.
    let is_boolean = matches!(text.to_ascii_lowercase().as_str(), "y" | "n" | "yes" | "no" | "on" | "off");
    if !starts || !ends || is_boolean || reads_as_number(text) || text.contains(": ") || text.contains(" #") {
        return false;
    }
    if text.chars().any(|c| c.is_control() || matches!(c, '\u{2028}' | '\u{2029}' | '\u{feff}')) {
        return false;
    }
    let read = frontmatter_properties(&format!("k: {text}\n"));
    read.is_ok_and(|read| read.len() == 1 && read.get("k") == Some(&Property::from_text(text.to_owned())))
}

/// Returns whether any reader of YAML reads a text as a number: `.inf`, `1_000`, `017`, and `12:30`, which is 750 in
/// YAML 1.1. This covers more than any single reader; dates are not numbers, since they have a `-`.
fn reads_as_number(text: &str) -> bool {
    let text = text.strip_prefix(['+', '-']).unwrap_or(text).to_ascii_lowercase();
    if matches!(text.as_str(), ".inf" | ".nan") {
        return true;
    }
    let is = |text: &str, of: fn(char) -> bool| !text.is_empty() && text.chars().all(|c| c == '_' || of(c));
    let digits = ["0x", "0o", "0b"].iter().find_map(|base| text.strip_prefix(*base));
    if digits.is_some_and(|digits| is(digits, |c| c.is_ascii_hexdigit())) {
        return true;
    }
    let (number, exponent) = text.split_once('e').unwrap_or((text.as_str(), "0"));
    let exponent = exponent.strip_prefix(['+', '-']).unwrap_or(exponent);
    number.starts_with(|c: char| c.is_ascii_digit() || c == '.')
        && number.chars().any(|c| c.is_ascii_digit())
        && number.chars().all(|c| c.is_ascii_digit() || matches!(c, '_' | '.' | ':'))
        && number.matches('.').count() <= 1
        && is(exponent, |c| c.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_that_some_reader_takes_for_numbers_are_quoted() {
        for number in [
            ".inf", ".Inf", "+.INF", ".NaN", "1_000", "12:30", "12:30:45", "1:30.5", "017", "0o17", "0x_1", "0b1_0",
            "1__0", "1_0e+3", "+1_0", "._5",
        ] {
            assert_eq!(text(number, None), format!("\"{number}\""));
        }
        for plain in [
            "2024-01-15",
            "2024-01-15T09:30",
            "2024-01-15 09:30:15",
            "1.2.3",
            "v1",
            "3rd",
            "12:30 noon",
            "10.5 km",
            ".info",
            "0xyz",
            "1st_2",
            "e5",
            "12 Monkeys",
        ] {
            assert_eq!(text(plain, None), plain);
        }
    }
}
