//! A hint for a vault without history, where one that is gone has a history: it may have moved.

use vault_index::{FolderState, Index};
use vault_tools::{State, Vault};

use crate::{note, sanitize_line};

/// Names `adopt` where a vault has no history, but one that is gone has.
pub(super) fn hint_at_adopt(vault: &Vault) {
    if vault.state().has_history() {
        return;
    }
    // Only the indexes know the folders of their vaults.
    let gone = Index::list().unwrap_or_default().into_iter().filter(|index| index.state == FolderState::Gone);
    for old in gone.filter_map(|index| index.vault).filter(|old| State::of(old).is_ok_and(|state| state.has_history()))
    {
        let old = sanitize_line(&old.to_string_lossy());
        note(&format!(
            "there is a history of {old}, which no longer exists: if this vault was there, run vault-tools adopt \"{old}\""
        ));
    }
}
