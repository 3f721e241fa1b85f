//! Opens the index of a vault for a command: to read it, to fill it, or brought up to date as long as its user would
//! wait.

use std::path::Path;
use std::time::{Duration, Instant};

use vault_cli::{CliResult, Failure, note, stderr_is_terminal};

use super::consent;
use super::progress::with_progress;
use super::settings::Settings;
use crate::{ErrorKind, Index, ModelName, Options, SyncOptions};

/// How long to wait for another process that writes: what is indexed can be searched meanwhile.
const WAIT_FOR_WRITER: Duration = Duration::from_secs(10);

/// What is brought up to date before an index is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SyncPolicy {
    /// Nothing: `--no-sync`.
    Skip,
    /// Text, links and keywords, for at most this long: all that questions about links and words need.
    Text(Option<Duration>),
    /// Everything, for at most this long; `None` is without limit.
    All(Option<Duration>),
}

/// Opens the index to read it, or to fill it without embedding anything.
pub(super) fn to_read(settings: &Settings, vault: &Path) -> CliResult<Index> {
    Ok(Index::open(vault, settings.options())?)
}

/// Opens the index to fill it, once it is settled that notes may go where its model runs.
///
/// # Errors
/// Refused when notes would leave the machine and nobody agreed, by `--yes` (`agreed`) or when asked.
pub(super) fn to_fill(settings: &Settings, vault: &Path, agreed: bool) -> CliResult<Index> {
    let index = to_read(settings, vault)?;
    if let Some(model) = index.model_of_sync()? {
        consent::obtain(vault, &model, agreed, "sync")?;
    }
    Ok(index)
}

/// Opens the index to rebuild it. One that is too damaged to say which model it has gets the default, with a notice.
///
/// # Errors
/// As [`to_fill`].
pub(super) fn to_rebuild(settings: &Settings, vault: &Path, agreed: bool) -> CliResult<Index> {
    let mut index = to_read(settings, vault)?;
    if index.has_lost_its_model() {
        let model = ModelName::default();
        note(&format!(
            "the index is too damaged to say which model it had; it is rebuilt with {model} \
             (for another one: vault-index rebuild --model NAME)"
        ));
        index = Index::open(vault, Options { model: Some(model), ..settings.options() })?;
    }
    if let Some(model) = index.model_of_rebuild()? {
        consent::obtain(vault, &model, agreed, "rebuild")?;
    }
    Ok(index)
}

/// Opens the index of a vault and brings it up to date. The second value says why it may lack something.
///
/// # Errors
/// When there is no index and none can be made, or a note cannot be embedded by the model asked for.
pub(super) fn up_to_date(settings: &Settings, vault: &Path, policy: SyncPolicy) -> CliResult<(Index, Option<String>)> {
    let (index, with_vectors, limit) = match policy {
        SyncPolicy::Skip => return Ok((to_read(settings, vault)?, None)),
        // Nothing is embedded, so nothing can leave the machine.
        SyncPolicy::Text(limit) => (to_read(settings, vault)?, false, limit),
        SyncPolicy::All(limit) => (to_fill(settings, vault, false)?, true, limit),
    };
    // A live watcher keeps it up to date.
    let why = if index.watcher().is_some() { None } else { sync(&index, with_vectors, limit)? };
    Ok((index, why))
}

fn sync(index: &Index, with_vectors: bool, limit: Option<Duration>) -> CliResult<Option<String>> {
    let deadline = limit.and_then(|limit| Instant::now().checked_add(limit));
    let wait = Some(limit.unwrap_or(WAIT_FOR_WRITER).min(WAIT_FOR_WRITER));
    let options = SyncOptions { vectors: with_vectors, wait, deadline, ..SyncOptions::default() };
    let (result, is_cancelled) = with_progress(options, |options| index.sync_with(options));
    if is_cancelled {
        return match stderr_is_terminal() {
            true => Ok(Some("indexing was stopped; `vault-index sync` resumes it".to_string())),
            false => Err(Failure::Interrupted("what has been indexed is kept")),
        };
    }
    match result {
        Ok(report) => {
            let pending = report.unread + if with_vectors { report.pending } else { 0 };
            let seconds = report.took_ms as f32 / 1000.0;
            Ok((pending > 0 && deadline.is_some()).then(|| {
                format!("indexing was stopped after {seconds:.1} s; `vault-index sync` resumes it, --wait SECONDS allows more")
            }))
        }
        Err(error) if error.kind() == ErrorKind::Locked => {
            note(&error.one_line());
            Ok(Some("another process is writing the index".to_string()))
        }
        // An index that cannot be written can still be searched; one whose model has another address now or cannot be
        // loaded, by words.
        Err(error) if index.searcher().is_ok() => match error.kind() {
            ErrorKind::Io | ErrorKind::Store => {
                Ok(Some(format!("changed files were not indexed: {}", error.one_line())))
            }
            ErrorKind::OtherModel | ErrorKind::Model => Ok(Some(error.one_line())),
            _ => Err(error.into()),
        },
        Err(error) => Err(error.into()),
    }
}
