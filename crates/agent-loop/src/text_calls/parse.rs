//! The streaming parser: text out as soon as it is text, calls as soon as they are complete, faults for the model.
//!
//! ```text
//!  Start ── a code fence and <tool_call> ──> Block, to the end of the reply
//!    │ anything else
//!    v
//!  Text ── <tool_call> ──> Opening ── { or [ ──> Value ── end ──> AfterValue ── closing tag ──> Text
//!   ^                        │ anything else      │ invalid JSON       │ <tool_call> ──> Opening
//!   └──── only mentioned ────┘                    └─> Broken ─ tag ──> └ anything else ──> Text
//! ```
//!
//! The end of a call is found by its JSON value, never by searching for the closing tag, which a string may contain.
//! Every decision depends on the bytes so far and never on how they were split. What is undecided is held back: the
//! beginning of a tag, or a whole reply that begins with a code fence around a call.

mod pieces;
mod utf8;
mod call_json;
mod leading_fence;

use super::fence::Fences;
use super::{CLOSE, OPEN};

pub use pieces::Piece;

use call_json::read_calls;
use leading_fence::{begins_with_fenced_call, calls_of_block};
use pieces::in_order;
use utf8::Utf8Decoder;

/// How deep a value may be nested; the JSON reader's own limit.
const MAX_DEPTH: usize = 127;
/// The longest wrong closing tag that is taken for one.
const MAX_TAG_BYTES: usize = 40;

/// Takes a reply's text in any pieces. Memory: the last input, and what is held back, at most one call or a fenced
/// reply. Buffers are reused: a delta that is text allocates nothing.
#[derive(Debug, Default)]
pub struct Parser {
    state: State,
    fences: Fences,
    /// What the state holds back.
    held: String,
    /// An incomplete character at the end of the last input.
    partial: Utf8Decoder,
    /// The text of the last input.
    text: String,
    /// The other pieces of the last input, each with its offset in `text`.
    out: Vec<(usize, Piece<'static>)>,
}

#[derive(Debug, Default)]
enum State {
    /// The reply may still be a single fenced block around calls.
    #[default]
    Start,
    /// It begins with a fence and a call: everything is held back to the end of the reply.
    Block,
    Text,
    /// After `<`: `held` is a beginning of the opening tag, or the tag, white space, and a fence if one is there.
    Opening,
    /// Inside the value, which begins at this offset of `held`.
    Value {
        from: usize,
        closers: Vec<u8>,
        string: InString,
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
enum InString {
    No,
    Yes,
    Escaped,
}

impl Parser {
    /// At the beginning of a reply.
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes the next bytes and returns the pieces they complete. Invalid UTF-8 is read as U+FFFD.
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

    /// The end of the reply: what was held back is decided. What is pushed next begins another reply.
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

    /// The input itself, if it is plain text in the middle of a line, which changes no state.
    fn pass_through<'p>(&self, bytes: &'p [u8]) -> Option<&'p str> {
        let is_plain = matches!(self.state, State::Text) && self.fences.is_settled();
        if !is_plain || !self.partial.is_empty() || memchr::memchr2(b'\n', b'<', bytes).is_some() {
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

    /// Takes decoded text.
    fn take(&mut self, text: &str) {
        let mut rest = text;
        while !rest.is_empty() {
            rest = self.advance(rest);
        }
    }

    /// Takes the beginning of a text that is not empty, and returns the rest.
    fn advance<'t>(&mut self, text: &'t str) -> &'t str {
        match &mut self.state {
            State::Start => self.advance_start(text),
            State::Block => {
                self.held.push_str(text);
                ""
            }
            State::Text => self.advance_text(text),
            State::Opening => self.advance_opening(text),
            State::Value { .. } => self.advance_value(text),
            State::Broken { .. } => self.advance_broken(text),
            State::AfterValue => self.advance_after_value(text),
            State::MaybeClose => self.advance_maybe_close(text),
        }
    }

