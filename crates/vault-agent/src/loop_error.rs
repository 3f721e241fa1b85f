//! Errors of agent-loop as errors of this program.

use vault_tools::{Error, ErrorKind};

/// An error of agent-loop as one of this program.
pub(crate) fn of_loop(error: agent_loop::Error) -> Error {
    use agent_loop::ErrorKind as Kind;
    let kind = match error.kind() {
        Kind::Authentication | Kind::Damaged | Kind::Newer | Kind::BadRequest => ErrorKind::Config,
        Kind::Io => ErrorKind::Io,
        _ => ErrorKind::Unsupported,
    };
    let mut new = Error::new(kind, error.message());
    if let Some(path) = error.path() {
        new = new.at(path);
    }
    match error.remedy() {
        Some(remedy) => new.with_remedy(remedy),
        None => new,
    }
}
