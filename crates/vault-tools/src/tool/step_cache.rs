//! A cache of tables over the whole vault, shared by the calls of a step that only reads.

use std::cell::OnceCell;
use std::collections::HashMap;

use vault_index::links::Names;
use vault_index::{LinkKind, VaultPath};

use crate::error::Result;

/// A link and where it leads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FoundLink {
    pub source: VaultPath,
    pub target: Option<VaultPath>,
    pub kind: LinkKind,
    pub line: u32,
    /// Its path and subpath as written.
    pub points_at: String,
    /// What a reader sees.
    pub text: String,
}

/// Computed once per step of a plan, since a step that only reads sees one state of the vault.
#[derive(Debug, Default)]
pub(crate) struct StepCache {
    names: OnceCell<Names>,
    links: OnceCell<HashMap<VaultPath, Vec<FoundLink>>>,
}

impl StepCache {
    /// What links can lead to.
    pub fn names(&self, compute: impl FnOnce() -> Result<Names>) -> Result<&Names> {
        get_or_try_init(&self.names, compute)
    }

    /// All links, by the file that they lead to.
    pub fn links(
        &self,
        compute: impl FnOnce() -> Result<HashMap<VaultPath, Vec<FoundLink>>>,
    ) -> Result<&HashMap<VaultPath, Vec<FoundLink>>> {
        get_or_try_init(&self.links, compute)
    }
}

fn get_or_try_init<T>(cell: &OnceCell<T>, compute: impl FnOnce() -> Result<T>) -> Result<&T> {
    match cell.get() {
        Some(known) => Ok(known),
        None => {
            let computed = compute()?;
            Ok(cell.get_or_init(|| computed))
        }
    }
}
