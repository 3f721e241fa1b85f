//! The values of references: parameters, outputs of earlier steps, and the names that a loop binds.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use jiff::Zoned;
use serde_json::Value;

use super::reference::{EACH, PathPart, Reference, ResolvedValue, Root, join, only_reference, resolve};
use crate::error::{Error, ErrorKind, Result};
use crate::host::Editor;
use crate::tool::Issue;
use crate::toolbox::Toolbox;

/// The values that a plan gets from outside: selection, active file, dates, and values that the caller sets.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Parameters(BTreeMap<String, Value>);

impl Parameters {
    /// Returns the parameters from editor and clock: `selection` and `activeFile` if there are any, `date` and `today`
    /// (the local day, 2026-01-31), `now` (RFC 3339 with the local offset).
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

    /// Returns the parameters from the editor and the clock of a toolbox. The editor is read only if the plan needs it.
    ///
    /// # Errors
    /// If a live host does not respond.
    pub fn needed(toolbox: &Toolbox, names: &BTreeSet<String>) -> Result<Self> {
        let needs_editor = ["selection", "activeFile"].iter().any(|name| names.contains(*name));
        let editor = if needs_editor { toolbox.editor()? } else { Editor::default() };
        Ok(Self::of(&editor, &toolbox.now()))
    }

    /// Sets a value, or replaces it.
    pub fn set(&mut self, name: impl Into<String>, value: impl Into<Value>) {
        self.0.insert(name.into(), value.into());
    }

    /// Returns the value of a parameter.
    pub fn get(&self, name: &str) -> Option<&Value> {
        self.0.get(name)
    }

    /// Returns the names that have no value.
    pub fn missing<'n>(&self, names: &'n BTreeSet<String>) -> Vec<&'n str> {
        names.iter().map(String::as_str).filter(|name| !self.0.contains_key(*name)).collect()
    }

    /// Requires that all names have a value.
    ///
    /// # Errors
    /// An error that lists every name without a value, and how to set it.
    pub(super) fn require(&self, names: &BTreeSet<String>) -> Result<()> {
        let missing: Vec<String> = self.missing(names).into_iter().map(missing_parameter).collect();
        match missing.is_empty() {
            true => Ok(()),
            false => Err(Error::new(ErrorKind::Plan, missing.join("\n"))),
        }
    }
}

/// The values that a step can refer to: outputs of the steps so far, the names that its loop binds, and parameters.
pub(super) struct Scope<'a> {
    values: BTreeMap<Root, Cow<'a, Value>>,
    /// The roots whose values a person gave.
    given: BTreeSet<Root>,
    /// The root whose field `folder` is a folder of the vault.
    in_folder: Option<Root>,
}

/// Why there is no value at the target of a reference.
struct AbsentValue {
    why: String,
    /// Whether a field or an entry is missing; otherwise the value exists but has no entries.
    is_missing: bool,
}

impl AbsentValue {
    fn missing(why: String) -> Self {
        Self { why, is_missing: true }
    }
}

impl<'a> Scope<'a> {
    pub(super) fn new(parameters: &'a Parameters) -> Self {
        let root = |name: &String| Root::Name(name.clone());
        Self {
            values: parameters.0.iter().map(|(name, value)| (root(name), Cow::Borrowed(value))).collect(),
            // These are not given as paths: a selection is text of a note, and a time has colons.
            given: parameters.0.keys().filter(|name| !matches!(name.as_str(), "selection" | "now")).map(root).collect(),
            in_folder: None,
        }
    }

    /// Binds a root to a value. A name that a loop binds replaces a parameter of the same name.
    pub(super) fn bind(&mut self, root: Root, value: Cow<'a, Value>) {
        self.given.remove(&root);
        self.in_folder = self.in_folder.take().filter(|other| *other != root);
        self.values.insert(root, value);
    }

    /// Binds a root to a value whose field `folder` is a folder of the vault.
    pub(super) fn bind_in_folder(&mut self, root: Root, value: Cow<'a, Value>) {
        self.bind(root.clone(), value);
        self.in_folder = Some(root);
    }

