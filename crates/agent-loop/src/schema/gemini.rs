//! Gemini's subset of JSON Schema: an OpenAPI schema with `nullable`, one type, and no references.

use serde_json::{Map, Value, json};

/// Keywords that are copied.
const TAKEN: [&str; 12] = [
    "description",
    "minItems",
    "maxItems",
    "minimum",
    "maximum",
    "minLength",
    "maxLength",
    "minProperties",
    "maxProperties",
    "pattern",
    "title",
    "required",
];
/// How deep references are followed; anything deeper becomes a string.
const DEEPEST: usize = 12;

/// Returns the schema as the `parameters` of a function declaration; `None` for a tool without arguments, because its
/// declaration must not have any. Keywords that the subset cannot express are dropped; calls are checked against the
/// tool's own schema anyway.
pub fn gemini(schema: &Value) -> Option<Value> {
    let has_properties = schema["properties"].as_object().is_some_and(|properties| !properties.is_empty());
    has_properties.then(|| Value::Object(convert(schema, schema, 0)))
}

fn convert(schema: &Value, root: &Value, depth: usize) -> Map<String, Value> {
    let Some(fields) = schema.as_object() else { return any() };
    if depth > DEEPEST {
        return any();
    }
    if let Some(reference) = fields.get("$ref").and_then(Value::as_str) {
        let target = reference.strip_prefix('#').and_then(|pointer| root.pointer(pointer));
        return target.map_or_else(any, |target| convert(target, root, depth + 1));
    }
    let mut out: Map<String, Value> =
        TAKEN.iter().filter_map(|key| fields.get(*key).map(|value| ((*key).to_string(), value.clone()))).collect();
    add_type(&mut out, schema, root, depth);
    add_values(&mut out, schema);
    if let Some(properties) = schema["properties"].as_object() {
        let converted =
            |(name, property): (&String, &Value)| (name.clone(), Value::Object(convert(property, root, depth + 1)));
        out.insert("properties".into(), Value::Object(properties.iter().map(converted).collect()));
    }
    if let Some(items) = fields.get("items") {
        out.insert("items".into(), Value::Object(convert(items, root, depth + 1)));
    } else if out.get("type") == Some(&json!("array")) {
        out.insert("items".into(), Value::Object(any()));
    }
    out
}

/// Returns the schema of a value of any kind. It is a string, because every model can write text.
fn any() -> Map<String, Value> {
    Map::from_iter([("type".to_string(), json!("string"))])
}

/// Adds one type, or options; null becomes `nullable`.
fn add_type(out: &mut Map<String, Value>, schema: &Value, root: &Value, depth: usize) {
    let mut kinds: Vec<Value> = match &schema["type"] {
        Value::Array(kinds) => kinds.clone(),
        Value::Null => Vec::new(),
        kind => vec![kind.clone()],
    };
    let options = ["anyOf", "oneOf", "allOf"].iter().find_map(|key| schema[*key].as_array());
    let mut options: Vec<&Value> = options.into_iter().flatten().collect();
    let before = kinds.len() + options.len();
    kinds.retain(|kind| kind != "null");
    options.retain(|option| option["type"] != "null");
    if kinds.len() + options.len() < before {
        out.insert("nullable".into(), json!(true));
    }
    match (&kinds[..], &options[..]) {
        ([kind], _) => drop(out.insert("type".into(), kind.clone())),
        ([], [only]) => {
            let described = out.remove("description");
            out.extend(convert(only, root, depth + 1));
            out.extend(described.map(|text| ("description".to_string(), text)));
        }
        ([], []) if schema.get("properties").is_some() => drop(out.insert("type".into(), json!("object"))),
        ([], []) => out.extend(any()),
        ([], options) => {
            let options = options.iter().map(|option| Value::Object(convert(option, root, depth + 1)));
            out.insert("anyOf".into(), options.collect());
        }
        (kinds, _) => {
            let options = kinds.iter().map(|kind| json!({"type": kind}));
            out.insert("anyOf".into(), options.collect());
        }
    }
}

/// Adds the allowed values. Gemini's enums are of strings; a constant becomes an enum with one value.
fn add_values(out: &mut Map<String, Value>, schema: &Value) {
    let constant = schema.get("const").map(|value| vec![value.clone()]);
    let Some(mut values) = schema["enum"].as_array().cloned().or(constant) else { return };
    values.retain(|value| !value.is_null());
    if values.iter().all(Value::is_string) {
        out.insert("type".into(), json!("string"));
        out.insert("enum".into(), Value::Array(values));
    } else {
        let list = values.iter().map(Value::to_string).collect::<Vec<_>>().join(", ");
        let text = out.get("description").and_then(Value::as_str).unwrap_or_default();
        let text = format!("{text} One of: {list}.");
        out.insert("description".into(), json!(text.trim()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Checks the conversion of one property.
    fn check(property: Value, expected: Value) {
        let schema = json!({"type": "object", "properties": {"p": property}, "additionalProperties": false,
            "$defs": {"n": {"type": "object", "properties": {"next": {"$ref": "#/$defs/n"}}}, "s": {"type": "string"}}});
        assert_eq!(gemini(&schema).unwrap()["properties"]["p"], expected);
    }

    #[test]
    fn what_becomes_of_each_form() {
        check(
            json!({"type": ["integer", "null"], "minimum": 0}),
            json!({"type": "integer", "minimum": 0, "nullable": true}),
        );
        check(json!({"type": ["integer", "string"]}), json!({"anyOf": [{"type": "integer"}, {"type": "string"}]}));
        check(
            json!({"description": "D", "anyOf": [{"type": "string", "description": "inner"}, {"type": "null"}]}),
            json!({"type": "string", "description": "D", "nullable": true}),
        );
        check(
            json!({"oneOf": [{"type": "string"}, {"type": "boolean"}]}),
            json!({"anyOf": [{"type": "string"}, {"type": "boolean"}]}),
        );
        check(json!({"const": "x"}), json!({"type": "string", "enum": ["x"]}));
        check(json!({"enum": ["a", "b", null]}), json!({"type": "string", "enum": ["a", "b"]}));
        check(json!({"type": "integer", "enum": [1, 2]}), json!({"type": "integer", "description": "One of: 1, 2."}));
        check(json!({"$ref": "#/$defs/s"}), json!({"type": "string"}));
        check(json!({"$ref": "https://example.org"}), json!({"type": "string"}));
        check(json!({"type": "array"}), json!({"type": "array", "items": {"type": "string"}}));
        check(json!({"type": "string", "format": "uri", "default": "x"}), json!({"type": "string"}));
        check(json!({}), json!({"type": "string"}));
    }

    #[test]
    fn recursion_ends_and_no_arguments_have_no_schema() {
        let text = gemini(&json!({"type": "object", "properties": {"list": {"$ref": "#/$defs/n"}},
            "$defs": {"n": {"type": "object", "properties": {"next": {"$ref": "#/$defs/n"}}}}}))
        .unwrap()
        .to_string();
        assert!(!text.contains("$ref") && text.len() < 2_000);
        assert_eq!(gemini(&json!({"type": "object", "properties": {}})), None);
    }
}
