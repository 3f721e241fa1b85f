//! Canonical JSON and fingerprints: two calls are equal whatever the order of their keys.

use serde_json::Value;

/// The hash of these texts in order, each with its length before it, so that `ab, c` is not `a, bc`.
pub(crate) fn fingerprint<'a>(texts: impl IntoIterator<Item = &'a str>) -> blake3::Hash {
    let mut hasher = blake3::Hasher::new();
    for text in texts {
        hasher.update(&(text.len() as u64).to_le_bytes());
        hasher.update(text.as_bytes());
    }
    hasher.finalize()
}

/// A value as JSON text that does not depend on the order of an object's keys.
pub(crate) fn canonical_json(value: &Value) -> String {
    let mut value = value.clone();
    // Whether a map keeps its order is decided by features of other crates.
    value.sort_all_objects();
    value.to_string()
}
