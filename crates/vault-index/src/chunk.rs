//! From a note to its chunks, which cover the searched text exactly once.
//!
//! 1. A note that fits the window together with its title is one chunk. The same holds for each text node of a canvas;
//!    nodes do not share chunks.
//! 2. Otherwise its sections are examined from the top (`sections`): a section that fits with all its subsections is
//!    one chunk; very small ones are joined to their neighbours under the same parent.
//! 3. A section that is too long is cut between blocks, into pieces of about the same length. A block is cut only if it
//!    is too long by itself: at its seams (list items, table rows), else at blank lines, sentence ends, line ends,
//!    words, and last between characters (`chunk/pieces.rs`).
//!
//! A heading belongs to the chunk that it opens, white space between blocks to the chunk before. A model reads the
//! [`embedded_text`] of a chunk: the title if the note contains it, the headings, the text. The counts of steps 2 and 3
//! are sums over blocks. Each chunk is counted once more in its embedded form, because the tokens of a whole can be
//! more than those of its parts.
//!
//! The same note, counts and options give the same chunks. The time is linear in the text and in the cost of counting
//! it.

mod plain;
mod embedded;
mod sections;
mod pieces;
#[cfg(test)]
mod tests;

use std::ops::Range;

pub use embedded::{embedded_text, file_title_text};
pub use plain::{HEADING_MARK, readable};

use self::sections::{Part, parts};
use crate::note::{Note, TitleSource};

/// Increased whenever the same note can give other chunks or texts to embed, so that existing ones are computed again.
pub const CHUNKER_VERSION: u32 = 2;

/// Counts the tokens of a text in the way of an embedding model. Every embedder implements it.
pub trait TokenCount: Send + Sync {
    /// The number of tokens of `text`, without special tokens. It must be pure and fast, because it is called for all
    /// text.
    ///
    /// It must be at most one per byte, as in every WordPiece or byte-pair model.
    fn count(&self, text: &str) -> usize;
}

/// The size limits of chunks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChunkOptions {
    /// The model's window without its special tokens. Title, heading path and text together stay within it. At least
    /// 16.
    pub max_tokens: usize,
    /// The most tokens for the title and heading path, and at most half of the window; longer ones are shortened,
    /// keeping the innermost headings.
    pub max_context_tokens: usize,
    /// Neighbouring sections smaller than this are joined to the next ones under the same parent.
    pub min_tokens: usize,
}

impl Default for ChunkOptions {
    fn default() -> Self {
        Self { max_tokens: 254, max_context_tokens: 64, min_tokens: 24 }
    }
}

impl ChunkOptions {
    fn window(&self) -> usize {
        self.max_tokens.max(16)
    }
}

/// One passage of a note.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Chunk {
    /// Its bytes in `Note::text`.
    pub span: Range<usize>,
    /// Its first and last non-blank line in the file, from 1, both included.
    pub lines: (u32, u32),
    /// The texts of the headings above all of it, outermost first (including the note's H1, if it has one); a heading
    /// longer than 256 bytes is truncated.
    pub headings: Vec<String>,
}

/// Cuts a note into chunks, in order.
///
/// The spans tile `note.searched`; only a text that consists of white space has no chunks. The [`embedded_text`] of
/// each is within the window.
pub fn chunk(note: &Note, tokens: &dyn TokenCount, options: &ChunkOptions) -> Vec<Chunk> {
    chunks_with_texts(note, tokens, options).into_iter().map(|with_text| with_text.chunk).collect()
}

/// A chunk and the text that an embedding model reads of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChunkWithText {
    /// The chunk.
    pub chunk: Chunk,
    /// Its [`embedded_text`].
    pub text: String,
    /// The offset in `text` where the title and headings end and the chunk's own text begins.
    pub text_start: usize,
    /// The tokens of `text`.
    pub tokens: usize,
}

