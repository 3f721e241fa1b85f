//! The open files around the vault: `workspace.getContext`, `workspace.openFile`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::error::Result;
use crate::host::Leaf;
use crate::tool::{Context, HostEffect, PathArg};
use crate::tools::shared::arguments::NoArgs;
use crate::tools::shared::excerpt::beginning;
use crate::tools::shared::locate;

/// The number of characters of the selection in the summary.
const PREVIEW: usize = 120;

/// What the editor shows.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(in crate::tools) struct WorkspaceContext {
    /// The active file.
    #[schemars(extend("x-vault-path" = true))]
    active_file_path: Option<String>,
    /// The files that are open.
    #[schemars(extend("x-vault-path" = true))]
    open_leaves: Vec<String>,
    /// A summary of the selection.
    selection_summary: Option<SelectionSummary>,
}

/// A summary of a selection.
#[derive(Serialize, JsonSchema)]
struct SelectionSummary {
    /// The number of lines.
    lines: usize,
    /// The number of characters.
    characters: usize,
    /// How it begins.
    preview: String,
}

pub(in crate::tools) fn get_context(_: NoArgs, context: &mut Context<'_, '_>) -> Result<WorkspaceContext> {
    let editor = context.editor()?;
    let selected = editor.selection.as_ref().filter(|selection| !selection.text.is_empty());
    Ok(WorkspaceContext {
        active_file_path: editor.active_file.as_ref().map(ToString::to_string),
        open_leaves: editor.open.iter().map(ToString::to_string).collect(),
        selection_summary: selected.map(|selection| SelectionSummary {
            lines: selection.text.lines().count(),
            characters: selection.text.chars().count(),
            preview: beginning(&selection.text, PREVIEW),
        }),
    })
}

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(in crate::tools) struct OpenArgs {
    /// The file.
    path: PathArg,
    /// Whether to open a new tab.
    #[serde(default)]
    new_leaf: bool,
    /// The line to show, from 1.
    #[schemars(range(min = 1))]
    line: Option<u32>,
}

/// The result of opening a file.
#[derive(Serialize, JsonSchema)]
pub(in crate::tools) struct OpenedFile {
    /// The file; it is active for the next steps.
    #[schemars(extend("x-vault-path" = true))]
    path: String,
    /// Whether the editor showed it.
    opened: bool,
}

pub(in crate::tools) fn open_file(args: OpenArgs, context: &mut Context<'_, '_>) -> Result<OpenedFile> {
    let path = locate::file(&args.path, context)?;
    context.editor()?.show(&path, if args.new_leaf { Leaf::New } else { Leaf::Current });
    let opened = context.host.is_live();
    match opened {
        true => {
            context.effects.push(HostEffect::Open { path: path.to_string(), new_leaf: args.new_leaf, line: args.line })
        }
        false => context.overlay.notice(format!("{path} is not shown, because that needs an editor")),
    }
    Ok(OpenedFile { path: path.to_string(), opened })
}
