//! `rename_note`: a note renamed or moved, and every link to it with it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::error::Result;
use crate::policy::Risk;
use crate::tool::{Context, PathArg, Tool};
use crate::tools::locate;

pub(super) struct RenameNote;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Args {
    /// The note as it is.
    path: PathArg,
    /// Where it is to lie, name and ending included; nothing may lie there yet.
    new_path: PathArg,
}

/// What the rename did.
#[derive(Serialize, JsonSchema)]
pub(super) struct Moved {
    /// Where the note was.
    path: String,
    /// Where it is.
    new_path: String,
    /// Links that were rewritten.
    links_updated: usize,
    /// The notes they stand in.
    notes_updated: Vec<String>,
    /// Links that led nowhere and lead to the note under its new name, as `path:line`.
    now_resolved: Vec<String>,
}

impl Tool for RenameNote {
    const NAME: &'static str = "rename_note";
    const DESCRIPTION: &'static str = "Rename a note or move it to another folder, and rewrite every link in the \
        vault so that it still leads to the same note. Choose it over writing a copy and deleting the original.";
    const RISK: Risk = Risk::Write;
    type Args = Args;
    type Output = Moved;

    fn call(&self, args: Args, context: &mut Context<'_, '_>) -> Result<Moved> {
        let from = locate::file(&args.path, context)?;
        let to = match from.is_note() {
            true => locate::note_to_be(&args.new_path, context)?,
            false => context.path(&args.new_path)?,
        };
        let renamed = context.overlay.rename(&from, &to)?;
        let mut notes_updated: Vec<String> = renamed.rewritten.iter().map(|link| link.path.to_string()).collect();
        notes_updated.sort();
        notes_updated.dedup();
        Ok(Moved {
            path: from.to_string(),
            new_path: to.to_string(),
            links_updated: renamed.rewritten.len(),
            notes_updated,
            now_resolved: renamed
                .satisfied
                .iter()
                .filter(|link| context.permits(&link.path))
                .map(|link| format!("{}:{}", link.path, link.line))
                .collect(),
        })
    }
}
