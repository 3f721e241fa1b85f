//! Brings an index up to date before it is asked something, for as long as its user would wait.

use std::path::Path;
use std::time::{Duration, Instant};

use vault_cli::{CliResult, Failure, note};

use super::progress::Bar;
use super::settings::{Sending, Settings};
use crate::{ErrorKind, Index, SyncOptions};

/// How long to wait for another process that writes: what is indexed already can be asked meanwhile.
const FOR_ANOTHER_WRITER: Duration = Duration::from_secs(10);

/// What is done before an index is asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Before {
    /// Nothing: `--no-sync`.
    Nothing,
    /// Text, links and keywords, for at most this long: all that questions about links and words need.
    Text(Option<Duration>),
    /// Everything, for at most this long. `None` is without limit.
    All(Option<Duration>),
}

/// Opens the index of a vault and brings it up to date. The second value says why it may lack something.
///
/// # Errors
/// When there is no index and none can be made, or a note cannot be embedded by the model asked for.
pub(super) fn open(settings: &Settings, vault: &Path, before: Before) -> CliResult<(Index, Option<String>)> {
    let index = match before {
        // Nothing is embedded, so nothing can leave the machine.
        Before::Nothing | Before::Text(_) => settings.open_to_read(vault)?,
        Before::All(_) => settings.open(vault, Sending::Ask)?,
    };
    let why = bring_up_to_date(&index, before)?;
    Ok((index, why))
}

fn bring_up_to_date(index: &Index, before: Before) -> CliResult<Option<String>> {
    // A live watcher has taken over what changed, or is about to.
    if index.watcher().is_some() {
        return Ok(None);
    }
    let (vectors, limit) = match before {
        Before::Nothing => return Ok(None),
        Before::Text(limit) => (false, limit),
        Before::All(limit) => (true, limit),
    };
    let listening = vault_cli::listen();
    let bar = Bar::new();
    let deadline = limit.and_then(|limit| Instant::now().checked_add(limit));
    let done = index.sync_with(&SyncOptions {
        vectors,
        cancel: Some(listening.flag()),
        progress: Some(&|progress| bar.show(progress)),
        wait: Some(limit.unwrap_or(FOR_ANOTHER_WRITER).min(FOR_ANOTHER_WRITER)),
        deadline,
        ..SyncOptions::default()
    });
    drop(bar);
    match done {
        _ if listening.is_cancelled() && !vault_cli::stderr_is_terminal() => {
            Err(Failure::Interrupted("what was indexed until now is kept"))
        }
        _ if listening.is_cancelled() => {
            Ok(Some("indexing was stopped; `vault-index sync` goes on where it stopped".to_string()))
        }
        Err(error) if error.kind() == ErrorKind::Locked => {
            note(&error.one_line());
            Ok(Some("another process is writing the index".to_string()))
        }
        // An index that is there but cannot be written can still be asked.
        Err(error) if matches!(error.kind(), ErrorKind::Io | ErrorKind::Store) && index.searcher().is_ok() => {
            Ok(Some(format!("changed files were not taken over: {}", error.one_line())))
        }
        // So can one whose model has another address now, by words; or one that goes on with a rebuild by a model that
        // cannot be had.
        Err(error) if matches!(error.kind(), ErrorKind::OtherModel | ErrorKind::Model) && index.searcher().is_ok() => {
            Ok(Some(error.one_line()))
        }
        Err(error) => Err(error.into()),
        Ok(report) if report.unread + if vectors { report.pending } else { 0 } > 0 && deadline.is_some() => {
            let seconds = report.took_ms as f32 / 1000.0;
            Ok(Some(format!(
                "indexing was stopped after {seconds:.1} s; `vault-index sync` finishes it, --wait SECONDS allows more"
            )))
        }
        Ok(_) => Ok(None),
    }
}
