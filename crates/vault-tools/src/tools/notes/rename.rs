//! Renames and moves files and folders, every link to them rewritten: `rename_note`, `vault.rename`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::error::Result;
use crate::sandbox::View;
use crate::tool::{Context, PathArg};
use crate::tools::shared::collision::{Collision, free, taken};
use crate::tools::shared::{expected_version, locate};

#[derive(Deserialize, JsonSchema)]
pub(in crate::tools) struct NoteArgs {
    /// The note's present path.
    path: PathArg,
    /// Its new path with name and extension; it must not exist yet.
    new_path: PathArg,
    /// The version that read_note gave: if the note has changed since, nothing is renamed.
    expected_version: Option<String>,
}

/// The result of a rename.
#[derive(Serialize, JsonSchema)]
pub(in crate::tools) struct RenamedNote {
    /// The old path.
    #[schemars(extend("x-vault-path" = true))]
    path: String,
    /// The new path.
    #[schemars(extend("x-vault-path" = true))]
    new_path: String,
    /// The number of rewritten links.
    links_updated: usize,
    /// The notes that contain them.
    #[schemars(extend("x-vault-path" = true))]
    notes_updated: Vec<String>,
    /// Links that led nowhere and now lead to the note, as `path:line`.
    #[schemars(extend("x-vault-path" = true))]
    now_resolved: Vec<String>,
    /// Its new version: the note's links to itself may have been rewritten.
    version: String,
}

pub(in crate::tools) fn note(args: NoteArgs, context: &mut Context<'_, '_>) -> Result<RenamedNote> {
    let from = locate::file(&args.path, context)?;
    expected_version::require(args.expected_version.as_deref(), &from, context)?;
    let to = match from.is_note() {
        true => locate::new_note(&args.new_path, context)?,
        false => context.path(&args.new_path)?,
    };
    let renamed = context.overlay.rename(&from, &to)?;
    let mut notes_updated: Vec<String> = renamed.rewritten.iter().map(|link| link.path.to_string()).collect();
    notes_updated.sort();
    notes_updated.dedup();
    let resolved = renamed.satisfied.iter().filter(|link| context.permits(&link.path));
    Ok(RenamedNote {
        path: from.to_string(),
        new_path: to.to_string(),
        links_updated: renamed.rewritten.len(),
        notes_updated,
        now_resolved: resolved.map(|link| format!("{}:{}", link.path, link.line)).collect(),
        version: expected_version::of(&to, context)?,
    })
}

#[derive(Deserialize, JsonSchema)]
pub(in crate::tools) struct MoveArgs {
    /// The present path of the attachment, folder or note.
    path: PathArg,
    /// Its new path with name and extension; it must not exist yet.
    new_path: PathArg,
}

pub(in crate::tools) fn move_file(args: MoveArgs, context: &mut Context<'_, '_>) -> Result<RenamedPath> {
    let MoveArgs { path: from_path, new_path: to_path } = args;
    path(PathArgs { from_path, to_path, collision_strategy: Collision::Error, expected_etag: None }, context)
}

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(in crate::tools) struct PathArgs {
    /// The file's or folder's present path.
    from_path: PathArg,
    /// Its new path with extension.
    to_path: PathArg,
    /// What happens if the new path exists; default error. With overwrite, the existing file goes to the trash.
    #[serde(default)]
    collision_strategy: Collision,
    /// The etag of the file: if it has changed since, nothing is renamed.
    expected_etag: Option<String>,
}

/// The old and the new path.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(in crate::tools) struct RenamedPath {
    /// The old path.
    #[schemars(extend("x-vault-path" = true))]
    from_path: String,
    /// The new path.
    #[schemars(extend("x-vault-path" = true))]
    to_path: String,
}

pub(in crate::tools) fn path(args: PathArgs, context: &mut Context<'_, '_>) -> Result<RenamedPath> {
    let from = locate::existing(&args.from_path, context)?;
    expected_version::require(args.expected_etag.as_deref(), &from, context)?;
    let mut to = context.path(&args.to_path)?;
    let only_case_differs = from.as_str().to_lowercase() == to.as_str().to_lowercase();
    match args.collision_strategy {
        Collision::Error if !only_case_differs && context.overlay.exists(&to)? => return Err(taken(&to)),
        Collision::CreateUnique if !only_case_differs => to = free(&to, context.overlay)?,
        _ => {}
    }
    match args.collision_strategy {
        Collision::Overwrite => context.overlay.rename_over(&from, &to)?,
        _ => context.overlay.rename(&from, &to)?,
    };
    Ok(RenamedPath { from_path: from.to_string(), to_path: to.to_string() })
}