    fn advance_start<'t>(&mut self, text: &'t str) -> &'t str {
        self.held.push_str(text);
        match begins_with_fenced_call(&self.held) {
            None => {}
            Some(true) => self.state = State::Block,
            Some(false) => self.take_held(),
        }
        ""
    }

    /// What is held turns out to begin with plain text.
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
                    memchr::memchr2(b'\n', b'<', &bytes[at..])
                };
                let Some(next) = next else { break };
                at += next;
            }
            if bytes[at] == b'<' && !self.fences.is_inside() && !self.fences.is_opening() {
                self.text.push_str(&text[..at]);
                self.held.push('<');
                self.fences.settle();
                self.state = State::Opening;
                return &text[at + 1..];
            }
            self.fences.take(bytes[at]);
            at += 1;
        }
        self.text.push_str(text);
        ""
    }

    fn advance_opening<'t>(&mut self, text: &'t str) -> &'t str {
        let byte = text.as_bytes()[0];
        let after_tag = self.held.get(OPEN.len()..);
        let fence = after_tag.unwrap_or_default().trim_ascii_start();
        let is_in_fence_line = fence.starts_with('`') && !fence.contains('\n');
        let fits = match byte {
            byte if after_tag.is_none() => byte == OPEN.as_bytes()[self.held.len()],
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
        // It is no tag, or only a mention of one.
        self.release_as_text();
        text
    }

    fn begin_value(&mut self, bracket: u8) {
        let (from, closer) = (self.held.len(), if bracket == b'{' { b'}' } else { b']' });
        self.held.push(char::from(bracket));
        self.state = State::Value { from, closers: vec![closer], string: InString::No };
    }

    /// What is held turns out to be text: its first character is, and the rest is looked at again.
    fn release_as_text(&mut self) {
        let mut held = std::mem::take(&mut self.held);
        self.state = State::Text;
        self.fences.settle();
        let (first, rest) = held.split_at(1);
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
                (InString::Escaped, _) => *string = InString::Yes,
                (InString::Yes, b'\\') => *string = InString::Escaped,
                (InString::Yes, b'"') => *string = InString::No,
                (InString::Yes, _) => {
                    let next = memchr::memchr2(b'"', b'\\', &bytes[at..]);
                    at += next.unwrap_or(bytes.len() - at);
                }
                (InString::No, b'"') => *string = InString::Yes,
                (InString::No, b'{') => closers.push(b'}'),
                (InString::No, b'[') => closers.push(b']'),
                (InString::No, b'}' | b']') if closers.pop() != Some(byte) => {
                    broken = Some("The JSON of the tool call is broken: its brackets do not match.");
                }
                (InString::No, _) => {}
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
        // Up to `>`, which may end a tag.
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
                self.fences.settle();
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
                self.fences.settle();
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
            self.fences.settle();
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
        self.fences.settle();
        self.take_held();
        text
    }

    /// The end of the text.
    fn end(&mut self) {
        let calls = matches!(self.state, State::Block).then(|| calls_of_block(&self.held)).flatten();
        if let Some(calls) = calls {
            self.held.clear();
            calls.into_iter().for_each(|call| self.emit(call));
        } else if matches!(self.state, State::Start | State::Block) {
            self.take_held();
        }
        let held = std::mem::take(&mut self.held);
        match std::mem::take(&mut self.state) {
            State::Start | State::Block | State::Text | State::AfterValue => {}
            State::Opening => {
                self.held = held;
                self.release_as_text();
            }
            State::Value { .. } => {
                let fault = "The tool call was cut off before its JSON was complete, so it did not run.".into();
                self.emit(Piece::Fault { fault, raw: held });
            }
            State::Broken { fault } => self.emit(Piece::Fault { fault, raw: held }),
            State::MaybeClose => {
                let tag = held.trim_ascii_start();
                // A truncated closing tag is dropped like a whole one.
                if !tag.starts_with("</") {
                    self.text.push_str(&held);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests;
