//! Closes replaced files on other threads.
//!
//! A disk may free the blocks of a replaced file only when its last handle is closed, and wait for that: with ext4's
//! `discard` and no journal it takes longer than all the rest of a rename with many backlinks.

use std::fs::File;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

/// They wait for the disk, not for a processor.
const THREADS: usize = 8;

/// Fewer files are closed where they are.
const FEW: usize = 16;

/// Handles that wait to be closed, at most.
const WAITING: usize = 64;

/// Takes handles to close. When it is dropped, all of them are closed.
#[derive(Default)]
pub(super) struct Closing {
    files: Option<SyncSender<File>>,
    threads: Vec<JoinHandle<()>>,
}

impl Closing {
    /// For about so many files.
    pub(super) fn of(files: usize) -> Self {
        if files <= FEW {
            return Self::default();
        }
        let (sender, receiver) = sync_channel(WAITING);
        let receiver = Arc::new(Mutex::new(receiver));
        let spawn = |_| {
            std::thread::Builder::new().spawn({
                let receiver = Arc::clone(&receiver);
                move || while next(&receiver).is_some() {}
            })
        };
        // Without threads, a handle that cannot be sent is closed where it is.
        Self { files: Some(sender), threads: (0..THREADS).map_while(|number| spawn(number).ok()).collect() }
    }

    pub(super) fn close(&self, file: File) {
        if let Some(files) = &self.files {
            let _ = files.send(file);
        }
    }
}

fn next(files: &Mutex<Receiver<File>>) -> Option<File> {
    files.lock().unwrap_or_else(PoisonError::into_inner).recv().ok()
}

impl Drop for Closing {
    fn drop(&mut self) {
        self.files = None;
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}
