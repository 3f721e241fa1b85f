//! `write_note`: a note made, or overwritten as a whole.

use schemars::JsonSchema;
use serde::Deserialize;

use crate::overlay::Written;
use crate::error::Result;
use crate::policy::Risk;
use crate::tool::{Context, PathArg, Tool};
use crate::tools::locate;

pub(super) struct WriteNote;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Args {
    /// Where the note is to lie, ending in `.md`; folders that are missing are made.
    path: PathArg,
    /// All of its text in Markdown, frontmatter included if it is to have any.
    content: String,
}

impl Tool for WriteNote {
    const NAME: &'static str = "write_note";
    const DESCRIPTION: &'static str = "Make a new note, or replace the whole text of an existing one. To change a \
        part of a note use edit_note, to add to it append_to_note, for its properties update_frontmatter: those \
        keep everything else as it is.";
    const RISK: Risk = Risk::Write;
    type Args = Args;
    type Output = String;

    fn call(&self, args: Args, context: &mut Context<'_, '_>) -> Result<String> {
        let path = locate::note_to_be(&args.path, context)?;
        Ok(match context.overlay.write(&path, args.content)? {
            Written::Created => format!("Note created successfully: {path}"),
            Written::Overwritten => format!("Note overwritten successfully: {path} (it was there before)"),
            Written::Unchanged => format!("Note unchanged: {path} (it was there with the same text)"),
        })
    }
}
