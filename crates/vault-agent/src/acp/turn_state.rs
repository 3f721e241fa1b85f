//! What only the turn of a session that is under way may touch.

use std::collections::BTreeSet;

use super::options::Mode;
use super::updates::Updates;
use crate::conversation::Conversation;

/// A conversation, and what the editor knows of it.
pub(super) struct TurnState {
    pub conversation: Conversation,
    pub updates: Updates,
    /// Tools that the person refuses for the session.
    pub refused: BTreeSet<String>,
    pub mode: Mode,
    /// Whether the editor knows the title.
    pub has_title: bool,
}

impl TurnState {
    pub fn new(conversation: Conversation, updates: Updates) -> Self {
        let has_title = !conversation.info().title.is_empty();
        Self { conversation, updates, refused: BTreeSet::new(), mode: Mode::default(), has_title }
    }

    /// Whether the person has the session read only.
    pub fn is_read_only(&self) -> bool {
        self.mode == Mode::Read
    }
}
