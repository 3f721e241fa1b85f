//! A change as text for people: totals, one line per file, then the diffs, with the words that changed.

use similar::{ChangeTag, TextDiff};
use vault_cli::{Paint, counted, sanitize, sanitize_line};

use crate::change::{Kind, Preview};

/// Lines that are shown until somebody asks for all of them, where no terminal says how many fit.
const SHOWN_LINES: usize = 60;

/// Rows of the terminal that are left for the question, and the least that are used.
const ROWS_LEFT: usize = 4;
const LEAST_ROWS: usize = 12;

/// Characters of a line from which on the words that changed are marked in it.
const MARKED_FROM: usize = 60;

/// Characters of unchanged text that are kept beside a change, and the length from which on text is folded.
const KEPT: usize = 30;
const FOLDED_FROM: usize = 100;

/// A change for people; the first text has long lines folded around what changed and is cut to the terminal's height, the
/// second is whole.
pub(super) fn texts_of(preview: &Preview) -> (String, String) {
    texts_after(Vec::new(), preview)
}

/// The same with other lines before it, which count for the height.
pub(super) fn texts_after(head: Vec<String>, preview: &Preview) -> (String, String) {
    let mut lines = head;
    lines.extend(totals(preview));
    for folder in &preview.folders {
        let what = if folder.kind == Kind::Deleted { "remove folder" } else { "make folder" };
        lines.push(format!("{what} {}", sanitize_line(&folder.path)));
    }
    for file in &preview.files {
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
        lines.push(format!("{what} {}{to} ({counts})", sanitize_line(&file.path)));
        lines.extend(file.inside.iter().map(|inside| format!("    {}", sanitize_line(inside))));
    }
    lines.extend(preview.notices.iter().map(|notice| format!("note: {}", sanitize_line(notice))));
    let mut whole = lines.clone();
    let rows = Paint::stderr().height().map_or(SHOWN_LINES, |rows| rows.saturating_sub(ROWS_LEFT).max(LEAST_ROWS));
    for diff in preview.files.iter().filter_map(|file| file.diff.as_ref()) {
        let diff: Vec<String> = std::iter::once(String::new()).chain(diff_lines(diff)).collect();
        if lines.len() <= rows {
            lines.extend(with_words_marked(&diff));
        }
        whole.extend(diff);
    }
    if lines.len() > rows {
        lines.truncate(rows);
        lines.push(format!("... {} more lines", whole.len() - rows));
    }
    (lines.join("\n"), whole.join("\n"))
}

/// How many files are made, changed, renamed and deleted; nothing for a single one.
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

/// The lines of a diff, with what changed marked in long lines that take the place of one another: `[-old-]`, `{+new+}`.
fn with_words_marked(diff: &[String]) -> Vec<String> {
    let is = |at: usize, mark: char| {
        let line = diff.get(at).map_or("", String::as_str);
        line.starts_with(mark) && !line.starts_with("---") && !line.starts_with("+++")
    };
    let mut lines = diff.to_vec();
    let mut at = 0;
    while at < diff.len() {
        let removed = (at..).take_while(|at| is(*at, '-')).count();
        let added = (at + removed..).take_while(|at| is(*at, '+')).count();
        if removed == added {
            for (old, new) in (at..at + removed).map(|old| (old, old + removed)) {
                (lines[old], lines[new]) = marked(&diff[old], &diff[new]);
            }
        }
        at += (removed + added).max(1);
    }
    lines
}

/// Two lines of a diff with the words marked that differ, if most of their text is the same.
fn marked(old: &str, new: &str) -> (String, String) {
    let diff = TextDiff::from_words(&old[1..], &new[1..]);
    if old.chars().count().max(new.chars().count()) < MARKED_FROM || diff.ratio() < 0.5 {
        return (old.to_owned(), new.to_owned());
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

/// Unchanged text, cut in the middle if it is long, or where nothing changes before or after it.
fn folded(text: &str, keep_start: bool, keep_end: bool) -> String {
    let chars: Vec<char> = text.chars().collect();
    if chars.len() < FOLDED_FROM {
        return text.to_owned();
    }
    // Words stay whole.
    let space = |at: usize| chars[at].is_whitespace();
    let first = (KEPT..chars.len()).find(|at| space(*at)).unwrap_or(KEPT);
    let last = (1..=chars.len() - KEPT).rev().find(|at| space(*at - 1)).unwrap_or(chars.len() - KEPT);
    let start: String = if keep_start { chars[..first].iter().collect() } else { String::new() };
    let end: String = if keep_end { chars[last..].iter().collect() } else { String::new() };
    format!("{start} … {end}")
}

/// The lines of one file's diff. Where lines change whose ends differ, those that end as on Windows are marked.
fn diff_lines(diff: &str) -> impl Iterator<Item = String> {
    let is_changed =
        |line: &&str| line.starts_with(['+', '-']) && !line.starts_with("+++ ") && !line.starts_with("--- ");
    let mut ends = diff.split('\n').filter(is_changed).map(|line| line.ends_with('\r'));
    let first = ends.next();
    let differ = ends.any(|end| Some(end) != first);
    diff.lines().zip(diff.split('\n')).map(move |(line, whole)| {
        let mark = if differ && whole.ends_with('\r') && is_changed(&whole) { "^M" } else { "" };
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
    }

    #[test]
    fn long_lines_are_folded_around_what_changed() {
        let prose = "The quick brown fox jumps over the lazy dog, as it does. ".repeat(5);
        let diff = ["@@", &format!("-{prose}end {prose}"), &format!("+{prose}END {prose}"), "-short a", "+short b"];
        let lines = with_words_marked(&diff.map(str::to_owned));
        assert_eq!(lines[1], "- … over the lazy dog, as it does. [-end-] The quick brown fox jumps over … ");
        assert_eq!(lines[2], "+ … over the lazy dog, as it does. {+END+} The quick brown fox jumps over … ");
        assert_eq!(lines[3..], ["-short a", "+short b"]);
        let (old, new) =
            (format!("-{prose}"), format!("+{}", "Nothing of this is the same text at all here. ".repeat(4)));
        assert_eq!(marked(&old, &new), (old.clone(), new.clone()));
    }
}
