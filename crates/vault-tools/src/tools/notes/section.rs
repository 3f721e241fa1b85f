//! Adds text at a place in a note, and replaces a section: `insert_in_note`, `replace_section`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::append::{Place, insert};
use crate::edit;
use crate::error::Result;
use crate::sandbox::View;
use crate::tool::{Context, PathArg};
use crate::tools::shared::{locate, version};

#[derive(Deserialize, JsonSchema)]
pub(in crate::tools) struct InsertArgs {
    /// The note.
    path: PathArg,
    /// The text to add, in Markdown.
    #[schemars(length(min = 1))]
    content: String,
    /// Where it is added: before the block or heading; at the start, right under the heading or at the top of the note
    /// after its frontmatter; at the end of the section, subsections included, or of the note; after the block.
    position: Place,
    /// The section that is meant: `Plan`, `## Plan` or `Work#Plan`; default: the whole note.
    heading: Option<String>,
    /// Instead, the block with this id, as in `[[Note#^id]]`.
    block: Option<String>,
    /// From read_note: if the note has changed since, nothing is written.
    expected_version: Option<String>,
}

/// Where text was added.
#[derive(Serialize, JsonSchema)]
pub(in crate::tools) struct InsertedText {
    /// The note.
    #[schemars(extend("x-vault-path" = true))]
    path: String,
    /// The first line of the new text, from 1.
    line: u32,
    /// The note's new version.
    version: String,
}

pub(in crate::tools) fn insert_in_note(args: InsertArgs, context: &mut Context<'_, '_>) -> Result<InsertedText> {
    let path = locate::markdown(&args.path, "only Markdown notes can be added to", context)?;
    version::require(args.expected_version.as_deref(), &path, context)?;
    let text = context.overlay.text(&path)?;
    let at = (args.heading.as_deref(), args.block.as_deref());
    let added = insert((&path, &text), at, args.position, &args.content, context)?;
    context.overlay.write(&path, added.text)?;
    Ok(InsertedText { version: version::of(&path, context)?, path: path.to_string(), line: added.line })
}

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
    version::require(args.expected_version.as_deref(), &path, context)?;
    let text = context.overlay.text(&path)?;
    let replaced = edit::replace_section(&text, &args.heading, &args.content).map_err(|error| error.at(&path))?;
    context.overlay.write(&path, replaced.text)?;
    if !replaced.gone.is_empty() {
        let gone = replaced.gone.join(", ");
        context.overlay.notice(format!("{path}: {gone} no longer exist, so links to them lead to the note only"));
    }
    Ok(NewSection {
        version: version::of(&path, context)?,
        path: path.to_string(),
        line: replaced.line,
        gone: replaced.gone,
    })
}
