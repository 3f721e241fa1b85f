//! References in a plan's arguments: their syntax, and the values that are put in their place.
//!
//! | written | is |
//! | --- | --- |
//! | `$steps.ID.path`, `$vars.NAME.path` as a whole text | the value itself: a list, an object, a number (where the tool asks for a text, its text) |
//! | `${$steps.ID.path}`, `${item.text}`, `${selection}` as a whole text | likewise |
//! | `${…}` within a text | its text |
//! | `$${` | the characters `${` |
//! | `$$steps.`, `$$vars.` at the beginning of a text | the characters `$steps.`, `$vars.` |
//!
//! Values are put into the parsed tree, never into JSON text, and what was put in is never looked at again: a quote,
//! a line break or a `${` in a selection stays what it is. In an argument that is a path, a value within a text is
//! one segment of the path.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use crate::sandbox::SafePath;
use crate::tool::{Fault, PATH_MARK, pointer};

/// Where a reference looks.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Root {
    /// The output of a step.
    Step(String),
    /// The output of the step that captures it under this name.
    Var(String),
    /// What a loop or the caller calls so.
    Name(String),
}

/// One reference.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Reference {
    pub root: Root,
    /// Keys of objects and numbers of lists, outermost first.
    pub path: Vec<String>,
    /// As its author wrote it.
    pub written: String,
}

/// A text with references.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Template {
    /// It is one reference and nothing else.
    Whole(Reference),
    /// Text and references.
    Mixed(Vec<Piece>),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Piece {
    Text(String),
    Reference(Reference),
}

/// How a text begins that is a reference as a whole.
const ROOTS: [&str; 2] = ["$steps.", "$vars."];

/// Reads a text; `None` when there is nothing in it to put in.
///
/// # Errors
/// What is wrong with the syntax, in words.
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

/// `.key` and `[number]`, as often as one likes; `None` for anything else.
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

/// Calls `each` with every reference of a tree and its place; what cannot be read becomes a fault.
pub(super) fn each(value: &Value, at: &str, faults: &mut Vec<Fault>, visit: &mut dyn FnMut(&str, &Reference)) {
    match value {
        Value::String(text) => match parse(text) {
            Ok(None) => {}
            Ok(Some(Template::Whole(reference))) => visit(at, &reference),
            Ok(Some(Template::Mixed(pieces))) => pieces.iter().for_each(|piece| {
                if let Piece::Reference(reference) = piece {
                    visit(at, reference);
                }
            }),
            Err(message) => faults.push(Fault { pointer: at.to_string(), message }),
        },
        Value::Array(items) => {
            items.iter().enumerate().for_each(|(number, item)| each(item, &format!("{at}/{number}"), faults, visit));
        }
        Value::Object(fields) => {
            fields.iter().for_each(|(name, value)| each(value, &pointer(at, name), faults, visit));
        }
        _ => {}
    }
}

/// Whether a value holds a reference itself, so that it is not known yet.
pub(super) fn is_open(value: &Value) -> bool {
    value.as_str().is_some_and(|text| matches!(parse(text), Ok(Some(_)) | Err(_)))
}

/// A text with each reference replaced by a stand-in, to look at what is literal about a path.
pub(super) fn with_stand_ins(text: &str) -> Option<String> {
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

/// What references can see.
#[derive(Debug, Clone, Default)]
pub(super) struct Scope<'a> {
    /// Outputs of the steps that are done.
    pub steps: Option<&'a BTreeMap<String, Value>>,
    /// Which step captures a name.
    pub captures: Option<&'a BTreeMap<String, String>>,
    /// What the caller gave.
    pub parameters: Option<&'a BTreeMap<String, Value>>,
    /// The item and number of the loop; they go before parameters.
    pub bindings: BTreeMap<String, Value>,
}

