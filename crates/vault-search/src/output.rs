//! Standard output: text for people, one JSON document, or JSON Lines; and the schemas of the JSON.

use std::fmt;
use std::io::{self, BufWriter, Write};
use std::process::ExitCode;
use std::sync::{Arc, Mutex};

use clap::Args;
use schemars::{JsonSchema, schema_for};
use serde::Serialize;

use crate::exit::{CliResult, Failure, Outcome, say};
use crate::sanitize::{columns, escape_json, padded, sanitize_line};
use crate::terminal::Paint;

/// Options of a command that answers with one document.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Output")]
pub struct JsonArgs {
    /// Print one JSON document
    #[arg(long)]
    pub json: bool,
    /// Print the JSON schema of the output, and exit
    ///
    /// It describes what --json prints.
    #[arg(long, hide_short_help = true)]
    pub schema: bool,
}

/// Options of a command that answers with a list.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Output")]
pub struct ListArgs {
    /// Print one JSON document
    #[arg(long)]
    pub json: bool,
    /// Print JSON Lines: one record per line
    #[arg(long, conflicts_with = "json")]
    pub jsonl: bool,
    /// Print the JSON schema of the output, and exit
    ///
    /// It describes what --json prints, or with --jsonl one line.
    #[arg(long, hide_short_help = true)]
    pub schema: bool,
}

impl ListArgs {
    /// Returns the format that the options select.
    pub fn format(&self) -> Format {
        match (self.json, self.jsonl) {
            (true, _) => Format::Json,
            (_, true) => Format::JsonLines,
            _ => Format::Human,
        }
    }
}

/// The format of a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// Text for people.
    Human,
    /// One JSON document.
    Json,
    /// One JSON record per line.
    JsonLines,
}

/// The output of a command: a writer, and how text is styled for it.
pub struct Out {
    writer: Box<dyn Write + Send>,
    /// The styling that the writer supports.
    pub paint: Paint,
    is_indented: bool,
}

impl fmt::Debug for Out {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Out").field("paint", &self.paint).finish_non_exhaustive()
    }
}

impl Out {
    /// The process's standard output.
    pub fn stdout() -> Self {
        let paint = Paint::stdout();
        Self { writer: Box::new(BufWriter::new(io::stdout())), paint, is_indented: paint.is_terminal() }
    }

    /// Another writer, treated as not a terminal.
    pub fn to(writer: impl Write + Send + 'static) -> Self {
        Self { writer: Box::new(writer), paint: Paint::default(), is_indented: false }
    }

    /// Indents JSON documents, even when the output is not a terminal.
    #[must_use]
    pub fn indented(self) -> Self {
        Self { is_indented: true, ..self }
    }

    /// Writes a line of text. Text in it from outside the program must have been sanitized.
    ///
    /// # Errors
    /// This method and those below return the errors of the writer.
    pub fn line(&mut self, text: &str) -> io::Result<()> {
        self.writer.write_all(text.as_bytes())?;
        self.writer.write_all(b"\n")
    }

    /// Writes text as it is, without adding a line feed.
    pub fn text(&mut self, text: &str) -> io::Result<()> {
        self.writer.write_all(text.as_bytes())
    }

    /// Writes bytes as they are.
    pub fn bytes(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.writer.write_all(bytes)
    }

    /// Writes one JSON document: indented on a terminal or if [`Self::indented`] was called, else on one line.
    pub fn json<T: Serialize + ?Sized>(&mut self, value: &T) -> io::Result<()> {
        match self.is_indented {
            true => self.json_text(serde_json::to_string_pretty(value)?),
            false => self.record(value),
        }
    }

    /// Writes one line of JSON.
    pub fn record<T: Serialize + ?Sized>(&mut self, value: &T) -> io::Result<()> {
        self.json_text(serde_json::to_string(value)?)
    }

    fn json_text(&mut self, text: String) -> io::Result<()> {
        let text = if self.paint.is_terminal() { escape_json(text) } else { text };
        self.line(&text)
    }

    /// Writes the JSON schema of `T`.
    pub fn schema<T: JsonSchema>(&mut self) -> CliResult {
        self.json_text(serde_json::to_string_pretty(&schema_for!(T))?)?;
        Ok(Outcome::Done)
    }

    /// Writes the JSON schema of a list of `T`, or with `--jsonl` of one `T`.
    pub fn list_schema<T: JsonSchema>(&mut self, args: &ListArgs) -> CliResult {
        if args.jsonl { self.schema::<T>() } else { self.schema::<Vec<T>>() }
    }

