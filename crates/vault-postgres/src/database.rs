//! A database with the indexes of many vaults: creating, sharing and opening them.

use std::str::FromStr;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use postgres::config::{SslMode, SslNegotiation};
use postgres::error::SqlState;
use postgres::{Client, Config, SimpleQueryMessage, Transaction};
use tokio_postgres_rustls::MakeRustlsConnect;
use vault_index::{Embedder, Error, ErrorKind, Result};

use crate::address::{self, Address};
use crate::connection::{VaultStore, check_version, text};
use crate::copy::temporary_tables;
use crate::error::{described, is_of_tls, is_unadmitted};
use crate::schema::{self, FIRST_VERSION, LOCK_CLASS, UPGRADES};

/// How long a statement may take. The scan of a million passages takes a second.
const STATEMENT_LIMIT: Duration = Duration::from_secs(120);

/// How long to wait for the server.
const CONNECT_LIMIT: Duration = Duration::from_secs(10);

/// How long a connection may be silent before the server is asked whether it is still there: a sync embeds for minutes
/// between two statements, and routers forget connections after some minutes.
const KEEPALIVE: Duration = Duration::from_secs(60);

/// The time that the client takes by default.
const CLIENT_KEEPALIVE: Duration = Duration::from_secs(2 * 60 * 60);

/// Starts reading one state. The lock comes before the state is fixed, so that a reader which waits for an upgrade sees
/// its version.
pub(crate) const BEGIN_READING: &str = "BEGIN ISOLATION LEVEL REPEATABLE READ, READ ONLY;
    LOCK TABLE vault_search.schema_version IN ACCESS SHARE MODE";

/// A database, by its address. No connection is open.
#[derive(Clone)]
pub struct Database {
    config: Config,
    tls: MakeRustlsConnect,
    /// The name of the vault, if the address has it.
    vault: Option<String>,
    /// What [`UPGRADES`] has, except in tests.
    pub(crate) upgrades: &'static [&'static str],
    /// Attempts to connect that the server did not answer in time.
    unanswered: Arc<Mutex<Vec<Receiver<Connected>>>>,
}

/// A connection, or the error of connecting.
type Connected = std::result::Result<Client, postgres::Error>;

impl std::fmt::Debug for Database {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Database").field(&self.address()).finish()
    }
}

impl Database {
    /// Reads an address: `postgres://user@host/database`, or `host=… dbname=… user=…`. What it leaves out comes from the
    /// service that it or `PGSERVICE` names, the variables `PGHOST`, `PGUSER` and so on, and the password file, as in
    /// libpq, and so does TLS (`sslmode`, `sslrootcert`, `sslcert`, `sslkey`). A `#name` after a URL names the vault of an [`Index`](vault_index::Index).
    ///
    /// # Errors
    /// [`ErrorKind::Query`] for an invalid text, and for certificates that cannot be used.
    pub fn new(address: &str) -> Result<Self> {
        let variable = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
        let Address { mut config, tls, vault } = address::parse(address, &variable)?;
        if config.get_keepalives_idle() == CLIENT_KEEPALIVE {
            config.keepalives_idle(KEEPALIVE);
        }
        if config.get_connect_timeout().is_none() {
            config.connect_timeout(CONNECT_LIMIT);
        }
        if config.get_application_name().is_none() {
            config.application_name(&format!("vault-index {}", std::process::id()));
        }
        Ok(Self { config, tls, vault, upgrades: UPGRADES, unanswered: Arc::default() })
    }

    /// The address without its password.
    pub fn address(&self) -> String {
        address::shown(&self.config)
    }

    /// The version of the tables that this program reads and writes.
    fn version(&self) -> i64 {
        FIRST_VERSION + self.upgrades.len() as i64
    }

    /// The name of the vault, if the address has it.
    pub(crate) fn vault(&self) -> Option<&str> {
        self.vault.as_deref()
    }

