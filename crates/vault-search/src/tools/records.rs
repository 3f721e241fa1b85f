//! What the commands print as JSON.

use schemars::JsonSchema;
use serde::Serialize;
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
