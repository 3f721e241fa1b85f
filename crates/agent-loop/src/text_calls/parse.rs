//! The streaming parser: emits text immediately, calls as soon as they are complete, and faults for the model.
//!
//! ```text
//!  Start ── a code fence and <tool_call> ──> Fenced, to the end of the reply
//!    │ anything else
//!    v
//!  Text ── beginning of a mark ──> Mark ── <think> ──> Thoughts ── </think> ──> AfterThoughts ──> Text
//!   ^                               │ <tool_call>       └─ a format's own mark ──> Block ── its end ──> Text
//!   │                               v
//!   │                             Opening ── { or [ ──> Value ── end ──> AfterValue ── closing tag ──> Text
//!   ^                        │ anything else      │ invalid JSON       │ <tool_call> ──> Opening
//!   └──── only mentioned ────┘                    └─> Broken ─ tag ──> └ anything else ──> Text
//! ```
//!
//! The end of a call is found by its JSON value, never by searching for the closing tag, because a string may contain
//! that tag. Every decision depends on the bytes so far and never on how they were split. Undecided text is held back:
//! the beginning of a tag, or a whole reply that begins with a code fence around a call.

mod utf8;
mod json_scan;
mod leading_fence;
mod marked;

use std::sync::Arc;

use crate::tool::ToolSpec;

use super::call_json::read_calls;
use super::families::Format;
use super::fence::Fences;
use super::marks::{Block, HERMES, Mark, MarkKind, PLAIN, Place};
use super::pieces::{Piece, in_order};
use super::{CLOSE, OPEN};

use json_scan::JsonScan;
use leading_fence::{LONGEST_LEAD, begins_with_fenced_call, calls_of_block};
use utf8::Utf8Decoder;

/// The deepest nesting of a value, which is the JSON reader's own limit.
const MAX_DEPTH: usize = 127;
/// The longest wrong closing tag that is accepted as one.
const MAX_TAG_BYTES: usize = 40;

/// Parses a reply's text in any pieces. It stores the last input and the text that is held back, which is at most one
/// call or a fenced reply. Buffers are reused: a delta of plain text allocates nothing.
#[derive(Debug, Default)]
pub struct Parser {
    state: State,
    marks: Marks,
    format: Format,
    tools: Arc<[ToolSpec]>,
    fences: Fences,
    /// The text that the state holds back.
    held: String,
    /// An incomplete character at the end of the last input.
    partial: Utf8Decoder,
    /// The text of the last input.
    text: String,
    /// The other pieces of the last input, each with its offset in `text`.
    out: Vec<(usize, Piece<'static>)>,
}

/// The marks that the parser looks for.
#[derive(Debug, Clone, Copy)]
struct Marks(&'static [Mark]);

impl Default for Marks {
    fn default() -> Self {
        Self(HERMES)
    }
}

#[derive(Debug, Default)]
enum State {
    /// The reply may still be a single fenced block around calls.
    #[default]
    Start,
    /// The reply begins with a fence and a call. Everything is held back to the end of the reply.
    Fenced,
    Text,
    /// `held` ends, from this offset on, with the beginning of a mark.
    Mark {
        from: usize,
        is_line_start: bool,
        is_reply_start: bool,
    },
    /// Thoughts up to this mark. `held` is a beginning of the mark.
    Thoughts {
        close: &'static str,
        is_reply_start: bool,
    },
    /// After thoughts, where white space is dropped.
    AfterThoughts {
        is_reply_start: bool,
    },
    /// After the mark of a format's block, with which `held` begins.
    Block {
        mark: &'static Mark,
        block: Block,
        json: JsonScan,
        has_begun: bool,
    },
    /// All further text is left out.
    Rest,
    /// `held` is the opening tag, white space, and a fence if there is one.
    Opening,
    /// Inside the value, which begins at this offset of `held`.
    Value {
        from: usize,
        closers: Vec<u8>,
        string: StringState,
    },
    /// After invalid JSON, up to the next tag.
    Broken {
        fault: String,
    },
    /// After a value: white space, junk, a fence; `held` is the white space after the last of them.
    AfterValue,
    /// After a value and a `<`.
    MaybeClose,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum StringState {
    No,
    Yes,
    Escaped,
}

impl Parser {
    /// Creates a parser for calls in Hermes' form.
    pub fn new() -> Self {
        Self::default()
    }

    /// Creates a parser for a reply to a request that offers these tools, with calls in this format. Some formats need
    /// the schemas to read arguments. Without tools nothing is a call.
    pub fn of(format: Format, tools: Arc<[ToolSpec]>) -> Self {
        let marks = if tools.is_empty() && format == Format::Hermes { PLAIN } else { format.marks() };
        Self { marks: Marks(marks), format, tools, ..Self::default() }
    }

    /// Returns the mark of the open call, and the part of the call after it. `None` if no call is open.
    pub fn open_call(&self) -> Option<(&str, &str)> {
        match &self.state {
            State::Opening => Some((OPEN, &self.held[OPEN.len()..])),
            State::Block { mark, .. } => Some((mark.text, &self.held[mark.text.len()..])),
            State::Value { .. } | State::AfterValue | State::MaybeClose => Some((OPEN, &self.held)),
            State::Fenced if self.held.ends_with(OPEN) => Some((OPEN, "")),
            _ => None,
        }
    }

    /// Returns whether the next text belongs to thoughts.
    pub fn is_in_thoughts(&self) -> bool {
        matches!(self.state, State::Thoughts { .. })
    }

    /// Parses the next bytes and returns the pieces that they complete. Invalid UTF-8 is read as U+FFFD.
    pub fn push<'p>(&'p mut self, bytes: &'p [u8]) -> impl Iterator<Item = Piece<'p>> {
        self.clear();
        if let Some(text) = self.pass_through(bytes) {
            return in_order(text, self.out.drain(..));
        }
        let mut partial = std::mem::take(&mut self.partial);
        partial.decode(bytes, |text| self.take(text));
        self.partial = partial;
        in_order(&self.text, self.out.drain(..))
    }

    /// Ends the reply and returns the pieces that were held back. The next bytes begin another reply.
    pub fn finish(&mut self) -> impl Iterator<Item = Piece<'_>> {
        self.clear();
        if !self.partial.is_empty() {
            self.partial.clear();
            self.take("\u{fffd}");
        }
        self.end();
        (self.state, self.fences) = Default::default();
        in_order(&self.text, self.out.drain(..))
    }

    /// Returns the input itself if it is plain text in the middle of a line, which changes no state.
    fn pass_through<'p>(&self, bytes: &'p [u8]) -> Option<&'p str> {
        let is_plain = matches!(self.state, State::Text) && self.fences.is_settled();
        if !is_plain || !self.partial.is_empty() || self.next_of_interest(bytes).is_some() {
            return None;
        }
        std::str::from_utf8(bytes).ok()
    }

