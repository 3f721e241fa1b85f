//! Records transactions: before they begin, while they are in progress, and when they end.

use std::time::{SystemTime, UNIX_EPOCH};

use rusqlite::{Connection, TransactionBehavior, params};

use super::database::{FILE, Failure, may_be_written, open, open_or_create};
use super::entry::{JournalAction, JournalEntry, NewTransaction, State as EntryState, insert, name_of};
use super::{read, salvage};
use crate::action::Action;
use crate::error::{Error, ErrorKind, Result};
use crate::failpoint;
use crate::sandbox::SavedMetadata;
use crate::state::State;

/// A transaction in progress.
#[derive(Debug)]
pub(crate) struct Writer<'s> {
    pub entry: JournalEntry,
    state: &'s State,
    connection: Connection,
}

impl<'s> Writer<'s> {
    /// Records the actions to be done, durably when this returns. The caller holds the lock, and no transaction is
    /// unfinished. If the journal is damaged, it is first replaced by a copy of its readable part.
    pub fn begin(state: &'s State, new: &NewTransaction, actions: &[(&Action, &SavedMetadata)]) -> Result<Self> {
        let begun = salvage::with_repair(state, || Self::try_begin(state, new, actions));
        begun.map_err(|error| match error.kind() {
            ErrorKind::Io if error.remedy().is_none() => {
                error.with_remedy("nothing was done; make sure that there is disk space for the journal")
            }
            _ => error,
        })
    }

    fn try_begin(
        state: &'s State,
        new: &NewTransaction,
        actions: &[(&Action, &SavedMetadata)],
    ) -> Result<Self, Failure> {
        let mut connection = open_or_create(state)?;
        if !may_be_written(state, &connection)? {
            return Err(Failure::Damaged("its length differs from the length that it records".to_owned()));
        }
        let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        refused(state)?;
        let time = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis());
        let of_action = |(action, saved): &(&Action, &SavedMetadata)| JournalAction {
            outline: action.outline(),
            saved: SavedMetadata::clone(saved),
        };
        let mut entry = JournalEntry::new(new.clone(), actions.iter().map(of_action).collect());
        entry.time_ms = u64::try_from(time).unwrap_or(u64::MAX);
        entry.digest = entry.digest_of_actions();
        let contents: Vec<_> = actions.iter().map(|(action, _)| action.removed_content().cloned()).collect();
        insert(&transaction, &mut entry, &contents)?;
        // In a damaged file, the rows just written may not be found again.
        let written = read::entry(&transaction, entry.id.0.cast_signed())?;
        if written.is_none_or(|written| written.is_damaged) {
            return Err(Failure::Damaged("the rows just written cannot be read".to_owned()));
        }
        failpoint::step();
        transaction.commit()?;
        failpoint::step();
        Ok(Self { entry, state, connection })
    }

    /// Continues an interrupted transaction.
    pub fn resume(state: &'s State, entry: JournalEntry) -> Result<Self> {
        let connection = open(state)
            .map_err(|failure| failure.into_error(state))?
            .ok_or_else(|| Error::new(ErrorKind::Journal, format!("the journal has no transaction {}", entry.id)))?;
        Ok(Self { entry, state, connection })
    }

    /// Ends the transaction, of which the first `done` actions are in effect. Needs no additional space on the disk.
    ///
    /// # Errors
    /// If the end could not be made durable; the caller may try again.
    pub fn end(&mut self, ended: EntryState, done: usize) -> Result<()> {
        (self.entry.state, self.entry.done) = (ended, done);
        let update = || -> Result<(), Failure> {
            refused(self.state)?;
            let statement = "UPDATE transaction_ SET state = ?, done = ?, checksum = ?, reserve = NULL WHERE id = ?";
            let checksum = self.entry.checksum();
            self.connection.execute(statement, params![name_of(ended), done, checksum, self.entry.id.0])?;
            Ok(())
        };
        let updated = update().map_err(|failure| failure.into_error(self.state));
        failpoint::step();
        updated
    }
}

/// Lets tests make the disk refuse a write here.
fn refused(state: &State) -> Result<(), Error> {
    failpoint::write().map_err(|error| state.failed(FILE, &error))
}
