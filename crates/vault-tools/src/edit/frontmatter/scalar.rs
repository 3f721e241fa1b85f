//! Values as YAML: plain where that is read back as the same value everywhere, quoted where not.

use serde_json::Value;
use vault_index::note::{Property, frontmatter_properties};

/// How a text was quoted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Quote {
    Single,
    Double,
}

/// A property with its value, whole lines. Lists of scalars are blocks, one item a line; what is nested is written
/// as JSON, which is YAML.
pub(super) fn write_value(key: &str, value: &Value, quote: Option<Quote>, eol: &str) -> String {
    let key = scalar(&Value::String(key.to_owned()), None);
    match value {
        Value::Array(items) if !items.is_empty() && items.iter().all(|item| !item.is_array() && !item.is_object()) => {
            let items: String = items.iter().map(|item| format!("  - {}{eol}", scalar(item, quote))).collect();
            format!("{key}:{eol}{items}")
        }
        value => format!("{key}: {}{eol}", scalar(value, quote)),
    }
}

/// A value on one line.
pub(super) fn scalar(value: &Value, quote: Option<Quote>) -> String {
    match value {
        Value::Null => "null".to_owned(),
        Value::Bool(truth) => truth.to_string(),
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

/// A value between brackets, where a comma or bracket in a plain text would end it.
fn inner(value: &Value, quote: Option<Quote>) -> String {
    match value {
        Value::String(text) if text.contains([',', '[', ']', '{', '}']) => {
            self::text(text, quote.or(Some(Quote::Double)))
        }
        value => scalar(value, quote),
    }
}

fn text(text: &str, quote: Option<Quote>) -> String {
    match quote {
        Some(Quote::Single) if !text.chars().any(char::is_control) => format!("'{}'", text.replace('\'', "''")),
        None if is_plain(text) => text.to_owned(),
        _ => double(text),
    }
}

/// In double quotes, on one line.
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

/// Whether a text can stand without quotes: it is read as this text, by old readers of YAML too.
fn is_plain(text: &str) -> bool {
    let first = text.chars().next();
    let starts = first.is_some_and(|c| c.is_alphanumeric() || matches!(c, '_' | '/' | '(' | '.' | '+'));
    let ends = text.chars().next_back().is_some_and(|c| !c.is_whitespace() && c != ':');
    // `y`, `no`, `on` and the like are truths to readers of YAML 1.1.
    let is_truth = matches!(text.to_ascii_lowercase().as_str(), "y" | "n" | "yes" | "no" | "on" | "off");
    if !starts || !ends || is_truth || text.contains(": ") || text.contains(" #") {
        return false;
    }
    if text.chars().any(|c| c.is_control() || matches!(c, '\u{2028}' | '\u{2029}' | '\u{feff}')) {
        return false;
    }
    let read = frontmatter_properties(&format!("k: {text}\n"));
    read.is_ok_and(|read| read.len() == 1 && read.get("k") == Some(&Property::from_text(text.to_owned())))
}
