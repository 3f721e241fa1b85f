//! Keeps the indexes of the vaults up to date while they are served. If several servers serve a vault, only one watches
//! it; the others use its work, and one of them takes over when it ends for any reason.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use vault_index::{Error, ErrorKind, Index, WatchEvent, WatchOptions};
use vault_search::note;

use crate::workspace::OpenVault;

/// How often a server checks whether the watching server has ended.
const TAKE_OVER: Duration = Duration::from_secs(2);

/// The pause after an error before the vault is watched again.
const RETRY: Duration = Duration::from_secs(30);

/// How often a pause checks whether it must end.
const TICK: Duration = Duration::from_millis(50);

/// The watching threads, which end when this is dropped.
#[derive(Debug)]
pub(crate) struct IndexWatcher {
    stop: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
}

/// Where events of the indexes are reported.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WatchNotices {
    /// On standard error, which clients keep in their logs.
    Log,
    /// Not at all, because a person uses the terminal and each search reports what it lacks.
    Off,
}

impl WatchNotices {
    fn note(self, text: &str) {
        if self == Self::Log {
            note(text);
        }
    }
}

impl IndexWatcher {
    /// Starts to watch vaults, except for those whose index is in a database, which its owner keeps up to date.
    pub fn start(vaults: &[OpenVault], notices: WatchNotices) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let thread = |open: &OpenVault| {
            let (folder, options, stop) = (open.vault.path().to_owned(), open.index.clone(), Arc::clone(&stop));
            let name = open.name.clone();
            std::thread::spawn(move || match Index::open(&folder, options) {
                Ok(index) => watch(&index, &name, &stop, notices),
                Err(error) => notices.note(&unwatched(&name, &error)),
            })
        };
        Self { threads: vaults.iter().filter(|open| !open.vault.has_database()).map(thread).collect(), stop }
    }
}

impl Drop for IndexWatcher {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        self.threads.drain(..).for_each(|thread| _ = thread.join());
    }
}

fn unwatched(name: &str, error: &Error) -> String {
    format!("{name}: the index is not kept up to date: {}", error.one_line())
}

fn watch(index: &Index, name: &str, stop: &AtomicBool, notices: WatchNotices) {
    let options = WatchOptions::new().cancel(stop);
    let mut said = String::new();
    while !stop.load(Ordering::Relaxed) {
        let ended = index
            .watch(&options)
            .and_then(|mut watcher| watcher.try_for_each(|event| event.map(|event| tell(name, event, notices))));
        let pause = match ended {
            Ok(()) => continue,
            Err(error) if error.kind() == ErrorKind::Locked => TAKE_OVER,
            Err(error) => {
                let fault = unwatched(name, &error);
                if fault != said {
                    notices.note(&fault);
                    said = fault;
                }
                RETRY
            }
        };
        let end = Instant::now() + pause;
        while Instant::now() < end && !stop.load(Ordering::Relaxed) {
            std::thread::sleep(TICK);
        }
    }
}

/// Reports an event that the person should know of.
fn tell(name: &str, event: WatchEvent, notices: WatchNotices) {
    match event {
        WatchEvent::Notice(notice) => notices.note(&format!("{name}: {notice}")),
        WatchEvent::VaultGone => notices.note(&format!("{name}: the vault's folder is gone")),
        WatchEvent::VaultBack => notices.note(&format!("{name}: the vault's folder is back")),
        _ => {}
    }
}
