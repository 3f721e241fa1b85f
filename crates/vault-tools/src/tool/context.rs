//! The context of a call: the overlay, the index, the editor, the clock, the results that calls of a step share, and
//! cancellation.

use std::cell::OnceCell;
use std::collections::HashMap;
use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use jiff::Zoned;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use vault_index::Exclusion;
use vault_index::links::Names;
use vault_index::{LinkKind, VaultPath};

use crate::error::{Error, ErrorKind, Result};
use crate::host::{Editor, Host, Leaf};
use crate::overlay::Overlay;
use crate::policy::Policy;
use crate::sandbox::{Entry, EntryKind, SafePath, View, missing};
use crate::tool::schema::PathArg;
use crate::vault::Vault;

/// The context of a call.
///
/// Reads and writes go through `overlay`, which shows the vault with the proposed changes.
#[non_exhaustive]
pub struct Context<'a, 'v> {
    /// The vault on the disk, and its index.
    pub vault: &'v Vault,
    /// The vault as it would be after the changes; writes go here.
    pub overlay: &'a mut Overlay<'v>,
    /// The state of the editor, as it would be after the changes; `None` before [`Self::editor`] has read it.
    pub(crate) editor: &'a mut Option<Editor>,
    /// Runs commands and shows files.
    pub host: &'a mut dyn Host,
    /// Decides which paths may be read.
    pub policy: &'a Policy,
    /// The current time, in the local time zone.
    pub now: &'a Zoned,
    /// The effects that the host carries out when the call is applied, in order.
    pub effects: &'a mut Vec<HostEffect>,
    /// The error of the call unless a person sees its changes and approves them.
    pub unless_seen: &'a mut Option<Error>,
    /// Ends the call early.
    pub cancel: Cancel<'a>,
    /// The results that calls of the same step share.
    pub(crate) cache: &'a StepCache,
}

/// The effects of one or more calls: changes of the vault and of the editor, and effects of the host.
pub(crate) struct Draft<'v> {
    pub vault: &'v Vault,
    pub overlay: Overlay<'v>,
    /// `None` before a call has read it.
    pub editor: Option<Editor>,
    pub effects: Vec<HostEffect>,
    pub unless_seen: Option<Error>,
    pub now: Zoned,
    pub cache: StepCache,
}

/// An effect that the host carries out besides the changes of files. It cannot be undone.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase", tag = "effect")]
#[non_exhaustive]
pub enum HostEffect {
    /// Shows a file.
    Open {
        /// The file.
        path: String,
        /// Whether in a new tab.
        new_leaf: bool,
        /// The line, from 1.
        #[serde(default)]
        line: Option<u32>,
    },
    /// Runs a command.
    Command {
        /// Its id.
        id: String,
        /// Its name for people.
        #[serde(default)]
        name: String,
    },
}

impl fmt::Display for HostEffect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Open { path, .. } => write!(f, "shows {path}"),
            Self::Command { id, name } if name.is_empty() => write!(f, "runs the command {id}"),
            Self::Command { id, name } => write!(f, "runs the command {id} ({name})"),
        }
    }
}

impl HostEffect {
    /// Checks that the policy permits it. It is checked again when an approved change is carried out, because the
    /// settings can have changed since.
    ///
    /// # Errors
    /// [`ErrorKind::Denied`].
    pub(crate) fn check(&self, policy: &Policy) -> Result<()> {
        match self {
            Self::Open { .. } => Ok(()),
            Self::Command { id, .. } => policy.permit_command(id),
        }
    }

    /// Carries it out.
    ///
    /// # Errors
    /// The errors of the host.
    pub(crate) fn run(&self, host: &mut dyn Host) -> Result<()> {
        match self {
            Self::Open { path, new_leaf, line } => {
                let leaf = if *new_leaf { Leaf::New } else { Leaf::Current };
                match host.open(&SafePath::new_or_existing(path, |_| true)?, leaf, *line)? {
                    true => Ok(()),
                    false => Err(Error::new(ErrorKind::Refused, "the app does not show it").at(path)),
                }
            }
            Self::Command { id, .. } => host.run_command(id),
        }
    }

    /// Records in the output of its call that the host failed; the call itself has been carried out.
    pub(crate) fn report_failure(&self, output: &mut Value, error: &Error) {
        let Some(fields) = output.as_object_mut() else { return };
        match self {
            Self::Open { .. } => drop(fields.insert("opened".into(), false.into())),
            Self::Command { .. } => {
                fields.insert("executed".into(), false.into());
                fields.insert("errorMessage".into(), error.to_string().into());
            }
        }
    }
}

/// Ends a call early: a flag, a deadline, both or (the default) neither.
///
/// ```
/// use std::sync::atomic::AtomicBool;
/// use std::time::{Duration, Instant};
/// use vault_tools::Cancel;
///
/// let flag = AtomicBool::new(false);
/// let cancel = Cancel::on(&flag).until(Instant::now() + Duration::from_secs(10));
/// assert!(cancel.check().is_ok());
/// ```
#[derive(Debug, Clone, Copy, Default)]
pub struct Cancel<'a> {
    pub(crate) flag: Option<&'a AtomicBool>,
    pub(crate) deadline: Option<Instant>,
}

