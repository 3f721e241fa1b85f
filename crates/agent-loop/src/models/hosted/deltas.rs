//! Collects the deltas of one reply: each byte of text once, calls under the tools' own names and without the nulls
//! that strict mode forces.

use std::collections::{HashMap, VecDeque};

use serde_json::Value;

use crate::message::read_arguments;
use crate::model::{Delta, Request, TextCursor};
use crate::schema::{WireNames, strict, without_added_nulls};
use crate::tool::ToolSpec;

use super::{Provider, TextDeltas, Wire};

/// The fault of a call by a program that the provider runs. Such programs run only if an extra body requests them, and
/// they would need the result in a form of their own.
const OF_PROGRAM: &str = "A program made this call, and its result cannot be returned to the program, so it did not run. \
Call the tool directly.";

/// The output of a decoder.
pub(super) struct Deltas {
    /// Deltas that were not returned yet.
    pub(super) ready: VecDeque<Delta>,
    cursor: TextCursor,
    text_deltas: TextDeltas,
    /// How many bytes of text the current event has added.
    in_event: usize,
    names: WireNames,
    /// Schemas of the tools that were sent as strict.
    strict: HashMap<String, Value>,
    /// Calls of such tools that are not complete: name and arguments.
    held: HashMap<usize, (String, String)>,
}

impl Deltas {
    pub(super) fn new(request: &Request, names: WireNames, provider: &Provider) -> Self {
        let has_strict_mode = matches!(provider.wire, Wire::OpenAiChat | Wire::OpenAiResponses);
        let is_strict = |tool: &&ToolSpec| has_strict_mode && strict(&tool.parameters).is_some();
        let strict = request.tools.iter().filter(is_strict);
        Self {
            ready: VecDeque::new(),
            cursor: TextCursor::new(),
            text_deltas: provider.text_deltas,
            in_event: 0,
            names,
            strict: strict.map(|tool| (tool.name.clone(), tool.parameters.clone())).collect(),
            held: HashMap::new(),
        }
    }

    /// Starts an event.
    pub(super) fn begin_event(&mut self) {
        self.in_event = 0;
    }

    /// Returns whether the reply has ended.
    pub(super) fn is_over(&self) -> bool {
        matches!(self.ready.back(), Some(Delta::End(_)))
    }

    /// Returns how many bytes of text have arrived.
    pub(super) fn position(&self) -> usize {
        self.cursor.bytes()
    }

    /// Adds a piece of streamed text.
    pub(super) fn text(&mut self, text: &str) {
        let begin = match self.text_deltas {
            TextDeltas::Incremental => self.position(),
            TextDeltas::Cumulative => self.in_event,
        };
        self.in_event += text.len();
        self.text_at(begin, text);
    }

    /// Adds text that starts at this byte of the reply's text; only the part beyond the position is new.
    pub(super) fn text_at(&mut self, begin: usize, text: &str) {
        match self.cursor.new_suffix(begin, text) {
            "" => {}
            new => self.ready.push_back(Delta::Text { text: new.into() }),
        }
    }

    pub(super) fn reasoning(&mut self, text: &str, opaque: Option<Value>) {
        if !text.is_empty() || opaque.is_some() {
            self.ready.push_back(Delta::Reasoning { text: text.into(), opaque });
        }
    }

    /// Starts a call.
    pub(super) fn call_start(&mut self, index: usize, id: &Value, name: &Value) {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_string();
        let name = self.names.original(&text(name));
        if self.strict.contains_key(&name) {
            self.held.insert(index, (name.clone(), String::new()));
        }
        self.ready.push_back(Delta::CallStart { index, id: text(id), name });
    }

    pub(super) fn call_arguments(&mut self, index: usize, text: &str) {
        match self.held.get_mut(&index) {
            Some((_, arguments)) => arguments.push_str(text),
            None if text.is_empty() => {}
            None => self.ready.push_back(Delta::CallArguments { index, text: text.into() }),
        }
    }

    pub(super) fn call_end(&mut self, index: usize, opaque: Option<Value>) {
        self.release(index);
        self.ready.push_back(Delta::CallEnd { index, opaque });
    }

    /// Ends a call that a program at the provider made, with the fault that says so.
    pub(super) fn call_of_program(&mut self, index: usize, arguments: String) {
        self.held.remove(&index);
        self.ready.push_back(Delta::CallFault { index, fault: OF_PROGRAM.into(), raw: arguments });
    }

    /// Adds any other delta.
    pub(super) fn push(&mut self, delta: Delta) {
        if let Delta::End(_) = delta {
            // Calls that never ended keep their partial arguments, which the fault quotes.
            let mut open: Vec<usize> = self.held.keys().copied().collect();
            open.sort_unstable();
            open.into_iter().for_each(|index| self.release(index));
        }
        self.ready.push_back(delta);
    }

    /// Emits the arguments of a held call, without the nulls that strict mode forced.
    fn release(&mut self, index: usize) {
        let Some((name, text)) = self.held.remove(&index) else { return };
        let text = match (read_arguments(&text), self.strict.get(&name)) {
            (Ok(mut arguments), Some(schema)) => {
                let written = arguments.clone();
                without_added_nulls(schema, &mut arguments);
                if arguments == written { text } else { arguments.to_string() }
            }
            // Invalid JSON stays unchanged.
            _ => text,
        };
        self.ready.push_back(Delta::CallArguments { index, text });
    }
}

/// Returns the first alternative, because only one was requested and some servers send several.
pub(super) fn first_of(alternatives: &Value) -> &Value {
    let mut alternatives = alternatives.as_array().into_iter().flatten();
    alternatives.find(|one| one["index"].as_u64().unwrap_or(0) == 0).unwrap_or(&Value::Null)
}