    /// Creates the extension, the schema and its tables, if they are missing. Needs the rights of the database's owner,
    /// and those of a superuser for the extension on servers that do not trust it. Tables of an older version are
    /// upgraded, in one transaction, while no session uses them.
    ///
    /// # Errors
    /// [`ErrorKind::OtherFormat`] for tables of a newer version; [`ErrorKind::Locked`] if sessions use tables to upgrade;
    /// [`ErrorKind::Store`] for a database whose encoding is not UTF-8, among others.
    pub fn create_schema(&self) -> Result<()> {
        let mut client = self.connect()?;
        let mut transaction = client.transaction().map_err(described)?;
        let exists = transaction
            .batch_execute(&schema::lock())
            .and_then(|()| {
                transaction.query_typed("SELECT to_regclass('vault_search.schema_version') IS NOT NULL", &[])
            })
            .map_err(described)?;
        if exists[0].get(0) {
            let found = version_in(&mut transaction)?;
            drop(transaction);
            return match found {
                Some(older) if older < self.version() => self.upgrade(&mut client, older),
                found => check_version(found, self.version()),
            };
        }
        let encoding = transaction.query_typed("SELECT current_setting('server_encoding')", &[]).map_err(described)?;
        let encoding: &str = encoding[0].get(0);
        if encoding != "UTF8" {
            return Err(Error::new(ErrorKind::Store, format!("the database has the encoding {encoding}, not UTF8"))
                .with_remedy("create another one: createdb --encoding=UTF8 --template=template0 NAME"));
        }
        let created = transaction.batch_execute(&schema::create(self.version())).and_then(|()| transaction.commit());
        created.map_err(|error| {
            let lacks_right = error.code() == Some(&SqlState::INSUFFICIENT_PRIVILEGE);
            let error = described(error);
            match lacks_right {
                true => error.with_remedy(
                    "ask the owner of the database for GRANT CREATE ON DATABASE, and an administrator for CREATE \
                     EXTENSION vector; or let the owner create the index",
                ),
                false => error,
            }
        })
    }

    /// Brings older tables up to date.
    fn upgrade(&self, client: &mut Client, found: i64) -> Result<()> {
        let mut transaction = client.transaction().map_err(described)?;
        let locked =
            transaction.batch_execute(&schema::lock()).and_then(|()| transaction.batch_execute(schema::LOCK_OUT));
        match locked {
            Err(error) if error.code() == Some(&SqlState::LOCK_NOT_AVAILABLE) => {
                drop(transaction);
                let sessions = client.query_typed(schema::SESSIONS, &[]).map_err(described)?;
                let sessions: Option<String> = sessions.first().and_then(|row| row.get(0));
                let what = "the tables of the database must be upgraded, and are being used";
                let what = sessions.map_or_else(|| what.to_owned(), |sessions| format!("{what} by {sessions}"));
                return Err(Error::new(ErrorKind::Locked, what)
                    .with_remedy("end the programs that search or sync there, and try again; nothing was changed"));
            }
            Err(error) if error.code() == Some(&SqlState::INSUFFICIENT_PRIVILEGE) => {
                return check_version(Some(found), self.version());
            }
            locked => locked.map_err(described)?,
        }
        // Another program may have done it.
        let found = version_in(&mut transaction)?;
        let done = found.and_then(|found| usize::try_from(found - FIRST_VERSION).ok());
        let Some(upgrades) = done.and_then(|done| self.upgrades.get(done..)).filter(|upgrades| !upgrades.is_empty())
        else {
            return check_version(found, self.version());
        };
        for upgrade in upgrades {
            transaction.batch_execute(upgrade).map_err(described)?;
        }
        let set = format!("UPDATE vault_search.schema_version SET version = {}", self.version());
        transaction.batch_execute(&set).and_then(|()| transaction.commit()).map_err(described)?;
        log::warn!(
            "upgraded the tables of the database to version {}; older versions of this program cannot use them",
            self.version()
        );
        Ok(())
    }

