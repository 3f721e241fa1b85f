//! The syntax of references in a plan's arguments, and the values that they stand for.
//!
//! | written | value |
//! | --- | --- |
//! | `$steps.ID.path`, `$vars.NAME.path` as a whole text | the value itself: a list, an object, a number (where the tool asks for a text, its text) |
//! | `${$steps.ID.path}`, `${item.text}`, `${selection}` as a whole text | likewise |
//! | `${…}` within a text | its text |
//! | `$${` | the characters `${` |
//! | `$$steps.`, `$$vars.` at the beginning of a text | the characters `$steps.`, `$vars.` |
//!
//! Values are put into the parsed tree, never into JSON text, and are not scanned for references again: a quote, a
//! line break or a `${` in a selection stays what it is. In an argument that is a path, a value within a text becomes
//! one segment of the path.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use jiff::Zoned;
use serde_json::Value;
use unicode_normalization::UnicodeNormalization;

use crate::error::{Error, ErrorKind, Result};
use crate::host::Editor;
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
    is_given: impl Fn(&Reference) -> bool,
) -> (Value, Vec<Issue>) {
    let mut resolver = Resolver { value_of: &mut value_of, is_given: &is_given, issues: Vec::new() };
    (resolver.tree(value, schema, at), resolver.issues)
}

struct Resolver<'a> {
    value_of: &'a mut dyn FnMut(&Reference) -> Result<Value, String>,
    /// Whether a person gave the value, so that it may hold folders where it is a part of a path.
    is_given: &'a dyn Fn(&Reference) -> bool,
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
                        Value::Array(_) | Value::Object(_) if is_path => {
                            Err(format!("`{}` is {}, not a part of a path", reference.written, name_of(&value)))
                        }
                        value => Ok(text_of(&value)),
                    });
                    let is_given = (self.is_given)(&reference);
                    let value = value.and_then(|value| match (is_path, is_given) {
                        (true, true) => folders(&value, &reference),
                        (true, false) => Ok(SafePath::segment(&value)),
                        (false, _) => Ok(value),
                    });
                    self.located(value, at)
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

/// A value that a person gave, as one or more segments of a path.
fn folders(value: &str, reference: &Reference) -> Result<String, String> {
    let segments: Vec<&str> = value.trim().trim_end_matches('/').split('/').collect();
    if segments.iter().any(|segment| matches!(segment.trim(), "" | "." | "..")) {
        return Err(format!("`{}` is {value:?}, which is no path within the vault", reference.written));
    }
    let names = segments.iter().map(|segment| SafePath::segment(segment)).collect::<Vec<_>>();
    // What a person gave is used as it is or not at all.
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

/// The values that a plan is given from outside: selection, active file, dates, and what the caller sets.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Parameters(BTreeMap<String, Value>);

impl Parameters {
    /// Those from editor and clock: `selection` and `activeFile` if there are any, `date` and `today` (the local day,
    /// 2026-01-31), `now` (RFC 3339 with the local offset).
    pub fn of(editor: &Editor, now: &Zoned) -> Self {
        let mut parameters = Self::default();
        let day = now.date().to_string();
        parameters.set("date", day.clone());
        parameters.set("today", day);
        parameters.set("now", now.strftime("%Y-%m-%dT%H:%M:%S%:z").to_string());
        if let Some(selection) = editor.selection.as_ref().filter(|selection| !selection.text.is_empty()) {
            parameters.set("selection", selection.text.clone());
        }
        if let Some(active) = &editor.active_file {
            parameters.set("activeFile", active.to_string());
        }
        parameters
    }

    /// Sets a value, or replaces it.
    pub fn set(&mut self, name: impl Into<String>, value: impl Into<Value>) {
        self.0.insert(name.into(), value.into());
    }

    /// The value of a parameter.
    pub fn get(&self, name: &str) -> Option<&Value> {
        self.0.get(name)
    }

    /// The names without a value.
    pub fn missing<'n>(&self, names: &'n BTreeSet<String>) -> Vec<&'n str> {
        names.iter().map(String::as_str).filter(|name| !self.0.contains_key(*name)).collect()
    }

    /// Requires that all names have a value.
    ///
    /// # Errors
    /// Every name without a value, and how to give it one.
    pub(super) fn require(&self, names: &BTreeSet<String>) -> Result<()> {
        let missing: Vec<String> = self.missing(names).into_iter().map(missing_parameter).collect();
        match missing.is_empty() {
            true => Ok(()),
            false => Err(Error::new(ErrorKind::Plan, missing.join("\n"))),
        }
    }
}

/// The values that a step can refer to: outputs of the steps so far, item and index of its loop, and parameters.
pub(super) struct Scope<'a> {
    values: BTreeMap<Root, Cow<'a, Value>>,
    /// Those that a person gave.
    given: BTreeSet<Root>,
}

