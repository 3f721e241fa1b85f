//! Deduplicates the output texts of OpenAI's Responses API by their position.
//!
//! The API sends each text five times: as deltas, then completely as the text, the part, the item and the response.

use serde_json::Value;

use super::deltas::Deltas;

/// The texts of one response that have started.
#[derive(Debug, Default)]
pub(super) struct OutputTexts(Vec<TextStart>);

/// The start of a text. Some servers put every item at index 0 of the output, some give items no id.
#[derive(Debug)]
struct TextStart {
    item_id: String,
    index: u64,
    part: u64,
    begin: usize,
    /// Whether its item is complete. A later text of the same index is a different text.
    is_over: bool,
}

impl OutputTexts {
    /// Returns where the text of an event starts, which is the current position if the text is new.
    pub(super) fn begin(&mut self, event: &Value, out: &Deltas) -> usize {
        let part = event["content_index"].as_u64().unwrap_or(0);
        self.begin_at(&event["item_id"], output_index(event), part, out)
    }

    /// Handles a complete item.
    pub(super) fn item(&mut self, index: u64, item: &Value, out: &mut Deltas) {
        let id = item["id"].as_str().unwrap_or_default();
        let has_id = self.0.iter().any(|text| !id.is_empty() && text.item_id == id);
        let is_of_item = |text: &&TextStart| {
            if has_id { text.item_id == id } else { text.index == index && !text.is_over }
        };
        // They are matched by order, because the position of a part in the item does not always match that in its
        // deltas.
        let begun: Vec<usize> = self.0.iter().filter(is_of_item).map(|text| text.begin).collect();
        for (part, text) in texts_of(item).enumerate() {
            let begin = begun.get(part).copied();
            out.text_at(begin.unwrap_or_else(|| self.begin_at(&item["id"], index, part as u64, out)), text);
        }
        for text in &mut self.0 {
            text.is_over |= if id.is_empty() { text.index == index } else { text.item_id == id };
        }
    }

    fn begin_at(&mut self, item_id: &Value, index: u64, part: u64, out: &Deltas) -> usize {
        let item_id = item_id.as_str().unwrap_or_default();
        let by_id = |text: &&TextStart| !item_id.is_empty() && text.item_id == item_id && text.part == part;
        let by_position = |text: &&TextStart| !text.is_over && text.index == index && text.part == part;
        if let Some(known) = self.0.iter().rfind(by_id).or_else(|| self.0.iter().rfind(by_position)) {
            return known.begin;
        }
        let begin = out.position();
        self.0.push(TextStart { item_id: item_id.into(), index, part, begin, is_over: false });
        begin
    }
}

/// Returns the position of an event's item in the output.
pub(super) fn output_index(event: &Value) -> u64 {
    event["output_index"].as_u64().unwrap_or(0)
}

/// Returns the texts of an item that is a message. A refusal is also a text.
pub(super) fn texts_of(item: &Value) -> impl Iterator<Item = &str> {
    let parts = item["content"].as_array().into_iter().flatten().filter(|_| item["type"] == "message");
    parts.filter_map(|part| part["text"].as_str().or_else(|| part["refusal"].as_str()))
}

/// Returns whether an item is a message that refuses.
pub(super) fn is_refusal(item: &Value) -> bool {
    item["type"] == "message"
        && item["content"].as_array().into_iter().flatten().any(|part| part["refusal"].is_string())
}
