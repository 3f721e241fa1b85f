//! The states of the parser after a mark: which mark it is, thoughts, and a format's block of calls.

use super::{JsonScan, Mark, MarkKind, Parser, Piece, Place, State};

impl Parser {
    pub(super) fn advance_mark<'t>(&mut self, text: &'t str) -> &'t str {
        let Some(next) = text.chars().next() else { return text };
        self.held.push(next);
        let State::Mark { from, .. } = self.state else { return text };
        let read = &self.held[from..];
        if !self.marks_here().any(|mark| mark.text.len() > read.len() && mark.text.starts_with(read)) {
            self.decide_mark();
        }
        &text[next.len_utf8()..]
    }

    /// Returns the marks that count at the position of the held one.
    fn marks_here(&self) -> impl Iterator<Item = &'static Mark> + use<> {
        let (is_line_start, is_reply_start) = match self.state {
            State::Mark { is_line_start, is_reply_start, .. } => (is_line_start, is_reply_start),
            _ => (false, false),
        };
        self.marks.0.iter().filter(move |mark| match mark.place {
            Place::Anywhere => true,
            Place::LineStart => is_line_start,
            Place::ReplyStart => is_reply_start,
        })
    }

    /// Decides whether the held text begins with a mark.
    pub(super) fn decide_mark(&mut self) {
        let State::Mark { from, is_reply_start, .. } = self.state else { return };
        let read = &self.held[from..];
        let mark = self.marks_here().filter(|mark| read.starts_with(mark.text)).max_by_key(|mark| mark.text.len());
        let Some(mark) = mark else { return self.release_as_text() };
        let rest = self.held.split_off(from + mark.text.len());
        if matches!(mark.kind, MarkKind::Call | MarkKind::Block(_)) {
            self.text.push_str(&self.held[..from]);
            self.fences.treat_as_text();
        }
        self.held.clear();
        self.state = match mark.kind {
            MarkKind::Call => {
                self.held.push_str(mark.text);
                State::Opening
            }
            MarkKind::Thoughts(close) => State::Thoughts { close, is_reply_start },
            MarkKind::Skip if is_reply_start => State::Start,
            MarkKind::Skip => State::Text,
            MarkKind::Block(block) => {
                self.held.push_str(mark.text);
                State::Block { mark, block, json: JsonScan::default(), has_begun: false }
            }
        };
        self.take(&rest);
    }

    pub(super) fn advance_thoughts<'t>(&mut self, text: &'t str) -> &'t str {
        let State::Thoughts { close, is_reply_start } = self.state else { return text };
        let mut thought = std::mem::take(&mut self.held);
        thought.push_str(text);
        let mut rest = 0;
        let end = thought.find(close);
        let until = match end {
            Some(at) => {
                rest = thought.len() - at - close.len();
                self.state = State::AfterThoughts { is_reply_start };
                at
            }
            None => {
                let begins = |at: &usize| close.starts_with(&thought[*at..]);
                let tail = thought.char_indices().rev().take(close.len()).map(|(at, _)| at);
                let tail = tail.filter(begins).min().unwrap_or(thought.len());
                self.held.push_str(&thought[tail..]);
                tail
            }
        };
        thought.truncate(until);
        if !thought.is_empty() {
            self.emit(Piece::Reasoning(thought));
        }
        &text[text.len() - rest..]
    }

    pub(super) fn advance_block<'t>(&mut self, text: &'t str) -> &'t str {
        let State::Block { mark, block, json, has_begun } = &mut self.state else { return text };
        for (at, next) in text.char_indices() {
            if !*has_begun && !next.is_ascii_whitespace() {
                if !(block.begins)(next) {
                    self.release_as_text();
                    return &text[at..];
                }
                *has_begun = true;
            }
            self.held.push(next);
            let inside = &self.held[mark.text.len()..];
            if block.has_json && json.is_inside_after(next) {
                continue;
            }
            if let Some(close) = block.closes.iter().find(|close| inside.ends_with(**close)) {
                let (mark, block, inside) = (*mark, *block, inside[..inside.len() - close.len()].to_string());
                self.end_block(mark, &inside);
                self.state = if block.ends_reply { State::Rest } else { State::Text };
                return &text[at + next.len_utf8()..];
            }
        }
        ""
    }

    /// Emits the content of a block that ends here.
    pub(super) fn end_block(&mut self, mark: &Mark, inside: &str) {
        let raw = std::mem::take(&mut self.held);
        match self.format.read(inside, &self.tools) {
            Ok(calls) => calls.into_iter().for_each(|call| self.emit(call)),
            // Without its own mark, the text is an answer that only begins like a call.
            Err(_) if mark.place == Place::ReplyStart => self.text.push_str(&raw),
            Err(fault) => self.emit(Piece::Fault { fault, raw }),
        }
    }
}
