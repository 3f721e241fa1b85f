//! Checks arguments against a tool's schema and reports all issues at once, each with its JSON pointer.

use serde_json::{Map, Value};
use vault_index::likeness::nearest;

use super::schema::{ANY_MARK, OR_ROOT, PATH_MARK};
use crate::error::Result;

/// A problem at one location of arguments or of a plan.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Issue {
    /// The location as a JSON pointer; empty for the whole.
    pub pointer: String,
    /// The expected and the actual value.
    pub message: String,
}

impl Issue {
    /// Returns the pointer in the form for people: `/` for the whole.
    pub(crate) fn location(&self) -> &str {
        if self.pointer.is_empty() { "/" } else { &self.pointer }
    }
}

impl std::fmt::Display for Issue {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: {}", self.location(), self.message)
    }
}

/// Returns whether a value is not known yet and so cannot be checked, for example a reference in a plan.
pub type UnknownValues<'a> = &'a dyn Fn(&Value) -> bool;

/// Checks a value against a schema of [`super::schema`]. Keywords that those schemas do not use are ignored.
pub fn check(schema: &Value, value: &Value, at: &str, is_open: UnknownValues<'_>) -> Vec<Issue> {
    let mut issues = Vec::new();
    walk(schema, value, at, is_open, &mut issues);
    issues
}

/// Removes nulls of optional fields (absent and null are the same), replaces a limit of 0 by the default, writes whole
/// numbers without a fraction, because some models write `10.0` for 10, and parses texts that contain the expected
/// value as JSON. Returns notices about the parsed texts.
pub fn tidy(schema: &Value, value: &mut Value) -> Vec<String> {
    let mut read = Vec::new();
    tidy_at(schema, value, "", &mut read);
    read.iter().map(|at| format!("{at}: the text was read as the JSON that it holds")).collect()
}

fn tidy_at(schema: &Value, value: &mut Value, at: &str, read: &mut Vec<String>) {
    if let Some(meant) = value.as_str().and_then(|text| json_in_text(schema, text)) {
        *value = meant;
        read.push(at.to_owned());
    }
    match value {
        Value::Object(fields) if schema.get(ANY_MARK).is_none() => {
            let Some(Value::Object(known)) = schema.get("properties") else { return };
            let required = |name: &str| required(schema).any(|field| field == name);
            fields.retain(|name, value| !value.is_null() || !known.contains_key(name) || required(name));
            for (name, value) in fields {
                if let Some(below) = known.get(name) {
                    if let (true, Some(default)) =
                        (COUNTS.contains(&name.as_str()) && is_zero(value), below.get("default"))
                    {
                        *value = default.clone();
                    }
                    tidy_at(below, value, &pointer(at, name), read);
                }
            }
        }
        Value::Array(items) => {
            if let Some(below) = schema.get("items") {
                items
                    .iter_mut()
                    .zip(0..)
                    .for_each(|(item, index)| tidy_at(below, item, &format!("{at}/{index}"), read));
            }
        }
        Value::Number(number)
            if schema
                .get("type")
                .is_some_and(|named| is_of(named, &Value::from(0)) && !is_of(named, &Value::from(0.5))) =>
        {
            // Above this number, f64 does not represent every whole number.
            const EXACT: f64 = 9_007_199_254_740_992.0;
            if let Some(whole) = number.as_f64().filter(|n| number.is_f64() && n.fract() == 0.0 && n.abs() <= EXACT) {
                *value = Value::from(whole as i64);
            }
        }
        _ => {}
    }
}

/// Arguments for which 0 means the default.
const COUNTS: [&str; 2] = ["limit", "top_k"];

fn is_zero(value: &Value) -> bool {
    value.as_f64() == Some(0.0) || value.as_str().is_some_and(|text| text.trim() == "0")
}

/// Parses a text as JSON, if a schema expects a value that is not a text and the JSON matches, because some clients
/// send objects, lists and numbers as text.
fn json_in_text(schema: &Value, text: &str) -> Option<Value> {
    let named = schema.get("type").filter(|named| !is_of(named, &Value::from("")))?;
    let mut value = serde_json::from_str(text).ok()?;
    tidy_at(schema, &mut value, "", &mut Vec::new());
    (is_of(named, &value) && check(schema, &value, "", &|_| false).is_empty()).then_some(value)
}

