//! Opens the index of a vault for a command: to read it, to fill it, or brought up to date as long as its user would
//! wait.

use std::path::Path;
use std::time::{Duration, Instant};

use vault_index::{Error, ErrorKind, Index, ModelName, SyncOptions};

use crate::{CliResult, Failure, note, stderr_is_terminal};

use super::consent;
use super::progress::with_progress;
use super::settings::IndexSettings;

/// How long another process that writes is waited for unasked: long enough for one that writes a note or two.
const FOR_ANOTHER_WRITER: Duration = Duration::from_millis(100);

/// How long changed notes are read where nobody sees the progress.
const TEXT_UNSEEN: Duration = Duration::from_secs(10);

/// How long a person at a terminal waits for missing vectors, where that is enough for all of them.
const VECTORS_SEEN: Duration = Duration::from_secs(5);

/// How long a script waits for them; what was made is kept for the next one.
const VECTORS_UNSEEN: Duration = Duration::from_secs(1);

/// What is brought up to date before an index is read. Text, links and keywords come first; they are read to the end on a
/// terminal, which shows the progress.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SyncPolicy {
    /// Nothing: `--no-sync`.
    Skip,
    /// Text, links and keywords: all that questions about links and words need.
    Text(Wait),
    /// Vectors too.
    All(Wait),
}

/// How long an answer may be waited for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Wait {
    /// Never for other processes, and a moment for vectors; longer where a person sees how far they are.
    Unasked { is_seen: bool },
    /// For all text, and never for other processes.
    ForText,
    /// For all of it, for at most this long: `--wait`.
    AtMost(Duration),
}

/// Opens the index to read it, or to fill it without embedding anything.
pub(super) fn to_read(settings: &IndexSettings, vault: &Path) -> CliResult<Index> {
    Ok(Index::open(vault, settings.options())?)
}

/// Opens the index to fill it, once it is settled that notes may go where its model runs.
///
/// # Errors
/// Refused when notes would leave the machine and nobody agreed, by `--yes` (`agreed`) or when asked.
pub(super) fn to_fill(settings: &IndexSettings, vault: &Path, agreed: bool) -> CliResult<Index> {
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
pub(super) fn to_rebuild(settings: &IndexSettings, vault: &Path, agreed: bool) -> CliResult<Index> {
    let mut index = to_read(settings, vault)?;
    if index.has_lost_its_model() {
        let model = ModelName::default();
        note(&format!(
            "the index is too damaged to tell its model, so it is rebuilt with {model} \
             (for another one: vault-index rebuild --model NAME)"
        ));
        index = Index::open(vault, settings.options().model(model))?;
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
pub(super) fn up_to_date(
    settings: &IndexSettings,
    vault: &Path,
    policy: SyncPolicy,
) -> CliResult<(Index, Option<String>)> {
    let (index, with_vectors, wait) = match policy {
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
            false => Err(Failure::Interrupted("what has been indexed is kept")),
        };
    }
    match result {
        Ok(report) => Ok((report.unread > 0).then(|| {
            let seconds = report.took_ms as f32 / 1000.0;
            format!("reading notes was stopped after {seconds:.1} s; `vault-index sync` resumes it, --wait SECONDS allows more")
        })),
        Err(error) if error.kind() == ErrorKind::Locked => Ok(Some(writing(&error))),
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

/// The index is searched as it is, since another process writes to it.
fn writing(error: &Error) -> String {
    let holder = error.message().strip_prefix("the index is held by ").unwrap_or("another process");
    format!("{holder} is writing the index")
}

/// The moment that is so far away; none where that is beyond all time.
fn after(limit: Duration) -> Option<Instant> {
    Instant::now().checked_add(limit)
}
