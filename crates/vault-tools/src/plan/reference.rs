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

use crate::sandbox::SafePath;
use crate::tool::{Issue, PATH_MARK, pointer};
use crate::toolbox::text_of;

/// The beginning of a reference.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
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

/// A part of a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Piece {
    Text(String),
    Reference(Reference),
}

/// How a text begins that is a whole reference without `${`.
const ROOTS: [&str; 2] = ["$steps.", "$vars."];

/// The pieces of a text. A single reference stands for its value, whatever its type; otherwise the pieces are text.
///
/// # Errors
/// What is wrong with the syntax.
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
    Ok(pieces)
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

/// Whether a value is a text with references, so that it is not known before the plan runs.
pub(super) fn is_open(value: &Value) -> bool {
    let is_reference = |piece: &Piece| matches!(piece, Piece::Reference(_));
    value.as_str().is_some_and(|text| parse(text).map_or(true, |pieces| pieces.iter().any(is_reference)))
}

/// Stands for values that are not known before the plan runs; as a part of a path it changes nothing about where the
/// path leads.
pub(super) const PLACEHOLDER: &str = "x";

/// Replaces the references in a tree by the values that `value_of` gives; `schema` says which texts are paths. Wrong
/// syntax and references without a value become issues; such a text is null in the result.
pub(super) fn resolve(
    value: &Value,
    schema: &Value,
    at: &str,
    mut value_of: impl FnMut(&Reference) -> Result<Value, String>,
) -> (Value, Vec<Issue>) {
    let mut resolver = Resolver { value_of: &mut value_of, issues: Vec::new() };
    (resolver.tree(value, schema, at), resolver.issues)
}

struct Resolver<'a> {
    value_of: &'a mut dyn FnMut(&Reference) -> Result<Value, String>,
    issues: Vec<Issue>,
}

impl Resolver<'_> {
    fn tree(&mut self, value: &Value, schema: &Value, at: &str) -> Value {
        let below = |keyword: &str, name: &str| schema.get(keyword).and_then(|s| s.get(name)).unwrap_or(&Value::Null);
        match value {
            Value::String(text) => match self.text(text, schema, at) {
                // Where the schema asks for a text, a number or a boolean is written as one.
                Some(value @ (Value::Number(_) | Value::Bool(_))) if is_text(schema) => value.to_string().into(),
                resolved => resolved.unwrap_or_default(),
            },
            Value::Array(items) => {
                let schema = schema.get("items").unwrap_or(&Value::Null);
                let item = |(index, item)| self.tree(item, schema, &format!("{at}/{index}"));
                Value::Array(items.iter().enumerate().map(item).collect())
            }
            Value::Object(fields) => {
                let field = |(name, value): (&String, &Value)| {
                    (name.clone(), self.tree(value, below("properties", name), &pointer(at, name)))
                };
                Value::Object(fields.iter().map(field).collect())
            }
            other => other.clone(),
        }
    }

    fn text(&mut self, text: &str, schema: &Value, at: &str) -> Option<Value> {
        let pieces = self.located(parse(text), at)?;
        if let [Piece::Reference(only)] = &pieces[..] {
            let value = (self.value_of)(only);
            return self.located(value, at);
        }
        let is_path = schema.get(PATH_MARK).is_some();
        let mut whole = Some(String::new());
        for piece in pieces {
            let part = match piece {
                Piece::Text(text) => Some(text),
                Piece::Reference(reference) => {
                    let value = (self.value_of)(&reference).and_then(|value| match value {
                        Value::Null => Err(format!("`{}` is null, not a text", reference.written)),
                        value => Ok(text_of(&value)),
                    });
                    self.located(value, at).map(|value| if is_path { SafePath::segment(&value) } else { value })
                }
            };
            whole = whole.zip(part).map(|(whole, part)| whole + &part);
        }
        whole.map(Value::String)
    }

    /// The value; `None` after an error, which becomes an issue.
    fn located<T>(&mut self, result: Result<T, String>, at: &str) -> Option<T> {
        result.map_err(|message| self.issues.push(Issue { pointer: at.to_string(), message })).ok()
    }
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
            "${a.}",
            "$steps.one is done",
        ] {
            assert!(parse(text).is_err(), "{text}");
        }
        assert!(parse("$steps.one is done").unwrap_err().contains("one more $"));
        let pieces = parse("${a[0].b[12]}").unwrap();
        let [Piece::Reference(reference)] = &pieces[..] else { panic!("one reference") };
        assert_eq!(reference.path, ["0", "b", "12"]);
    }
}
