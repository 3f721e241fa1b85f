//! A message list that keeps the invariant: every call has exactly one result before the model speaks again.

use std::collections::HashSet;
use std::ops::Deref;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::error::{Error, ErrorKind, Result};

use super::{CallId, Message};

/// An immutable, shared list of messages. Cloning is O(1).
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Messages(Arc<Vec<Arc<Message>>>);

impl Messages {
    /// Returns whether both are the same list in memory.
    pub fn is_same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    /// Checks what every provider requires: each call has exactly one result, and ids are unique. O(n).
    ///
    /// # Errors
    /// `History`, with the first message that does not fit, or the calls at the end that have no results.
    pub fn check(&self) -> Result<()> {
        MessageChecker::default().check(self).map(drop)
    }
}

/// Checks lists of messages. If a list continues the previous one, only the new messages are checked.
#[derive(Debug, Default)]
pub(crate) struct MessageChecker(History);

impl MessageChecker {
    /// Checks as [`Messages::check`] does, and returns how many messages it checked.
    pub(crate) fn check(&mut self, messages: &Messages) -> Result<usize> {
        let is_same = |(checked, message): (&Arc<Message>, &Arc<Message>)| Arc::ptr_eq(checked, message);
        let checked = self.0.messages();
        if messages.len() < checked.len() || !checked.iter().zip(messages.iter()).all(is_same) {
            *self = Self::default();
        }
        let new = &messages[self.0.messages().len()..];
        new.iter().try_for_each(|message| self.0.add(Arc::clone(message)))?;
        match self.0.open_calls().next() {
            Some(call) => refuse(format!("the call {} has no result", call.id)),
            None => Ok(new.len()),
        }
    }
}

impl Deref for Messages {
    type Target = [Arc<Message>];

    fn deref(&self) -> &Self::Target {
        &self.0
    }
}

impl FromIterator<Message> for Messages {
    fn from_iter<I: IntoIterator<Item = Message>>(messages: I) -> Self {
        Self(Arc::new(messages.into_iter().map(Arc::new).collect()))
    }
}

/// A conversation in which calls and results pair: it begins with the person or a note, every call has exactly one
/// result directly after the message that made the call, and no id is used twice.
///
/// It may end with calls that have no results yet ([`open_calls`](Self::open_calls)). Then only their results can be
/// added, and [`messages`](Self::messages) must not be sent.
#[derive(Debug, Clone, Default)]
pub struct History {
    messages: Messages,
    ids: HashSet<CallId>,
    size: usize,
}

impl History {
    /// Creates an empty history.
    pub fn new() -> Self {
        Self::default()
    }

    /// Builds a history from messages, unchanged.
    ///
    /// # Errors
    /// `History`, with the first message that does not fit. [`repaired`](Self::repaired) accepts any list.
    pub fn from_messages(messages: impl IntoIterator<Item = Message>) -> Result<Self> {
        let mut history = Self::new();
        for message in messages {
            history.push(message)?;
        }
        Ok(history)
    }

    /// Adds a message at the end. Copies the list (not the messages) if another owner still holds it.
    ///
    /// # Errors
    /// `History` if the message would break the rule; then nothing is added.
    pub fn push(&mut self, message: Message) -> Result<()> {
        self.add(Arc::new(message))
    }

    fn add(&mut self, message: Arc<Message>) -> Result<()> {
        self.check(&message)?;
        self.ids.extend(message.calls().map(|call| call.id.clone()));
        self.size += message.size();
        Arc::make_mut(&mut self.messages.0).push(message);
        Ok(())
    }

    /// Leaves the images out of the last message if it is a person's, and tells the model so.
    pub(crate) fn drop_last_images(&mut self) {
        let Some(last) = self.messages.last() else { return };
        let Message::User { text, images } = &**last else { return };
        if images.is_empty() {
            return;
        }
        let text = format!("{text}\n\n[Images left out: the provider rejected the message that had them.]");
        let message = Message::User { text, images: Vec::new() };
        self.size = self.size - last.size() + message.size();
        if let Some(last) = Arc::make_mut(&mut self.messages.0).last_mut() {
            *last = Arc::new(message);
        }
    }

