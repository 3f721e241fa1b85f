//! A change as text for people: totals, one line per file, then the diffs, with changed words marked.

use std::time::{Duration, Instant};

use similar::{ChangeTag, TextDiff};
use vault_tools::{FilePreview, Kind, Preview};

use crate::{Paint, char_columns, counted, most_columns, sanitize, sanitize_line};

/// The number of lines that are shown at first, if the height of the terminal is unknown.
const SHOWN_LINES: usize = 60;

/// The rows of the terminal that are reserved for the question, and the minimum number of rows that are used.
const ROWS_LEFT: usize = 4;
const LEAST_ROWS: usize = 12;

/// The length in characters from which on changed words are marked in a line.
const MARKED_FROM: usize = 60;

/// The length in characters above which words are not marked in a line, and the time limit for all marks of a change.
const MARKED_TO: usize = 20_000;
const MARKED_FOR: Duration = Duration::from_millis(300);

/// The characters of unchanged text that are kept next to a change, and the length from which on text is folded.
const KEPT: usize = 30;
const FOLDED_FROM: usize = 100;

/// Returns a change as two texts for people. The first has long lines folded around the changes and ends soon after the
/// height of the terminal, see [`cut`]; the second is complete.
pub fn texts_of(preview: &Preview) -> (String, String) {
    texts_after(Vec::new(), preview)
}

/// [`texts_of`] with other lines before the change, which count toward the height.
pub fn texts_after(head: Vec<String>, preview: &Preview) -> (String, String) {
    let mut lines = head;
    // Insert the totals after the first line, before anything that may be long.
    totals(preview).into_iter().for_each(|totals| lines.insert(lines.len().min(1), totals));
    for folder in &preview.folders {
        let what = if folder.kind == Kind::Deleted { "remove folder" } else { "make folder" };
        lines.push(format!("{what} {}", sanitize_line(&folder.path)));
    }
    for file in &preview.files {
        lines.push(file_line(file));
        lines.extend(file.inside.iter().map(|inside| format!("    {}", sanitize_line(inside))));
    }
    lines.extend(preview.notices.iter().map(|notice| format!("note: {}", sanitize_line(notice))));
    let mut whole = lines.clone();
    let deadline = Instant::now() + MARKED_FOR;
    let rows = rows(ROWS_LEFT);
    for diff in preview.files.iter().filter_map(|file| file.diff.as_ref()) {
        let diff: Vec<String> = std::iter::once(String::new()).chain(diff_lines(diff)).collect();
        if lines.len() <= rows {
            lines.extend(with_words_marked(&diff, deadline));
        }
        whole.extend(diff);
    }
    (lines.join("\n"), whole.join("\n"))
}

/// Returns the change of a file on one line.
pub(super) fn file_line(file: &FilePreview) -> String {
    let to = file.to.as_ref().map(|to| format!(" -> {}", sanitize_line(to))).unwrap_or_default();
    let counts = match file.inside.len() {
        0 => format!("+{} -{}", file.added, file.removed),
        1 => "a folder with 1 file".to_string(),
        files => format!("a folder with {files} files"),
    };
    let what = match file.kind {
        Kind::Created => "create",
        Kind::Modified => "modify",
        Kind::Renamed => "rename",
        Kind::Deleted => "delete",
    };
    format!("{what} {}{to} ({counts})", sanitize_line(&file.path))
}

/// Returns one or more hunks as two texts, as [`texts_of`] does: with changed words marked, and complete.
pub(super) fn texts_of_diff(diff: &str) -> (String, String) {
    let whole: Vec<String> = diff_lines(diff).collect();
    (with_words_marked(&whole, Instant::now() + MARKED_FOR).join("\n"), whole.join("\n"))
}

/// Whether a change has several files or hunks.
pub(super) fn has_parts(preview: &Preview) -> bool {
    let hunks = |diff: &String| diff.matches("\n@@ ").count();
    preview.files.len() > 1 || preview.files.iter().filter_map(|file| file.diff.as_ref()).any(|diff| hunks(diff) > 1)
}

/// Returns the number of rows of the terminal that a text may take beside `others`.
fn rows(others: usize) -> usize {
    Paint::stderr().height().map_or(SHOWN_LINES, |rows| rows.saturating_sub(others).max(LEAST_ROWS))
}

/// Truncates a text to the height of the terminal, with a line for the number of missing lines of the whole. Also
/// returns whether any are missing.
pub fn cut(text: &str, whole: &str) -> (String, bool) {
    cut_beside(text, whole, ROWS_LEFT)
}

/// [`cut`] where other text takes `others` rows of the terminal.
pub fn cut_beside(text: &str, whole: &str, others: usize) -> (String, bool) {
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    let fitting = fitting(&mut lines, rows(others), Paint::stderr().width().unwrap_or(usize::MAX));
    let all = whole.lines().count();
    if fitting < all {
        lines.push(format!("... {}", counted(all - fitting, "more line")));
    }
    (lines.join("\n"), fitting < all)
}

