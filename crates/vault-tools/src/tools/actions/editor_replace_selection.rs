//! `editor.replaceSelection`: the selected text replaced in its file.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Range;
use crate::error::{Error, ErrorKind, Result};
use crate::host::Span;
use crate::policy::{Risk, Toolset};
use crate::tool::{Context, Tool};
use crate::tools::typing;

pub(super) struct ReplaceSelection;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Args {
    /// What is to stand in place of the selection.
    text: String,
}

/// What stands there now.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct Replaced {
    /// The file.
    file_path: String,
    /// Where the new text stands.
    range: Range,
    /// Its length in UTF-16 units.
    inserted_chars: usize,
}

impl Tool for ReplaceSelection {
    const NAME: &'static str = "editor.replaceSelection";
    const DESCRIPTION: &'static str =
        "Replace the text the user selected; with nothing selected, insert at the cursor.";
    const TOOLSET: Toolset = Toolset::Actions;
    const RISK: Risk = Risk::Write;
    type Args = Args;
    type Output = Replaced;

    fn call(&self, args: Args, context: &mut Context<'_, '_>) -> Result<Replaced> {
        let selection = context.editor.selection.clone();
        let (span, expected) = match (selection, context.editor.cursor) {
            (Some(selection), _) if selection.span.is_some() => (selection.span.unwrap_or_default(), selection.text),
            (None, Some(cursor)) => (Span { from: cursor, to: cursor }, String::new()),
            (Some(_), _) => {
                return Err(Error::new(
                    ErrorKind::Unsupported,
                    "the selection stands in no file, so nothing can take its place",
                )
                .remedy("give it with --selection-from FILE:FROM-TO"));
            }
            (None, None) => {
                return Err(Error::new(ErrorKind::Unsupported, "nothing is selected, and there is no cursor")
                    .remedy("give --selection-from FILE:FROM-TO, or --active-file and --cursor"));
            }
        };
        let typed = typing::replace(span, &expected, &args.text, context)?;
        Ok(Replaced { file_path: typed.path.to_string(), range: typed.span.into(), inserted_chars: typed.units })
    }
}
