//! When a conversation is compacted: above the limit of the options, after the model rejected it as too long, on request.

use serde::{Deserialize, Serialize};

use crate::error::Failure;

use super::Run;

#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct CompactionState {
    /// Attempts since the model's last reply.
    pub(super) tries: u32,
    /// The model refused the last request as too long.
    pub(super) forced: Option<Failure>,
    /// The program asked for compaction.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub(super) wanted: bool,
}

impl CompactionState {
    /// The most compactions in a row before the model is asked again.
    pub(super) const MOST: u32 = 2;
}

impl Run {
    /// Returns whether the history must be compacted before the next request.
    pub(super) fn wants_compaction(&self) -> bool {
        let CompactionState { tries, forced, wanted } = &self.state.compaction;
        // Messages after the last reply are not counted yet; about four bytes are one token.
        let context = self.state.context.saturating_add(self.history.since_reply() as u64 / 4);
        let above = self.options.compact_above.is_some_and(|limit| context > limit);
        forced.is_some() || *wanted || (above && *tries < CompactionState::MOST)
    }
}
