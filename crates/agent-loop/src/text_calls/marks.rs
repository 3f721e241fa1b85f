//! The marks that a parser looks for in the text of a model.

use super::OPEN;

/// A text that begins a call or thoughts. If one begins with another one, the longer one counts where it matches.
#[derive(Debug)]
pub(super) struct Mark {
    /// The text, which begins with an ASCII character.
    pub(super) text: &'static str,
    pub(super) place: Place,
    pub(super) kind: MarkKind,
}

/// Where a mark counts. No mark counts in a code fence.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Place {
    Anywhere,
    LineStart,
    ReplyStart,
}

#[derive(Debug, Clone, Copy)]
pub(super) enum MarkKind {
    /// A JSON value, which is a call, and the closing tag.
    Call,
    /// Thoughts, up to this mark.
    Thoughts(&'static str),
    /// Nothing: the mark is removed from the text.
    Skip,
    /// A block of calls for a format's reader.
    Block(Block),
}

/// A block of calls up to a mark.
#[derive(Debug, Clone, Copy)]
pub(super) struct Block {
    /// The marks any of which ends it. Without one it extends to the end of the reply.
    pub(super) closes: &'static [&'static str],
    /// Whether it contains JSON values, within which no mark ends it.
    pub(super) has_json: bool,
    /// Whether the end of the reply does not end it.
    pub(super) needs_close: bool,
    /// Which character may come first after white space. With another one the mark is only a mention.
    pub(super) begins: fn(char) -> bool,
    /// Whether the text after it is left out, because it consists of results that the model invents.
    pub(super) ends_reply: bool,
}

impl Mark {
    pub(super) const fn new(text: &'static str, place: Place, kind: MarkKind) -> Self {
        Self { text, place, kind }
    }

    pub(super) const fn thoughts(open: &'static str, close: &'static str) -> Self {
        Self::new(open, Place::LineStart, MarkKind::Thoughts(close))
    }

    pub(super) const fn skip(text: &'static str) -> Self {
        Self::new(text, Place::Anywhere, MarkKind::Skip)
    }

    /// Creates a block of any content.
    pub(super) const fn block(text: &'static str, closes: &'static [&'static str]) -> Self {
        let block = Block { closes, has_json: false, needs_close: true, begins: |_| true, ends_reply: false };
        Self::new(text, Place::Anywhere, MarkKind::Block(block))
    }

    /// Creates a block that contains JSON values.
    pub(super) const fn json(text: &'static str, closes: &'static [&'static str]) -> Self {
        let block = Block { closes, has_json: true, needs_close: false, begins: |_| true, ends_reply: false };
        Self::new(text, Place::Anywhere, MarkKind::Block(block))
    }

    /// Returns the same block, whose content must begin with such a character.
    pub(super) const fn beginning(self, begins: fn(char) -> bool) -> Self {
        match self.kind {
            MarkKind::Block(block) => Self { kind: MarkKind::Block(Block { begins, ..block }), ..self },
            _ => self,
        }
    }

    /// Returns the same mark, which counts only at this place.
    pub(super) const fn at(self, place: Place) -> Self {
        Self { place, ..self }
    }
}

/// `<think>` of most models, and a variant that some write instead.
pub(super) const THINK: Mark = Mark::thoughts("<think>", "</think>");
pub(super) const THINKING: Mark = Mark::thoughts("<thinking>", "</thinking>");

/// The marks for a model without tools.
pub(super) static PLAIN: &[Mark] = &[THINK, THINKING];

/// The marks of [`Format::Hermes`](super::Format::Hermes).
pub(super) static HERMES: &[Mark] = &[Mark::new(OPEN, Place::Anywhere, MarkKind::Call), THINK, THINKING];
