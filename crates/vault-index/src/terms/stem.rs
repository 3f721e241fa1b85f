//! The stems of English words; words with the same stem belong together.

use std::borrow::Cow;

use rust_stemmers::{Algorithm, Stemmer};

/// Returns the stem (Snowball's, for English) of a word as it is indexed. A word with characters other than `a-z`, or
/// with fewer than three, is returned unchanged.
pub(crate) fn stem(word: &str) -> Cow<'_, str> {
    match word.len() > 2 && word.bytes().all(|byte| byte.is_ascii_lowercase()) {
        true => Stemmer::create(Algorithm::English).stem(word),
        false => word.into(),
    }
}