/// Truncates lines to the rows of a terminal of this width; the last line may be cut within. Returns the number of
/// complete lines.
fn fitting(lines: &mut Vec<String>, rows: usize, width: usize) -> usize {
    let mut left = rows;
    for at in 0..lines.len() {
        let needed = most_columns(&lines[at]).div_ceil(width).max(1);
        if needed <= left {
            left -= needed;
            continue;
        }
        lines.truncate(at + usize::from(left > 0));
        if left > 0 {
            let mut columns = (left * width).saturating_sub(2);
            let fits = |c: &char| {
                let fits = char_columns(*c) <= columns;
                columns = columns.saturating_sub(char_columns(*c));
                fits
            };
            lines[at] = lines[at].chars().take_while(fits).chain([' ', '…']).collect();
        }
        return at;
    }
    lines.len()
}

/// Returns the numbers of created, modified, renamed and deleted files; `None` for a single file.
fn totals(preview: &Preview) -> Option<String> {
    if preview.files.len() < 2 {
        return None;
    }
    let kinds =
        [(Kind::Created, "create"), (Kind::Renamed, "rename"), (Kind::Deleted, "delete"), (Kind::Modified, "modify")];
    let count = |kind| preview.files.iter().filter(|file| file.kind == kind).count();
    let parts = kinds.map(|(kind, what)| (count(kind), what)).into_iter().filter(|(count, _)| *count > 0);
    let parts: Vec<String> = parts.map(|(files, what)| format!("{what} {}", counted(files, "file"))).collect();
    let (added, removed) = preview.files.iter().fold((0, 0), |(a, r), file| (a + file.added, r + file.removed));
    Some(format!("in all: {} (+{added} -{removed} lines)", parts.join(", ")))
}

/// Returns the lines of a diff. If a long line replaces another one, the changed words are marked: `[-old-]`,
/// `{+new+}`.
fn with_words_marked(diff: &[String], deadline: Instant) -> Vec<String> {
    let first = diff.iter().position(|line| line.starts_with("@@")).unwrap_or(0);
    // Skip `\ No newline at end of file`, which can be between lines that belong together.
    let body: Vec<usize> = (first..diff.len()).filter(|at| !diff[*at].starts_with('\\')).collect();
    let is = |at: usize, mark: char| body.get(at).is_some_and(|line| diff[*line].starts_with(mark));
    let mut lines = diff.to_vec();
    let mut at = 0;
    while at < body.len() {
        let removed = (at..).take_while(|at| is(*at, '-')).count();
        let added = (at + removed..).take_while(|at| is(*at, '+')).count();
        if removed == added {
            for (old, new) in (at..at + removed).map(|old| (body[old], body[old + removed])) {
                (lines[old], lines[new]) = marked(&diff[old], &diff[new], deadline);
            }
        }
        at += (removed + added).max(1);
    }
    lines
}

/// Marks the words that differ in two lines of a diff. Returns the lines unchanged unless most of their text is the
/// same and neither contains text that looks like a mark.
fn marked(old: &str, new: &str, deadline: Instant) -> (String, String) {
    let as_they_are = (old.to_owned(), new.to_owned());
    let longest = old.chars().count().max(new.chars().count());
    let has_mark = |line: &str| ["{+", "+}", "[-", "-]"].iter().any(|mark| line[1..].contains(mark));
    if !(MARKED_FROM..=MARKED_TO).contains(&longest) || has_mark(old) || has_mark(new) {
        return as_they_are;
    }
    let diff = TextDiff::configure().deadline(deadline).diff_words(&old[1..], &new[1..]);
    if diff.ratio() < 0.5 {
        return as_they_are;
    }
    let line = |mark: char, tag: ChangeTag, open: &str, close: &str| {
        let mut runs: Vec<(bool, String)> = Vec::new();
        for change in diff.iter_all_changes().filter(|change| change.tag() == tag || change.tag() == ChangeTag::Equal) {
            let is_changed = change.tag() == tag;
            match runs.last_mut() {
                Some((last, text)) if *last == is_changed => text.push_str(change.value()),
                _ => runs.push((is_changed, change.value().to_owned())),
            }
        }
        let last = runs.len().saturating_sub(1);
        let texts = runs.iter().enumerate().map(|(at, (is_changed, text))| match is_changed {
            true => format!("{open}{text}{close}"),
            false => folded(text, at > 0, at < last),
        });
        format!("{mark}{}", texts.collect::<String>())
    };
    (line('-', ChangeTag::Delete, "[-", "-]"), line('+', ChangeTag::Insert, "{+", "+}"))
}

/// Folds long unchanged text with `…`: in the middle, or at its start or end if no change is next to that.
fn folded(text: &str, keep_start: bool, keep_end: bool) -> String {
    let chars: Vec<char> = text.chars().collect();
    if chars.len() < FOLDED_FROM {
        return text.to_owned();
    }
    // Cut between words.
    let space = |at: usize| chars[at].is_whitespace();
    let first = (KEPT..chars.len()).find(|at| space(*at)).unwrap_or(KEPT);
    let last = (1..=chars.len() - KEPT).rev().find(|at| space(*at - 1)).unwrap_or(chars.len() - KEPT);
    if first >= last {
        return text.to_owned();
    }
    let start: String = if keep_start { chars[..first].iter().collect() } else { String::new() };
    let end: String = if keep_end { chars[last..].iter().collect() } else { String::new() };
    format!("{start} … {end}")
}

