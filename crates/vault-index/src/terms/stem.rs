//! Which English words belong together: those with the same stem.

use std::borrow::Cow;

use rust_stemmers::{Algorithm, Stemmer};

/// The stem (Snowball's, for English) of a word as it is indexed. The word itself where it has other characters than
/// `a-z`, or fewer than three.
pub(crate) fn stem(word: &str) -> Cow<'_, str> {
    match word.len() > 2 && word.bytes().all(|byte| byte.is_ascii_lowercase()) {
        true => Stemmer::create(Algorithm::English).stem(word),
        false => word.into(),
    }
}
