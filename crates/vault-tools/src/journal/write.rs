//! Writes transactions down: before they begin, while they are under way, and when they end.

use std::fs::File;
use std::time::{SystemTime, UNIX_EPOCH};

use rusqlite::{Connection, OptionalExtension, TransactionBehavior, params};

use super::database::{Failure, may_be_written, open, open_or_create};
use super::entry::{
    ActionRow, JournalEntry, State as EntryState, TransactionId, TransactionKind, TransactionRow, digest,
};
use super::insert::insert;
use super::{progress, read, salvage};
use crate::action::Action;
use crate::error::{Error, ErrorKind, Result};
use crate::failpoint;
use crate::sandbox::SavedMetadata;
use crate::state::State;

/// What is said of a transaction before it begins.
#[derive(Debug, Clone)]
pub(crate) struct NewTransaction {
    pub label: String,
    pub kind: TransactionKind,
    /// The transaction that is undone or redone.
    pub of: Option<TransactionId>,
}

/// How a transaction ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ending {
    /// Its first so many actions are done.
    Done(usize),
    /// None of them is.
    RolledBack,
}

/// A transaction that is under way.
#[derive(Debug)]
pub(crate) struct Writer<'s> {
    state: &'s State,
    connection: Connection,
    row: TransactionRow,
    id: TransactionId,
    progress: Option<File>,
}

impl<'s> Writer<'s> {
    /// Writes down what will be done, so that it is durable when this returns. The lock is held, and no transaction is
    /// unfinished. A damaged journal is replaced first by what can be read of it.
    pub fn begin(state: &'s State, new: &NewTransaction, actions: &[(&Action, &SavedMetadata)]) -> Result<Self> {
        let begun = match Self::try_begin(state, new, actions) {
            Err(Failure::Damaged(_)) => {
                salvage::set_aside(state)?;
                Self::try_begin(state, new, actions)
            }
            begun => begun,
        };
        begun.map_err(|failure| {
            let error = failure.into_error(state);
            match error.kind() {
                ErrorKind::Io => error.with_remedy("nothing was done; see to it that there is room for the journal"),
                _ => error,
            }
        })
    }

    fn try_begin(
        state: &'s State,
        new: &NewTransaction,
        actions: &[(&Action, &SavedMetadata)],
    ) -> Result<Self, Failure> {
        let mut connection = open_or_create(state)?;
        // From here on a full disk is noticed before the vault is touched.
        let mut progress = progress::open(state)?;
        if !may_be_written(state, &connection)? {
            return Err(Failure::Damaged(rusqlite::Error::InvalidQuery));
        }
        let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        refused(state)?;
        let time = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis());
        let rows: Vec<ActionRow> = actions.iter().map(|(action, saved)| ActionRow::of(action, saved)).collect();
        let mut row = TransactionRow {
            id: 0,
            time_ms: i64::try_from(time).unwrap_or(i64::MAX),
            label: new.label.clone(),
            kind: new.kind.name().to_owned(),
            of: new.of.map(|of| of.0.cast_signed()),
            first_action: 0,
            actions: rows.len() as i64,
            digest: digest(&rows.iter().collect::<Vec<_>>()),
            state: EntryState::Unfinished.name().to_owned(),
            done: 0,
        };
        let contents = actions.iter().map(|(action, _)| match action {
            Action::Edit { before, .. } => Some(before.bytes()),
            Action::Delete { content, .. } => Some(content.bytes()),
            _ => None,
        });
        let rows: Vec<(&ActionRow, Option<&[u8]>)> = rows.iter().zip(contents).collect();
        insert(&transaction, &mut row, &rows)?;
        let id = TransactionId(row.id.cast_unsigned());
        // In a damaged file, what was just written may not be found again.
        let written = read::entry(&transaction, row.id)?;
        if written.is_none_or(|written| written.is_damaged || written.actions.len() != rows.len()) {
            return Err(Failure::Damaged(rusqlite::Error::InvalidQuery));
        }
        failpoint::step();
        transaction.commit()?;
        let _ = progress::write(&mut progress, id, 0);
        failpoint::step();
        Ok(Self { state, connection, row, id, progress: Some(progress) })
    }

    /// Continues with a transaction that was cut.
    pub fn resume(state: &'s State, entry: &JournalEntry) -> Result<Self> {
        let find = || -> Result<Option<(Connection, TransactionRow)>, Failure> {
            let Some(connection) = open(state)? else { return Ok(None) };
            let id = entry.id.0.cast_signed();
            let select = "SELECT * FROM transaction_ WHERE id = ?";
            let row = connection.query_row(select, [id], read::transaction_row).optional()?;
            Ok(row.map(|(row, _)| (connection, row)))
        };
        let found = find().map_err(|failure| failure.into_error(state))?;
        let (connection, row) = found
            .ok_or_else(|| Error::new(ErrorKind::Journal, format!("the journal has no transaction {}", entry.id)))?;
        Ok(Self { state, connection, row, id: entry.id, progress: None })
    }

    /// Its number.
    pub fn id(&self) -> TransactionId {
        self.id
    }

    /// One more action is done. If that cannot be written, recovery has to look for it.
    pub fn did(&mut self, done: usize) {
        if let Some(file) = &mut self.progress {
            let _ = progress::write(file, self.id, done);
        }
        failpoint::step();
    }

    /// The transaction is over. Takes no room on the disk.
    ///
    /// # Errors
    /// When that is not durable; it may be tried again.
    pub fn end(&mut self, ending: Ending) -> Result<()> {
        let (state, done) = match ending {
            Ending::Done(done) => (EntryState::Done, done),
            Ending::RolledBack => (EntryState::RolledBack, 0),
        };
        (self.row.state, self.row.done) = (state.name().to_owned(), done as i64);
        let update = || -> Result<(), Failure> {
            refused(self.state)?;
            let statement = "UPDATE transaction_ SET state = ?, done = ?, checksum = ?, reserve = NULL WHERE id = ?";
            let row = &self.row;
            self.connection.execute(statement, params![row.state, row.done, row.checksum(), row.id])?;
            Ok(())
        };
        let updated = update().map_err(|failure| failure.into_error(self.state));
        failpoint::step();
        updated
    }
}

/// Tests have the disk refuse a write here.
fn refused(state: &State) -> Result<(), Error> {
    failpoint::write().map_err(|error| state.failed(super::database::FILE, &error))
}
