//! Request bodies are written with all their fields; those that a request leaves open are not sent.

use serde_json::Value;

/// The object without its fields that are null.
pub(super) fn without_nulls(mut object: Value) -> Value {
    if let Value::Object(fields) = &mut object {
        fields.retain(|_, value| !value.is_null());
    }
    object
}
