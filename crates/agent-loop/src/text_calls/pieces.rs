//! The parser's output: text, calls and faults in order.

/// A piece of a parsed reply.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Piece<'p> {
    /// Text, never empty. Adjacent pieces of text belong together.
    Text(&'p str),
    /// Thoughts that the model wrote as text, never empty. Adjacent pieces belong together. They never contain a call.
    Reasoning(String),
    /// A complete call.
    Call {
        /// The name as written. There may be no such tool.
        name: String,
        /// A JSON object as the model wrote it; `{}` if it wrote none.
        arguments: String,
    },
    /// A block that is not a valid call.
    Fault {
        /// The reason, in words for the model.
        fault: String,
        /// The block as it was written.
        raw: String,
    },
}

/// Merges the text of one input with the other pieces, each of which has an offset in the text.
pub(super) fn in_order<'p>(
    text: &'p str,
    others: impl Iterator<Item = (usize, Piece<'static>)> + 'p,
) -> impl Iterator<Item = Piece<'p>> {
    let mut given = 0;
    let others = others.map(|(at, other)| (at, Some(other))).chain([(text.len(), None)]);
    others.flat_map(move |(at, other)| {
        let before = &text[given..at];
        given = at;
        (!before.is_empty()).then_some(Piece::Text(before)).into_iter().chain(other)
    })
}
