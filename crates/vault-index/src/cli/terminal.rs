//! What a terminal adds: colours, links that open, its width; and text made harmless before it gets there.

use std::borrow::Cow;
use std::io::{IsTerminal, stderr, stdin, stdout};
use std::path::Path;

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

use crate::report::counted_as;

/// How standard output may be decorated. The default: not at all.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Paint {
    colours: bool,
    links: bool,
    width: Option<usize>,
}

impl Paint {
    /// What standard output can show.
    pub(super) fn of_stdout() -> Self {
        if !stdout().is_terminal() {
            return Self::default();
        }
        let set = |name| std::env::var_os(name).is_some_and(|v| !v.is_empty());
        let dumb = std::env::var_os("TERM").is_some_and(|term| term == "dumb");
        let width = terminal_size::terminal_size().map_or(80, |(width, _)| usize::from(width.0));
        Self { colours: !dumb && !set("NO_COLOR"), links: !dumb, width: Some(width) }
    }

    /// Everything on, for tests.
    #[cfg(test)]
    pub(super) fn full(width: usize) -> Self {
        Self { colours: true, links: true, width: Some(width) }
    }

    /// Whether this is a terminal.
    pub(super) fn is_terminal(&self) -> bool {
        self.width.is_some()
    }

    /// Columns for running text: those of the terminal, within what reads well.
    pub(super) fn columns(&self) -> usize {
        self.width.unwrap_or(100).clamp(40, 100)
    }

    fn style(&self, code: &str, text: &str) -> String {
        match self.colours && !text.is_empty() {
            true => format!("\x1b[{code}m{text}\x1b[0m"),
            false => text.to_string(),
        }
    }

    /// A matched word, a heading of a table.
    pub(super) fn bold(&self, text: &str) -> String {
        self.style("1", text)
    }

    /// What matters less.
    pub(super) fn dim(&self, text: &str) -> String {
        self.style("2", text)
    }

    /// A path.
    pub(super) fn path(&self, text: &str) -> String {
        self.style("36", text)
    }

    /// What went well.
    pub(super) fn good(&self, text: &str) -> String {
        self.style("32", text)
    }

    /// What somebody should look at.
    pub(super) fn bad(&self, text: &str) -> String {
        self.style("33", text)
    }

    /// `shown`, which opens `file` where the terminal can (OSC 8).
    pub(super) fn link(&self, file: &Path, shown: &str) -> String {
        match self.links {
            true => format!("\x1b]8;;{}\x1b\\{shown}\x1b]8;;\x1b\\", file_url(file)),
            false => shown.to_string(),
        }
    }
}

/// Whether a person sees standard error, and so progress.
pub(super) fn stderr_is_terminal() -> bool {
    stderr().is_terminal()
}

/// Whether a person can be asked something.
pub(super) fn can_ask() -> bool {
    stdin().is_terminal() && stderr().is_terminal()
}

/// Asks on standard error; anything but a clear yes is a no.
pub(super) fn ask(question: &str) -> bool {
    use std::io::Write;
    let mut err = stderr().lock();
    let _ = write!(err, "{} [y/N] ", harmless(question));
    let _ = err.flush();
    let mut answer = String::new();
    let read = stdin().read_line(&mut answer);
    read.is_ok() && matches!(answer.trim().to_lowercase().as_str(), "y" | "yes")
}

/// Unreserved characters and `/` stay as they are.
const IN_URL: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~').remove(b'/');

fn file_url(file: &Path) -> String {
    let text = file.to_string_lossy();
    // Windows: `\\?\C:\x` is `file:///C:/x`.
    let text = if cfg!(windows) { text.trim_start_matches(r"\\?\").replace('\\', "/") } else { text.into_owned() };
    let slash = if text.starts_with('/') { "" } else { "/" };
    format!("file://{slash}{}", utf8_percent_encode(&text, IN_URL))
}

/// Text of notes, as it may be shown on a terminal: no character moves the cursor, starts an escape
/// sequence or turns the direction of what follows. Line feeds stay, tabs become two spaces.
pub(super) fn harmless(text: &str) -> Cow<'_, str> {
    if !text.chars().any(|c| c != '\n' && is_harmful(c)) {
        return Cow::Borrowed(text);
    }
    let mut safe = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '\n' => safe.push(c),
            _ => push_harmless(&mut safe, c),
        }
    }
    Cow::Owned(safe)
}

