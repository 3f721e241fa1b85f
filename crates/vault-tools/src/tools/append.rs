//! Adds text at the end of a note or of one of its sections: `append_to_note`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{locate, version};
use crate::edit;
use crate::error::Result;
use crate::sandbox::{SafePath, View};
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
        Some(heading) => {
            let content = under_heading((&path, &text), heading, &args.content, context)?;
            edit::append_to_section(&text, heading, content).map_err(|error| error.at(&path))?
        }
        None => edit::append_to_end(&text, &args.content).map_err(|error| error.at(&path))?,
    };
    if let Some(similar) = added.similar_heading {
        context.overlay.notice(format!("{path}: a new heading is made; there is also {similar:?}"));
    }
    context.overlay.write(&path, added.text)?;
    let version = version::of(&path, context)?;
    Ok(AppendedText { path: path.to_string(), line: added.line, made_heading: added.made_heading, version })
}

/// Content for a section of a note, without the section's heading, which models repeat; that is said.
///
/// # Errors
/// Those of [`edit::without_repeated_heading`].
pub(super) fn under_heading<'c>(
    (path, text): (&SafePath, &str),
    heading: &str,
    content: &'c str,
    context: &mut Context<'_, '_>,
) -> Result<&'c str> {
    let rest = edit::without_repeated_heading(text, heading, content).map_err(|error| error.at(path))?;
    if rest.is_some() {
        context.overlay.notice(format!("{path}: the text begins with the heading of its section, which is there once"));
    }
    Ok(rest.unwrap_or(content))
}
