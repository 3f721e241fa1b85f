//! What a call has at hand: the overlay it works on, the index, the editor, the clock, and when to stop.

use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use jiff::Zoned;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::change::{Deletion, Overlay, Vault};
use crate::error::{Error, ErrorKind, Result};
use crate::host::{Editor, Host, Leaf};
use crate::policy::{Rules, Trash};
use crate::sandbox::{EntryKind, SafePath, View, missing};
use crate::tool::schema::PathArg;
use crate::tool::step_cache::StepCache;

/// What a call has at hand.
///
/// Reads go through `overlay`, which shows the vault with the changes that are proposed and not yet made.
pub struct Context<'a, 'v> {
    /// The vault as it is on disk, and its index.
    pub vault: &'v Vault,
    /// The vault as it would be; writes go here.
    pub overlay: &'a mut Overlay<'v>,
    /// Selection, active file and cursor, as they would be.
    pub editor: &'a mut Editor,
    /// Who runs commands and shows files.
    pub host: &'a mut dyn Host,
    /// Which paths may be read.
    pub rules: &'a Rules,
    /// The moment that counts as now, in the local time zone.
    pub now: &'a Zoned,
    /// What only the host can do, in order; it is done when the call is applied.
    pub effects: &'a mut Vec<Effect>,
    /// When to stop.
    pub stop: Stop<'a>,
    /// What calls of the same step computed.
    pub(crate) cache: &'a StepCache,
}

/// What one or more calls would do: changes of the vault and of the editor, and effects of the host.
pub(crate) struct Draft<'v> {
    pub vault: &'v Vault,
    pub overlay: Overlay<'v>,
    pub editor: Editor,
    pub effects: Vec<Effect>,
    pub now: Zoned,
    pub cache: StepCache,
}

/// What a host does beside changes of files. Nobody can take it back.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase", tag = "effect")]
pub enum Effect {
    /// Shows a file.
    Open {
        /// The file.
        path: String,
        /// Whether in a tab of its own.
        new_leaf: bool,
    },
    /// Runs a command.
    Command {
        /// Its id.
        id: String,
    },
}

impl fmt::Display for Effect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Open { path, .. } => write!(f, "shows {path}"),
            Self::Command { id } => write!(f, "runs the command {id}"),
        }
    }
}

impl Effect {
    /// Does it.
    ///
    /// # Errors
    /// What the host says.
    pub(crate) fn run(&self, host: &mut dyn Host) -> Result<()> {
        match self {
            Self::Open { path, new_leaf } => {
                let leaf = if *new_leaf { Leaf::New } else { Leaf::Current };
                host.open(&SafePath::new(path)?, leaf).map(drop)
            }
            Self::Command { id } => host.run_command(id),
        }
    }

    /// Says in the output of its call that the host could not do it; the call as such was made.
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

/// When a call ends early. The default: never.
#[derive(Debug, Clone, Copy, Default)]
pub struct Stop<'a> {
    /// Set by another thread.
    pub cancel: Option<&'a AtomicBool>,
    /// The end of the time there is.
    pub deadline: Option<Instant>,
}

impl Stop<'_> {
    /// Asked now and then by whatever takes long.
    ///
    /// # Errors
    /// [`ErrorKind::Cancelled`], [`ErrorKind::TimedOut`].
    pub fn check(&self) -> Result<()> {
        if self.cancel.is_some_and(|cancel| cancel.load(Ordering::Relaxed)) {
            return Err(Error::new(ErrorKind::Cancelled, "cancelled"));
        }
        if self.deadline.is_some_and(|deadline| Instant::now() >= deadline) {
            return Err(
                Error::new(ErrorKind::TimedOut, "the time there was is over").remedy("allow more with timeoutMs")
            );
        }
        Ok(())
    }

    /// Waits, but not beyond the end.
    ///
    /// # Errors
    /// As [`Self::check`].
    pub(crate) fn wait(&self, time: Duration) -> Result<()> {
        let until = Instant::now() + time;
        while Instant::now() < until {
            self.check()?;
            // Short naps, so that a cancelled plan does not sleep on.
            std::thread::sleep(Duration::from_millis(20).min(until.saturating_duration_since(Instant::now())));
        }
        self.check()
    }
}

impl Context<'_, '_> {
    /// An argument as a path inside the vault that may be touched.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidPath`]; [`ErrorKind::Denied`].
    pub fn path(&self, path: &PathArg) -> Result<SafePath> {
        let safe = SafePath::new(path.as_str())?;
        match self.permits(&safe) {
            true => Ok(safe),
            false => Err(Error::new(ErrorKind::Denied, "this path is denied by your settings").at(safe)),
        }
    }

    /// Whether a path that was found elsewhere may be shown: it, and the file that it stands for if it is a link.
    pub fn permits(&self, path: &SafePath) -> bool {
        if self.rules.permits_all_paths() {
            return true;
        }
        let permits = |path: &SafePath| self.rules.permits_path(path.as_str());
        // A link that leads nowhere shows nothing; whoever opens it is told so.
        permits(path) && self.overlay.real(path).map_or(true, |real| permits(&real))
    }

    /// Where what is deleted goes: where the user's settings say, but not out of a vault that keeps its own trash. What
    /// else the vault's settings say of it does not count, least of all that there be none.
    pub fn deletion(&self) -> Deletion {
        let keeps_its_own = || {
            let settings = self.vault.sandbox().obsidian_setting("app.json").ok().flatten().unwrap_or_default();
            let settings: serde_json::Value = serde_json::from_str(&settings).unwrap_or_default();
            settings["trashOption"] == "local"
        };
        match self.rules.trash() {
            Trash::System if !keeps_its_own() => Deletion::SystemTrash,
            Trash::System | Trash::Vault => Deletion::Trash,
        }
    }

    /// Whether all that lies below a path may be touched.
    ///
    /// # Errors
    /// [`ErrorKind::Denied`], which does not say what lies there.
    pub fn all_permitted(&self, path: &SafePath) -> Result<()> {
        let is_folder = self.overlay.stat(path)?.is_some_and(|stat| stat.kind == EntryKind::Folder && !stat.symlink);
        if !is_folder || self.rules.permits_all_paths() {
            return Ok(());
        }
        match self.overlay.walk(Some(path))?.iter().all(|entry| self.permits(&entry.path)) {
            true => Ok(()),
            false => Err(Error::new(ErrorKind::Denied, "what is in it is denied by your settings, in part").at(path)),
        }
    }

    /// The error of a path at which nothing is, with the paths that may have been meant and may be shown.
    pub fn missing(&self, path: &SafePath) -> Error {
        missing(path, &*self.overlay, &|path| self.permits(path))
    }
}
