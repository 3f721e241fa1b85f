//! Cuts text that is too long into pieces of similar length, at the best available places.

use std::ops::Range;

use super::sections::{Part, line_start};
use super::{ChunkWithText, Chunker};
use crate::note::BlockKind;

/// Lists nested deeper are cut at every item.
const DEEPEST: usize = 8;

/// Cuts a run of parts that exceeds the window into pieces that fit, in order.
pub(super) fn cut(chunker: &Chunker, run: Range<usize>, emit: &mut impl FnMut(ChunkWithText)) {
    let window = chunker.options.window();
    // Sections joined to this one are small and end up with fewer headings, so this one has the most.
    let section = chunker.parts[run.end - 1].section;
    let headings = chunker.headings(section);
    let budget = window.saturating_sub(chunker.context_tokens(&headings, "")).max(1);
    Cutter { chunker, budget }.cut(chunker.span(&run), emit);
}

/// A span that is not cut further.
struct Leaf {
    start: usize,
    tokens: usize,
    /// Whether it is a heading, which stays with the text after it.
    opens: bool,
}

/// The places where text may be cut, best first.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Border {
    BlankLine,
    Sentence,
    Line,
    Word,
}

struct Cutter<'a> {
    chunker: &'a Chunker<'a>,
    /// The number of tokens that a piece may have.
    budget: usize,
}

impl Cutter<'_> {
    fn cut(&self, span: Range<usize>, emit: &mut impl FnMut(ChunkWithText)) {
        let leaves = self.leaves(&span);
        let mut left: usize = leaves.iter().map(|leaf| leaf.tokens).sum();
        // If a whole has more tokens than the sum of its parts, later pieces probably do too, so the reduced budget is
        // kept.
        let (mut budget, mut most) = (self.budget, usize::MAX);
        let mut start = 0;
        while start < leaves.len() {
            let run = first_run(&leaves[start..], left, budget, most);
            let tokens: usize = leaves[start..start + run].iter().map(|leaf| leaf.tokens).sum();
            let end = leaves.get(start + run).map_or(span.end, |leaf| leaf.start);
            let piece = leaves[start].start..end;
            let chunk = self.chunker.chunk(&piece);
            if self.chunker.fits(&chunk) {
                emit(chunk);
            } else if run == 1 {
                if self.budget == 1 {
                    emit(chunk);
                } else {
                    Cutter { chunker: self.chunker, budget: (self.budget * 3 / 4).max(1) }.cut(piece, emit);
                }
            } else if tokens > (budget / 2).max(1) {
                budget = (tokens * 7 / 8).max(1);
                continue;
            } else {
                most = run / 2;
                continue;
            }
            left -= tokens;
            start += run;
        }
    }

    fn leaves(&self, span: &Range<usize>) -> Vec<Leaf> {
        let chunker = self.chunker;
        let mut leaves: Vec<Leaf> = Vec::new();
        // Tokens of the headings just before.
        let mut opening = 0;
        for index in chunker.parts_of(span) {
            let part = &chunker.parts[index];
            let whole = chunker.span(&(index..index + 1));
            let clipped = whole.start.max(span.start)..whole.end.min(span.end);
            let tokens = match clipped == whole {
                true => chunker.tokens(&(index..index + 1)),
                false => chunker.count(&clipped),
            };
            let opens = part.kind == BlockKind::Heading && tokens <= self.budget / 2;
            // A heading before a block that fills the window would become a chunk by itself, so prose leaves space for
            // it.
            let torn = !matches!(part.kind, BlockKind::Code | BlockKind::Table | BlockKind::Math);
            let room = self.budget.saturating_sub(if torn { opening } else { 0 });
            if tokens <= room {
                leaves.push(Leaf { start: clipped.start, tokens, opens });
            } else {
                self.cut_block(part, clipped, &mut leaves);
            }
            opening = if opens { opening + tokens } else { 0 };
        }
        leaves
    }

    /// Cuts a block at as few of its seams as possible.
    fn cut_block(&self, part: &Part, span: Range<usize>, leaves: &mut Vec<Leaf>) {
        let note = self.chunker.note;
        let seams = note.blocks.get(part.block).map_or(&[][..], |block| &block.seams[..]);
        let mut items: Vec<Item> = vec![Item { span: span.clone(), tokens: 0, indent: 0 }];
        let first = seams.partition_point(|seam| *seam <= span.start);
        for &seam in &seams[first..] {
            if seam >= span.end {
                break;
            }
            let start = line_start(note, seam);
            if let Some(last) = items.last_mut()
                && start > last.span.start
            {
                // In `- - a` the second item is indented further than the first.
                let inside = start == seam && !note.text[..start].ends_with('\n');
                let indent = if inside { last.indent + start - last.span.start } else { seam - start };
                last.span.end = start;
                items.push(Item { span: start..span.end, tokens: 0, indent });
            }
        }
        for item in &mut items {
            item.tokens = self.chunker.count(&item.span);
        }
        self.cut_items(&items, part.kind, 0, leaves);
    }

    fn cut_items(&self, items: &[Item], kind: BlockKind, depth: usize, leaves: &mut Vec<Leaf>) {
        let tokens: usize = items.iter().map(|item| item.tokens).sum();
        let whole = depth > 0 || (kind == BlockKind::List && items.len() == 1);
        if tokens <= self.budget && whole {
            leaves.push(Leaf { start: items[0].span.start, tokens, opens: false });
            return;
        }
        let [first, inner @ ..] = items else { return };
        let Some(outermost) = inner.iter().map(|item| item.indent).min() else {
            let borders: &[Border] = match kind {
                BlockKind::Code | BlockKind::Table | BlockKind::Math => {
                    &[Border::BlankLine, Border::Line, Border::Word]
                }
                _ => &[Border::BlankLine, Border::Sentence, Border::Line, Border::Word],
            };
            self.cut_text(first.span.clone(), first.tokens, borders, leaves);
            return;
        };
        let mut start = 0;
        for at in 1..=items.len() {
            let ends = items.get(at).is_none_or(|item| item.indent == outermost || depth >= DEEPEST);
            if ends {
                self.cut_items(&items[start..at], kind, depth + 1, leaves);
                start = at;
            }
        }
    }

    /// Cuts text at the first kind of border that it has, and pieces that are still too long at the next kind.
    fn cut_text(&self, span: Range<usize>, tokens: usize, borders: &[Border], leaves: &mut Vec<Leaf>) {
        let [border, finer @ ..] = borders else {
            return self.cut_characters(span, leaves);
        };
        if tokens <= self.budget && matches!(border, Border::Line | Border::Word) {
            leaves.push(Leaf { start: span.start, tokens, opens: false });
            return;
        }
        let text = self.chunker.note.slice(span.clone());
        let mut start = span.start;
        for end in self.borders(text, *border).map(|at| span.start + at).chain([span.end]) {
            let alone = start == span.start && end == span.end;
            if alone {
                return self.cut_text(span, tokens, finer, leaves);
            }
            let tokens = self.chunker.count(&(start..end));
            if tokens <= self.budget {
                leaves.push(Leaf { start, tokens, opens: false });
            } else {
                self.cut_text(start..end, tokens, finer, leaves);
            }
            start = end;
        }
    }

    fn cut_characters(&self, span: Range<usize>, leaves: &mut Vec<Leaf>) {
        let text = self.chunker.note.slice(span.clone());
        let mut at = 0;
        while at < text.len() {
            // At least one character.
            let end = text.floor_char_boundary(at + (self.budget / 4).max(4));
            let leaf = span.start + at..span.start + end;
            leaves.push(Leaf { start: leaf.start, tokens: self.chunker.count(&leaf), opens: false });
            at = end;
        }
    }

    /// The offsets where `text` may be cut, without its ends.
    fn borders<'t>(&self, text: &'t str, border: Border) -> Box<dyn Iterator<Item = usize> + 't> {
        match border {
            Border::BlankLine => {
                Box::new(lines(text).filter(|&at| text[..at - 1].trim_end_matches([' ', '\t', '\r']).ends_with('\n')))
            }
            Border::Line => Box::new(lines(text)),
            Border::Sentence => Box::new(sentences(text)),
            Border::Word => Box::new(words(text, (self.budget / 4).max(4))),
        }
    }
}

