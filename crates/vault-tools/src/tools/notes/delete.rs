//! Deletes files and folders: `delete_note`, `vault.delete`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::action::DeleteMode;
use crate::error::Result;
use crate::sandbox::View;
use crate::tool::{Context, PathArg};
use crate::tools::shared::arguments::yes;
use crate::tools::shared::{expected_version, locate};

#[derive(Deserialize, JsonSchema)]
pub(in crate::tools) struct NoteArgs {
    /// The note.
    path: PathArg,
    /// From read_note: if the note has changed since, nothing is deleted.
    expected_version: Option<String>,
}

/// The result of a delete.
#[derive(Serialize, JsonSchema)]
pub(in crate::tools) struct DeletedNote {
    /// Its path.
    #[schemars(extend("x-vault-path" = true))]
    path: String,
    /// Where it went: a path in `.trash`, or `the system's trash`.
    #[schemars(extend("x-vault-path" = true))]
    trashed_to: Option<String>,
    /// Links that now lead nowhere, in readable notes.
    dangling_links: Vec<DanglingLink>,
}

/// A link to the deleted note.
#[derive(Serialize, JsonSchema)]
struct DanglingLink {
    /// The note that contains it.
    #[schemars(extend("x-vault-path" = true))]
    path: String,
    /// Its line, from 1.
    line: u32,
    /// As written.
    link: String,
}

pub(in crate::tools) fn note(args: NoteArgs, context: &mut Context<'_, '_>) -> Result<DeletedNote> {
    let path = locate::file(&args.path, context)?;
    expected_version::require(args.expected_version.as_deref(), &path, context)?;
    let deleted = context.overlay.delete(&path, context.deletion())?;
    // Links in denied notes are not listed.
    let dangling = deleted.dangling.into_iter().filter(|link| context.permits(&link.path));
    Ok(DeletedNote {
        path: path.to_string(),
        trashed_to: deleted.trashed_to,
        dangling_links: dangling
            .map(|link| DanglingLink { path: link.path.to_string(), line: link.line, link: link.raw })
            .collect(),
    })
}

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(in crate::tools) struct PathArgs {
    /// The file or folder.
    path: PathArg,
    /// Whether it goes to the trash (the vault's, or the system's if so set); otherwise only the journal keeps it, until
    /// pruned.
    #[serde(default = "yes")]
    trash: bool,
    /// Whether a missing path is an error.
    #[serde(default = "yes")]
    require_exists: bool,
    /// The etag of the file: if it has changed since, nothing is deleted.
    expected_etag: Option<String>,
}

/// The result of a delete.
#[derive(Serialize, JsonSchema)]
pub(in crate::tools) struct DeletedPath {
    /// Its path.
    #[schemars(extend("x-vault-path" = true))]
    path: String,
    /// Whether it existed.
    deleted: bool,
    /// Whether it went to the trash.
    trashed: bool,
}

pub(in crate::tools) fn path(args: PathArgs, context: &mut Context<'_, '_>) -> Result<DeletedPath> {
    let path = context.path(&args.path)?;
    if !context.overlay.exists(&path)? {
        return match args.require_exists {
            true => Err(context.missing(&path)),
            false => Ok(DeletedPath { path: path.to_string(), deleted: false, trashed: false }),
        };
    }
    // Checked before the delete, because the reason that a file cannot be deleted would reveal that it exists.
    context.all_permitted(&path)?;
    expected_version::require(args.expected_etag.as_deref(), &path, context)?;
    let deletion = if args.trash { context.deletion() } else { DeleteMode::Permanent };
    let deleted = context.overlay.delete(&path, deletion)?;
    Ok(DeletedPath { path: path.to_string(), deleted: true, trashed: deleted.trashed_to.is_some() })
}
