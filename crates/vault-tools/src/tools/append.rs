//! Adds text at the end of a note or of one of its sections: `append_to_note`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{locate, version};
use crate::edit;
use crate::error::Result;
use crate::sandbox::View;
use crate::tool::{Context, PathArg};

#[derive(Deserialize, JsonSchema)]
pub(super) struct Args {
    /// The note.
    path: PathArg,
    /// The text to add, in Markdown.
    #[schemars(length(min = 1))]
    content: String,
    /// The heading of the section at whose end it is added, without `#`; default: the end of the note. A missing heading
    /// is created.
    heading: Option<String>,
    /// The version that read_note gave: if the note has changed since, nothing is written.
    expected_version: Option<String>,
}

/// The result of an append.
#[derive(Serialize, JsonSchema)]
pub(super) struct AppendedText {
    /// The note.
    #[schemars(extend("x-vault-path" = true))]
    path: String,
    /// The first line of the new text, from 1.
    line: u32,
    /// Whether the heading was created.
    made_heading: bool,
    /// The note's new version.
    version: String,
}

pub(super) fn append_to_note(args: Args, context: &mut Context<'_, '_>) -> Result<AppendedText> {
    let path = locate::markdown(&args.path, "only Markdown notes can be added to", context)?;
    version::require(args.expected_version.as_deref(), &path, context)?;
    let text = context.overlay.text(&path)?;
    let added = match args.heading.as_deref().map(str::trim).filter(|heading| !heading.is_empty()) {
        Some(heading) => edit::append_to_section(&text, heading, &args.content).map_err(|error| error.at(&path))?,
        None => edit::append_to_end(&text, &args.content).map_err(|error| error.at(&path))?,
    };
    context.overlay.write(&path, added.text)?;
    let version = version::of(&path, context)?;
    Ok(AppendedText { path: path.to_string(), line: added.line, made_heading: added.made_heading, version })
}
