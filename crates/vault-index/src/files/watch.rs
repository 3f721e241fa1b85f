//! Watches a vault: signals soon after something changed, once for many changes, without saying what changed.
//!
//! The system's events get lost, merged and reordered, and each operating system has its own. So they only set a time
//! at which the caller compares the disk with the index, which finds every change, whatever events there were.
//! Therefore lost events (an overflow, a folder that was not watched yet) need nothing but another comparison.
//!
//! That time is `debounce` after the last event, but at most [`MAX_WAIT`] after the first, so that a program which
//! never stops writing cannot hold the index back. It is computed from the times of the events, without a periodic
//! timer.
//!
//! Failures and their handling:
//! - the system cannot watch that many folders, or any: one notice, and from then on a signal every [`POLL_EVERY`];
//!   each comparison costs one stat per file;
//! - the vault's folder is removed, moved or replaced (a disk is unplugged, a sync program starts over):
//!   [`Signal::Gone`], then [`Signal::Back`] with a new watch. The system need not report this, so the folder is
//!   checked every [`ROOT_EVERY`].

use std::ffi::OsStr;
use std::path::{Component, Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

use notify::event::{AccessKind, AccessMode, EventKind, MetadataKind, ModifyKind, RenameMode};
use notify::{Config, Event, RecommendedWatcher, RecursiveMode, Watcher as _};

use super::exclude::{APP_JSON, GIT_IGNORE, VAULT_IGNORE};
use super::stat::identity;
use super::vault_toml::VAULT_TOML;
use super::walk::real_root;
use crate::error::Result;

/// The number of events that may wait while the caller does not wait for them.
const MOST_WAITING: usize = 1024;
/// Changes are reported at most this long after the first of them.
const MAX_WAIT: Duration = Duration::from_secs(2);
/// The polling interval where the system does not report changes.
const POLL_EVERY: Duration = Duration::from_secs(2);
/// How often to check that the vault's folder is still the same.
const ROOT_EVERY: Duration = Duration::from_secs(1);
/// The longest delay of a cancelled wait.
const CANCEL_EVERY: Duration = Duration::from_millis(100);

/// The result of [`FileWatcher::wait`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Signal {
    /// Something may have changed: compare disk and index.
    Changed,
    /// Nothing happened within the timeout.
    TimedOut,
    /// The caller cancelled.
    Cancelled,
    /// The vault's folder does not exist. This is not the same as an empty vault: keep the index.
    Gone,
    /// The vault's folder exists again, or another one in its place: compare disk and index.
    Back,
}

/// A watch on a vault, from [`FileWatcher::new`] until it is dropped.
///
/// Changes between two calls of [`FileWatcher::wait`] are kept for the next call. So create the watcher, then compare,
/// then wait, and no change is missed.
pub struct FileWatcher {
    root: PathBuf,
    debounce: Duration,
    max_wait: Duration,
    /// Events from the system's thread.
    happened: Receiver<SystemEvent>,
    /// `None` where the system does not report changes.
    native: Option<RecommendedWatcher>,
    /// The watched folder; `None` while it does not exist.
    watched: Option<Option<(u64, u64)>>,
    next_root: Instant,
    next_poll: Option<Instant>,
    /// The first and the last change since the last signal.
    first_and_last: Option<(Instant, Instant)>,
    /// Whether something happened to the vault's folder itself.
    root_changed: bool,
    notice: Option<String>,
}

/// The relevant content of the system's events.
#[derive(Debug)]
enum SystemEvent {
    /// Something that the index depends on may have changed.
    Change(Instant),
    /// Something happened to the vault's folder itself.
    Root,
    /// The system stopped watching, for this reason.
    Failed(String),
}

impl FileWatcher {
    /// Starts to watch the folder `root` recursively. 200 ms is a good `debounce`, because editors save in several
    /// steps, and the index is still up to date before a user has switched windows.
    ///
    /// Costs about one stat per file. Only a missing folder is an error; if the system cannot watch it, there is a
    /// [notice](Self::notice).
    ///
    /// # Errors
    /// [`crate::error::ErrorKind::Vault`] when the folder does not exist.
    pub fn new(root: &Path, debounce: Duration) -> Result<Self> {
        let mut watcher = Self {
            root: real_root(root)?,
            debounce,
            max_wait: MAX_WAIT.max(debounce),
            happened: mpsc::channel().1,
            native: None,
            watched: None,
            next_root: Instant::now() + ROOT_EVERY,
            next_poll: None,
            first_and_last: None,
            root_changed: false,
            notice: None,
        };
        watcher.start();
        Ok(watcher)
    }

