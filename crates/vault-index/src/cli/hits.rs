//! A search result for people: path, score, title, and the few lines of the passage where most of the query's words are.

use std::collections::HashSet;
use std::ops::Range;
use std::path::Path;

use vault_cli::{Paint, char_columns, sanitize_line};

use crate::search::matched_ranges;
use crate::{Hit, NameMatch};

/// The lines of one result; `path` is shown, `file` is what it opens.
pub(super) fn lines(
    hit: &Hit,
    file: &Path,
    path: &str,
    score: &str,
    explained: Option<&str>,
    paint: Paint,
) -> Vec<String> {
    let location = format!("{}{}", paint.path(path), paint.dim(&format!(":{}", hit.line)));
    let mut lines = vec![format!("{}  {}", paint.link(file, &location), paint.good(score))];
    let below_title = hit.headings.iter().filter(|heading| **heading != hit.title);
    let titles: Vec<String> = std::iter::once(&hit.title).chain(below_title).map(|text| sanitize_line(text)).collect();
    lines.push(format!("  {}", paint.bold(&titles.join(" › "))));
    for line in excerpt(&hit.text, &hit.why.terms, paint.columns() - 4) {
        lines.push(format!("    {}", painted(&line, &paint)));
    }
    if let Some(explained) = explained {
        lines.push(format!("    {}", paint.dim(explained)));
    }
    lines
}

/// The parts of a score on one line.
pub(super) fn explained(hit: &Hit, reranker: Option<&str>) -> String {
    let why = &hit.why;
    let mut parts = Vec::new();
    if let Some(estimated) = why.estimated {
        parts.push(format!("meaning about {estimated:.3} (not embedded yet) × {:.2}", why.weights.0));
    }
    if let Some(semantic) = why.semantic {
        parts.push(format!("meaning {semantic:.3} × {:.2}", why.weights.0));
    }
    parts.push(format!("words {:.3} × {:.2}", why.lexical, why.weights.1));
    let mut text = parts.join(" + ");
    if let Some(notes) = why.repeated {
        text = format!("({text}) × 0.50, since {notes} notes have this very passage");
    }
    if let Some(name) = why.name {
        let how = match name {
            NameMatch::Equal => "a name of the note is the query: above 0.9",
            NameMatch::Begins => "a name of the note begins with the query: 0.8 to 0.9",
            NameMatch::Words => "a name of the note has all words of the query: 0.8 to 0.9",
        };
        text = format!("{how}; {text}");
    }
    if let Some(before) = why.rerank {
        let by = sanitize_line(reranker.unwrap_or_default());
        text = format!("reranked {:.3} by {by}; before: rank {}, {:.3} = {text}", hit.score, before.rank, before.score);
    }
    if let Some(title) = why.title {
        text.push_str(&format!("; file name {title:.3}"));
    }
    if !why.terms.is_empty() {
        text.push_str(&format!("; found: {}", sanitize_line(&why.terms.join(", "))));
    }
    text
}

/// Lines of a passage that are shown.
const LINES: usize = 4;

/// A line of an excerpt: its pieces in order, and whether each is a matched word.
type Line = Vec<(String, bool)>;

/// The part of a passage worth showing, in lines of at most `width` columns.
fn excerpt(text: &str, terms: &[String], width: usize) -> Vec<Line> {
    let marked = matched_ranges(text, terms);
    let rows = rows(text, width.max(10));
    let first = best_window(text, &rows, &marked);
    let shown = &rows[first..rows.len().min(first + LINES)];
    let mut lines: Vec<Line> = shown.iter().map(|row| pieces(text, row.clone(), &marked)).collect();
    if let (Some(row), Some(line)) = (shown.first(), lines.first_mut())
        && first > 0
        && !starts_line(text, row.start)
    {
        line.insert(0, ("… ".to_string(), false));
    }
    if let Some(line) = lines.last_mut().filter(|_| first + LINES < rows.len()) {
        line.push((" …".to_string(), false));
    }
    lines
}

/// A line with its matched words in bold.
fn painted(line: &Line, paint: &Paint) -> String {
    line.iter().map(|(text, is_match)| if *is_match { paint.bold(text) } else { text.clone() }).collect()
}

fn starts_line(text: &str, at: usize) -> bool {
    text[..at].rfind('\n').map_or(text[..at].trim().is_empty(), |feed| text[feed..at].trim().is_empty())
}

/// The passage's lines, long ones broken between words; blank ones and headings at its start left out,
/// since the result names those already.
fn rows(text: &str, width: usize) -> Vec<Range<usize>> {
    let mut rows = Vec::new();
    let mut headings = Vec::new();
    let mut at = 0;
    for line in text.split_inclusive('\n') {
        let row = at..at + line.trim_end().len();
        at += line.len();
        if line.trim().is_empty() {
            continue;
        }
        match rows.is_empty() && is_heading(line) {
            true => wrap(text, row, width, &mut headings),
            false => wrap(text, row, width, &mut rows),
        }
    }
    if rows.is_empty() { headings } else { rows }
}

fn is_heading(line: &str) -> bool {
    let rest = line.trim_start_matches('#');
    let level = line.len() - rest.len();
    (1..=6).contains(&level) && (rest.starts_with([' ', '\t']) || rest.trim().is_empty())
}

/// Breaks one line into rows of at most `width` columns, between words where it has some.
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

