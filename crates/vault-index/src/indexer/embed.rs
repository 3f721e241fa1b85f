//! Pending texts -> vectors: newest notes first, each text looked up before it is embedded, one transaction a batch.

use std::collections::HashMap;
use std::time::Duration;

use crate::embed::Role;
use crate::error::{Error, Result};
use crate::indexer::Indexer;
use crate::indexer::prepare::text_to_embed;
use crate::place::{LockName, lock};
use crate::report::{Report, Stage};
use crate::store::{EmbeddingKey, PendingText, key_of};

/// Between two batches the lock is free for this long: others ask for it every 20 ms.
const BREATH: Duration = Duration::from_millis(25);

impl Indexer<'_> {
    /// Embeds until nothing is pending, the time is over or the caller cancels.
    pub(super) fn sync_vectors(&self, report: &mut Report) -> Result<()> {
        let mut left = self.store.pending()?;
        if left == 0 {
            return Ok(());
        }
        let total = left;
        let mut first = true;
        while left > 0 && !self.options.is_over() {
            if !first {
                std::thread::sleep(BREATH);
            }
            first = false;
            let _lock = lock(self.store.path(), LockName::Write, self.options.wait, self.options.cancel)?;
            // Reading and embedding happen under the lock too: two processes would embed the same texts.
            let pending = self.store.pending_texts(4 * self.embedder.batch_size())?;
            if pending.is_empty() {
                break;
            }
            self.embed_batch(&pending, report)?;
            left = left.saturating_sub(pending.len());
            self.progress(Stage::Vectors, total - left, total);
        }
        if report.removed + report.changed > 0 {
            let _lock = lock(self.store.path(), LockName::Write, self.options.wait, self.options.cancel)?;
            let batch = self.store.begin()?;
            self.store.drop_unused_vectors()?;
            batch.commit().map_err(Error::from)?;
        }
        Ok(())
    }

    fn embed_batch(&self, pending: &[PendingText], report: &mut Report) -> Result<()> {
        let texts: Vec<String> = pending.iter().map(|text| self.text_of(text)).collect();
        let keys: Vec<EmbeddingKey> = texts.iter().map(|text| key_of(text)).collect();
        let mut slots: HashMap<EmbeddingKey, i64> = HashMap::new();
        let mut new: Vec<usize> = Vec::new();
        let mut seen: HashMap<EmbeddingKey, ()> = HashMap::new();
        for (at, key) in keys.iter().enumerate() {
            if seen.insert(*key, ()).is_none() {
                match self.store.find_vector(key)? {
                    Some(slot) => drop(slots.insert(*key, slot)),
                    None => new.push(at),
                }
            }
        }
        let fresh: Vec<&str> = new.iter().map(|&at| texts[at].as_str()).collect();
        let vectors = if fresh.is_empty() { Vec::new() } else { self.embedder.embed(&fresh, Role::Passage)? };
        if vectors.len() != fresh.len() {
            return Err(Error::new(
                crate::error::ErrorKind::Model,
                format!("the model gave {} vectors for {} texts", vectors.len(), fresh.len()),
            ));
        }

        let batch = self.store.begin()?;
        let mut free = self.store.free_slots()?;
        for (&at, vector) in new.iter().zip(&vectors) {
            let slot = free.take();
            self.store.put_vector(slot, &keys[at], vector)?;
            slots.insert(keys[at], slot);
        }
        for (text, key) in pending.iter().zip(&keys) {
            self.store.set_vector(text, slots[key])?;
        }
        batch.commit().map_err(Error::from)?;
        report.embedded += new.len();
        report.reused += pending.len() - new.len();
        Ok(())
    }

    fn text_of(&self, pending: &PendingText) -> String {
        match pending {
            PendingText::Title { title, .. } => title.clone(),
            PendingText::Passage { title, headings, text, note_title, .. } => {
                text_to_embed(self.embedder, title.as_deref(), headings, text, note_title)
            }
        }
    }
}
