//! Text for a terminal, without I/O: Markdown in colour while it streams.
//!
//! All text from a model, a tool or a note is sanitized here.

mod wrap;
mod table;
mod block;
mod stream;

pub(crate) use stream::MarkdownStream;

/// Wraps plain text at words.
pub(crate) fn plain_lines(text: &str, width: usize) -> Vec<String> {
    wrap::wrapped(&[wrap::Span::new(wrap::Style::default(), text)], width, &vault_search::Paint::default())
}
