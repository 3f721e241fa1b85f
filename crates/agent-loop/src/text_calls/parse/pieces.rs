//! The parser's output: text, calls and faults in order.

/// What comes out of the text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Piece<'p> {
    /// Text, never empty. Two pieces of text side by side are one text.
    Text(&'p str),
    /// A complete call.
    Call {
        /// The tool's name, which may be the name of none.
        name: String,
        /// A JSON object as the model wrote it; `{}` where it wrote none.
        arguments: String,
    },
    /// A block that is no call.
    Fault {
        /// Why, in words for the model.
        fault: String,
        /// The block as it was written.
        raw: String,
    },
}

/// What one input decided, in order: its text, and the other pieces, each with its offset in the text.
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
