//! The passages that contain adjacent words, looked up in the keyword index.

use crate::error::Result;
use crate::store::ReadStore;
use crate::terms::{TermMatch, Terms};

/// The passages that contain words side by side (with [`TermMatch::Prefix`], the last one may continue), in their own
/// fields or those of their notes: exactly, except for case, diacritics and punctuation. In no order, some twice.
/// `None`: the text has no words.
pub(crate) fn passages_with_phrase(store: &dyn ReadStore, text: &str, matching: TermMatch) -> Result<Option<Vec<i64>>> {
    let mut phrase = Terms::new().phrase(text);
    let Some(last) = phrase.last_mut() else { return Ok(None) };
    if matching == TermMatch::Prefix {
        last.matching = TermMatch::Prefix;
    }
    store.passages_with(&phrase).map(Some)
}
