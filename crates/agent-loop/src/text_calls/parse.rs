//! The streaming parser: text out as soon as it is text, calls as soon as they are complete, faults for the model.
//!
//! ```text
//!  Text ── <tool_call> ──> Opened ── { or [ ──> Value ── its end ──> Behind ── closing tag ──> Text
//!   ^                        │ anything else      │ no JSON            │ <tool_call> ──> Opened
//!   └──────── was text ──────┘                    └─> Broken ─ tag ──> └ anything else ──> Text
//! ```
//!
//! The end of a call is found by its JSON value, never by searching for the closing tag, which a string may contain.
//! Every decision depends on the bytes seen so far and never on how they were split. What is undecided is held back: a
//! beginning of a tag, or a whole reply that begins with a code fence around a call.

use std::collections::VecDeque;

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::model::read_arguments;

use super::fence::Fences;
use super::{CLOSE, OPEN};

/// What comes out of the text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Piece {
    /// Text, never empty. Two pieces of text side by side are one text.
    Text(String),
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

/// How deep a value may be nested; the JSON reader's own limit.
const DEEPEST: usize = 127;
/// The longest wrong closing tag that is taken for one.
const LONGEST_TAG: usize = 40;

/// Takes a reply's text in any pieces. Memory: what is held back, at most one call or a fenced reply.
#[derive(Debug, Default)]
pub struct Parser {
    state: State,
    fences: Fences,
    lead: Lead,
    /// What the state holds back.
    held: String,
    /// Bytes at the end of the last input that are no whole character yet.
    partial: Vec<u8>,
    text: String,
    out: VecDeque<Piece>,
}

#[derive(Debug, Default)]
enum State {
    #[default]
    Text,
    /// Behind `<`: `held` is a beginning of the opening tag.
    MaybeOpen,
    /// Behind the opening tag: white space, and a fence if one is there.
    Opened,
    /// Inside the value, which begins at this place of `held`.
    Value { from: usize, closers: Vec<u8>, string: InString },
    /// Behind what is no JSON, up to the next tag.
    Broken { fault: String },
    /// Behind a value: white space, junk, a fence; `held` is the white space behind the last of them.
    Behind,
    /// Behind a value and a `<`.
    MaybeClose,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum InString {
    No,
    Yes,
    Escaped,
}

/// Whether the reply may still be one fenced block around calls.
#[derive(Debug, Default)]
enum Lead {
    /// Only white space so far.
    #[default]
    Space,
    /// The fence and its info.
    Fence,
    /// White space inside the block, then a beginning of the opening tag of this length.
    Inside(usize),
    /// The opening tag was there: all is held until it is known what follows the block.
    Block,
    /// It is none.
    Off,
}

impl Parser {
    /// At the beginning of a reply.
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes the next bytes and gives what they decide. Bytes that are no UTF-8 are read as U+FFFD.
    pub fn push(&mut self, bytes: &[u8]) -> impl Iterator<Item = Piece> + '_ {
        self.decode(bytes);
        self.flush_text();
        self.out.drain(..)
    }

    /// The end of the reply: what was held back is decided.
    pub fn finish(mut self) -> impl Iterator<Item = Piece> {
        if !self.partial.is_empty() {
            self.partial.clear();
            self.take("\u{fffd}");
        }
        if !matches!(self.lead, Lead::Off) {
            let held = std::mem::take(&mut self.held);
            let is_block = matches!(self.lead, Lead::Block);
            self.lead = Lead::Off;
            match is_block.then(|| calls_of_block(&held)).flatten() {
                Some(calls) => self.out.extend(calls),
                None => {
                    self.fences = Fences::default();
                    self.take(&held);
                }
            }
        }
        self.end();
        self.flush_text();
        self.out.into_iter()
    }

    fn decode(&mut self, bytes: &[u8]) {
        if self.partial.is_empty() {
            return self.decode_from_start(bytes);
        }
        let mut joined = std::mem::take(&mut self.partial);
        joined.extend_from_slice(bytes);
        self.decode_from_start(&joined);
    }

