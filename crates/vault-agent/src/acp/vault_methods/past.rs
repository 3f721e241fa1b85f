//! The changes that were made in a vault, by whatever program, from the journal.

use vault_tools::{Preview, Result, TransactionId, TransactionInfo, TransactionKind, TransactionStatus};

use super::find::{limit, permits};
use super::messages::{
    FileChange, FileChangeKind, FolderChange, PastKind, PastStatus, PastTransaction, TransactionRequest,
    TransactionResult, TransactionsRequest, TransactionsResult,
};
use crate::workspace::OpenVault;

/// The most paths that an entry of the list names.
const PATHS: usize = 20;

/// Lists transactions, newest first.
///
/// # Errors
/// Those of the journal.
pub(super) fn transactions(open: &OpenVault, request: &TransactionsRequest) -> Result<TransactionsResult> {
    let limit = limit(request.limit)?;
    let mut warnings = open.vault.warnings().to_vec();
    if open.vault.is_journal_damaged()? {
        warnings.push("The journal is damaged: changes that it lost cannot be undone.".to_owned());
    }
    let mut known = open.vault.transactions()?;
    known.retain(|info| request.before.is_none_or(|before| info.id.0 < before));
    let mut shown = known.into_iter().filter_map(|info| past(open, info));
    let transactions = shown.by_ref().take(limit).collect();
    Ok(TransactionsResult { transactions, has_more: shown.next().is_some(), warnings })
}

/// A transaction without the paths that the settings deny; `None` if it has no others.
fn past(open: &OpenVault, info: TransactionInfo) -> Option<PastTransaction> {
    let time = serde_json::to_value(&info).ok()?;
    let had_paths = !info.paths.is_empty();
    let paths: Vec<String> = info.paths.into_iter().filter(|path| is_shown(open, path)).collect();
    if had_paths && paths.is_empty() {
        return None;
    }
    Some(PastTransaction {
        transaction: info.id.0,
        time: time["time"].as_str().unwrap_or_default().to_owned(),
        label: info.label,
        kind: match info.kind {
            TransactionKind::Undo => PastKind::Undo,
            TransactionKind::Redo => PastKind::Redo,
            _ => PastKind::Change,
        },
        of: info.of.map(|of| of.0),
        status: match info.status {
            TransactionStatus::Done => PastStatus::Done,
            TransactionStatus::Undone => PastStatus::Undone,
            TransactionStatus::RolledBack => PastStatus::RolledBack,
            TransactionStatus::Interrupted => PastStatus::Interrupted,
            _ => PastStatus::Damaged,
        },
        paths_in_all: paths.len(),
        paths: paths.into_iter().take(PATHS).collect(),
    })
}

/// Whether a path of the journal may be shown. The trash is no path of a note, but a place where one went.
fn is_shown(open: &OpenVault, path: &str) -> bool {
    path.strip_prefix(".trash/").map_or_else(|| permits(open, path), |path| open.policy().permits_path(path))
}

/// Shows a transaction with its diffs.
///
/// # Errors
/// No such transaction; those of the journal.
pub(super) fn transaction(open: &OpenVault, request: &TransactionRequest) -> Result<TransactionResult> {
    let mut preview = open.vault.past_change(TransactionId(request.transaction))?.preview();
    let all = preview.files.len();
    preview.files.retain(|file| is_shown(open, &file.path) && file.to.as_deref().is_none_or(|to| is_shown(open, to)));
    if preview.files.len() < all {
        // Notices name files, too.
        preview.notices = vec!["Files that the settings of this vault deny are left out.".to_owned()];
    }
    let (files, folders) = shown(&preview);
    Ok(TransactionResult { files, folders, notices: preview.notices })
}

/// The files and folders of a preview.
pub(in crate::acp) fn shown(preview: &Preview) -> (Vec<FileChange>, Vec<FolderChange>) {
    let files = preview.files.iter().map(|file| FileChange {
        kind: kind(file.kind),
        path: file.path.clone(),
        to: file.to.clone(),
        diff: file.diff.clone(),
        added: file.added,
        removed: file.removed,
        inside: file.inside.clone(),
    });
    let folders = preview.folders.iter();
    let folders = folders.map(|folder| FolderChange { kind: kind(folder.kind), path: folder.path.clone() });
    (files.collect(), folders.collect())
}

fn kind(kind: vault_tools::Kind) -> FileChangeKind {
    match kind {
        vault_tools::Kind::Created => FileChangeKind::Created,
        vault_tools::Kind::Modified => FileChangeKind::Modified,
        vault_tools::Kind::Renamed => FileChangeKind::Renamed,
        vault_tools::Kind::Deleted => FileChangeKind::Deleted,
    }
}
