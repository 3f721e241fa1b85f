//! Closes replaced files on other threads.
//!
//! A disk may free the blocks of a replaced file only when its last handle is closed, and the close waits for that:
//! with ext4's `discard` and no journal it takes longer than everything else in a rename with many backlinks.

use std::fs::File;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

/// More threads than processors are useful, because they wait for the disk.
const THREADS: usize = 8;

/// Up to this number, files are closed on the calling thread.
const FEW: usize = 16;

/// The number of files in a batch. Files are handed over in batches because waking a thread costs more than closing a
/// file on a fast disk.
const AT_ONCE: usize = 8;

/// The maximum number of waiting batches, which limits the number of open files.
const WAITING: usize = 8;

/// Closes files. Dropping it waits until all of them are closed.
#[derive(Default)]
pub(super) struct FileCloser {
    batches: Option<SyncSender<Vec<File>>>,
    next: Vec<File>,
    threads: Vec<JoinHandle<()>>,
}

impl FileCloser {
    /// Creates a closer for about this number of files.
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
        // Without threads, files that cannot be sent are closed on the calling thread.
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
