//! The values that references stand for: outputs of steps, bindings of loops, and parameters.
//!
//! Values are put into the parsed tree, never into JSON text, and are not scanned for references again: a quote, a
//! line break or a `${` in a selection stays what it is. In an argument that is a path, a value within a text becomes
//! one segment of the path.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Zoned;
use serde_json::{Map, Value};

use super::reference::{Piece, Reference, Root, Template, parse};
use crate::error::{Error, ErrorKind, Result};
use crate::host::Editor;
use crate::sandbox::SafePath;
use crate::tool::{Issue, PATH_MARK, pointer};

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

/// The values that a step can refer to.
pub(super) struct Scope<'a> {
    /// Outputs of the steps so far, by id.
    pub outputs: BTreeMap<&'a str, &'a Value>,
    /// The id of the step that captures its output under a name.
    pub captures: &'a BTreeMap<String, String>,
    pub parameters: &'a Parameters,
    /// Item and index of the loop; they take precedence over parameters.
    pub bindings: BTreeMap<&'a str, Value>,
}

impl Scope<'_> {
    /// The value of a reference.
    ///
    /// # Errors
    /// What is missing.
    fn value(&self, reference: &Reference) -> Result<&Value, String> {
        let written = &reference.written;
        let output =
            |id: &str| self.outputs.get(id).copied().ok_or_else(|| format!("`{written}`: the step {id} has no output"));
        let mut value = match &reference.root {
            Root::Step(id) => output(id)?,
            Root::Var(name) => match self.captures.get(name) {
                Some(id) => output(id)?,
                None => return Err(format!("`{written}`: no step captures `{name}`")),
            },
            Root::Name(name) => match self.bindings.get(name.as_str()).or_else(|| self.parameters.get(name)) {
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
            value = below.ok_or_else(|| format!("`{written}`: there is no `{key}`; {}", contents(value)))?;
        }
        Ok(value)
    }

    /// The list that a whole text refers to; `None` if the value is not a list.
    ///
    /// # Errors
    /// What is missing.
    pub(super) fn list(&self, text: &str) -> Result<Option<&[Value]>, String> {
        match parse(text)? {
            Some(Template::Whole(reference)) => Ok(self.value(&reference)?.as_array().map(Vec::as_slice)),
            _ => Ok(None),
        }
    }

    /// A tree with its references replaced by their values. `schema` says which texts are paths.
    ///
    /// # Errors
    /// Every reference without a value, with its location.
    pub(super) fn resolve(&self, value: &Value, schema: &Value, at: &str) -> Result<Value, Vec<Issue>> {
        let mut issues = Vec::new();
        let resolved = self.resolved(value, schema, at, &mut issues);
        if issues.is_empty() { Ok(resolved) } else { Err(issues) }
    }

    fn resolved(&self, value: &Value, schema: &Value, at: &str, issues: &mut Vec<Issue>) -> Value {
        let below = |keyword: &str, name: &str| schema.get(keyword).and_then(|s| s.get(name)).unwrap_or(&Value::Null);
        match value {
            Value::String(text) => match self.text(text, schema) {
                // Where the schema asks for a text, a number or a boolean is written as one.
                Ok(value @ (Value::Number(_) | Value::Bool(_))) if is_text(schema) => Value::String(value.to_string()),
                Ok(value) => value,
                Err(message) => {
                    issues.push(Issue { pointer: at.to_string(), message });
                    Value::Null
                }
            },
            Value::Array(items) => {
                let schema = schema.get("items").unwrap_or(&Value::Null);
                let item = |(index, item)| self.resolved(item, schema, &format!("{at}/{index}"), issues);
                Value::Array(items.iter().enumerate().map(item).collect())
            }
            Value::Object(fields) => {
                let mut resolved = Map::new();
                for (name, value) in fields {
                    let schema = below("properties", name);
                    resolved.insert(name.clone(), self.resolved(value, schema, &pointer(at, name), issues));
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
                    let value = text_of(self.value(&reference)?)
                        .ok_or_else(|| format!("`{}` is null, not a text", reference.written))?;
                    whole.push_str(&if is_path { SafePath::segment(&value) } else { value });
                }
            }
        }
        Ok(Value::String(whole))
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

fn is_text(schema: &Value) -> bool {
    schema.get("type").is_some_and(|name| name == "string")
}

fn text_of(value: &Value) -> Option<String> {
    match value {
        Value::Null => None,
        Value::String(text) => Some(text.clone()),
        other => Some(other.to_string()),
    }
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

    fn output() -> Value {
        json!({ "items": [{ "text": "a/b
\"c\" ${selection}" }], "count": 1, "none": null })
    }

    fn resolve(value: Value, schema: Value) -> Result<Value, Vec<String>> {
        let (outputs, captures) = (output(), BTreeMap::from([("all".to_string(), "parse".to_string())]));
        let parameters = BTreeMap::from([("selection".to_string(), json!("S")), ("n".to_string(), json!("param"))]);
        let scope = Scope {
            outputs: BTreeMap::from([("parse", &outputs)]),
            captures: &captures,
            parameters: &Parameters(parameters),
            bindings: BTreeMap::from([("item", outputs["items"][0].clone()), ("n", json!(7))]),
        };
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
                "/a: `$steps.parse.itemz`: there is no `itemz`; there are: count, items, none",
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
    fn what_editor_and_clock_give() {
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