/// Returns the JSON pointer of a field.
pub fn pointer(at: &str, key: &str) -> String {
    format!("{at}/{}", key.replace('~', "~0").replace('/', "~1"))
}

/// Visits every text in arguments that is a vault path: the text, its JSON pointer, and whether it can be the vault's
/// root.
pub(crate) fn each_path(schema: &Value, value: &Value, at: &str, visit: &mut dyn FnMut(&str, &str, bool)) {
    match value {
        Value::String(text) => {
            if let Some(mark) = schema.get(PATH_MARK) {
                visit(text, at, mark == OR_ROOT);
            }
        }
        Value::Array(items) => {
            let below = schema.get("items").unwrap_or(&Value::Null);
            for (index, item) in items.iter().enumerate() {
                each_path(below, item, &format!("{at}/{index}"), visit);
            }
        }
        Value::Object(fields) => {
            for (name, value) in fields {
                if let Some(below) = schema.get("properties").and_then(|known| known.get(name)) {
                    each_path(below, value, &pointer(at, name), visit);
                }
            }
        }
        _ => {}
    }
}

/// Replaces every text that is a vault path, in arguments or in an output.
pub(crate) fn map_paths(schema: &Value, value: &mut Value, map: &mut dyn FnMut(&str) -> Result<String>) -> Result<()> {
    let mark = schema.get(PATH_MARK);
    match value {
        Value::String(text) if mark.is_some() => *text = map(text)?,
        Value::Array(items) => {
            // The mark may be on a list instead of its items.
            let below = schema.get("items").filter(|_| mark.is_none()).unwrap_or(schema);
            items.iter_mut().try_for_each(|item| map_paths(below, item, map))?;
        }
        Value::Object(fields) => {
            for (name, value) in fields {
                if let Some(below) = schema.get("properties").and_then(|known| known.get(name)) {
                    map_paths(below, value, map)?;
                }
            }
        }
        _ => {}
    }
    Ok(())
}

fn walk(schema: &Value, value: &Value, at: &str, is_open: UnknownValues<'_>, issues: &mut Vec<Issue>) {
    if is_open(value) {
        return;
    }
    let mut issue = |message: String| issues.push(Issue { pointer: at.to_string(), message });
    if let Some(Value::Array(ways)) = schema.get("anyOf").or_else(|| schema.get("oneOf")) {
        if !ways.iter().any(|way| check(way, value, at, is_open).is_empty()) {
            let expected: Vec<String> = ways.iter().map(expected).collect();
            issue(format!("expected {}, found {}", expected.join(" or "), found(value)));
        }
        return;
    }
    let (named, whole) = (schema.get("type"), expected(schema));
    if !named.is_none_or(|named| is_of(named, value)) {
        return issue(format!("expected {whole}, found {}", found(value)));
    }
    if let Some(Value::Array(values)) = schema.get("enum")
        && !values.contains(value)
    {
        return issue(format!("expected {whole}, found {}", found(value)));
    }
    match value {
        Value::Number(number) => {
            let limit = |keyword| schema.get(keyword).and_then(Value::as_f64);
            let number = number.as_f64().unwrap_or(f64::NAN);
            if limit("minimum").is_some_and(|min| number < min) || limit("maximum").is_some_and(|max| number > max) {
                issue(format!("expected {whole}, found {value}"));
            }
        }
        Value::String(text) => {
            let least = schema.get("minLength").and_then(Value::as_u64).unwrap_or(0);
            if (text.chars().count() as u64) < least {
                issue("expected a text that is not empty".to_string());
            }
        }
        Value::Array(items) => {
            let least = schema.get("minItems").and_then(Value::as_u64).unwrap_or(0);
            if (items.len() as u64) < least {
                issue(format!("expected at least {least} in the list, found {}", items.len()));
            }
            if let Some(below) = schema.get("items") {
                for (number, item) in items.iter().enumerate() {
                    walk(below, item, &format!("{at}/{number}"), is_open, issues);
                }
            }
        }
        Value::Object(_) if schema.get(ANY_MARK).is_some() => {}
        Value::Object(fields) => object(schema, fields, at, is_open, issues),
        Value::Null | Value::Bool(_) => {}
    }
}

