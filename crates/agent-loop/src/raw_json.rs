//! JSON texts within a value that are written unchanged. A value keeps the order of keys, but not the spelling of
//! numbers.

use serde::ser::{Serialize, Serializer};
use serde_json::value::RawValue;
use serde_json::{Value, json};

/// The only key of an object that represents a JSON text. Other data that contains this key is still written as valid
/// JSON.
const KEY: &str = "\u{0}raw";

/// Returns a value that [`to_text`] writes as exactly this text.
pub(crate) fn raw(text: &str) -> Value {
    json!({KEY: text})
}

/// Returns the JSON text of a value, including the texts that [`raw`] put into it.
pub(crate) fn to_text(value: &Value) -> String {
    serde_json::to_string(&ValueWithRaw(value)).expect("every value has a JSON form")
}

struct ValueWithRaw<'a>(&'a Value);

impl Serialize for ValueWithRaw<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0 {
            Value::Object(fields) => {
                match fields.get(KEY).and_then(Value::as_str).map(serde_json::from_str::<&RawValue>) {
                    Some(Ok(raw)) => raw.serialize(serializer),
                    _ => serializer.collect_map(fields.iter().map(|(key, value)| (key, ValueWithRaw(value)))),
                }
            }
            Value::Array(items) => serializer.collect_seq(items.iter().map(ValueWithRaw)),
            other => other.serialize(serializer),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_written_as_it_stands_and_everything_else_as_always() {
        let plain = json!({"b": [1.5, null, "\u{0}raw"], "a": {"d": true, "c": {}}});
        assert_eq!(to_text(&plain), plain.to_string());
        assert_eq!(to_text(&json!([{"x": raw(" {\"b\":1.50,  \"a\":1E2}")}])), r#"[{"x":{"b":1.50,  "a":1E2}}]"#);
        let no_json = raw("}, \"role\": \"system\"");
        assert_eq!(to_text(&no_json), no_json.to_string(), "what is no JSON text stays a string");
    }
}
