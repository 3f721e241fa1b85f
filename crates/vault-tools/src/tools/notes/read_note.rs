//! `read_note`: the text of one note.

use schemars::JsonSchema;
use serde::Deserialize;

use crate::error::Result;
use crate::policy::Risk;
use crate::sandbox::View;
use crate::tool::{Context, PathArg, Tool};
use crate::tools::locate;

pub(super) struct ReadNote;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Args {
    /// The note's path from the vault's root, ending included: `Projects/Garden.md`.
    path: PathArg,
}

impl Tool for ReadNote {
    const NAME: &'static str = "read_note";
    const DESCRIPTION: &'static str = "Get the whole text of one note, frontmatter included. Choose it when you know \
        the path, from the user or from a search; to find notes first, use search_notes.";
    const RISK: Risk = Risk::Read;
    type Args = Args;
    type Output = String;

    fn call(&self, args: Args, context: &mut Context<'_, '_>) -> Result<String> {
        let path = locate::file(&args.path, context)?;
        context.overlay.text(&path)
    }
}
