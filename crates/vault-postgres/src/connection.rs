//! A connection to one vault: its statements, each in one round trip.

use std::cell::{Cell, RefCell};
use std::cmp::Ordering;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use postgres::Client;
use postgres::types::{ToSql, Type};
use vault_index::backend::{OpenReader, Prefetch, ReadContents, Share};
use vault_index::{Error, ErrorKind, Result};

use crate::copy::NewRows;
use crate::error::described;
use crate::nul::unescape;
use crate::prefetch::{Collected, KEPT, Key, Keyed, Prefetched, Statement, united};
use crate::row::{Row, Rows};

/// One vault in the database, to read or to write: what [`backend`](vault_index::backend) asks for.
pub struct VaultStore {
    /// Open until this is dropped.
    client: RefCell<Option<Client>>,
    /// The id of the vault.
    pub(crate) vault: i32,
    /// The version of the tables that this program reads and writes.
    version: i64,
    /// Rows that are written together, before the next statement.
    pub(crate) new: RefCell<NewRows>,
    /// Whether a transaction is open that writes.
    pub(crate) is_writing: Cell<bool>,
    /// Of a reader: the state that it reads.
    state: RefCell<Option<Arc<State>>>,
    /// While questions are collected: those without an answer.
    collected: RefCell<Option<Collected>>,
    /// Whether something has failed, after which the server answers nothing more in a transaction.
    is_broken: Cell<bool>,
    /// Whether this session holds the lock of the vault's writer.
    pub(crate) has_lock: Cell<bool>,
}

/// Opens the newest state of the same vault.
type OpenNewest = Arc<dyn Fn() -> Result<VaultStore> + Send + Sync>;

/// One state of a vault, which several connections may read.
struct State {
    open: OpenNewest,
    /// The answers that were prefetched, for all of the connections.
    prefetched: Mutex<Prefetched>,
}

impl State {
    fn new(open: OpenNewest) -> Arc<Self> {
        Arc::new(Self { open, prefetched: Mutex::default() })
    }

    fn prefetched(&self) -> MutexGuard<'_, Prefetched> {
        self.prefetched.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for VaultStore {
    fn drop(&mut self) {
        let (client, has_lock) = (self.client.get_mut().take(), self.has_lock.get());
        let close = move || {
            if let (Some(mut client), true) = (client, has_lock) {
                // The end of the session frees it too, but only when the server notices that end.
                let _ = client.batch_execute("SELECT pg_advisory_unlock_all()");
            }
        };
        // A client waits for its server when it is closed, and panics on a thread of an async runtime, where a program
        // may drop its index.
        let _ = std::thread::Builder::new().spawn(close).map(std::thread::JoinHandle::join);
    }
}

impl std::fmt::Debug for VaultStore {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("VaultStore").field("vault", &self.vault).finish_non_exhaustive()
    }
}

/// A value for a statement, with its type.
pub(crate) type Param<'a> = (&'a (dyn ToSql + Sync), Type);

/// A number.
pub(crate) fn int(number: &i64) -> Param<'_> {
    (number, Type::INT8)
}

/// Numbers.
pub(crate) fn ints<'a>(numbers: &'a (impl ToSql + Sync)) -> Param<'a> {
    (numbers, Type::INT8_ARRAY)
}

/// A text without NUL characters: a key, a path, or escaped.
pub(crate) fn text<'a>(text: &'a (impl ToSql + Sync)) -> Param<'a> {
    (text, Type::TEXT)
}

impl VaultStore {
    pub(crate) fn new(client: Client, vault: i32, version: i64) -> Self {
        Self {
            client: RefCell::new(Some(client)),
            vault,
            version,
            new: RefCell::default(),
            is_writing: Cell::new(false),
            state: RefCell::default(),
            collected: RefCell::default(),
            is_broken: Cell::new(false),
            has_lock: Cell::new(false),
        }
    }

    /// One state of a vault, whose answers can be prefetched.
    pub(crate) fn new_reader(client: Client, vault: i32, version: i64, open: OpenNewest) -> Self {
        let store = Self::new(client, vault, version);
        store.state.replace(Some(State::new(open)));
        store
    }

    /// Forgets all answers, for another state.
    pub(crate) fn forget_answers(&self) {
        let state = self.state.take().map(|state| State::new(Arc::clone(&state.open)));
        self.state.replace(state);
    }

    /// Runs `work` with the connection. No row is waiting to be written then.
    pub(crate) fn with<T>(&self, work: impl FnOnce(&mut Client) -> Result<T, postgres::Error>) -> Result<T> {
        let new = self.new.take();
        // The temporary tables are emptied by each commit.
        debug_assert!(new.is_empty() || self.is_writing.get(), "rows are written in transactions only");
        self.beside(|client| new.write(client, self.vault).and_then(|()| work(client)))
    }

