//! What a vault is made of on the disk: its files behind the sandbox, our state beside them, and the index of its notes.

use std::time::Duration;

use vault_index::internal::Lock;

use crate::error::Result;
use crate::note_index::NoteIndex;
use crate::sandbox::Sandbox;
use crate::state::State;

/// The parts that overlays and transactions work on.
pub(crate) struct VaultStore {
    pub sandbox: Sandbox,
    pub state: State,
    pub index: NoteIndex,
    /// How long to wait for another process that changes the vault.
    pub wait: Duration,
}

impl VaultStore {
    /// The right to change the vault and to write the journal.
    pub fn lock(&self) -> Result<Lock> {
        self.state.lock(self.wait)
    }
}