    /// Returns the calls at the end that have no result yet, in order.
    pub fn open_calls(&self) -> impl Iterator<Item = &super::ToolCall> {
        self.messages.last().into_iter().flat_map(|message| message.calls())
    }

    /// Returns all messages, shared.
    pub fn messages(&self) -> &Messages {
        &self.messages
    }

    /// Returns whether the history contains a call with this id.
    pub fn has_call(&self, id: &CallId) -> bool {
        self.ids.contains(id)
    }

    /// Returns the approximate size of all messages in bytes.
    pub fn size(&self) -> usize {
        self.size
    }

    /// Returns the part of [`size`](Self::size) that came after the model's last reply.
    pub(crate) fn since_reply(&self) -> usize {
        let messages = self.messages.iter().rev();
        let new = messages.take_while(|message| !matches!(***message, Message::Assistant { .. }));
        new.map(|message| message.size()).sum()
    }

    /// Returns how many calls the history contains.
    pub(crate) fn calls_made(&self) -> usize {
        self.ids.len()
    }

    /// Checks that this message may be the next one.
    fn check(&self, message: &Message) -> Result<()> {
        let open: Vec<&CallId> = self.open_calls().map(|call| &call.id).collect();
        match message {
            Message::Results { .. } if open.is_empty() => refuse("results without calls directly before them".into()),
            Message::Results { results } => {
                let given: Vec<&CallId> = results.iter().map(|result| &result.call).collect();
                if given == open {
                    return Ok(());
                }
                refuse(format!("results for {}, but the calls were {}", list(&given), list(&open)))
            }
            _ if !open.is_empty() => refuse(format!("a message before the results of {}", list(&open))),
            Message::User { .. } | Message::Note { .. } => Ok(()),
            Message::Assistant { parts } if parts.is_empty() => refuse("an assistant message without any part".into()),
            Message::Assistant { .. } if self.messages.is_empty() => {
                refuse("an assistant message at the beginning".into())
            }
            Message::Assistant { .. } => {
                let mut new = HashSet::new();
                let mut is_bad = |id: &CallId| id.0.is_empty() || self.has_call(id) || !new.insert(id.clone());
                match message.calls().find(|call| is_bad(&call.id)) {
                    Some(call) => refuse(format!("the call id {:?}, which is empty or there before", call.id.0)),
                    None => Ok(()),
                }
            }
        }
    }
}

fn refuse<T>(what: String) -> Result<T> {
    Err(Error::new(ErrorKind::History, what))
}

fn list(ids: &[&CallId]) -> String {
    ids.iter().map(|id| id.0.as_str()).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::message::{Part, Status, ToolCall, ToolResult};

    fn turn(id: &str) -> [Message; 2] {
        let call = ToolCall::new(id, "look", json!({}));
        let results = vec![ToolResult::new(&call, Status::Ok, "")];
        [Message::Assistant { parts: vec![Part::Call(call)] }, Message::Results { results }]
    }

    fn with(messages: &Messages, more: impl IntoIterator<Item = Message>) -> Messages {
        Messages(Arc::new(messages.iter().cloned().chain(more.into_iter().map(Arc::new)).collect()))
    }

    #[test]
    fn a_longer_history_is_checked_from_its_new_messages() {
        let mut checked = MessageChecker::default();
        let first = with(&Messages::default(), [Message::user("go")].into_iter().chain(turn("a")));
        assert_eq!(checked.check(&first).unwrap(), 3);
        assert_eq!(checked.check(&first).unwrap(), 0);
        let second = with(&first, turn("b"));
        assert_eq!(checked.check(&second).unwrap(), 2);
        assert!(checked.check(&with(&second, turn("a"))).is_err(), "an id of long ago");
        assert!(checked.check(&with(&second, turn("c").into_iter().take(1))).is_err(), "no result");
        assert_eq!(checked.check(&with(&second, turn("d"))).unwrap(), 7, "what was refused is no beginning");
        assert_eq!(checked.check(&first).unwrap(), 3, "a shorter one is looked at whole");
        // The same length as before, with a different message in the middle.
        let mut changed = second.to_vec();
        changed[2] = Arc::new(Message::user("forged"));
        assert!(checked.check(&Messages(Arc::new(changed))).is_err());
    }
}