    fn value(&self, reference: &Reference) -> Result<Cow<'_, Value>, AbsentValue> {
        let written = &reference.written;
        let value = self.values.get(&reference.root).ok_or_else(|| {
            AbsentValue::missing(match &reference.root {
                Root::Step(id) => format!("`{written}`: the step {id} has no output"),
                Root::Var(name) => format!("`{written}`: no step captured `{name}`"),
                Root::Name(name) => missing_parameter(name),
            })
        })?;
        select(value, &reference.path)
            .map_err(|absent| AbsentValue { why: format!("`{written}`: {}", absent.why), ..absent })
    }

    fn in_path(&self, reference: &Reference) -> PathPart {
        match &reference.path[..] {
            [key] if key == "folder" && self.in_folder.as_ref() == Some(&reference.root) => PathPart::Folder,
            _ if self.given.contains(&reference.root) => PathPart::Given,
            _ => PathPart::Segment,
        }
    }

    /// Replaces the references in a tree by their values. `schema` determines which texts are paths.
    ///
    /// # Errors
    /// Lists every reference without a value, with its location.
    pub(super) fn resolve(&self, value: &Value, schema: &Value, at: &str) -> Result<Value, Vec<Issue>> {
        let ResolvedValue { value, issues, .. } = self.resolved(value, schema, at);
        if issues.is_empty() { Ok(value) } else { Err(issues) }
    }

    /// Like [`Self::resolve`], but returns the issues and notices with the value.
    pub(super) fn resolved(&self, value: &Value, schema: &Value, at: &str) -> ResolvedValue {
        let value_of = |reference: &Reference, _: Option<&Value>| {
            let value = self.value(reference).map_err(|absent| absent.why)?;
            match &reference.join {
                Some(separator) => join(reference, &value, separator).map(Value::String),
                None => Ok(value.into_owned()),
            }
        };
        resolve(value, schema, at, value_of, |reference| self.in_path(reference))
    }

    /// Returns the value of a text like [`Self::resolve`], but null if a reference leads to a missing field.
    ///
    /// # Errors
    /// The errors of [`Self::resolve`].
    pub(super) fn resolve_or_null(&self, text: &str, at: &str) -> Result<Value, Vec<Issue>> {
        let absent = only_reference(text).and_then(|reference| self.value(&reference).err());
        match absent {
            Some(absent) if absent.is_missing => Ok(Value::Null),
            _ => self.resolve(&text.into(), &Value::Null, at),
        }
    }
}

/// Returns the value at a path.
fn select<'v>(value: &'v Value, path: &[String]) -> Result<Cow<'v, Value>, AbsentValue> {
    let Some((key, rest)) = path.split_first() else { return Ok(Cow::Borrowed(value)) };
    if key == EACH {
        return select_each(value, rest).map(|found| Cow::Owned(found.into()));
    }
    let below = match value {
        Value::Object(fields) => fields.get(key),
        Value::Array(items) => key.parse::<usize>().ok().and_then(|number| items.get(number)),
        _ => None,
    };
    let below = below.ok_or_else(|| AbsentValue::missing(format!("there is no `{key}`; {}", contents(value))))?;
    select(below, rest)
}

/// Returns the values at a path in the entries of a list; lists that are found by a further [`EACH`] are joined.
/// Entries without such a value are left out, unless no entry has one.
fn select_each(value: &Value, path: &[String]) -> Result<Vec<Value>, AbsentValue> {
    let entries = match value {
        Value::Array(entries) => &entries[..],
        // A property without a value counts as an empty list.
        Value::Null => &[],
        _ => {
            let why = format!("[*] stands for the entries of a list; {}", contents(value));
            return Err(AbsentValue { why, is_missing: false });
        }
    };
    let (mut list, mut found, mut missing) = (Vec::new(), false, None);
    for entry in entries {
        match select(entry, path) {
            Err(absent) if absent.is_missing => missing = missing.or(Some(absent)),
            Err(no_list) => return Err(no_list),
            Ok(value) => {
                found = true;
                match value.into_owned() {
                    Value::Array(values) if path.iter().any(|key| key == EACH) => list.extend(values),
                    value => list.push(value),
                }
            }
        }
    }
    match missing {
        Some(absent) if !found => Err(absent),
        _ => Ok(list),
    }
}

/// Returns the message for a name that is bound to nothing.
fn missing_parameter(name: &str) -> String {
    format!("the parameter `{name}` has no value")
}

