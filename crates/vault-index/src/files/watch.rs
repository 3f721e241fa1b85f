//! Watching a vault: says "look again", soon after something changed and once for many changes; never what changed.
//!
//! Events of the system are hints only: they get lost, merged and reordered, and each system has its
//! own. So all they do here is to set a time at which the caller compares disk and index again.
//!
//! That time is `debounce` after the last event, but at most [`MAX_WAIT`] after the first, so that a
//! program which never stops writing cannot hold the index back. It is computed from the events'
//! times, without a ticking clock, so that nothing is added to it.
//!
//! What may go wrong, and what happens then:
//! - events overflow: a hint with `full` set;
//! - a new folder is not watched yet when files are written to it: what was written before the watch is in place is
//!   found by the look that follows; since of `.obsidian` nothing but `app.json` would ask for another one, it is
//!   looked at a second time, [`AGAIN_AFTER`] later;
//! - the system cannot watch that many folders, or at all: one [`Notice`], and from then on a hint
//!   every [`POLL_EVERY`]; the comparison that follows costs one stat a file;
//! - the vault's folder goes away, is moved or replaced (a disk that is unplugged, a sync program that
//!   starts afresh): [`Hint::Gone`], then [`Hint::Back`] with a new watch. The system need not
//!   report this, so the folder is looked at every [`ROOT_EVERY`].

use std::ffi::OsStr;
use std::fmt;
use std::path::{Component, Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use notify::event::{AccessKind, AccessMode, EventKind, MetadataKind, ModifyKind, RenameMode};
use notify::{Config, Event, RecommendedWatcher, RecursiveMode, Watcher as _};

use super::exclude::{APP_JSON, GIT_IGNORE, VAULT_IGNORE, VAULT_TOML};
use super::stamp::identity;
use super::walk::real_root;
use crate::error::Result;

/// Changes are reported at the latest this long after the first of them.
const MAX_WAIT: Duration = Duration::from_secs(2);
/// How long after `.obsidian` has come the vault is looked at once more: far longer than it takes to be watched.
const AGAIN_AFTER: Duration = Duration::from_secs(2);
/// How often to look where the system cannot tell.
const POLL_EVERY: Duration = Duration::from_secs(2);
/// How often to see whether the vault's folder is still the same.
const ROOT_EVERY: Duration = Duration::from_secs(1);
/// How long a cancelled wait may still take.
const CANCEL_EVERY: Duration = Duration::from_millis(100);

/// What [`Watcher::wait`] came back with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Hint {
    /// Something may have changed: compare disk and index.
    LookAgain {
        /// Events were lost, so this comparison should take nothing for granted.
        full: bool,
    },
    /// Nothing happened for as long as was asked.
    TimedOut,
    /// The caller cancelled.
    Cancelled,
    /// The vault's folder is not there. Not the same as an empty vault: keep the index.
    Gone,
    /// The vault's folder is there again, or another one in its place: compare disk and index.
    Back,
}

/// Something people should know about a watch. `Display` gives the sentence.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Notice {
    /// The system does not report changes, so we look every so often.
    Polling {
        /// What the system said.
        reason: String,
        /// How often.
        every: Duration,
    },
}

impl fmt::Display for Notice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self::Polling { reason, every } = self;
        let every = every.as_secs_f32();
        write!(f, "changes are not reported by the system ({reason}); looking every {every} seconds instead")?;
        if cfg!(target_os = "linux") {
            f.write_str("; raising fs.inotify.max_user_watches and fs.inotify.max_user_instances may help")?;
        }
        Ok(())
    }
}

/// A watch on a vault, from [`Watcher::new`] until it is dropped.
///
/// What happens between two calls of [`Watcher::wait`] is kept for the next: begin to watch, then
/// compare, then wait, and nothing is missed.
pub struct Watcher {
    root: PathBuf,
    debounce: Duration,
    max_wait: Duration,
    bell: Arc<Bell>,
    eye: Mutex<Eye>,
}

/// What the system's thread and the waiting one share.
#[derive(Default)]
struct Bell {
    seen: Mutex<Seen>,
    rung: Condvar,
}

