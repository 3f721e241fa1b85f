//! The syntax of references in a plan's arguments.
//!
//! | written | value |
//! | --- | --- |
//! | `$steps.ID.path`, `$vars.NAME.path` as a whole text | the value itself: a list, an object, a number (where the tool asks for a text, its text) |
//! | `${$steps.ID.path}`, `${item.text}`, `${selection}` as a whole text | likewise |
//! | `${…}` within a text | its text |
//! | `$${` | the characters `${` |
//! | `$$steps.`, `$$vars.` at the beginning of a text | the characters `$steps.`, `$vars.` |

use serde_json::Value;

use crate::tool::{Issue, pointer};

/// The beginning of a reference.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Root {
    /// The output of a step.
    Step(String),
    /// The output of the step that captures it under this name.
    Var(String),
    /// A loop's item or index, or a parameter.
    Name(String),
}

/// One reference.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Reference {
    pub root: Root,
    /// Keys of objects and indexes of lists, outermost first.
    pub path: Vec<String>,
    /// The source text.
    pub written: String,
}

/// A text with references.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Template {
    /// One reference and nothing else.
    Whole(Reference),
    /// Text and references.
    Mixed(Vec<Piece>),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Piece {
    Text(String),
    Reference(Reference),
}

/// How a text begins that is a whole reference without `${`.
const ROOTS: [&str; 2] = ["$steps.", "$vars."];

/// Parses a text; `None` if it has no references.
///
/// # Errors
/// What is wrong with the syntax.
pub(super) fn parse(text: &str) -> Result<Option<Template>, String> {
    if ROOTS.iter().any(|root| text.starts_with(root)) {
        return match expression(text) {
            Ok(reference) => Ok(Some(Template::Whole(reference))),
            Err(_) => Err(format!(
                "`{}` is not a reference; within a text write ${{$steps.ID.field}}, and to begin a text with these \
                 characters write one more $ before them",
                shortened(text)
            )),
        };
    }
    let escaped = text.strip_prefix('$').filter(|rest| ROOTS.iter().any(|root| rest.starts_with(root)));
    if escaped.is_none() && !text.contains("${") {
        return Ok(None);
    }
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
        let Some(end) = rest[at..].find('}') else {
            return Err(format!(
                "`{}` is not closed with }} (write $${{ for the characters ${{)",
                shortened(&rest[at..])
            ));
        };
        if !plain.is_empty() {
            pieces.push(Piece::Text(std::mem::take(&mut plain)));
        }
        pieces.push(Piece::Reference(expression(rest[at + 2..at + end].trim())?));
        rest = &rest[at + end + 1..];
    }
    plain.push_str(rest);
    if !plain.is_empty() {
        pieces.push(Piece::Text(plain));
    }
    Ok(Some(match &mut pieces[..] {
        [Piece::Reference(only)] => Template::Whole(only.clone()),
        _ => Template::Mixed(pieces),
    }))
}

fn shortened(text: &str) -> String {
    let mut short: String = text.chars().take(40).collect();
    if short.len() < text.len() {
        short.push('…');
    }
    short
}

/// `$steps.a.items[0].text`, `$vars.x`, `item.text`, `selection`.
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
    Ok(Reference { root, path, written: text.to_string() })
}

/// Any number of `.key` and `[index]`; `None` for anything else.
fn keys(mut text: &str) -> Option<Vec<String>> {
    let mut keys = Vec::new();
    while !text.is_empty() {
        let (key, rest) = if let Some(rest) = text.strip_prefix('[') {
            let (number, rest) = rest.split_once(']')?;
            (Some(number).filter(|number| number.bytes().all(|byte| byte.is_ascii_digit()))?, rest)
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

/// A letter, then letters, digits, `_` and `-`.
pub(super) fn is_name(text: &str) -> bool {
    let mut chars = text.chars();
    chars.next().is_some_and(|c| c.is_ascii_alphabetic())
        && chars.all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-'))
}

/// Calls `visit` with every reference of a tree and its JSON pointer; wrong syntax becomes an issue.
pub(super) fn each(value: &Value, at: &str, issues: &mut Vec<Issue>, visit: &mut dyn FnMut(&str, &Reference)) {
    match value {
        Value::String(text) => match parse(text) {
            Ok(None) => {}
            Ok(Some(Template::Whole(reference))) => visit(at, &reference),
            Ok(Some(Template::Mixed(pieces))) => pieces.iter().for_each(|piece| {
                if let Piece::Reference(reference) = piece {
                    visit(at, reference);
                }
            }),
            Err(message) => issues.push(Issue { pointer: at.to_string(), message }),
        },
        Value::Array(items) => {
            items.iter().enumerate().for_each(|(number, item)| each(item, &format!("{at}/{number}"), issues, visit));
        }
        Value::Object(fields) => {
            fields.iter().for_each(|(name, value)| each(value, &pointer(at, name), issues, visit));
        }
        _ => {}
    }
}

/// Whether a value is a text with references, so that it is not known before the plan runs.
pub(super) fn is_open(value: &Value) -> bool {
    value.as_str().is_some_and(|text| matches!(parse(text), Ok(Some(_)) | Err(_)))
}

/// A text with each reference replaced by a placeholder, to check the literal parts of a path.
pub(super) fn with_placeholders(text: &str) -> Option<String> {
    match parse(text) {
        Ok(None) => Some(text.to_string()),
        Ok(Some(Template::Mixed(pieces))) => Some(
            pieces
                .iter()
                .map(|piece| match piece {
                    Piece::Text(text) => text.as_str(),
                    Piece::Reference(_) => "x",
                })
                .collect(),
        ),
        Ok(Some(Template::Whole(_))) | Err(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn syntax_that_cannot_be_read() {
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
            "${a.}",
            "$steps.one is done",
        ] {
            assert!(parse(text).is_err(), "{text}");
        }
        assert!(parse("$steps.one is done").unwrap_err().contains("one more $"));
        let Ok(Some(Template::Whole(reference))) = parse("${a[0].b[12]}") else { panic!("one reference") };
        assert_eq!(reference.path, ["0", "b", "12"]);
    }

    #[test]
    fn placeholders_for_references() {
        assert_eq!(with_placeholders("../${a}.md").as_deref(), Some("../x.md"));
        assert_eq!(with_placeholders("$steps.a.path"), None);
        assert_eq!(with_placeholders("a.md").as_deref(), Some("a.md"));
    }
}
