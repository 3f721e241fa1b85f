//! `vault.delete`: a file or folder put into the trash, or deleted for good.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::action::DeleteMode;
use crate::error::Result;
use crate::policy::{Risk, Toolset};
use crate::sandbox::View;
use crate::tool::{Context, PathArg, Tool};

pub(super) struct Delete;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(super) struct Args {
    /// The file or folder.
    path: PathArg,
    /// Whether it goes to the trash, the vault's or as set the system's; otherwise it is deleted, and kept in the journal until that is
    /// pruned.
    #[serde(default = "yes")]
    trash: bool,
    /// Whether it is an error if nothing is there.
    #[serde(default = "yes")]
    require_exists: bool,
}

fn yes() -> bool {
    true
}

/// What became of it.
#[derive(Serialize, JsonSchema)]
pub(super) struct Deleted {
    /// Where it was.
    path: String,
    /// Whether there was anything to delete.
    deleted: bool,
    /// Whether it lies in the trash now.
    trashed: bool,
}

impl Tool for Delete {
    const NAME: &'static str = "vault.delete";
    const DESCRIPTION: &'static str = "Delete a file or a folder with all that is in it; it goes to the trash \
        unless told otherwise.";
    const TOOLSET: Toolset = Toolset::Actions;
    const RISK: Risk = Risk::Delete;
    type Args = Args;
    type Output = Deleted;

    fn call(&self, args: Args, context: &mut Context<'_, '_>) -> Result<Deleted> {
        let path = context.path(&args.path)?;
        if !context.overlay.exists(&path)? {
            return match args.require_exists {
                true => Err(context.missing(&path)),
                false => Ok(Deleted { path: path.to_string(), deleted: false, trashed: false }),
            };
        }
        // Before it is looked at: why a file cannot be deleted would tell of it.
        context.all_permitted(&path)?;
        let deletion = if args.trash { context.deletion() } else { DeleteMode::Permanent };
        let deleted = context.overlay.delete(&path, deletion)?;
        Ok(Deleted { path: path.to_string(), deleted: true, trashed: deleted.trashed_to.is_some() })
    }
}
