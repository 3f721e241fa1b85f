//! Adds text to a note, at its end or at another place: `append_to_note`, `insert_in_note`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::edit::{self, Anchor, Insertion, Side};
use crate::error::{Error, ErrorKind, Result};
use crate::sandbox::{SafePath, View};
use crate::tool::{Context, PathArg};
use crate::tools::shared::{expected_version, locate};

#[derive(Deserialize, JsonSchema)]
pub(in crate::tools) struct Args {
    /// The note.
    path: PathArg,
    /// The text to add, in Markdown.
    #[schemars(length(min = 1))]
    content: String,
    /// The section that it is added to: `Plan`, `## Plan` or `Work#Plan`; default: the note. A missing heading is created.
    heading: Option<String>,
    /// Instead, the block with this id, after which it is added.
    block: Option<String>,
    /// Where: first or last in the note or section, before its heading, before or after the block; default: last, or after.
    position: Option<InsertPosition>,
    /// From read_note: if the note has changed since, nothing is written.
    expected_version: Option<String>,
}

/// A place in a note, a section, or at a block.
#[derive(Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum InsertPosition {
    Before,
    Start,
    End,
    After,
}

/// The result of an append.
#[derive(Serialize, JsonSchema)]
pub(in crate::tools) struct AppendedText {
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

pub(in crate::tools) fn append_to_note(args: Args, context: &mut Context<'_, '_>) -> Result<AppendedText> {
    let (path, line, made_heading) = add(args, true, context)?;
    Ok(AppendedText { version: expected_version::of(&path, context)?, path: path.to_string(), line, made_heading })
}

#[derive(Deserialize, JsonSchema)]
pub(in crate::tools) struct InsertArgs {
    /// The note.
    path: PathArg,
    /// The text to add, in Markdown.
    #[schemars(length(min = 1))]
    content: String,
    /// Where it is added: before the block or heading; at the start, right under the heading or at the top of the note
    /// after its frontmatter; at the end of the section, subsections included, or of the note; after the block.
    position: InsertPosition,
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
    let InsertArgs { path, content, position, heading, block, expected_version } = args;
    let args = Args { path, content, heading, block, position: Some(position), expected_version };
    let (path, line, _) = add(args, false, context)?;
    Ok(InsertedText { version: expected_version::of(&path, context)?, path: path.to_string(), line })
}

/// Adds text to a note; both tools use it. Returns the note, the first new line, and whether a heading was created,
/// which happens only at the end of a section, and only if it is allowed.
fn add(args: Args, may_make_heading: bool, context: &mut Context<'_, '_>) -> Result<(SafePath, u32, bool)> {
    let path = locate::markdown(&args.path, "only Markdown notes can be added to", context)?;
    expected_version::require(args.expected_version.as_deref(), &path, context)?;
    let text = context.overlay.text(&path)?;
    let at = (args.heading.as_deref(), args.block.as_deref());
    let added = match (at, args.position) {
        ((heading, None), None | Some(InsertPosition::End)) if may_make_heading => {
            append((&path, &text), heading, &args.content, context)?
        }
        (at, place) => insert((&path, &text), at, place.unwrap_or(InsertPosition::After), &args.content, context)?,
    };
    context.overlay.write(&path, added.text)?;
    Ok((path, added.line, added.made_heading))
}

/// Adds text at the end of a note or section; a missing heading is created.
fn append(
    (path, text): (&SafePath, &str),
    heading: Option<&str>,
    content: &str,
    context: &mut Context<'_, '_>,
) -> Result<Insertion> {
    let added = match heading.map(str::trim).filter(|heading| !heading.is_empty()) {
        Some(heading) => {
            let content = under_heading((path, text), heading, content, context)?;
            edit::append_to_section(text, heading, content)
        }
        None => edit::append_to_end(text, content),
    };
    let added = added.map_err(|error| error.at(path))?;
    if let Some(similar) = &added.similar_heading {
        context.overlay.notice(format!("{path}: a new heading is created; there is also {similar:?}"));
    }
    Ok(added)
}

/// Adds text at a place of an existing note, section or block.
///
/// # Errors
/// Heading and block at once; the errors of [`edit::insert`].
fn insert(
    (path, text): (&SafePath, &str),
    (heading, block): (Option<&str>, Option<&str>),
    place: InsertPosition,
    content: &str,
    context: &mut Context<'_, '_>,
) -> Result<Insertion> {
    let anchor = match (heading, block) {
        (None, None) => Anchor::Note,
        (Some(heading), None) => Anchor::Section(heading),
        (None, Some(id)) => Anchor::Block(id),
        _ => {
            return Err(Error::new(ErrorKind::InvalidArguments, "heading and block exclude each other")
                .with_remedy("give one of them, or neither for the whole note"));
        }
    };
    let side = match place {
        InsertPosition::Before => Side::Before,
        InsertPosition::Start => Side::Start,
        InsertPosition::End => Side::End,
        InsertPosition::After => Side::After,
    };
    let content = match anchor {
        Anchor::Section(heading) if side != Side::Before => under_heading((path, text), heading, content, context)?,
        _ => content,
    };
    edit::insert(text, anchor, side, content).map_err(|error| match error.path() {
        None => error.at(path),
        Some(_) => error,
    })
}

/// Returns content for a section of a note without the section's heading, which models repeat. A removed heading is
/// reported in a notice.
///
/// # Errors
/// The errors of [`edit::without_repeated_heading`].
fn under_heading<'c>(
    (path, text): (&SafePath, &str),
    heading: &str,
    content: &'c str,
    context: &mut Context<'_, '_>,
) -> Result<&'c str> {
    let rest = edit::without_repeated_heading(text, heading, content).map_err(|error| error.at(path))?;
    if rest.is_some() {
        context
            .overlay
            .notice(format!("{path}: the text begins with the heading of its section, which is written only once"));
    }
    Ok(rest.unwrap_or(content))
}
