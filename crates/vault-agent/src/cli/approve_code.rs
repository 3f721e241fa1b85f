//! `vault-agent approve CODE`: a person approves a change that a client without forms requested.

use vault_search::VaultArgs;
use vault_search::tools::TerminalPrompt;
use vault_search::{CliResult, Out, Outcome, can_ask, sanitize_line};
use vault_tools::approval::settle;
use vault_tools::{Cancel, Error, ErrorKind, Grants};

use super::args::ApproveArgs;
use crate::change_text::kind;
use crate::pending_changes::PendingChanges;
use crate::workspace::{PolicyOverrides, Workspace};

pub(super) fn approve(args: &ApproveArgs, out: &mut Out) -> CliResult {
    let changes = PendingChanges::of_user()?;
    let pending = changes.get(&args.code)?;
    if !can_ask() {
        // There is no --yes, because anything that runs commands for a model could add it.
        return Err(Error::new(ErrorKind::Denied, "only a person at a terminal can approve a change")
            .with_remedy("run this command in a terminal of your own")
            .into());
    }
    let folders = VaultArgs { vault: vec![pending.vault.clone()], index: pending.index.clone() };
    let workspace = Workspace::open(&folders, PolicyOverrides::default())?;
    let prepared = workspace
        .with(|vaults| pending.request.prepare(vaults.toolbox(0), &pending.now, Cancel::default()))
        .inspect_err(|_| _ = changes.remove(&pending.code))?;
    if prepared.digest() != pending.digest {
        changes.remove(&pending.code)?;
        return Err(Error::new(ErrorKind::Conflict, "the notes have changed since the assistant asked for this")
            .with_remedy("nothing was changed; ask the assistant for the change again")
            .into());
    }
    let folder = sanitize_line(&pending.vault.to_string_lossy());
    let title = format!("{} ({}), in {folder}", kind(&prepared), prepared.risk().name());
    let mut prompt = TerminalPrompt { question: Some("Approve this"), head: vec![title], ..TerminalPrompt::default() };
    // The approval covers only the digest; the server makes the change when the assistant requests it again.
    if let Err(refused) = settle(prepared, &Grants::default(), &mut prompt) {
        changes.remove(&pending.code)?;
        return Err(workspace.with(|vaults| refused.log(vaults.toolbox(0))).into());
    }
    changes.approve(&pending)?;
    out.line("approved: tell the assistant to continue; it makes the change when it asks again")?;
    Ok(Outcome::Done)
}
