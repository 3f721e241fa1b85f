//! Ranking by meaning: the cosine of the query and every passage, as an interval first, exactly where it matters.
//!
//! Where a note's title is only its file's name, the passage's text was embedded without it, and the title has a
//! short vector of its own. It is weighed in here: `max(c, (1 - w)·c + w·t)` with the passage's cosine `c`, the
//! title's `t` and `w` = [`TITLE_WEIGHT`]. So a fitting title helps, and one that says nothing does no harm.

use std::collections::HashMap;

use crate::error::Result;
use crate::path::FileId;
use crate::store::PassageRow;
use crate::vectors::{Estimate, rescore};

/// How much a title that is only the file's name counts against the passage.
pub(super) const TITLE_WEIGHT: f32 = 0.25;

/// The cosines of one query.
pub(super) struct Semantic<'a> {
    query: Vec<f32>,
    /// By slot.
    estimates: Vec<Estimate>,
    titles: Option<&'a HashMap<FileId, i64>>,
}

/// A passage's exact cosine and its parts.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct Cosine {
    /// With the title weighed in.
    pub score: f32,
    /// The title's own, where there is one.
    pub title: Option<f32>,
}

impl<'a> Semantic<'a> {
    pub(super) fn none() -> Self {
        Self { query: Vec::new(), estimates: Vec::new(), titles: None }
    }

    /// The estimates of all slots, from one pass over the codes.
    pub(super) fn new(query: Vec<f32>, estimates: Vec<Estimate>, titles: Option<&'a HashMap<FileId, i64>>) -> Self {
        Self { query, estimates, titles }
    }

    /// An interval that holds the passage's exact score. `None`: it has no vector.
    pub(super) fn bounds(&self, passage: &PassageRow) -> Option<(f32, f32)> {
        let of = |slot: i64| self.estimates.get(slot as usize).filter(|e| e.is_row());
        let text = of(passage.vector?)?;
        let title = self.title_slot(passage).and_then(of);
        Some((weigh(text.lower(), title.map(Estimate::lower)), weigh(text.upper(), title.map(Estimate::upper))))
    }

    /// The exact score, from the f32 vectors.
    pub(super) fn exact(
        &self,
        passage: &PassageRow,
        vector: &dyn Fn(i64) -> Result<Vec<f32>>,
    ) -> Result<Option<Cosine>> {
        let Some(slot) = passage.vector.filter(|slot| (*slot as usize) < self.estimates.len()) else { return Ok(None) };
        let text = rescore(&self.query, &vector(slot)?);
        let title = match self.title_slot(passage) {
            Some(slot) => Some(rescore(&self.query, &vector(slot)?)),
            None => None,
        };
        Ok(Some(Cosine { score: weigh(text, title), title }))
    }

    fn title_slot(&self, passage: &PassageRow) -> Option<i64> {
        self.titles?.get(&passage.note).copied()
    }
}

/// Grows with both: so bounds of the parts give bounds of the whole.
fn weigh(text: f32, title: Option<f32>) -> f32 {
    match title {
        Some(title) => text.max((1.0 - TITLE_WEIGHT) * text + TITLE_WEIGHT * title),
        None => text,
    }
}
