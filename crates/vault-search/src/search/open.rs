//! Opens the index of a vault for a command: to read it, to fill it, or to bring it up to date within a time limit.

use std::path::Path;
use std::time::{Duration, Instant};

use vault_index::{Error, ErrorKind, Index, ModelName, SyncOptions};

use crate::{CliResult, Failure, note, stderr_is_terminal};

use super::consent;
use super::progress::with_progress;
use super::settings::IndexSettings;

/// How long to wait by default for another process that writes: long enough for one that writes a note or two.
const FOR_ANOTHER_WRITER: Duration = Duration::from_millis(100);

/// How long to read changed notes if no terminal shows the progress.
const TEXT_UNSEEN: Duration = Duration::from_secs(10);

/// How long a search on a terminal computes missing vectors, if that is enough for all of them.
const VECTORS_SEEN: Duration = Duration::from_secs(5);

/// How long a search by a script computes missing vectors. Those that are computed are kept for the next one.
const VECTORS_UNSEEN: Duration = Duration::from_secs(1);

/// The parts of an index to bring up to date before it is read. Text, links and keywords come first; on a terminal,
/// which shows the progress, they are completed unless `--wait` sets a limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SyncPolicy {
    /// Nothing: `--no-sync`.
    Skip,
    /// Text, links and keywords, which is enough for link commands and lexical search.
    Text(Wait),
    /// Also vectors.
    All(Wait),
}

/// How long a command may wait for the index.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Wait {
    /// The default of a search: briefly for other processes and for vectors; longer for vectors if a person sees the
    /// progress (`is_seen`).
    Unasked { is_seen: bool },
    /// For all text, and briefly for other processes.
    ForText,
    /// For everything, for at most this long: `--wait`.
    AtMost(Duration),
}

/// Opens the index to read it, or to fill it without embedding anything.
pub(super) fn to_read(settings: &IndexSettings, vault: &Path) -> CliResult<Index> {
    Ok(Index::open(vault, settings.options(vault))?)
}

/// Opens the index to fill it, after the user has consented to send notes to a remote model, if the index has one.
///
/// # Errors
/// Refused without consent, which `--yes` (`agreed`) or an answer on the terminal gives.
pub(super) fn to_fill(settings: &IndexSettings, vault: &Path, agreed: bool) -> CliResult<Index> {
    let index = to_read(settings, vault)?;
    if let Some(model) = index.model_of_sync()? {
        consent::obtain(vault, &model, agreed, "sync")?;
    }
    Ok(index)
}

/// Opens the index to rebuild it. If it is too damaged to tell its model, it gets the default model, with a notice.
///
/// # Errors
/// Those of [`to_fill`].
pub(super) fn to_rebuild(settings: &IndexSettings, vault: &Path, agreed: bool) -> CliResult<Index> {
    let mut index = to_read(settings, vault)?;
    if index.has_lost_its_model() {
        let model = ModelName::default();
        note(&format!(
            "the index is too damaged to tell its model, so it is rebuilt with {model} \
             (for another one: vault-index rebuild --model NAME)"
        ));
        index = Index::open(vault, settings.options(vault).model(model))?;
    }
    if let Some(model) = index.model_of_rebuild()? {
        consent::obtain(vault, &model, agreed, "rebuild")?;
    }
    Ok(index)
}

/// Opens the index of a vault and brings it up to date. The second value is the reason why it may be incomplete.
///
/// # Errors
/// If there is no index and none can be created, or the requested model cannot embed a note.
pub(super) fn up_to_date(
    settings: &IndexSettings,
    vault: &Path,
    policy: SyncPolicy,
) -> CliResult<(Index, Option<String>)> {
    let (index, with_vectors, wait) = match policy {
        SyncPolicy::Text(Wait::AtMost(_)) | SyncPolicy::All(Wait::AtMost(_))
            if settings.database_of(vault).is_some() =>
        {
            return Err(crate::database::needs_file("--wait").into());
        }
        // Each reader may have another state of the notes, so only a sync or a watcher writes to a database.
        _ if settings.database_of(vault).is_some() => return Ok((to_read(settings, vault)?, None)),
        SyncPolicy::Skip => return Ok((to_read(settings, vault)?, None)),
        // Nothing is embedded, so nothing can leave the machine.
        SyncPolicy::Text(wait) => (to_read(settings, vault)?, false, wait),
        SyncPolicy::All(wait) => (to_fill(settings, vault, false)?, true, wait),
    };
    // A live watcher keeps it up to date.
    let why = if index.watcher().is_some() { None } else { sync(&index, with_vectors, wait)? };
    Ok((index, why))
}

fn sync(index: &Index, with_vectors: bool, wait: Wait) -> CliResult<Option<String>> {
    let mut options = SyncOptions::new();
    options.vectors = with_vectors;
    match wait {
        Wait::AtMost(limit) => (options.wait, options.deadline) = (Some(limit), after(limit)),
        Wait::Unasked { .. } | Wait::ForText => {
            let is_patient = wait == Wait::ForText || stderr_is_terminal();
            options.wait = Some(FOR_ANOTHER_WRITER);
            options.deadline = if is_patient { None } else { after(TEXT_UNSEEN) };
            options = match wait {
                Wait::Unasked { is_seen: true } => options.all_vectors_within(VECTORS_SEEN),
                _ => options.vectors_within(VECTORS_UNSEEN),
            };
        }
    }
    let (result, is_cancelled) = with_progress(options, |options| index.sync_with(options));
    if is_cancelled {
        return match stderr_is_terminal() {
            true => Ok(Some("indexing was stopped; `vault-index sync` resumes it".to_string())),
            false => Err(Failure::Interrupted("what has been indexed is kept".into())),
        };
    }
    match result {
        Ok(report) => Ok((report.unread > 0).then(|| {
            let seconds = report.took_ms as f32 / 1000.0;
            format!("reading notes was stopped after {seconds:.1} s; `vault-index sync` resumes it, --wait SECONDS allows more")
        })),
        Err(error) if error.kind() == ErrorKind::Locked => Ok(Some(writing(&error))),
        // An index that cannot be written can still be searched. If its model has another address now or cannot be
        // loaded, it can be searched by words.
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

/// Returns the reason for using the index as it is: another process is writing it.
fn writing(error: &Error) -> String {
    let holder = error.message().strip_prefix("the index is held by ").unwrap_or("another process");
    format!("{holder} is writing the index")
}

/// Returns the moment after a duration, or `None` if it is too far away to be represented.
fn after(limit: Duration) -> Option<Instant> {
    Instant::now().checked_add(limit)
}