    /// Takes bytes that begin with a character.
    fn decode_from_start(&mut self, bytes: &[u8]) {
        let mut rest = bytes;
        loop {
            let error = match std::str::from_utf8(rest) {
                Ok(text) => return self.take(text),
                Err(error) => error,
            };
            let (valid, after) = rest.split_at(error.valid_up_to());
            self.take(std::str::from_utf8(valid).unwrap_or_default());
            let Some(length) = error.error_len() else {
                self.partial = after.to_vec();
                return;
            };
            self.take("\u{fffd}");
            rest = &after[length..];
        }
    }

    fn flush_text(&mut self) {
        if !self.text.is_empty() {
            self.out.push_back(Piece::Text(std::mem::take(&mut self.text)));
        }
    }

    fn emit(&mut self, piece: Piece) {
        self.flush_text();
        self.out.push_back(piece);
    }

    /// Takes text that is whole in itself.
    fn take(&mut self, text: &str) {
        let mut rest = text;
        while !rest.is_empty() && !matches!(self.lead, Lead::Off) {
            rest = self.take_lead(rest);
        }
        while !rest.is_empty() {
            rest = self.step(rest);
        }
    }

    /// One byte while the reply may be one fenced block; what is left of the text.
    fn take_lead<'t>(&mut self, text: &'t str) -> &'t str {
        let byte = text.as_bytes()[0];
        let before = self.fences.clone();
        self.fences.take(byte);
        let goes_on = match &mut self.lead {
            Lead::Space if byte.is_ascii_whitespace() => true,
            Lead::Space => {
                self.lead = Lead::Fence;
                byte == b'`' || byte == b'~'
            }
            Lead::Fence if byte == b'\n' => {
                self.lead = Lead::Inside(0);
                self.fences.is_inside()
            }
            // A tag directly behind the marks stands in the block as much as one on the next line.
            Lead::Fence if byte == b'<' && before.is_opening() => {
                self.lead = Lead::Inside(1);
                true
            }
            Lead::Fence => self.fences.is_inside() || !self.fences.is_settled(),
            Lead::Inside(0) if byte.is_ascii_whitespace() => true,
            Lead::Inside(length) => {
                let fits = OPEN.as_bytes()[*length] == byte;
                *length += 1;
                if *length == OPEN.len() {
                    self.lead = Lead::Block;
                }
                fits
            }
            Lead::Block => before.is_inside() || byte.is_ascii_whitespace(),
            Lead::Off => false,
        };
        if goes_on {
            let length = text.chars().next().map_or(1, char::len_utf8);
            text.as_bytes()[1..length].iter().for_each(|byte| self.fences.take(*byte));
            self.held.push_str(&text[..length]);
            return &text[length..];
        }
        self.lead = Lead::Off;
        self.fences = Fences::default();
        let held = std::mem::take(&mut self.held);
        self.take(&held);
        text
    }

    /// Takes some of a text that is not empty, in the present state; what is left of it.
    fn step<'t>(&mut self, text: &'t str) -> &'t str {
        match &mut self.state {
            State::Text => self.step_text(text),
            State::MaybeOpen => self.step_maybe_open(text),
            State::Opened => self.step_opened(text),
            State::Value { .. } => self.step_value(text),
            State::Broken { .. } => self.step_broken(text),
            State::Behind => self.step_behind(text),
            State::MaybeClose => self.step_maybe_close(text),
        }
    }

    fn step_text<'t>(&mut self, text: &'t str) -> &'t str {
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
                self.state = State::MaybeOpen;
                return &text[at + 1..];
            }
            self.fences.take(bytes[at]);
            at += 1;
        }
        self.text.push_str(text);
        ""
    }

    fn step_maybe_open<'t>(&mut self, text: &'t str) -> &'t str {
        let wanted = &OPEN.as_bytes()[self.held.len()..];
        let same = wanted.iter().zip(text.as_bytes()).take_while(|(a, b)| a == b).count();
        self.held.push_str(&text[..same]);
        if same == wanted.len() {
            self.state = State::Opened;
        } else if same < text.len() {
            // No `<` in it but the first: none of it can begin another tag.
            self.text.push_str(&self.held);
            self.held.clear();
            self.state = State::Text;
        }
        &text[same..]
    }

    fn step_opened<'t>(&mut self, text: &'t str) -> &'t str {
        let byte = text.as_bytes()[0];
        let inner = &self.held[OPEN.len()..];
        let fence = inner.trim_ascii_start();
        let is_in_fence_line = fence.starts_with('`') && !fence.contains('\n');
        let fits = match byte {
            b'`' => inner.trim_ascii().chars().all(|c| c == '`'),
            b'\n' if is_in_fence_line => fence.starts_with("```"),
            b'{' | b'[' if !is_in_fence_line => {
                let (from, closer) = (self.held.len(), if byte == b'{' { b'}' } else { b']' });
                self.held.push(char::from(byte));
                self.state = State::Value { from, closers: vec![closer], string: InString::No };
                return &text[1..];
            }
            byte if is_in_fence_line => byte.is_ascii_alphanumeric() || b"_- ".contains(&byte),
            byte => byte.is_ascii_whitespace(),
        };
        if fits && self.held.len() < OPEN.len() + 4 * LONGEST_TAG {
            self.held.push(char::from(byte));
            return &text[1..];
        }
        // The tag was only talked about. Its first byte is text for good; the rest is looked at again.
        self.was_text();
        text
    }

    /// What is held turns out to be text: its first character passes, the rest of it is read again.
    fn was_text(&mut self) {
        let held = std::mem::take(&mut self.held);
        self.state = State::Text;
        self.fences.settle();
        let (first, rest) = held.split_at(1);
        self.text.push_str(first);
        let mut rest = rest;
        while !rest.is_empty() {
            rest = self.step(rest);
        }
    }

    fn step_value<'t>(&mut self, text: &'t str) -> &'t str {
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
            if closers.len() > DEEPEST {
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
                    self.state = State::Behind;
                }
                Err(fault) => self.state = State::Broken { fault },
            }
        }
        &text[at..]
    }

    fn step_broken<'t>(&mut self, text: &'t str) -> &'t str {
        let State::Broken { fault } = &mut self.state else { return text };
        // Up to `>`, which ends a tag if `held` ends with one then.
        let end = memchr::memchr(b'>', text.as_bytes()).map_or(text.len(), |at| at + 1);
        self.held.push_str(&text[..end]);
        let tag = [CLOSE, OPEN].into_iter().find(|tag| self.held.len() > OPEN.len() && self.held.ends_with(tag));
        if let Some(tag) = tag {
            let fault = std::mem::take(fault);
            let mut raw = std::mem::take(&mut self.held);
            if tag == OPEN {
                raw.truncate(raw.len() - OPEN.len());
                self.held.push_str(OPEN);
                self.state = State::Opened;
            } else {
                self.state = State::Text;
                self.fences.settle();
            }
            self.emit(Piece::Fault { fault, raw });
        }
        &text[end..]
    }

    fn step_behind<'t>(&mut self, text: &'t str) -> &'t str {
        match text.as_bytes()[0] {
            byte @ (b' ' | b'\t' | b'\n' | b'\r') => self.held.push(char::from(byte)),
            b'>' | b'}' | b'`' => self.held.clear(),
            b'{' => {
                self.held = format!("{OPEN}{{");
                let from = OPEN.len();
                self.state = State::Value { from, closers: vec![b'}'], string: InString::No };
            }
            b'<' => {
                self.held.push('<');
                self.state = State::MaybeClose;
            }
            _ => {
                self.state = State::Text;
                self.fences.settle();
                let space = std::mem::take(&mut self.held);
                self.take(&space);
                return text;
            }
        }
        &text[1..]
    }

    fn step_maybe_close<'t>(&mut self, text: &'t str) -> &'t str {
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
            tag.len() < LONGEST_TAG && (byte.is_ascii_alphanumeric() || b"_-: |".contains(&byte))
        } else {
            (tag.len() == 1 && byte == b'/') || OPEN.as_bytes().get(tag.len()) == Some(&byte)
        };
        if may_go_on {
            self.held.push(char::from(byte));
            if self.held.ends_with(OPEN) {
                self.held = OPEN.into();
                self.state = State::Opened;
            }
            return &text[1..];
        }
        // Text that begins with `<`. White space before it comes first.
        let space = self.held[..tag_at].to_string();
        self.held.drain(..tag_at);
        self.state = State::Text;
        self.fences.settle();
        let tag = std::mem::take(&mut self.held);
        self.take(&space);
        self.held = tag;
        self.was_text();
        text
    }

    /// The end of the text.
    fn end(&mut self) {
        let held = std::mem::take(&mut self.held);
        match std::mem::take(&mut self.state) {
            State::Text | State::Behind => {}
            State::MaybeOpen => self.text.push_str(&held),
            State::Opened => {
                self.held = held;
                self.was_text();
            }
            State::Value { .. } => {
                let fault = "The tool call was cut off before its JSON was complete, so it did not run.".into();
                self.emit(Piece::Fault { fault, raw: held });
            }
            State::Broken { fault } => self.emit(Piece::Fault { fault, raw: held }),
            State::MaybeClose => {
                let tag = held.trim_ascii_start();
                // A closing tag that was cut is still one.
                if !tag.starts_with("</") {
                    self.text.push_str(&held);
                }
            }
        }
    }
}