    /// Writes a list in the given format; `human` prints it for people.
    pub fn list<T: Serialize>(
        &mut self,
        format: Format,
        rows: &[T],
        human: impl FnOnce(&mut Self, &[T]) -> io::Result<()>,
    ) -> CliResult {
        match format {
            Format::Json => self.json(rows)?,
            Format::JsonLines => rows.iter().try_for_each(|row| self.record(row))?,
            Format::Human => human(self, rows)?,
        }
        Ok(Outcome::Done)
    }

    /// Writes two columns, the first as wide as its widest entry. Sanitizes both.
    pub fn table(&mut self, rows: &[(String, String)]) -> io::Result<()> {
        let width = rows.iter().map(|(name, _)| columns(name)).max().unwrap_or(0);
        for (name, value) in rows {
            let name = padded(&sanitize_line(name), width);
            let line = format!("{}  {}", self.paint.dim(&name), sanitize_line(value));
            self.line(line.trim_end())?;
        }
        Ok(())
    }

    /// Flushes the buffer.
    pub fn flush(&mut self) -> io::Result<()> {
        self.writer.flush()
    }

    /// Ends the command: flushes the output, prints the error, if any, and returns the exit code.
    pub fn finish(mut self, result: CliResult) -> ExitCode {
        let result = result.and_then(|outcome| match self.flush().map_err(Failure::from) {
            // The outcome of a check counts even if the reader has closed the pipe.
            Ok(()) | Err(Failure::PipeClosed) => Ok(outcome),
            Err(failure) => Err(failure),
        });
        let failure = match result {
            Ok(Outcome::Done) => return ExitCode::SUCCESS,
            Ok(Outcome::Nothing) => return ExitCode::from(1),
            Err(failure) => failure,
        };
        // Output from before the failure is still useful. If this flush fails too, one error message is enough.
        let _ = self.flush();
        match &failure {
            Failure::Error(text) | Failure::Refused(text) => say("error", text),
            Failure::Usage(error) => drop(error.print()),
            Failure::Interrupted(what) => say("interrupted", what),
            Failure::PipeClosed => {}
        }
        ExitCode::from(failure.code())
    }
}

/// Formats a number with a noun whose plural ends in s: `1 note`, `2 notes`.
pub fn counted(number: usize, noun: &str) -> String {
    format!("{number} {noun}{}", if number == 1 { "" } else { "s" })
}

/// Formats a number with the words for one and for many: `1 file is`, `2 files are`.
pub fn counted_as(number: usize, one: &str, many: &str) -> String {
    format!("{number} {}", if number == 1 { one } else { many })
}

/// Formats a size: `12.3 MB`.
#[cfg(feature = "search")]
pub(crate) fn bytes(count: u64) -> String {
    let units = ["bytes", "kB", "MB", "GB", "TB"];
    let mut value = count as f64;
    let mut unit = 0;
    while value >= 1000.0 && unit + 1 < units.len() {
        value /= 1000.0;
        unit += 1;
    }
    if unit == 0 { format!("{count} bytes") } else { format!("{value:.1} {}", units[unit]) }
}

/// A writer for tests that captures the output.
#[derive(Debug, Clone, Default)]
pub struct CapturedOutput(Arc<Mutex<Vec<u8>>>);

impl CapturedOutput {
    /// Returns the captured text.
    ///
    /// # Panics
    /// If it is not UTF-8.
    pub fn text(&self) -> String {
        String::from_utf8(self.0.lock().unwrap().clone()).unwrap()
    }
}

impl Write for CapturedOutput {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_list_three_ways() {
        fn check(format: Format, expected: &str) {
            let captured = CapturedOutput::default();
            let mut out = Out::to(captured.clone());
            out.list(format, &["a", "b"], |out, rows| out.line(&rows.join(" "))).unwrap();
            assert_eq!(captured.text(), expected);
        }
        check(Format::Json, "[\"a\",\"b\"]\n");
        check(Format::JsonLines, "\"a\"\n\"b\"\n");
        check(Format::Human, "a b\n");
    }

    #[test]
    fn tables_are_aligned() {
        let captured = CapturedOutput::default();
        let mut out = Out::to(captured.clone());
        out.table(&[("a".into(), "1".into()), ("日本".into(), "x\ny".into())]).unwrap();
        assert_eq!(captured.text(), "a     1\n日本  x y\n");
    }

    #[test]
    fn counts_have_their_plural() {
        assert_eq!((counted(1, "note"), counted(0, "note")), ("1 note".into(), "0 notes".into()));
    }

    #[cfg(feature = "search")]
    #[test]
    fn sizes() {
        for (count, expected) in [(0, "0 bytes"), (999, "999 bytes"), (1_000, "1.0 kB"), (12_345_678, "12.3 MB")] {
            assert_eq!(bytes(count), expected);
        }
    }
}