    /// Waits until there is a reason to compare, at most `timeout`; returns within 100 ms once `cancel` is set.
    pub fn wait(&mut self, timeout: Duration, cancel: &AtomicBool) -> Signal {
        let deadline = Instant::now().checked_add(timeout);
        loop {
            if cancel.load(Ordering::Relaxed) {
                return Signal::Cancelled;
            }
            while let Ok(happened) = self.happened.try_recv() {
                self.note(happened);
            }
            if let Some(signal) = self.check_root() {
                return signal;
            }
            let now = Instant::now();
            if self.watched.is_some() && self.next_poll.is_some_and(|at| at <= now) {
                self.next_poll = Some(now + POLL_EVERY);
                return Signal::Changed;
            }
            let due = self.first_and_last.map(|(first, last)| (last + self.debounce).min(first + self.max_wait));
            if due.is_some_and(|at| at <= now) {
                self.first_and_last = None;
                return Signal::Changed;
            }
            if deadline.is_some_and(|at| at <= now) {
                return Signal::TimedOut;
            }
            let next = [due, deadline, self.next_poll, Some(self.next_root), Some(now + CANCEL_EVERY)];
            let wait = next.into_iter().flatten().min().unwrap_or(now).saturating_duration_since(now);
            match self.happened.recv_timeout(wait) {
                Ok(happened) => self.note(happened),
                Err(RecvTimeoutError::Timeout) => {}
                // All senders are gone.
                Err(RecvTimeoutError::Disconnected) => std::thread::sleep(wait),
            }
        }
    }

    /// A sentence for the user, returned once: the system does not report changes. Call this after every wait.
    pub fn notice(&mut self) -> Option<String> {
        self.notice.take()
    }

    fn note(&mut self, happened: SystemEvent) {
        match happened {
            SystemEvent::Change(at) => {
                let first = self.first_and_last.map_or(at, |(first, _)| first);
                self.first_and_last = Some((first, at));
            }
            SystemEvent::Root => self.root_changed = true,
            SystemEvent::Failed(reason) => {
                self.poll_from_now_on(&reason);
                self.note(SystemEvent::Change(Instant::now()));
            }
        }
    }

    /// Checks, periodically and after an event about it, whether the vault's folder is still the one that is watched.
    fn check_root(&mut self) -> Option<Signal> {
        let reported = std::mem::take(&mut self.root_changed);
        let now = Instant::now();
        if !reported && now < self.next_root {
            return None;
        }
        self.next_root = now + ROOT_EVERY;
        match (self.watched, self.root_identity()) {
            (None, None) => None,
            (Some(_), None) => {
                (self.native, self.watched, self.first_and_last) = (None, None, None);
                Some(Signal::Gone)
            }
            // If an event reports it, the folder is watched again even if it seems to be the same, because a folder
            // that is created right after one was removed often gets the inode number of the old one.
            (Some(watched), Some(there)) if watched == there && !reported => None,
            (_, Some(_)) => {
                self.start();
                self.watched.map(|_| Signal::Back)
            }
        }
    }

    fn root_identity(&self) -> Option<Option<(u64, u64)>> {
        let metadata = std::fs::metadata(&self.root).ok()?;
        metadata.is_dir().then(|| identity(&metadata))
    }

    /// Watches the folder that exists now.
    fn start(&mut self) {
        (self.native, self.next_poll) = (None, None);
        self.watched = self.root_identity();
        if self.watched.is_none() {
            return;
        }
        let (send, happened) = mpsc::sync_channel(MOST_WAITING);
        self.happened = happened;
        let root = self.root.clone();
        let handler = move |event| {
            // If sending fails, the watcher is gone. If many changes wait, one more adds no information.
            let _ = match what_happened(&root, event) {
                Some(change @ SystemEvent::Change(_)) => send.try_send(change).is_ok(),
                Some(happened) => send.send(happened).is_ok(),
                None => true,
            };
        };
        let config = Config::default().with_follow_symlinks(false);
        let opened = RecommendedWatcher::new(handler, config).and_then(|mut native| {
            native.watch(&self.root, RecursiveMode::Recursive)?;
            Ok(native)
        });
        match opened {
            Ok(native) => self.native = Some(native),
            Err(_) if self.root_identity().is_none() => self.watched = None,
            Err(error) => self.poll_from_now_on(&error.to_string()),
        }
    }