impl Scope<'_> {
    /// The value a reference stands for.
    ///
    /// # Errors
    /// What is missing, in words.
    pub(super) fn value(&self, reference: &Reference) -> Result<&Value, String> {
        let written = &reference.written;
        let output = |id: &str| {
            let outputs = self.steps.ok_or_else(|| format!("`{written}`: no step is done yet"))?;
            outputs.get(id).ok_or_else(|| format!("`{written}`: the step {id} has no output"))
        };
        let mut value = match &reference.root {
            Root::Step(id) => output(id)?,
            Root::Var(name) => match self.captures.and_then(|captures| captures.get(name)) {
                Some(id) => output(id)?,
                None => return Err(format!("`{written}`: no step captures `{name}`")),
            },
            Root::Name(name) => match self.bindings.get(name).or_else(|| self.parameters?.get(name)) {
                Some(value) => value,
                None => return Err(missing_parameter(name)),
            },
        };
        for key in &reference.path {
            let below = match value {
                Value::Object(fields) => fields.get(key),
                Value::Array(items) => key.parse::<usize>().ok().and_then(|number| items.get(number)),
                _ => None,
            };
            value = below.ok_or_else(|| format!("`{written}`: there is no `{key}`; {}", holds(value)))?;
        }
        Ok(value)
    }

    /// The list that a text stands for as a whole; `None` where it stands for something else.
    ///
    /// # Errors
    /// What is missing, in words.
    pub(super) fn list(&self, text: &str) -> Result<Option<&[Value]>, String> {
        match parse(text)? {
            Some(Template::Whole(reference)) => Ok(self.value(&reference)?.as_array().map(Vec::as_slice)),
            _ => Ok(None),
        }
    }

    /// A tree with its references replaced. `schema` says which texts are paths.
    ///
    /// # Errors
    /// Every reference that stands for nothing, with its place.
    pub(super) fn resolve(&self, value: &Value, schema: &Value, at: &str) -> Result<Value, Vec<Fault>> {
        let mut faults = Vec::new();
        let resolved = self.resolved(value, schema, at, &mut faults);
        if faults.is_empty() { Ok(resolved) } else { Err(faults) }
    }

    fn resolved(&self, value: &Value, schema: &Value, at: &str, faults: &mut Vec<Fault>) -> Value {
        let below = |keyword: &str, name: &str| schema.get(keyword).and_then(|s| s.get(name)).unwrap_or(&Value::Null);
        match value {
            Value::String(text) => match self.text(text, schema) {
                // Where a text is asked for, a number or a truth is written as one.
                Ok(value @ (Value::Number(_) | Value::Bool(_))) if asks_for_text(schema) => {
                    Value::String(value.to_string())
                }
                Ok(value) => value,
                Err(message) => {
                    faults.push(Fault { pointer: at.to_string(), message });
                    Value::Null
                }
            },
            Value::Array(items) => {
                let schema = schema.get("items").unwrap_or(&Value::Null);
                let item = |(number, item)| self.resolved(item, schema, &format!("{at}/{number}"), faults);
                Value::Array(items.iter().enumerate().map(item).collect())
            }
            Value::Object(fields) => {
                let mut resolved = Map::new();
                for (name, value) in fields {
                    let schema = below("properties", name);
                    resolved.insert(name.clone(), self.resolved(value, schema, &pointer(at, name), faults));
                }
                Value::Object(resolved)
            }
            other => other.clone(),
        }
    }

    fn text(&self, text: &str, schema: &Value) -> Result<Value, String> {
        let is_path = schema.get(PATH_MARK).is_some();
        let pieces = match parse(text)? {
            None => return Ok(Value::String(text.to_string())),
            Some(Template::Whole(reference)) => return self.value(&reference).cloned(),
            Some(Template::Mixed(pieces)) => pieces,
        };
        let mut whole = String::new();
        for piece in pieces {
            match piece {
                Piece::Text(text) => whole.push_str(&text),
                Piece::Reference(reference) => {
                    let value = as_text(self.value(&reference)?)
                        .ok_or_else(|| format!("`{}` is null, which is no text", reference.written))?;
                    whole.push_str(&if is_path { SafePath::segment(&value) } else { value });
                }
            }
        }
        Ok(Value::String(whole))
    }
}

/// What is told of a name that nothing binds.
pub(super) fn missing_parameter(name: &str) -> String {
    let how = match name {
        "selection" => "; give it with --selection TEXT, --selection - or --selection-from FILE:FROM-TO".to_string(),
        "activeFile" => "; give it with --active-file NOTE".to_string(),
        name => format!("; give it with --set {name}=VALUE"),
    };
    format!("the parameter `{name}` has no value{how}")
}

fn asks_for_text(schema: &Value) -> bool {
    schema.get("type").is_some_and(|name| name == "string")
}

fn as_text(value: &Value) -> Option<String> {
    match value {
        Value::Null => None,
        Value::String(text) => Some(text.clone()),
        other => Some(other.to_string()),
    }
}