/// Returns the lines of one file's diff. If the changed lines have different line endings, those with a Windows line
/// ending are marked with `^M`.
fn diff_lines(diff: &str) -> impl Iterator<Item = String> {
    let hunks = diff.split('\n').position(|line| line.starts_with("@@")).unwrap_or(0);
    let is_changed = |line: &str| line.starts_with(['+', '-']);
    let changed = diff.split('\n').skip(hunks).filter(|line| is_changed(line));
    let mut ends = changed.map(|line| line.ends_with('\r'));
    let first = ends.next();
    let differ = ends.any(|end| Some(end) != first);
    diff.lines().zip(diff.split('\n')).enumerate().map(move |(at, (line, whole))| {
        let mark = if differ && whole.ends_with('\r') && at >= hunks && is_changed(whole) { "^M" } else { "" };
        format!("{}{mark}", sanitize(line))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ends_of_lines_show_where_they_change() {
        let lines = |diff| diff_lines(diff).collect::<Vec<_>>();
        assert_eq!(lines("@@\n-a\r\n+a\n b\r\n"), ["@@", "-a^M", "+a", " b"]);
        assert_eq!(lines("-a\r\n+b\r\n"), ["-a", "+b"]);
        assert_eq!(lines("-a\n+b\n"), ["-a", "+b"]);
        assert_eq!(lines("--- a\n+++ b\n@@\n--- a\r\n+++ b\n")[3..], ["--- a^M", "+++ b"]);
    }

    #[test]
    fn long_lines_are_folded_around_what_changed() {
        let prose = "The quick brown fox jumps over the lazy dog, as it does. ".repeat(5);
        let diff = ["@@", &format!("-{prose}end {prose}"), &format!("+{prose}END {prose}"), "-short a", "+short b"];
        let lines = with_words_marked(&diff.map(str::to_owned), soon());
        assert_eq!(lines[1], "- … over the lazy dog, as it does. [-end-] The quick brown fox jumps over … ");
        assert_eq!(lines[2], "+ … over the lazy dog, as it does. {+END+} The quick brown fox jumps over … ");
        assert_eq!(lines[3..], ["-short a", "+short b"]);
        let (old, new) =
            (format!("-{prose}"), format!("+{}", "Nothing of this is the same text at all here. ".repeat(4)));
        assert_eq!(marked(&old, &new, soon()), (old.clone(), new.clone()));
        // Words that are too far apart to fold between stay.
        let word = "x".repeat(120);
        assert_eq!(folded(&format!("a {word} b"), true, true), format!("a {word} b"));
    }

    fn soon() -> Instant {
        Instant::now() + Duration::from_secs(60)
    }

    #[test]
    fn lines_are_marked_where_the_marks_are_certain() {
        let prose = "The quick brown fox jumps over the lazy dog, as it does, and so on.";
        let pair = |old: &str, new: &str| {
            let diff = ["--- a", "+++ b", "@@", old, "\\ No newline at end of file", new].map(str::to_owned);
            with_words_marked(&diff, soon())
        };
        let (old, new) = (format!("-{prose} end"), format!("+{prose} END"));
        assert_eq!(pair(&old, &new)[3], format!("-{prose} [-end-]"));
        assert_eq!(pair(&old, &new)[5], format!("+{prose} {{+END+}}"));
        // Text that looks like a mark.
        let fake = format!("+{prose} {{+END+}}");
        assert_eq!(pair(&old, &fake)[3..], [old.clone(), "\\ No newline at end of file".to_owned(), fake]);
        // Lines that look like headers are marked too.
        let pair = pair(&format!("--- {prose} end"), &format!("+++ {prose} END"));
        assert!(pair[3].ends_with("[-end-]") && pair[5].ends_with("{+END+}"), "{pair:?}");
        // A line of any length costs no more than its text.
        let (old, new) = ("-a ".to_owned() + &"word ".repeat(6_000), "+b ".to_owned() + &"word ".repeat(6_000));
        assert_eq!(marked(&old, &new, soon()), (old.clone(), new.clone()));
    }

    #[test]
    fn what_wraps_is_cut_to_the_rows() {
        let cut = |lines: &[&str], rows| {
            let mut lines: Vec<String> = lines.iter().map(|line| line.to_string()).collect();
            (fitting(&mut lines, rows, 10), lines.join("|"))
        };
        assert_eq!(cut(&["a", "", "b"], 3), (3, "a||b".to_owned()));
        assert_eq!(cut(&["a", &"日".repeat(6), "b"], 3), (2, format!("a|{}", "日".repeat(6))));
        assert_eq!(cut(&["a", &"x".repeat(25), "b"], 3), (1, format!("a|{} …", "x".repeat(18))));
    }
}
