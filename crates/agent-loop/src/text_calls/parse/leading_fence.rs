//! Handles a reply that is a single fenced block: calls inside it count.

use super::{Fences, OPEN, Parser, Piece};

/// Whether the reply may still be one fenced block around calls.
#[derive(Debug, Default)]
pub(super) enum LeadingFence {
    /// Only white space so far.
    #[default]
    Space,
    /// The fence and its info.
    Fence,
    /// White space inside the block, then a beginning of the opening tag of this length.
    Inside(usize),
    /// The opening tag was there: all is held until it is known what follows the block.
    Block,
    /// It is not such a reply.
    Off,
}

impl Parser {
    /// One byte while the reply may be one fenced block; what is left of the text.
    pub(super) fn take_leading_fence<'t>(&mut self, text: &'t str) -> &'t str {
        let byte = text.as_bytes()[0];
        let before = self.fences.clone();
        self.fences.take(byte);
        let goes_on = match &mut self.leading_fence {
            LeadingFence::Space if byte.is_ascii_whitespace() => true,
            LeadingFence::Space => {
                self.leading_fence = LeadingFence::Fence;
                byte == b'`' || byte == b'~'
            }
            LeadingFence::Fence if byte == b'\n' => {
                self.leading_fence = LeadingFence::Inside(0);
                self.fences.is_inside()
            }
            // A tag directly behind the marks stands in the block as much as one on the next line.
            LeadingFence::Fence if byte == b'<' && before.is_opening() => {
                self.leading_fence = LeadingFence::Inside(1);
                true
            }
            LeadingFence::Fence => self.fences.is_inside() || !self.fences.is_settled(),
            LeadingFence::Inside(0) if byte.is_ascii_whitespace() => true,
            LeadingFence::Inside(length) => {
                let fits = OPEN.as_bytes()[*length] == byte;
                *length += 1;
                if *length == OPEN.len() {
                    self.leading_fence = LeadingFence::Block;
                }
                fits
            }
            LeadingFence::Block => before.is_inside() || byte.is_ascii_whitespace(),
            LeadingFence::Off => false,
        };
        if goes_on {
            let length = text.chars().next().map_or(1, char::len_utf8);
            text.as_bytes()[1..length].iter().for_each(|byte| self.fences.take(*byte));
            self.held.push_str(&text[..length]);
            return &text[length..];
        }
        self.leading_fence = LeadingFence::Off;
        self.fences = Fences::default();
        let held = std::mem::take(&mut self.held);
        self.take(&held);
        text
    }
}

/// The calls of a reply that is one fenced block; `None` when there is anything else in it.
pub(super) fn calls_of_block(reply: &str) -> Option<Vec<Piece<'static>>> {
    let mut fences = Fences::default();
    let reply = reply.trim_ascii();
    reply.bytes().for_each(|byte| fences.take(byte));
    let behind_marks = reply.trim_start_matches(reply.chars().next()?);
    let inner = if behind_marks.starts_with(OPEN) { behind_marks } else { reply.split_once('\n')?.1 };
    let inner = match inner.rsplit_once('\n') {
        Some((inner, _)) if fences.ends_closed() => inner,
        _ => inner,
    };
    let mut parser = Parser { leading_fence: LeadingFence::Off, ..Parser::default() };
    parser.take(inner);
    parser.end();
    parser.text.trim().is_empty().then(|| parser.out.into_iter().map(|(_, piece)| piece).collect())
}
