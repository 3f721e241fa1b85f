//! A client's request to a vault: a call, a plan or an undo, as plain data that can be stored and prepared again.

use std::collections::BTreeSet;

use jiff::{Unit, Zoned};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::prepared::PreparedChange;
use crate::error::{Error, ErrorKind, Result};
use crate::journal::TransactionId;
use crate::plan::{self, CallId, Parameters};
use crate::policy::{Call, Grants, Permission, Risk};
use crate::tool::{Cancel, ToolSpec};
use crate::toolbox::Toolbox;
use crate::transaction::Force;

/// A client's request to one vault.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ChangeRequest {
    /// A call of a tool.
    Call {
        /// The name of the tool.
        tool: String,
        /// Its arguments.
        args: Value,
    },
    /// A plan.
    Plan {
        /// The plan.
        plan: Value,
        /// The values of its parameters.
        parameters: Map<String, Value>,
    },
    /// The undoing of a transaction.
    Undo {
        /// The number of the transaction; `None` for the newest one that can be undone.
        transaction: Option<u64>,
    },
}

/// Returns the current time, rounded down to the second, so that it can be stored and used again.
pub fn now() -> Zoned {
    let now = Zoned::now();
    now.round(Unit::Second).unwrap_or(now)
}

impl ChangeRequest {
    /// Runs the request on an overlay, as if it were `now`. Nothing is changed.
    ///
    /// # Errors
    /// The errors of the tools; [`ErrorKind::Denied`] if the policy denies it. Errors of a call and of a plan's steps
    /// are logged.
    pub fn prepare(&self, toolbox: &mut Toolbox, now: &Zoned, cancel: Cancel<'_>) -> Result<PreparedChange> {
        self.prepare_without(toolbox, now, &BTreeSet::new(), cancel)
    }

    /// The same without calls of a plan that a person left out, and without the steps that depend on steps of which nothing
    /// is left.
    ///
    /// # Errors
    /// As those of [`Self::prepare`].
    pub fn prepare_without(
        &self,
        toolbox: &mut Toolbox,
        now: &Zoned,
        left_out: &BTreeSet<CallId>,
        cancel: Cancel<'_>,
    ) -> Result<PreparedChange> {
        toolbox.set_now(now.clone());
        match self {
            Self::Call { tool, args } => {
                let proposal = toolbox.propose(tool, args.clone(), cancel)?;
                Ok(PreparedChange::of_call(proposal, toolbox.policy()))
            }
            Self::Plan { plan, parameters } => prepare_plan(toolbox, plan, parameters, left_out, cancel),
            Self::Undo { transaction } => {
                let vault = toolbox.vault();
                let id = transaction
                    .map_or_else(|| vault.newest_undoable().map(|newest| newest.id), |id| Ok(TransactionId(id)))?;
                PreparedChange::of_undo(id, vault.preview_undo(Some(id), Force::No)?, toolbox.policy())
            }
        }
    }
}

fn prepare_plan(
    toolbox: &mut Toolbox,
    plan: &Value,
    given: &Map<String, Value>,
    left_out: &BTreeSet<CallId>,
    cancel: Cancel<'_>,
) -> Result<PreparedChange> {
    let checked = plan::validate(plan, toolbox)?;
    let asks_first = |tool: &str| {
        let is_asked = |spec: &ToolSpec| {
            let call = Call::new(&spec.name, spec.toolset, spec.risk, &[]);
            spec.risk == Risk::Read && toolbox.policy().decide(&call, &Grants::default()) == Permission::Ask
        };
        toolbox.spec(tool).is_ok_and(is_asked)
    };
    if let Some(step) = checked.plan.steps.iter().find(|step| asks_first(&step.tool)) {
        // Such a plan is refused because its preview, and errors of later steps, reveal to the client what a step has read.
        let message = format!("{} asks a person before it reads, so no plan can use it", step.tool);
        return Err(
            Error::new(ErrorKind::Denied, message).with_remedy("call it by itself, and give the plan its output")
        );
    }
    let mut parameters = Parameters::needed(toolbox, &checked.parameters)?;
    given.iter().for_each(|(name, value)| parameters.set(name.clone(), value.clone()));
    let mut preview = plan::dry_run_without(toolbox, &checked, &parameters, left_out, cancel)?;
    if !left_out.is_empty() {
        preview.note_links_to_left_out(&plan::dry_run(toolbox, &checked, &parameters, cancel)?);
    }
    Ok(PreparedChange::of_plan(preview, toolbox.policy()))
}