fn object(schema: &Value, fields: &Map<String, Value>, at: &str, is_open: UnknownValues<'_>, issues: &mut Vec<Issue>) {
    let none = Map::new();
    let known = schema.get("properties").and_then(Value::as_object).unwrap_or(&none);
    for name in required(schema).filter(|name| !fields.contains_key(*name)) {
        let expected = known.get(name).map_or_else(String::new, expected);
        issues.push(Issue { pointer: pointer(at, name), message: format!("is missing; expected {expected}") });
    }
    for (name, value) in fields {
        let below = pointer(at, name);
        match (known.get(name), schema.get("additionalProperties")) {
            (Some(schema), _) => walk(schema, value, &below, is_open, issues),
            (None, Some(Value::Bool(false))) => {
                issues.push(Issue { pointer: below, message: unknown(name, known) });
            }
            (None, Some(schema @ Value::Object(_))) => walk(schema, value, &below, is_open, issues),
            (None, _) => {}
        }
    }
}

fn unknown(name: &str, known: &Map<String, Value>) -> String {
    if known.is_empty() {
        return format!("`{name}` is not a field; there are no fields");
    }
    let names: Vec<&str> = known.keys().map(String::as_str).collect();
    let listed = names.join(", ");
    match nearest(name, names.iter().map(|known| (*known, *known)))[..] {
        [near, ..] => format!("`{name}` is not a field; did you mean `{near}`? (there are: {listed})"),
        _ => format!("`{name}` is not a field; there are: {listed}"),
    }
}

fn required(schema: &Value) -> impl Iterator<Item = &str> {
    schema.get("required").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str)
}

fn is_of(named: &Value, value: &Value) -> bool {
    match named {
        Value::String(name) => match name.as_str() {
            "string" => value.is_string(),
            "integer" => value.as_f64().is_some_and(|number| number.fract() == 0.0),
            "number" => value.is_number(),
            "boolean" => value.is_boolean(),
            "array" => value.is_array(),
            "object" => value.is_object(),
            "null" => value.is_null(),
            _ => true,
        },
        Value::Array(names) => names.iter().any(|name| is_of(name, value)),
        _ => true,
    }
}

/// Describes the values that a schema expects.
pub(crate) fn expected(schema: &Value) -> String {
    if let Some(Value::Array(values)) = schema.get("enum") {
        let values: Vec<String> =
            values.iter().map(|value| value.as_str().map_or(value.to_string(), str::to_string)).collect();
        return format!("one of {}", values.join(", "));
    }
    let name = match schema.get("type") {
        Some(Value::String(name)) => name.as_str(),
        Some(Value::Array(names)) => names.first().and_then(Value::as_str).unwrap_or("any"),
        _ => "any",
    };
    match name {
        "string" => "a text".to_string(),
        "integer" => format!("a whole number{}", range(schema)),
        "number" => format!("a number{}", range(schema)),
        "boolean" => "true or false".to_string(),
        "array" => match schema.get("items") {
            Some(items) if items.get("type").is_some() => format!("a list, each item {}", expected(items)),
            _ => "a list".to_string(),
        },
        "object" => "an object".to_string(),
        "null" => "null".to_string(),
        _ => "a value".to_string(),
    }
}

fn range(schema: &Value) -> String {
    match (schema.get("minimum"), schema.get("maximum")) {
        (Some(min), Some(max)) => format!(" from {min} to {max}"),
        (Some(min), None) => format!(", {min} or more"),
        (None, Some(max)) => format!(", {max} at most"),
        (None, None) => String::new(),
    }
}

