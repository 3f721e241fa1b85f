//! A change that was approved, and carrying it out.

use serde_json::{Value, json};

use super::prepared::{PreparedChange, PreparedKind};
use crate::error::{Error, Result};
use crate::journal::TransactionId;
use crate::log::Approval;
use crate::plan::{self, Event, PlanRun, RunStatus};
use crate::tool::Cancel;
use crate::toolbox::{Output, Toolbox};
use crate::transaction::{Force, Transaction};

/// The most paths that the answer to an undo names.
const NAMED: usize = 100;

/// A change that the policy, a grant or an approver has approved. Only [`settle`](super::settle) makes one, and it is used
/// once.
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

/// What was done.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum AppliedChange {
    /// A call was made.
    Call(Output),
    /// A plan was run; a step of it may have failed.
    Plan(PlanRun),
    /// A transaction was undone.
    Undo {
        /// Its number.
        undone: TransactionId,
        /// The transaction that undid it.
        by: Transaction,
        /// The files and folders that are as they were.
        paths: Vec<String>,
    },
}

/// What was done, as a client is told.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct ChangeOutput {
    /// What it returns.
    pub value: Value,
    /// The transaction that undoes it, if anything was changed.
    pub transaction: Option<u64>,
    /// What else the client should know.
    pub notices: Vec<String>,
}

impl ApprovedChange {
    pub(super) fn new(change: PreparedChange, by: Approval) -> Self {
        Self { change, by }
    }

    /// What was approved.
    pub fn change(&self) -> &PreparedChange {
        &self.change
    }

    /// Whether a person saw it.
    pub fn was_seen(&self) -> bool {
        matches!(self.by, Approval::Approved | Approval::Edited)
    }

    /// Does it, in the vault where it was prepared, and logs it. `on_event` is called with each event of a plan.
    ///
    /// # Errors
    /// [`Conflict`](crate::ErrorKind::Conflict) where files have changed since it was prepared, so that nothing was done;
    /// [`Denied`](crate::ErrorKind::Denied) where the toolbox's policy denies it; those of the vault.
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
                let by = toolbox.vault().undo(Some(id), Force::No)?;
                Ok(AppliedChange::Undo { undone: id, by, paths: change.paths() })
            }
        }
    }
}

impl ChangeOutput {
    /// What several calls that read have returned.
    pub fn new(value: Value, notices: Vec<String>) -> Self {
        Self { value, transaction: None, notices }
    }
}

impl AppliedChange {
    /// The same as a client is told.
    ///
    /// # Errors
    /// That of the step of a plan that failed; the remedy says what stays of the plan.
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
    if let Some((step, error)) = ended.failed {
        let left = match ended.transaction {
            Some(id) => format!("the steps before it stay; undo transaction {id} to revert them"),
            None => "nothing was changed".to_owned(),
        };
        return Err(Error::new(error.kind(), format!("step {step}: {}", error.message())).with_remedy(left));
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
