//! JSON values as their texts, most of them on the disk: a loop has thousands, and few are ever looked into.

use std::fmt;

use serde::ser::Error as _;
use serde::{Deserialize, Serialize, Serializer};
use serde_json::Value;
use serde_json::value::RawValue;

use crate::content::Content;
use crate::error::{Error, ErrorKind, Result};
use crate::json_once::json_once;

/// A JSON value that takes the room of its text, or none. Serializes as the value.
#[derive(Clone, PartialEq)]
pub struct Packed(Content);

/// The answer of a loop.
#[derive(Deserialize)]
struct Answers<'a> {
    #[serde(borrow)]
    items: Vec<&'a RawValue>,
}

/// The answer of a loop as it grows.
pub(super) struct Growing {
    text: String,
    is_empty: bool,
}

impl Packed {
    pub(super) fn of(value: &Value) -> Self {
        Self(value.to_string().into())
    }

    /// The value.
    ///
    /// # Errors
    /// When it rests on the disk and cannot be read.
    pub fn value(&self) -> Result<Value> {
        parsed(&self.text()?)
    }

    /// The value, or why it cannot be read, for those who only show it.
    pub(crate) fn shown(&self) -> Value {
        self.value().unwrap_or_else(|error| Value::String(error.to_string()))
    }

    /// Has it rest.
    pub(super) fn at_rest(mut self, rest: impl FnOnce(&mut Content)) -> Self {
        rest(&mut self.0);
        self
    }

    /// The answer of a loop with each of its items changed.
    pub(super) fn with_items(&self, mut change: impl FnMut(&mut Value)) -> Result<Self> {
        let text = self.text()?;
        let Answers { items } = serde_json::from_str(&text).map_err(|error| no_json(&error))?;
        let mut changed = Growing::new(items.len());
        for item in items {
            let mut item = parsed(item.get())?;
            change(&mut item);
            changed.push(&item);
        }
        Ok(changed.finished())
    }

    fn text(&self) -> Result<String> {
        self.0.text()?.ok_or_else(|| Error::new(ErrorKind::Io, "an answer that was kept is no text"))
    }
}

fn parsed(text: &str) -> Result<Value> {
    json_once(text).map_err(|error| no_json(&error))
}

fn no_json(error: &serde_json::Error) -> Error {
    Error::new(ErrorKind::Io, format!("an answer that was kept is no JSON: {error}"))
}

impl Growing {
    /// Of so many items.
    pub(super) fn new(count: usize) -> Self {
        Self { text: format!("{{\"count\":{count},\"items\":["), is_empty: true }
    }

    pub(super) fn push(&mut self, item: &Value) {
        if !self.is_empty {
            self.text.push(',');
        }
        self.is_empty = false;
        self.text.push_str(&item.to_string());
    }

    pub(super) fn finished(mut self) -> Packed {
        self.text.push_str("]}");
        Packed(self.text.into())
    }
}

impl Serialize for Packed {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.value().map_err(S::Error::custom)?.serialize(serializer)
    }
}

impl fmt::Debug for Packed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    #[test]
    fn packed_or_not_it_is_the_same_value() {
        for value in [
            json!(null),
            json!("a \"b\"\n\u{7f}é"),
            json!([1, -2.5, true, u64::MAX, i64::MIN]),
            json!({ "b": {}, "a": [null] }),
            // Means something to serde_json's own reader.
            json!({ "$serde_json::private::RawValue": "[1, 2" }),
        ] {
            let packed = Packed::of(&value);
            assert_eq!(packed.value().unwrap(), value);
            assert_eq!(serde_json::to_string(&packed).unwrap(), value.to_string());
            assert_eq!(serde_json::to_value(&packed).unwrap(), value);
        }
    }

    proptest! {
        #[test]
        fn numbers_keep_their_last_digit(number in any::<f64>()) {
            let value = json!({ "items": [number] });
            prop_assert_eq!(Packed::of(&value).value().unwrap(), value);
        }
    }

    #[test]
    fn answers_grow_and_change() {
        let mut growing = Growing::new(2);
        growing.push(&json!({ "at": null }));
        growing.push(&json!("]"));
        let packed = growing.finished();
        assert_eq!(packed.value().unwrap(), json!({ "count": 2, "items": [{ "at": null }, "]"] }));
        let changed = packed.with_items(|item| *item = json!([item.take()])).unwrap();
        assert_eq!(changed.value().unwrap(), json!({ "count": 2, "items": [[{ "at": null }], ["]"]] }));
        assert_eq!(Growing::new(0).finished().value().unwrap(), json!({ "count": 0, "items": [] }));
    }
}
