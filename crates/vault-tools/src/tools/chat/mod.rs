//! The toolset `chat`: two tools that only read, and ask before they share anything.

mod file_read;
mod vault_search;

use crate::tool::Entry;

/// All of them.
pub(super) fn all() -> Vec<Entry> {
    vec![Entry::new(vault_search::VaultSearch), Entry::new(file_read::FileRead)]
}