    fn poll_from_now_on(&mut self, reason: &str) {
        self.native = None;
        self.next_poll = Some(Instant::now() + POLL_EVERY);
        let every = POLL_EVERY.as_secs();
        let mut notice =
            format!("the system does not report changes ({reason}); checking every {every} seconds instead");
        if cfg!(target_os = "linux") {
            notice.push_str("; raising fs.inotify.max_user_watches and fs.inotify.max_user_instances may help");
        }
        self.notice = Some(notice);
    }
}

/// Classifies an event. It runs on the system's thread, so it must be fast, because a slow one makes the queue
/// overflow.
fn what_happened(root: &Path, event: notify::Result<Event>) -> Option<SystemEvent> {
    match event {
        Ok(event) if !event.need_rescan() => match scope(root, &event) {
            Scope::Nothing => None,
            Scope::Inside => Some(SystemEvent::Change(Instant::now())),
            Scope::Root => Some(SystemEvent::Root),
        },
        Err(error) if matches!(error.kind, notify::ErrorKind::MaxFilesWatch) => {
            Some(SystemEvent::Failed(error.to_string()))
        }
        Ok(_) | Err(_) => {
            log::warn!("{}: the system lost events", root.display());
            Some(SystemEvent::Change(Instant::now()))
        }
    }
}

/// The part of the vault that an event is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Scope {
    /// Nothing that the index depends on.
    Nothing,
    Inside,
    Root,
}

/// Filters out events that cannot change the walk's list: our own reading, and changes in hidden folders, except for
/// the files of exclusion rules.
fn scope(root: &Path, event: &Event) -> Scope {
    match event.kind {
        EventKind::Access(AccessKind::Close(AccessMode::Write)) => {}
        EventKind::Access(_) | EventKind::Modify(ModifyKind::Metadata(MetadataKind::AccessTime)) => {
            return Scope::Nothing;
        }
        _ => {}
    }
    let went = matches!(
        event.kind,
        EventKind::Remove(_) | EventKind::Modify(ModifyKind::Name(RenameMode::From | RenameMode::Any))
    );
    let mut scope = Scope::Nothing;
    for path in &event.paths {
        match path.strip_prefix(root) {
            Ok(inside) if inside.as_os_str().is_empty() => {
                if went {
                    return Scope::Root;
                }
                // Of the root's own times and permissions, only the permissions affect the walk, and changes inside it
                // have events of their own.
                if !matches!(event.kind, EventKind::Access(_)) {
                    scope = Scope::Inside;
                }
            }
            Ok(inside) if !is_hidden(inside) => scope = Scope::Inside,
            Ok(_) => {}
            // Reported under another name of the same folder: one comparison too many is better than a missed change.
            Err(_) => scope = Scope::Inside,
        }
    }
    scope
}

