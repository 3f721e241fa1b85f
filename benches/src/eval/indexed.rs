//! A vault that the real pipeline has parsed, chunked, embedded and stored, ready for searches.

use std::path::Path;
use std::time::Instant;

use vault_index::{Grouping, Hit, Index, Mode, Options, Query, Searcher};

use super::{Plan, Result};

/// A vault that is completely indexed, including vectors.
pub struct Indexed {
    /// Its index.
    pub index: Index,
    /// A searcher of the newest state.
    pub searcher: Searcher,
    /// The number of notes in it.
    pub notes: usize,
    /// The number of passages in it.
    pub passages: usize,
    /// The name of the model.
    pub model: String,
    /// The duration of the sync in seconds. `None` if notes were indexed in an earlier run.
    pub seconds: Option<f64>,
}

impl Indexed {
    /// Brings the index up to date.
    ///
    /// # Errors
    /// Those of the index; also if a passage has no vector at the end.
    pub fn sync(vault: &Path, index_file: &Path, plan: &Plan) -> Result<Self> {
        let mut options = Options::new().index_file(index_file);
        options.model = plan.model.clone();
        let index = Index::open(vault, options)?;
        let report = index.sync()?;
        if report.pending + report.unread > 0 {
            return Err(format!("{}: the sync did not end", vault.display()).into());
        }
        let (status, searcher) = (index.status()?, index.searcher()?);
        let seconds = (report.added == status.notes).then(|| report.took_ms as f64 / 1000.0);
        Ok(Self { searcher, notes: status.notes, passages: status.chunks, model: status.model, seconds, index })
    }

    /// Returns the notes per second, if all of them were indexed in this run.
    pub fn notes_a_second(&self) -> Option<f64> {
        self.seconds.map(|seconds| self.notes as f64 / seconds.max(0.001))
    }

    /// Returns the results for a literal text; a text without a word has no results.
    ///
    /// # Errors
    /// Those of the search.
    pub fn ask(&self, text: &str, mode: Mode, grouping: Grouping, limit: usize) -> Result<Vec<Hit>> {
        let query = Query::literal(text).mode(mode).grouping(grouping).limit(limit);
        if query.is_empty() {
            return Ok(Vec::new());
        }
        Ok(self.searcher.search(&query)?.results)
    }

    /// Warms up with two searches, because the first one loads the model and the second one the vectors.
    ///
    /// # Errors
    /// Those of the search.
    pub fn warm_up(&self, text: &str, mode: Mode) -> Result<()> {
        for _ in 0..2 {
            self.ask(text, mode, Grouping::BestPassage, 10)?;
        }
        Ok(())
    }

    /// [`ask`](Self::ask) with the duration in milliseconds.
    ///
    /// # Errors
    /// Those of the search.
    pub fn ask_timed(&self, text: &str, mode: Mode, grouping: Grouping, limit: usize) -> Result<(Vec<Hit>, f64)> {
        let start = Instant::now();
        let hits = self.ask(text, mode, grouping, limit)?;
        Ok((hits, start.elapsed().as_secs_f64() * 1000.0))
    }
}
