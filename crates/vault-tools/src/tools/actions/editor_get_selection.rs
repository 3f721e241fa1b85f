//! `editor.getSelection`: what is selected.

use schemars::JsonSchema;
use serde::Serialize;

use super::{Nothing, Range};
use crate::error::Result;
use crate::policy::{Risk, Toolset};
use crate::tool::{Context, Tool};

pub(super) struct GetSelection;

/// The selection.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct Selected {
    /// The selected text.
    text: String,
    /// Whether nothing is selected.
    is_empty: bool,
    /// The file it stands in, if any.
    file_path: Option<String>,
    /// Where it stands in that file.
    range: Option<Range>,
}

impl Tool for GetSelection {
    const NAME: &'static str = "editor.getSelection";
    const DESCRIPTION: &'static str = "Get the text the user selected, and where it stands.";
    const TOOLSET: Toolset = Toolset::Actions;
    const RISK: Risk = Risk::Read;
    type Args = Nothing;
    type Output = Selected;

    fn call(&self, _: Nothing, context: &mut Context<'_, '_>) -> Result<Selected> {
        let selection = context.editor.selection.clone().unwrap_or_default();
        Ok(Selected {
            is_empty: selection.text.is_empty(),
            text: selection.text,
            file_path: context.editor.active_file.as_ref().map(ToString::to_string),
            range: selection.span.map(Range::from),
        })
    }
}
