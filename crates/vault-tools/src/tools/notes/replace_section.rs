//! Replaces the text under a heading: `replace_section`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::edit;
use crate::error::Result;
use crate::sandbox::View;
use crate::tool::{Context, PathArg};
use crate::tools::shared::{expected_version, locate};

#[derive(Deserialize, JsonSchema)]
pub(in crate::tools) struct ReplaceArgs {
    /// The note.
    path: PathArg,
    /// The heading, which stays: `Plan`, `## Plan` or `Work#Plan`.
    #[schemars(length(min = 1))]
    heading: String,
    /// The new text under it, subsections included; empty to leave only the heading.
    content: String,
    /// From read_note: if the note has changed since, nothing is written.
    expected_version: Option<String>,
}

/// A section with another text.
#[derive(Serialize, JsonSchema)]
pub(in crate::tools) struct NewSection {
    /// The note.
    #[schemars(extend("x-vault-path" = true))]
    path: String,
    /// The line of its heading, from 1.
    line: u32,
    /// The headings and block ids that it no longer has, as links name them: `#Heading`, `#^id`.
    gone: Vec<String>,
    /// The note's new version.
    version: String,
}

pub(in crate::tools) fn replace_section(args: ReplaceArgs, context: &mut Context<'_, '_>) -> Result<NewSection> {
    let path = locate::markdown(&args.path, "only Markdown notes have sections", context)?;
    expected_version::require(args.expected_version.as_deref(), &path, context)?;
    let text = context.overlay.text(&path)?;
    let replaced = edit::replace_section(&text, &args.heading, &args.content).map_err(|error| error.at(&path))?;
    context.overlay.write(&path, replaced.text)?;
    if !replaced.gone.is_empty() {
        let gone = replaced.gone.join(", ");
        context.overlay.notice(format!("{path}: {gone} no longer exist, so links to them lead to the note only"));
    }
    Ok(NewSection {
        version: expected_version::of(&path, context)?,
        path: path.to_string(),
        line: replaced.line,
        gone: replaced.gone,
    })
}
