//! What the commands print as JSON.

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

use crate::change::Preview;
use crate::journal::TransactionKind;
use crate::macros::{Macro, Parameter};
use crate::plan::{PlanPreview, RiskLevel, StepPreview};
use crate::policy::{Risk, Toolset};
use crate::tool::ToolSpec;
use crate::transaction::Transaction;
use crate::vault::{TransactionInfo, TransactionStatus};

/// A tool.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct ToolRow {
    /// Its name.
    pub name: String,
    /// Its name where dots are not allowed, if that is another one.
    pub alias: Option<String>,
    /// Where it is offered.
    pub toolset: Toolset,
    /// What a call can do at worst.
    pub risk: Risk,
    /// What it does and when to choose it.
    pub description: String,
}

impl From<&ToolSpec> for ToolRow {
    fn from(spec: &ToolSpec) -> Self {
        Self {
            name: spec.name.clone(),
            alias: spec.alias.clone(),
            toolset: spec.toolset,
            risk: spec.risk,
            description: spec.description.clone(),
        }
    }
}

/// A run of the journal.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct RunRow {
    /// Its number.
    pub run: u64,
    /// When it began, RFC 3339.
    pub time: String,
    /// What it was called.
    pub label: String,
    /// `apply`, `undo` or `redo`.
    pub kind: &'static str,
    /// The run that it undid or redid.
    pub of: Option<u64>,
    /// How many actions it did.
    pub actions: usize,
    /// Files and folders it touched.
    pub paths: Vec<String>,
    /// `done`, `taken-back`, `rolled-back`, `cut` or `damaged`.
    pub status: &'static str,
}

impl From<TransactionInfo> for RunRow {
    fn from(run: TransactionInfo) -> Self {
        let time = jiff::Timestamp::try_from(run.time).unwrap_or_default();
        Self {
            run: run.id.0,
            time: jiff::Timestamp::from_second(time.as_second()).unwrap_or(time).to_string(),
            label: run.label,
            kind: match run.kind {
                TransactionKind::Apply => "apply",
                TransactionKind::Undo => "undo",
                TransactionKind::Redo => "redo",
            },
            of: run.of.map(|of| of.0),
            actions: run.actions,
            paths: run.paths,
            status: match run.status {
                TransactionStatus::Done => "done",
                TransactionStatus::Undone => "taken-back",
                TransactionStatus::RolledBack => "rolled-back",
                TransactionStatus::Interrupted => "cut",
                TransactionStatus::Damaged => "damaged",
            },
        }
    }
}

/// What an undo or redo did.
#[derive(Debug, Serialize)]
pub(super) struct TakenBack {
    /// Its own number, by which it is taken back.
    pub run: u64,
    /// How many actions it did.
    pub actions: usize,
    /// What was lost; only where it was forced.
    pub lost: Vec<String>,
}

impl From<Transaction> for TakenBack {
    fn from(run: Transaction) -> Self {
        Self { run: run.id.0, actions: run.done, lost: run.lost }
    }
}

/// A macro, without its plan.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct MacroRow {
    /// What it is called.
    pub name: String,
    /// What it is for.
    pub description: String,
    /// What it is given.
    pub parameters: Vec<Parameter>,
    /// When it was saved, RFC 3339.
    pub saved: String,
}

impl From<Macro> for MacroRow {
    fn from(saved: Macro) -> Self {
        Self { name: saved.name, description: saved.description, parameters: saved.parameters, saved: saved.saved }
    }
}

/// The answer of a call.
#[derive(Debug, Serialize)]
pub(super) struct CallRecord {
    /// The tool.
    pub tool: String,
    /// Its arguments, as they were used.
    pub args: Value,
    /// Its answer.
    pub output: Value,
    /// The run that undo takes back.
    pub run: Option<u64>,
    /// What it would change; only of a dry run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub change: Option<Preview>,
}

/// What a plan would do.
#[derive(Debug, Serialize)]
pub(super) struct PlanRecord<'a> {
    /// What it is for.
    pub goal: &'a str,
    /// What it takes for granted.
    pub assumptions: &'a [String],
    /// What it says it does at worst.
    pub declared: RiskLevel,
    /// What it does at worst.
    pub risk: Risk,
    /// Its steps in the order in which they run.
    pub steps: &'a [StepPreview],
    /// What it changes.
    pub change: Preview,
    /// What cannot be previewed or undone.
    pub notices: &'a [String],
    /// By which an approval is bound to it, with the moment that it takes for now.
    pub digest: &'a str,
}

impl<'a> From<&'a PlanPreview> for PlanRecord<'a> {
    fn from(preview: &'a PlanPreview) -> Self {
        Self {
            goal: &preview.plan.goal,
            assumptions: &preview.plan.assumptions,
            declared: preview.plan.risk_level,
            risk: preview.risk,
            steps: &preview.steps,
            change: preview.change.preview(),
            notices: &preview.notices,
            digest: &preview.digest,
        }
    }
}
