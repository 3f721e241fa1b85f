//! The terminal: colors, hyperlinks, its size, and questions to the user.

use std::fs::File;
use std::io::{BufRead, BufReader, IsTerminal, Write, stderr, stdin, stdout};
use std::path::Path;
use std::process::{Command, Stdio};

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_encode, utf8_percent_encode};

#[cfg(unix)]
use crate::interrupt::is_interrupted;
use crate::sanitize::sanitize;

/// The styling that an output supports. By default, text is not styled.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Paint {
    colors: bool,
    links: bool,
    width: Option<usize>,
    height: Option<usize>,
}

impl Paint {
    /// The styling of standard output.
    pub fn stdout() -> Self {
        Self::new(stdout().is_terminal())
    }

    /// The styling of standard error.
    pub fn stderr() -> Self {
        Self::new(stderr().is_terminal())
    }

    fn new(is_terminal: bool) -> Self {
        if !is_terminal {
            return Self::default();
        }
        let is_set = |name| std::env::var_os(name).is_some_and(|value| !value.is_empty());
        let is_dumb = std::env::var_os("TERM").is_some_and(|term| term == "dumb");
        let size = terminal_size::terminal_size();
        let width = size.map_or(80, |(width, _)| usize::from(width.0));
        let height = size.map(|(_, height)| usize::from(height.0)).filter(|height| *height > 0);
        Self { colors: !is_dumb && !is_set("NO_COLOR"), links: !is_dumb, width: Some(width), height }
    }

    /// A terminal with colors and links, for tests.
    pub fn full(width: usize) -> Self {
        Self { colors: true, links: true, width: Some(width), height: None }
    }

    /// Whether this is a terminal.
    pub fn is_terminal(&self) -> bool {
        self.width.is_some()
    }

    /// The columns for running text: those of the terminal, limited to 100 so that lines stay readable.
    pub fn columns(&self) -> usize {
        self.width.unwrap_or(100).clamp(20, 100)
    }

    /// All columns of the terminal, at least 20; `None` without a terminal.
    pub fn width(&self) -> Option<usize> {
        self.width.map(|width| width.max(20))
    }

    /// The rows of the terminal, if it reports them.
    pub fn height(&self) -> Option<usize> {
        self.height
    }

    /// Whether text is styled.
    pub fn has_colors(&self) -> bool {
        self.colors
    }

    /// Styles text by the parameters of an SGR escape sequence; for example, `1;3` is bold and italic.
    pub fn style(&self, code: &str, text: &str) -> String {
        match self.colors && !text.is_empty() && !code.is_empty() {
            true => format!("\x1b[{code}m{text}\x1b[0m"),
            false => text.to_string(),
        }
    }

    /// Styles a name, a heading or a matched word.
    pub fn bold(&self, text: &str) -> String {
        self.style("1", text)
    }

    /// Styles less important text.
    pub fn dim(&self, text: &str) -> String {
        self.style("2", text)
    }

    /// Styles a path.
    pub fn path(&self, text: &str) -> String {
        self.style("36", text)
    }

    /// Styles a success.
    pub fn good(&self, text: &str) -> String {
        self.style("32", text)
    }

    /// Styles a warning.
    pub fn bad(&self, text: &str) -> String {
        self.style("33", text)
    }

    /// Whether the terminal may get hyperlinks.
    pub fn has_links(&self) -> bool {
        self.links
    }

    /// Makes `shown` a hyperlink (OSC 8) to a URL, if the terminal may get hyperlinks.
    pub fn link(&self, url: &str, shown: &str) -> String {
        match self.links && !url.is_empty() {
            true => format!("\x1b]8;;{url}\x1b\\{shown}\x1b]8;;\x1b\\"),
            false => shown.to_string(),
        }
    }

