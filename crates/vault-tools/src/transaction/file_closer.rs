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

/// Files that are handed over at once, since to wake a thread costs more than to close a file on a fast disk.
const AT_ONCE: usize = 8;

/// Hand-overs that wait, so that few files are open at a time.
const WAITING: usize = 8;

/// Takes files to close. When it is dropped, all of them are closed.
#[derive(Default)]
pub(super) struct FileCloser {
    batches: Option<SyncSender<Vec<File>>>,
    next: Vec<File>,
    threads: Vec<JoinHandle<()>>,
}

impl FileCloser {
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
        // Without threads, what cannot be sent is closed where it is.
        let threads = (0..THREADS).map_while(|number| spawn(number).ok()).collect();
        Self { batches: Some(sender), next: Vec::new(), threads }
    }

    pub(super) fn close(&mut self, file: File) {
        self.next.push(file);
        if self.next.len() < AT_ONCE {
            return;
        }
        let batch = std::mem::take(&mut self.next);
        if let Some(batches) = &self.batches {
            let _ = batches.send(batch);
        }
    }
}

fn next(batches: &Mutex<Receiver<Vec<File>>>) -> Option<Vec<File>> {
    batches.lock().unwrap_or_else(PoisonError::into_inner).recv().ok()
}

impl Drop for FileCloser {
    fn drop(&mut self) {
        self.batches = None;
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}
