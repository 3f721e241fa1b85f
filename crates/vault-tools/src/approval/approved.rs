//! A change that was approved, and carrying it out.

use serde_json::{Value, json};

use super::prepared::{PreparedChange, PreparedKind};
use crate::error::Result;
use crate::journal::TransactionId;
use crate::log::Approval;
use crate::plan::{self, Event, PlanRun, RunStatus};
use crate::tool::Cancel;
use crate::toolbox::{Output, Toolbox};
use crate::transaction::{Force, Transaction};

/// The maximum number of paths that the result of an undo lists.
const NAMED: usize = 100;

/// A change that the policy, a grant, an approver or the digest of what was shown has approved. Only
/// [`settle`](super::settle) and [`settle_shown`](super::settle_shown) create one, and it can be used only once.
///
/// ```compile_fail,E0451
/// # fn get<T>() -> T { unimplemented!() }
/// use vault_tools::approval::{ApprovedChange, PreparedChange};
/// // error: the fields are private, and there is no constructor
/// let approved = ApprovedChange { change: get::<PreparedChange>(), by: get() };
/// ```
///
/// ```compile_fail,E0599
/// # fn get<T>() -> T { unimplemented!() }
/// use vault_tools::approval::ApprovedChange;
/// // error: an approval cannot be copied, so it holds once
/// let approved = get::<ApprovedChange>().clone();
/// ```
///
/// ```compile_fail,E0616
/// # fn get<T>() -> T { unimplemented!() }
/// use vault_tools::{ApplyOptions, Proposal, Vault};
/// // error: the change of a proposal is private, so it cannot be applied past the approval
/// get::<Vault>().apply(&get::<Proposal>().change, ApplyOptions::new());
/// ```
///
/// ```compile_fail,E0624
/// # fn get<T>() -> T { unimplemented!() }
/// use vault_tools::{Approval, Proposal, Toolbox};
/// // error: applying a proposal is private
/// get::<Toolbox>().apply(get::<Proposal>(), Approval::Approved);
/// ```
#[derive(Debug)]
pub struct ApprovedChange {
    change: PreparedChange,
    by: Approval,
}

/// The result of carrying out an approved change.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum AppliedChange {
    /// The output of a call.
    Call(Output),
    /// The run of a plan, of which a step may have failed.
    Plan(PlanRun),
    /// The undoing of a transaction.
    Undo {
        /// The number of the transaction that was undone.
        undone: TransactionId,
        /// The transaction that undid it.
        by: Transaction,
        /// The files and folders that are restored.
        paths: Vec<String>,
    },
}

/// The result of a change in the form that is sent to a client.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct ChangeOutput {
    /// The output of the tool or plan.
    pub value: Value,
    /// The transaction that undoes it, if anything was changed.
    pub transaction: Option<u64>,
    /// Notices for the client.
    pub notices: Vec<String>,
}

impl ApprovedChange {
    pub(super) fn new(change: PreparedChange, by: Approval) -> Self {
        Self { change, by }
    }

    /// Returns the change that was approved.
    pub fn change(&self) -> &PreparedChange {
        &self.change
    }

    /// Returns whether a person saw the change.
    pub fn was_seen(&self) -> bool {
        matches!(self.by, Approval::Approved | Approval::Edited)
    }

    /// Carries out the change in the vault where it was prepared, and logs it. `on_event` is called with each event of
    /// a plan.
    ///
    /// # Errors
    /// [`Conflict`](crate::ErrorKind::Conflict) if files have changed since the change was prepared, so that nothing
    /// was done; [`Denied`](crate::ErrorKind::Denied) if the toolbox's policy denies it; the errors of the vault.
    pub fn carry_out(
        self,
        toolbox: &mut Toolbox,
        cancel: Cancel<'_>,
        on_event: &mut dyn FnMut(&Event),
    ) -> Result<AppliedChange> {
        let Self { change, by } = self;
        let digest = change.digest().to_owned();
        match change.held {
            PreparedKind::Call(proposal) => toolbox.apply(&proposal, by).map(AppliedChange::Call),
            PreparedKind::Plan(preview) => plan::run(toolbox, &preview, by, cancel, on_event).map(AppliedChange::Plan),
            PreparedKind::Undo { id, change } => {
                if toolbox.vault().preview_undo(Some(id), Force::No)?.digest() != digest {
                    return Err(PreparedChange::is_other_than_shown());
                }
                let editors = toolbox.host().open_editors();
                let by = toolbox.vault().undo_in(Some(id), Force::No, editors)?;
                Ok(AppliedChange::Undo { undone: id, by, paths: change.paths() })
            }
        }
    }
}

impl ChangeOutput {
    /// Combines the outputs of several reading calls.
    pub fn new(value: Value, notices: Vec<String>) -> Self {
        Self { value, transaction: None, notices }
    }
}

impl AppliedChange {
    /// Converts the result into the form that is sent to a client.
    ///
    /// # Errors
    /// The error of the plan's failed step; its remedy names the part of the plan that remains applied.
    pub fn done(self) -> Result<ChangeOutput> {
        match self {
            Self::Call(Output { value, transaction, notices, .. }) => {
                Ok(ChangeOutput { value, transaction: transaction.map(|id| id.0), notices })
            }
            Self::Plan(run) => of_plan(run),
            Self::Undo { undone, by, mut paths } => {
                let mut notices = by.lost;
                if paths.len() > NAMED {
                    notices.push(format!("{} paths are as they were; these are {NAMED} of them", paths.len()));
                    paths.truncate(NAMED);
                }
                let value = json!({ "undone": undone.0, "changes": by.done, "paths": paths });
                Ok(ChangeOutput { value, transaction: Some(by.id.0), notices })
            }
        }
    }
}

fn of_plan(ended: PlanRun) -> Result<ChangeOutput> {
    if let Some((step, error)) = &ended.failed {
        let undo = ended.transaction.map(|id| format!("undo transaction {id} to revert them")).unwrap_or_default();
        return Err(error.clone().within(format!("step {step}")).with_remedy(ended.what_is_left(&undo)));
    }
    let left_out = ended.left_out.iter();
    let left_out: Vec<Value> = left_out
        .map(|(step, item)| json!({ "step": step, "item": item.item, "what": item.what, "reason": item.reason }))
        .collect();
    let skipped = ended.skipped.iter().map(|(step, reason)| json!({ "step": step, "reason": reason }));
    let skipped: Vec<Value> = skipped.collect();
    let is_done = ended.status == RunStatus::Done;
    let value = json!({ "done": is_done, "outputs": ended.outputs, "left_out": left_out, "skipped": skipped });
    Ok(ChangeOutput { value, transaction: ended.transaction.map(|id| id.0), notices: ended.notices })
}
