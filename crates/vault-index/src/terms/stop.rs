//! English stop words. They are indexed, but left out of queries.

use super::stem;

/// Whether a term (from [`super::Terms`]) can be left out of a query.
///
/// A query that consists only of such terms keeps them.
pub fn is_stop_word(term: &str) -> bool {
    STOP_WORDS.binary_search(&stem(term).as_ref()).is_ok()
}

/// The stems of the stop words, sorted.
pub(super) const STOP_WORDS: &[&str] = &[
    "a", "about", "after", "all", "also", "am", "an", "and", "ani", "are", "arent", "as", "at", "be", "becaus", "been",
    "befor", "but", "by", "can", "cannot", "cant", "could", "couldnt", "did", "didnt", "do", "doe", "doesnt", "dont",
    "each", "for", "from", "had", "has", "hasnt", "have", "he", "her", "here", "him", "his", "how", "i", "if", "im",
    "in", "into", "is", "isnt", "it", "ive", "just", "me", "more", "most", "my", "no", "nor", "not", "of", "on", "or",
    "other", "our", "out", "over", "own", "same", "she", "should", "so", "some", "such", "than", "that", "the",
    "their", "them", "then", "there", "these", "they", "this", "those", "through", "to", "too", "until", "up", "veri",
    "was", "wasnt", "we", "were", "what", "when", "where", "whi", "which", "while", "who", "whom", "whose", "will",
    "with", "wont", "would", "you", "your",
];
