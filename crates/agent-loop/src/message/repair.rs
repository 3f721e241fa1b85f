//! Repairs any list of messages: calls without results get one, results without calls become notes.

use std::collections::HashSet;
use std::fmt;

use serde::{Deserialize, Serialize};

use super::{CallId, History, Message, Part, Status, ToolCall, ToolResult};

/// What was changed to make a history valid.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Repair {
    /// A call had no result; it got one that says so.
    MissingResult(CallId),
    /// A result had no call; it was kept as the text of a note.
    OrphanResult(CallId),
    /// A second result for one call; it was dropped, the first one counts.
    SecondResult(CallId),
    /// An id was used again; the later call has the second id now.
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

fn repair(messages: impl IntoIterator<Item = Message>) -> (History, Vec<Repair>) {
    let (mut history, mut repairs) = (History::new(), Vec::new());
    let mut open: Vec<Open> = Vec::new();
    let mut orphans: Vec<String> = Vec::new();
    for message in messages {
        if let Message::Results { results } = message {
            orphans.extend(take_results(&mut open, results, &mut repairs));
            // Some writers give each result a message of its own; the calls stay open until something else comes.
            if open.iter().all(|call| call.result.is_some()) {
                close(&mut history, &mut open, &mut orphans, &mut repairs);
            }
            continue;
        }
        close(&mut history, &mut open, &mut orphans, &mut repairs);
        match message {
            Message::Assistant { parts } if parts.is_empty() => repairs.push(Repair::EmptyMessage),
            Message::Assistant { mut parts } => {
                if history.messages().is_empty() {
                    repairs.push(Repair::NoBeginning);
                    add(&mut history, Message::note("(the beginning of this conversation is not there)"));
                }
                rename(&history, &mut parts, &mut open, &mut repairs);
                add(&mut history, Message::Assistant { parts });
            }
            other => add(&mut history, other),
        }
    }
    close(&mut history, &mut open, &mut orphans, &mut repairs);
    (history, repairs)
}

/// A call that waits for its result, under the id its result will name.
struct Open {
    written: CallId,
    call: ToolCall,
    result: Option<ToolResult>,
}

/// Gives results to the open calls they name; what is left over comes back as text.
fn take_results(open: &mut [Open], results: Vec<ToolResult>, repairs: &mut Vec<Repair>) -> Vec<String> {
    let mut orphans = Vec::new();
    for mut result in results {
        let of_this = |call: &&mut Open| call.written == result.call;
        if let Some(call) = open.iter_mut().filter(|call| call.result.is_none()).find(of_this) {
            result.call = call.call.id.clone();
            call.result = Some(result);
        } else if open.iter_mut().any(|call| of_this(&call)) {
            repairs.push(Repair::SecondResult(result.call));
        } else {
            orphans.push(format!("(a result of {}, whose call is not there: {})", result.name, result.text()));
            repairs.push(Repair::OrphanResult(result.call));
        }
    }
    orphans
}

/// Adds the results of the open calls, those that are lost included; then, since nothing may stand between a call and
/// its result, what is left of results without calls.
fn close(history: &mut History, open: &mut Vec<Open>, orphans: &mut Vec<String>, repairs: &mut Vec<Repair>) {
    let results = open.drain(..).map(|Open { call, result, .. }| {
        result.unwrap_or_else(|| {
            repairs.push(Repair::MissingResult(call.id.clone()));
            ToolResult::new(&call, Status::Cancelled, LOST)
        })
    });
    let results: Vec<ToolResult> = results.collect();
    if !results.is_empty() {
        add(history, Message::Results { results });
    }
    if !orphans.is_empty() {
        add(history, Message::note(std::mem::take(orphans).join("\n")));
    }
}

/// Gives every call an id of its own and opens it.
fn rename(history: &History, parts: &mut [Part], open: &mut Vec<Open>, repairs: &mut Vec<Repair>) {
    let mut here: HashSet<CallId> = HashSet::new();
    for part in parts {
        let Part::Call(call) = part else { continue };
        let written = call.id.clone();
        call.id = history.free_id(&written, &here);
        if call.id != written {
            repairs.push(Repair::RenamedCall(written.clone(), call.id.clone()));
        }
        here.insert(call.id.clone());
        open.push(Open { written, call: call.clone(), result: None });
    }
}

impl History {
    /// Makes a valid history of any list of messages, and says what it had to change. What fits stays as it is.
    pub fn repaired(messages: impl IntoIterator<Item = Message>) -> (Self, Vec<Repair>) {
        repair(messages)
    }

    /// `wanted` if it is free here and not in `taken`, else the next free id made from it; never empty.
    pub(crate) fn free_id(&self, wanted: &CallId, taken: &HashSet<CallId>) -> CallId {
        let is_free = |id: &CallId| !self.has_call(id) && !taken.contains(id);
        if !wanted.0.is_empty() && is_free(wanted) {
            return wanted.clone();
        }
        let stem = if wanted.0.is_empty() { "call" } else { &wanted.0 };
        // From the number of calls on, so that a long conversation of equal ids stays linear.
        (self.calls_made() + taken.len() + 1..)
            .map(|number| CallId(format!("{stem}_{number}")))
            .find(is_free)
            .expect("there are more numbers than calls")
    }
}

fn add(history: &mut History, message: Message) {
    history.push(message).expect("the repair leaves nothing that a history refuses");
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
        let (history, repairs) = repair(messages);
        assert_eq!(repairs, [Repair::OrphanResult("c9".into())]);
        let Message::Results { results } = &*history.messages()[2] else { panic!("{:?}", history.messages()) };
        assert!(results.iter().all(|result| result.status == Status::Ok && result.text() == result.call.0));
        assert!(history.messages()[3].text().contains("c9"));
    }
}