impl<'a> Scope<'a> {
    pub(super) fn new(parameters: &'a Parameters) -> Self {
        let root = |name: &String| Root::Name(name.clone());
        Self {
            values: parameters.0.iter().map(|(name, value)| (root(name), Cow::Borrowed(value))).collect(),
            // A selection is text of a note, and a time has colons.
            given: parameters.0.keys().filter(|name| !matches!(name.as_str(), "selection" | "now")).map(root).collect(),
        }
    }

    /// Gives a root its value; the item and the index of a loop replace a parameter of the same name.
    pub(super) fn bind(&mut self, root: Root, value: Cow<'a, Value>) {
        self.given.remove(&root);
        self.values.insert(root, value);
    }

    /// The value of a reference.
    ///
    /// # Errors
    /// What is missing.
    fn value(&self, reference: &Reference) -> Result<&Value, String> {
        let written = &reference.written;
        let mut value = self.values.get(&reference.root).map(Cow::as_ref).ok_or_else(|| match &reference.root {
            Root::Step(id) => format!("`{written}`: the step {id} has no output"),
            Root::Var(name) => format!("`{written}`: no step captured `{name}`"),
            Root::Name(name) => missing_parameter(name),
        })?;
        for key in &reference.path {
            let below = match value {
                Value::Object(fields) => fields.get(key),
                Value::Array(items) => key.parse::<usize>().ok().and_then(|number| items.get(number)),
                _ => None,
            };
            value = below.ok_or_else(|| format!("`{written}`: there is no `{key}`; {}", contents(value)))?;
        }
        Ok(value)
    }

    /// A tree with its references replaced by their values. `schema` says which texts are paths.
    ///
    /// # Errors
    /// Every reference without a value, with its location.
    pub(super) fn resolve(&self, value: &Value, schema: &Value, at: &str) -> Result<Value, Vec<Issue>> {
        let (resolved, issues) = resolve(
            value,
            schema,
            at,
            |reference| self.value(reference).cloned(),
            |reference| self.given.contains(&reference.root),
        );
        if issues.is_empty() { Ok(resolved) } else { Err(issues) }
    }
}

/// The message for a name that nothing binds.
fn missing_parameter(name: &str) -> String {
    let how = match name {
        "selection" => "; give it with --selection TEXT, --selection - or --selection-from FILE:FROM-TO".to_string(),
        "activeFile" => "; give it with --active-file NOTE".to_string(),
        name => format!("; give it with --set {name}=VALUE"),
    };
    format!("the parameter `{name}` has no value{how}")
}

fn contents(value: &Value) -> String {
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
    use crate::host::Selection;
    use serde_json::json;

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

    fn output() -> Value {
        json!({ "items": [{ "text": "a/b
\"c\" ${selection}" }], "count": 1, "none": null })
    }

    fn resolve(value: Value, schema: Value) -> Result<Value, Vec<String>> {
        let outputs = output();
        let mut parameters = Parameters::default();
        parameters.set("selection", "S");
        parameters.set("n", "param");
        let mut scope = Scope::new(&parameters);
        scope.bind(Root::Step("parse".to_string()), Cow::Borrowed(&outputs));
        scope.bind(Root::Var("all".to_string()), Cow::Borrowed(&outputs));
        scope.bind(Root::Name("item".to_string()), Cow::Borrowed(&outputs["items"][0]));
        scope.bind(Root::Name("n".to_string()), Cow::Owned(json!(7)));
        scope.resolve(&value, &schema, "").map_err(|issues| issues.iter().map(ToString::to_string).collect())
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
        check("${$steps.parse}", output());
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
    fn missing_values_are_reported_with_their_location() {
        let issues = resolve(
            json!({ "a": "$steps.parse.itemz", "b": ["${nothing}", "x ${$steps.parse.none}"], "c": "$steps.later.x" }),
            json!({}),
        );
        assert_eq!(
            issues.unwrap_err(),
            [
                "/a: `$steps.parse.itemz`: there is no `itemz`; there are: items, count, none",
                "/b/0: the parameter `nothing` has no value; give it with --set nothing=VALUE",
                "/b/1: `$steps.parse.none` is null, not a text",
                "/c: `$steps.later.x`: the step later has no output",
            ]
        );
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
    fn parameters_from_editor_and_clock() {
        let now: Zoned = "2026-03-02T15:04:09.5+01:00[Europe/Zurich]".parse().unwrap();
        let selection = Some(Selection { text: "- a".into(), span: None });
        let parameters = Parameters::of(&Editor { selection, ..Editor::default() }, &now);
        let text = |name: &str| parameters.get(name).and_then(Value::as_str).unwrap_or("-").to_string();
        assert_eq!(
            ["date", "today", "now", "selection", "activeFile"].map(text),
            ["2026-03-02", "2026-03-02", "2026-03-02T15:04:09+01:00", "- a", "-"]
        );
        let names = BTreeSet::from(["date".to_string(), "activeFile".to_string(), "folderName".to_string()]);
        assert_eq!(parameters.missing(&names), ["activeFile", "folderName"]);
        let error = parameters.require(&names).unwrap_err().to_string();
        assert!(error.contains("--active-file") && error.contains("--set folderName=VALUE"), "{error}");
    }
}
