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

/// What one input decided, in order.
#[derive(Debug)]
pub struct Pieces<'p> {
    text: &'p str,
    /// Up to here `text` was given.
    given: usize,
    out: std::vec::Drain<'p, (usize, Piece<'static>)>,
    /// What stands behind the text that was given last.
    next: Option<Piece<'static>>,
}

impl<'p> Pieces<'p> {
    pub(super) fn new(text: &'p str, out: std::vec::Drain<'p, (usize, Piece<'static>)>) -> Self {
        Self { text, given: 0, out, next: None }
    }
}

impl<'p> Iterator for Pieces<'p> {
    type Item = Piece<'p>;

    fn next(&mut self) -> Option<Piece<'p>> {
        if let Some(piece) = self.next.take() {
            return Some(piece);
        }
        let end = match self.out.next() {
            Some((behind, piece)) if behind == self.given => return Some(piece),
            Some((behind, piece)) => {
                self.next = Some(piece);
                behind
            }
            None => self.text.len(),
        };
        let text = &self.text[self.given..end];
        self.given = end;
        (!text.is_empty()).then_some(Piece::Text(text))
    }
}
