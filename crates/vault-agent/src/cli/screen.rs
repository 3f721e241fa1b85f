//! The screen of a conversation: appended text, and below it a few status lines that are redrawn and finally erased.
//! The text above the status lines never changes.
//!
//! Answers go to standard output, everything else to standard error.

use std::io::{self, IsTerminal, Write};

use super::type_ahead::TypeAhead;
use vault_search::{Failure, Paint, cut_to, sanitize, wrapped};

/// The two outputs.
pub(super) struct Screen {
    /// The style of answers.
    pub answer_paint: Paint,
    /// The style of everything else.
    pub paint: Paint,
    /// Whether lines can be redrawn.
    is_live: bool,
    /// Whether the terminal bell rings when the person is asked something.
    pub rings: bool,
    /// The text that the person typed during a turn.
    pub typed: TypeAhead,
    /// The number of status lines on the screen.
    drawn: usize,
    /// Set when standard output can no longer be written.
    failure: Option<io::Error>,
}

impl Screen {
    /// Creates the screen of this process.
    pub fn new() -> Self {
        let is_dumb = std::env::var_os("TERM").is_none_or(|term| term.is_empty() || term == "dumb");
        Self {
            answer_paint: Paint::stdout(),
            paint: Paint::stderr(),
            is_live: io::stderr().is_terminal() && !is_dumb,
            rings: false,
            typed: TypeAhead::default(),
            drawn: 0,
            failure: None,
        }
    }

    /// Whether lines can be redrawn and keys read one by one.
    pub fn is_live(&self) -> bool {
        self.is_live
    }

    /// Appends text to the answer. The caller has sanitized it if it goes to a terminal.
    pub fn answer(&mut self, text: &str) {
        if text.is_empty() || self.failure.is_some() {
            return;
        }
        self.erase();
        let mut out = io::stdout().lock();
        if let Err(error) = out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
            self.failure = Some(error);
        }
    }

    /// Returns the error of standard output, if there was one.
    pub fn failure(&mut self) -> Option<Failure> {
        self.failure.take().map(Failure::from)
    }

    /// Rings the terminal bell, for a person who is not watching the screen.
    pub fn ring(&mut self) {
        if self.rings && self.is_live {
            let _ = io::stderr().lock().write_all(b"\x07");
        }
    }

    /// Appends lines, which the caller has sanitized.
    pub fn show(&mut self, text: &str) {
        self.erase();
        let _ = writeln!(io::stderr().lock(), "{}", text.trim_end_matches('\n'));
    }

    /// Appends a dim line, wrapped on a terminal.
    pub fn quiet(&mut self, text: &str) {
        let line = self.paint.dim(&self.fitted(text));
        self.show(&line);
    }

    /// Appends a warning, wrapped on a terminal.
    pub fn warn(&mut self, text: &str) {
        let line = self.fitted(&format!("! {text}"));
        self.show(&line.replacen('!', &self.paint.bad("!"), 1));
    }

    /// Returns sanitized text whose lines fit on the terminal.
    pub fn fitted(&self, text: &str) -> String {
        let text = sanitize(text);
        self.paint.width().map_or_else(|| text.clone().into_owned(), |width| wrapped(&text, width))
    }

    /// Replaces the status lines. Does nothing if lines cannot be redrawn.
    pub fn draw(&mut self, lines: &[String]) {
        if !self.is_live {
            return;
        }
        let columns = Paint::stderr().width().unwrap_or(80).saturating_sub(1);
        let lines: Vec<String> = lines.iter().map(|line| self.paint.dim(&cut_to(line, columns))).collect();
        let mut err = io::stderr().lock();
        let _ = write!(err, "{}{}", erasing(self.drawn), lines.join("\r\n"));
        let _ = err.flush();
        self.drawn = lines.len();
    }

    /// Erases the status lines.
    pub fn erase(&mut self) {
        if self.drawn > 0 {
            let mut err = io::stderr().lock();
            let _ = write!(err, "{}", erasing(self.drawn));
            let _ = err.flush();
            self.drawn = 0;
        }
    }
}

/// Returns the escape sequence that erases `lines` status lines and moves the cursor to where they began. The cursor
/// must be on the last of them.
fn erasing(lines: usize) -> String {
    match lines {
        0 => String::new(),
        1 => "\r\x1b[K".to_owned(),
        more => format!("\r\x1b[{}A\x1b[J", more - 1),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_drawn_is_erased_and_what_is_above_stays() {
        let mut parser = vt100::Parser::new(6, 20, 0);
        parser.process(b"kept\r\n");
        parser.process(b"one\r\ntwo\r\nthree");
        parser.process(erasing(3).as_bytes());
        parser.process(b"four");
        parser.process(erasing(1).as_bytes());
        parser.process(b"last");
        assert_eq!(parser.screen().contents(), "kept\nlast");
    }
}
