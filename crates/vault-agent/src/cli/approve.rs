//! `vault-agent approve CODE`: a person's yes to a change that a client without forms asked for.

use vault_search::VaultArgs;
use vault_search::tools::{Answer, Question, ask_about, declined};
use vault_search::{CliResult, Out, Outcome, can_ask, sanitize_line};
use vault_tools::{Cancel, Error, ErrorKind, Permission};

use super::args::ApproveArgs;
use crate::pending::PendingChanges;
use crate::workspace::{Granted, Workspace};

pub(super) fn approve(args: &ApproveArgs, out: &mut Out) -> CliResult {
    let changes = PendingChanges::of_user()?;
    let pending = changes.get(&args.code)?;
    if !can_ask() {
        // There is no option that says yes: whoever runs commands for a model could add it.
        return Err(Error::new(ErrorKind::Denied, "only a person at a terminal can approve a change")
            .with_remedy("run this command in a terminal of your own")
            .into());
    }
    let folders = VaultArgs { vault: vec![pending.vault.clone()], index: pending.index.clone() };
    let workspace = Workspace::open(&folders, Granted::default())?;
    let prepared = workspace
        .with(|vaults| pending.request.prepare(vaults.toolbox(0), &pending.now, Cancel::default()))
        .inspect_err(|_| _ = changes.remove(&pending.code))?;
    if prepared.digest != pending.digest {
        changes.remove(&pending.code)?;
        return Err(Error::new(ErrorKind::Conflict, "the notes have changed since the assistant asked for this")
            .with_remedy("nothing was changed; ask the assistant for the change again")
            .into());
    }
    if let Permission::Deny(reason) = &prepared.permission {
        changes.remove(&pending.code)?;
        return Err(Error::new(ErrorKind::Denied, reason.clone()).into());
    }
    let (short, whole) = prepared.texts();
    let folder = sanitize_line(&pending.vault.to_string_lossy());
    let title = format!("{} ({}), in {folder}", prepared.kind(), prepared.risk.name());
    let (short, whole) = (format!("{title}\n{short}"), format!("{title}\n{whole}"));
    let about = Question { question: "Approve this?", short: &short, whole: &whole, ..Question::default() };
    if ask_about(&about)? != Answer::Yes {
        changes.remove(&pending.code)?;
        return Err(declined().into());
    }
    changes.approve(&pending)?;
    out.line("approved: tell the assistant to go on; it makes the change when it asks again")?;
    Ok(Outcome::Done)
}