    /// Adds a vault without notes, and its two roles, whose names are returned: that of readers and that of writers.
    /// Needs the right to create roles. Grant them to people: `GRANT vault_1_reader TO ann`.
    ///
    /// # Errors
    /// [`ErrorKind::Query`] if there is one of this name; [`ErrorKind::Store`].
    pub fn create_vault(&self, name: &str) -> Result<(String, String)> {
        let mut client = self.connect()?;
        let mut transaction = client.transaction().map_err(described)?;
        transaction.batch_execute(&schema::lock()).map_err(described)?;
        check_version(version_in(&mut transaction)?, self.version())?;
        let sql = "INSERT INTO vault_search.vault(name) VALUES($1) ON CONFLICT DO NOTHING RETURNING id";
        let rows = transaction.query_typed(sql, &[text(&name)]).map_err(cannot_add)?;
        let Some(row) = rows.first() else {
            return Err(Error::new(ErrorKind::Query, format!("there is a vault {name:?} already")));
        };
        let id: i32 = row.get(0);
        // Roles are of the whole server, which may have several such databases.
        let of_database: u32 = transaction
            .query_typed("SELECT oid FROM pg_database WHERE datname = current_database()", &[])
            .map_err(described)?[0]
            .get(0);
        let (reader, writer) = (format!("vault_{of_database}_{id}_reader"), format!("vault_{of_database}_{id}_writer"));
        transaction
            .batch_execute(&schema::create_vault(id, &reader, &writer))
            .and_then(|()| transaction.commit())
            .map_err(cannot_add)?;
        Ok((reader, writer))
    }

    /// Removes a vault with its roles. Needs the rights of the database's owner. Waits for the sessions that use this
    /// vault, for 10 seconds at most. If sessions use other vaults, its empty tables stay until another vault is removed.
    ///
    /// # Errors
    /// [`ErrorKind::NotFound`]; [`ErrorKind::Locked`] while the vault is being used; [`ErrorKind::Store`].
    pub fn forget_vault(&self, name: &str) -> Result<()> {
        let mut client = self.connect()?;
        let mut transaction = client.transaction().map_err(described)?;
        transaction.batch_execute(&schema::lock()).map_err(described)?;
        check_version(version_in(&mut transaction)?, self.version())?;
        let sql = "SELECT id, reader::text, writer::text FROM vault_search.vault WHERE name = $1";
        let rows = transaction.query_typed(sql, &[text(&name)]).map_err(described)?;
        let row = rows.first().ok_or_else(|| no_vault(name))?;
        transaction
            .batch_execute(&schema::remove_vault(row.get(0), row.get(1), row.get(2)))
            .and_then(|()| transaction.commit())
            .map_err(described)?;
        let mut transaction = client.transaction().map_err(described)?;
        // Another session uses the tables: the next removal tries again.
        let dropped = transaction
            .batch_execute(&schema::lock())
            .and_then(|()| transaction.batch_execute(&schema::drop_partitions()))
            .and_then(|()| transaction.commit());
        match dropped {
            Err(error) if error.code() == Some(&SqlState::LOCK_NOT_AVAILABLE) => Ok(()),
            dropped => dropped.map_err(described),
        }
    }

    /// The names of the vaults that this user may read.
    ///
    /// # Errors
    /// [`ErrorKind::Store`].
    pub fn vaults(&self) -> Result<Vec<String>> {
        let rows = self.connect()?.query_typed("SELECT name FROM vault_search.vault ORDER BY name", &[]);
        Ok(rows.map_err(described)?.iter().map(|row| row.get(0)).collect())
    }

    /// Opens a vault for searches: one state of it, which no writer changes. The server keeps that state for as long as
    /// this exists.
    ///
    /// # Errors
    /// [`ErrorKind::NotFound`] for a vault that does not exist or that this user may not read;
    /// [`ErrorKind::OtherFormat`]; [`ErrorKind::Store`].
    pub fn reader(&self, vault: &str) -> Result<VaultStore> {
        let mut client = self.dial()?;
        // All in one round trip, whose messages have no parameters.
        let name: String = vault.bytes().map(|byte| format!("{byte:02x}")).collect();
        let sql = format!(
            "{BEGIN_READING}; {}; {VERSIONS};
             SELECT id FROM vault_search.vault WHERE name = convert_from(decode('{name}', 'hex'), 'UTF8')",
            settings()
        );
        let messages = client.simple_query(&sql).map_err(described)?;
        check_version(value(&messages, "version"), self.version())?;
        let id = value(&messages, "id").ok_or_else(|| no_vault(vault))?;
        let (database, name) = (self.clone(), vault.to_owned());
        Ok(VaultStore::new_reader(client, id, self.version(), Arc::new(move || database.reader(&name))))
    }

