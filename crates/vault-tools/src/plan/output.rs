//! Which values a reference can have, according to the schemas of outputs.

use serde_json::{Value, json};

use super::reference::EACH;

/// Returns the schema of a loop's output, given that of one call.
pub(super) fn of_loop(of_call: &Value) -> Value {
    json!({
        "type": "object",
        "properties": { "items": { "type": "array", "items": of_call }, "count": { "type": "integer" } }
    })
}

/// Returns the schema of the value at a path; null if it is unknown.
///
/// # Errors
/// What is missing at the path.
pub(super) fn at(schema: &Value, path: &[String]) -> Result<Value, String> {
    let Some((key, rest)) = path.split_first() else { return Ok(schema.clone()) };
    let types = types(schema);
    let can_be = |name: &str| types.is_empty() || types.contains(&name);
    let entries = schema.get("items").unwrap_or(&Value::Null);
    if key == EACH {
        if !can_be("array") {
            return Err(format!("[*] stands for the entries of a list, and this is {}", named(schema)));
        }
        let found = at(entries, rest)?;
        return Ok(if rest.iter().any(|key| key == EACH) { found } else { json!({ "type": "array", "items": found }) });
    }
    if let Some(known) = schema.get("properties").and_then(Value::as_object) {
        let is_open = schema.get("additionalProperties").is_some_and(|open| *open != false);
        return match known.get(key) {
            Some(below) => at(below, rest),
            None if is_open => Ok(Value::Null),
            None => {
                let names = known.keys().map(String::as_str).collect::<Vec<_>>().join(", ");
                Err(format!("there is no `{key}`; there are: {names}"))
            }
        };
    }
    match can_be("array") || can_be("object") {
        true if types.contains(&"array") && key.parse::<usize>().is_err() => {
            Err(format!("there is no `{key}` in a list; [0] is its first entry, and [*] are all"))
        }
        true => at(entries, rest),
        false => Err(format!("there is no `{key}` in {}", named(schema))),
    }
}

/// Returns whether a value that matches `found` can be one that matches `expected`. Numbers and booleans are converted
/// to text.
pub(super) fn can_fit(found: &Value, expected: &Value) -> bool {
    let (found_types, expected_types) = (types(found), types(expected));
    if found_types.is_empty() || expected_types.is_empty() {
        return true;
    }
    found_types.iter().any(|name| match *name {
        "array" => {
            let of = |schema: &Value| schema.get("items").cloned().unwrap_or_default();
            expected_types.contains(&"array") && can_fit(&of(found), &of(expected))
        }
        "integer" | "number" => ["integer", "number", "string"].iter().any(|number| expected_types.contains(number)),
        "boolean" => expected_types.contains(&"boolean") || expected_types.contains(&"string"),
        // Whether a value is null is known only when the plan runs.
        "null" => found_types.len() == 1 && expected_types.contains(&"null"),
        name => expected_types.contains(&name),
    })
}

/// Returns the types that a schema names; empty if it names none.
fn types(schema: &Value) -> Vec<&str> {
    match schema.get("type") {
        Some(Value::Array(names)) => names.iter().filter_map(Value::as_str).collect(),
        Some(name) => name.as_str().into_iter().collect(),
        None => Vec::new(),
    }
}

/// Describes a value of a schema in words.
pub(super) fn named(schema: &Value) -> String {
    let name = match types(schema).first() {
        Some(&"string") => "a text",
        Some(&("integer" | "number")) => "a number",
        Some(&"boolean") => "true or false",
        Some(&"array") => match schema.get("items") {
            Some(entry) if !types(entry).is_empty() => return format!("a list, each item {}", named(entry)),
            _ => "a list",
        },
        Some(&"object") => "an object",
        _ => "a value",
    };
    name.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path(text: &str) -> Vec<String> {
        text.split('.').filter(|key| !key.is_empty()).map(str::to_owned).collect()
    }

    #[test]
    fn paths_lead_through_schemas() {
        let call = json!({
            "type": "object",
            "properties": {
                "path": { "type": "string" }, "tags": { "type": "array", "items": { "type": "string" } },
                "next": { "type": ["integer", "null"] }, "open": { "type": "object", "additionalProperties": true }
            }
        });
        let output = of_loop(&call);
        let is = |text: &str| at(&output, &path(text)).map(|schema| schema["type"].clone());
        assert_eq!(is("count"), Ok(json!("integer")));
        assert_eq!(is("items.0.path"), Ok(json!("string")));
        assert_eq!(at(&output, &path("items.*.path")), Ok(json!({ "type": "array", "items": { "type": "string" } })));
        assert_eq!(at(&output, &path("items.*.tags.*")), Ok(json!({ "type": "array", "items": { "type": "string" } })));
        assert_eq!(at(&output, &path("items.*.open.any.thing")).unwrap()["items"], Value::Null);
        for (wrong, message) in [
            ("size", "there is no `size`; there are: items, count"),
            ("items.path", "there is no `path` in a list; [0] is its first entry, and [*] are all"),
            ("items.*.paths", "there is no `paths`; there are: path, tags, next, open"),
            ("count.x", "there is no `x` in a number"),
            ("count.*", "[*] stands for the entries of a list, and this is a number"),
        ] {
            assert_eq!(is(wrong).unwrap_err(), message);
        }
    }

    #[test]
    fn only_what_can_never_fit_is_wrong() {
        let of = |name: &str| match name {
            "?" => Value::Null,
            "integer?" => json!({ "type": ["integer", "null"] }),
            name => match name.strip_prefix("list of ") {
                Some(entry) => json!({ "type": "array", "items": { "type": entry } }),
                None => json!({ "type": name }),
            },
        };
        for (found, expected, fits) in [
            ("string", "string", true),
            ("integer", "string", true),
            ("integer", "number", true),
            ("integer?", "integer", true),
            ("?", "integer", true),
            ("list of string", "?", true),
            ("list of string", "list of string", true),
            ("list of integer", "list of string", true),
            ("list of object", "list of string", false),
            ("list of string", "string", false),
            ("object", "string", false),
            ("string", "integer", false),
            ("string", "list of string", false),
        ] {
            assert_eq!(can_fit(&of(found), &of(expected)), fits, "{found} as {expected}");
        }
    }
}
