//! A change that ran once, on an overlay: its preview, and the decision of the policy.

use std::sync::OnceLock;

use serde_json::Value;

use crate::action::Action;
use crate::change::{Change, EditedFile, Preview};
use crate::content::ContentHash;
use crate::error::{Error, ErrorKind, Result};
use crate::expect::ChangeCounts;
use crate::journal::TransactionId;
use crate::plan::PlanPreview;
use crate::policy::{Call, Grants, LastingPermission, Permission, Policy, Risk, Toolset};
use crate::tool::HostEffect;
use crate::toolbox::Proposal;

/// The tool name under which undoing is offered and judged by the policy.
pub const UNDO: &str = "undo";

/// A change that is ready to be shown, asked about and carried out.
///
/// It holds its effects, so that carrying it out does exactly that, or nothing if the notes have changed since.
#[derive(Debug, Clone)]
pub struct PreparedChange {
    pub(super) held: PreparedKind,
    permission: Permission,
    lasting: Option<LastingPermission>,
    digest: String,
    is_edited: bool,
    /// Computed when it is first shown, because comparing texts takes time and an allowed change is never shown.
    preview: OnceLock<Preview>,
}

#[derive(Debug, Clone)]
pub(super) enum PreparedKind {
    Call(Box<Proposal>),
    Plan(Box<PlanPreview>),
    Undo { id: TransactionId, change: Box<Change> },
}

impl PreparedChange {
    /// Prepares a call that was proposed.
    pub fn of_call(proposal: Proposal, policy: &Policy) -> Self {
        let permission = policy.decide(&proposal.as_call(), &Grants::default());
        let lasting = policy.lasting_permission(&proposal.as_call());
        // If a tool asks before it reads, the question is about the result that it would return.
        let digest = match proposal.only_reads() {
            true => ContentHash::of(proposal.output.to_string().as_bytes()).to_string(),
            false => proposal.change.digest(),
        };
        Self { lasting, ..Self::new(PreparedKind::Call(Box::new(proposal)), permission, digest) }
    }

    /// Prepares a plan that was previewed.
    pub fn of_plan(plan: PlanPreview, policy: &Policy) -> Self {
        let (permission, digest) = (plan.permission(policy, &Grants::default()), plan.digest.clone());
        Self::new(PreparedKind::Plan(Box::new(plan)), permission, digest)
    }

    /// Prepares the undoing of a transaction.
    ///
    /// # Errors
    /// [`ErrorKind::Denied`] if the transaction changed a file that the settings deny; the error does not name the
    /// file.
    pub(super) fn of_undo(id: TransactionId, change: Change, policy: &Policy) -> Result<Self> {
        let paths = change.paths();
        if !paths.iter().all(|path| policy.permits_path(path)) {
            let error = Error::new(ErrorKind::Denied, "this transaction changed something that the settings deny");
            return Err(error.with_remedy("a person can undo it with vault-tools undo"));
        }
        let call = Call::new(UNDO, Toolset::Notes, Risk::Write, &paths);
        let mut permission = policy.decide(&call, &Grants::default());
        // The undo deletes only files that the transaction created. Even so, no note is deleted without approval.
        if permission == Permission::Allow && change.deletes() {
            permission = Permission::Ask;
        }
        let digest = change.digest();
        Ok(Self::new(PreparedKind::Undo { id, change: Box::new(change) }, permission, digest))
    }

    fn new(held: PreparedKind, permission: Permission, digest: String) -> Self {
        Self { held, permission, lasting: None, digest, is_edited: false, preview: OnceLock::new() }
    }

    /// Marks the change as one whose arguments or plan a person has edited, which is logged.
    #[must_use]
    pub fn edited(mut self) -> Self {
        self.is_edited = true;
        self
    }

    pub(super) fn is_edited(&self) -> bool {
        self.is_edited
    }

    /// Returns a title of one line: the tool, the goal of the plan, or the transaction. It is not filtered for a
    /// terminal.
    pub fn title(&self) -> String {
        match &self.held {
            PreparedKind::Call(proposal) => proposal.tool.clone(),
            PreparedKind::Plan(plan) => format!("the plan: {}", plan.plan.goal),
            PreparedKind::Undo { id, .. } => format!("undo transaction {id}"),
        }
    }

    /// Returns the highest risk of its effects.
    pub fn risk(&self) -> Risk {
        match &self.held {
            PreparedKind::Call(proposal) => proposal.risk,
            PreparedKind::Plan(plan) => plan.risk,
            PreparedKind::Undo { .. } => Risk::Write,
        }
    }

