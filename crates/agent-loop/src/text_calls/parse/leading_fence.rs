//! Recognizes a reply that is one fenced block around calls. The calls in it count.

use super::{Fences, OPEN, Parser, Piece, State};

/// The first mark of a reply must begin before this byte to count as its beginning.
pub(super) const LONGEST_LEAD: usize = 256;

/// Returns whether a reply begins with a fence and a call; `None` while that is undecided.
pub(super) fn begins_with_fenced_call(held: &str) -> Option<bool> {
    let mut fences = Fences::default();
    for (at, byte) in held.bytes().enumerate().take(LONGEST_LEAD) {
        let is_tag = byte == b'<' && fences.is_opening();
        fences.take(byte);
        // A tag directly after the marks is inside the block, as on the next line.
        if is_tag || (byte == b'\n' && fences.is_inside()) {
            let inner = held[at..].trim_ascii_start();
            return match held.len() - inner.len() {
                LONGEST_LEAD.. => Some(false),
                _ if inner.len() < OPEN.len() && OPEN.starts_with(inner) => None,
                _ => Some(inner.starts_with(OPEN)),
            };
        }
        if fences.is_settled() && !fences.is_inside() && !byte.is_ascii_whitespace() {
            return Some(false);
        }
    }
    (held.len() >= LONGEST_LEAD).then_some(false)
}

/// Returns the calls of a reply that is one fenced block; `None` if there is anything else in it.
pub(super) fn calls_of_block(reply: &str) -> Option<Vec<Piece<'static>>> {
    let mut fences = Fences::default();
    let reply = reply.trim_ascii();
    reply.bytes().for_each(|byte| fences.take(byte));
    let after_marks = reply.trim_start_matches(reply.chars().next()?);
    let inner = if after_marks.starts_with(OPEN) { after_marks } else { reply.split_once('\n')?.1 };
    let inner = match inner.rsplit_once('\n') {
        Some((inner, _)) if fences.ends_closed() => inner,
        _ => inner,
    };
    let mut parser = Parser { state: State::Text, ..Parser::default() };
    parser.take(inner);
    parser.end();
    parser.text.trim().is_empty().then(|| parser.out.into_iter().map(|(_, piece)| piece).collect())
}