/// What happened since the last hint.
#[derive(Default)]
struct Seen {
    first_and_last: Option<(Instant, Instant)>,
    /// Events were lost.
    lost: bool,
    /// When to look again though nothing may happen until then.
    again: Option<Instant>,
    /// Something happened to the vault's folder itself.
    root: bool,
    /// The system has given up, and why.
    blind: Option<String>,
}

/// How changes are noticed.
struct Eye {
    native: Option<RecommendedWatcher>,
    /// Which folder is watched; `None` while there is none.
    root: Option<Option<(u64, u64)>>,
    next_root: Instant,
    next_poll: Option<Instant>,
    notices: Vec<Notice>,
}

impl Watcher {
    /// Begins to watch the folder `root` with all in it. 200 ms is a good `debounce`: editors save in
    /// several steps, and the answer is still there before one has switched windows.
    ///
    /// Costs about a stat a file. Only a missing folder is an error; where the system cannot watch it,
    /// there is a [`Notice`].
    ///
    /// # Errors
    /// [`crate::error::ErrorKind::Vault`] when there is no such folder.
    pub fn new(root: &Path, debounce: Duration) -> Result<Self> {
        let root = real_root(root)?;
        let now = Instant::now();
        let eye = Eye { native: None, root: None, next_root: now + ROOT_EVERY, next_poll: None, notices: Vec::new() };
        let max_wait = MAX_WAIT.max(debounce);
        let watcher = Self { root, debounce, max_wait, bell: Arc::default(), eye: Mutex::new(eye) };
        watcher.open_eye(&mut lock(&watcher.eye));
        Ok(watcher)
    }

    /// Waits until there is a reason to look, at most `timeout`; returns within 100 ms once `cancel`
    /// is set. One thread at a time waits, others queue.
    pub fn wait(&self, timeout: Duration, cancel: &AtomicBool) -> Hint {
        let mut eye = lock(&self.eye);
        let deadline = Instant::now().checked_add(timeout);
        loop {
            if cancel.load(Ordering::Relaxed) {
                return Hint::Cancelled;
            }
            if let Some(hint) = self.look_at_root(&mut eye) {
                return hint;
            }
            let blind = lock(&self.bell.seen).blind.take();
            if let Some(reason) = blind {
                self.poll_from_now_on(&mut eye, reason);
                lock(&self.bell.seen).note(true);
                continue;
            }
            let now = Instant::now();
            if eye.root.is_some() && eye.next_poll.is_some_and(|at| at <= now) {
                eye.next_poll = Some(now + POLL_EVERY);
                return Hint::LookAgain { full: false };
            }
            let mut seen = lock(&self.bell.seen);
            let due = seen.due(self.debounce, self.max_wait);
            if due.is_some_and(|at| at <= now) {
                seen.first_and_last = None;
                return Hint::LookAgain { full: std::mem::take(&mut seen.lost) };
            }
            if seen.again.is_some_and(|at| at <= now) {
                seen.again = None;
                return Hint::LookAgain { full: false };
            }
            if deadline.is_some_and(|at| at <= now) {
                return Hint::TimedOut;
            }
            if seen.root || seen.blind.is_some() {
                continue;
            }
            let next = [due, deadline, seen.again, eye.next_poll, Some(eye.next_root), Some(now + CANCEL_EVERY)];
            let next = next.into_iter().flatten().min().unwrap_or(now);
            let _ = self.bell.rung.wait_timeout(seen, next.saturating_duration_since(now));
        }
    }

    /// What people should know and has not been fetched yet. Ask after every wait.
    pub fn notices(&self) -> Vec<Notice> {
        std::mem::take(&mut lock(&self.eye).notices)
    }

    /// Sees whether the vault's folder is the one that is watched, now and then and when told to.
    fn look_at_root(&self, eye: &mut Eye) -> Option<Hint> {
        let told = std::mem::take(&mut lock(&self.bell.seen).root);
        let now = Instant::now();
        if !told && now < eye.next_root {
            return None;
        }
        eye.next_root = now + ROOT_EVERY;
        let there = self.root_identity();
        match (eye.root, there) {
            (None, None) => None,
            (Some(_), None) => {
                eye.native = None;
                eye.root = None;
                lock(&self.bell.seen).first_and_last = None;
                Some(Hint::Gone)
            }
            // Told so, it is watched anew even if it seems to be the same: a folder that is made
            // right after one was removed often gets the number of the old one.
            (Some(watched), Some(there)) if watched == there && !told => None,
            (_, Some(_)) => {
                self.open_eye(eye);
                eye.root.map(|_| Hint::Back)
            }
        }
    }

