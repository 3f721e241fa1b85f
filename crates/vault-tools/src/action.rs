//! The six actions that change a vault, and the inverse of each. Every change consists of them.
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

/// One step of a change. It holds all that its inverse needs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Action<C = Content> {
    /// Creates a folder inside an existing one.
    MakeFolder {
        /// The folder.
        path: SafePath,
    },
    /// Removes a folder if it is empty.
    RemoveFolder {
        /// The folder.
        path: SafePath,
    },
    /// Creates a file at a path that is free.
    Create {
        /// The file.
        path: SafePath,
        /// Its whole content.
        content: C,
    },
    /// Replaces the content of a file.
    Edit {
        /// The file.
        path: SafePath,
        /// The content that it must have before.
        before: C,
        /// The content that it has after.
        after: C,
    },
    /// Moves a file or folder to a path that is free.
    Move {
        /// The old path.
        from: SafePath,
        /// The new path.
        to: SafePath,
    },
    /// Deletes a file from the vault, permanently or into the system's trash.
    Delete {
        /// The file.
        path: SafePath,
        /// The content that it must have.
        content: C,
        /// [`DeleteMode::Permanent`] or [`DeleteMode::SystemTrash`].
        mode: DeleteMode,
    },
}

/// The destination of a deleted file.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[non_exhaustive]
pub enum DeleteMode {
    /// Into the vault's `.trash`, in the folder where it was. As an action this is a move.
    #[default]
    #[serde(rename = "vault")]
    Trash,
    /// A file goes to the system's trash; undo creates it again from the journal and leaves that copy. A folder or a
    /// symbolic link, which could not be recreated exactly, goes to `.trash`.
    #[serde(rename = "system")]
    SystemTrash,
    /// The file is only kept in the journal. No setting can choose this.
    #[serde(skip)]
    Permanent,
}

/// An action that holds the hashes of contents only.
pub(crate) type ActionOutline = Action<ContentHash>;

impl<C> Action<C> {
    /// Returns the path that it concerns, and for a move the new path.
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

    /// Returns the same paths as an iterator.
    pub(crate) fn all_paths(&self) -> impl Iterator<Item = &SafePath> {
        let (path, to) = self.paths();
        std::iter::once(path).chain(to)
    }

    /// Returns the old and the new path of a move.
    pub(crate) fn moved(&self) -> Option<(&SafePath, &SafePath)> {
        match self {
            Self::Move { from, to } => Some((from, to)),
            _ => None,
        }
    }

    /// Returns the content that it removes from the vault, which its inverse needs.
    pub(crate) fn removed_content(&self) -> Option<&C> {
        match self {
            Self::Edit { before: content, .. } | Self::Delete { content, .. } => Some(content),
            _ => None,
        }
    }

    /// Returns its name: `create`, `edit`, `move`, `delete`, `make-folder`, `remove-folder`.
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
    /// Returns the size in bytes of the contents that it holds.
    pub(crate) fn content_bytes(&self) -> usize {
        match self {
            Self::Create { content, .. } | Self::Delete { content, .. } => content.len(),
            Self::Edit { before, after, .. } => before.len() + after.len(),
            Self::MakeFolder { .. } | Self::RemoveFolder { .. } | Self::Move { .. } => 0,
        }
    }

    /// Returns the same action with hashes instead of contents.
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
