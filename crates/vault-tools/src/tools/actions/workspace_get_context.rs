//! `workspace.getContext`: what the user has before them.

use schemars::JsonSchema;
use serde::Serialize;

use super::Nothing;
use crate::error::Result;
use crate::policy::{Risk, Toolset};
use crate::tool::{Context, Tool};
use crate::tools::excerpt::beginning;

/// Characters of the selection that are shown.
const SHOWN: usize = 120;

pub(super) struct GetContext;

/// What the user has before them.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct Workspace {
    /// The active file.
    active_file_path: Option<String>,
    /// The files that are open.
    open_leaves: Vec<String>,
    /// What is selected, in short.
    selection_summary: Option<Summary>,
}

/// A selection in short.
#[derive(Serialize, JsonSchema)]
struct Summary {
    /// Its lines.
    lines: usize,
    /// Its characters.
    characters: usize,
    /// How it begins.
    preview: String,
}

impl Tool for GetContext {
    const NAME: &'static str = "workspace.getContext";
    const DESCRIPTION: &'static str = "Get the active file, the open files and a summary of the selection.";
    const TOOLSET: Toolset = Toolset::Actions;
    const RISK: Risk = Risk::Read;
    type Args = Nothing;
    type Output = Workspace;

    fn call(&self, _: Nothing, context: &mut Context<'_, '_>) -> Result<Workspace> {
        let selected = context.editor.selection.as_ref().filter(|selection| !selection.text.is_empty());
        Ok(Workspace {
            active_file_path: context.editor.active_file.as_ref().map(ToString::to_string),
            open_leaves: context.editor.open.iter().map(ToString::to_string).collect(),
            selection_summary: selected.map(|selection| Summary {
                lines: selection.text.lines().count(),
                characters: selection.text.chars().count(),
                preview: beginning(&selection.text, SHOWN),
            }),
        })
    }
}
