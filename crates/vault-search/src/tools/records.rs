//! What the commands print as JSON.

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
    /// Its name where dots are not allowed, if that differs.
    pub alias: Option<String>,
    /// The toolset that offers it.
    pub toolset: Toolset,
    /// The worst that a call can do.
    pub risk: Risk,
    /// What it does and when to choose it.
    pub description: String,
    /// What its name, description and arguments cost in tokens, counted with o200k_base.
    pub tokens: u32,
    /// The same with the schema of its output, which few APIs take.
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
    /// What it is for.
    pub description: String,
    /// The values it needs when it runs.
    pub parameters: Vec<Parameter>,
    /// When it was saved, RFC 3339.
    pub saved: String,
}

impl From<Macro> for MacroRow {
    fn from(saved: Macro) -> Self {
        Self { name: saved.name, description: saved.description, parameters: saved.parameters, saved: saved.saved }
    }
}

/// A link that a note lacks.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub(super) struct SuggestedLinkRow {
    /// The note.
    pub path: String,
    /// The line where it belongs, from 1.
    pub line: u32,
    /// The words that name the other note; null where it is only meant.
    pub text: Option<String>,
    /// The sentence, on one line.
    pub sentence: String,
    /// The note to link to.
    pub target: String,
    /// 0 to 1.
    pub score: f32,
    /// name, link-text (words that other notes link to it with) or meaning.
    pub reason: String,
}

/// A link that leads nowhere.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub(super) struct BrokenLinkRow {
    /// The note it stands in.
    pub path: String,
    /// Its line, from 1.
    pub line: u32,
    /// As it stands there.
    pub link: String,
    /// The note that it leads to, where only the heading or block is missing.
    pub target: Option<String>,
    /// Where it was probably meant to lead, the surest first.
    pub proposals: Vec<ProposalRow>,
}

/// Where a broken link was probably meant to lead.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub(super) struct ProposalRow {
    /// The file.
    pub target: String,
    /// The heading or `^block`.
    pub heading: Option<String>,
    /// certain, likely or possible.
    pub certainty: String,
    /// Why.
    pub reason: String,
}

/// Something that is probably wrong in a vault.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub(super) struct FindingRow {
    /// The file.
    pub path: String,
    /// Its line, from 1; null for the file as a whole.
    pub line: Option<u32>,
    /// The rule.
    pub rule: String,
    /// What is wrong.
    pub message: String,
}

/// A call that was made, or with --dry-run would be.
#[derive(Debug, Serialize)]
pub(super) struct CallRecord {
    /// The vault that it works in, where there are several; `args`, `left_out` and `change` have paths without its name.
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
    /// What else should be known.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub notices: Vec<String>,
    /// What a person left out.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub left_out: Vec<LeftOutHunks>,
    /// What it would change; only with --dry-run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub change: Option<Preview>,
}

/// What a plan would do.
#[derive(Debug, Serialize)]
pub(super) struct PlanRecord<'a> {
    /// What it is for.
    pub goal: &'a str,
    /// What it assumes.
    pub assumptions: &'a [String],
    /// The risk that it declares.
    pub declared: RiskLevel,
    /// The worst that it does.
    pub risk: Risk,
    /// Its steps in the order in which they run.
    pub steps: &'a [StepPreview],
    /// What it changes.
    pub change: Preview,
    /// What cannot be previewed or undone.
    pub notices: &'a [String],
    /// Why it cannot run here, if it cannot.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub blocked: Option<&'a Error>,
    /// The step at which it stops, and why: what comes before it runs only if a person approves that.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stops: Option<(&'a str, &'a Error)>,
    /// Identifies this preview, for `--digest`; includes the time that the plan takes as now.
    pub digest: &'a str,
}
