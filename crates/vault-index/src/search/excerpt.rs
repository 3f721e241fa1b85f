//! The part of a passage that shows best that it matches: where most of the query's words are close together.

use std::collections::HashSet;

use crate::chunk::HEADING_MARK;
use crate::search::hit::matched_ranges;

/// The bytes that a reader sees at a glance: about four lines of a terminal.
const WINDOW: usize = 300;

/// The start of the best part of a passage, which is a matched word: the part with the most distinct matched words,
/// then with the most, then the first. Headings count only if nothing below them matches. `None`: nothing matches.
pub fn best_match(text: &str, terms: &[String]) -> Option<usize> {
    let all = matched_ranges(text, terms);
    let below = all.partition_point(|mark| mark.start < body_start(text));
    let marks = if below < all.len() { &all[below..] } else { &all[..] };
    let words: Vec<String> = marks.iter().map(|mark| text[mark.clone()].to_lowercase()).collect();
    let mut best = (0, 0);
    let mut at = None;
    for (first, mark) in marks.iter().enumerate() {
        let end = first + marks[first..].partition_point(|other| other.end <= mark.start + WINDOW).max(1);
        let window = &words[first..end];
        let value = (window.iter().collect::<HashSet<_>>().len(), window.len());
        if value > best {
            (best, at) = (value, Some(mark.start));
        }
    }
    at
}

/// The start of a passage's text, after blank lines and headings, either in Markdown or as [`readable`] renders them; 0
/// if there is nothing else.
///
/// [`readable`]: crate::readable
pub fn body_start(text: &str) -> usize {
    let mut at = 0;
    for line in text.split_inclusive('\n') {
        if !line.trim().is_empty() && !is_heading(line) {
            return at;
        }
        at += line.len();
    }
    0
}

fn is_heading(line: &str) -> bool {
    if line.starts_with(HEADING_MARK) {
        return true;
    }
    let rest = line.trim_start_matches('#');
    let level = line.len() - rest.len();
    (1..=6).contains(&level) && (rest.starts_with([' ', '\t']) || rest.trim().is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_best_part_of_a_passage() {
        fn check(text: &str, terms: &[&str], expected: Option<&str>) {
            let terms: Vec<String> = terms.iter().map(|term| (*term).to_string()).collect();
            let best = best_match(text, &terms).map(|at| &text[at..]);
            assert!(best.zip(expected).is_none_or(|(best, expected)| best.starts_with(expected)), "{best:?}");
            assert_eq!(best.is_some(), expected.is_some(), "{text:?}");
        }
        let far = " and so on".repeat(40);
        check("a pear, then a fig", &["pear", "fig"], Some("pear, then"));
        check(&format!("a pear alone{far} a pear beside a fig"), &["pear", "fig"], Some("pear beside"));
        check(&format!("a pear alone{far} a pear beside a pear"), &["pear"], Some("pear beside"));
        check(&format!("a pear first{far} a pear last"), &["pear"], Some("pear first"));
        check("# A pear\n\nIt is a pear tree.", &["pear"], Some("pear tree"));
        check("# A pear\n\nIt is a tree.", &["pear"], Some("pear\n"));
        check("# Only a pear", &["pear"], Some("pear"));
        check("nothing", &["pear"], None);
        check("", &["pear"], None);
    }

    #[test]
    fn where_the_text_begins() {
        for (text, begins) in [
            ("# A\n\n## B\ntext", "text"),
            ("text # A", "text # A"),
            ("# only", "# only"),
            ("", ""),
            ("#tag\n", "#tag\n"),
            ("› A\ntext", "text"),
        ] {
            assert_eq!(&text[body_start(text)..], begins);
        }
    }
}