/// The calls of a reply that is one fenced block; `None` when there is anything else in it.
fn calls_of_block(reply: &str) -> Option<Vec<Piece>> {
    let mut fences = Fences::default();
    let reply = reply.trim_ascii();
    reply.bytes().for_each(|byte| fences.take(byte));
    let behind_marks = reply.trim_start_matches(reply.chars().next()?);
    let inner = if behind_marks.starts_with(OPEN) { behind_marks } else { reply.split_once('\n')?.1 };
    let inner = match inner.rsplit_once('\n') {
        Some((inner, _)) if fences.ends_closed() => inner,
        _ => inner,
    };
    let mut parser = Parser { lead: Lead::Off, ..Parser::default() };
    let mut pieces: Vec<Piece> = parser.push(inner.as_bytes()).collect();
    pieces.extend(parser.finish());
    let is_space = |piece: &Piece| matches!(piece, Piece::Text(text) if text.trim().is_empty());
    pieces.retain(|piece| !is_space(piece));
    (!pieces.iter().any(|piece| matches!(piece, Piece::Text(_)))).then_some(pieces)
}

/// One call as it is written. Fields that a model adds (`type`, `id`, `call_id`) are ignored.
#[derive(Deserialize)]
struct Written<'a> {
    name: Option<String>,
    #[serde(borrow)]
    arguments: Option<&'a RawValue>,
    #[serde(borrow)]
    parameters: Option<&'a RawValue>,
}

fn read_calls(json: &str) -> Result<Vec<Piece>, String> {
    let wrong = |error: serde_json::Error| format!("The tool call is no valid JSON: {error}.");
    if json.starts_with('[') {
        let written: Vec<Written<'_>> = serde_json::from_str(json).map_err(wrong)?;
        return written.into_iter().map(read_call).collect();
    }
    Ok(vec![read_call(serde_json::from_str(json).map_err(wrong)?)?])
}

fn read_call(written: Written<'_>) -> Result<Piece, String> {
    let name = written.name.filter(|name| !name.is_empty()).ok_or("The tool call has no \"name\".")?;
    let raw = written.arguments.or(written.parameters).map_or("null", RawValue::get);
    // Arguments in a string are taken out of it once; what they say is not changed.
    let text =
        if raw.starts_with('"') { serde_json::from_str(raw).map_err(|e| e.to_string())? } else { raw.to_string() };
    let arguments = match read_arguments(&text)? {
        serde_json::Value::Object(fields) if fields.is_empty() => "{}".into(),
        _ => text,
    };
    Ok(Piece::Call { name, arguments })
}

#[cfg(test)]
mod tests;
