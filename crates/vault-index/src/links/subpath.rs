//! Resolves a link's `#Heading`, `#Heading#Below it` or `#^block` to a heading or block of a note.

use unicode_normalization::UnicodeNormalization;

use super::names::fold_case;

/// The heading that a subpath leads to, as an index into `headings` (level and text, in order).
///
/// `subpath` is the text after the first `#`, with or without it. Several segments descend: the last one names the
/// heading, the others name headings above it, outermost first; levels may be omitted. The first match wins. Segments
/// are compared without case, runs of white space, and punctuation other than `'`, `-` and `_`. Also `None` if the
/// subpath names a block. Linear in the number of headings.
pub fn heading_at(headings: &[(u8, &str)], subpath: &str) -> Option<usize> {
    if segments(subpath).last()?.trim_start().starts_with('^') {
        return None;
    }
    let mut wanted: Vec<String> = segments(subpath).map(fold).collect();
    let last = wanted.pop()?;
    (0..headings.len()).find(|&at| fold(headings[at].1) == last && lies_below(headings, at, &wanted))
}

/// Whether the headings above heading `at` include these, in this order, outermost first.
fn lies_below(headings: &[(u8, &str)], at: usize, mut wanted: &[String]) -> bool {
    let mut level = headings[at].0;
    for &(above, text) in headings[..at].iter().rev() {
        let Some((nearest, others)) = wanted.split_last() else { break };
        if above < level {
            level = above;
            if fold(text) == *nearest {
                wanted = others;
            }
        }
    }
    wanted.is_empty()
}

/// The block that a subpath leads to, as an index into `ids` (without `^`). Also `None` if the subpath does not name a
/// block.
///
/// The form is `#^id`, or `^id` as the last segment; an id consists of letters, digits and dashes, in any case.
pub fn block_at(ids: &[&str], subpath: &str) -> Option<usize> {
    let id = segments(subpath).last()?.trim().strip_prefix('^')?;
    if id.is_empty() || !id.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-') {
        return None;
    }
    ids.iter().position(|other| other.eq_ignore_ascii_case(id))
}

/// The heading that a Markdown link names in the style of web sites: `#how-to-prune`, and `#how-to-prune-1` for the
/// second heading with that text. Also `None` if the subpath names a block. Linear in the number of headings.
pub fn slug_at(headings: &[(u8, &str)], subpath: &str) -> Option<usize> {
    let wanted = slug(subpath);
    let same = |wanted: &str, n| (0..headings.len()).filter(|&at| slug(headings[at].1) == wanted).nth(n);
    same(&wanted, 0).filter(|_| !wanted.is_empty()).or_else(|| {
        let (text, number) = wanted.rsplit_once('-')?;
        same(text, number.parse().ok()?)
    })
}

/// The anchor of a heading in the style of web sites: `How to prune?` becomes `how-to-prune`.
pub(crate) fn slug(text: &str) -> String {
    let words = text.split(|c: char| c.is_whitespace() || c == '-');
    let words = words.map(|word| word.chars().filter(|&c| c.is_alphanumeric() || c == '_').collect::<String>());
    fold_case(&words.filter(|word| !word.is_empty()).collect::<Vec<_>>().join("-").nfc().collect::<String>())
}

fn segments(subpath: &str) -> impl Iterator<Item = &str> {
    subpath.split('#').filter(|segment| !segment.trim().is_empty())
}

/// Normalizes a heading or a segment for comparison.
fn fold(text: &str) -> String {
    let is_gap = |c: char| c.is_whitespace() || (c.is_ascii_punctuation() && !matches!(c, '\'' | '-' | '_'));
    let words: Vec<&str> = text.split(is_gap).filter(|word| !word.is_empty()).collect();
    fold_case(&words.join(" ").nfc().collect::<String>())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headings() {
        let headings = [
            (1, "Plan"),
            (2, "To do"),
            (3, "Later: maybe?"),
            (1, "Log"),
            (2, "To do"),
            (2, "C# and `F#`"),
            (4, "Don't-stop_now"),
            (2, "Cafe\u{301} ΟΔΟΣ"),
            (1, "???"),
        ];
        for (subpath, expected) in [
            ("Plan", Some(0)),
            ("#plan", Some(0)),
            ("  PLAN ", Some(0)),
            ("To do", Some(1)),
            ("to   do", Some(1)),
            ("To\u{a0}do", Some(1)),
            ("Plan#To do", Some(1)),
            ("Log#To do", Some(4)),
            ("#Log##To do#", Some(4)),
            ("Plan#Later maybe", Some(2)),
            ("Plan#To do#Later: maybe", Some(2)),
            ("To do#Plan", None),
            ("Log#Later maybe", None),
            ("Plan#Log", None),
            ("C and F", Some(5)),
            ("C and `F`", Some(5)),
            // `#` is a separator, so this heading cannot be named as it is written.
            ("C# and F", None),
            ("Don't-stop_now", Some(6)),
            ("Dont stop now", None),
            ("Log#Don't-stop_now", Some(6)),
            ("caf\u{e9} οδοσ", Some(7)),
            ("CAFÉ οδος", Some(7)),
            ("!?", Some(8)),
            ("", None),
            ("#", None),
            ("^plan", None),
            ("Plan#^todo", None),
            ("Nowhere", None),
        ] {
            assert_eq!(heading_at(&headings, subpath), expected, "{subpath:?}");
        }
        assert_eq!(heading_at(&[], "x"), None);
    }

    #[test]
    fn slugs() {
        let headings = [(1, "How to prune?"), (2, "C & D"), (2, "Usage"), (2, "Usage"), (2, "Über_x")];
        for (subpath, expected) in [
            ("how-to-prune", Some(0)),
            ("c--d", Some(1)),
            ("c-d", Some(1)),
            ("usage", Some(2)),
            ("usage-1", Some(3)),
            ("usage-2", None),
            ("über_x", Some(4)),
            ("prune", None),
            ("", None),
        ] {
            assert_eq!(slug_at(&headings, subpath), expected, "{subpath:?}");
        }
    }

    #[test]
    fn a_heading_is_not_above_its_neighbour() {
        let headings = [(2, "a"), (2, "b"), (1, "c"), (3, "b")];
        assert_eq!(heading_at(&headings, "a#b"), None);
        assert_eq!(heading_at(&headings, "c#b"), Some(3));
    }

    #[test]
    fn blocks() {
        let ids = ["abc", "x-1", "quote"];
        for (subpath, expected) in [
            ("^abc", Some(0)),
            ("#^ABC", Some(0)),
            ("^X-1", Some(1)),
            ("Heading#^quote", Some(2)),
            ("abc", None),
            ("^", None),
            ("^a b", None),
            ("^nope", None),
        ] {
            assert_eq!(block_at(&ids, subpath), expected, "{subpath:?}");
        }
    }
}