impl<'a> Cancel<'a> {
    /// Ends the call when another thread sets the flag.
    pub fn on(flag: &'a AtomicBool) -> Self {
        Self { flag: Some(flag), deadline: None }
    }

    /// Returns the flag that ends the call, for work that takes a flag.
    pub fn flag(&self) -> Option<&'a AtomicBool> {
        self.flag
    }

    /// Ends the call at the deadline, or at an earlier one set before.
    #[must_use]
    pub fn until(self, deadline: Instant) -> Self {
        Self { deadline: Some(self.deadline.map_or(deadline, |earlier| earlier.min(deadline))), ..self }
    }

    /// Checks whether to end; long calls do this regularly.
    ///
    /// # Errors
    /// [`ErrorKind::Cancelled`], [`ErrorKind::TimedOut`].
    pub fn check(&self) -> Result<()> {
        if self.flag.is_some_and(|flag| flag.load(Ordering::Relaxed)) {
            return Err(Error::new(ErrorKind::Cancelled, "cancelled"));
        }
        if self.deadline.is_some_and(|deadline| Instant::now() >= deadline) {
            return Err(Error::new(ErrorKind::TimedOut, "it took longer than allowed")
                .with_remedy("allow more time with timeoutMs"));
        }
        Ok(())
    }

    /// Sleeps for `time`, or until the call is cancelled.
    ///
    /// # Errors
    /// The errors of [`Self::check`].
    pub(crate) fn sleep(&self, time: Duration) -> Result<()> {
        let end = Instant::now() + time;
        while Instant::now() < end {
            self.check()?;
            std::thread::sleep(Duration::from_millis(20).min(end.saturating_duration_since(Instant::now())));
        }
        self.check()
    }
}

/// Returns the state of the host's editor, without files that the policy denies.
///
/// # Errors
/// The errors of the host.
pub(crate) fn editor_of(host: &dyn Host, vault: &Vault, policy: &Policy) -> Result<Editor> {
    Ok(without_denied(host.editor()?, vault, policy))
}

/// Returns an editor's state without files that the policy denies.
pub(crate) fn without_denied(mut editor: Editor, vault: &Vault, policy: &Policy) -> Editor {
    let permits = |path: &SafePath| {
        let real = vault.sandbox().real(path).unwrap_or_else(|_| path.clone());
        policy.permits_path(path.as_str()) && policy.permits_path(real.as_str())
    };
    editor.open.retain(permits);
    if editor.active_file.as_ref().is_some_and(|path| !permits(path)) {
        editor = Editor { open: editor.open, ..Editor::default() };
    }
    editor
}

impl Context<'_, '_> {
    /// Returns selection, active file and cursor, as they would be after the changes. A live host is asked for them
    /// only when a call needs them, so that the other tools work while it does not respond.
    ///
    /// # Errors
    /// If the host does not respond.
    pub fn editor(&mut self) -> Result<&mut Editor> {
        let read = match self.editor.take() {
            Some(read) => read,
            None => editor_of(&*self.host, self.vault, self.policy)?,
        };
        Ok(self.editor.insert(read))
    }

    /// Converts an argument to a path inside the vault that the policy permits.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidPath`]; [`ErrorKind::Denied`].
    pub fn path(&self, path: &PathArg) -> Result<SafePath> {
        let is_there = |path: &SafePath| self.overlay.is_there(path).unwrap_or(false);
        let safe = SafePath::new_or_existing(path.as_str(), is_there)?;
        match self.permits(&safe) {
            true => Ok(safe),
            false => Err(Error::new(ErrorKind::Denied, "this path is denied by your settings").at(safe)),
        }
    }

    /// Returns whether a path may be shown; for a symbolic link, its target too.
    pub fn permits(&self, path: &SafePath) -> bool {
        if self.policy.permits_all_paths() {
            return true;
        }
        let permits = |path: &SafePath| self.policy.permits_path(path.as_str());
        // A dangling link reveals nothing; opening it is an error.
        permits(path) && self.overlay.real(path).map_or(true, |real| permits(&real))
    }

    /// Returns the names that links can lead to. Costs a walk of the vault, once per step.
    ///
    /// # Errors
    /// If the disk cannot be read.
    pub(crate) fn names(&self) -> Result<&Names> {
        self.cache.names(|| self.overlay.names())
    }

