//! Errors of the server and of the connection, as errors that say what to do. None of them shows a password.

use std::error::Error as _;

use postgres::error::SqlState;
use vault_index::{Error, ErrorKind};

/// The meaning of an error of the client for the user.
pub(crate) fn described(error: postgres::Error) -> Error {
    let server = error.as_db_error();
    let (kind, message, remedy) = match error.code() {
        Some(_) if is_unadmitted(&error) => NOT_ADMITTED,
        Some(code) => of_state(code),
        None if error.is_closed() => CONNECTION_LOST,
        None if is_of_tls(&error)
            && error.source().is_some_and(|cause| cause.to_string().contains("not support TLS")) =>
        {
            (
                ErrorKind::Store,
                "the database server has no TLS",
                "turn on ssl at the server, or use its socket, a tunnel (ssh -L) or sslmode=prefer",
            )
        }
        None if is_of_tls(&error) => (
            ErrorKind::Store,
            "TLS with the database server failed",
            "compare sslmode and sslrootcert with the server's certificate; its subjectAltName must name the host for \
             verify-full",
        ),
        None if error.source().is_some_and(|cause| cause.is::<std::io::Error>()) => (
            ErrorKind::Store,
            "the database server cannot be reached, or the connection was lost",
            "check its address and that it runs; what was committed is kept",
        ),
        None => (ErrorKind::Store, "the database server answered something unexpected", "see the cause"),
    };
    let described = Error::new(kind, message).with_remedy(remedy);
    match server {
        // Its detail can hold the values of a row.
        Some(server) => described.because(server.message().to_owned()),
        None => described.because(error),
    }
}

/// Whether TLS failed. The client has no kind for it.
pub(crate) fn is_of_tls(error: &postgres::Error) -> bool {
    error.code().is_none() && error.to_string().contains("TLS")
}

/// Whether the server admits no such connection from this address: no entry allows it, or one rejects it. The server
/// speaks the language of its machine, but names the file in each.
pub(crate) fn is_unadmitted(error: &postgres::Error) -> bool {
    error.code() == Some(&SqlState::INVALID_AUTHORIZATION_SPECIFICATION)
        && error.as_db_error().is_some_and(|server| server.message().contains("pg_hba.conf"))
}

const CONNECTION_LOST: (ErrorKind, &str, &str) = (
    ErrorKind::Store,
    "the connection to the database server was lost",
    "try again; what was committed is kept, and the next sync continues from there",
);

/// The cause says whether the connection was encrypted.
const NOT_ADMITTED: (ErrorKind, &str, &str) = (
    ErrorKind::Store,
    "the database server accepts no such connection from this address",
    "let its administrator change pg_hba.conf, or connect as one allows: through its socket, with TLS \
     (sslmode=require) or without (sslmode=disable), or through a tunnel (ssh -L)",
);

fn of_state(code: &SqlState) -> (ErrorKind, &'static str, &'static str) {
    let class = code.code().get(..2).unwrap_or_default();
    match *code {
        SqlState::TOO_MANY_CONNECTIONS => (
            ErrorKind::Store,
            "the database server has no connection left for you",
            "try again later, or let its administrator raise max_connections or the limit of your role",
        ),
        SqlState::CANNOT_CONNECT_NOW => {
            (ErrorKind::Store, "the database server is starting or stopping", "try again in a moment")
        }
        SqlState::IDLE_IN_TRANSACTION_SESSION_TIMEOUT | SqlState::IDLE_SESSION_TIMEOUT => (
            ErrorKind::Store,
            "the database server ended the session because it was idle",
            "try again; if this happens often, raise idle_session_timeout and idle_in_transaction_session_timeout",
        ),
        SqlState::ADMIN_SHUTDOWN | SqlState::CRASH_SHUTDOWN => CONNECTION_LOST,
        SqlState::READ_ONLY_SQL_TRANSACTION => (
            ErrorKind::Store,
            "the database server is read-only, as a replica is",
            "write to the primary server; searches can use this one",
        ),
        SqlState::QUERY_CANCELED => (
            ErrorKind::Store,
            "the database server took longer than its limit of time, or the query was cancelled",
            "try again when it has less to do, or raise statement_timeout",
        ),
        SqlState::LOCK_NOT_AVAILABLE => {
            (ErrorKind::Locked, "the vault is being used by another process", "try again when it is done")
        }
        SqlState::DISK_FULL => (
            ErrorKind::Store,
            "the disk of the database server is full",
            "free some space there; what was committed is kept",
        ),
        SqlState::INSUFFICIENT_PRIVILEGE => (
            ErrorKind::Store,
            "your role lacks the right to do this",
            "ask the owner of the tables to grant you the vault's reader or writer role",
        ),
        SqlState::INVALID_PASSWORD | SqlState::INVALID_AUTHORIZATION_SPECIFICATION => {
            (ErrorKind::Store, "the database server refused the login", "check user and password")
        }
        SqlState::FEATURE_NOT_SUPPORTED | SqlState::UNDEFINED_FILE => (
            ErrorKind::Store,
            "the database server lacks the extension pgvector",
            "install it on the server; rented servers have it among their extensions",
        ),
        SqlState::INVALID_CATALOG_NAME => {
            (ErrorKind::NotFound, "there is no such database", "check its name, or create it with createdb")
        }
        SqlState::UNDEFINED_TABLE | SqlState::INVALID_SCHEMA_NAME => {
            (ErrorKind::NotFound, "the database has no index yet", "let its owner run `vault-index sync` with it")
        }
        _ if class == "XX" => (
            ErrorKind::Damaged,
            "the database server reports damage, or a fault of its own",
            "see its log; the notes are not touched, and a new sync fills an empty vault",
        ),
        _ => (ErrorKind::Store, "the database server refused", "see the cause"),
    }
}