fn contents(value: &Value) -> String {
    match value {
        Value::Object(fields) if fields.is_empty() => "the object there is empty".to_string(),
        Value::Object(fields) => format!("there are: {}", fields.keys().cloned().collect::<Vec<_>>().join(", ")),
        Value::Array(items) => format!("it is a list of {}, numbered from 0", items.len()),
        Value::Null => "it is null".to_string(),
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
    fn every_entry_of_a_list() {
        let parameters = Parameters::default();
        let mut scope = Scope::new(&parameters);
        let list = json!([{ "p": "a", "t": [1, 2] }, { "p": "b", "t": null }, { "p": "c" }, { "p": "d", "t": [3] }]);
        scope.bind(Root::Var("l".to_string()), Cow::Owned(list));
        scope.bind(Root::Var("none".to_string()), Cow::Owned(json!([])));
        let resolve = |value: Value| {
            let resolved = scope.resolve(&value, &Value::Null, "");
            resolved.map_err(|issues| issues.iter().map(ToString::to_string).collect::<Vec<_>>())
        };
        for (written, value) in [
            (json!("$vars.l[*].p"), json!(["a", "b", "c", "d"])),
            (json!("${$vars.l[*].t}"), json!([[1, 2], null, [3]])),
            (json!("$vars.l[*].t[*]"), json!([1, 2, 3])),
            (json!("$vars.none[*].t[*].x"), json!([])),
            (json!(["$vars.l[*].t[*]", 4, "$vars.none[*]", "$vars.l[0].p"]), json!([1, 2, 3, 4, "a"])),
            (json!("x ${$vars.l[*].p}"), json!("x [\"a\",\"b\",\"c\",\"d\"]")),
            (json!("x ${$vars.l[*].p|join:\", \"}"), json!("x a, b, c, d")),
            (json!("${$vars.l[*].t[*] | join:\"\\n\"}"), json!("1\n2\n3")),
            (json!("${$vars.none|join:\", \"}"), json!("")),
        ] {
            assert_eq!(resolve(written.clone()).unwrap(), value, "{written}");
        }
        for (written, error) in [
            (json!("$vars.l[*].q"), ": `$vars.l[*].q`: there is no `q`; there are: "),
            (
                json!("$vars.l[*].p[*]"),
                ": `$vars.l[*].p[*]`: [*] stands for the entries of a list; it is a plain value",
            ),
            (json!("x${$vars.l[*].t|join:\"\"}"), "`$vars.l[*].t` has a list in it"),
            (json!("${$vars.l[0].p|join:\"\"}"), "`$vars.l[0].p` is not a list"),
            (json!(["$vars.l[0].t"]), "/0: `$vars.l[0].t` is a list, which would be a list within a list"),
        ] {
            let errors = resolve(written.clone()).unwrap_err();
            assert!(errors.len() == 1 && errors[0].contains(error), "{written}: {errors:?}");
        }
        let lists = json!({ "type": "array", "items": { "type": "array" } });
        assert_eq!(scope.resolve(&json!(["$vars.l[0].t"]), &lists, "").ok(), Some(json!([[1, 2]])));
    }

    #[test]
    fn a_folder_stays_folders_in_a_path_and_the_root_none() {
        let parameters = Parameters::default();
        let schema = json!({ "type": "string", "x-vault-path": true });
        for (folder, expected) in [("A/B", "New/A/B/x.md"), ("", "New/x.md")] {
            let mut scope = Scope::new(&parameters);
            let item = Root::Name("item".to_string());
            scope.bind_in_folder(item, Cow::Owned(json!({ "folder": folder, "other": "A/B" })));
            let resolve = |text: &str| scope.resolve(&text.into(), &schema, "").unwrap_or_default();
            assert_eq!(resolve("New/${item.folder}/x.md"), expected);
            assert_eq!(resolve("${item.folder}/x.md"), expected["New/".len()..]);
            assert_eq!(resolve("New/${item.other}/x.md"), "New/A-B/x.md");
        }
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
                "/b/0: the parameter `nothing` has no value",
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
        assert!(error.contains("`activeFile` has no value") && error.contains("`folderName` has no value"), "{error}");
    }
}