    /// Returns the decision of the policy, which [`settle`](super::settle) follows.
    pub fn permission(&self) -> &Permission {
        &self.permission
    }

    /// Returns the narrowest lasting permission that would cover the change; `None` if none can.
    pub fn lasting_permission(&self) -> Option<&LastingPermission> {
        self.lasting.as_ref()
    }

    /// Returns whether a session's grants cover the change: those for its tools, up to the tools' own risks.
    pub(super) fn is_granted(&self, grants: &Grants) -> bool {
        match &self.held {
            PreparedKind::Call(proposal) => grants.cover(&proposal.as_call()),
            PreparedKind::Plan(plan) => plan.calls().all(|call| grants.cover(&call)),
            PreparedKind::Undo { .. } => false,
        }
    }

    /// Returns the preview of its changes. The notices of a plan's changes are among those of the plan.
    pub fn preview(&self) -> &Preview {
        self.preview.get_or_init(|| match &self.held {
            PreparedKind::Call(proposal) => proposal.change.preview(),
            PreparedKind::Plan(plan) => Preview { notices: Vec::new(), ..plan.change.preview() },
            PreparedKind::Undo { change, .. } => change.preview(),
        })
    }

    /// Returns how many notes and links it touches.
    pub fn touched(&self) -> ChangeCounts {
        match &self.held {
            PreparedKind::Call(proposal) => proposal.change.touched(),
            PreparedKind::Plan(plan) => plan.change.touched(),
            PreparedKind::Undo { change, .. } => change.touched(),
        }
    }

    /// Returns the effects that the host around the vault would carry out for a call; those of a plan are in its steps.
    pub fn effects(&self) -> &[HostEffect] {
        match &self.held {
            PreparedKind::Call(proposal) => &proposal.effects,
            PreparedKind::Plan(_) | PreparedKind::Undo { .. } => &[],
        }
    }

    /// Returns the output of a call whose result needs an approval. A client must not learn it before that approval.
    pub fn returns(&self) -> Option<&Value> {
        match &self.held {
            PreparedKind::Call(call) if call.only_reads() && self.permission == Permission::Ask => Some(&call.output),
            _ => None,
        }
    }

    /// Returns the digest that binds an approval, which comes later or from another process, to exactly this change:
    /// the same request at the same time has the same digest as long as the files that it concerns are the same.
    pub fn digest(&self) -> &str {
        &self.digest
    }

    /// The error for an approval of a preview that is no longer the preview of this change.
    pub fn is_other_than_shown() -> Error {
        let message = "the notes have changed since this was shown, so it would do something else";
        Error::new(ErrorKind::Conflict, message).with_remedy("nothing was done; ask for it again")
    }

    /// The error for a change that a person declined. For a call its message is a fixed one, because clients
    /// compare it.
    pub fn declined(&self, said: Option<&str>) -> Error {
        const OVERWRITING: [&str; 3] = ["write_note", "vault.createFile", "vault.writeFile"];
        let overwrites = |call: &Proposal| {
            let is_edit = |action: &Action| matches!(action, Action::Edit { .. });
            OVERWRITING.contains(&call.tool.as_str()) && call.change.actions().iter().any(is_edit)
        };
        let what = match &self.held {
            PreparedKind::Call(call) if overwrites(call) => "User cancelled overwrite",
            PreparedKind::Call(_) => "User cancelled tool execution",
            PreparedKind::Plan(_) | PreparedKind::Undo { .. } => "not approved",
        };
        let said = said.map(|said| format!(": {said}")).unwrap_or_default();
        Error::new(ErrorKind::Denied, format!("{what}{said}")).with_remedy("nothing was done")
    }

    /// Returns the call, if it is one.
    pub fn call(&self) -> Option<&Proposal> {
        match &self.held {
            PreparedKind::Call(proposal) => Some(proposal),
            _ => None,
        }
    }

    /// Returns the plan, if it is one.
    pub fn plan(&self) -> Option<&PlanPreview> {
        match &self.held {
            PreparedKind::Plan(plan) => Some(plan),
            _ => None,
        }
    }

    /// Returns the files that a call edits and of which a person can leave out parts.
    pub fn separable_files(&self) -> Vec<EditedFile> {
        self.call().map(Proposal::separable_files).unwrap_or_default()
    }

    /// Returns the change without the parts that a person left out of its [`Self::separable_files`].
    #[must_use]
    pub fn without(&self, files: &[EditedFile]) -> Self {
        let mut rest = self.clone();
        if let PreparedKind::Call(proposal) = &mut rest.held {
            proposal.keep(files);
            rest.preview = OnceLock::new();
        }
        rest
    }
}
