//! Pending texts -> vectors: newest notes first, each text looked up before it is embedded, one transaction a round.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use crate::embed::Role;
use crate::error::{Error, ErrorKind, Result};
use crate::indexer::Indexer;
use crate::indexer::prepare::text_to_embed;
use crate::lock::{self, LockName};
use crate::report::{Report, Stage};
use crate::store::{EmbeddingKey, PendingText, REBUILDING_TO, key_of};

/// A round is what is embedded between two looks at the clock and at what was asked to stop: so many texts that it
/// takes about this long, and not fewer than the model wants at once.
const ROUND: Duration = Duration::from_millis(250);
const MOST_TEXTS: usize = 1024;

impl Indexer<'_> {
    /// Embeds until nothing is pending, the time is over or the caller cancels.
    ///
    /// The lock for writing is free while the model works; another one keeps two processes from embedding the same
    /// texts.
    pub(super) fn sync_vectors(&self, report: &mut Report) -> Result<()> {
        if self.store.pending()? > 0 {
            self.embed_pending(report)?;
        }
        if report.removed + report.changed > 0 {
            let _lock = self.lock(LockName::Write)?;
            let batch = self.store.begin()?;
            self.store.drop_unused_vectors()?;
            batch.commit()?;
        }
        Ok(())
    }

    fn embed_pending(&self, report: &mut Report) -> Result<()> {
        let is_rebuilding = self.store.meta(REBUILDING_TO)?.is_some();
        let embedding = match self.locks {
            Some(index) if is_rebuilding => lock::lock(index, LockName::Embed, Some(Duration::ZERO), None).map(Some),
            _ => self.lock(LockName::Embed),
        };
        let _embedding = match embedding {
            // Another process embeds what is pending here, and this sync may not wait for it; or it rebuilds the index,
            // which makes these vectors needless.
            Err(error) if error.kind() == ErrorKind::Locked && (is_rebuilding || self.options.deadline.is_some()) => {
                return Ok(());
            }
            embedding => embedding?,
        };
        let mut done = 0;
        let least = self.embedder.batch_size().clamp(1, MOST_TEXTS);
        let mut texts = least;
        while !self.options.is_over() {
            let started = Instant::now();
            let pending = self.store.pending_texts(texts)?;
            if pending.is_empty() {
                break;
            }
            self.embed_round(&pending, report)?;
            done += pending.len();
            // Others may have brought more meanwhile.
            self.progress(Stage::Vectors, done, done + self.store.pending()?);
            let share = ROUND.as_secs_f64() / started.elapsed().as_secs_f64().max(1e-6);
            texts = ((pending.len() as f64 * share) as usize).clamp(least, MOST_TEXTS.min(2 * texts));
        }
        Ok(())
    }

    fn embed_round(&self, pending: &[PendingText], report: &mut Report) -> Result<()> {
        let texts: Vec<String> = pending.iter().map(|text| self.text_of(text)).collect();
        let keys: Vec<EmbeddingKey> = texts.iter().map(|text| key_of(text)).collect();
        let mut new: HashMap<EmbeddingKey, &str> = HashMap::new();
        for (key, text) in keys.iter().zip(&texts) {
            if self.store.find_vector(key)?.is_none() {
                new.insert(*key, text);
            }
        }
        let (new, fresh): (Vec<EmbeddingKey>, Vec<&str>) = new.into_iter().unzip();
        let vectors = if fresh.is_empty() { Vec::new() } else { self.embedder.embed(&fresh, Role::Passage)? };
        if vectors.len() != fresh.len() {
            return Err(Error::new(
                ErrorKind::Model,
                format!("the model gave {} vectors for {} texts", vectors.len(), fresh.len()),
            ));
        }
        let vectors: HashMap<EmbeddingKey, Vec<f32>> = new.into_iter().zip(vectors).collect();

        let _lock = self.lock(LockName::Write)?;
        let batch = self.store.begin()?;
        let mut free = self.store.free_slots()?;
        let mut embedded = 0;
        for (text, key) in pending.iter().zip(&keys) {
            let slot = match (self.store.find_vector(key)?, vectors.get(key)) {
                (Some(slot), _) => slot,
                (None, Some(vector)) => {
                    let slot = free.next().expect("slots do not end");
                    self.store.put_vector(slot, key, vector)?;
                    embedded += 1;
                    slot
                }
                // Dropped by another process since we looked: it stays pending.
                (None, None) => continue,
            };
            self.store.set_vector(text, slot)?;
        }
        batch.commit()?;
        report.embedded += embedded;
        report.reused += pending.len() - embedded;
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
