//! Creates folders: `vault.ensureFolder`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::error::Result;
use crate::tool::{Context, PathArg};

#[derive(Deserialize, JsonSchema)]
pub(in crate::tools) struct Args {
    /// The folder, from the vault's root; those above it are created too.
    path: PathArg,
}

/// The folder.
#[derive(Serialize, JsonSchema)]
pub(in crate::tools) struct EnsuredFolder {
    /// Its path.
    #[schemars(extend("x-vault-path" = true))]
    path: String,
    /// Whether it was created now.
    created: bool,
}

pub(in crate::tools) fn ensure_folder(args: Args, context: &mut Context<'_, '_>) -> Result<EnsuredFolder> {
    let path = context.path(&args.path)?;
    let created = context.overlay.make_folder(&path)?;
    Ok(EnsuredFolder { path: path.to_string(), created })
}
