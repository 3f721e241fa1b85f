//! OpenAI's strict mode: the schemas that it accepts, their conversion, and its reversal in a call.
//!
//! Strict mode requires that every object is closed and all its properties are required. An optional property becomes
//! one that may be null; a null that the original schema does not allow is removed from the call again. A schema that
//! strict mode cannot express is sent unchanged, with an explicit `strict: false`: without it, the API makes schemas
//! strict by itself, and optional fields come back as nulls that the tool does not expect.

use serde_json::{Map, Value, json};

/// Keywords that strict mode accepts.
const TAKEN: [&str; 18] = [
    "type",
    "properties",
    "required",
    "additionalProperties",
    "items",
    "enum",
    "const",
    "anyOf",
    "description",
    "title",
    "pattern",
    "minimum",
    "maximum",
    "exclusiveMinimum",
    "exclusiveMaximum",
    "multipleOf",
    "minItems",
    "maxItems",
];
/// Keywords that are only informative and are dropped.
const LEFT_OUT: [&str; 4] = ["default", "examples", "$schema", "format"];
/// The API's limit on nesting.
const DEEPEST: usize = 10;

/// Returns the schema of a tool in strict mode; `None` if strict mode cannot express it.
pub fn strict(schema: &Value) -> Option<Value> {
    closed_root(schema, true)
}

/// Returns the schema of an answer in strict mode if this only closes objects, because forced nulls are never removed
/// from an answer.
pub fn strict_answer(schema: &Value) -> Option<Value> {
    closed_root(schema, false)
}

/// Returns the closed schema of a root object. With `may_force_null`, an optional property becomes one that may be
/// null; without it, a schema with an optional property that does not allow null is not converted.
fn closed_root(schema: &Value, may_force_null: bool) -> Option<Value> {
    // The root must be a plain object; one without properties belongs to a tool without arguments.
    let is_root = schema["type"] == "object" && schema.get("anyOf").is_none();
    is_root.then(|| closed(schema, 0, may_force_null)).flatten()
}

fn is_type(schema: &Value, wanted: &str) -> bool {
    match &schema["type"] {
        Value::Array(kinds) => kinds.iter().any(|kind| kind == wanted),
        kind => kind == wanted,
    }
}

/// Returns the schema with every object closed; `None` if strict mode cannot express it.
fn closed(schema: &Value, depth: usize, may_force_null: bool) -> Option<Value> {
    let fields = schema.as_object()?;
    if depth > DEEPEST
        || !(fields.contains_key("type")
            || fields.contains_key("anyOf")
            || fields.contains_key("enum")
            || fields.contains_key("const"))
    {
        return None;
    }
    let mut out = Map::new();
    for (keyword, value) in fields {
        let value = match keyword.as_str() {
            keyword if LEFT_OUT.contains(&keyword) => continue,
            keyword if !TAKEN.contains(&keyword) => return None,
            "items" => closed(value, depth + 1, may_force_null)?,
            "anyOf" => value
                .as_array()?
                .iter()
                .map(|option| closed(option, depth + 1, may_force_null))
                .collect::<Option<_>>()?,
            "properties" | "required" | "additionalProperties" => continue,
            _ => value.clone(),
        };
        out.insert(keyword.clone(), value);
    }
    if is_type(schema, "array") && !out.contains_key("items") {
        return None;
    }
    if is_type(schema, "object") {
        let nothing = Map::new();
        let properties = fields.get("properties").map_or(Some(&nothing), Value::as_object)?;
        let is_open = match fields.get("additionalProperties") {
            None => properties.is_empty() && depth > 0,
            Some(value) => value != &json!(false),
        };
        if is_open {
            return None;
        }
        let mut strict = Map::new();
        for (name, property) in properties {
            let mut property = closed(property, depth + 1, may_force_null)?;
            if !is_required(schema, name) && !allows_null(&property) {
                if !may_force_null {
                    return None;
                }
                property = json!({"anyOf": [property, {"type": "null"}]});
            }
            strict.insert(name.clone(), property);
        }
        out.insert("required".into(), strict.keys().cloned().collect());
        out.insert("properties".into(), Value::Object(strict));
        out.insert("additionalProperties".into(), json!(false));
    }
    Some(Value::Object(out))
}

fn is_required(schema: &Value, name: &str) -> bool {
    schema["required"].as_array().is_some_and(|required| required.iter().any(|required| required == name))
}

/// Returns whether the schema allows null.
fn allows_null(schema: &Value) -> bool {
    let option_allows = schema["anyOf"].as_array().is_some_and(|options| options.iter().any(allows_null));
    let listed = schema["enum"].as_array().is_none_or(|values| values.contains(&Value::Null));
    let is_anything = schema.get("type").is_none() && schema.get("anyOf").is_none() && schema.get("const").is_none();
    option_allows || (listed && (is_type(schema, "null") || is_anything))
}

