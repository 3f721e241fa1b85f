//! Deduplicates the output texts of OpenAI's Responses API by their position.
//!
//! The API sends each text five times: as deltas, then whole as the text, the part, the item and the response.

use serde_json::Value;

use crate::model::{Delta, TextCursor};

/// The texts of one response.
#[derive(Debug, Default)]
pub(super) struct OutputTexts {
    cursor: TextCursor,
    begun: Vec<TextStart>,
}

/// A text that has begun. Some servers say that every item is at index 0 of the output, some give items no id.
#[derive(Debug)]
struct TextStart {
    item_id: String,
    index: u64,
    part: u64,
    begin: usize,
    /// Whether its item is over; another of its index is another text then.
    is_over: bool,
}

impl OutputTexts {
    /// A piece of a text.
    pub(super) fn piece(&mut self, event: &Value, text: &str) -> Option<Delta> {
        self.begin(&event["item_id"], event);
        self.cursor.new_suffix(self.cursor.bytes(), text);
        (!text.is_empty()).then(|| Delta::Text { text: text.into() })
    }

    /// The whole of a text.
    pub(super) fn whole(&mut self, event: &Value, text: &Value) -> Option<Delta> {
        let begin = self.begin(&event["item_id"], event);
        self.cumulative(begin, text.as_str().unwrap_or_default())
    }

    /// A whole item, which is over.
    pub(super) fn item(&mut self, event: &Value, item: &Value) -> Vec<Delta> {
        let mut deltas = Vec::new();
        for (part, text) in texts_of(item).enumerate() {
            let begin = self.begin_at(&item["id"], output_index(event), part as u64);
            deltas.extend(self.cumulative(begin, text));
        }
        let (id, index) = (item["id"].as_str().unwrap_or_default(), output_index(event));
        for text in &mut self.begun {
            text.is_over |= if id.is_empty() { text.index == index } else { text.item_id == id };
        }
        deltas
    }

    /// The whole response.
    pub(super) fn response(&mut self, response: &Value) -> Option<Delta> {
        let items = response["output"].as_array().into_iter().flatten();
        let text: String = items.flat_map(texts_of).collect();
        self.cumulative(0, &text)
    }

    fn cumulative(&mut self, begin: usize, text: &str) -> Option<Delta> {
        let is_new = !self.cursor.new_suffix(begin, text).is_empty();
        is_new.then(|| Delta::CumulativeText { begin, text: text.into() })
    }

    fn begin(&mut self, item_id: &Value, event: &Value) -> usize {
        self.begin_at(item_id, output_index(event), event["content_index"].as_u64().unwrap_or(0))
    }

    /// Where a text begins: here, if it has not begun.
    fn begin_at(&mut self, item_id: &Value, index: u64, part: u64) -> usize {
        let item_id = item_id.as_str().unwrap_or_default();
        let by_id = |text: &&TextStart| !item_id.is_empty() && text.item_id == item_id && text.part == part;
        let by_place = |text: &&TextStart| !text.is_over && text.index == index && text.part == part;
        let known = self.begun.iter().rfind(by_id).or_else(|| self.begun.iter().rfind(by_place));
        if let Some(known) = known {
            return known.begin;
        }
        let begin = self.cursor.bytes();
        self.begun.push(TextStart { item_id: item_id.into(), index, part, begin, is_over: false });
        begin
    }
}

/// Where an event's item stands in the output.
pub(super) fn output_index(event: &Value) -> u64 {
    event["output_index"].as_u64().unwrap_or(0)
}

/// The texts of an item that is a message; a refusal is one.
fn texts_of(item: &Value) -> impl Iterator<Item = &str> {
    let parts = item["content"].as_array().into_iter().flatten().filter(|_| item["type"] == "message");
    parts.filter_map(|part| part["text"].as_str().or_else(|| part["refusal"].as_str()))
}

/// Whether an item is a message that declines.
pub(super) fn is_refusal(item: &Value) -> bool {
    item["type"] == "message"
        && item["content"].as_array().into_iter().flatten().any(|part| part["refusal"].is_string())
}
