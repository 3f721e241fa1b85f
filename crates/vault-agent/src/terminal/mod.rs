//! Text for a terminal, without any I/O: Markdown in colour while it streams.
//!
//! All text that comes from a model, a tool or a note goes through the terminal filter here.

mod wrap;
mod table;
mod block;
mod stream;

pub(crate) use stream::MarkdownStream;