/// Where to begin: the window with the most different matched words, then the most matches, then the first.
fn best_window(text: &str, rows: &[Range<usize>], marked: &[Range<usize>]) -> usize {
    let last = rows.len().saturating_sub(LINES);
    let value = |first: usize| {
        let window = rows[first].start..rows[rows.len().min(first + LINES) - 1].end;
        let inside = marked.iter().filter(|m| m.start >= window.start && m.end <= window.end);
        let words: Vec<String> = inside.map(|m| text[m.clone()].to_lowercase()).collect();
        (words.iter().collect::<HashSet<_>>().len(), words.len())
    };
    let mut best = (0, (0, 0));
    for first in (0..=last).filter(|first| *first < rows.len()) {
        let value = value(first);
        if value > best.1 {
            best = (first, value);
        }
    }
    // One row of context before the matches reads better than a match at the very top.
    let begins_with_match = |row: &Range<usize>| marked.iter().any(|m| m.start >= row.start && m.end <= row.end);
    match best.0 {
        first if first > 0 && begins_with_match(&rows[first]) && value(first - 1) == best.1 => first - 1,
        first => first,
    }
}

/// One row, cut at the borders of matched words and sanitized.
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
pub(super) mod tests {
    use super::*;
    use crate::{Reranked, VaultPath, Why};

    /// A sample.
    pub(in crate::cli) fn hit(path: &str, score: f32) -> Hit {
        Hit {
            path: VaultPath::new(path).unwrap(),
            title: "A \u{1b}[31mtitle".into(),
            headings: vec!["A \u{1b}[31mtitle".into(), "Part".into()],
            line: 7,
            end_line: 9,
            score,
            text: "## Part\n\nSome words about soil.\n".into(),
            tags: vec!["garden".into()],
            modified: "2026-01-02T03:04:05Z".parse().unwrap(),
            why: Why {
                name: None,
                semantic: Some(0.5),
                estimated: None,
                repeated: None,
                title: None,
                lexical: 0.25,
                terms: vec!["soil".into()],
                weights: (0.75, 0.25),
                rerank: None,
            },
        }
    }

    fn shown(text: &str, terms: &[&str], width: usize) -> Vec<String> {
        let terms: Vec<String> = terms.iter().map(|t| (*t).to_string()).collect();
        let mark = |(text, is_match): &(String, bool)| if *is_match { format!("*{text}*") } else { text.clone() };
        excerpt(text, &terms, width).iter().map(|line| line.iter().map(mark).collect()).collect()
    }

    #[test]
    fn excerpts() {
        fn check(text: &str, terms: &[&str], expected: &[&str]) {
            assert_eq!(shown(text, terms, 20), expected, "{text:?}");
        }
        check("", &[], &[]);
        check("\n \n", &[], &[]);
        check("short", &["short"], &["*short*"]);
        check("# Title\n\nbody\n", &[], &["body"]);
        check("# Title only\n", &[], &["# Title only"]);
        check("a\nb\nc\nd\ne", &[], &["a", "b", "c", "d …"]);
        check("one two three four five six", &["four"], &["one two three *four*", "five six"]);
        check("a\nb\nc\nd\ne\nf\ng\npear", &["pear"], &["e", "f", "g", "*pear*"]);
        check("wordwithoutanyspaces1234567", &[], &["wordwithoutanyspaces", "1234567"]);
        check("日本語の文章は空白がないので折り返す", &[], &["日本語の文章は空白が", "ないので折り返す"]);
        check("x\u{1b}[2Jy", &[], &["x␛[2Jy"]);
    }

    #[test]
    fn a_cut_at_the_start_is_shown() {
        let text = "lorem ipsum dolor sit amet consectetur adipiscing elit sed do eiusmod tempor incididunt pear fig";
        let lines = shown(text, &["pear", "fig"], 20);
        assert!(lines[0].starts_with("… "), "{lines:?}");
        assert!(lines.iter().any(|line| line.contains("*pear*")), "{lines:?}");
        assert_eq!(lines.len(), LINES);
    }

    #[test]
    fn a_block_for_people() {
        let hit = hit("Garden/Soil.md", 0.5);
        let why = explained(&hit, None);
        let lines = lines(&hit, Path::new("/v/Garden/Soil.md"), "Garden/Soil.md", "0.50", Some(&why), Paint::default());
        assert_eq!(
            lines,
            [
                "Garden/Soil.md:7  0.50",
                "  A ␛[31mtitle › Part",
                "    Some words about soil.",
                "    meaning 0.500 × 0.75 + words 0.250 × 0.25; found: soil",
            ]
        );
    }

    #[test]
    fn what_the_name_counts_is_explained() {
        let mut hit = hit("a.md", 0.98);
        hit.why.name = Some(NameMatch::Equal);
        let parts = "meaning 0.500 × 0.75 + words 0.250 × 0.25; found: soil";
        assert_eq!(explained(&hit, None), format!("a name of the note is the query: above 0.9; {parts}"));
    }

    #[test]
    fn what_a_reranker_did_is_explained() {
        let mut hit = hit("a.md", 0.875);
        hit.why.rerank = Some(Reranked { rank: 7, score: 0.4375 });
        assert_eq!(
            explained(&hit, Some("onnx:my \u{1b}model")),
            "reranked 0.875 by onnx:my ␛model; before: rank 7, 0.438 = meaning 0.500 × 0.75 + words 0.250 × 0.25; \
             found: soil"
        );
    }
}
