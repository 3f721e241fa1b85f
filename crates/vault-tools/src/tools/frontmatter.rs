//! Sets and removes properties of a note and keeps all else byte for byte: `update_frontmatter`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::{locate, version};
use crate::edit::frontmatter;
use crate::error::Result;
use crate::sandbox::View;
use crate::tool::{Context, PathArg};

#[derive(Deserialize, JsonSchema)]
pub(super) struct Args {
    /// The note.
    path: PathArg,
    /// Properties and their new values; null removes a property. Others stay.
    updates: Map<String, Value>,
    /// The version that read_note gave: if the note has changed since, nothing is written.
    expected_version: Option<String>,
}

/// The result of an update.
#[derive(Serialize, JsonSchema)]
pub(super) struct UpdatedNote {
    /// What was done.
    message: String,
    /// The note.
    path: String,
    /// Its new version.
    version: String,
}

pub(super) fn update_frontmatter(args: Args, context: &mut Context<'_, '_>) -> Result<UpdatedNote> {
    let path = locate::markdown(&args.path, "only Markdown notes have frontmatter", context)?;
    version::require(args.expected_version.as_deref(), &path, context)?;
    let text = context.overlay.text(&path)?;
    let updated = frontmatter::update(&text, &args.updates).map_err(|error| error.at(&path))?;
    context.overlay.write(&path, updated)?;
    Ok(UpdatedNote {
        message: format!("Frontmatter updated for {path}: {}", Value::Object(args.updates)),
        version: version::of(&path, context)?,
        path: path.to_string(),
    })
}
