//! A call in the form for the policy: the tool, its risk, and the paths.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use unicode_normalization::UnicodeNormalization;

/// The risk of a call; each level includes those before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Risk {
    /// Reads notes.
    Read,
    /// Creates or changes files; `undo` reverts it.
    Write,
    /// Deletes files.
    Delete,
    /// Runs a command of a live host, which cannot be undone.
    Command,
}

impl Risk {
    /// The name in records and badges.
    pub fn name(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Write => "write",
            Self::Delete => "delete",
            Self::Command => "command",
        }
    }
}

/// The named sets in which tools are offered.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum Toolset {
    /// For a model that works on notes.
    #[default]
    Notes,
    /// For a conversation: two tools that only read, and ask first.
    Chat,
    /// For plans.
    Actions,
    /// For work on many notes: tags, lists, moves and merges. Not offered to models unless named.
    Bulk,
    /// For the care of a vault: links to repair and to make, orphans, duplicates, history, templates. Not offered to models
    /// unless named.
    Library,
}

impl Toolset {
    /// All of them, the default first.
    pub const ALL: [Self; 5] = [Self::Notes, Self::Chat, Self::Actions, Self::Bulk, Self::Library];

    /// Returns a description of one line, for help texts.
    pub fn description(self) -> &'static str {
        match self {
            Self::Notes => "For a model that works on notes",
            Self::Chat => "For a conversation: two tools that only read, and ask first",
            Self::Actions => "For plans",
            Self::Bulk => "For work on many notes: tags, lists, moves and merges. Not offered to models unless named",
            Self::Library => {
                "For the care of a vault: links, orphans, duplicates, history. Not offered to models unless named"
            }
        }
    }

    /// The name on command lines and in records.
    pub fn name(self) -> &'static str {
        match self {
            Self::Notes => "notes",
            Self::Chat => "chat",
            Self::Actions => "actions",
            Self::Bulk => "bulk",
            Self::Library => "library",
        }
    }
}

/// A call in the form for the policy.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Call<'a> {
    /// The tool's name; `vault.delete` and `vault_delete` are the same one.
    pub tool: &'a str,
    /// The toolset that offers it.
    pub toolset: Toolset,
    /// The highest risk of the tool.
    pub tool_risk: Risk,
    /// The risk of this call according to its changes: `tool_risk` or more.
    pub risk: Risk,
    /// The vault paths that it names or changes, including notes whose links are rewritten.
    pub paths: &'a [String],
    /// Those of them that it changes; empty while its changes are not known.
    pub changes: &'a [String],
}

impl<'a> Call<'a> {
    /// Creates a call that does not exceed the risk of its tool.
    pub fn new(tool: &'a str, toolset: Toolset, risk: Risk, paths: &'a [String]) -> Self {
        Self { tool, toolset, tool_risk: risk, risk, paths, changes: &[] }
    }

    /// Returns whether it exceeds its tool's own risk, so that grants and settings for the tool do not cover it.
    pub(super) fn exceeds_its_tool(&self) -> bool {
        self.risk > self.tool_risk
    }
}

/// Returns the form in which tool names are compared. Tools are offered under names with and without dots; settings
/// apply to both.
pub(super) fn key(tool: &str) -> String {
    tool.trim().replace('.', "_").to_lowercase()
}

/// Returns the form in which paths are compared: globs ignore the case of ASCII letters only.
pub(super) fn folded(path: &str) -> String {
    // A fast path with the same result for ASCII text, because a list checks every note.
    if path.is_ascii() {
        return path.to_ascii_lowercase();
    }
    path.nfc().collect::<String>().to_lowercase().nfc().collect()
}