    fn root_identity(&self) -> Option<Option<(u64, u64)>> {
        let metadata = std::fs::metadata(&self.root).ok()?;
        metadata.is_dir().then(|| identity(&metadata))
    }

    /// Watches the folder that is there now. The lock on `seen` must not be held: the system's thread
    /// takes it.
    fn open_eye(&self, eye: &mut Eye) {
        eye.native = None;
        eye.next_poll = None;
        eye.root = self.root_identity();
        if eye.root.is_none() {
            return;
        }
        let (bell, root) = (self.bell.clone(), self.root.clone());
        let handler = move |event: notify::Result<Event>| bell.hear(&root, event);
        let config = Config::default().with_follow_symlinks(false);
        let opened = RecommendedWatcher::new(handler, config).and_then(|mut native| {
            native.watch(&self.root, RecursiveMode::Recursive)?;
            Ok(native)
        });
        match opened {
            Ok(native) => eye.native = Some(native),
            Err(_) if self.root_identity().is_none() => eye.root = None,
            Err(error) => self.poll_from_now_on(eye, error.to_string()),
        }
    }

    fn poll_from_now_on(&self, eye: &mut Eye, reason: String) {
        eye.native = None;
        eye.next_poll = Some(Instant::now() + POLL_EVERY);
        eye.notices.push(Notice::Polling { reason, every: POLL_EVERY });
    }
}

impl Bell {
    /// Takes in one event, on the system's thread: quick, since a slow one makes the queue overflow.
    fn hear(&self, root: &Path, event: notify::Result<Event>) {
        let mut seen = lock(&self.seen);
        match event {
            Ok(event) if event.need_rescan() => seen.note(true),
            Ok(event) => match matters(root, &event) {
                Matter::Nothing => return,
                Matter::Rules => {
                    seen.again = Some(Instant::now() + AGAIN_AFTER);
                    seen.note(false);
                }
                Matter::Inside => {
                    let waiting_already = seen.first_and_last.is_some();
                    seen.note(false);
                    // Whoever waits knows when to look at the clock again.
                    if waiting_already {
                        return;
                    }
                }
                Matter::Root => seen.root = true,
            },
            Err(error) if matches!(error.kind, notify::ErrorKind::MaxFilesWatch) => {
                seen.blind = Some(error.to_string());
            }
            Err(_) => seen.note(true),
        }
        self.rung.notify_all();
    }
}

impl Seen {
    fn note(&mut self, lost: bool) {
        let now = Instant::now();
        let first = self.first_and_last.map_or(now, |(first, _)| first);
        self.first_and_last = Some((first, now));
        self.lost |= lost;
    }

    fn due(&self, debounce: Duration, max_wait: Duration) -> Option<Instant> {
        self.first_and_last.map(|(first, last)| (last + debounce).min(first + max_wait))
    }
}

/// What an event is to us.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Matter {
    Nothing,
    Inside,
    /// The folder of the file that says what to leave out has come or gone.
    Rules,
    Root,
}

/// Sorts out what cannot change the walk's list: our own reading, and what happens in hidden folders,
/// but for the files that say what to leave out.
fn matters(root: &Path, event: &Event) -> Matter {
    match event.kind {
        EventKind::Access(AccessKind::Close(AccessMode::Write)) => {}
        EventKind::Access(_) | EventKind::Modify(ModifyKind::Metadata(MetadataKind::AccessTime)) => {
            return Matter::Nothing;
        }
        _ => {}
    }
    let went = matches!(
        event.kind,
        EventKind::Remove(_) | EventKind::Modify(ModifyKind::Name(RenameMode::From | RenameMode::Any))
    );
    let came_or_went =
        matches!(event.kind, EventKind::Create(_) | EventKind::Remove(_) | EventKind::Modify(ModifyKind::Name(_)));
    let mut matter = Matter::Nothing;
    for path in &event.paths {
        match path.strip_prefix(root) {
            Ok(inside) if inside.as_os_str().is_empty() => {
                if went {
                    return Matter::Root;
                }
                // Of the root's own times and permissions the walk sees only the latter, and what
                // changes in it has events of its own.
                if !matches!(event.kind, EventKind::Access(_)) {
                    matter = Matter::Inside;
                }
            }
            Ok(inside) if came_or_went && Some(inside) == Path::new(APP_JSON).parent() => return Matter::Rules,
            Ok(inside) if !is_hidden(inside) => matter = Matter::Inside,
            Ok(_) => {}
            // Reported under another name of the same folder: better once too often.
            Err(_) => matter = Matter::Inside,
        }
    }
    matter
}

