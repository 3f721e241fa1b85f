//! What a change assumes of the disk beside the files it reads: names, links and the content of folders.
//!
//! A change is made of the files it reads, and is compared with them before it is applied. But where a link leads is
//! also decided by files that nobody reads: one that comes with the same name, or a note that links to it by now.

use std::collections::{BTreeMap, BTreeSet};

use vault_index::VaultState;

use crate::sandbox::SafePath;

/// Names, links and folders as they were observed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Preconditions {
    /// By link key: the files that links under it can lead to.
    pub names: BTreeMap<String, BTreeSet<SafePath>>,
    /// Keys whose links were looked for.
    pub keys: BTreeSet<String>,
    /// The notes in which they may stand.
    pub linking: BTreeSet<SafePath>,
    /// The files in a folder that moves or is deleted.
    pub folders: BTreeMap<SafePath, BTreeSet<SafePath>>,
    /// The state of vault and index in which all of it was observed.
    pub observed: Observed,
}

/// The state of vault and index when they were asked.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) enum Observed {
    /// They were not.
    #[default]
    Never,
    /// Always this one.
    At(VaultState),
    /// Not always the same, or the notes themselves were read.
    Unknown,
}

impl Preconditions {
    /// What is added was observed in this state, if that is certain.
    pub fn observe(&mut self, state: Option<&VaultState>) {
        self.observed = match (state, &self.observed) {
            (Some(state), Observed::Never) => Observed::At(*state),
            (Some(state), Observed::At(first)) if state == first => return,
            _ => Observed::Unknown,
        };
    }
}
