//! What a terminal adds: colours, questions; and text made harmless before it gets there.

use std::borrow::Cow;
use std::io::{IsTerminal, Write, stderr, stdin, stdout};

/// How output may be decorated. The default: not at all.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Paint {
    colours: bool,
}

impl Paint {
    /// What standard output can show.
    pub(super) fn of_stdout() -> Self {
        Self::of(stdout().is_terminal())
    }

    /// What standard error can show.
    pub(super) fn of_stderr() -> Self {
        Self::of(stderr().is_terminal())
    }

    fn of(is_terminal: bool) -> Self {
        let set = |name| std::env::var_os(name).is_some_and(|value| !value.is_empty());
        let dumb = std::env::var_os("TERM").is_some_and(|term| term == "dumb");
        Self { colours: is_terminal && !dumb && !set("NO_COLOR") }
    }

    fn style(self, code: &str, text: &str) -> String {
        if self.colours && !text.is_empty() { format!("\x1b[{code}m{text}\x1b[0m") } else { text.to_string() }
    }

    /// A heading, a name.
    pub(super) fn bold(self, text: &str) -> String {
        self.style("1", text)
    }

    /// What matters less.
    pub(super) fn dim(self, text: &str) -> String {
        self.style("2", text)
    }

    /// What somebody should look at.
    pub(super) fn bad(self, text: &str) -> String {
        self.style("33", text)
    }

    /// A unified diff, or text with diffs in it.
    pub(super) fn diff(self, text: &str) -> String {
        let mut painted = String::new();
        for line in text.lines() {
            let line = harmless(line);
            let code = match line.as_bytes().first() {
                _ if line.starts_with("+++") || line.starts_with("---") => "1",
                Some(b'+') => "32",
                Some(b'-') => "31",
                Some(b'@') => "36",
                _ => "",
            };
            painted.push_str(&if code.is_empty() { line.into_owned() } else { self.style(code, &line) });
            painted.push('\n');
        }
        painted
    }
}

/// Whether a person can be asked something.
pub(super) fn can_ask() -> bool {
    stdin().is_terminal() && stderr().is_terminal()
}

/// Asks on standard error; `None` at the end of input.
pub(super) fn ask(question: &str) -> Option<String> {
    let mut err = stderr().lock();
    let _ = write!(err, "{} ", harmless(question));
    let _ = err.flush();
    let mut answer = String::new();
    let read = stdin().read_line(&mut answer).ok()?;
    (read > 0).then(|| answer.trim().to_string())
}

/// Text of notes, as it may be shown on a terminal: no character moves the cursor, starts an escape sequence or turns
/// the direction of what follows, and those that nobody would see are named. Line feeds stay.
pub(super) fn harmless(text: &str) -> Cow<'_, str> {
    if !text.chars().any(|c| (c != '\n' && is_harmful(c)) || is_unseen(c)) {
        return Cow::Borrowed(text);
    }
    let mut safe = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '\n' => safe.push(c),
            '\t' => safe.push_str("  "),
            '\r' => {}
            c if is_harmful(c) => safe.push('\u{fffd}'),
            c if is_unseen(c) => safe.push_str(&format!("<U+{:04X}>", u32::from(c))),
            c => safe.push(c),
        }
    }
    Cow::Owned(safe)
}

/// The same on one line.
pub(super) fn harmless_line(text: &str) -> String {
    harmless(text).replace('\n', " ")
}

fn is_harmful(c: char) -> bool {
    c.is_control() || matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{2028}' | '\u{2029}')
}

/// Characters without a picture, by which a text could say more to a model than to its reader. Those that join letters
/// and choose the look of emoji are no such: people write with them.
fn is_unseen(c: char) -> bool {
    matches!(c,
        '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}' | '\u{180b}'..='\u{180e}'
        | '\u{200b}' | '\u{200e}' | '\u{200f}' | '\u{2060}'..='\u{2064}' | '\u{206a}'..='\u{206f}' | '\u{3164}'
        | '\u{feff}' | '\u{ffa0}' | '\u{fff9}'..='\u{fffb}' | '\u{1d173}'..='\u{1d17a}' | '\u{e0000}'..='\u{e0fff}')
}

/// The lines of one file's diff. Where lines change whose ends differ, those that end as on Windows are marked.
pub(super) fn diff_lines(diff: &str) -> impl Iterator<Item = String> {
    let is_changed =
        |line: &&str| line.starts_with(['+', '-']) && !line.starts_with("+++ ") && !line.starts_with("--- ");
    let mut ends = diff.split('\n').filter(is_changed).map(|line| line.ends_with('\r'));
    let first = ends.next();
    let differ = ends.any(|end| Some(end) != first);
    diff.lines().zip(diff.split('\n')).map(move |(line, whole)| {
        let mark = if differ && whole.ends_with('\r') && is_changed(&whole) { "^M" } else { "" };
        format!("{}{mark}", harmless(line))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_escapes() {
        assert_eq!(harmless("plain ž 🚲\nnext"), "plain ž 🚲\nnext");
        assert_eq!(harmless("\x1b[31mred\u{202e}x\ta\r\n"), "\u{fffd}[31mred\u{fffd}x  a\n");
        assert_eq!(harmless_line("a\nb"), "a b");
        // What nobody would see is named; emoji and Persian stay as they are.
        assert_eq!(harmless("do\u{200b}ne\u{e0041}"), "do<U+200B>ne<U+E0041>");
        assert_eq!(harmless("👩\u{200d}🌾 ☀\u{fe0f} می\u{200c}خواهم"), "👩\u{200d}🌾 ☀\u{fe0f} می\u{200c}خواهم");
    }

    #[test]
    fn ends_of_lines_show_where_they_change() {
        let lines = |diff| diff_lines(diff).collect::<Vec<_>>();
        assert_eq!(lines("@@\n-a\r\n+a\n b\r\n"), ["@@", "-a^M", "+a", " b"]);
        assert_eq!(lines("-a\r\n+b\r\n"), ["-a", "+b"]);
        assert_eq!(lines("-a\n+b\n"), ["-a", "+b"]);
    }

    #[test]
    fn diffs_are_painted_by_line() {
        let full = Paint { colours: true };
        assert_eq!(full.diff("+a\n b"), "\x1b[32m+a\x1b[0m\n b\n");
        assert_eq!(Paint::default().diff("+a\n-b"), "+a\n-b\n");
    }
}
