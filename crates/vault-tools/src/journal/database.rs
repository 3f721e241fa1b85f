//! Opens `journal.db`: its tables, its settings, and the kinds of error that it can cause.

use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::{Connection, ErrorCode, OpenFlags};

use crate::error::{Error, ErrorKind, Result};
use crate::state::State;

pub(super) const FILE: &str = "journal.db";
/// The journal of earlier versions, which was a text file.
pub(super) const OLDER_FILE: &str = "journal";
/// SQLite's own rollback journal.
pub(super) const ROLLBACK: &str = "journal.db-journal";
/// The file that [`super::salvage`] writes before it replaces the journal.
pub(super) const SALVAGED: &str = "journal.db.new";
/// The page size in bytes: SQLite's default.
pub(super) const PAGE: usize = 4096;
const VERSION: i64 = 1;
const WAIT: Duration = Duration::from_secs(5);

const SCHEMA: &str = "
    CREATE TABLE transaction_ (
        id INTEGER PRIMARY KEY AUTOINCREMENT, -- no number is given twice, whatever was pruned
        time_ms INTEGER NOT NULL,             -- since 1970
        label TEXT NOT NULL,
        kind TEXT NOT NULL,                   -- apply, undo, redo
        of INTEGER,                           -- the transaction that is undone or redone
        first_action INTEGER NOT NULL,        -- ids of its actions follow each other from here
        actions INTEGER NOT NULL,
        digest TEXT NOT NULL,                 -- of all its actions
        state TEXT NOT NULL,                  -- unfinished, suspect, done, rolled-back
        done INTEGER NOT NULL,                -- how many actions are in effect
        checksum TEXT NOT NULL,               -- of the columns before it
        reserve BLOB                          -- room for the end
    );
    CREATE TABLE action (
        id INTEGER PRIMARY KEY,
        kind TEXT NOT NULL,                   -- make-folder, remove-folder, create, edit, move, delete
        path TEXT NOT NULL,
        target TEXT,                          -- where a move leads
        before TEXT,                          -- BLAKE3 of the file before and after
        after TEXT,
        name TEXT,                            -- on the disk, where it is spelt otherwise than the path
        mode INTEGER,                         -- permissions
        content BLOB                          -- the file before an edit or a deletion
    );
    PRAGMA user_version = 1;
";

/// The reason that the journal could not be read or written.
#[derive(Debug)]
pub(super) enum Failure {
    /// The content of the file is wrong; how this was noticed.
    Damaged(String),
    /// Any other error, for example a full disk or a busy file.
    Other(Error),
}

impl From<rusqlite::Error> for Failure {
    fn from(error: rusqlite::Error) -> Self {
        match is_damage(&error) {
            true => Self::Damaged(error.to_string()),
            false => Self::Other(Error::new(ErrorKind::Io, "cannot be read or written").because(error)),
        }
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self::Other(error)
    }
}

impl Failure {
    /// Converts the failure to an error of this crate.
    pub fn into_error(self, state: &State) -> Error {
        match self {
            Self::Damaged(why) => Error::new(ErrorKind::Journal, "the journal is damaged")
                .because(why)
                .at(path(state).display())
                .with_remedy("the next change copies its readable part into a new journal and keeps this file"),
            Self::Other(error) if error.path().is_none() => error.at(path(state).display()),
            Self::Other(error) => error,
        }
    }
}

/// Opens the journal, if there is one.
pub(super) fn open(state: &State) -> Result<Option<Connection>, Failure> {
    finish_salvage(state)?;
    state.check_no_folder(&[FILE, ROLLBACK, OLDER_FILE])?;
    if state.has(OLDER_FILE) {
        return Err(other_format("a text file", &state.folder().join(OLDER_FILE)));
    }
    state.has(FILE).then(|| with_tables(&path(state))).transpose()
}

