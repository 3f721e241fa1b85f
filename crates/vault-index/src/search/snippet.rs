//! Which bytes of a passage matched: for marking words, and for showing the lines around them.

use std::ops::Range;

use crate::terms::Terms;

/// The byte ranges of `text` that the query's terms (as [`Why::terms`](super::Why::terms) has them) stand for.
/// Ascending; ranges that touch or overlap are one.
pub fn matched_ranges(text: &str, terms: &[String]) -> Vec<Range<usize>> {
    let mut marks: Vec<Range<usize>> = Vec::new();
    if terms.is_empty() {
        return marks;
    }
    Terms::new().each(text, |term, span| {
        let first = term.chars().next();
        let matched = terms.iter().any(|wanted| {
            wanted == term
                // A single character of a script without spaces stands for all that begin with it.
                || (wanted.len() > 1 && wanted.chars().count() == 1 && wanted.chars().next() == first)
        });
        if matched {
            match marks.last_mut() {
                Some(last) if span.start <= last.end => last.end = last.end.max(span.end),
                _ => marks.push(span),
            }
        }
    });
    marks
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marked_words() {
        fn check(text: &str, terms: &[&str], expected: &[&str]) {
            let terms: Vec<String> = terms.iter().map(|t| (*t).to_string()).collect();
            let marked: Vec<&str> = matched_ranges(text, &terms).into_iter().map(|r| &text[r]).collect();
            assert_eq!(marked, expected, "{text:?}");
        }
        check("Gardens and gardening", &["garden"], &["Gardens", "gardening"]);
        check("Le Café est là", &["cafe"], &["Café"]);
        check("東京都に", &["東京", "京都"], &["東京都"]);
        check("nothing here", &["x"], &[]);
        check("", &["x"], &[]);
    }
}