    /// As [`with`](Self::with), but rows that wait are not written: `work` does not depend on them.
    pub(crate) fn beside<T>(&self, work: impl FnOnce(&mut Client) -> Result<T, postgres::Error>) -> Result<T> {
        let result = work(self.client.borrow_mut().as_mut().expect("open until it is dropped"));
        self.is_broken.set(self.is_broken.get() || result.is_err());
        result.map_err(described)
    }

    /// Whether questions are collected, so that answers may be empty.
    pub(crate) fn is_collecting(&self) -> bool {
        self.collected.borrow().is_some()
    }

    /// The answer that is known, or an empty one if the question is collected.
    fn known(
        &self,
        find: impl FnOnce(&Prefetched) -> Option<Rows>,
        collect: impl FnOnce(&mut Collected),
    ) -> Option<Rows> {
        let known = self.state.borrow().as_ref().and_then(|state| find(&state.prefetched()));
        known.or_else(|| self.collected.borrow_mut().as_mut().map(collect).map(|()| Rows::default()))
    }

    /// The rows of a query in which `@vault` is the id of the vault. It is part of the text, so that the server looks at
    /// the partitions of this vault only.
    pub(crate) fn rows(&self, sql: &str, params: &[Param<'_>]) -> Result<Rows> {
        let statement = Statement::new(self.sql(sql), params);
        let known = self.known(|known| known.rows(&statement), |collected| collected.add(&statement));
        known.map_or_else(|| Ok(Rows::new(self.fetch(std::slice::from_ref(&statement))?.pop().unwrap_or_default())), Ok)
    }

    /// As [`rows`](Self::rows), for large answers that are asked for once: they are not kept.
    pub(crate) fn take_rows(&self, sql: &str, params: &[Param<'_>]) -> Result<Rows> {
        let rows = self.rows(sql, params)?;
        if self.is_collecting() {
            return Ok(rows);
        }
        if let Some(state) = &*self.state.borrow() {
            state.prefetched().statements.remove(&Statement::new(self.sql(sql), params));
        }
        Ok(rows)
    }

    /// The rows of a key.
    pub(crate) fn rows_of_key(&self, of: &'static Keyed, key: Key) -> Result<Rows> {
        let known = self.known(|known| known.rows_of_key(of, &key), |collected| collected.add_key(of, &key));
        known.map_or_else(
            || {
                let statement = Statement::keyed(self.sql(of.sql), std::slice::from_ref(&key));
                Ok(Rows::new(self.fetch(&[statement])?.pop().unwrap_or_default()))
            },
            Ok,
        )
    }

    /// The rows of a key, if it was prefetched.
    pub(crate) fn known_rows_of_key(&self, of: &Keyed, key: Key) -> Option<Rows> {
        self.state.borrow().as_ref()?.prefetched().rows_of_key(of, &key)
    }

    /// The rows of a query, if it was prefetched.
    pub(crate) fn known_rows(&self, sql: &str, params: &[Param<'_>]) -> Option<Rows> {
        self.state.borrow().as_ref()?.prefetched().rows(&Statement::new(self.sql(sql), params))
    }

    /// The rows of each statement, in one round trip.
    fn fetch(&self, statements: &[Statement]) -> Result<Vec<Vec<Row>>> {
        let (sql, params) = united(statements);
        let mut rows: Vec<Vec<Row>> = statements.iter().map(|_| Vec::new()).collect();
        for row in self.with(|client| client.query_typed(&sql, &params))? {
            let part: Row = row.try_get(1).map_err(described)?;
            rows[row.get::<_, i32>(0) as usize].push(part);
        }
        Ok(rows)
    }

    /// The rows of a query, converted.
    pub(crate) fn all<T>(&self, sql: &str, params: &[Param<'_>], read: impl Fn(&Row) -> T) -> Result<Vec<T>> {
        Ok(self.rows(sql, params)?.iter().map(read).collect())
    }

    /// The first row of a query, converted.
    pub(crate) fn first<T>(&self, sql: &str, params: &[Param<'_>], read: impl Fn(&Row) -> T) -> Result<Option<T>> {
        Ok(self.rows(sql, params)?.first().map(read))
    }

    /// The number that a query always gives.
    pub(crate) fn count(&self, sql: &str, params: &[Param<'_>]) -> Result<usize> {
        Ok(self.first(sql, params, |row| row.get::<_, i64>(0))?.unwrap_or(0) as usize)
    }

    /// Whether a condition holds.
    pub(crate) fn is(&self, sql: &str, params: &[Param<'_>]) -> Result<bool> {
        Ok(self.first(sql, params, |row| row.get(0))?.unwrap_or(false))
    }

    /// Runs a statement that writes. Returns the number of rows that it returns.
    pub(crate) fn write(&self, sql: &str, params: &[Param<'_>]) -> Result<usize> {
        let sql = self.sql(sql);
        self.with(|client| client.query_typed(&sql, params)).map(|rows| rows.len())
    }

    /// Runs a statement that writes and returns nothing.
    pub(crate) fn run(&self, sql: &str, params: &[Param<'_>]) -> Result<()> {
        self.write(sql, params).map(drop)
    }

    /// Runs statements without values.
    pub(crate) fn batch(&self, sql: &str) -> Result<()> {
        let sql = self.sql(sql);
        self.with(|client| client.batch_execute(&sql))
    }

    pub(crate) fn sql(&self, sql: &str) -> String {
        sql.replace("@vault", &self.vault.to_string())
    }

    /// Checks that the tables are those of this program: another version may have changed them since.
    pub(crate) fn check_version(&self) -> Result<()> {
        self.check_found(self.first("SELECT version FROM schema_version", &[], |row| row.get::<_, i64>(0))?)
    }

    /// Checks the version of the tables.
    pub(crate) fn check_found(&self, version: Option<i64>) -> Result<()> {
        check_version(version, self.version)
    }
}

impl Prefetch for VaultStore {
    fn prefetches(&self) -> bool {
        self.state.borrow().is_some()
    }

    fn prefetch(&self, ask: &mut dyn FnMut() -> Result<()>) -> Result<()> {
        if self.is_collecting() {
            return ask();
        }
        let Some(state) = self.state.borrow().clone() else { return Ok(()) };
        {
            let mut prefetched = state.prefetched();
            if prefetched.bytes > KEPT {
                *prefetched = Prefetched::default();
            }
        }
        self.collected.replace(Some(Collected::default()));
        let asked = ask();
        let Collected { mut statements, keyed } = self.collected.take().unwrap_or_default();
        asked?;
        let alone = statements.len();
        statements.extend(keyed.iter().map(|(of, keys)| Statement::keyed(self.sql(of.sql), keys)));
        if statements.is_empty() {
            return Ok(());
        }
        let mut rows = self.fetch(&statements)?;
        let mut prefetched = state.prefetched();
        prefetched.bytes += rows.iter().flatten().map(Row::bytes).sum::<usize>();
        for ((of, keys), rows) in keyed.iter().zip(rows.drain(alone..)) {
            prefetched.keep(of, keys, rows);
        }
        prefetched.statements.extend(statements.into_iter().zip(rows.into_iter().map(Rows::new)));
        Ok(())
    }
}

/// A state is that after a number of commits, so another connection sees the same one if nothing was committed since. A
/// snapshot that the first connection exports would end with that connection, and is unknown to a replica.
impl Share for VaultStore {
    fn sharing(&self) -> Result<Option<OpenReader>> {
        let Some(state) = self.state.borrow().clone() else { return Ok(None) };
        let (vault, version) = (self.vault, self.version()?);
        Ok(Some(Box::new(move || {
            let other = (state.open)()?;
            if other.vault != vault || other.version()? != version {
                return Ok(None);
            }
            other.state.replace(Some(Arc::clone(&state)));
            Ok(Some(Box::new(other)))
        })))
    }

    fn is_broken(&self) -> bool {
        self.is_broken.get()
    }
}

/// Checks the version of the tables for a program that reads and writes `known`.
///
/// # Errors
/// [`ErrorKind::OtherFormat`]; [`ErrorKind::NotFound`] for a database without tables.
pub(crate) fn check_version(version: Option<i64>, known: i64) -> Result<()> {
    let Some(version) = version else {
        return Err(Error::new(ErrorKind::NotFound, "the database has no index yet"));
    };
    let remedy = match version.cmp(&known) {
        Ordering::Equal => return Ok(()),
        Ordering::Greater => "use a newer version of this program",
        Ordering::Less => {
            "wait until the owner of the tables has upgraded them: `vault-index sync` with this version of the program \
             does, or `watch`"
        }
    };
    let what = format!("the database has tables of version {version}, and this program reads version {known}");
    Err(Error::new(ErrorKind::OtherFormat, what).with_remedy(remedy))
}

/// An error about content that no program wrote.
pub(crate) fn damaged(what: impl Into<String>) -> Error {
    Error::new(ErrorKind::Damaged, what).with_remedy("sync the vault into an empty database; the notes are not touched")
}

/// A text of a row.
pub(crate) fn string(row: &Row, column: usize) -> String {
    unescape(row.get(column))
}

/// A text of a row, if it has one.
pub(crate) fn optional_string(row: &Row, column: usize) -> Option<String> {
    row.get::<_, Option<String>>(column).map(unescape)
}
