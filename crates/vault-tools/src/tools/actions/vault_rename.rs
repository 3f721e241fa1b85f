//! `vault.rename`: a file or folder renamed or moved, links with it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::error::Result;
use crate::policy::{Risk, Toolset};
use crate::sandbox::View;
use crate::tool::{Context, PathArg, Tool};
use crate::tools::collision::{Collision, free, taken};
use crate::tools::locate;

pub(super) struct Rename;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(super) struct Args {
    /// The file or folder as it is.
    from_path: PathArg,
    /// Where it is to lie, ending included.
    to_path: PathArg,
    /// What happens when that path is taken; error unless told. With overwrite, what is there goes to the trash.
    #[serde(default)]
    collision_strategy: Collision,
}

/// Where it was and is.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct Moved {
    /// Where it was.
    from_path: String,
    /// Where it is.
    to_path: String,
}

impl Tool for Rename {
    const NAME: &'static str = "vault.rename";
    const DESCRIPTION: &'static str = "Rename or move a file or a folder with all that is in it, and rewrite every \
        link so that it still leads to the same file.";
    const TOOLSET: Toolset = Toolset::Actions;
    const RISK: Risk = Risk::Write;
    type Args = Args;
    type Output = Moved;

    fn call(&self, args: Args, context: &mut Context<'_, '_>) -> Result<Moved> {
        let from = locate::existing(&args.from_path, context)?;
        let mut to = context.path(&args.to_path)?;
        let is_other_case = from.as_str().to_lowercase() == to.as_str().to_lowercase();
        if !is_other_case {
            match args.collision_strategy {
                Collision::Error if context.overlay.exists(&to)? => return Err(taken(&to)),
                Collision::CreateUnique => to = free(&to, context.overlay)?,
                Collision::Error | Collision::Overwrite => {}
            }
        }
        match args.collision_strategy {
            Collision::Overwrite => context.overlay.rename_over(&from, &to)?,
            _ => context.overlay.rename(&from, &to)?,
        };
        Ok(Moved { from_path: from.to_string(), to_path: to.to_string() })
    }
}
