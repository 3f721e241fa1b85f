//! Replaces one passage of a note: `edit_note`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::locate;
use crate::edit;
use crate::error::{Error, ErrorKind, Result};
use crate::sandbox::View;
use crate::tool::{Context, PathArg};

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Args {
    /// The note.
    path: PathArg,
    /// The text to be replaced, exactly as it stands in the note; it must stand there once.
    #[schemars(length(min = 1))]
    old_text: String,
    /// What is to stand there instead; empty to take it out.
    new_text: String,
}

/// What was replaced.
#[derive(Serialize, JsonSchema)]
pub(super) struct EditedPassage {
    /// The note.
    path: String,
    /// The first line of what stands there now, from 1.
    first_line: u32,
    /// Its last line; the same one where nothing new stands there.
    last_line: u32,
    /// What stood there.
    replaced: String,
    /// What stands there now.
    replaced_by: String,
}

pub(super) fn edit_note(args: Args, context: &mut Context<'_, '_>) -> Result<EditedPassage> {
    let path = locate::file(&args.path, context)?;
    if args.old_text == args.new_text {
        return Err(Error::new(ErrorKind::InvalidArguments, "old_text and new_text are the same").at("/new_text"));
    }
    let text = context.overlay.text(&path)?;
    let edited = edit::replace_once(&text, &args.old_text, &args.new_text).map_err(|error| error.at(&path))?;
    context.overlay.write(&path, edited.text)?;
    Ok(EditedPassage {
        path: path.to_string(),
        first_line: edited.first_line,
        last_line: edited.last_line,
        replaced: args.old_text,
        replaced_by: args.new_text,
    })
}
