//! Removes null fields, because request bodies are built with all their fields, including those that a request leaves
//! open.

use serde_json::Value;

/// Returns the object without its null fields.
pub(super) fn without_nulls(mut object: Value) -> Value {
    if let Value::Object(fields) = &mut object {
        fields.retain(|_, value| !value.is_null());
    }
    object
}
