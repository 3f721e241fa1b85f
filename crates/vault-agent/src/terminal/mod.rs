//! Text for a terminal, without any I/O: Markdown in colour while it streams.
//!
//! All text that comes from a model, a tool or a note goes through the terminal filter here.

mod wrap;
mod table;
mod block;
mod stream;

pub(crate) use stream::MarkdownStream;

/// Plain text wrapped at words.
pub(crate) fn plain_lines(text: &str, width: usize) -> Vec<String> {
    wrap::wrapped(&[wrap::Span::new(wrap::Style::default(), text)], width, &vault_search::Paint::default())
}
