//! The reasoning of a message of Chat Completions, which is returned in the fields in which it arrived.

use serde_json::{Map, Value, json};

/// Fields that contain text. In a stream each piece adds text.
pub(super) const TEXTS: [&str; 2] = ["reasoning_content", "reasoning"];

/// OpenRouter's field: a list of texts, summaries and encrypted blocks, some of them signed.
pub(super) const DETAILS: &str = "reasoning_details";

/// The field that stores Mistral's thoughts, which are parts of the content and are returned as such.
pub(super) const THOUGHTS: &str = "thoughts";

/// Returns Mistral's thoughts, which are parts of the content.
pub(super) fn thinking_of(message: &Value) -> String {
    let parts = message["content"].as_array().into_iter().flatten().filter(|part| part["type"] == "thinking");
    let texts = parts.filter_map(|part| part["thinking"].as_array()).flatten();
    texts.filter_map(|text| text["text"].as_str()).collect()
}

/// The fields of one message.
#[derive(Debug, Default)]
pub(super) struct ReasoningFields(pub(super) Map<String, Value>);

impl ReasoningFields {
    /// Adds the fields of a message, of a piece of one, or of an opaque value that was created from them.
    pub(super) fn add(&mut self, message: &Value) {
        for field in TEXTS {
            if let Some(text) = message[field].as_str() {
                match self.0.get_mut(field) {
                    Some(Value::String(all)) => all.push_str(text),
                    _ => drop(self.0.insert(field.into(), text.into())),
                }
            }
        }
        let kept = message[THOUGHTS].as_array().into_iter().flatten();
        let came = message["content"].as_array().into_iter().flatten().filter(|part| part["type"] == "thinking");
        kept.chain(came).for_each(|part| self.add_thoughts(part));
        for detail in message[DETAILS].as_array().into_iter().flatten() {
            match self.0.get_mut(DETAILS) {
                Some(Value::Array(all)) => add_detail(all, detail),
                _ => drop(self.0.insert(DETAILS.into(), json!([detail]))),
            }
        }
    }

    /// Joins the pieces of one thought; `closed` and other fields are those of the last piece.
    fn add_thoughts(&mut self, part: &Value) {
        let all = self.0.entry(THOUGHTS).or_insert_with(|| json!([{"type": "thinking", "thinking": []}]));
        let Some(thought) = all[0].as_object_mut() else { return };
        for (name, value) in part.as_object().into_iter().flatten().filter(|(name, _)| *name != "thinking") {
            thought.insert(name.clone(), value.clone());
        }
        let Some(texts) = thought["thinking"].as_array_mut() else { return };
        for text in part["thinking"].as_array().into_iter().flatten() {
            match (texts.last_mut().and_then(|last| last.get_mut("text")), text["text"].as_str()) {
                (Some(Value::String(last)), Some(more)) => last.push_str(more),
                _ => texts.push(text.clone()),
            }
        }
    }

    /// Returns whether all fields are empty.
    pub(super) fn are_empty(&self) -> bool {
        self.0.values().all(|value| value == "")
    }

    /// Returns the fields that a reply stores, and clears them.
    pub(super) fn take(&mut self, provider: &str) -> Value {
        let mut fields = std::mem::take(&mut self.0);
        fields.insert("from".into(), provider.into());
        Value::Object(fields)
    }
}

/// Adds a detail, which may be the next piece of the last one. The index of pieces cannot distinguish them, because in
/// streams all have the same. A signature ends a detail.
fn add_detail(all: &mut Vec<Value>, detail: &Value) {
    let is_piece = |last: &&mut Value| {
        let is_text = detail["type"] == "reasoning.text" || detail["type"] == "reasoning.summary";
        let same = |field: &str| last[field].is_null() || detail[field].is_null() || last[field] == detail[field];
        let is_signed = last["signature"].as_str().is_some_and(|signature| !signature.is_empty());
        is_text && last["type"] == detail["type"] && !is_signed && same("index") && same("id")
    };
    let last = all.last_mut().filter(is_piece).and_then(Value::as_object_mut);
    let (Some(last), Some(fields)) = (last, detail.as_object()) else { return all.push(detail.clone()) };
    for (name, value) in fields.iter().filter(|(_, value)| !value.is_null()) {
        match (name.as_str(), last.get_mut(name), value) {
            ("text" | "summary", Some(Value::String(all)), Value::String(more)) => all.push_str(more),
            _ => drop(last.insert(name.clone(), value.clone())),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn text(text: &str) -> Value {
        json!({"type": "reasoning.text", "text": text, "format": "anthropic-claude-v1", "index": 0})
    }

    fn details<'d>(pieces: impl IntoIterator<Item = &'d Value>) -> Value {
        let mut fields = ReasoningFields::default();
        pieces.into_iter().for_each(|piece| fields.add(&json!({"reasoning_details": [piece]})));
        fields.0[DETAILS].clone()
    }

    #[test]
    fn a_signature_that_comes_last_belongs_to_the_text_before_it_and_ends_it() {
        let signature = |by: &str| json!({"type": "reasoning.text", "text": null, "signature": by, "index": 0});
        let encrypted = |data: &str| json!({"type": "reasoning.encrypted", "data": data, "index": 0});
        let signed = |text: &str, by: &str| json!({"type": "reasoning.text", "text": text, "signature": by, "format": "anthropic-claude-v1", "index": 0});
        let pieces =
            [text("Let"), text(" me"), signature("s"), text("So"), signature("t"), encrypted("x"), encrypted("y")];
        let expected = json!([signed("Let me", "s"), signed("So", "t"), encrypted("x"), encrypted("y")]);
        assert_eq!(details(&pieces), expected);
        // An empty signature counts as missing.
        let begun =
            json!({"type": "reasoning.text", "text": "", "signature": "", "format": "anthropic-claude-v1", "index": 0});
        assert_eq!(details(&[begun, text("Let me"), signature("s")]), json!([signed("Let me", "s")]));
        let of_other_items = [
            json!({"type": "reasoning.summary", "summary": "a", "id": "1"}),
            json!({"type": "reasoning.summary", "summary": "b", "id": "2"}),
        ];
        assert_eq!(details(&of_other_items), json!(of_other_items));
    }

    proptest! {
        #[test]
        fn pieces_of_any_size_make_the_same_fields(said in "\\PC{1,40}", size in 1_usize..9) {
            let letters: Vec<char> = said.chars().collect();
            let pieces: Vec<String> = letters.chunks(size).map(|piece| piece.iter().collect()).collect();
            let mut fields = ReasoningFields::default();
            for piece in &pieces {
                fields.add(&json!({"reasoning": piece, "reasoning_content": piece, "reasoning_details": [text(piece)]}));
            }
            prop_assert!(!fields.are_empty());
            let expected = json!({"reasoning": said, "reasoning_content": said, "reasoning_details": [text(&said)], "from": "p"});
            let opaque = fields.take("p");
            prop_assert_eq!(&opaque, &expected);
            // The value is read like this when it is sent back.
            fields.add(&opaque);
            prop_assert_eq!(fields.take("p"), expected);
        }
    }
}
