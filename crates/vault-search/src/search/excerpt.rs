//! Excerpts of passages: the lines with most of the query's words, without markup, within a width and a height.

use std::borrow::Cow;
use std::ops::Range;

use vault_index::{HEADING_MARK, best_match, body_start, matched_ranges, readable};

use crate::sanitize::fitting;
use crate::{Paint, char_columns, most_columns, sanitize_line};

/// A line of an excerpt: its pieces in order, each with whether it is a matched word.
type Line = Vec<(String, bool)>;

/// The mark where text is truncated, and its columns with the space next to it.
const CUT: &str = "…";
const CUT_COLUMNS: usize = 2;

/// Returns the lines that show best why a passage matches: at most `height` lines of at most `width` columns, with
/// matched words in bold.
pub(super) fn excerpt(text: &str, terms: &[String], width: usize, height: usize, paint: &Paint) -> Vec<String> {
    let text = seen(text, terms);
    let lines = if height == 1 { vec![one_line(&text, terms, width)] } else { lines(&text, terms, width, height) };
    lines.iter().filter(|line| !line.is_empty()).map(|line| painted(line, paint)).collect()
}

/// Returns an excerpt on one line. Its words may be from several lines of the note.
pub(super) fn snippet(text: &str, terms: &[String], width: usize, paint: &Paint) -> String {
    painted(&one_line(&seen(text, terms), terms, width), paint)
}

/// Returns the text without its markup. Keeps the markup if words match only there, for example in the target of a
/// link.
fn seen<'a>(text: &'a str, terms: &[String]) -> Cow<'a, str> {
    let readable = readable(text);
    let is_lost = || best_match(&readable, terms).is_none() && best_match(text, terms).is_some();
    if readable.is_empty() || is_lost() { Cow::Borrowed(text) } else { Cow::Owned(readable) }
}

fn lines(text: &str, terms: &[String], width: usize, height: usize) -> Vec<Line> {
    let marked = matched_ranges(text, terms);
    // Reserve columns for the mark in all rows, because any of them may be the one that is truncated.
    let rows = rows(text, width.saturating_sub(CUT_COLUMNS).max(8));
    let matches = |row: &Range<usize>| marked.iter().any(|mark| mark.start < row.end && mark.end > row.start);
    let best = best_match(text, terms).map_or(0, |at| rows.partition_point(|row| row.end <= at));
    // Show one row of context before the match, and use the whole height; but show no other match before the best one.
    let earliest = rows[..best.min(rows.len())].iter().rposition(matches).map_or(0, |row| row + 1);
    let first = best.saturating_sub(1).min(rows.len().saturating_sub(height)).max(earliest).min(best);
    let mut shown = &rows[first.min(rows.len())..rows.len().min(first + height)];
    // A heading at the end is useless without the text under it.
    while let [_, .., last] = shown
        && is_heading(text, last.start)
        && !matches(last)
    {
        shown = &shown[..shown.len() - 1];
    }
    let mut lines: Vec<Line> = shown.iter().map(|row| pieces(text, row.clone(), &marked)).collect();
    if let (Some(row), Some(line)) = (shown.first(), lines.first_mut())
        && !starts_line(text, row.start)
    {
        line.insert(0, (format!("{CUT} "), false));
    }
    if let Some(line) = lines.last_mut().filter(|_| first + shown.len() < rows.len()) {
        line.push((format!(" {CUT}"), false));
    }
    lines
}

fn one_line(text: &str, terms: &[String], width: usize) -> Line {
    let marked = matched_ranges(text, terms);
    // The headings before the text are not repeated, even if they match.
    let at = best_match(text, terms).unwrap_or(0).max(body_start(text));
    let line = text[..at].rfind('\n').map_or(0, |feed| feed + 1);
    let start = start_before(text, line, at, width / 3);
    let is_cut = !text[line..start].trim().is_empty();
    let width = width.saturating_sub(if is_cut { CUT_COLUMNS } else { 0 });

    let mut shown = Line::new();
    if is_cut {
        shown.push((format!("{CUT} "), false));
    }
    let mut left = width;
    let begins = start + (text[start..].len() - text[start..].trim_start().len());
    let end = text.trim_end().len().max(begins);
    // Add words, each with the space before it, while there is room for the mark that more text follows.
    let mut at = begins;
    // The position of a heading at the end of the line so far, after which no text has been added yet.
    let mut heading: Option<usize> = None;
    while at < end {
        let space = text[at..end].len() - text[at..end].trim_start().len();
        let from = at + space;
        if text[at..from].contains('\n') {
            heading = is_heading(text, from).then_some(shown.len());
        }
        let to = text[from..end].find(char::is_whitespace).map_or(end, |length| from + length);
        let gap = usize::from(space > 0);
        let room = left.saturating_sub(if to < end { CUT_COLUMNS } else { 0 });
        let columns = gap + most_columns(&text[from..to]);
        if columns > room {
            // A word that fills the line, as in a script without spaces, is truncated at the end of the line.
            let fits = fitting(&text[from..to], left.saturating_sub(gap + CUT_COLUMNS));
            if fits > 0 && (columns > width / 2 || at == begins) {
                push(&mut shown, text, gap, from..from + fits, &marked);
            }
            without_heading(&mut shown, heading.take());
            shown.push((format!(" {CUT}"), false));
            break;
        }
        push(&mut shown, text, gap, from..to, &marked);
        left -= columns;
        at = to;
    }
    if without_heading(&mut shown, heading) {
        shown.push((format!(" {CUT}"), false));
    }
    shown
}

