//! Ranking by meaning: the cosine of the query and every passage, as an interval first, exactly where it matters.
//!
//! Where a note's title is only its file's name, the passage's text was embedded without it, and the title has a
//! short vector of its own. It is weighed in here: `max(c, (1 - w)·c + w·t)` with the passage's cosine `c`, the
//! title's `t` and `w` = [`TITLE_WEIGHT`]. So a fitting title helps, and one that says nothing does no harm.

use crate::error::Result;
use crate::store::{PassageRow, Slot};
use crate::vectors::{Estimate, rescore};

/// How much a title that is only the file's name counts against the passage.
pub(super) const TITLE_WEIGHT: f32 = 0.25;

/// The cosines of one query.
pub(super) struct Semantic {
    query: Vec<f32>,
    /// By slot.
    estimates: Vec<Estimate>,
    titles: Titles,
}

/// Whether titles are weighed in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Titles {
    Weighed,
    /// The query is a whole note.
    LeftOut,
}

/// A passage's exact cosine and its parts.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct Cosine {
    /// With the title weighed in.
    pub score: f32,
    /// The title's own, where there is one.
    pub title: Option<f32>,
}

impl Semantic {
    pub(super) fn none() -> Self {
        Self { query: Vec::new(), estimates: Vec::new(), titles: Titles::LeftOut }
    }

    /// The estimates of all slots, from one pass over the codes.
    pub(super) fn new(query: Vec<f32>, estimates: Vec<Estimate>, titles: Titles) -> Self {
        Self { query, estimates, titles }
    }

    /// An interval that holds the passage's exact score. `None`: it has no vector.
    pub(super) fn bounds(&self, passage: &PassageRow) -> Option<(f32, f32)> {
        let of = |slot: Slot| self.estimates.get(slot.get() as usize).filter(|e| e.is_row());
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
        let is_scanned = |slot: &Slot| (slot.get() as usize) < self.estimates.len();
        let Some(slot) = passage.vector.filter(is_scanned) else { return Ok(None) };
        let cosine = |slot: Slot| vector(slot.get().into()).map(|vector| rescore(&self.query, &vector));
        let text = cosine(slot)?;
        let title = self.title_slot(passage).map(cosine).transpose()?;
        Ok(Some(Cosine { score: weigh(text, title), title }))
    }

    fn title_slot(&self, passage: &PassageRow) -> Option<Slot> {
        passage.title.filter(|_| self.titles == Titles::Weighed)
    }
}

/// Grows with both: so bounds of the parts give bounds of the whole.
fn weigh(text: f32, title: Option<f32>) -> f32 {
    match title {
        Some(title) => text.max((1.0 - TITLE_WEIGHT) * text + TITLE_WEIGHT * title),
        None => text,
    }
}
