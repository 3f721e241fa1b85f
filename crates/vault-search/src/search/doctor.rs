//! `vault-index doctor`: what commonly goes wrong with a vault and its index, and what to do about it.
//!
//! It looks at the real thing: it reads changed notes as a search would, and watches the vault as a watcher would.

use std::fs::File;
use std::io;
use std::path::Path;
use std::time::Duration;

use schemars::JsonSchema;
use serde::Serialize;
use vault_index::dirs::canonical_vault;
use vault_index::{Error, ErrorKind, FolderState, Index, ListedIndex, Status, SyncOptions};

use crate::{CliResult, Failure, ListArgs, Out, Outcome, Settings, VaultArgs, counted, counted_as, sanitize_line};

use super::progress::with_progress;
use super::settings::{IndexSettings, IndexedVaultArgs};

/// How long another process may hold the index for writing, which is longer than one batch takes.
const WRITE_WITHIN: Duration = Duration::from_secs(3);

/// How many notes a finding names.
const NAMED: usize = 3;

/// What something found by `doctor` is about. Scripts rely on the names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum FindingKind {
    /// There is no vault, or its folder is gone or holds no notes.
    NoVault,
    /// A setting is invalid.
    Settings,
    /// Notes are not indexed, because a rule excludes them.
    Excluded,
    /// A note is not indexed, because it is too large or no text.
    Skipped,
    /// Something may not be read or written.
    Permissions,
    /// Another process holds the index.
    Locked,
    /// Another index is in the way of this one, or is left over.
    OtherIndex,
    /// The system does not report changes of files.
    NotWatched,
    /// The model does not suit the notes or the settings.
    Model,
    /// Passages have no vectors.
    NoVectors,
    /// The index cannot be used.
    Index,
}

/// Something that `doctor` found.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct Finding {
    /// What it is about.
    pub kind: FindingKind,
    /// Whether something does not work. Otherwise it may be intended.
    pub is_problem: bool,
    /// The vault, index or setting.
    pub subject: String,
    /// What was found.
    pub message: String,
    /// What to do.
    pub remedy: String,
}

impl Finding {
    /// Something that does not work.
    pub fn problem(
        kind: FindingKind,
        subject: impl Into<String>,
        message: impl Into<String>,
        remedy: impl Into<String>,
    ) -> Self {
        Self { kind, is_problem: true, subject: subject.into(), message: message.into(), remedy: remedy.into() }
    }

    /// Something that may be intended.
    fn notice(
        kind: FindingKind,
        subject: impl Into<String>,
        message: impl Into<String>,
        remedy: impl Into<String>,
    ) -> Self {
        Self { is_problem: false, ..Self::problem(kind, subject, message, remedy) }
    }

    fn of_error(kind: FindingKind, subject: &Path, error: &Error, otherwise: &str) -> Self {
        let cause = std::error::Error::source(error).map_or_else(String::new, |cause| format!(": {cause}"));
        let remedy = error.remedy().unwrap_or(otherwise);
        let path = error.path().unwrap_or(subject);
        Self::problem(kind, path.display().to_string(), format!("{}{cause}", error.message()), remedy)
    }
}

/// Prints what is wrong with the vaults that the arguments select, after `others`, which the caller has found.
///
/// # Errors
/// Those of printing. What is wrong is a finding, not an error.
pub fn doctor(vault_args: &VaultArgs, args: &ListArgs, others: Vec<Finding>, out: &mut Out) -> CliResult {
    let vault_args = IndexedVaultArgs { vault_args: vault_args.clone(), ..IndexedVaultArgs::default() };
    run(&vault_args, args, others, out)
}

