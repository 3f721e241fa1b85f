//! The marks that a parser looks for in the text of a model.

use super::OPEN;

/// A mark and what it begins. Of two marks of which one begins with the other, the longer one counts where it stands.
#[derive(Debug)]
pub(super) struct Mark {
    /// Begins with an ASCII character.
    pub(super) text: &'static str,
    pub(super) place: Place,
    pub(super) kind: MarkKind,
}

/// Where a mark counts. In a code fence none does.
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
    /// Nothing: the mark is left out of the text.
    Skip,
    /// What a format's reader takes for calls.
    Block(Block),
}

/// Calls up to a mark.
#[derive(Debug, Clone, Copy)]
pub(super) struct Block {
    /// Any of these ends it. None: it goes on to the end of the reply.
    pub(super) closes: &'static [&'static str],
    /// Whether it holds JSON values, within which no mark ends it.
    pub(super) has_json: bool,
    /// Whether the end of the reply is no end of it.
    pub(super) needs_close: bool,
    /// Which character, white space aside, may come first; with another one the mark is only mentioned.
    pub(super) begins: fn(char) -> bool,
    /// What comes behind it is left out: results that the model invents.
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

    /// A block of anything.
    pub(super) const fn block(text: &'static str, closes: &'static [&'static str]) -> Self {
        let block = Block { closes, has_json: false, needs_close: true, begins: |_| true, ends_reply: false };
        Self::new(text, Place::Anywhere, MarkKind::Block(block))
    }

    /// A block that holds JSON values.
    pub(super) const fn json(text: &'static str, closes: &'static [&'static str]) -> Self {
        let block = Block { closes, has_json: true, needs_close: false, begins: |_| true, ends_reply: false };
        Self::new(text, Place::Anywhere, MarkKind::Block(block))
    }

    /// The same block where it begins so.
    pub(super) const fn beginning(self, begins: fn(char) -> bool) -> Self {
        match self.kind {
            MarkKind::Block(block) => Self { kind: MarkKind::Block(Block { begins, ..block }), ..self },
            _ => self,
        }
    }

    /// The same mark where it stands there.
    pub(super) const fn at(self, place: Place) -> Self {
        Self { place, ..self }
    }
}

/// `<think>` of most models, and what some write instead.
pub(super) const THINK: Mark = Mark::thoughts("<think>", "</think>");
pub(super) const THINKING: Mark = Mark::thoughts("<thinking>", "</thinking>");

/// Of a model that is not offered tools.
pub(super) static PLAIN: &[Mark] = &[THINK, THINKING];

/// Of [`Format::Hermes`](super::Format::Hermes).
pub(super) static HERMES: &[Mark] = &[Mark::new(OPEN, Place::Anywhere, MarkKind::Call), THINK, THINKING];
