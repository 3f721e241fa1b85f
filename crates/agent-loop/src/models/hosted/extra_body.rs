//! Merges a caller's fields into the body of a request, for every wire: a JSON Merge Patch.

use serde_json::{Map, Value};

/// Merges objects field by field. Any other value of the patch replaces the present value, and null removes it.
pub(super) fn merge(body: &mut Value, patch: &Value) {
    let Value::Object(patch) = patch else {
        *body = patch.clone();
        return;
    };
    if !body.is_object() {
        *body = Value::Object(Map::new());
    }
    let Value::Object(body) = body else { return };
    for (name, value) in patch {
        if value.is_null() {
            body.shift_remove(name);
        } else {
            merge(body.entry(name).or_insert(Value::Null), value);
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_patch_adds_replaces_and_removes() {
        let mut body = json!({"model": "m", "options": {"a": 1, "b": 2}, "stop": ["x"], "seed": 7});
        merge(&mut body, &json!({"options": {"b": 3, "c": {"d": null, "e": 4}}, "stop": ["y"], "seed": null}));
        assert_eq!(body, json!({"model": "m", "options": {"a": 1, "b": 3, "c": {"e": 4}}, "stop": ["y"]}));
        assert_eq!(body.to_string(), r#"{"model":"m","options":{"a":1,"b":3,"c":{"e":4}},"stop":["y"]}"#);
    }
}