/// Removes the heading at the end of a line, which begins at the piece `heading`, unless it contains a matched word.
/// Returns whether it was removed.
fn without_heading(line: &mut Line, heading: Option<usize>) -> bool {
    let Some(from) = heading.filter(|from| !line[*from..].iter().any(|(_, is_match)| *is_match)) else { return false };
    line.truncate(from);
    true
}

fn is_heading(text: &str, at: usize) -> bool {
    let line = text[..at].rfind('\n').map_or(0, |feed| feed + 1);
    text[line..].starts_with(HEADING_MARK)
}

fn push(line: &mut Line, text: &str, gap: usize, word: Range<usize>, marked: &[Range<usize>]) {
    if gap > 0 {
        line.push((" ".to_string(), false));
    }
    line.extend(pieces(text, word, marked));
}

/// Returns the position from which at most `width` columns of the line come before `at`: the line's start, or the start
/// of a word.
fn start_before(text: &str, line: usize, at: usize, width: usize) -> usize {
    let mut columns = 0;
    let mut word = at;
    for (offset, c) in text[line..at].char_indices().rev() {
        columns += char_columns(c);
        if columns > width {
            return word;
        }
        if c.is_whitespace() {
            word = line + offset + c.len_utf8();
        }
    }
    line
}

/// Returns a line as text, with its matched words in bold.
fn painted(line: &Line, paint: &Paint) -> String {
    line.iter().map(|(text, is_match)| if *is_match { paint.bold(text) } else { text.clone() }).collect()
}

fn starts_line(text: &str, at: usize) -> bool {
    text[..at].rfind('\n').map_or(text[..at].trim().is_empty(), |feed| text[feed..at].trim().is_empty())
}

/// Returns the lines of the passage, with long ones wrapped between words. Leaves out blank lines, and the headings at
/// its start, because the result already names those.
fn rows(text: &str, width: usize) -> Vec<Range<usize>> {
    let mut rows = Vec::new();
    let mut at = body_start(text);
    for line in text[at..].split_inclusive('\n') {
        let row = at..at + line.trim_end().len();
        at += line.len();
        if !line.trim().is_empty() {
            wrap(text, row, width, &mut rows);
        }
    }
    rows
}

/// Wraps one line to rows of at most `width` columns, between words if it has several.
fn wrap(text: &str, line: Range<usize>, width: usize, rows: &mut Vec<Range<usize>>) {
    let mut start = line.start;
    let mut columns = 0;
    let mut space = None;
    let mut at = line.start;
    while at < line.end {
        let Some(c) = text[at..].chars().next() else { break };
        let next = at + c.len_utf8();
        columns += char_columns(c);
        if c.is_whitespace() && at > start {
            space = Some(at);
        }
        if columns > width {
            let (end, resume) = match space {
                Some(space) if space > start => (space, space + text[space..].chars().next().map_or(0, char::len_utf8)),
                _ if at > start => (at, at),
                _ => (next, next),
            };
            rows.push(start..end);
            start = resume;
            at = resume;
            (columns, space) = (0, None);
            continue;
        }
        at = next;
    }
    if !text[start..line.end].trim().is_empty() {
        rows.push(start..line.end);
    }
}

/// Splits one row at the borders of matched words, and sanitizes the pieces.
fn pieces(text: &str, row: Range<usize>, marked: &[Range<usize>]) -> Line {
    let mut line = Line::new();
    let mut at = row.start;
    for mark in marked.iter().filter(|m| m.end > row.start && m.start < row.end) {
        let (from, to) = (mark.start.max(at), mark.end.min(row.end));
        if from > at {
            line.push((sanitize_line(&text[at..from]), false));
        }
        if to > from {
            line.push((sanitize_line(&text[from..to]), true));
            at = to;
        }
    }
    if at < row.end {
        line.push((sanitize_line(&text[at..row.end]), false));
    }
    line
}

#[cfg(test)]
mod tests {
    use crate::columns;
    use proptest::prelude::*;

    use super::*;

    fn shown(lines: Vec<Line>) -> Vec<String> {
        let mark = |(text, is_match): &(String, bool)| if *is_match { format!("*{text}*") } else { text.clone() };
        lines.iter().map(|line| line.iter().map(mark).collect()).collect()
    }