    /// Returns the filter for paths in a list or a search that did not name them: those that may be shown, without
    /// files that the index excludes. An excluded file can still be read and changed by its path.
    ///
    /// # Errors
    /// If exclusion rules are invalid, because the files that they exclude would be shown.
    pub(crate) fn listing(&self) -> Result<Listing<'_>> {
        let exclusion = self.cache.exclusion(|| self.vault.exclusion())?;
        Ok(Listing::new(self.policy, self.overlay, exclusion))
    }

    /// Adds a notice if lists and searches exclude a folder that the call names.
    ///
    /// # Errors
    /// The errors of [`Self::listing`].
    pub(crate) fn notice_if_left_out(&mut self, folder: &SafePath) -> Result<()> {
        if self.cache.exclusion(|| self.vault.exclusion())?.covers_folder(folder.vault_path()) {
            let what = "is excluded from the index, so lists and searches leave out its contents";
            self.overlay.notice(format!("{folder} {what}"));
        }
        Ok(())
    }

    /// Checks that everything below a path is permitted.
    ///
    /// # Errors
    /// [`ErrorKind::Denied`], which does not reveal the denied files.
    pub fn all_permitted(&self, path: &SafePath) -> Result<()> {
        let is_folder = self.overlay.stat(path)?.is_some_and(|stat| stat.kind == EntryKind::Folder && !stat.symlink);
        if !is_folder || self.policy.permits_all_paths() {
            return Ok(());
        }
        match self.overlay.walk(Some(path))?.iter().all(|entry| self.permits(&entry.path)) {
            true => Ok(()),
            false => Err(Error::new(ErrorKind::Denied, "your settings deny some of its contents").at(path)),
        }
    }

    /// Returns the error for a path that does not exist; it lists the nearest paths that may be shown.
    pub fn missing(&self, path: &SafePath) -> Error {
        self.missing_of(path, &|_| true)
    }

    /// Like [`Self::missing`], but suggests files only.
    pub(crate) fn missing_file(&self, path: &SafePath) -> Error {
        self.missing_of(path, &|entry| entry.stat.kind == EntryKind::File)
    }

    fn missing_of(&self, path: &SafePath, may_be_meant: &dyn Fn(&Entry) -> bool) -> Error {
        let listing = self.listing();
        let has = |entry: &Entry| listing.as_ref().is_ok_and(|listing| listing.has(entry));
        missing(path, &*self.overlay, &|entry| may_be_meant(entry) && has(entry))
    }
}

/// A filter for lists; see [`Context::listing`].
pub(crate) struct Listing<'c> {
    policy: &'c Policy,
    overlay: &'c Overlay<'c>,
    exclusion: &'c Exclusion,
}

impl<'c> Listing<'c> {
    pub fn new(policy: &'c Policy, overlay: &'c Overlay<'c>, exclusion: &'c Exclusion) -> Self {
        Self { policy, overlay, exclusion }
    }

    /// Returns whether it includes a file; for a symbolic link, its target must be included too.
    pub fn has_file(&self, path: &SafePath) -> bool {
        let has =
            |path: &SafePath| self.policy.permits_path(path.as_str()) && !self.exclusion.covers_file(path.vault_path());
        has(path) && self.overlay.real(path).map_or(true, |real| has(&real))
    }

    /// Returns whether it includes an entry of a folder that was listed.
    pub fn has(&self, entry: &Entry) -> bool {
        match (entry.stat.kind, entry.stat.symlink) {
            // Only symbolic links can lead to files that are not in the list themselves; resolving every path would be
            // slow.
            (_, true) => self.has_file(&entry.path),
            (_, false) if !self.policy.permits_path(entry.path.as_str()) => false,
            (EntryKind::File, _) => !self.exclusion.covers_file(entry.path.vault_path()),
            (EntryKind::Folder, _) => !self.exclusion.covers_folder(entry.path.vault_path()),
        }
    }
}

/// A link and its target.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FoundLink {
    pub source: VaultPath,
    pub target: Option<VaultPath>,
    pub kind: LinkKind,
    pub line: u32,
    /// Its path and subpath as written.
    pub points_at: String,
    /// Its visible text.
    pub text: String,
}

/// Results that are computed once per step of a plan, because a step that only reads sees one state of the vault.
#[derive(Default)]
pub(crate) struct StepCache {
    exclusion: OnceCell<Exclusion>,
    names: OnceCell<Names>,
    links: OnceCell<HashMap<Option<VaultPath>, Vec<FoundLink>>>,
}

impl StepCache {
    /// Returns the rules for files that lists and searches exclude.
    pub fn exclusion(&self, compute: impl FnOnce() -> Result<Exclusion>) -> Result<&Exclusion> {
        get_or_try_init(&self.exclusion, compute)
    }

    /// Returns the names that links can lead to.
    pub fn names(&self, compute: impl FnOnce() -> Result<Names>) -> Result<&Names> {
        get_or_try_init(&self.names, compute)
    }

    /// Returns all links, by the file that they lead to; `None` for broken ones.
    pub fn links(
        &self,
        compute: impl FnOnce() -> Result<HashMap<Option<VaultPath>, Vec<FoundLink>>>,
    ) -> Result<&HashMap<Option<VaultPath>, Vec<FoundLink>>> {
        get_or_try_init(&self.links, compute)
    }
}

fn get_or_try_init<T>(cell: &OnceCell<T>, compute: impl FnOnce() -> Result<T>) -> Result<&T> {
    match cell.get() {
        Some(known) => Ok(known),
        None => {
            let computed = compute()?;
            Ok(cell.get_or_init(|| computed))
        }
    }
}
