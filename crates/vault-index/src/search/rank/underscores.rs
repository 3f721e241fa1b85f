//! Identifiers of a query whose underscores matter, because one ordinary word is left without them: `__device__`,
//! `copy_if`.
//!
//! Terms leave underscores out, so texts are compared.

use std::ops::Range;

use crate::terms::is_stop_word;

/// The identifiers in a text that begin or end with underscores, or contain one and fewer than two words that are not
/// stop words.
pub(super) fn identifiers(text: &str) -> Vec<Range<usize>> {
    let mut identifiers = Vec::new();
    let mut start = 0;
    for token in text.split_inclusive(|c| !is_part(c)) {
        let bare = token.trim_end_matches(|c| !is_part(c));
        let words: Vec<&str> = bare.split('_').filter(|word| !word.is_empty()).collect();
        let telling = words.iter().filter(|word| !is_stop_word(&word.to_lowercase())).count();
        let has_ends = bare.starts_with('_') || bare.ends_with('_');
        if bare.contains('_') && !words.is_empty() && (has_ends || telling < 2) {
            identifiers.push(start..start + bare.len());
        }
        start += token.len();
    }
    identifiers
}

/// Whether a text contains an identifier, which is in lower case, and no other letter or underscore beside it.
pub(super) fn contains(text: &str, identifier: &str) -> bool {
    let text = text.to_lowercase();
    let mut found = text.match_indices(identifier);
    found.any(|(at, _)| !text[..at].ends_with(is_part) && !text[at + identifier.len()..].starts_with(is_part))
}

fn is_part(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn which_identifiers_need_their_underscores() {
        let shown = |text: &'static str| identifiers(text).into_iter().map(|at| &text[at]).collect::<Vec<_>>();
        for nothing in ["", "_", "a __ b", "device", "max_retry_count", "copy-if", "snake_case, std::max_element"] {
            assert_eq!(shown(nothing), [""; 0], "{nothing}");
        }
        assert_eq!(shown("__device__"), ["__device__"]);
        assert_eq!(shown("what is `self.__init__`, or _größe?"), ["__init__", "_größe"]);
        assert_eq!(shown("std::copy_if(a, is_a)"), ["copy_if", "is_a"]);
    }

    #[test]
    fn an_identifier_stands_by_itself() {
        for (text, is_there) in
            [("a `__Init__`.", true), ("__init__", true), ("x__init__ y__init__", false), ("init", false)]
        {
            assert_eq!(contains(text, "__init__"), is_there, "{text}");
        }
    }
}