    fn terms(terms: &[&str]) -> Vec<String> {
        terms.iter().map(|term| (*term).to_string()).collect()
    }

    #[test]
    fn some_lines() {
        fn check(text: &str, words: &[&str], expected: &[&str]) {
            assert_eq!(shown(lines(text, &terms(words), 22, 4)), expected, "{text:?}");
        }
        check("", &[], &[]);
        check("\n \n", &[], &[]);
        check("short", &["short"], &["*short*"]);
        check("› Title\nbody\n", &[], &["body"]);
        check("› Title only\n", &[], &["› Title only"]);
        check("body\n› Next", &[], &["body …"]);
        check("body\n› A heading of two rows", &[], &["body …"]);
        check("body\n› Next\nmore", &[], &["body", "› Next", "more"]);
        check("body\n› Next", &["next"], &["body", "› *Next*"]);
        check("a\nb\nc\nd\ne", &[], &["a", "b", "c", "d …"]);
        check("one two three four five six", &["four"], &["one two three *four*", "five six"]);
        check("a\nb\nc\nd\ne\nf\ng\npear", &["pear"], &["e", "f", "g", "*pear*"]);
        check("a\npear\nb\nc\nd\ne\nf", &["pear"], &["a", "*pear*", "b", "c …"]);
        check("wordwithoutanyspaces1234567", &[], &["wordwithoutanyspaces", "1234567"]);
        check("日本語の文章は空白がないので折り返す", &[], &["日本語の文章は空白が", "ないので折り返す"]);
        check("x\u{1b}[2Jy", &[], &["x␛[2Jy"]);
        let long = "lorem ipsum dolor sit amet consectetur adipiscing elit sed do eiusmod tempor incididunt pear fig";
        check(
            long,
            &["pear", "fig"],
            &["… sit amet consectetur", "adipiscing elit sed", "do eiusmod tempor", "incididunt *pear* *fig*"],
        );
    }

    #[test]
    fn one_of_them() {
        fn check(text: &str, words: &[&str], expected: &str) {
            assert_eq!(shown(vec![one_line(text, &terms(words), 30)]), [expected], "{text:?}");
        }
        check("", &[], "");
        check("short\n  and \n\nsweet", &["sweet"], "*sweet*");
        check("- one pear\n- two figs\n- three plums", &["pear"], "- one *pear* - two figs - …");
        check("the long way round to a pear on the table", &["pear"], "… to a *pear* on the table");
        check("the long way round to a pear on the table of fruit", &["pear"], "… to a *pear* on the table of …");
        check("日本語の文章は空白がないので折り返すことができない", &[], "日本語の文章は空白がないので …");
        check("a pear\n› Next", &["pear"], "a *pear* …");
        check("a pear\n› A long heading of the next part\nmore", &["pear"], "a *pear* …");
        check("a pear\n› Next\nmore", &["pear"], "a *pear* › Next more");
    }

    #[test]
    fn as_a_person_sees_it() {
        fn check(text: &str, words: &[&str], expected: &[&str]) {
            let text = seen(text, &terms(words));
            assert_eq!(shown(lines(&text, &terms(words), 40, 4)), expected, "{text:?}");
        }
        check(
            "## A\n\n---\n[[Pears|The pear]] and its [[Soil]]\n\n| Tree | pH |\n|--|--|\n| pear | 6 |\n\n## Related",
            &["pear"],
            &["The *pear* and its Soil", "Tree · pH", "*pear* · 6 …"],
        );
        check("see [this](https://x.y/pear)", &["pear"], &["see [this](https://x.y/*pear*)"]);
        check("---\n", &[], &["---"]);
    }

    proptest! {
        /// Whatever a passage holds, no line is wider than the terminal, and the best match is shown.
        #[test]
        fn lines_fit(
            words in proptest::collection::vec("[a-z]{1,12}|pear|日本語{1,9}|☀\u{fe0f}|👩\u{200d}🌾|🇨🇭|e\u{301}|\t|\n|\n\n# |\u{200b}|\u{1b}", 0..60),
            width in 20..=120_usize,
            height in 1..=4_usize,
        ) {
            let text = words.join(" ");
            let terms = terms(&["pear"]);
            let lines = excerpt(&text, &terms, width, height, &Paint::default());
            prop_assert!(lines.len() <= height);
            for line in lines.iter().chain([&crate::cut_to(&sanitize_line(&text), width)]) {
                prop_assert!(most_columns(line) <= width && columns(line) <= width, "{:?} in {} columns", line, width);
            }
            let text = seen(&text, &terms);
            if best_match(&text, &terms).is_some_and(|at| at >= body_start(&text)) {
                let is_shown = lines.iter().any(|line| line.contains("pear"));
                prop_assert!(is_shown, "no pear in {:?} of {:?}", lines, text);
            }
        }
    }
}
