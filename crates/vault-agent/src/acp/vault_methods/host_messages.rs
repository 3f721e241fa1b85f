//! The requests of the program to a client that is a live host, `_vault/host/…`, with the client's answers.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What a client declares in `clientCapabilities._meta.vault.host` if it is a live host.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct HostCapability {
    /// The version of the requests. A client of another version gets none.
    pub version: u32,
    /// The folder of the vault that the app has open, absolute. The requests are about this vault.
    pub vault: String,
}

/// Asks for the state of the editor.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct HostStateRequest {
    /// The most UTF-16 units of a selection that the program takes.
    pub longest_selection: usize,
    /// The most open files that the program takes.
    pub most_files: usize,
}

/// The state of the editor that had the focus last. The file of a selection or a cursor is saved, so that its text on
/// the disk is the text that they are positions in.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct HostState {
    /// The path of the active file in the vault.
    pub active_file: Option<String>,
    /// The selection in it, unless it is empty.
    pub selection: Option<HostSelection>,
    /// The cursor in it.
    pub cursor: Option<HostPosition>,
    /// The paths of the open files, including the active one.
    pub open_files: Vec<String>,
}

/// A selected text.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct HostSelection {
    /// The text.
    pub text: String,
    /// Where it begins.
    pub from: HostPosition,
    /// Where it ends.
    pub to: HostPosition,
}

/// A position in a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct HostPosition {
    /// The line, from 0.
    pub line: u32,
    /// The column, from 0, in UTF-16 units.
    pub ch: u32,
}

/// Asks which files are open in editors. Nothing is saved for it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct HostFilesRequest {
    /// The most files that the program takes.
    pub most_files: usize,
}

/// The files that are open in editors.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct HostFiles {
    /// Their paths in the vault.
    pub files: Vec<String>,
}

/// Asks to show a note.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct HostOpenRequest {
    /// Its path in the vault.
    pub path: String,
    /// The line to show, from 1.
    pub line: Option<u32>,
    /// Whether in a new tab.
    pub in_new_tab: bool,
}

/// Whether a note was shown.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct HostOpened {
    /// Whether it was.
    pub opened: bool,
}

/// Asks for the commands of the app.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct HostCommandsRequest {
    /// The most commands that the program takes.
    pub most_commands: usize,
}

/// The commands of the app.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct HostCommands {
    /// The commands.
    pub commands: Vec<AppCommand>,
}

/// A command of the app.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct AppCommand {
    /// Its id.
    pub id: String,
    /// Its name for people.
    pub name: String,
}

/// Asks to run a command, in the editor that had the focus last.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct HostRunRequest {
    /// Its id.
    pub id: String,
}

/// Whether a command ran.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct HostRan {
    /// Whether it ran. A command can be unavailable at the moment.
    pub ran: bool,
}

/// Asks to make an approved edit in the editor of a file, as one step of its undo, and to save it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct HostEditRequest {
    /// The path of the file in the vault.
    pub path: String,
    /// Its text. An editor with another text is saved, and nothing else is done.
    pub before: String,
    /// Its new text.
    pub after: String,
}

/// Whether an edit was made. The program reads the file in any case.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct HostEdited {
    /// Whether it was made and saved.
    pub edited: bool,
}
