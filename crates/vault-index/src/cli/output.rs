//! Standard output: text for people, one JSON document, or JSON Lines; and the schema of each.

use std::io::{self, BufWriter, Write};

use clap::Args;
use schemars::{JsonSchema, schema_for};
use serde::Serialize;

use super::terminal::{self, Paint};
use super::{Ended, Outcome};

/// Options of a command that answers with one document.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Output")]
pub(super) struct JsonArgs {
    /// Print one JSON document
    #[arg(long)]
    pub json: bool,
    /// Print the JSON schema of what --json prints, and do nothing else
    #[arg(long)]
    pub schema: bool,
}

/// Options of a command that answers with a list.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Output")]
pub(super) struct ListArgs {
    /// Print one JSON document
    #[arg(long)]
    pub json: bool,
    /// Print JSON Lines: a record a line
    #[arg(long, conflicts_with = "json")]
    pub jsonl: bool,
    /// Print the JSON schema of what --json (or, with --jsonl, a line of it) holds, and do nothing else
    #[arg(long)]
    pub schema: bool,
}

impl ListArgs {
    /// Which of the three is wanted.
    pub(super) fn format(&self) -> Format {
        match (self.json, self.jsonl) {
            (true, _) => Format::Json,
            (_, true) => Format::JsonLines,
            _ => Format::Human,
        }
    }
}

/// What a list is printed as.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Format {
    Human,
    Json,
    JsonLines,
}

/// Where data is written.
pub(super) struct Out {
    to: Box<dyn Write>,
    /// How it may be decorated.
    pub paint: Paint,
}

impl Out {
    /// The process's standard output.
    pub(super) fn stdout() -> Self {
        Self { to: Box::new(BufWriter::new(io::stdout())), paint: Paint::of_stdout() }
    }

    /// Another writer, which is no terminal.
    pub(super) fn to(writer: impl Write + 'static) -> Self {
        Self { to: Box::new(writer), paint: Paint::default() }
    }

    /// A line of text. Whatever in it comes from notes has been made harmless.
    pub(super) fn line(&mut self, text: &str) -> Ended<()> {
        self.to.write_all(text.as_bytes())?;
        Ok(self.to.write_all(b"\n")?)
    }

    /// Bytes as they are.
    pub(super) fn bytes(&mut self, bytes: &[u8]) -> Ended<()> {
        Ok(self.to.write_all(bytes)?)
    }

    /// One JSON document: indented for people, else on one line.
    pub(super) fn json<T: Serialize>(&mut self, value: &T) -> Ended<()> {
        match self.paint.is_terminal() {
            true => self.line(&without_controls(serde_json::to_string_pretty(value)?)),
            false => self.record(value),
        }
    }

    /// One line of JSON.
    pub(super) fn record<T: Serialize>(&mut self, value: &T) -> Ended<()> {
        let text = serde_json::to_string(value)?;
        let text = if self.paint.is_terminal() { without_controls(text) } else { text };
        self.line(&text)
    }

    /// The schema of `T`.
    pub(super) fn schema<T: JsonSchema>(&mut self) -> Ended {
        let text = serde_json::to_string_pretty(&schema_for!(T))?;
        self.line(&text)?;
        Ok(Outcome::Done)
    }

    /// The schema of a list of `T`, or with `--jsonl` of one.
    pub(super) fn list_schema<T: JsonSchema>(&mut self, args: &ListArgs) -> Ended {
        if args.jsonl { self.schema::<T>() } else { self.schema::<Vec<T>>() }
    }

    /// A list in the form that is wanted; `human` prints it for people.
    pub(super) fn list<T: Serialize>(
        &mut self,
        format: Format,
        rows: &[T],
        human: impl FnOnce(&mut Self, &[T]) -> Ended<()>,
    ) -> Ended {
        match format {
            Format::Json => self.json(&rows)?,
            Format::JsonLines => rows.iter().try_for_each(|row| self.record(row))?,
            Format::Human => human(self, rows)?,
        }
        Ok(Outcome::Done)
    }

    /// Two columns, the first as wide as its widest entry. Both are made harmless.
    pub(super) fn table(&mut self, rows: &[(String, String)]) -> Ended<()> {
        let width = rows.iter().map(|(name, _)| terminal::columns(name)).max().unwrap_or(0);
        for (name, value) in rows {
            let name = terminal::padded(&terminal::harmless_line(name), width);
            let line = format!("{}  {}", self.paint.dim(&name), terminal::harmless_line(value));
            self.line(line.trim_end())?;
        }
        Ok(())
    }

    /// Hands on what is buffered.
    pub(super) fn flush(&mut self) -> Ended<()> {
        Ok(self.to.flush()?)
    }
}

/// JSON escapes only some of the characters that steer a terminal; the others stand only in strings, so
/// they can be escaped afterwards.
fn without_controls(json: String) -> String {
    if !json.chars().any(|c| matches!(c, '\x7f'..='\u{9f}')) {
        return json;
    }
    let mut safe = String::with_capacity(json.len() + 8);
    for c in json.chars() {
        match c {
            '\x7f'..='\u{9f}' => safe.push_str(&format!("\\u{:04x}", u32::from(c))),
            c => safe.push(c),
        }
    }
    safe
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use std::sync::{Arc, Mutex};

    /// A writer whose content can be looked at afterwards.
    #[derive(Clone, Default)]
    pub(in crate::cli) struct Captured(Arc<Mutex<Vec<u8>>>);

    impl Captured {
        pub(in crate::cli) fn text(&self) -> String {
            String::from_utf8(self.0.lock().unwrap().clone()).unwrap()
        }
    }

    impl Write for Captured {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn the_same_list_three_ways() {
        fn check(format: Format, expected: &str) {
            let captured = Captured::default();
            let mut out = Out::to(captured.clone());
            out.list(format, &["a", "b"], |out, rows| out.line(&rows.join(" "))).unwrap();
            assert_eq!(captured.text(), expected);
        }
        check(Format::Json, "[\"a\",\"b\"]\n");
        check(Format::JsonLines, "\"a\"\n\"b\"\n");
        check(Format::Human, "a b\n");
    }

    #[test]
    fn json_on_a_terminal_holds_no_controls() {
        let json = serde_json::to_string("\u{1b}[31m\u{9b}x\u{7f}é").unwrap();
        let safe = without_controls(json);
        assert_eq!(safe, "\"\\u001b[31m\\u009bx\\u007fé\"");
        assert_eq!(serde_json::from_str::<String>(&safe).unwrap(), "\u{1b}[31m\u{9b}x\u{7f}é");
    }

    #[test]
    fn tables_are_aligned() {
        let captured = Captured::default();
        let mut out = Out::to(captured.clone());
        out.table(&[("a".into(), "1".into()), ("日本".into(), "x\ny".into())]).unwrap();
        assert_eq!(captured.text(), "a     1\n日本  x y\n");
    }
}
