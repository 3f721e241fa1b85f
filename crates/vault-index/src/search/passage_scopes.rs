//! The lines, blocks, sections and tasks of a text, in which things stand together.

/// The blocks: runs of lines without a blank one between them, of which each item of a list begins another.
pub(super) fn blocks(text: &str) -> Vec<&str> {
    parts(text, |line| item(line).is_some())
}

/// The tasks, each with its mark: items of lists that begin with a mark between brackets, and the lines that go on.
pub(super) fn tasks(text: &str) -> Vec<(char, &str)> {
    blocks(text).into_iter().filter_map(|block| Some((mark(item(block)?)?, block))).collect()
}

/// Runs of lines without a blank one between them, of which each line that `begins` one begins another.
fn parts(text: &str, begins: impl Fn(&str) -> bool) -> Vec<&str> {
    let mut parts = Vec::new();
    let (mut start, mut at) = (0, 0);
    for line in text.split_inclusive('\n') {
        let is_blank = line.trim().is_empty();
        if (is_blank || begins(line)) && start < at {
            parts.push(&text[start..at]);
            start = at;
        }
        at += line.len();
        if is_blank {
            start = at;
        }
    }
    if start < at {
        parts.push(&text[start..at]);
    }
    parts
}

/// What follows the mark of a list's item at the beginning of a line, within quotes too.
fn item(line: &str) -> Option<&str> {
    let line = line.trim_start_matches([' ', '\t', '>']);
    let digits = line.bytes().take_while(u8::is_ascii_digit).count();
    let behind = match digits {
        0 => line.strip_prefix(['-', '*', '+'])?,
        1..=9 => line[digits..].strip_prefix(['.', ')'])?,
        _ => return None,
    };
    behind.starts_with([' ', '\t']).then(|| behind.trim_start_matches([' ', '\t']))
}

/// The mark between the brackets of a task.
fn mark(item: &str) -> Option<char> {
    let mut inside = item.strip_prefix('[')?.chars();
    let mark = inside.next()?;
    let behind = inside.as_str().strip_prefix(']')?;
    behind.starts_with(char::is_whitespace).then_some(mark)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_and_tasks() {
        let text = "One\ntwo\n\n- [ ] call Ann\n  today\n- [x] mail\n\t* [-] dropped\n\n> 1. [ ] quoted\n\n- []\n- [ ]no\n-[ ] no";
        let trimmed: Vec<&str> = blocks(text).into_iter().map(str::trim).collect();
        let expected = [
            "One\ntwo",
            "- [ ] call Ann\n  today",
            "- [x] mail",
            "* [-] dropped",
            "> 1. [ ] quoted",
            "- []",
            "- [ ]no\n-[ ] no",
        ];
        assert_eq!(trimmed, expected);
        let marks: Vec<char> = tasks(text).into_iter().map(|(mark, _)| mark).collect();
        assert_eq!(marks, [' ', 'x', '-', ' ']);
        assert!(tasks("").is_empty() && blocks("\n\n").is_empty());
        assert_eq!(tasks("- [ ] \u{e9}").len(), 1);
    }
}
