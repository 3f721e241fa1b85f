//! What a client wants done in a vault: a call, a plan or an undo. It is prepared first, which changes nothing and says
//! everything that a person has to know, and then carried out exactly so, or not at all.

use jiff::Zoned;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use vault_cli::sanitize_line;
use vault_tools::cli::{change_of, cut, texts_after, texts_of_plan};
use vault_tools::plan::{self, Event, Parameters, PlanPreview, RunStatus};
use vault_tools::{
    Approval, Call, Cancel, Error, ErrorKind, Force, Grants, Permission, Policy, Preview, Proposal, Result, Risk,
    Toolbox, Toolset, TransactionId, Vault,
};

/// The name under which undoing is offered and judged by the policy.
pub(crate) const UNDO: &str = "undo";

/// What a client wants done in one vault.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Request {
    /// A call of a tool.
    Call { tool: String, args: Value },
    /// A plan, with the values of its parameters.
    Plan { plan: Value, parameters: Map<String, Value> },
    /// The undoing of a transaction, or of the newest one that can be undone.
    Undo { transaction: Option<u64> },
}

/// A request that ran on an overlay: what it would do.
#[derive(Debug)]
pub(crate) struct Prepared {
    /// What it is, on one line.
    pub title: String,
    /// The worst that it does.
    pub risk: Risk,
    /// What the policy says.
    pub permission: Permission,
    /// What it changes.
    pub preview: Preview,
    /// What stands before the diff when a person is asked.
    head: Vec<String>,
    /// By which a yes is bound to exactly this.
    pub digest: String,
    held: Held,
}

#[derive(Debug)]
enum Held {
    Call(Box<Proposal>),
    Plan(Box<PlanPreview>),
    Undo(TransactionId),
}

/// A request that was carried out.
#[derive(Debug)]
pub(crate) struct Done {
    /// What it returns.
    pub value: Value,
    /// The transaction that undoes it, if anything was changed.
    pub transaction: Option<u64>,
    /// What else the client should know.
    pub notices: Vec<String>,
}

impl Request {
    /// Runs it on an overlay. Nothing is changed. The same request at the same time `now` has the same digest for as long
    /// as the files that it concerns are the same.
    ///
    /// # Errors
    /// Whatever the tools say; [`ErrorKind::Denied`] for what the policy denies.
    pub fn prepare(&self, toolbox: &mut Toolbox, now: &Zoned, cancel: Cancel<'_>) -> Result<Prepared> {
        toolbox.set_now(now.clone());
        match self {
            Self::Call { tool, args } => of_call(toolbox, tool, args.clone(), cancel),
            Self::Plan { plan, parameters } => of_plan(toolbox, plan, parameters, cancel),
            Self::Undo { transaction } => of_undo(toolbox, transaction.map(TransactionId)),
        }
    }
}

fn of_call(toolbox: &mut Toolbox, tool: &str, args: Value, cancel: Cancel<'_>) -> Result<Prepared> {
    // A tool that asks before it reads, asks about what it would return.
    let proposal = toolbox.propose(tool, args, cancel)?;
    let permission = toolbox.policy().decide(&proposal.as_call(), &Grants::default());
    let digest = match proposal.only_reads() {
        true => digest_of(&proposal.output.to_string()),
        false => proposal.change.digest(),
    };
    let effects = proposal.effects.iter().map(|effect| format!("it {}", sanitize_line(&effect.to_string())));
    let mut head: Vec<String> = effects.collect();
    if proposal.only_reads() && permission == Permission::Ask {
        head.push(format!("it returns {}", sanitize_line(&proposal.output.to_string())));
    }
    Ok(Prepared {
        title: proposal.tool.clone(),
        risk: proposal.risk,
        permission,
        preview: proposal.change.preview(),
        head,
        digest,
        held: Held::Call(Box::new(proposal)),
    })
}

fn of_plan(toolbox: &mut Toolbox, plan: &Value, given: &Map<String, Value>, cancel: Cancel<'_>) -> Result<Prepared> {
    let checked = plan::validate(plan, toolbox)?;
    let mut parameters = Parameters::of(&toolbox.editor()?, &toolbox.now());
    given.iter().for_each(|(name, value)| parameters.set(name.clone(), value.clone()));
    let preview = plan::preview(toolbox, &checked, &parameters, cancel)?;
    Ok(Prepared {
        title: format!("the plan: {}", sanitize_line(&preview.plan.goal)),
        risk: preview.risk,
        permission: preview.permission(toolbox.policy(), &Grants::default()),
        preview: change_of(&preview),
        head: Vec::new(),
        digest: preview.digest.clone(),
        held: Held::Plan(Box::new(preview)),
    })
}

fn of_undo(toolbox: &Toolbox, transaction: Option<TransactionId>) -> Result<Prepared> {
    let vault = toolbox.vault();
    let id = match transaction {
        Some(id) => id,
        None => newest(vault)?,
    };
    let change = vault.preview_undo(Some(id), Force::No)?;
    let paths = change.paths();
    permit(toolbox.policy(), &paths)?;
    let call = Call::new(UNDO, Toolset::Notes, Risk::Write, &paths);
    Ok(Prepared {
        title: format!("undo transaction {id}"),
        risk: Risk::Write,
        permission: toolbox.policy().decide(&call, &Grants::default()),
        preview: change.preview(),
        head: Vec::new(),
        digest: change.digest(),
        held: Held::Undo(id),
    })
}

