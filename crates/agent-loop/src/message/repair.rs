//! Repairs any list of messages: calls without results get one, results without calls become notes.

use std::collections::HashSet;
use std::fmt;

use serde::{Deserialize, Serialize};

use super::{CallId, History, Message, Part, Status, ToolCall, ToolResult};

/// A change that makes a history valid.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Repair {
    /// A call had no result. It got one that tells the model so.
    MissingResult(CallId),
    /// A result had no call. It was kept as the text of a note.
    OrphanResult(CallId),
    /// A call had a second result, which was dropped.
    SecondResult(CallId),
    /// An id was used again. The later call now has the second id.
    RenamedCall(CallId, CallId),
    /// An assistant message without parts was dropped.
    EmptyMessage,
    /// The conversation began with the model; a note was put before it.
    NoBeginning,
}

impl fmt::Display for Repair {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::MissingResult(id) => write!(f, "the call {id} had no result; it got one that says so"),
            Self::OrphanResult(id) => write!(f, "the result of {id} had no call; it was kept as a note"),
            Self::SecondResult(id) => write!(f, "the call {id} had a second result; it was dropped"),
            Self::RenamedCall(old, new) => write!(f, "the call id {old} was used again; it is {new} now"),
            Self::EmptyMessage => f.write_str("an empty assistant message was dropped"),
            Self::NoBeginning => f.write_str("the conversation began with the model; a note was put before it"),
        }
    }
}

/// The result of a call whose own result was lost.
const LOST: &str = "No result was recorded. The call may or may not have taken effect: check before repeating it.";

/// A history that is being repaired.
#[derive(Default)]
struct Repairer {
    history: History,
    repairs: Vec<Repair>,
    /// The calls of the last message.
    open: Vec<OpenCall>,
    /// Results without calls, as text.
    orphans: Vec<String>,
}

/// A call without a result, under the id that its result will have.
struct OpenCall {
    written: CallId,
    call: ToolCall,
    result: Option<ToolResult>,
}

impl Repairer {
    fn take(&mut self, message: Message) {
        if let Message::Results { results } = message {
            results.into_iter().for_each(|result| self.take_result(result));
            // Some clients send each result in its own message; the calls stay open until another kind of message
            // arrives.
            if self.open.iter().all(|call| call.result.is_some()) {
                self.close();
            }
            return;
        }
        self.close();
        match message {
            Message::Assistant { parts } if parts.is_empty() => self.repairs.push(Repair::EmptyMessage),
            Message::Assistant { mut parts } => {
                if self.history.messages().is_empty() {
                    self.repairs.push(Repair::NoBeginning);
                    self.add(Message::note("(the beginning of this conversation is not there)"));
                }
                for (written, call) in self.history.free_ids(&mut parts) {
                    if call.id != written {
                        self.repairs.push(Repair::RenamedCall(written.clone(), call.id.clone()));
                    }
                    self.open.push(OpenCall { written, call, result: None });
                }
                self.add(Message::Assistant { parts });
            }
            other => self.add(other),
        }
    }

    /// Adds a result to the open call that it names.
    fn take_result(&mut self, mut result: ToolResult) {
        let mut of_this = self.open.iter_mut().filter(|call| call.written == result.call).peekable();
        let is_known = of_this.peek().is_some();
        if let Some(call) = of_this.find(|call| call.result.is_none()) {
            result.call = call.call.id.clone();
            call.result = Some(result);
        } else if is_known {
            self.repairs.push(Repair::SecondResult(result.call));
        } else {
            let text = format!("(a result of {}, whose call is not there: {})", result.name, result.text());
            self.orphans.push(text);
            self.repairs.push(Repair::OrphanResult(result.call));
        }
    }

    /// Adds the results of the open calls, with a substitute for each lost result. The results without calls follow
    /// after them, because no message may come between a call and its result.
    fn close(&mut self) {
        let results = self.open.drain(..).map(|OpenCall { call, result, .. }| {
            result.unwrap_or_else(|| {
                self.repairs.push(Repair::MissingResult(call.id.clone()));
                ToolResult::new(&call, Status::Cancelled, LOST)
            })
        });
        let results: Vec<ToolResult> = results.collect();
        if !results.is_empty() {
            self.add(Message::Results { results });
        }
        if !self.orphans.is_empty() {
            let text = std::mem::take(&mut self.orphans).join("\n");
            self.add(Message::note(text));
        }
    }

    fn add(&mut self, message: Message) {
        self.history.push(message).expect("the repair leaves nothing that a history refuses");
    }
}

impl History {
    /// Builds a valid history from any list of messages, and returns the changes. Valid messages stay unchanged.
    pub fn repaired(messages: impl IntoIterator<Item = Message>) -> (Self, Vec<Repair>) {
        let mut repairing = Repairer::default();
        messages.into_iter().for_each(|message| repairing.take(message));
        repairing.close();
        (repairing.history, repairing.repairs)
    }

    /// Gives every call an id that no other call of the conversation has, and returns the calls, each with its former
    /// id.
    pub(crate) fn free_ids(&self, parts: &mut [Part]) -> Vec<(CallId, ToolCall)> {
        let (mut taken, mut calls) = (HashSet::new(), Vec::new());
        for part in parts {
            if let Part::Call(call) = part {
                let id = self.free_id(&call.id, &taken);
                let written = std::mem::replace(&mut call.id, id);
                taken.insert(call.id.clone());
                calls.push((written, call.clone()));
            }
        }
        calls
    }

    /// Returns `wanted` if it is free here and not in `taken`, else the next free id derived from it; never empty.
    fn free_id(&self, wanted: &CallId, taken: &HashSet<CallId>) -> CallId {
        let is_free = |id: &CallId| !self.has_call(id) && !taken.contains(id);
        if !wanted.0.is_empty() && is_free(wanted) {
            return wanted.clone();
        }
        let stem = if wanted.0.is_empty() { "call" } else { &wanted.0 };
        // The search starts at the number of calls, so that a long conversation of equal ids stays linear.
        (self.calls_made() + taken.len() + 1..)
            .map(|number| CallId(format!("{stem}_{number}")))
            .find(is_free)
            .expect("there are more numbers than calls")
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_orphan_result_does_not_affect_other_calls() {
        let call = |id: &str| ToolCall::new(id, "look", json!({}));
        let output = |id: &str| Message::Results { results: vec![ToolResult::new(&call(id), Status::Ok, id)] };
        let parts = vec![Part::Call(call("c1")), Part::Call(call("c2"))];
        let messages = [Message::user("hi"), Message::Assistant { parts }, output("c1"), output("c9"), output("c2")];
        let (history, repairs) = History::repaired(messages);
        assert_eq!(repairs, [Repair::OrphanResult("c9".into())]);
        let Message::Results { results } = &*history.messages()[2] else { panic!("{:?}", history.messages()) };
        assert!(results.iter().all(|result| result.status == Status::Ok && result.text() == result.call.0));
        assert!(history.messages()[3].text().contains("c9"));
    }
}