fn holds(value: &Value) -> String {
    match value {
        Value::Object(fields) if fields.is_empty() => "the object there is empty".to_string(),
        Value::Object(fields) => format!("there are: {}", fields.keys().cloned().collect::<Vec<_>>().join(", ")),
        Value::Array(items) => format!("it is a list of {}, numbered from 0", items.len()),
        _ => "it is a plain value".to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn outputs() -> BTreeMap<String, Value> {
        [("parse".to_string(), json!({ "items": [{ "text": "a/b\n\"c\" ${selection}" }], "count": 1, "none": null }))]
            .into()
    }

    fn resolve(value: Value, schema: Value) -> Result<Value, Vec<String>> {
        let (steps, captures) = (outputs(), BTreeMap::from([("all".to_string(), "parse".to_string())]));
        let parameters = BTreeMap::from([("selection".to_string(), json!("S")), ("n".to_string(), json!("param"))]);
        let scope = Scope {
            steps: Some(&steps),
            captures: Some(&captures),
            parameters: Some(&parameters),
            bindings: BTreeMap::from([
                ("item".to_string(), steps["parse"]["items"][0].clone()),
                ("n".to_string(), json!(7)),
            ]),
        };
        scope.resolve(&value, &schema, "").map_err(|faults| faults.iter().map(ToString::to_string).collect())
    }

    #[test]
    fn a_whole_reference_is_the_value_and_a_part_is_text() {
        fn check(text: &str, expected: Value) {
            assert_eq!(resolve(json!(text), json!({})).unwrap(), expected, "{text}");
        }
        check("$steps.parse.count", json!(1));
        check("${$steps.parse.count}", json!(1));
        check("$vars.all.items.0.text", json!("a/b\n\"c\" ${selection}"));
        check("$vars.all.items[0]", json!({ "text": "a/b\n\"c\" ${selection}" }));
        check("Items: ${$steps.parse.count}!", json!("Items: 1!"));
        check("# ${item.text}", json!("# a/b\n\"c\" ${selection}"));
        check("${n}", json!(7));
        check("${selection} and ${ selection }", json!("S and S"));
        check("$${selection} costs $5", json!("${selection} costs $5"));
        check("no reference $steps.parse", json!("no reference $steps.parse"));
        check("${$steps.parse}", outputs()["parse"].clone());
        check("x${$vars.all.items}", json!("x[{\"text\":\"a/b\\n\\\"c\\\" ${selection}\"}]"));
    }

    #[test]
    fn every_text_can_be_written() {
        for (written, text) in [
            ("$$steps.one is done", "$steps.one is done"),
            ("$$vars.x ${item.text}", "$vars.x a/b\n\"c\" ${selection}"),
            ("$$steps", "$$steps"),
            ("a $steps.b", "a $steps.b"),
            ("$$${item.text}", "$${item.text}"),
        ] {
            assert_eq!(resolve(json!(written), json!({})).unwrap(), text, "{written}");
        }
    }

    #[test]
    fn what_is_missing_is_told_with_its_place() {
        let faults = resolve(
            json!({ "a": "$steps.parse.itemz", "b": ["${nothing}", "x ${$steps.parse.none}"], "c": "$steps.later.x" }),
            json!({}),
        );
        assert_eq!(
            faults.unwrap_err(),
            [
                "/a: `$steps.parse.itemz`: there is no `itemz`; there are: count, items, none",
                "/b/0: the parameter `nothing` has no value; give it with --set nothing=VALUE",
                "/b/1: `$steps.parse.none` is null, which is no text",
                "/c: `$steps.later.x`: the step later has no output",
            ]
        );
    }

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
    fn values_in_paths_are_one_segment() {
        let schema = json!({ "properties": { "path": { "type": "string", "x-vault-path": true } } });
        let resolved = resolve(json!({ "path": "P/${item.text}.md", "content": "${item.text}" }), schema).unwrap();
        let path = resolved["path"].as_str().unwrap();
        assert_eq!(path.matches('/').count(), 1, "{path}");
        assert!(!path.contains(['\n', '"', '#', ':']), "{path}");
        assert_eq!(resolved["content"], "a/b\n\"c\" ${selection}");
    }

    #[test]
    fn stand_ins() {
        assert_eq!(with_stand_ins("../${a}.md").as_deref(), Some("../x.md"));
        assert_eq!(with_stand_ins("$steps.a.path"), None);
        assert_eq!(with_stand_ins("a.md").as_deref(), Some("a.md"));
    }
}