/// The newest transaction that is in effect and is no undo itself.
fn newest(vault: &Vault) -> Result<TransactionId> {
    use vault_tools::{TransactionKind, TransactionStatus};
    let is_undoable = |info: &&vault_tools::TransactionInfo| {
        info.status == TransactionStatus::Done && info.kind != TransactionKind::Undo
    };
    vault.transactions()?.iter().find(is_undoable).map(|info| info.id).ok_or_else(|| {
        Error::new(ErrorKind::NotFound, "there is nothing to undo").with_remedy("nothing was changed in this vault yet")
    })
}

/// Says no word of a file that the settings deny, not even that a transaction changed it.
fn permit(policy: &Policy, paths: &[String]) -> Result<()> {
    match paths.iter().all(|path| policy.permits_path(path)) {
        true => Ok(()),
        false => Err(Error::new(ErrorKind::Denied, "this transaction changed something that the settings deny")
            .with_remedy("a person can undo it with vault-tools undo")),
    }
}

pub(crate) fn digest_of(text: &str) -> String {
    blake3::hash(text.as_bytes()).to_hex().to_string()
}

impl Prepared {
    /// What a person is shown: cut to a screen, and whole.
    pub fn texts(&self) -> (String, String) {
        let (short, whole) = match &self.held {
            Held::Plan(plan) => texts_of_plan(plan, &self.preview),
            _ => texts_after(self.head.clone(), &self.preview),
        };
        (cut(&short, &whole), whole)
    }

    /// The question to a person, with what they would agree to.
    pub fn question(&self, vault: &str) -> String {
        let undo = match self.risk {
            Risk::Command => "A command of the editor cannot be undone.",
            Risk::Read => "Nothing is changed: the assistant gets to read it.",
            _ => "It can be undone, byte for byte.",
        };
        let (title, risk, text) = (&self.title, self.risk.name(), self.texts().0);
        format!("{title} in the vault {} (risk: {risk})\n\n{text}\n\n{undo}", sanitize_line(vault))
    }

    /// The plan that was prepared, if it is one.
    pub fn plan(&self) -> Option<&PlanPreview> {
        match &self.held {
            Held::Plan(plan) => Some(plan),
            _ => None,
        }
    }

    /// Does what was prepared.
    ///
    /// # Errors
    /// [`ErrorKind::Conflict`] where files have changed since, so that nothing was done; those of the vault.
    pub fn carry_out(
        self,
        toolbox: &mut Toolbox,
        approval: Approval,
        cancel: Cancel<'_>,
        on_event: &mut dyn FnMut(&Event),
    ) -> Result<Done> {
        match self.held {
            Held::Call(proposal) => {
                let output = toolbox.apply(*proposal, approval)?;
                let transaction = output.run.map(|run| run.0);
                Ok(Done { value: output.value, transaction, notices: output.notices })
            }
            Held::Plan(preview) => run(toolbox, &preview, approval, cancel, on_event),
            Held::Undo(id) => {
                let done = toolbox.vault().undo(Some(id), Force::No)?;
                let value = json!({ "undone": id.0, "changes": done.done });
                Ok(Done { value, transaction: Some(done.id.0), notices: done.lost })
            }
        }
    }

    /// Writes into the log that it was not carried out.
    pub fn refuse(&self, toolbox: &mut Toolbox, reason: &Error) {
        match &self.held {
            Held::Call(proposal) => toolbox.refuse(&proposal.tool, &proposal.args, reason),
            Held::Plan(preview) => plan::refuse(toolbox, preview, reason),
            Held::Undo(_) => {}
        }
    }
}

fn run(
    toolbox: &mut Toolbox,
    preview: &PlanPreview,
    approval: Approval,
    cancel: Cancel<'_>,
    on_event: &mut dyn FnMut(&Event),
) -> Result<Done> {
    let ended = plan::run(toolbox, preview, approval, cancel, on_event)?;
    if let Some((step, error)) = ended.failed {
        let left = match ended.run {
            Some(run) => format!("the steps before it stay; undo transaction {run} to revert them"),
            None => "nothing was changed".to_owned(),
        };
        return Err(Error::new(error.kind(), format!("step {step}: {}", error.message())).with_remedy(left));
    }
    let left_out: Vec<Value> = ended
        .left_out
        .iter()
        .map(|(step, item)| json!({ "step": step, "item": item.item, "what": item.what, "reason": item.reason }))
        .collect();
    let skipped: Vec<Value> =
        ended.skipped.iter().map(|(step, reason)| json!({ "step": step, "reason": reason })).collect();
    let is_done = ended.status == RunStatus::Done;
    let value = json!({ "done": is_done, "outputs": ended.outputs, "left_out": left_out, "skipped": skipped });
    Ok(Done { value, transaction: ended.run.map(|run| run.0), notices: ended.notices })
}
