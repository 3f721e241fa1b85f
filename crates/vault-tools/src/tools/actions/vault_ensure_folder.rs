//! `vault.ensureFolder`: a folder that is there afterwards.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::error::Result;
use crate::policy::{Risk, Toolset};
use crate::tool::{Context, PathArg, Tool};

pub(super) struct EnsureFolder;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Args {
    /// The folder, from the vault's root; those above it are made too.
    path: PathArg,
}

/// The folder.
#[derive(Serialize, JsonSchema)]
pub(super) struct Ensured {
    /// Where it lies.
    path: String,
    /// Whether it was made now.
    created: bool,
}

impl Tool for EnsureFolder {
    const NAME: &'static str = "vault.ensureFolder";
    const DESCRIPTION: &'static str = "Make a folder, and those above it, unless it is there already.";
    const TOOLSET: Toolset = Toolset::Actions;
    const RISK: Risk = Risk::Write;
    type Args = Args;
    type Output = Ensured;

    fn call(&self, args: Args, context: &mut Context<'_, '_>) -> Result<Ensured> {
        let path = context.path(&args.path)?;
        let created = context.overlay.make_folder(&path)?;
        Ok(Ensured { path: path.to_string(), created })
    }
}
