//! From pending texts to vectors: newest notes first, one transaction per round.

use std::borrow::Cow;
use std::collections::{HashMap, VecDeque};
use std::time::{Duration, Instant};

use crate::embed::Role;
use crate::error::{Error, ErrorKind, Result};
use crate::indexer::Indexer;
use crate::indexer::pace::Pace;
use crate::indexer::prepare::text_to_embed;
use crate::lock::{self, LockName};
use crate::report::{Progress, Report, Stage};
use crate::store::{EmbeddingKey, PACE, PendingText, REBUILDING_TO, key_of, least_size};

/// The aim for the duration of a round of embedding. Between rounds, the time limit and stop requests are checked. A
/// round has as many texts as take about this long, but at least the batch size of the model.
const ROUND: Duration = Duration::from_millis(250);
const MOST_TEXTS: usize = 1024;

/// How often the notes with texts to embed are listed. The time that this takes grows with their number.
const LIST_AGAIN: Duration = Duration::from_secs(10);

/// Controls the rounds of embedding, besides the options of a sync.
pub(crate) trait EmbeddingSchedule {
    /// The most texts of the next round.
    fn most_texts(&self) -> usize {
        MOST_TEXTS
    }

    /// The texts to skip, as a JSON list of [`PendingText::id`].
    fn skipped(&self) -> Cow<'_, str> {
        Cow::Borrowed("[]")
    }

    /// Called before these texts are embedded. Returns whether to embed them.
    fn begins(&mut self, _indexer: &Indexer<'_>, _texts: &[PendingText]) -> Result<bool> {
        Ok(true)
    }

    /// Called when the model could not embed one of these texts.
    fn failed(&mut self, _indexer: &Indexer<'_>, _texts: &[PendingText], error: Error) -> Result<()> {
        Err(error)
    }

    /// Called after a round. Returns whether to start another one; the rest takes about `time_left`.
    fn goes_on(&mut self, time_left: Option<Duration>) -> bool;
}

/// The schedule of a sync.
struct SyncSchedule {
    limit: Option<Duration>,
    /// Stop as soon as it is clear that the time limit does not suffice for all texts.
    all: bool,
    started: Instant,
}

impl EmbeddingSchedule for SyncSchedule {
    fn goes_on(&mut self, time_left: Option<Duration>) -> bool {
        let needed = self.started.elapsed() + if self.all { time_left.unwrap_or_default() } else { Duration::ZERO };
        self.limit.is_none_or(|limit| needed <= limit)
    }
}

impl Indexer<'_> {
    /// Embeds until nothing is pending, the time limit is reached or the caller cancels.
    ///
    /// The write lock is free while the model runs. A separate lock keeps two processes from embedding the same texts.
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
        let may_leave = is_rebuilding || self.options.deadline.is_some() || self.options.vectors_within.is_some();
        let embedding = match self.locks {
            Some(index) if is_rebuilding || self.options.vectors_within.is_some() => {
                lock::lock(index, LockName::Embed, Some(Duration::ZERO), None).map(Some)
            }
            _ => self.lock(LockName::Embed),
        };
        let _embedding = match embedding {
            // Another process embeds the pending texts, and this sync may not wait for it; or it rebuilds the index,
            // which makes these vectors unnecessary.
            Err(error) if error.kind() == ErrorKind::Locked && may_leave => return Ok(()),
            embedding => embedding?,
        };
        let pace = self.pace()?;
        let limit = self.options.vectors_within;
        if let Some(limit) = limit.filter(|_| self.options.all_vectors) {
            // The speed of another day may be half that of today.
            let is_hopeless = |size| pace.time(size).is_some_and(|time| time > 2 * limit);
            let texts = self.store.pending()?;
            if is_hopeless(least_size(texts)) || is_hopeless(self.store.pending_size(texts)?) {
                return Ok(());
            }
        }
        let mut whole = SyncSchedule { limit, all: self.options.all_vectors, started: Instant::now() };
        self.embed_rounds(pace, &mut whole, report)
    }

    /// The speed of embedding for this index, from the last time.
    pub(crate) fn pace(&self) -> Result<Pace> {
        Ok(Pace::new(self.store.meta(PACE)?.as_deref()))
    }

    /// Embeds in rounds until nothing is pending, the time limit is reached, or `run` stops it.
    pub(crate) fn embed_rounds(
        &self,
        mut pace: Pace,
        run: &mut impl EmbeddingSchedule,
        report: &mut Report,
    ) -> Result<()> {
        let started = Instant::now();
        let least = self.embedder.batch_size().clamp(1, MOST_TEXTS);
        let (mut done, mut texts) = (0, least);
        let (mut notes, mut left, mut listed) = (VecDeque::new(), 0, started);
        while !self.options.is_over() {
            let round = Instant::now();
            // Other processes may have added more notes meanwhile, and newer ones.
            if notes.is_empty() || listed.elapsed() > LIST_AGAIN {
                (notes, left, listed) =
                    (self.store.pending_notes()?, self.store.pending_size(self.store.pending()?)?, round);
            }
            let pending = self.store.pending_texts(&mut notes, texts.min(run.most_texts()), &run.skipped())?;
            if pending.is_empty() {
                if listed == round {
                    break;
                }
                // The listed texts are done; others may have been added.
                continue;
            }
            if !run.begins(self, &pending)? {
                break;
            }
            match self.embed_round(&pending, &mut pace, report) {
                Err(error) if error.kind() == ErrorKind::Model => run.failed(self, &pending, error)?,
                embedded => embedded?,
            }
            done += pending.len();
            left = left.saturating_sub(pending.iter().map(PendingText::size).sum());
            let time_left = pace.time(left);
            if let Some(report) = self.options.progress {
                let total = done + self.store.pending()?;
                report(Progress { stage: Stage::Vectors, done, total, left: time_left });
            }
            if !run.goes_on(time_left) {
                break;
            }
            let share = ROUND.as_secs_f64() / round.elapsed().as_secs_f64().max(1e-6);
            texts = ((pending.len() as f64 * share) as usize).clamp(least, MOST_TEXTS.min(2 * texts));
        }
        Ok(())
    }

    pub(crate) fn embed_round(&self, pending: &[PendingText], pace: &mut Pace, report: &mut Report) -> Result<()> {
        let texts: Vec<String> = pending.iter().map(|text| self.text_of(text)).collect();
        let keys: Vec<EmbeddingKey> = texts.iter().map(|text| key_of(text)).collect();
        let mut without = self.store.without_vector(&keys)?;
        // Each text once.
        let new = keys.iter().zip(&texts).filter(|(key, _)| without.remove(*key));
        let (new, fresh): (Vec<EmbeddingKey>, Vec<&str>) = new.map(|(key, text)| (*key, text.as_str())).unzip();
        let vectors = if fresh.is_empty() { Vec::new() } else { self.embedder.embed(&fresh, Role::Passage)? };
        if vectors.len() != fresh.len() {
            return Err(Error::new(
                ErrorKind::Model,
                format!("the model returned {} vectors for {} texts", vectors.len(), fresh.len()),
            ));
        }
        let vectors: HashMap<EmbeddingKey, Vec<f32>> = new.into_iter().zip(vectors).collect();

        let _lock = self.lock(LockName::Write)?;
        let batch = self.store.begin()?;
        let embedded = self.store.set_vectors(pending, &keys, &vectors)?;
        pace.add(pending.len(), pending.iter().map(PendingText::size).sum());
        // Vectors that are reused say nothing about the speed of the model.
        if let Some(pace) = pace.to_store().filter(|_| 2 * embedded > pending.len()) {
            self.store.set_meta(PACE, &pace)?;
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
