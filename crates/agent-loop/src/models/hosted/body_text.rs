//! The body of a request, written as text while its messages are created, because the value tree of a long conversation
//! needs several times the memory of its text.

use serde_json::Value;

use crate::raw_json::to_text;

/// How many messages at the end can still be changed.
const OPEN: usize = 4;

/// An object whose last field is the list of messages.
#[derive(Debug)]
pub(super) struct BodyText {
    text: String,
    open: Vec<Value>,
}

impl BodyText {
    /// Creates a body with the other fields, the name of the list, and its approximate length in bytes.
    pub(super) fn new(fields: &Value, list: &str, size: usize) -> Self {
        let mut text = to_text(fields);
        text.pop();
        text.reserve(size);
        if text.len() > 1 {
            text.push(',');
        }
        text.push_str(&format!("\"{list}\":["));
        Self { text, open: Vec::new() }
    }

    pub(super) fn push(&mut self, message: Value) {
        if self.open.len() == OPEN {
            let message = self.open.remove(0);
            self.write(&message);
        }
        self.open.push(message);
    }

    /// Returns the last messages, at most four.
    pub(super) fn open(&mut self) -> &mut [Value] {
        &mut self.open
    }

    pub(super) fn finish(mut self) -> String {
        for message in std::mem::take(&mut self.open) {
            self.write(&message);
        }
        self.text.push_str("]}");
        self.text
    }

    fn write(&mut self, message: &Value) {
        if !self.text.ends_with('[') {
            self.text.push(',');
        }
        self.text.push_str(&to_text(message));
    }
}

impl Extend<Value> for BodyText {
    fn extend<T: IntoIterator<Item = Value>>(&mut self, messages: T) {
        messages.into_iter().for_each(|message| self.push(message));
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_last_messages_can_be_changed() {
        for (fields, count) in [(json!({}), 0), (json!({}), 1), (json!({"model": "m"}), 4), (json!({"model": "m"}), 7)]
        {
            let mut body = BodyText::new(&fields, "messages", 0);
            body.extend((0..count).map(|n| json!({"role": "user", "content": n})));
            body.open().iter_mut().for_each(|message| message["role"] = json!("model"));
            let role = |n| if n + OPEN < count { "user" } else { "model" };
            let messages: Vec<Value> = (0..count).map(|n| json!({"role": role(n), "content": n})).collect();
            let mut expected = fields.clone();
            expected["messages"] = messages.into();
            assert_eq!(body.finish(), expected.to_string());
        }
    }
}
