//! Errors of the server and of the connection, as errors that say what to do. None of them shows a password.

use std::error::Error as _;

use postgres::error::SqlState;
use vault_index::{Error, ErrorKind};

/// The meaning of an error of the client for the user.
pub(crate) fn described(error: postgres::Error) -> Error {
    let (kind, message, remedy) = match error.code() {
        Some(code) => of_state(code),
        None if error.is_closed() => CONNECTION_LOST,
        None if error.source().is_some_and(|cause| cause.is::<std::io::Error>()) => (
            ErrorKind::Store,
            "the database server cannot be reached, or the connection was lost",
            "check its address and that it runs; what was committed is kept",
        ),
        None => (ErrorKind::Store, "the database server answered something unexpected", "see the cause"),
    };
    let described = Error::new(kind, message).with_remedy(remedy);
    match error.as_db_error() {
        // Its detail can hold the values of a row.
        Some(server) => described.because(server.message()),
        None => described.because(error),
    }
}

const CONNECTION_LOST: (ErrorKind, &str, &str) = (
    ErrorKind::Store,
    "the connection to the database server was lost",
    "try again; what was committed is kept, and the next sync continues from there",
);

fn of_state(code: &SqlState) -> (ErrorKind, &'static str, &'static str) {
    let class = code.code().get(..2).unwrap_or_default();
    match *code {
        SqlState::TOO_MANY_CONNECTIONS => (
            ErrorKind::Store,
            "the database server has no connection left",
            "try again later, or raise max_connections",
        ),
        SqlState::CANNOT_CONNECT_NOW => {
            (ErrorKind::Store, "the database server is starting or stopping", "try again in a moment")
        }
        SqlState::ADMIN_SHUTDOWN | SqlState::CRASH_SHUTDOWN => CONNECTION_LOST,
        SqlState::READ_ONLY_SQL_TRANSACTION => (
            ErrorKind::Store,
            "the database server is read-only, as a replica is",
            "write to the primary server; searches may use this one",
        ),
        SqlState::QUERY_CANCELED => (
            ErrorKind::Store,
            "the database server took longer than its limit of time, or the query was cancelled",
            "try again when it has less to do, or raise statement_timeout",
        ),
        SqlState::LOCK_NOT_AVAILABLE => {
            (ErrorKind::Locked, "the vault is being written by another process", "try again when it is done")
        }
        SqlState::DISK_FULL => (
            ErrorKind::Store,
            "the disk of the database server is full",
            "free some space there; what was committed is kept",
        ),
        SqlState::INSUFFICIENT_PRIVILEGE => (
            ErrorKind::Store,
            "your role lacks the right to do this",
            "ask the owner of the database for the vault's reader or writer role",
        ),
        SqlState::INVALID_PASSWORD | SqlState::INVALID_AUTHORIZATION_SPECIFICATION => {
            (ErrorKind::Store, "the database server refused the login", "check user and password")
        }
        SqlState::INVALID_CATALOG_NAME => {
            (ErrorKind::NotFound, "there is no such database", "check its name, or create it with createdb")
        }
        SqlState::UNDEFINED_TABLE | SqlState::INVALID_SCHEMA_NAME => {
            (ErrorKind::NotFound, "the database has no index yet", "let its owner create the schema")
        }
        _ if class == "XX" => (
            ErrorKind::Damaged,
            "the database server reports damage, or a fault of its own",
            "see its log; the notes are not touched, and a new sync fills an empty vault",
        ),
        _ => (ErrorKind::Store, "the database server refused", "see the cause"),
    }
}