pub(super) fn run(
    vault_args: &IndexedVaultArgs,
    args: &ListArgs,
    mut findings: Vec<Finding>,
    out: &mut Out,
) -> CliResult {
    if args.schema {
        return out.list_schema::<Finding>(args);
    }
    let mut examined = Vec::new();
    match IndexSettings::load(vault_args) {
        Ok(settings) => {
            settings.needs_file("vault-index doctor")?;
            for vault in &settings.vaults {
                examined.extend(examine(&settings, vault, &mut findings)?);
            }
        }
        Err(failure) => findings.push(no_settings(&vault_args.vault_args, &failure)),
    }
    findings.sort_by_key(|finding| !finding.is_problem);
    out.list(args.format(), &findings, |out, findings| {
        for finding in findings {
            let kind = if finding.is_problem { out.paint.bad("problem") } else { out.paint.bold("notice") };
            let text = sanitize_line(&format!("{}: {}", finding.subject, finding.message));
            out.line(&format!("{kind}: {text}"))?;
            out.line(&format!("  {}", sanitize_line(&finding.remedy)))?;
        }
        let problems = findings.iter().filter(|finding| finding.is_problem).count();
        let counts = [(problems, "problem"), (findings.len() - problems, "notice")];
        let counts: Vec<String> =
            counts.iter().filter(|(count, _)| *count > 0).map(|(count, what)| counted(*count, what)).collect();
        match counts.is_empty() {
            false => out.line(&counts.join(", ")),
            true => out.line(&format!("nothing wrong was found: {}", sanitize_line(&examined.join(", ")))),
        }
    })?;
    let is_well = !findings.iter().any(|finding| finding.is_problem);
    Ok(if is_well { Outcome::Done } else { Outcome::Nothing })
}

/// Tells a vault that cannot be found from settings that cannot be read.
fn no_settings(vault_args: &VaultArgs, failure: &Failure) -> Finding {
    let text = failure.to_string();
    // A message ends with its remedy in parentheses.
    let (message, remedy) = match text.strip_suffix(')').and_then(|text| text.rsplit_once(" (")) {
        Some((message, remedy)) => (message, remedy),
        None => (text.as_str(), "vault-index --help describes the settings"),
    };
    let is_no_vault = matches!(failure, Failure::Refused(_)) || Settings::load_with_missing(vault_args).is_ok();
    match is_no_vault {
        true => Finding::problem(FindingKind::NoVault, "the vault", message, remedy),
        false => Finding::problem(FindingKind::Settings, "the settings", message, remedy),
    }
}

/// Examines a vault and its index. Returns what to say of it if nothing is wrong.
fn examine(settings: &IndexSettings, vault: &Path, findings: &mut Vec<Finding>) -> CliResult<Option<String>> {
    let subject = vault.display().to_string();
    if let Err(error) = canonical_vault(vault) {
        findings.push(Finding::of_error(FindingKind::NoVault, vault, &error, "name another folder with --vault DIR"));
        return Ok(None);
    }
    if !may_write(vault) {
        let message = "you may not write in this folder: its notes can be searched, but not changed";
        let remedy = "to change notes, give yourself the permission to write in it";
        findings.push(Finding::notice(FindingKind::Permissions, &subject, message, remedy));
    }
    let index = match Index::open(vault, settings.options(vault)) {
        Ok(index) => index,
        Err(error) => {
            findings.push(Finding::of_error(kind_of(&error), vault, &error, REBUILD));
            return Ok(None);
        }
    };
    let mut options = SyncOptions::new();
    (options.vectors, options.wait) = (false, Some(WRITE_WITHIN));
    let (synced, is_cancelled) = with_progress(options, |options| index.sync_with(options));
    if is_cancelled {
        return Err(Failure::Interrupted("what has been indexed is kept".into()));
    }
    let is_synced = synced.is_ok();
    if let Err(error) = synced {
        findings.push(match error.kind() {
            ErrorKind::Locked => {
                let message = format!("{} for {} s or longer", error.message(), WRITE_WITHIN.as_secs());
                let remedy = "if that process hangs, end it by its number; what it has indexed is kept";
                Finding::problem(FindingKind::Locked, index.index_file().display().to_string(), message, remedy)
            }
            _ => Finding::of_error(kind_of(&error), index.index_file(), &error, REBUILD),
        });
    }
    other_indexes(&index, findings);
    let before = findings.len();
    let status = index.status();
    if let Ok(status) = &status {
        contents(&index, status, findings);
    }
    if let Ok(Some(notice)) = index.watch_notice() {
        let is_denied = findings[before..].iter().any(|finding| finding.kind == FindingKind::Permissions);
        let remedy = match is_denied {
            true => "a folder that may not be read cannot be watched either: give yourself the permission to read it",
            false if cfg!(target_os = "linux") => {
                "as root: sysctl fs.inotify.max_user_watches=524288 fs.inotify.max_user_instances=1024"
            }
            false => "changes are found a few seconds later",
        };
        findings.push(Finding::problem(FindingKind::NotWatched, &subject, notice, remedy));
    }
    Ok(match status {
        Ok(status) => Some(format!("{} in {subject}, all indexed and with vectors", counted(status.notes, "note"))),
        Err(error) => {
            // An index that cannot be made cannot be read either.
            if is_synced {
                findings.push(Finding::of_error(kind_of(&error), index.index_file(), &error, REBUILD));
            }
            None
        }
    })
}

