//! Anthropic's subset of JSON Schema for answers: closed objects, a few keywords, no references.

use serde_json::{Map, Value, json};

/// Keywords that are copied.
const TAKEN: [&str; 6] = ["type", "enum", "const", "description", "title", "required"];
/// Supported formats of strings; others are rejected.
const FORMATS: [&str; 10] =
    ["date-time", "time", "date", "duration", "email", "hostname", "uri", "ipv4", "ipv6", "uuid"];
/// The API's limit on properties that are not required, in the whole schema.
const MOST_OPTIONAL: usize = 24;
/// The API's limit on values that may have several types.
const MOST_UNIONS: usize = 16;
/// The API rejects schemas that are nested deeper as too complex.
const DEEPEST: usize = 12;

/// Returns the schema of an answer in the form that the API accepts; `None` if it cannot express the shape. Bounds and
/// patterns are dropped, because the answer is checked against the whole schema anyway.
pub fn anthropic_answer(schema: &Value) -> Option<Value> {
    let mut counts = Counts::default();
    let closed = closed(schema, 0, &mut counts)?;
    let is_small = counts.optional <= MOST_OPTIONAL && counts.unions <= MOST_UNIONS;
    (is_small && closed["type"] == "object").then_some(closed)
}

/// Counts of the things that the API limits in a whole schema.
#[derive(Default)]
struct Counts {
    optional: usize,
    unions: usize,
}

fn closed(schema: &Value, depth: usize, counts: &mut Counts) -> Option<Value> {
    let fields = schema.as_object().filter(|_| depth <= DEEPEST)?;
    if fields.contains_key("$ref") || fields.contains_key("allOf") {
        return None;
    }
    let mut out: Map<String, Value> =
        TAKEN.iter().filter_map(|key| fields.get(*key).map(|value| ((*key).to_string(), value.clone()))).collect();
    let has_options = fields.contains_key("anyOf") || fields.contains_key("oneOf");
    counts.unions += usize::from(has_options || schema["type"].is_array());
    if let Some(format) = fields.get("format").filter(|format| FORMATS.iter().any(|known| *format == known)) {
        out.insert("format".into(), format.clone());
    }
    if let Some(least) = fields.get("minItems").filter(|least| least.as_u64().is_some_and(|least| least <= 1)) {
        out.insert("minItems".into(), least.clone());
    }
    if let Some(options) = ["anyOf", "oneOf"].iter().find_map(|key| fields.get(*key)) {
        let options = options.as_array()?.iter().map(|option| closed(option, depth + 1, counts));
        out.insert("anyOf".into(), Value::Array(options.collect::<Option<_>>()?));
    }
    if let Some(items) = fields.get("items") {
        out.insert("items".into(), closed(items, depth + 1, counts)?);
    }
    let is_object = match &schema["type"] {
        Value::Array(kinds) => kinds.iter().any(|kind| kind == "object"),
        kind => kind == "object",
    };
    if is_object {
        // An open object allows values that the API cannot express.
        let properties = fields.get("properties")?.as_object()?;
        if fields.get("additionalProperties").is_some_and(|open| *open != json!(false)) {
            return None;
        }
        let required = schema["required"].as_array().map_or(&[][..], Vec::as_slice);
        let mut inner = Map::new();
        for (name, property) in properties {
            counts.optional += usize::from(!required.iter().any(|required| *required == json!(name)));
            inner.insert(name.clone(), closed(property, depth + 1, counts)?);
        }
        out.insert("properties".into(), Value::Object(inner));
        out.insert("additionalProperties".into(), json!(false));
    }
    let says_something = ["type", "enum", "const", "anyOf"].iter().any(|key| out.contains_key(*key));
    says_something.then_some(Value::Object(out))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn objects_are_closed_and_bounds_are_dropped() {
        let schema = json!({"type": "object", "required": ["n"], "$schema": "x", "properties": {
            "n": {"type": "integer", "minimum": 1, "description": "D"},
            "when": {"type": ["string", "null"], "format": "date"},
            "id": {"type": "string", "format": "int64", "maxLength": 3},
            "list": {"type": "array", "minItems": 1, "maxItems": 9, "items": {"oneOf": [
                {"const": "a"}, {"type": "object", "properties": {}, "additionalProperties": false}]}}}});
        let expected = json!({"type": "object", "required": ["n"], "properties": {
            "n": {"type": "integer", "description": "D"},
            "when": {"type": ["string", "null"], "format": "date"},
            "id": {"type": "string"},
            "list": {"type": "array", "minItems": 1, "items": {"anyOf": [
                {"const": "a"}, {"type": "object", "properties": {}, "additionalProperties": false}]}}},
            "additionalProperties": false});
        assert_eq!(anthropic_answer(&schema), Some(expected));
    }

    #[test]
    fn shapes_that_it_cannot_express_are_not_sent() {
        let property = |property: Value| json!({"type": "object", "properties": {"p": property}});
        let many = |count: usize, property: Value| -> Value {
            let properties: Map<_, _> = (0..count).map(|index| (format!("p{index}"), property.clone())).collect();
            let required: Vec<_> = properties.keys().filter(|_| property["type"].is_array()).cloned().collect();
            json!({"type": "object", "properties": properties, "required": required})
        };
        let (text, union) = (json!({"type": "string"}), json!({"type": ["string", "null"]}));
        let mut deep = json!({"type": "string"});
        for _ in 0..DEEPEST {
            deep = json!({"type": "array", "items": deep});
        }
        assert!(anthropic_answer(&many(MOST_OPTIONAL, text.clone())).is_some());
        assert!(anthropic_answer(&many(MOST_UNIONS, union.clone())).is_some());
        for schema in [
            json!({"type": "string"}),
            json!({"type": "object"}),
            json!({"type": "object", "properties": {}, "additionalProperties": true}),
            property(json!({"type": "object", "additionalProperties": {"type": "string"}})),
            property(json!({"$ref": "#/$defs/x"})),
            property(json!({"allOf": [{"type": "string"}]})),
            property(json!({})),
            property(json!(true)),
            property(deep),
            many(MOST_OPTIONAL + 1, text),
            many(MOST_UNIONS + 1, union),
        ] {
            assert_eq!(anthropic_answer(&schema), None, "{schema}");
        }
    }
}
