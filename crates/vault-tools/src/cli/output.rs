//! Standard output: text for people, one JSON document, or JSON Lines; and the schema of each.

use std::io::{self, BufWriter, Write};

use schemars::{JsonSchema, schema_for};
use serde::Serialize;

use super::args::ListArgs;
use super::terminal::Paint;
use super::{Ended, Outcome};

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

    /// A line of text. Whatever in it comes from notes has been made harmless.
    pub(super) fn line(&mut self, text: &str) -> Ended<()> {
        self.to.write_all(text.as_bytes())?;
        Ok(self.to.write_all(b"\n")?)
    }

    /// Text as it is.
    pub(super) fn text(&mut self, text: &str) -> Ended<()> {
        Ok(self.to.write_all(text.as_bytes())?)
    }

    /// One JSON document.
    pub(super) fn json<T: Serialize>(&mut self, value: &T) -> Ended<()> {
        let text = serde_json::to_string_pretty(value).map_err(io::Error::from)?;
        self.line(&text)
    }

    /// One line of JSON.
    pub(super) fn record<T: Serialize>(&mut self, value: &T) -> Ended<()> {
        let text = serde_json::to_string(value).map_err(io::Error::from)?;
        self.line(&text)
    }

    /// The schema of a list of `T`, or with `--jsonl` of one.
    pub(super) fn list_schema<T: JsonSchema>(&mut self, args: &ListArgs) -> Ended {
        let schema = if args.jsonl { schema_for!(T) } else { schema_for!(Vec<T>) };
        self.json(&schema)?;
        Ok(Outcome::Done)
    }

    /// A list in the form that is wanted; `human` prints it for people.
    pub(super) fn list<T: Serialize>(
        &mut self,
        args: &ListArgs,
        rows: &[T],
        human: impl FnOnce(&mut Self, &[T]) -> Ended<()>,
    ) -> Ended {
        match (args.json, args.jsonl) {
            (true, _) => self.json(&rows)?,
            (_, true) => rows.iter().try_for_each(|row| self.record(row))?,
            _ => human(self, rows)?,
        }
        Ok(Outcome::Done)
    }

    /// Hands on what is buffered.
    pub(super) fn flush(&mut self) -> Ended<()> {
        Ok(self.to.flush()?)
    }
}