/// Like [`chunk`], but returns each chunk with its text and tokens, which are computed anyway.
pub fn chunks_with_texts(note: &Note, tokens: &dyn TokenCount, options: &ChunkOptions) -> Vec<ChunkWithText> {
    if note.slice(note.searched.clone()).trim().is_empty() {
        return Vec::new();
    }
    let mut chunker = Chunker::new(note, tokens, options);
    // Counting a long note only to find that it is too long would cost as much as counting all its chunks.
    let likely = note.searched.len() <= 12 * options.window();
    if likely && !chunker.parts[1..].iter().any(|part| part.alone) {
        let whole = chunker.chunk(&note.searched);
        if chunker.fits(&whole) {
            return vec![whole];
        }
    }
    chunker.count_parts();
    let mut chunks = Vec::new();
    for range in sections::plan(&chunker) {
        let whole = chunker.chunk(&chunker.span(&range));
        if chunker.fits(&whole) {
            chunks.push(whole);
        } else {
            pieces::cut(&chunker, range, &mut |chunk| chunks.push(chunk));
        }
    }
    chunks
}

struct Chunker<'a> {
    note: &'a Note,
    tokens: &'a dyn TokenCount,
    options: &'a ChunkOptions,
    /// The title, if the note contains it.
    title: Option<&'a str>,
    parts: Vec<Part>,
    /// The tokens before each part, and the total.
    sums: Vec<usize>,
}

impl<'a> Chunker<'a> {
    fn new(note: &'a Note, tokens: &'a dyn TokenCount, options: &'a ChunkOptions) -> Self {
        let title = (note.title.source != TitleSource::FileName).then_some(note.title.text.as_str());
        Self { note, tokens, options, title, parts: parts(note), sums: Vec::new() }
    }

    fn count_parts(&mut self) {
        let mut sum = 0;
        self.sums.push(sum);
        for index in 0..self.parts.len() {
            sum += self.count(&self.span(&(index..index + 1)));
            self.sums.push(sum);
        }
    }

    /// The tokens of a part of the body by itself.
    fn count(&self, span: &Range<usize>) -> usize {
        self.tokens.count(&plain::plain(self.note.slice(span.clone())))
    }

    /// The tokens of the title and headings before `text`, which starts a chunk.
    fn context_tokens(&self, headings: &[String], text: &str) -> usize {
        let text = plain::plain(text);
        self.tokens.count(&embedded::context(self.title, headings, &text, self.tokens, self.options))
    }

    /// The tokens of a run of parts.
    fn tokens(&self, parts: &Range<usize>) -> usize {
        self.sums[parts.end] - self.sums[parts.start]
    }

    /// The bytes of a run of parts.
    fn span(&self, parts: &Range<usize>) -> Range<usize> {
        let start = |at: usize| self.parts.get(at).map_or(self.note.searched.end, |part| part.start);
        start(parts.start)..start(parts.end)
    }

    /// The parts that a span of the body overlaps.
    fn parts_of(&self, span: &Range<usize>) -> Range<usize> {
        let first = self.parts.partition_point(|part| part.start <= span.start).saturating_sub(1);
        let end = self.parts.partition_point(|part| part.start < span.end);
        first..end.max(first + 1)
    }

    /// The innermost heading that is above all of these parts.
    fn common_section(&self, parts: &Range<usize>) -> Option<usize> {
        let mut common = self.parts[parts.start].section;
        for part in &self.parts[parts.clone()] {
            let mut other = part.section;
            // A heading comes after its parent.
            while common != other {
                let deeper = if common > other { &mut common } else { &mut other };
                *deeper = deeper.and_then(|index| self.note.headings[index].parent);
            }
        }
        common
    }

    fn headings(&self, section: Option<usize>) -> Vec<String> {
        let path = section.map(|index| self.note.heading_path(index)).unwrap_or_default();
        path.into_iter().map(|text| text[..text.floor_char_boundary(256)].to_owned()).collect()
    }

    /// Turns a part of the body into a chunk; its tokens are counted on the final text.
    fn chunk(&self, span: &Range<usize>) -> ChunkWithText {
        let text = self.note.slice(span.clone());
        let first = span.start + (text.len() - text.trim_start().len()).min(text.len().saturating_sub(1));
        let last = (span.start + text.trim_end().len()).saturating_sub(1).max(first);
        let lines = (self.note.lines.line_at(first), self.note.lines.line_at(last));
        let headings = self.headings(self.common_section(&self.parts_of(span)));
        let (text, text_start) = embedded::with_context(self.title, &headings, text, self.tokens, self.options);
        let tokens = self.tokens.count(&text);
        ChunkWithText { chunk: Chunk { span: span.clone(), lines, headings }, text, text_start, tokens }
    }

    fn fits(&self, chunk: &ChunkWithText) -> bool {
        chunk.tokens <= self.options.window()
    }
}