fn is_hidden(inside: &Path) -> bool {
    // The folder of `app.json` may be moved into or out of the vault with the file in it.
    if inside == Path::new(APP_JSON) || Some(inside) == Path::new(APP_JSON).parent() || inside == Path::new(VAULT_TOML)
    {
        return false;
    }
    let hidden = |part: &OsStr| part.as_encoded_bytes().starts_with(b".");
    let mut parts = inside.components().rev().filter_map(|part| match part {
        Component::Normal(part) => Some(part),
        _ => None,
    });
    let rules = |name: &OsStr| name == OsStr::new(GIT_IGNORE) || name == OsStr::new(VAULT_IGNORE);
    parts.next().is_some_and(|name| hidden(name) && !rules(name)) || parts.any(hidden)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use notify::event::{CreateKind, DataChange, RemoveKind};

    use super::*;

    const DEBOUNCE: Duration = Duration::from_millis(100);
    /// Far longer than anything in these tests takes.
    const LONG: Duration = Duration::from_secs(60);
    static NEVER: AtomicBool = AtomicBool::new(false);

    fn watched() -> (tempfile::TempDir, PathBuf, FileWatcher) {
        let parent = tempfile::tempdir().unwrap();
        let root = parent.path().join("vault");
        fs::create_dir_all(root.join("folder")).unwrap();
        let mut watcher = FileWatcher::new(&root, DEBOUNCE).unwrap();
        assert_eq!(watcher.notice(), None);
        (parent, root, watcher)
    }

    /// Waits for one of several signals, and ignores others.
    fn wait_for(watcher: &mut FileWatcher, wanted: Signal) {
        for _ in 0..1000 {
            let signal = watcher.wait(LONG, &NEVER);
            if signal == wanted {
                return;
            }
            assert!(!matches!(signal, Signal::TimedOut | Signal::Cancelled), "{signal:?} instead of {wanted:?}");
        }
        panic!("no {wanted:?} among a thousand signals");
    }

    #[test]
    fn an_edit_a_new_folder_a_rename_and_a_removal_are_noticed() {
        let (_parent, root, mut watcher) = watched();
        let steps: [&dyn Fn() -> std::io::Result<()>; 5] = [
            &|| fs::write(root.join("folder/a.md"), "one"),
            &|| fs::create_dir(root.join("new")),
            &|| fs::write(root.join("new/b.md"), "two"),
            &|| fs::rename(root.join("new"), root.join("newer")),
            &|| fs::remove_file(root.join("newer/b.md")),
        ];
        for step in steps {
            step().unwrap();
            assert_eq!(watcher.wait(LONG, &NEVER), Signal::Changed);
            // On a busy machine the events of one step may come in two parts.
            while watcher.wait(2 * DEBOUNCE, &NEVER) != Signal::TimedOut {}
        }
    }

    #[test]
    fn a_burst_is_one_signal_and_an_endless_one_cannot_hold_it_back() {
        let (_parent, root, mut watcher) = watched();
        watcher.debounce = LONG;
        watcher.max_wait = Duration::from_millis(300);
        let stop = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                for n in 0u64.. {
                    if stop.load(Ordering::Relaxed) {
                        break;
                    }
                    fs::write(root.join("a.md"), n.to_string()).unwrap();
                }
            });
            let signal = watcher.wait(LONG / 2, &NEVER);
            stop.store(true, Ordering::Relaxed);
            assert_eq!(signal, Signal::Changed);
        });
    }

    #[test]
    fn a_wait_ends_by_time_and_by_cancelling() {
        let (_parent, _root, mut watcher) = watched();
        assert_eq!(watcher.wait(Duration::from_millis(10), &NEVER), Signal::TimedOut);
        assert_eq!(watcher.wait(Duration::ZERO, &NEVER), Signal::TimedOut);
        let cancel = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let waiting = scope.spawn(|| watcher.wait(LONG, &cancel));
            cancel.store(true, Ordering::Relaxed);
            assert_eq!(waiting.join().unwrap(), Signal::Cancelled);
        });
    }

    #[test]
    fn the_vault_may_go_and_come_back() {
        let (parent, root, mut watcher) = watched();
        fs::remove_dir_all(&root).unwrap();
        wait_for(&mut watcher, Signal::Gone);
        fs::create_dir(&root).unwrap();
        wait_for(&mut watcher, Signal::Back);
        fs::write(root.join("a.md"), "one").unwrap();
        wait_for(&mut watcher, Signal::Changed);

        let aside = parent.path().join("aside");
        fs::rename(&root, &aside).unwrap();
        wait_for(&mut watcher, Signal::Gone);
        fs::rename(&aside, &root).unwrap();
        wait_for(&mut watcher, Signal::Back);
        fs::write(root.join("a.md"), "two").unwrap();
        wait_for(&mut watcher, Signal::Changed);
    }

    #[test]
    fn another_folder_in_its_place_is_watched() {
        let (parent, root, mut watcher) = watched();
        let aside = parent.path().join("aside");
        fs::create_dir(&aside).unwrap();
        fs::rename(&root, parent.path().join("old")).unwrap();
        fs::rename(&aside, &root).unwrap();
        wait_for(&mut watcher, Signal::Back);
        fs::write(root.join("a.md"), "one").unwrap();
        wait_for(&mut watcher, Signal::Changed);
    }

    #[test]
    fn no_folder_is_an_error() {
        let parent = tempfile::tempdir().unwrap();
        let error = FileWatcher::new(&parent.path().join("none"), DEBOUNCE).err().unwrap();
        assert_eq!(error.kind(), crate::error::ErrorKind::Vault);
    }

    #[test]
    fn where_the_system_gives_up_we_look_now_and_then() {
        let (_parent, root, mut watcher) = watched();
        let failed = notify::Error::new(notify::ErrorKind::MaxFilesWatch);
        watcher.note(what_happened(&root, Err(failed)).unwrap());
        assert_eq!(watcher.wait(LONG, &NEVER), Signal::Changed);
        assert!(watcher.notice().unwrap().contains("checking every 2 seconds"));
        assert_eq!(watcher.wait(LONG, &NEVER), Signal::Changed);
        assert_eq!(watcher.notice(), None);
        fs::remove_dir_all(&root).unwrap();
        wait_for(&mut watcher, Signal::Gone);
    }

    #[test]
    fn lost_events_ask_for_a_look() {
        let (_parent, root, mut watcher) = watched();
        let lost = Event::new(EventKind::Other).set_flag(notify::event::Flag::Rescan);
        watcher.note(what_happened(&root, Ok(lost)).unwrap());
        assert_eq!(watcher.wait(LONG, &NEVER), Signal::Changed);
    }

    #[test]
    fn which_events_matter() {
        use Scope::{Inside, Nothing, Root};
        let write = EventKind::Modify(ModifyKind::Data(DataChange::Any));
        let read = EventKind::Access(AccessKind::Open(notify::event::AccessMode::Any));
        let close = EventKind::Access(AccessKind::Close(AccessMode::Write));
        let remove = EventKind::Remove(RemoveKind::Folder);
        let create = EventKind::Create(CreateKind::Any);
        for (kind, path, expected) in [
            (write, "/v/a.md", Inside),
            (close, "/v/a b/ü.md", Inside),
            (read, "/v/a.md", Nothing),
            (create, "/v/folder", Inside),
            (write, "/v/.git/index", Nothing),
            (write, "/v/a/.trash/x.md", Nothing),
            (write, "/v/.obsidian/workspace.json", Nothing),
            (write, "/v/.obsidian/app.json", Inside),
            (write, "/v/.obsidian/plugins/app.json", Nothing),
            // The folder and the file in it are created before the folder could be watched; or it is moved here or
            // away.
            (create, "/v/.obsidian", Inside),
            (remove, "/v/.obsidian", Inside),
            (EventKind::Modify(ModifyKind::Name(RenameMode::To)), "/v/.obsidian", Inside),
            (EventKind::Modify(ModifyKind::Name(RenameMode::From)), "/v/.obsidian", Inside),
            (read, "/v/.obsidian", Nothing),
            (create, "/v/a/.obsidian", Nothing),
            (create, "/v/.git", Nothing),
            (write, "/v/.hidden.md", Nothing),
            (write, "/v/.gitignore", Inside),
            (write, "/v/a/.gitignore", Inside),
            (write, "/v/.git/.gitignore", Nothing),
            (create, "/v/a/.vaultignore", Inside),
            (write, "/v/.vault.toml", Inside),
            (write, "/v/a/.vault.toml", Nothing),
            (remove, "/v", Root),
            (EventKind::Modify(ModifyKind::Name(RenameMode::From)), "/v", Root),
            (EventKind::Modify(ModifyKind::Metadata(MetadataKind::Any)), "/v", Inside),
            (read, "/v", Nothing),
        ] {
            let event = Event::new(kind).add_path(path.into());
            assert_eq!(scope(Path::new("/v"), &event), expected, "{kind:?} {path}");
        }
        let both = Event::new(EventKind::Modify(ModifyKind::Name(RenameMode::Both)));
        let into_trash = both.add_path("/v/a.md".into()).add_path("/v/.trash/a.md".into());
        assert_eq!(scope(Path::new("/v"), &into_trash), Inside);
    }
}
