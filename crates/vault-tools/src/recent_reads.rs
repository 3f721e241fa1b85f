//! The contents that were read recently, by version, to report what changed if a write is based on an old version.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::content::Content;

/// The maximum size of all kept contents in bytes, and of a single one.
const MAX_BYTES: usize = 16_000_000;

/// Contents in the order in which they were read, each once.
#[derive(Default)]
pub(crate) struct ReadVersions(Mutex<VecDeque<Content>>);

impl ReadVersions {
    /// Keeps a content, and drops the oldest ones if necessary.
    pub fn keep(&self, content: &Content) {
        if content.len() > MAX_BYTES {
            return;
        }
        let mut kept = self.lock();
        kept.retain(|other| other != content);
        kept.push_back(content.clone());
        let mut bytes: usize = kept.iter().map(Content::len).sum();
        while bytes > MAX_BYTES {
            bytes -= kept.pop_front().map_or(bytes, |oldest| oldest.len());
        }
    }

    /// Returns the content with a version, if it is kept.
    pub fn find(&self, version: &str) -> Option<Content> {
        self.lock().iter().find(|content| content.hash().etag() == version).cloned()
    }

    fn lock(&self) -> MutexGuard<'_, VecDeque<Content>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_contents_go_first() {
        let versions = ReadVersions::default();
        let contents: Vec<Content> = (b'a'..=b'e').map(|byte| vec![byte; MAX_BYTES / 4].into()).collect();
        contents[..4].iter().for_each(|content| versions.keep(content));
        versions.keep(&contents[0]);
        versions.keep(&contents[4]);
        let kept: Vec<bool> = contents.iter().map(|content| versions.find(&content.hash().etag()).is_some()).collect();
        assert_eq!(kept, [true, false, true, true, true]);
        versions.keep(&vec![b'x'; MAX_BYTES + 1].into());
        assert_eq!(versions.lock().len(), 4);
    }
}
