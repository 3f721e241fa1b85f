//! What a conversation shows: more and more text, and below it a few lines that are drawn anew and erased in the end.
//! Nothing above those lines is ever changed.
//!
//! Answers go to standard output, everything else to standard error.

use std::io::{self, IsTerminal, Write};

use super::type_ahead::TypeAhead;
use vault_search::{Failure, Paint, cut_to, sanitize};

/// The two outputs.
pub(super) struct Screen {
    /// Of answers.
    pub answer_paint: Paint,
    /// Of everything else.
    pub paint: Paint,
    /// Whether lines can be drawn anew.
    is_live: bool,
    /// Whether the terminal rings when a person is asked something.
    pub rings: bool,
    /// What a person typed while a turn ran.
    pub typed: TypeAhead,
    /// How many lines are drawn that are to be erased.
    drawn: usize,
    /// The reader of the answers has gone.
    failure: Option<io::Error>,
}

impl Screen {
    /// Of this process.
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

    /// Whether lines can be drawn anew, and keys read one by one.
    pub fn is_live(&self) -> bool {
        self.is_live
    }

    /// More of an answer, which has passed the terminal filter where a terminal shows it.
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

    /// Why nothing more can be shown.
    pub fn failure(&mut self) -> Option<Failure> {
        self.failure.take().map(Failure::from)
    }

    /// Rings, for a person who looks elsewhere.
    pub fn ring(&mut self) {
        if self.rings && self.is_live {
            let _ = io::stderr().lock().write_all(b"\x07");
        }
    }

    /// Lines that stay, which have passed the terminal filter.
    pub fn show(&mut self, text: &str) {
        self.erase();
        let _ = writeln!(io::stderr().lock(), "{}", text.trim_end_matches('\n'));
    }

    /// A quiet line that stays.
    pub fn quiet(&mut self, text: &str) {
        let line = self.paint.dim(&sanitize(text));
        self.show(&line);
    }

    /// A line that a person should see.
    pub fn warn(&mut self, text: &str) {
        let line = format!("{} {}", self.paint.bad("!"), sanitize(text));
        self.show(&line);
    }

    /// Lines in place of those that were drawn before. Where that cannot be, nothing.
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

    /// Erases the lines that were drawn.
    pub fn erase(&mut self) {
        if self.drawn > 0 {
            let mut err = io::stderr().lock();
            let _ = write!(err, "{}", erasing(self.drawn));
            let _ = err.flush();
            self.drawn = 0;
        }
    }
}

/// What erases so many lines, of which the cursor stands on the last, and leads to where they began.
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