fn is_hidden(inside: &Path) -> bool {
    if inside == Path::new(APP_JSON) || inside == Path::new(VAULT_TOML) {
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

/// A lock that outlives a panic elsewhere: what it guards is valid after every statement.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(|e| e.into_inner())
}

#[cfg(test)]
mod tests {
    use std::fs;

    use notify::event::{CreateKind, DataChange, RemoveKind};

    use super::*;

    const DEBOUNCE: Duration = Duration::from_millis(100);
    /// Far longer than anything here takes.
    const LONG: Duration = Duration::from_secs(60);
    static NEVER: AtomicBool = AtomicBool::new(false);

    fn watched() -> (tempfile::TempDir, PathBuf, Watcher) {
        let parent = tempfile::tempdir().unwrap();
        let root = parent.path().join("vault");
        fs::create_dir_all(root.join("folder")).unwrap();
        let watcher = Watcher::new(&root, DEBOUNCE).unwrap();
        assert_eq!(watcher.notices(), []);
        (parent, root, watcher)
    }

    /// Waits for one of several hints, letting others pass.
    fn wait_for(watcher: &Watcher, wanted: Hint) {
        for _ in 0..1000 {
            let hint = watcher.wait(LONG, &NEVER);
            if hint == wanted {
                return;
            }
            assert!(!matches!(hint, Hint::TimedOut | Hint::Cancelled), "{hint:?} instead of {wanted:?}");
        }
        panic!("no {wanted:?} among a thousand hints");
    }

    const LOOK: Hint = Hint::LookAgain { full: false };

    #[test]
    fn an_edit_a_new_folder_a_rename_and_a_removal_are_noticed() {
        let (_parent, root, watcher) = watched();
        let steps: [&dyn Fn() -> std::io::Result<()>; 5] = [
            &|| fs::write(root.join("folder/a.md"), "one"),
            &|| fs::create_dir(root.join("new")),
            &|| fs::write(root.join("new/b.md"), "two"),
            &|| fs::rename(root.join("new"), root.join("newer")),
            &|| fs::remove_file(root.join("newer/b.md")),
        ];
        for step in steps {
            step().unwrap();
            assert_eq!(watcher.wait(LONG, &NEVER), LOOK);
            // On a busy machine what belongs to one step may come in two parts.
            while watcher.wait(2 * DEBOUNCE, &NEVER) != Hint::TimedOut {}
        }
    }

    #[test]
    fn a_burst_is_one_hint_and_an_endless_one_cannot_hold_it_back() {
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
            let hint = watcher.wait(LONG / 2, &NEVER);
            stop.store(true, Ordering::Relaxed);
            assert!(matches!(hint, Hint::LookAgain { .. }), "{hint:?}");
        });
    }

    #[test]
    fn a_wait_ends_by_time_and_by_cancelling() {
        let (_parent, _root, watcher) = watched();
        assert_eq!(watcher.wait(Duration::from_millis(10), &NEVER), Hint::TimedOut);
        assert_eq!(watcher.wait(Duration::ZERO, &NEVER), Hint::TimedOut);
        let cancel = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let waiting = scope.spawn(|| watcher.wait(LONG, &cancel));
            cancel.store(true, Ordering::Relaxed);
            assert_eq!(waiting.join().unwrap(), Hint::Cancelled);
        });
    }

    #[test]
    fn the_vault_may_go_and_come_back() {
        let (parent, root, watcher) = watched();
        fs::remove_dir_all(&root).unwrap();
        wait_for(&watcher, Hint::Gone);
        fs::create_dir(&root).unwrap();
        wait_for(&watcher, Hint::Back);
        fs::write(root.join("a.md"), "one").unwrap();
        wait_for(&watcher, LOOK);

        let aside = parent.path().join("aside");
        fs::rename(&root, &aside).unwrap();
        wait_for(&watcher, Hint::Gone);
        fs::rename(&aside, &root).unwrap();
        wait_for(&watcher, Hint::Back);
        fs::write(root.join("a.md"), "two").unwrap();
        wait_for(&watcher, LOOK);
    }

    #[test]
    fn another_folder_in_its_place_is_watched() {
        let (parent, root, watcher) = watched();
        let aside = parent.path().join("aside");
        fs::create_dir(&aside).unwrap();
        fs::rename(&root, parent.path().join("old")).unwrap();
        fs::rename(&aside, &root).unwrap();
        wait_for(&watcher, Hint::Back);
        fs::write(root.join("a.md"), "one").unwrap();
        wait_for(&watcher, LOOK);
    }

    #[test]
    fn no_folder_is_an_error() {
        let parent = tempfile::tempdir().unwrap();
        let error = Watcher::new(&parent.path().join("none"), DEBOUNCE).err().unwrap();
        assert_eq!(error.kind(), crate::error::ErrorKind::Vault);
    }

    #[test]
    fn where_the_system_gives_up_we_look_now_and_then() {
        let (_parent, root, watcher) = watched();
        watcher.bell.hear(&root, Err(notify::Error::new(notify::ErrorKind::MaxFilesWatch)));
        assert_eq!(watcher.wait(LONG, &NEVER), Hint::LookAgain { full: true });
        let notices = watcher.notices();
        assert!(matches!(&notices[..], [Notice::Polling { .. }]), "{notices:?}");
        assert!(notices[0].to_string().contains("looking every 2 seconds"));
        assert_eq!(watcher.wait(LONG, &NEVER), LOOK);
        assert_eq!(watcher.notices(), []);
        fs::remove_dir_all(&root).unwrap();
        wait_for(&watcher, Hint::Gone);
    }

    #[test]
    fn a_new_folder_of_settings_is_looked_at_and_once_more() {
        let (parent, root, watcher) = watched();
        let settings = parent.path().join("settings");
        fs::create_dir(&settings).unwrap();
        fs::write(settings.join("app.json"), "{}").unwrap();
        // Moved in as a whole: of the file in it there is no event.
        fs::rename(settings, root.join(".obsidian")).unwrap();
        assert_eq!(watcher.wait(LONG, &NEVER), LOOK);
        assert_eq!(watcher.wait(LONG, &NEVER), LOOK);
        assert_eq!(watcher.wait(2 * DEBOUNCE, &NEVER), Hint::TimedOut);
    }

    #[test]
    fn lost_events_ask_for_a_full_look() {
        let (_parent, root, watcher) = watched();
        let lost = Event::new(EventKind::Other).set_flag(notify::event::Flag::Rescan);
        watcher.bell.hear(&root, Ok(lost));
        assert_eq!(watcher.wait(LONG, &NEVER), Hint::LookAgain { full: true });
    }

    #[test]
    fn what_matters() {
        use Matter::{Inside, Nothing, Root, Rules};
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
            // The folder is made, and the file in it before anybody could watch it; or it is moved here or away.
            (create, "/v/.obsidian", Rules),
            (remove, "/v/.obsidian", Rules),
            (EventKind::Modify(ModifyKind::Name(RenameMode::To)), "/v/.obsidian", Rules),
            (EventKind::Modify(ModifyKind::Name(RenameMode::From)), "/v/.obsidian", Rules),
            (write, "/v/.obsidian", Nothing),
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
            assert_eq!(matters(Path::new("/v"), &event), expected, "{kind:?} {path}");
        }
        let both = Event::new(EventKind::Modify(ModifyKind::Name(RenameMode::Both)));
        let into_trash = both.add_path("/v/a.md".into()).add_path("/v/.trash/a.md".into());
        assert_eq!(matters(Path::new("/v"), &into_trash), Inside);
    }
}