/// Removes the nulls that strict mode forced the model to write: those of optional properties whose own schema does not
/// allow null. `schema` is the original schema.
pub fn without_added_nulls(schema: &Value, arguments: &mut Value) {
    let kind = if arguments.is_object() { "object" } else { "array" };
    let mut schema = schema;
    while schema.get("properties").is_none() && schema.get("items").is_none() {
        // If only one of the options has the value's type, that one applies.
        let mut options = schema["anyOf"].as_array().into_iter().flatten().filter(|option| is_type(option, kind));
        match (options.next(), options.next()) {
            (Some(only), None) => schema = only,
            _ => return,
        }
    }
    match arguments {
        Value::Object(fields) => fields.retain(|name, value| {
            let Some(property) = schema["properties"].get(name) else { return true };
            without_added_nulls(property, value);
            !value.is_null() || is_required(schema, name) || allows_null(property)
        }),
        Value::Array(items) => items.iter_mut().for_each(|item| without_added_nulls(&schema["items"], item)),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_can_be_strict_is_made_strict() {
        let schema = json!({"type": "object", "required": ["query"], "properties": {
            "query": {"type": "string", "description": "What.", "default": "x"},
            "limit": {"type": "integer", "minimum": 1},
            "after": {"type": ["string", "null"]},
            "filter": {"type": "object", "properties": {"tags": {"type": "array", "items": {"type": "string"}}}}}});
        let filter = json!({"type": "object", "additionalProperties": false, "required": ["tags"], "properties": {
            "tags": {"anyOf": [{"type": "array", "items": {"type": "string"}}, {"type": "null"}]}}});
        let expected = json!({"type": "object", "additionalProperties": false,
            "required": ["after", "filter", "limit", "query"], "properties": {
            "query": {"type": "string", "description": "What."},
            "limit": {"anyOf": [{"type": "integer", "minimum": 1}, {"type": "null"}]},
            "after": {"type": ["string", "null"]},
            "filter": {"anyOf": [filter, {"type": "null"}]}}});
        let mut strict = strict(&schema).unwrap();
        strict["required"].as_array_mut().unwrap().sort_by_key(|name| name.as_str().unwrap().to_string());
        assert_eq!(strict, expected);

        let mut arguments = json!({"query": "a", "limit": null, "after": null, "filter": {"tags": null}});
        without_added_nulls(&schema, &mut arguments);
        assert_eq!(arguments, json!({"query": "a", "after": null, "filter": {}}));
        assert!(jsonschema::is_valid(&schema, &arguments));
    }

    #[test]
    fn an_answer_is_strict_only_where_no_null_is_forced() {
        let of = |property: Value| {
            let schema = json!({"type": "object", "properties": {"p": property}});
            strict_answer(&schema).is_some()
        };
        assert!(of(json!({"type": ["string", "null"]})), "a null that the schema allows is no harm");
        assert!(!of(json!({"type": "string"})));
        let inner = json!({"type": "object", "properties": {"q": {"type": "string"}}});
        assert!(!of(json!({"anyOf": [inner, {"type": "null"}]})));
    }

    #[test]
    fn no_arguments_are_strict() {
        let expected = json!({"type": "object", "properties": {}, "required": [], "additionalProperties": false});
        assert_eq!(strict(&json!({"type": "object"})), Some(expected));
    }

    #[test]
    fn schemas_that_strict_mode_cannot_express_stay_unchanged() {
        let property = |property: Value| json!({"type": "object", "properties": {"p": property}});
        for schema in [
            property(json!({"type": "object"})),
            property(json!({"type": "object", "additionalProperties": {"type": "string"}})),
            property(json!({"oneOf": [{"type": "string"}, {"type": "integer"}]})),
            property(json!({"type": "array"})),
            property(json!({"$ref": "#/$defs/x"})),
            property(json!({})),
            property(json!(true)),
            json!({"type": "object", "additionalProperties": true}),
            json!({"type": "object", "patternProperties": {}}),
            json!({"type": "object", "anyOf": []}),
            json!({"type": "string"}),
        ] {
            assert_eq!(strict(&schema), None, "{schema}");
        }
    }

    #[test]
    fn nulls_in_options_are_found() {
        let item = json!({"type": "object", "properties": {"a": {"type": "string"}}});
        let list = json!({"type": "array", "items": item});
        let schema = json!({"type": "object", "properties": {"list": {"anyOf": [list, {"type": "null"}]}}});
        let mut arguments = json!({"list": [{"a": null}, {"a": "x"}]});
        without_added_nulls(&schema, &mut arguments);
        assert_eq!(arguments, json!({"list": [{}, {"a": "x"}]}));
    }
}
