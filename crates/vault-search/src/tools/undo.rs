//! `vault-tools undo`, `redo`, `prune` and `journal reset`: the commands that use the journal.

use std::path::Path;
use std::time::Duration;

use serde_json::json;
use vault_tools::approval::PreparedChange;
use vault_tools::{
    Change, Force, PruneOptions, PruneReport, RecoveryMode, Result, Transaction, TransactionId, TransactionInfo,
    TransactionStatus, Vault, plan, prune_log,
};

use crate::{CliResult, Failure, Out, Outcome, can_ask, counted, sanitize_line, say};

use super::approve::{Reply, TerminalQuestion, agreed, ask_about, declined, nobody_to_ask};
use super::args::{PruneArgs, PruneLimits, RedoArgs, ResetArgs, RevertArgs, UndoArgs};
use super::moved::hint_at_adopt;
use super::preview_text::texts_of;
use super::settings;
use crate::VaultArgs;

/// The maximum number of paths that the list of transactions shows for each.
const NAMED_PATHS: usize = 3;

pub fn undo(vault_args: &VaultArgs, args: &UndoArgs, out: &mut Out) -> CliResult {
    if args.output.schema {
        return out.list_schema::<TransactionInfo>(&args.output);
    }
    let vault = settings::open(vault_args)?;
    if args.list {
        return list(&vault, args, out);
    }
    if args.recover || args.keep {
        return recover(&vault, args, out);
    }
    hint_at_adopt(&vault);
    let (transaction, force) = (args.transaction.map(TransactionId), force(&args.revert));
    let json = args.output.json || args.output.jsonl;
    let change = || vault.preview_undo(transaction, force);
    revert(change, &args.revert, json, "Undo this?", || vault.undo(transaction, force), out)
}

/// Rolls back or keeps a transaction that a crash interrupted.
fn recover(vault: &Vault, args: &UndoArgs, out: &mut Out) -> CliResult {
    let _writing = crate::write_section();
    let recovered = vault.recover(if args.keep { RecoveryMode::Keep } else { RecoveryMode::RollBack })?;
    let is_json = args.output.json || args.output.jsonl;
    if is_json {
        out.record(&recovered)?;
    }
    let Some(recovered) = recovered else {
        if !is_json {
            out.line("there is no interrupted transaction")?;
        }
        return Ok(Outcome::Done);
    };
    let id = recovered.id;
    if !is_json {
        recovered.left.iter().for_each(|left| say("not rolled back", left));
    }
    if !args.keep && !recovered.left.is_empty() {
        return Err(Failure::Refused(format!(
            "transaction {id} was rolled back only in part: the items above were not rolled back"
        )));
    }
    if !is_json {
        out.line(&match args.keep {
            true => format!("kept: transaction {id}, which can be undone"),
            false => format!("rolled back: transaction {id}, {} actions reverted", recovered.rolled_back),
        })?;
    }
    Ok(Outcome::Done)
}

pub fn redo(vault_args: &VaultArgs, args: &RedoArgs, out: &mut Out) -> CliResult {
    let vault = settings::open(vault_args)?;
    let force = force(&args.revert);
    revert(|| vault.preview_redo(force), &args.revert, args.json, "Redo this?", || vault.redo(force), out)
}

fn force(args: &RevertArgs) -> Force {
    if args.force { Force::Yes } else { Force::No }
}

/// Undoes or redoes a transaction. `change` is computed only if it is shown, so that --yes is faster.
///
/// The policy is not asked, because it binds assistants: a person can always undo what one did.
fn revert(
    change: impl Fn() -> Result<Change>,
    args: &RevertArgs,
    json: bool,
    question: &str,
    act: impl FnOnce() -> Result<Transaction>,
    out: &mut Out,
) -> CliResult {
    if args.dry_run || !args.yes {
        let shown = change()?;
        let preview = shown.preview();
        let (short, whole) = texts_of(&preview);
        if args.dry_run {
            let text = out.paint.diff(&whole);
            if json {
                out.record(&preview)?
            } else {
                out.text(&text)?
            };
            return Ok(Outcome::Done);
        }
        if !can_ask() {
            return Err(nobody_to_ask("this").into());
        }
        if ask_about(&TerminalQuestion { question, short: &short, whole: &whole, ..TerminalQuestion::default() })?
            != Reply::Yes
        {
            return Err(declined().into());
        }
        // Another program may have changed the notes, or made a newer transaction, while the person read.
        if change()?.digest() != shown.digest() {
            return Err(PreparedChange::is_other_than_shown().into());
        }
    }
    // Held until the outcome is printed, because a signal after the change must not end the command.
    let _writing = crate::write_section();
    let Transaction { id, done, lost, .. } = act()?;
    if json {
        out.record(&json!({ "transaction": id, "actions": done, "lost": lost }))?;
        return Ok(Outcome::Done);
    }
    lost.iter().for_each(|lost| say("lost", lost));
    out.line(&format!("done: {}, transaction {id}", counted(done, "change")))?;
    Ok(Outcome::Done)
}