    /// Opens a vault for a sync with this model. Waits for another writer of the same vault for `wait` at most.
    ///
    /// # Errors
    /// [`ErrorKind::Locked`], which names who writes; [`ErrorKind::OtherModel`]; those of [`reader`](Self::reader).
    pub fn writer(&self, vault: &str, embedder: &dyn Embedder, wait: Duration) -> Result<VaultStore> {
        let store = self.locked(vault, wait)?;
        store.set_embedder(embedder)?;
        Ok(store)
    }

    /// Opens a vault with the lock of its writer.
    pub(crate) fn locked(&self, vault: &str, wait: Duration) -> Result<VaultStore> {
        let (store, missing) = self.open(vault)?;
        store.check_version()?;
        if let Some(grant) = missing {
            return Err(Error::new(ErrorKind::Store, format!("your role may read the vault {vault:?}, not write it"))
                .with_remedy(format!("ask the owner of the tables for {grant}")));
        }
        lock(&store, vault, wait)?;
        store.has_lock.set(true);
        store.batch(&temporary_tables())?;
        Ok(store)
    }

    /// Also returns the grant that this user needs in order to write.
    fn open(&self, vault: &str) -> Result<(VaultStore, Option<String>)> {
        let mut client = self.connect()?;
        // The owner of the tables may write without the role.
        let sql = "SELECT id, CASE WHEN NOT (pg_has_role(writer, 'USAGE') OR pg_has_role(relowner, 'USAGE'))
               THEN format('GRANT %I TO %I', writer, current_user) END
             FROM vault_search.vault, pg_class WHERE pg_class.oid = 'vault_search.vault'::regclass AND name = $1";
        let rows = client.query_typed(sql, &[text(&vault)]).map_err(described)?;
        let row = rows.first().ok_or_else(|| no_vault(vault))?;
        Ok((VaultStore::new(client, row.get(0), self.version()), row.get(1)))
    }

    /// Connects, or gives up after a time limit for each address: the client's own limit is for the network only, which
    /// connects to a server that hangs, too. An attempt that was given up is continued by the next call, so that a server
    /// that hangs does not get more and more of them.
    fn dial(&self) -> Result<Client> {
        let unanswered = || self.unanswered.lock().unwrap_or_else(PoisonError::into_inner);
        let limit = self.config.get_connect_timeout().copied().unwrap_or(CONNECT_LIMIT);
        // A name may have a second address, for example of IPv6, that leads nowhere.
        let addresses = self.config.get_hosts().len().max(self.config.get_hostaddrs().len()) + 1;
        loop {
            let earlier = unanswered().pop();
            let is_new = earlier.is_none();
            let connected = earlier.unwrap_or_else(|| {
                let (sender, connected) = mpsc::channel();
                let (config, tls) = (self.config.clone(), self.tls.clone());
                thread::spawn(move || drop(sender.send(connect(&config, &tls))));
                connected
            });
            match connected.recv_timeout(limit.saturating_mul(addresses as u32)) {
                Ok(connected) if is_new || connected.is_ok() => return connected.map_err(described),
                // For example, the server was restarted since.
                Ok(_) => {}
                Err(error) => {
                    if error == RecvTimeoutError::Timeout {
                        unanswered().push(connected);
                    }
                    let hangs = "the database server accepts connections and does not answer";
                    return Err(Error::new(ErrorKind::Store, hangs).with_remedy(
                        "try again, or tell its administrator; `connect_timeout` in the address is the limit in seconds",
                    ));
                }
            }
        }
    }

    /// Connects. Names without a schema mean our tables and pgvector's functions; a temporary table never hides one.
    /// Statements have a limit of time, unless the user, the role or the server has set one.
    fn connect(&self) -> Result<Client> {
        let mut client = self.dial()?;
        client.batch_execute(&settings()).map_err(described)?;
        Ok(client)
    }
}