const REBUILD: &str = "vault-index check --repair repairs the index";

fn kind_of(error: &Error) -> FindingKind {
    match error.kind() {
        ErrorKind::Io | ErrorKind::Vault => FindingKind::Permissions,
        ErrorKind::Model | ErrorKind::OtherModel => FindingKind::Model,
        ErrorKind::Locked => FindingKind::Locked,
        _ => FindingKind::Index,
    }
}

#[cfg(unix)]
fn may_write(folder: &Path) -> bool {
    rustix::fs::access(folder, rustix::fs::Access::WRITE_OK).is_ok()
}

#[cfg(not(unix))]
fn may_write(_: &Path) -> bool {
    true
}

/// Finds indexes of the same folder, of folders around or within it, and of folders that are gone.
fn other_indexes(index: &Index, findings: &mut Vec<Finding>) {
    let (vault, own) = (index.vault(), index.index_file());
    let own = own.canonicalize().unwrap_or_else(|_| own.to_path_buf());
    let is_own = |other: &ListedIndex| other.index.canonicalize().is_ok_and(|file| file == own);
    let others = Index::list().unwrap_or_default().into_iter().filter(|other| !is_own(other));
    let (gone, there): (Vec<_>, Vec<_>) =
        others.partition(|other| other.state == FolderState::Gone && other.vault.as_deref() != Some(vault));
    findings.extend(gone_folders(&gone));
    for other in there {
        let Some(folder) = &other.vault else { continue };
        let forget = format!("vault-index forget --vault \"{}\"", folder.display());
        let (message, remedy) = if folder == vault {
            let message =
                format!("this vault has a second index, {}, which is used without --index", other.index.display());
            (message, format!("to keep one, leave out --index (VAULT_INDEX_FILE), or run {forget}"))
        } else if folder.starts_with(vault) {
            let message =
                "this folder is in the vault and has an index of its own, which commands in it use".to_owned();
            (message, format!("if it is no vault of its own: {forget}"))
        } else if vault.starts_with(folder) {
            let message =
                "this folder contains the vault and has an index, too, so its notes are indexed twice".to_owned();
            (message, format!("if it is not your vault: {forget}"))
        } else {
            continue;
        };
        findings.push(Finding::notice(FindingKind::OtherIndex, folder.display().to_string(), message, remedy));
    }
}

/// Indexes of folders that are gone, in one finding, because there can be many.
fn gone_folders(gone: &[ListedIndex]) -> Option<Finding> {
    let folders: Vec<String> =
        gone.iter().filter_map(|other| other.vault.as_ref()).map(|folder| folder.display().to_string()).collect();
    let first = folders.first()?;
    let (one, many) = ("index is of a folder that no longer exists", "indexes are of folders that no longer exist");
    let message = format!("{}: {}", counted_as(folders.len(), one, many), named(&folders));
    let remedy = "vault-index list shows all indexes; if a folder has moved: vault-index adopt OLD-FOLDER in the new one; \
                  else: vault-index forget --vault OLD-FOLDER";
    Some(Finding::notice(FindingKind::OtherIndex, first, message, remedy))
}