fn list(vault: &Vault, args: &UndoArgs, out: &mut Out) -> CliResult {
    hint_at_adopt(vault);
    let rows = vault.transactions()?;
    if vault.is_journal_damaged()? || rows.iter().any(|row| row.status == TransactionStatus::Damaged) {
        say("warning", "the journal is damaged: transactions that it lost, wholly or in part, cannot be undone");
    }
    out.list(args.output.format(), &rows, |out, rows| {
        for row in rows {
            // Use the words of the JSON output.
            let words = serde_json::to_value(row)?;
            let word = |name: &str| words[name].as_str().unwrap_or_default();
            let of = row.of.map(|of| format!(" of {of}")).unwrap_or_default();
            let head = out.paint.bold(&format!("{:>4}", row.id.0));
            let (time, status, kind) = (word("time"), word("status"), word("kind"));
            let paths = paths_of(row);
            out.line(&format!("{head}  {time}  {status:11}  {kind}{of}  {}  {paths}", sanitize_line(&row.label)))?;
        }
        Ok(())
    })
}

/// Returns the first paths of a transaction, and the number of the others.
fn paths_of(row: &TransactionInfo) -> String {
    let mut text = row.paths.iter().take(NAMED_PATHS).map(|path| sanitize_line(path)).collect::<Vec<_>>().join(", ");
    if row.paths.len() > NAMED_PATHS {
        text.push_str(&format!(" and {} more", row.paths.len() - NAMED_PATHS));
    }
    text
}

pub(super) fn prune(vault_args: &VaultArgs, args: &PruneArgs, out: &mut Out) -> CliResult {
    let vault = settings::open(vault_args)?;
    let PruneLimits { older_than, max_size } = &args.what;
    let older_than = older_than.map(|days| Duration::from_secs(u64::from(days) * 24 * 60 * 60));
    let max_bytes = max_size.map(|megabytes| megabytes.saturating_mul(1_000_000));
    let mut options = PruneOptions::default();
    (options.older_than, options.max_bytes) = (older_than, max_bytes);
    let PruneReport { transactions, left, .. } = vault.prunable(&options)?;
    if transactions > 0 && left == 0 {
        let question =
            format!("Delete all {}? Nothing can be undone afterwards.", counted(transactions, "transaction"));
        let remedy = "it would delete every transaction, and nothing could be undone afterwards; add --yes";
        agreed(args.yes, "this", remedy, &question)?;
    }
    let pruned = vault.prune(&options)?;
    let before = older_than
        .and_then(|age| jiff::SignedDuration::try_from(age).ok())
        .and_then(|age| jiff::Timestamp::now().checked_sub(age).ok());
    let lines = prune_log(vault.state(), before, max_bytes)?;
    plan::prune_history(vault.state(), before, max_bytes)?;
    out.line(&format!(
        "deleted {} ({} bytes) and {} of the log; {} left",
        counted(pruned.transactions, "transaction"),
        pruned.bytes,
        counted(lines, "line"),
        counted(pruned.left, "transaction")
    ))?;
    Ok(Outcome::Done)
}

pub(super) fn reset_journal(vault_args: &VaultArgs, args: &ResetArgs, out: &mut Out) -> CliResult {
    let vault = settings::open(vault_args)?;
    let shown = |path: &Path| sanitize_line(&path.to_string_lossy());
    let files: Vec<String> = vault.journal_files().iter().map(|path| shown(path)).collect();
    if files.is_empty() {
        out.line("there is no journal")?;
        return Ok(Outcome::Done);
    }
    let question = format!("Move {} aside? Its transactions can no longer be undone.", files.join(" and "));
    agreed(args.yes, "this", "the journal's transactions could no longer be undone; add --yes", &question)?;
    for path in vault.reset_journal()? {
        out.line(&format!("the journal is now {}", shown(&path)))?;
    }
    Ok(Outcome::Done)
}