/// The same on one line: line feeds become spaces.
pub(super) fn harmless_line(text: &str) -> String {
    harmless(text).replace('\n', " ")
}

/// Appends a character in its harmless form.
pub(super) fn push_harmless(to: &mut String, c: char) {
    match c {
        '\t' => to.push_str("  "),
        '\r' => {}
        // Control pictures: U+241B stands for the escape character, and so on.
        '\0'..='\x1f' => to.push(char::from_u32(0x2400 + u32::from(c)).unwrap_or('\u{fffd}')),
        '\x7f' => to.push('\u{2421}'),
        c if is_harmful(c) => to.push('\u{fffd}'),
        c => to.push(c),
    }
}

fn is_harmful(c: char) -> bool {
    c.is_control() || matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{2028}' | '\u{2029}')
}

/// A number with a noun whose plural has an s.
pub(super) fn counted(number: usize, noun: &str) -> String {
    counted_as(number, noun, &format!("{noun}s"))
}

/// Columns a text takes on a terminal: wide scripts and emoji two, marks that combine none. Near enough to align by.
pub(super) fn columns(text: &str) -> usize {
    text.chars().map(char_columns).sum()
}

/// Columns of one character.
pub(super) fn char_columns(c: char) -> usize {
    match u32::from(c) {
        0x09 => 2,
        0..0x20 | 0x7f..0xa0 => 1,
        0x300..=0x36f | 0x200b..=0x200f | 0xfe00..=0xfe0f | 0x20d0..=0x20ff => 0,
        0x1100..=0x115f | 0x2e80..=0xa4cf | 0xac00..=0xd7a3 | 0xf900..=0xfaff | 0xfe30..=0xfe6f => 2,
        0xff00..=0xff60 | 0xffe0..=0xffe6 | 0x1f300..=0x1faff | 0x20000..=0x3fffd => 2,
        _ => 1,
    }
}

/// `text` and the spaces that fill it up to `width` columns.
pub(super) fn padded(text: &str, width: usize) -> String {
    format!("{text}{}", " ".repeat(width.saturating_sub(columns(text))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_escapes() {
        fn check(input: &str, expected: &str) {
            assert_eq!(harmless(input), expected, "{input:?}");
        }
        check("plain ž 日本 🚲\nnext", "plain ž 日本 🚲\nnext");
        check("\x1b[31mred\x1b]0;title\x07", "␛[31mred␛]0;title␇");
        check("a\u{9b}31m\u{202e}gpj.exe", "a\u{fffd}31m\u{fffd}gpj.exe");
        check("a\r\nb\x7f\tc", "a\nb␡  c");
        assert_eq!(harmless_line("a\nb"), "a b");
    }

    #[test]
    fn without_a_terminal_nothing_is_added() {
        let plain = Paint::default();
        assert_eq!(plain.bold("x"), "x");
        assert_eq!(plain.link(Path::new("/v/a.md"), "a.md:1"), "a.md:1");
    }

    #[cfg(unix)]
    #[test]
    fn links_open_files() {
        let full = Paint::full(80);
        assert_eq!(
            full.link(Path::new("/v/é b#1%.md"), "x"),
            "\x1b]8;;file:///v/%C3%A9%20b%231%25.md\x1b\\x\x1b]8;;\x1b\\"
        );
    }

    #[test]
    fn wide_characters_take_two_columns() {
        assert_eq!(columns("日本x"), 5);
        assert_eq!(columns("e\u{301}"), 1);
        assert_eq!(padded("日", 4), "日  ");
    }
}
