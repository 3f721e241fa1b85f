//! Replaces a passage of a note, or all that are alike: `edit_note`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::write::write;
use super::{locate, version};
use crate::edit;
use crate::error::{Error, ErrorKind, Result};
use crate::sandbox::View;
use crate::tool::{Context, PathArg};

#[derive(Deserialize, JsonSchema)]
pub(super) struct Args {
    /// The note.
    path: PathArg,
    /// The text to replace, exactly as it is in the note; it must occur once, or all must be true.
    #[schemars(length(min = 1))]
    old_text: String,
    /// The new text; empty to remove the passage.
    new_text: String,
    /// Whether to replace every occurrence.
    #[serde(default)]
    all: bool,
    /// With `similar`, quotes, dashes, spaces and blanks at the ends of lines may differ.
    #[serde(default)]
    r#match: edit::Match,
    /// The version that read_note gave: if the note has changed since, nothing is written.
    expected_version: Option<String>,
    /// Whether the frontmatter may become unreadable.
    #[serde(default)]
    allow_broken_frontmatter: bool,
}

/// The result of an edit.
#[derive(Serialize, JsonSchema)]
pub(super) struct EditedPassage {
    /// The note.
    #[schemars(extend("x-vault-path" = true))]
    path: String,
    /// The first line of the new text, from 1.
    first_line: u32,
    /// Its last line; the first line if the new text is empty. Of several, the last line of the last one.
    last_line: u32,
    /// How many passages were replaced.
    count: usize,
    /// The old text.
    replaced: String,
    /// The new text.
    replaced_by: String,
    /// The note's new version.
    version: String,
}

pub(super) fn edit_note(args: Args, context: &mut Context<'_, '_>) -> Result<EditedPassage> {
    let path = locate::file(&args.path, context)?;
    if args.old_text == args.new_text {
        return Err(Error::new(ErrorKind::InvalidArguments, "old_text and new_text are the same").at("/new_text"));
    }
    version::require(args.expected_version.as_deref(), &path, context)?;
    let text = context.overlay.text(&path)?;
    let replace = if args.all { edit::replace_all } else { edit::replace_once };
    let edited = replace(&text, &args.old_text, &args.new_text, args.r#match).map_err(|error| error.at(&path))?;
    write(&path, edited.text, ("allow_broken_frontmatter", args.allow_broken_frontmatter), context)?;
    Ok(EditedPassage {
        version: version::of(&path, context)?,
        path: path.to_string(),
        first_line: edited.first_line,
        last_line: edited.last_line,
        count: edited.count,
        replaced: args.old_text,
        replaced_by: args.new_text,
    })
}
