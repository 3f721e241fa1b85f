//! The state of a session that only its running turn may use.

use std::collections::BTreeSet;

use super::options::Mode;
use super::updates::Updates;
use crate::conversation::Conversation;

/// A conversation and its state in the editor.
pub(super) struct TurnState {
    pub conversation: Conversation,
    pub updates: Updates,
    /// The tools that the person denies for the whole session.
    pub refused: BTreeSet<String>,
    pub mode: Mode,
    /// Whether the title was sent to the editor.
    pub has_title: bool,
}

impl TurnState {
    pub fn new(conversation: Conversation, updates: Updates) -> Self {
        let has_title = !conversation.info().title.is_empty();
        Self { conversation, updates, refused: BTreeSet::new(), mode: Mode::default(), has_title }
    }

    /// Whether the mode is read only.
    pub fn is_read_only(&self) -> bool {
        self.mode == Mode::Read
    }
}