fn found(value: &Value) -> String {
    match value {
        Value::String(text) if text.chars().count() > 40 => {
            format!("the text \"{}…\"", text.chars().take(40).collect::<String>())
        }
        Value::String(_) => format!("the text {value}"),
        Value::Array(_) => "a list".to_string(),
        Value::Object(_) => "an object".to_string(),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn schema() -> Value {
        json!({
            "type": "object",
            "properties": {
                "path": { "type": "string" },
                "top_k": { "type": "integer", "minimum": 1, "maximum": 50 },
                "tags": { "type": "array", "items": { "type": "string" } },
                "mode": { "type": "string", "enum": ["a", "b"] },
                "filter": { "type": "object", "properties": { "x": { "type": "boolean" } }, "additionalProperties": false },
                "any": { "type": "object", "additionalProperties": true }
            },
            "required": ["path"],
            "additionalProperties": false
        })
    }

    #[test]
    fn issues_name_location_and_expectation() {
        fn check_one(value: Value, expected: &[&str]) {
            let issues: Vec<String> =
                check(&schema(), &value, "", &|_| false).iter().map(ToString::to_string).collect();
            assert_eq!(issues, expected, "{value}");
        }
        check_one(json!({ "path": "a" }), &[]);
        check_one(json!({}), &["/path: is missing; expected a text"]);
        check_one(json!([]), &["/: expected an object, found a list"]);
        check_one(json!({ "path": 3 }), &["/path: expected a text, found 3"]);
        check_one(json!({ "path": "a", "top_k": 99 }), &["/top_k: expected a whole number from 1 to 50, found 99"]);
        check_one(json!({ "path": "a", "top_k": 5.0 }), &[]);
        check_one(json!({ "path": "a", "top_k": 5.5 }), &["/top_k: expected a whole number from 1 to 50, found 5.5"]);
        check_one(json!({ "path": "a", "tags": ["x", 1] }), &["/tags/1: expected a text, found 1"]);
        check_one(json!({ "path": "a", "mode": "c" }), &["/mode: expected one of a, b, found the text \"c\""]);
        check_one(
            json!({ "path": "a", "topK": 1 }),
            &["/topK: `topK` is not a field; did you mean `top_k`? (there are: path, top_k, tags, mode, filter, any)"],
        );
        check_one(
            json!({ "path": "a", "filter": { "y/z": 1 } }),
            &["/filter/y~1z: `y/z` is not a field; there are: x"],
        );
        check_one(json!({ "path": "a", "any": { "y": null } }), &[]);
        check_one(
            json!({ "path": 1, "mode": 2 }),
            &["/path: expected a text, found 1", "/mode: expected one of a, b, found 2"],
        );
    }

    #[test]
    fn references_are_not_checked() {
        let is_open = |value: &Value| value.as_str().is_some_and(|text| text.starts_with('$'));
        assert!(check(&schema(), &json!({ "path": "x", "top_k": "$steps.a.count" }), "", &is_open).is_empty());
    }

    #[test]
    fn a_limit_of_0_is_the_default() {
        let schema = json!({ "properties": {
            "top_k": { "type": "integer", "minimum": 1, "default": 10 }, "limit": { "type": "integer", "minimum": 1 },
            "other": { "type": "integer", "minimum": 1, "default": 10 }
        } });
        let mut value = json!({ "top_k": 0, "limit": 0, "other": 0 });
        tidy(&schema, &mut value);
        assert_eq!(value, json!({ "top_k": 10, "limit": 0, "other": 0 }));
        for zero in [json!("0"), json!(0.0)] {
            let mut value = json!({ "top_k": zero });
            tidy(&schema, &mut value);
            assert_eq!(value, json!({ "top_k": 10 }));
        }
    }

    #[test]
    fn nulls_of_optional_fields_are_nothing() {
        let mut value = json!({ "path": null, "top_k": null, "filter": { "x": null }, "any": { "y": null } });
        tidy(&schema(), &mut value);
        assert_eq!(value, json!({ "path": null, "filter": {}, "any": { "y": null } }));
    }

    #[test]
    fn texts_are_read_where_they_hold_what_is_expected() {
        let mut value = json!({ "path": "[1]", "top_k": "3", "tags": "[\"x\"]", "filter": "{\"x\": \"true\"}" });
        let read = tidy(&schema(), &mut value);
        assert_eq!(value, json!({ "path": "[1]", "top_k": 3, "tags": ["x"], "filter": { "x": true } }));
        assert_eq!(read[0], "/top_k: the text was read as the JSON that it holds");
        assert_eq!(read.len(), 3);
        for kept in [
            json!({ "top_k": "99" }),
            json!({ "top_k": "three" }),
            json!({ "tags": "x" }),
            json!({ "tags": "[1]" }),
            json!({ "filter": "null" }),
        ] {
            let mut value = kept.clone();
            assert!(tidy(&schema(), &mut value).is_empty() && value == kept, "{value}");
        }
    }

    #[test]
    fn whole_numbers_are_whole_however_they_are_written() {
        let mut value = json!({ "path": 2.0, "top_k": 2.0, "any": { "y": 2.0 } });
        tidy(&schema(), &mut value);
        assert_eq!(value.to_string(), json!({ "path": 2.0, "top_k": 2, "any": { "y": 2.0 } }).to_string());
        for kept in [2.5, 1e300] {
            let mut value = json!({ "top_k": kept });
            tidy(&schema(), &mut value);
            assert_eq!(value, json!({ "top_k": kept }));
        }
    }
}
