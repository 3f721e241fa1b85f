//! The six actions that change a vault, and the inverse of each. All other changes are made of them.
//!
//! | action | its inverse |
//! | --- | --- |
//! | `MakeFolder` | `RemoveFolder` |
//! | `RemoveFolder`: only if it is empty, else nothing happens | `MakeFolder` |
//! | `Create` | `Delete` |
//! | `Edit` | `Edit` back |
//! | `Move` a file or folder | `Move` back |
//! | `Delete` a file: permanently, or into the system's trash | `Create` |
//!
//! Deleting to the trash is a `Move` into `.trash`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::content::{Content, ContentHash};
use crate::sandbox::SafePath;

/// One thing that is done to the vault. It holds all that its inverse needs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Action<C = Content> {
    /// Makes a folder in one that is there.
    MakeFolder {
        /// The folder.
        path: SafePath,
    },
    /// Removes a folder if it is empty.
    RemoveFolder {
        /// The folder.
        path: SafePath,
    },
    /// Makes a file where nothing is.
    Create {
        /// The file.
        path: SafePath,
        /// All of it.
        content: C,
    },
    /// Gives a file other content.
    Edit {
        /// The file.
        path: SafePath,
        /// What it must hold before.
        before: C,
        /// What it holds after.
        after: C,
    },
    /// Moves a file or folder to where nothing is.
    Move {
        /// From where.
        from: SafePath,
        /// To where.
        to: SafePath,
    },
    /// Takes a file out of the vault.
    Delete {
        /// The file.
        path: SafePath,
        /// What it must hold.
        content: C,
        /// [`DeleteMode::Permanent`] or [`DeleteMode::SystemTrash`].
        mode: DeleteMode,
    },
}

/// Where a deleted file goes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[non_exhaustive]
pub enum DeleteMode {
    /// Into the vault's `.trash`, in the folder where it was. As an action this is a move.
    #[default]
    #[serde(rename = "vault")]
    Trash,
    /// A file into the system's trash; undo creates it again from the journal and leaves that copy. What could not be
    /// created again as it was, a folder or a symbolic link, goes into `.trash`.
    #[serde(rename = "system")]
    SystemTrash,
    /// Nowhere; only the journal still has it. No setting can say so.
    #[serde(skip)]
    Permanent,
}

/// An action whose contents are known by their hashes alone.
pub(crate) type ActionOutline = Action<ContentHash>;

impl<C> Action<C> {
    /// The path it is done to, and for a move the one it leads to.
    pub fn paths(&self) -> (&SafePath, Option<&SafePath>) {
        match self {
            Self::Move { from, to } => (from, Some(to)),
            Self::MakeFolder { path }
            | Self::RemoveFolder { path }
            | Self::Create { path, .. }
            | Self::Edit { path, .. }
            | Self::Delete { path, .. } => (path, None),
        }
    }

    /// The same, one after the other.
    pub(crate) fn all_paths(&self) -> impl Iterator<Item = &SafePath> {
        let (path, to) = self.paths();
        std::iter::once(path).chain(to)
    }

    /// From where to where it moves something.
    pub(crate) fn moved(&self) -> Option<(&SafePath, &SafePath)> {
        match self {
            Self::Move { from, to } => Some((from, to)),
            _ => None,
        }
    }

    /// The content that it removes from the vault, which its inverse needs.
    pub(crate) fn removed_content(&self) -> Option<&C> {
        match self {
            Self::Edit { before: content, .. } | Self::Delete { content, .. } => Some(content),
            _ => None,
        }
    }

    /// What it is called: `create`, `edit`, `move`, `delete`, `make-folder`, `remove-folder`.
    pub fn name(&self) -> &'static str {
        match self {
            Self::MakeFolder { .. } => "make-folder",
            Self::RemoveFolder { .. } => "remove-folder",
            Self::Create { .. } => "create",
            Self::Edit { .. } => "edit",
            Self::Move { .. } => "move",
            Self::Delete { .. } => "delete",
        }
    }
}

impl Action {
    /// Bytes of the contents that it holds.
    pub(crate) fn content_bytes(&self) -> usize {
        match self {
            Self::Create { content, .. } | Self::Delete { content, .. } => content.len(),
            Self::Edit { before, after, .. } => before.len() + after.len(),
            Self::MakeFolder { .. } | Self::RemoveFolder { .. } | Self::Move { .. } => 0,
        }
    }

    /// The same action with hashes for contents.
    pub(crate) fn outline(&self) -> ActionOutline {
        match self.clone() {
            Self::MakeFolder { path } => Action::MakeFolder { path },
            Self::RemoveFolder { path } => Action::RemoveFolder { path },
            Self::Create { path, content } => Action::Create { path, content: content.hash() },
            Self::Edit { path, before, after } => Action::Edit { path, before: before.hash(), after: after.hash() },
            Self::Move { from, to } => Action::Move { from, to },
            Self::Delete { path, content, mode } => Action::Delete { path, content: content.hash(), mode },
        }
    }
}
