//! The record of changes to the vault: a SQLite database, written before the vault is changed. It applies nothing.
//!
//! # The format
//!
//! The file `journal.db` in the vault's state folder has two tables, one row for each transaction and one for each of
//! its actions (`journal/database.rs` has the columns). Version 1, in `PRAGMA user_version`.
//!
//! | step | write | durable |
//! | --- | --- | --- |
//! | begin | the transaction, `unfinished`, and all its actions with what their inverses need | before the vault is touched |
//! | end | `done` or `rolled-back`, in the transaction's row | after what was done is durable |
//! | prune | the oldest transactions are deleted, and the file is rewritten without them | yes |
//!
//! # Room for the end
//!
//! A transaction can end, or be rolled back, on a full disk. Its row begins with a `reserve` that `end` drops, so that
//! no page has to be split; nothing else is ever updated, so the file does not grow. SQLite's own rollback journal is
//! kept between commits (`journal_mode = PERSIST`): begin has left it larger than what the end needs. A write-ahead log
//! would sync less often, but its end needs new room.
//!
//! # Damage
//!
//! Each transaction's row has a checksum over its columns, and a digest over its actions; a content is checked by the
//! hash in its action. A transaction that fails a check is listed as damaged and can be neither undone nor rolled back
//! automatically. A writer that finds the file damaged copies the readable part into a new one and keeps the old one as
//! `journal.db.damaged` (`journal/salvage.rs`).
//!
//! # Other formats
//!
//! A journal of another format, recognized by its `user_version` or because it is the text file `journal` of earlier
//! versions, is neither read nor written. The vault cannot be changed until you use the program that wrote the journal,
//! or `vault-tools journal reset` moves it aside.
//!
//! A transaction that is `unfinished` was interrupted by a crash. It is rolled back before anything else is done to the
//! vault, but if the journal is damaged or the vault was edited since, only on request (`transaction/recover.rs`).

mod database;
mod entry;
mod read;
mod salvage;
mod write;
mod prune;
mod reset;
#[cfg(test)]
mod tests;

pub(crate) use entry::{JournalAction, JournalEntry, NewTransaction, State as EntryState};
pub use entry::{TransactionId, TransactionKind};
pub use prune::{PruneOptions, PruneReport};
pub(crate) use prune::{prunable, prune};
pub(crate) use read::{contents, damaged, entries, has_all, has_damage, unfinished};
pub(crate) use reset::{files, reset};
pub(crate) use salvage::repair;
pub(crate) use write::Writer;

/// As if the process had been killed just before it wrote that the last transaction is over.
#[cfg(test)]
pub(crate) fn interrupt_last(state: &crate::state::State) {
    let connection = database::open_or_create(state).unwrap();
    let id: i64 = connection.query_row("SELECT max(id) FROM transaction_", [], |row| row.get(0)).unwrap();
    let mut entry = read::entry(&connection, id).unwrap().unwrap();
    (entry.state, entry.done) = (EntryState::Unfinished, 0);
    let update =
        "UPDATE transaction_ SET state = 'unfinished', done = 0, checksum = ?, reserve = zeroblob(64) WHERE id = ?";
    connection.execute(update, rusqlite::params![entry.checksum(), id]).unwrap();
}

/// The sizes of the files that a transaction writes.
#[cfg(test)]
pub(crate) fn sizes(state: &crate::state::State) -> Vec<u64> {
    [database::FILE, database::ROLLBACK]
        .iter()
        .map(|name| std::fs::metadata(state.folder().join(name)).unwrap().len())
        .collect()
}
