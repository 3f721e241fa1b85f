//! The passages that contain adjacent words, looked up in the keyword index.

use crate::error::Result;
use crate::store::Store;
use crate::terms::{TermMatch, Terms};

/// The passages that contain words side by side (with [`TermMatch::Prefix`], the last one may continue), in their own
/// fields or those of their notes: exactly, except for case, diacritics and punctuation. In no order, some twice.
/// `None`: the text has no words.
pub(crate) fn passages_with_phrase(store: &Store, text: &str, matching: TermMatch) -> Result<Option<Vec<i64>>> {
    phrase_expression(text, matching).map(|expression| store.passages_with(&expression)).transpose()
}

fn phrase_expression(phrase: &str, matching: TermMatch) -> Option<String> {
    let terms = Terms::new().phrase(phrase);
    let (last, first) = terms.split_last()?;
    let mut text = String::from("\"");
    for term in first {
        text.push_str(&term.text);
        text.push(' ');
    }
    text.push_str(&last.text);
    let is_prefix = last.matching == TermMatch::Prefix || matching == TermMatch::Prefix;
    text.push_str(if is_prefix { "\"*" } else { "\"" });
    Some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn expressions() {
        assert_eq!(phrase_expression("Gardening tools", TermMatch::Whole).as_deref(), Some("\"gardening tools\""));
        assert_eq!(phrase_expression("京", TermMatch::Whole).as_deref(), Some("\"京\"*"));
        assert_eq!(phrase_expression("old Excal", TermMatch::Prefix).as_deref(), Some("\"old excal\"*"));
        assert_eq!(phrase_expression("?!", TermMatch::Whole), None);
    }
}