    /// Sanitizes text and styles the unified diffs in it.
    pub fn diff(&self, text: &str) -> String {
        let mut painted = String::new();
        // The remaining old and new lines of a hunk. Within a hunk no line is a header, even if it begins with `---`.
        let mut left = (0_usize, 0_usize);
        for line in text.lines() {
            let line = sanitize(line);
            let is_header = left == (0, 0) && (line.starts_with("+++") || line.starts_with("---"));
            if left == (0, 0) {
                left = hunk_lines(&line).unwrap_or_default();
            } else {
                let (is_added, is_removed) = (line.starts_with('+'), line.starts_with('-'));
                let is_both = line.starts_with(' ');
                left.0 = left.0.saturating_sub(usize::from(is_removed || is_both));
                left.1 = left.1.saturating_sub(usize::from(is_added || is_both));
            }
            let code = match line.as_bytes().first() {
                _ if is_header => "1",
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

/// Parses the numbers of old and new lines from the first line of a hunk, such as `@@ -1,3 +1,4 @@`.
fn hunk_lines(line: &str) -> Option<(usize, usize)> {
    let mut ranges = line.strip_prefix("@@ -")?.split(' ');
    let count = |range: &str| range.split_once(',').map_or(Some(1), |(_, count)| count.parse().ok());
    Some((count(ranges.next()?)?, count(ranges.next()?.strip_prefix('+')?)?))
}

/// Whether standard error is a terminal, so that a person sees progress.
pub fn stderr_is_terminal() -> bool {
    stderr().is_terminal()
}

/// Whether the user can be asked: standard error is a terminal, and there is a terminal to read from, even if standard
/// input is not one.
pub fn can_ask() -> bool {
    let has_input = stdin().is_terminal() && !is_in_background(&stdin());
    stderr().is_terminal() && (has_input || tty().is_some())
}

/// Opens the terminal of this process, if it has one and may read from it.
fn tty() -> Option<File> {
    let tty = if cfg!(unix) { File::open("/dev/tty").ok()? } else { return None };
    (!is_in_background(&tty)).then_some(tty)
}

/// Whether reading this terminal would stop the process, as it does for a job in the background.
#[cfg(unix)]
fn is_in_background(terminal: &impl std::os::fd::AsFd) -> bool {
    rustix::termios::tcgetpgrp(terminal).is_ok_and(|foreground| foreground != rustix::process::getpgrp())
}

#[cfg(not(unix))]
fn is_in_background<T>(_terminal: &T) -> bool {
    false
}

/// Returns the standard input for a program that the user types into, such as an editor.
pub fn terminal_input() -> Stdio {
    match tty() {
        Some(tty) if !stdin().is_terminal() => tty.into(),
        _ => Stdio::inherit(),
    }
}

/// Returns a command that runs a command line in a shell, so that it may contain options; arguments are appended.
pub fn shell_command(line: &str) -> Command {
    let mut command = Command::new("sh");
    command.args(["-c", &format!("{line} \"$@\""), "sh"]);
    command
}

/// Asks a question on standard error and returns the trimmed answer, or `None` at the end of input and after
/// [`interrupt`](crate::interrupt).
pub fn ask(question: &str) -> Option<String> {
    typed(question).map(|line| line.trim().to_string())
}

/// Asks for a text of several lines, up to a line with only a dot or the end of input. Returns `None` without a line.
pub fn ask_for_lines(question: &str) -> Option<String> {
    let _ = writeln!(stderr(), "{} (a line with a dot alone ends it)", sanitize(question));
    let lines: Vec<String> = std::iter::from_fn(|| typed("|")).take_while(|line| line.trim_end() != ".").collect();
    (!lines.is_empty()).then(|| lines.concat().trim_end_matches(['\n', '\r']).to_string())
}

/// Reads a line as it was typed, after a question.
fn typed(question: &str) -> Option<String> {
    let mut err = stderr().lock();
    let _ = write!(err, "{} ", sanitize(question));
    let _ = err.flush();
    let mut answer = String::new();
    let read = match tty() {
        // Standard input may hold data for the command.
        Some(tty) if !stdin().is_terminal() => {
            wait_for_line(&tty).and_then(|()| BufReader::new(tty).read_line(&mut answer).ok())
        }
        _ => wait_for_line(&stdin()).and_then(|()| stdin().read_line(&mut answer).ok()),
    };
    if read.is_none_or(|read| read == 0) {
        // The end of input and Ctrl-C leave the cursor behind the question.
        let _ = writeln!(err);
        return None;
    }
    Some(answer)
}

/// Waits until a terminal has a line, because a read cannot be interrupted. Returns `None` after an interrupt.
#[cfg(unix)]
fn wait_for_line(input: &impl std::os::fd::AsFd) -> Option<()> {
    use rustix::event::{PollFd, PollFlags, Timespec, poll};
    let tick = Timespec { tv_sec: 0, tv_nsec: 50_000_000 };
    while rustix::termios::isatty(input) {
        if is_interrupted() {
            return None;
        }
        match poll(&mut [PollFd::new(input, PollFlags::IN)], Some(&tick)) {
            Ok(0) | Err(rustix::io::Errno::INTR) => {}
            // The read returns the line or the error.
            _ => break,
        }
    }
    Some(())
}

#[cfg(not(unix))]
fn wait_for_line<T>(_input: &T) -> Option<()> {
    Some(())
}

/// Asks for confirmation. Any answer other than yes means no.
pub fn confirm(question: &str) -> bool {
    ask(&format!("{question} [y/N]")).is_some_and(|answer| matches!(answer.to_lowercase().as_str(), "y" | "yes"))
}

/// The characters to encode in a URL: all except the unreserved ones.
const IN_URL: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// Percent-encodes text as a part of a URL.
pub fn url_text(text: &str) -> String {
    utf8_percent_encode(text, IN_URL).to_string()
}

/// Percent-encodes an absolute path as a part of a URL, by its bytes on disk. It begins with `/`, and slashes are kept.
pub fn url_path(file: &Path) -> String {
    const IN_PATH: &AsciiSet = &IN_URL.remove(b'/');
    #[cfg(unix)]
    return percent_encode(std::os::unix::ffi::OsStrExt::as_bytes(file.as_os_str()), IN_PATH).to_string();
    // `\\?\C:\x` is `/C:/x`.
    #[cfg(not(unix))]
    {
        let text = file.to_string_lossy().trim_start_matches(r"\\?\").replace('\\', "/");
        let slash = if text.starts_with('/') { "" } else { "/" };
        format!("{slash}{}", percent_encode(text.as_bytes(), IN_PATH))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_a_terminal_nothing_is_added() {
        let plain = Paint::default();
        assert_eq!(plain.bold("x"), "x");
        assert_eq!(plain.link("file:///v/a.md", "a.md:1"), "a.md:1");
        assert_eq!(plain.diff("+a\n-b"), "+a\n-b\n");
    }

    #[cfg(unix)]
    #[test]
    fn links_lead_to_the_bytes_on_disk() {
        use std::os::unix::ffi::OsStrExt;

        let file = std::ffi::OsStr::from_bytes(b"/v/e\xcc\x81 b#1%\xff\n.md");
        assert_eq!(url_path(Path::new(file)), "/v/e%CC%81%20b%231%25%FF%0A.md");
        assert_eq!(url_text("a/b &é"), "a%2Fb%20%26%C3%A9");
        assert_eq!(Paint::full(80).link("x:y", "z"), "\x1b]8;;x:y\x1b\\z\x1b]8;;\x1b\\");
    }

    #[test]
    fn diffs_are_painted_by_line() {
        assert_eq!(Paint::full(80).diff("+a\n b"), "\x1b[32m+a\x1b[0m\n b\n");
        let diff = "--- a/x\n+++ b/x\n@@ -1,2 +1 @@\n--- a/y\n-b\n+++ b/y\n\n--- a/z\n";
        let codes: Vec<String> =
            Paint::full(80).diff(diff).lines().map(|line| line.chars().take(5).collect()).collect();
        let [bold, cyan, red, green] = ["\x1b[1m-", "\x1b[36m", "\x1b[31m", "\x1b[32m"];
        assert_eq!(
            codes.iter().map(String::as_str).collect::<Vec<_>>(),
            [bold, "\x1b[1m+", cyan, red, red, green, "", bold]
        );
    }
}
