//! The decision about a change, which comes from the policy, from a grant or from an approver.

use serde_json::Value;

use super::approved::{AppliedChange, ApprovedChange};
use super::approver::{Answer, Approver};
use super::prepared::{PreparedChange, PreparedKind};
use crate::error::{Error, ErrorKind, Result};
use crate::log::Approval;
use crate::plan::{self, Event, PlanPreview, PlanRun};
use crate::policy::{Grants, Permission};
use crate::tool::Cancel;
use crate::toolbox::{Output, Toolbox};

/// The reason that there is no [`ApprovedChange`].
#[derive(Debug)]
#[non_exhaustive]
pub enum UnapprovedChange {
    /// It is denied or refused.
    Refused {
        /// The change.
        change: Box<PreparedChange>,
        /// The reason.
        reason: Error,
    },
    /// The approver answers later; the change can be settled again then.
    Later(Box<PreparedChange>),
}

impl UnapprovedChange {
    /// Logs that the change was refused. Returns the reason.
    pub fn log(self, toolbox: &mut Toolbox) -> Error {
        match self {
            Self::Refused { change, reason } => {
                match &change.held {
                    PreparedKind::Call(proposal) => toolbox.refuse(&proposal.tool, &proposal.args, &reason),
                    PreparedKind::Plan(preview) => plan::refuse(toolbox, preview, &reason),
                    PreparedKind::Undo { .. } => {}
                }
                reason
            }
            Self::Later(change) => {
                Error::new(ErrorKind::Denied, format!("{} was not answered yet; nothing was done", change.title()))
            }
        }
    }
}

/// Decides about a change: a denied one is refused, and an allowed or granted one is approved. For any other the
/// approver is asked, repeatedly as long as it answers with another change.
///
/// # Errors
/// The reason that it is not approved.
pub fn settle(
    mut change: PreparedChange,
    grants: &Grants,
    approver: &mut dyn Approver,
) -> std::result::Result<ApprovedChange, UnapprovedChange> {
    let mut was_asked = false;
    loop {
        if let Some(reason) = denial(&change) {
            return Err(refused(change, reason));
        }
        match change.permission() {
            Permission::Allow if !was_asked => return Ok(ApprovedChange::new(change, Approval::Allowed)),
            Permission::Ask if !was_asked && change.is_granted(grants) => {
                return Ok(ApprovedChange::new(change, Approval::Granted));
            }
            // A change that a person has edited is shown to them again, even if the policy allows it.
            _ => {}
        }
        match approver.ask(&change) {
            Answer::Yes => {
                let by = if change.is_edited() { Approval::Edited } else { Approval::Approved };
                return Ok(ApprovedChange::new(change, by));
            }
            Answer::YesUnseen => return Ok(ApprovedChange::new(change, Approval::Preapproved)),
            Answer::Declined(said) => {
                let reason = change.declined(said.as_deref());
                return Err(refused(change, reason));
            }
            Answer::No(reason) => return Err(refused(change, reason)),
            Answer::Later => return Err(UnapprovedChange::Later(Box::new(change))),
            Answer::Instead(other) => (change, was_asked) = (*other, true),
        }
    }
}

/// Approves a change that a person has approved elsewhere, identified by the digest of the change that they were shown.
/// If the change would now do something else, it is refused with `other`.
///
/// # Errors
/// The reason that it is not approved.
pub fn settle_shown(
    change: PreparedChange,
    shown: &str,
    other: Error,
) -> std::result::Result<ApprovedChange, UnapprovedChange> {
    match denial(&change).or_else(|| (change.digest() != shown).then_some(other)) {
        Some(reason) => Err(refused(change, reason)),
        None => Ok(ApprovedChange::new(change, Approval::Approved)),
    }
}

/// Returns the reason for a refusal that no answer can override.
fn denial(change: &PreparedChange) -> Option<Error> {
    let blocked = change.plan().and_then(|plan| plan.blocked.clone());
    blocked.or_else(|| match change.permission() {
        Permission::Deny(reason) => Some(Error::new(ErrorKind::Denied, reason.clone())),
        Permission::Allow | Permission::Ask => None,
    })
}

fn refused(change: PreparedChange, reason: Error) -> UnapprovedChange {
    UnapprovedChange::Refused { change: Box::new(change), reason }
}

impl Toolbox {
    /// Proposes a call, asks for its approval and carries it out.
    ///
    /// # Errors
    /// The errors of [`Self::propose`]; the refusal; the errors of [`ApprovedChange::carry_out`]. Each is logged once.
    pub fn call(&mut self, name: &str, args: Value, approver: &mut dyn Approver) -> Result<Output> {
        let proposal = self.propose(name, args, Cancel::default())?;
        let change = PreparedChange::of_call(proposal, self.policy());
        let approved = settle(change, &Grants::default(), approver).map_err(|refused| refused.log(self))?;
        match approved.carry_out(self, Cancel::default(), &mut |_| {})? {
            AppliedChange::Call(output) => Ok(output),
            other => unreachable!("a call is carried out as {other:?}"),
        }
    }
}

/// Asks for the approval of a plan that was previewed, and runs it. A failed step is in [`PlanRun::failed`].
///
/// # Errors
/// The refusal; [`PlanPreview::blocked`]; the errors of [`ApprovedChange::carry_out`]. Each is logged.
pub fn run_plan(
    toolbox: &mut Toolbox,
    plan: PlanPreview,
    approver: &mut dyn Approver,
    cancel: Cancel<'_>,
    on_event: &mut dyn FnMut(&Event),
) -> Result<PlanRun> {
    let change = PreparedChange::of_plan(plan, toolbox.policy());
    let approved = settle(change, &Grants::default(), approver).map_err(|refused| refused.log(toolbox))?;
    match approved.carry_out(toolbox, cancel, on_event)? {
        AppliedChange::Plan(run) => Ok(run),
        other => unreachable!("a plan is carried out as {other:?}"),
    }
}
