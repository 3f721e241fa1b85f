//! Repairs arguments that have the right value in the wrong JSON type, as small models and some clients write them.

use serde_json::Value;

use super::schema_check::SchemaCheck;

/// The most values of one call that are repaired.
const MOST: usize = 8;

/// Returns the arguments with a number, an object or a list instead of the text that contains it, a list instead of its
/// single item, and a text instead of a number or a truth value, each only where the schema rejects the present value.
/// `None` if the result still does not fit.
pub(super) fn mended(check: &SchemaCheck, arguments: &Value) -> Option<Value> {
    let mut mended = arguments.clone();
    for _ in 0..MOST {
        let Some(pointer) = check.first_misfit(&mended) else { return Some(mended) };
        let value = mended.pointer(&pointer).filter(|_| !pointer.is_empty())?.clone();
        let mut readings = readings(&value).into_iter();
        let fits = readings.any(|reading| {
            if let Some(place) = mended.pointer_mut(&pointer) {
                *place = reading;
            }
            check.first_misfit(&mended).is_none_or(|other| !is_within(&other, &pointer))
        });
        if !fits {
            return None;
        }
    }
    check.fits(&mended).then_some(mended)
}

/// Returns whether the pointer `place` is `pointer` or inside of it.
fn is_within(place: &str, pointer: &str) -> bool {
    place.strip_prefix(pointer).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// Returns the values that a model may have meant, the likeliest first.
fn readings(value: &Value) -> Vec<Value> {
    let other_type = match value {
        Value::String(text) => serde_json::from_str(text.trim()).ok().filter(|read: &Value| !read.is_string()),
        Value::Number(_) | Value::Bool(_) => Some(Value::String(value.to_string())),
        _ => None,
    };
    let list = (!value.is_array() && !value.is_null()).then(|| Value::Array(vec![value.clone()]));
    other_type.into_iter().chain(list).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_the_schema_takes_is_never_changed() {
        let schema = json!({"type": "object", "additionalProperties": false, "required": ["query"], "properties": {
            "query": {"type": "string"},
            "tag": {"type": "string"},
            "top_k": {"type": ["integer", "null"]},
            "filter": {"anyOf": [{"type": "null"}, {"type": "object", "properties": {"tags": {"type": "array", "items": {"type": "string"}}}}]},
            "tags": {"type": "array", "items": {"type": "string"}},
        }});
        let check = SchemaCheck::new(&schema).unwrap();
        for (written, expected) in [
            (json!({"query": "5", "top_k": "5"}), Some(json!({"query": "5", "top_k": 5}))),
            (json!({"query": 5}), Some(json!({"query": "5"}))),
            (
                json!({"query": "x", "filter": "{\"tags\": [\"garden\"]}"}),
                Some(json!({"query": "x", "filter": {"tags": ["garden"]}})),
            ),
            (json!({"query": "x", "tags": "[\"a\", \"b\"]"}), Some(json!({"query": "x", "tags": ["a", "b"]}))),
            (json!({"query": "x", "tags": "garden"}), Some(json!({"query": "x", "tags": ["garden"]}))),
            (json!({"query": "x", "tags": [1, "b"]}), Some(json!({"query": "x", "tags": ["1", "b"]}))),
            (
                json!({"query": "x", "tag": 7, "tags": "garden"}),
                Some(json!({"query": "x", "tag": "7", "tags": ["garden"]})),
            ),
            (json!({"query": "x", "top_k": "five"}), None),
            (json!({"query": "x", "top_k": "5", "other": 1}), None),
            (json!({"query": {"a": 1}}), None),
            (json!({}), None),
        ] {
            assert_eq!(mended(&check, &written), expected, "{written}");
        }
    }
}