    fn clear(&mut self) {
        self.text.clear();
        self.out.clear();
    }

    fn emit(&mut self, piece: Piece<'static>) {
        self.out.push((self.text.len(), piece));
    }

    /// Parses decoded text.
    fn take(&mut self, text: &str) {
        let mut rest = text;
        while !rest.is_empty() {
            rest = self.advance(rest);
        }
    }

    /// Parses the beginning of a text that is not empty, and returns the rest.
    fn advance<'t>(&mut self, text: &'t str) -> &'t str {
        match &mut self.state {
            State::Start => self.advance_start(text),
            State::Fenced => {
                self.held.push_str(text);
                ""
            }
            State::Text => self.advance_text(text),
            State::Mark { .. } => self.advance_mark(text),
            State::Thoughts { .. } => self.advance_thoughts(text),
            State::AfterThoughts { is_reply_start } => {
                let is_reply_start = *is_reply_start;
                let rest = text.trim_ascii_start();
                if !rest.is_empty() {
                    self.state = if is_reply_start { State::Start } else { State::Text };
                }
                rest
            }
            State::Block { .. } => self.advance_block(text),
            State::Rest => "",
            State::Opening => self.advance_opening(text),
            State::Value { .. } => self.advance_value(text),
            State::Broken { .. } => self.advance_broken(text),
            State::AfterValue => self.advance_after_value(text),
            State::MaybeClose => self.advance_maybe_close(text),
        }
    }

    fn advance_start<'t>(&mut self, text: &'t str) -> &'t str {
        if self.held.trim_ascii_start().is_empty() {
            let white = text.len() - text.trim_ascii_start().len();
            let (white, rest) = text.split_at(white);
            if self.held.len() + white.len() < LONGEST_LEAD
                && rest.bytes().next().is_some_and(|byte| self.begins_mark(byte))
            {
                self.held.push_str(white);
                let from = self.held.len();
                self.state = State::Mark { from, is_line_start: true, is_reply_start: true };
                return rest;
            }
        }
        self.held.push_str(text);
        let has_tag = self.marks.0.iter().any(|mark| matches!(mark.kind, MarkKind::Call));
        match begins_with_fenced_call(&self.held).filter(|_| has_tag) {
            None if has_tag || (self.held.len() < LONGEST_LEAD && self.held.trim_ascii_start().is_empty()) => {}
            None => self.take_held(),
            Some(true) => self.state = State::Fenced,
            Some(false) => self.take_held(),
        }
        ""
    }

    fn begins_mark(&self, byte: u8) -> bool {
        self.marks.0.iter().any(|mark| mark.text.as_bytes()[0] == byte)
    }

    /// Returns where the next line or mark may begin.
    fn next_of_interest(&self, bytes: &[u8]) -> Option<usize> {
        if self.marks.0.iter().all(|mark| mark.text.starts_with('<')) {
            memchr::memchr2(b'\n', b'<', bytes)
        } else {
            bytes.iter().position(|byte| *byte == b'\n' || self.begins_mark(*byte))
        }
    }

    /// Parses the held text again, because it begins with plain text.
    fn take_held(&mut self) {
        let held = std::mem::take(&mut self.held);
        self.state = State::Text;
        self.take(&held);
    }

    fn advance_text<'t>(&mut self, text: &'t str) -> &'t str {
        let bytes = text.as_bytes();
        let mut at = 0;
        while at < bytes.len() {
            if self.fences.is_settled() {
                let next = if self.fences.is_inside() {
                    memchr::memchr(b'\n', &bytes[at..])
                } else {
                    self.next_of_interest(&bytes[at..])
                };
                let Some(next) = next else { break };
                at += next;
            }
            if !self.fences.is_inside() && !self.fences.is_opening() && self.begins_mark(bytes[at]) {
                self.text.push_str(&text[..at]);
                let is_line_start = self.fences.is_line_start();
                self.state = State::Mark { from: 0, is_line_start, is_reply_start: false };
                return &text[at..];
            }
            self.fences.take(bytes[at]);
            at += 1;
        }
        self.text.push_str(text);
        ""
    }

    fn advance_opening<'t>(&mut self, text: &'t str) -> &'t str {
        let byte = text.as_bytes()[0];
        let fence = self.held[OPEN.len()..].trim_ascii_start();
        let is_in_fence_line = fence.starts_with('`') && !fence.contains('\n');
        let fits = match byte {
            b'`' => fence.trim_ascii_end().chars().all(|c| c == '`'),
            b'\n' if is_in_fence_line => fence.starts_with("```"),
            b'{' | b'[' if !is_in_fence_line => {
                self.begin_value(byte);
                return &text[1..];
            }
            byte if is_in_fence_line => byte.is_ascii_alphanumeric() || b"_- ".contains(&byte),
            byte => byte.is_ascii_whitespace(),
        };
        if fits && self.held.len() < OPEN.len() + 4 * MAX_TAG_BYTES {
            self.held.push(char::from(byte));
            return &text[1..];
        }
        // It is not a tag, or only a mention of one.
        self.release_as_text();
        text
    }

    fn begin_value(&mut self, bracket: u8) {
        let (from, closer) = (self.held.len(), if bracket == b'{' { b'}' } else { b']' });
        self.held.push(char::from(bracket));
        self.state = State::Value { from, closers: vec![closer], string: StringState::No };
    }

    /// Emits the first character of the held text as text and parses the rest again.
    fn release_as_text(&mut self) {
        let from = if let State::Mark { from, .. } = self.state { from } else { 0 };
        let mut held = std::mem::take(&mut self.held);
        self.state = State::Text;
        let (first, rest) = held.split_at(from + 1);
        first.bytes().for_each(|byte| self.fences.take(byte));
        self.text.push_str(first);
        self.take(rest);
        if self.held.is_empty() {
            held.clear();
            self.held = held;
        }
    }

    fn advance_value<'t>(&mut self, text: &'t str) -> &'t str {
        let State::Value { from, closers, string } = &mut self.state else { return text };
        let bytes = text.as_bytes();
        let mut at = 0;
        let mut broken = None;
        while at < bytes.len() {
            let byte = bytes[at];
            at += 1;
            match (*string, byte) {
                (StringState::Escaped, _) => *string = StringState::Yes,
                (StringState::Yes, b'\\') => *string = StringState::Escaped,
                (StringState::Yes, b'"') => *string = StringState::No,
                (StringState::Yes, _) => {
                    let next = memchr::memchr2(b'"', b'\\', &bytes[at..]);
                    at += next.unwrap_or(bytes.len() - at);
                }
                (StringState::No, b'"') => *string = StringState::Yes,
                (StringState::No, b'{') => closers.push(b'}'),
                (StringState::No, b'[') => closers.push(b']'),
                (StringState::No, b'}' | b']') if closers.pop() != Some(byte) => {
                    broken = Some("The JSON of the tool call is broken: its brackets do not match.");
                }
                (StringState::No, _) => {}
            }
            if closers.len() > MAX_DEPTH {
                broken = Some("The JSON of the tool call is nested too deep.");
            }
            if broken.is_some() || closers.is_empty() {
                break;
            }
        }
        let is_done = closers.is_empty();
        let from = *from;
        self.held.push_str(&text[..at]);
        if let Some(fault) = broken {
            self.state = State::Broken { fault: fault.into() };
        } else if is_done {
            match read_calls(&self.held[from..]) {
                Ok(calls) => {
                    self.held.clear();
                    calls.into_iter().for_each(|call| self.emit(call));
                    self.state = State::AfterValue;
                }
                Err(fault) => self.state = State::Broken { fault },
            }
        }
        &text[at..]
    }

    fn advance_broken<'t>(&mut self, text: &'t str) -> &'t str {
        let State::Broken { fault } = &mut self.state else { return text };
        // The chunk ends at `>`, which may end a tag.
        let end = memchr::memchr(b'>', text.as_bytes()).map_or(text.len(), |at| at + 1);
        self.held.push_str(&text[..end]);
        let tag = [CLOSE, OPEN].into_iter().find(|tag| self.held.len() > OPEN.len() && self.held.ends_with(tag));
        if let Some(tag) = tag {
            let fault = std::mem::take(fault);
            let mut raw = std::mem::take(&mut self.held);
            if tag == OPEN {
                raw.truncate(raw.len() - OPEN.len());
                self.held.push_str(OPEN);
                self.state = State::Opening;
            } else {
                self.state = State::Text;
                self.fences.treat_as_text();
            }
            self.emit(Piece::Fault { fault, raw });
        }
        &text[end..]
    }

    fn advance_after_value<'t>(&mut self, text: &'t str) -> &'t str {
        match text.as_bytes()[0] {
            byte @ (b' ' | b'\t' | b'\n' | b'\r') => self.held.push(char::from(byte)),
            b'>' | b'}' | b'`' => self.held.clear(),
            b'{' => {
                self.held = OPEN.into();
                self.begin_value(b'{');
            }
            b'<' => {
                self.held.push('<');
                self.state = State::MaybeClose;
            }
            _ => {
                self.fences.treat_as_text();
                self.take_held();
                return text;
            }
        }
        &text[1..]
    }

    fn advance_maybe_close<'t>(&mut self, text: &'t str) -> &'t str {
        let byte = text.as_bytes()[0];
        let tag_at = self.held.len() - self.held.trim_ascii_start().len();
        let tag = &self.held[tag_at..];
        let is_closing = tag.len() > 1 && tag.as_bytes()[1] == b'/';
        if is_closing && byte == b'>' {
            self.held.clear();
            self.state = State::Text;
            self.fences.treat_as_text();
            return &text[1..];
        }
        let may_go_on = if is_closing {
            tag.len() < MAX_TAG_BYTES && (byte.is_ascii_alphanumeric() || b"_-: |".contains(&byte))
        } else {
            (tag.len() == 1 && byte == b'/') || OPEN.as_bytes().get(tag.len()) == Some(&byte)
        };
        if may_go_on {
            self.held.push(char::from(byte));
            if self.held.ends_with(OPEN) {
                self.held = OPEN.into();
                self.state = State::Opening;
            }
            return &text[1..];
        }
        self.fences.treat_as_text();
        self.take_held();
        text
    }

    /// Handles the end of the text.
    fn end(&mut self) {
        const CUT: &str = "The tool call was cut off before it was complete, so it did not run.";
        loop {
            match &mut self.state {
                State::Start => self.take_held(),
                State::Fenced => match calls_of_block(&self.held) {
                    Some(calls) => {
                        self.state = State::Rest;
                        calls.into_iter().for_each(|call| self.emit(call));
                    }
                    None => self.take_held(),
                },
                State::Mark { .. } => self.decide_mark(),
                State::Opening => self.release_as_text(),
                _ => break,
            }
        }
        let held = std::mem::take(&mut self.held);
        match std::mem::take(&mut self.state) {
            State::Thoughts { .. } if !held.is_empty() => self.emit(Piece::Reasoning(held)),
            State::Value { .. } => self.emit(Piece::Fault { fault: CUT.into(), raw: held }),
            State::Broken { fault } => self.emit(Piece::Fault { fault, raw: held }),
            State::Block { block, .. } if block.needs_close => self.emit(Piece::Fault { fault: CUT.into(), raw: held }),
            State::Block { mark, .. } => {
                let inside = held[mark.text.len()..].to_string();
                self.held = held;
                self.end_block(mark, &inside);
            }
            // A truncated closing tag is dropped like a whole one.
            State::MaybeClose if !held.trim_ascii_start().starts_with("</") => self.text.push_str(&held),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests;
#[cfg(test)]
mod family_tests;