/// Returns the first names, with an ellipsis if there are more.
fn named<T: AsRef<str>>(all: &[T]) -> String {
    let mut named: Vec<&str> = all.iter().take(NAMED).map(AsRef::as_ref).collect();
    if all.len() > NAMED {
        named.push("…");
    }
    named.join(", ")
}

/// Examines what the index holds.
fn contents(index: &Index, status: &Status, findings: &mut Vec<Finding>) {
    let subject = status.vault.display().to_string();
    if status.unread > 0 {
        let message = format!("{} not read yet", counted_as(status.unread, "note is", "notes are"));
        findings.push(Finding::problem(FindingKind::NoVectors, &subject, message, "vault-index sync"));
    } else {
        let skipped = |path: &str| status.skipped.iter().any(|skipped| skipped.path == path);
        let files = index.files().unwrap_or_default();
        let mut excluded: Vec<&str> = files
            .iter()
            .filter(|file| file.path.kind().is_note() && !file.is_indexed && !skipped(file.path.as_str()))
            .map(|file| file.path.as_str())
            .collect();
        excluded.sort_unstable();
        findings.extend(excluded_notes(&subject, &excluded, status.notes));
    }
    findings.extend(status.skipped.iter().map(|skipped| {
        let file = index.vault().join(&skipped.path);
        let message = format!("not indexed: {}", skipped.reason);
        let is_denied = |error: io::Error| error.kind() == io::ErrorKind::PermissionDenied;
        match File::open(&file).is_err_and(is_denied) {
            true => {
                let remedy = "give yourself the permission to read it, or exclude it in .vaultignore";
                Finding::problem(FindingKind::Permissions, file.display().to_string(), message, remedy)
            }
            false => {
                let remedy = "if it should be found, repair it; else exclude it in .vaultignore";
                Finding::notice(FindingKind::Skipped, file.display().to_string(), message, remedy)
            }
        }
    }));
    for advice in &status.advice {
        let remedy = "vault-index models lists the models, vault-index rebuild --model NAME changes it";
        findings.push(Finding::problem(FindingKind::Model, &subject, advice, remedy));
    }
    if let Some(next) = &status.rebuilding_to {
        let message = format!("a rebuild with the model {next} is not complete; searches use {}", status.model);
        findings.push(Finding::problem(FindingKind::Model, &subject, message, "vault-index rebuild resumes it"));
    }
    if status.pending > 0 {
        let message = format!(
            "{} of {} no vector yet: search by meaning does not find them",
            status.pending,
            counted_as(status.chunks.max(status.pending), "passage has", "passages and titles have")
        );
        findings.push(Finding::problem(FindingKind::NoVectors, &subject, message, "vault-index sync"));
    }
}

fn excluded_notes(subject: &str, excluded: &[&str], notes: usize) -> Option<Finding> {
    if excluded.is_empty() {
        let message = "this folder holds no notes (files that end in .md)";
        let remedy = "name the folder of your notes with --vault DIR, or make it the default: vault-agent setup";
        return (notes == 0).then(|| Finding::problem(FindingKind::NoVault, subject, message, remedy));
    }
    let message = format!("{} excluded: {}", counted_as(excluded.len(), "note is", "notes are"), named(excluded));
    let remedy = "if that is not intended, look into .gitignore, .vaultignore, .vault.toml, the excluded files of \
                  Obsidian's settings, and exclude in config.toml";
    let excluded = Finding::notice(FindingKind::Excluded, subject, message, remedy);
    Some(Finding { is_problem: notes == 0, ..excluded })
}
