//! The records that `vault-tools` prints as JSON.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use vault_tools::plan::{RiskLevel, StepPreview};
use vault_tools::{Error, LeftOutHunks, Macro, Parameter, Preview, Risk, ToolSpec, Toolset};

/// A tool.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct ToolRow {
    /// Its name.
    pub name: String,
    /// Its name for APIs that do not allow dots, if that differs.
    pub alias: Option<String>,
    /// The toolset that offers it.
    pub toolset: Toolset,
    /// The highest risk of a call.
    pub risk: Risk,
    /// Its description for models, with when to choose it.
    pub description: String,
    /// The tokens of its name, description and arguments, counted with o200k_base.
    pub tokens: u32,
    /// The same with the schema of its output, which few APIs accept.
    pub tokens_with_output: u32,
}

impl ToolRow {
    pub fn new(spec: &ToolSpec, [tokens, tokens_with_output]: [u32; 2]) -> Self {
        Self {
            tokens,
            tokens_with_output,
            name: spec.name.clone(),
            alias: spec.alias.clone(),
            toolset: spec.toolset,
            risk: spec.risk,
            description: spec.description.clone(),
        }
    }
}

/// A macro, without its plan.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct MacroRow {
    /// Its name.
    pub name: String,
    /// Its description.
    pub description: String,
    /// The parameters that it needs when it runs.
    pub parameters: Vec<Parameter>,
    /// When it was saved, RFC 3339.
    pub saved: String,
}

impl From<Macro> for MacroRow {
    fn from(saved: Macro) -> Self {
        Self { name: saved.name, description: saved.description, parameters: saved.parameters, saved: saved.saved }
    }
}

/// A suggested link, which is missing in a note.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub(super) struct SuggestedLinkRow {
    /// The note.
    pub path: String,
    /// The line where it belongs, from 1.
    pub line: u32,
    /// The words that name the other note; null if the sentence is only close to it in meaning.
    pub text: Option<String>,
    /// The sentence, on one line.
    pub sentence: String,
    /// The note to link to.
    pub target: String,
    /// The score, 0 to 1.
    pub score: f32,
    /// Why it is suggested: name, link-text (the text of links in other notes) or meaning.
    pub reason: String,
}

/// A broken link.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub(super) struct BrokenLinkRow {
    /// The note that contains it.
    pub path: String,
    /// Its line, from 1.
    pub line: u32,
    /// The link as it is written.
    pub link: String,
    /// The note that it leads to, if only the heading or block is missing.
    pub target: Option<String>,
    /// Its probable targets, the most certain first.
    pub proposals: Vec<ProposalRow>,
}

/// A probable target of a broken link.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub(super) struct ProposalRow {
    /// The file.
    pub target: String,
    /// The heading or `^block`.
    pub heading: Option<String>,
    /// The certainty: certain, likely or possible.
    pub certainty: String,
    /// The reason.
    pub reason: String,
}

/// A finding of `lint`: a probable fault in a vault.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub(super) struct FindingRow {
    /// The file.
    pub path: String,
    /// Its line, from 1; null for the file as a whole.
    pub line: Option<u32>,
    /// The rule.
    pub rule: String,
    /// The description of the fault.
    pub message: String,
}

/// A call that was made, or with --dry-run only proposed.
#[derive(Debug, Serialize)]
pub(super) struct CallRecord {
    /// The vault, if there are several; the paths in `args`, `left_out` and `change` do not include its name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub vault: Option<String>,
    /// The tool.
    pub tool: String,
    /// Its arguments, checked.
    pub args: Value,
    /// Its output.
    pub output: Value,
    /// The transaction that undo reverts.
    pub transaction: Option<u64>,
    /// Notices about the call.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub notices: Vec<String>,
    /// The hunks that a person left out.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub left_out: Vec<LeftOutHunks>,
    /// The proposed change; only with --dry-run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub change: Option<Preview>,
}

/// The preview of a plan.
#[derive(Debug, Serialize)]
pub(super) struct PlanRecord<'a> {
    /// Its goal.
    pub goal: &'a str,
    /// Its assumptions.
    pub assumptions: &'a [String],
    /// The risk that it declares.
    pub declared: RiskLevel,
    /// The highest risk of its steps.
    pub risk: Risk,
    /// Its steps in the order in which they run.
    pub steps: &'a [StepPreview],
    /// Its changes.
    pub change: Preview,
    /// Notices, for example about effects that cannot be previewed or undone.
    pub notices: &'a [String],
    /// Why it cannot run here, if it cannot.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub blocked: Option<&'a Error>,
    /// The step at which it stops, and why. The steps before it run only if a person approves that.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stops: Option<(&'a str, &'a Error)>,
    /// Identifies this preview, for `--digest`. Includes the time that the preview used.
    pub digest: &'a str,
}
