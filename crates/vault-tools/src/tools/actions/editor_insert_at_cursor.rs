//! `editor.insertAtCursor`: text put where the cursor is.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::At;
use crate::error::{Error, ErrorKind, Result};
use crate::host::Span;
use crate::policy::{Risk, Toolset};
use crate::tool::{Context, Tool};
use crate::tools::typing;

pub(super) struct InsertAtCursor;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Args {
    /// The text.
    text: String,
}

/// Where the cursor is now.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct Inserted {
    /// The file.
    file_path: String,
    /// The cursor: behind the text.
    cursor_after: At,
    /// The text's length in UTF-16 units.
    inserted_chars: usize,
}

impl Tool for InsertAtCursor {
    const NAME: &'static str = "editor.insertAtCursor";
    const DESCRIPTION: &'static str = "Insert text into the active file where the cursor is, or behind the selection.";
    const TOOLSET: Toolset = Toolset::Actions;
    const RISK: Risk = Risk::Write;
    type Args = Args;
    type Output = Inserted;

    fn call(&self, args: Args, context: &mut Context<'_, '_>) -> Result<Inserted> {
        let behind = context.editor.selection.as_ref().and_then(|selection| selection.span).map(|span| span.to);
        let Some(cursor) = context.editor.cursor.or(behind) else {
            return Err(Error::new(ErrorKind::Unsupported, "there is no cursor")
                .remedy("give --active-file NOTE and --cursor LINE:CH"));
        };
        let typed = typing::replace(Span { from: cursor, to: cursor }, "", &args.text, context)?;
        Ok(Inserted {
            file_path: typed.path.to_string(),
            cursor_after: typed.span.to.into(),
            inserted_chars: typed.units,
        })
    }
}
