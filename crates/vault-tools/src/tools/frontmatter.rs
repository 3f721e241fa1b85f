//! Sets and removes properties of a note and keeps all else byte for byte: `update_frontmatter`.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value};

use super::locate;
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
}

pub(super) fn update_frontmatter(args: Args, context: &mut Context<'_, '_>) -> Result<String> {
    let path = locate::markdown(&args.path, "only Markdown notes have frontmatter", context)?;
    let text = context.overlay.text(&path)?;
    let updated = frontmatter::update(&text, &args.updates).map_err(|error| error.at(&path))?;
    context.overlay.write(&path, updated)?;
    Ok(format!("Frontmatter updated for {path}: {}", Value::Object(args.updates)))
}
