//! The data of an approval in a conversation, for clients that render approvals themselves.

use schemars::JsonSchema;
use serde::Serialize;

use super::messages::{FileChange, FolderChange};

/// An approval that is asked for: `_meta.vault` of the tool call of a `session/request_permission`, for clients that
/// declare `_meta.vault.approvals` among their capabilities.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Approval {
    /// The tool or command.
    pub tool: String,
    /// The purpose of the tool, in its own words.
    pub purpose: Option<String>,
    /// The question, in one line.
    pub question: String,
    /// The highest risk of its effects.
    pub risk: ApprovalRisk,
    /// Whether and how it can be undone.
    pub undo: String,
    /// The data that leaves this machine, and its receiver.
    pub leaves: Option<String>,
    /// The reason for which it is asked again, for example that edited arguments are invalid.
    pub problem: Option<String>,
    /// The plan, if it is one. Its steps are the boxes of the form that the option `pick` opens.
    pub plan: Option<ApprovalPlan>,
    /// Files that it changes.
    pub files: Vec<FileChange>,
    /// Folders that it creates or removes.
    pub folders: Vec<FolderChange>,
    /// Notices for the person.
    pub notices: Vec<String>,
    /// The parts that can be left out, in the order of the boxes in the form that the option `pick` opens.
    pub parts: Vec<ApprovalPart>,
    /// The items of a result that is shared with the model, in the order of those boxes.
    pub items: Vec<String>,
}

/// The highest risk of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum ApprovalRisk {
    /// It reads notes.
    Read,
    /// It creates or changes files.
    Write,
    /// It deletes files.
    Delete,
    /// It runs a command that cannot be undone.
    Command,
}

impl From<vault_tools::Risk> for ApprovalRisk {
    fn from(risk: vault_tools::Risk) -> Self {
        match risk {
            vault_tools::Risk::Read => Self::Read,
            vault_tools::Risk::Write => Self::Write,
            vault_tools::Risk::Delete => Self::Delete,
            vault_tools::Risk::Command => Self::Command,
        }
    }
}

/// A part of a change that can be left out: a hunk of a file, or a file that is not text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ApprovalPart {
    /// The file.
    pub path: String,
    /// The hunk as a unified diff; empty for a file that is not text.
    pub diff: String,
}

/// A plan that is approved.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ApprovalPlan {
    /// The goal.
    pub goal: String,
    /// The assumptions of its author.
    pub assumptions: Vec<String>,
    /// Its steps in the order in which they run.
    pub steps: Vec<ApprovalStep>,
    /// How many notes are created, changed, moved or deleted.
    pub notes: usize,
    /// How many links of existing notes change.
    pub links: usize,
}

/// A step of a plan.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ApprovalStep {
    /// Its id.
    pub id: String,
    /// Its tool.
    pub tool: String,
    /// The author's description.
    pub preview: Option<String>,
    /// The worst that it does.
    pub risk: ApprovalRisk,
    /// How often its tool is called.
    pub calls: usize,
    /// Why it does not run, if it does not.
    pub skipped: Option<String>,
    /// Notices for the person.
    pub notices: Vec<String>,
}
