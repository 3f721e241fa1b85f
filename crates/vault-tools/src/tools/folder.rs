//! Creates folders: `vault.ensureFolder`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::error::Result;
use crate::tool::{Context, PathArg};

#[derive(Deserialize, JsonSchema)]
pub(super) struct Args {
    /// The folder, from the vault's root; those above it are created too.
    path: PathArg,
}

/// The folder.
#[derive(Serialize, JsonSchema)]
pub(super) struct EnsuredFolder {
    /// Its path.
    #[schemars(extend("x-vault-path" = true))]
    path: String,
    /// Whether it was created now.
    created: bool,
}

pub(super) fn ensure_folder(args: Args, context: &mut Context<'_, '_>) -> Result<EnsuredFolder> {
    let path = context.path(&args.path)?;
    let created = context.overlay.make_folder(&path)?;
    Ok(EnsuredFolder { path: path.to_string(), created })
}
