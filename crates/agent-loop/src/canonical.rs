//! Canonical JSON and fingerprints: calls are equal regardless of the order of keys and the spelling of numbers.

use serde_json::{Number, Value};

/// Returns the hash of these texts in order, each preceded by its length, so that `ab, c` differs from `a, bc`.
pub(crate) fn fingerprint<'a>(texts: impl IntoIterator<Item = &'a str>) -> blake3::Hash {
    let mut hasher = blake3::Hasher::new();
    for text in texts {
        hasher.update(&(text.len() as u64).to_le_bytes());
        hasher.update(text.as_bytes());
    }
    hasher.finalize()
}

/// Returns a value as JSON text with sorted keys. Whether a map keeps its order and a number its spelling depends on
/// features of `serde_json` that any crate of a program can enable; this text depends on neither.
pub(crate) fn canonical_json(value: &Value) -> String {
    let mut value = value.clone();
    value.sort_all_objects();
    normalize_numbers(&mut value);
    value.to_string()
}

fn normalize_numbers(value: &mut Value) {
    match value {
        Value::Array(items) => items.iter_mut().for_each(normalize_numbers),
        Value::Object(fields) => fields.values_mut().for_each(normalize_numbers),
        Value::Number(number) if !(number.is_u64() || number.is_i64()) => {
            let float = number.as_f64().and_then(Number::from_f64);
            float.into_iter().for_each(|float| *number = float);
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn key_order_is_kept_and_does_not_count_in_the_canonical_form() {
        let read = |text: &str| serde_json::from_str::<Value>(text).unwrap();
        let value = read(r#"{"b":{"d":1,"c":2},"a":[{"z":1,"y":2}]}"#);
        assert_eq!(value.to_string(), r#"{"b":{"d":1,"c":2},"a":[{"z":1,"y":2}]}"#);
        assert_eq!(canonical_json(&value), r#"{"a":[{"y":2,"z":1}],"b":{"c":2,"d":1}}"#);
        let spelled = canonical_json(&read(r#"{"x":[1.50,1e2,12345678901234567890123],"n":1}"#));
        assert_eq!(spelled, canonical_json(&read(r#"{"n":1,"x":[1.5,100.0,1.2345678901234567890123e22]}"#)));
        assert_ne!(spelled, canonical_json(&read(r#"{"n":2,"x":[1.5,100.0,1.2345678901234567890123e22]}"#)));
    }
}