/// The span between two seams of a block.
struct Item {
    span: Range<usize>,
    tokens: usize,
    /// Bytes from the start of its line to its seam.
    indent: usize,
}

/// The number of leaves in the first piece, if all pieces fit the budget and have about the same length. `left` is the
/// number of tokens of all leaves.
fn first_run(leaves: &[Leaf], left: usize, budget: usize, most: usize) -> usize {
    let pieces = left.div_ceil(budget).max(1);
    let fair = left.div_ceil(pieces);
    let (mut run, mut tokens) = (0, 0);
    while let Some(leaf) = leaves.get(run).filter(|_| run < most.max(1)) {
        let opened = run > 0 && leaves[run - 1].opens;
        // Closer to the fair share with this leaf than without it.
        let wanted = pieces == 1 || opened || tokens + leaf.tokens / 2 <= fair;
        if run > 0 && (tokens + leaf.tokens > budget || !wanted) {
            break;
        }
        tokens += leaf.tokens;
        run += 1;
    }
    // Headings at the end stay with the text that they open.
    let closed = leaves[..run].iter().rposition(|leaf| !leaf.opens);
    match closed {
        Some(last) if run < leaves.len() => last + 1,
        _ => run,
    }
}

/// The starts of lines after the first.
fn lines(text: &str) -> impl Iterator<Item = usize> {
    text.bytes().enumerate().filter(|&(at, b)| b == b'\n' && at + 1 < text.len()).map(|(at, _)| at + 1)
}

/// The starts of sentences after the first: after `.`, `!`, `?` or `…`, closing quotes and brackets, and white space;
/// after `。！？` even without white space. A dot after a single letter or digit does not end a sentence.
fn sentences(text: &str) -> impl Iterator<Item = usize> {
    let mut chars = text.char_indices().peekable();
    let mut before = ['\0'; 2];
    std::iter::from_fn(move || {
        while let Some((_, c)) = chars.next() {
            let [two_before, one_before] = before;
            before = [one_before, c];
            let wide = matches!(c, '。' | '！' | '？' | '｡');
            let initial = one_before.is_alphanumeric() && !two_before.is_alphanumeric();
            if !wide && (!matches!(c, '.' | '!' | '?' | '…') || (c == '.' && initial)) {
                continue;
            }
            while let Some((_, c)) =
                chars.next_if(|(_, c)| matches!(c, '"' | '\'' | '”' | '’' | ')' | ']' | '*' | '_' | '」' | '』' | '）'))
            {
                before = [before[1], c];
            }
            let mut spaced = false;
            while chars.next_if(|(_, c)| c.is_whitespace()).is_some() {
                spaced = true;
            }
            match chars.peek() {
                Some(&(at, _)) if wide || spaced => return Some(at),
                _ => {}
            }
        }
        None
    })
}

/// The starts of words after the first, at most one in `step` bytes.
fn words(text: &str, step: usize) -> impl Iterator<Item = usize> {
    let mut last = 0;
    let mut after_space = false;
    text.char_indices().filter_map(move |(at, c)| {
        let starts = after_space && !c.is_whitespace();
        after_space = c.is_whitespace();
        (starts && at - last >= step).then(|| {
            last = at;
            at
        })
    })
}
