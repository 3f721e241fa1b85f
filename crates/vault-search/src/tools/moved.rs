//! A hint for a vault without history, if a vault that no longer exists has one: it may have moved.

use vault_index::{FolderState, Index};
use vault_tools::{State, Vault};

use crate::{note, sanitize_line};

/// Suggests `adopt` if a vault has no history, but one that no longer exists has.
pub(super) fn hint_at_adopt(vault: &Vault) {
    if vault.state().has_history() {
        return;
    }
    // The folders of other vaults are stored only in their indexes.
    let gone = Index::list().unwrap_or_default().into_iter().filter(|index| index.state == FolderState::Gone);
    for old in gone.filter_map(|index| index.vault).filter(|old| State::of(old).is_ok_and(|state| state.has_history()))
    {
        let old = sanitize_line(&old.to_string_lossy());
        note(&format!(
            "there is a history of {old}, which no longer exists: if this vault was there, run vault-tools adopt \"{old}\""
        ));
    }
}
