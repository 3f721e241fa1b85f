//! The folders of this program's state, in the user's state folder beside the journals of the tools.

use vault_search::agent_folder;
use vault_tools::{Error, ErrorKind, Result, State};

/// Returns a folder for the user's state of this program.
///
/// # Errors
/// When the system names no folder for the state of programs.
pub(crate) fn state_of_user(name: &str) -> Result<State> {
    agent_folder(name).map(State::at).ok_or_else(|| {
        Error::new(ErrorKind::Io, "the system names no folder for the state of programs")
            .with_remedy("set HOME or XDG_STATE_HOME")
    })
}