/// Connects with TLS or without it. As in libpq, `prefer` tries without TLS if the server fails at it, or admits this
/// client only without it. A password that the server refused is not sent again.
fn connect(config: &Config, tls: &MakeRustlsConnect) -> Connected {
    // `sslnegotiation=direct` needs TLS, and the client refuses it with `prefer`.
    let is_optional =
        config.get_ssl_mode() == SslMode::Prefer && config.get_ssl_negotiation() == SslNegotiation::Postgres;
    match config.connect(tls.clone()) {
        Err(error) if is_optional && (is_of_tls(&error) || is_unadmitted(&error)) => {
            let mut plain = config.clone();
            let plain = plain.ssl_mode(SslMode::Disable).connect(tls.clone());
            // Where TLS is needed, the reason is that it failed.
            plain.map_err(|plain| if is_unadmitted(&plain) { error } else { plain })
        }
        connected => connected,
    }
}

/// What [`Database::connect`] sets.
fn settings() -> String {
    format!(
        "SELECT set_config('statement_timeout', '{}', false) FROM pg_settings
           WHERE name = 'statement_timeout' AND source = 'default';
         SELECT set_config('search_path', 'vault_search, ' || quote_ident(nspname) || ', pg_temp', false)
         FROM pg_extension JOIN pg_namespace ON pg_namespace.oid = extnamespace WHERE extname = 'vector'",
        STATEMENT_LIMIT.as_millis()
    )
}

/// The version of the tables.
fn version_in(transaction: &mut Transaction<'_>) -> Result<Option<i64>> {
    Ok(transaction.query_typed(VERSIONS, &[]).map_err(described)?.first().map(|row| row.get(0)))
}

/// Reads the version of the tables.
pub(crate) const VERSIONS: &str = "SELECT version FROM vault_search.schema_version";

/// The value of a column in the first row that has it.
pub(crate) fn value<T: FromStr>(messages: &[SimpleQueryMessage], column: &str) -> Option<T> {
    messages.iter().find_map(|message| match message {
        SimpleQueryMessage::Row(row) => row.try_get(column).ok().flatten()?.parse().ok(),
        _ => None,
    })
}

/// The error of adding a vault.
fn cannot_add(error: postgres::Error) -> Error {
    match error.code() {
        Some(&SqlState::INSUFFICIENT_PRIVILEGE) => described(error)
            .with_remedy("let the owner of the tables add the vault; this also needs the right CREATEROLE"),
        _ => described(error),
    }
}

fn no_vault(name: &str) -> Error {
    Error::new(ErrorKind::NotFound, format!("there is no vault {name:?} that you may read"))
        .with_remedy("check the name; `vault-index sync` adds a vault, and its owner grants its reader role")
}

/// Takes the lock of the vault's writer until the connection ends.
fn lock(store: &VaultStore, vault: &str, wait: Duration) -> Result<()> {
    let is_free = format!("SELECT pg_try_advisory_lock({LOCK_CLASS}, @vault)");
    if store.is(&is_free, &[])? {
        return Ok(());
    }
    let milliseconds = wait.as_millis().max(1);
    // The limit for statements does not count while waiting. The lock outlives the transaction.
    let waits = format!(
        "BEGIN; SET LOCAL statement_timeout = 0; SET LOCAL lock_timeout = {milliseconds};
         SELECT pg_advisory_lock({LOCK_CLASS}, @vault); COMMIT"
    );
    match store.batch(&waits) {
        Err(error) if error.kind() == ErrorKind::Locked => {
            store.batch("ROLLBACK")?;
            let who = store.first(WRITER, &[], |row| row.get::<_, String>(0))?.unwrap_or_default();
            Err(Error::new(ErrorKind::Locked, format!("the vault {vault:?} is being written by {who}"))
                .with_remedy("try again when it is done"))
        }
        locked => locked,
    }
}

/// Who holds the lock. The server shows the user and the name of the program to every role.
const WRITER: &str = "SELECT concat_ws(' ', coalesce(usename::text, 'another user'), nullif(application_name, ''),
    'from ' || host(client_addr), '(process ' || pg_locks.pid || ' of the server)')
  FROM pg_locks LEFT JOIN pg_stat_activity USING(pid)
  WHERE locktype = 'advisory' AND granted AND classid::bigint = 1986618488 AND objid::bigint = @vault
    AND database = (SELECT oid FROM pg_database WHERE datname = current_database())";