/// Opens the journal, and creates it if it does not exist.
pub(super) fn open_or_create(state: &State) -> Result<Connection, Failure> {
    match open(state)? {
        Some(connection) => Ok(connection),
        None => create(state, FILE),
    }
}

/// Creates a new database that only the user can read.
pub(super) fn create(state: &State, name: &str) -> Result<Connection, Failure> {
    state.open(name)?.set_len(0).map_err(|error| state.failed(name, &error))?;
    let connection = with_tables(&state.folder().join(name))?;
    state.sync_folder();
    Ok(connection)
}

fn with_tables(path: &Path) -> Result<Connection, Failure> {
    let connection = connect(path)?;
    // It is new, or the process that created it was killed before it added the tables.
    if version(&connection)? == 0 {
        connection.execute_batch(&format!("BEGIN; {SCHEMA} COMMIT;"))?;
    }
    Ok(connection)
}

fn version(connection: &Connection) -> rusqlite::Result<i64> {
    connection.query_row("PRAGMA user_version", [], |row| row.get(0))
}

fn other_format(format: &str, path: &Path) -> Failure {
    let what = format!("the journal has another format ({format}) than this program reads ({VERSION})");
    Failure::Other(Error::new(ErrorKind::Journal, what).at(path.display()).with_remedy(
        "nothing is changed until you use the program that wrote it, or move it aside with \
         `vault-tools journal reset`; its transactions can then no longer be undone",
    ))
}

/// Opens a connection with the settings on which the guarantees of the journal depend. A file of another format is not
/// written to.
pub(super) fn connect(path: &Path) -> Result<Connection, Failure> {
    let connection = Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_WRITE)?;
    connection.busy_timeout(WAIT)?;
    match version(&connection)? {
        0 | VERSION => {}
        version => {
            // A damaged first page may contain anything.
            connection.query_row("SELECT count(*) FROM sqlite_master", [], |_| Ok(()))?;
            return Err(other_format(&version.to_string(), path));
        }
    }
    connection.execute_batch(
        "PRAGMA journal_mode = PERSIST; PRAGMA synchronous = FULL; PRAGMA fullfsync = ON; \
         PRAGMA cell_size_check = ON; PRAGMA trusted_schema = OFF;",
    )?;
    Ok(connection)
}

pub(super) fn path(state: &State) -> PathBuf {
    state.folder().join(FILE)
}

/// Returns whether new pages would be appended after all others; otherwise, in a damaged file, they could overwrite
/// existing ones.
pub(super) fn may_be_written(state: &State, connection: &Connection) -> Result<bool, Failure> {
    let number = |pragma: &str| connection.query_row(&format!("PRAGMA {pragma}"), [], |row| row.get::<_, u64>(0));
    let length = std::fs::metadata(path(state)).map_or(0, |metadata| metadata.len());
    Ok(number("freelist_count")? == 0 && number("page_count")? * number("page_size")? == length)
}

/// Returns whether an error shows that the file is damaged, rather than the disk full or the file busy.
fn is_damage(error: &rusqlite::Error) -> bool {
    match error {
        // The statements are fixed, so if one is invalid the schema is another one.
        rusqlite::Error::SqliteFailure(failure, _) => {
            matches!(failure.code, ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase | ErrorCode::Unknown)
        }
        rusqlite::Error::SqlInputError { .. }
        | rusqlite::Error::InvalidColumnType(..)
        | rusqlite::Error::FromSqlConversionFailure(..)
        | rusqlite::Error::IntegralValueOutOfRange(..)
        | rusqlite::Error::Utf8Error(..) => true,
        _ => false,
    }
}

/// Completes a [`super::salvage`] that a crash interrupted after the old file was moved aside and before the new one
/// replaced it.
fn finish_salvage(state: &State) -> Result<(), Error> {
    if state.has(SALVAGED) && !state.has(FILE) {
        state.rename(SALVAGED, FILE)?;
        state.sync_folder();
    }
    Ok(())
}
