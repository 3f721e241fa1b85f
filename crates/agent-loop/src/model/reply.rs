//! Assembles deltas into a reply: parts in the order in which they started, arguments parsed once they are complete.

use futures_util::StreamExt;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::error::{Error, ErrorKind, Result};
use crate::message::{Part, TextPhase, ToolCall, Usage};

use super::{Delta, EndReason, ReplyStream, TextCursor};

/// A complete reply.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Reply {
    /// The parts, in order. Calls that cannot run have a fault.
    pub parts: Vec<Part>,
    /// Why the reply is over.
    pub end: EndReason,
    /// The tokens, if the provider counted them.
    pub usage: Option<Usage>,
}

impl Reply {
    /// Collects a whole stream.
    ///
    /// # Errors
    /// The errors of the stream, and `CutStream` if the stream ends without its terminal event.
    pub async fn collect(mut stream: ReplyStream<'_>) -> Result<Self> {
        let mut builder = ReplyBuilder::new();
        while let Some(delta) = stream.next().await {
            builder.push(&delta?)?;
        }
        builder.finish()
    }

    /// Returns the text, without reasoning and calls.
    pub fn visible_text(&self) -> String {
        Part::visible_text(&self.parts)
    }

    /// Returns the calls.
    pub fn calls_mut(&mut self) -> impl Iterator<Item = &mut ToolCall> {
        self.parts.iter_mut().filter_map(|part| if let Part::Call(call) = part { Some(call) } else { None })
    }

    /// Turns the text before a `</think>` without an opening tag into reasoning. Some templates write the opening tag
    /// into the request, and servers then leave the thoughts in the text.
    pub fn take_thoughts(&mut self) {
        let is_text = |part: &Part| matches!(part, Part::Text { .. });
        let Some(at) = self.parts.iter().position(is_text) else { return };
        let Part::Text { text, .. } = &mut self.parts[at] else { return };
        let Some((thoughts, answer)) = text.split_once("</think>") else { return };
        // The tag is on its own line; elsewhere the text only mentions it.
        let ends_line = thoughts.rsplit('\n').next().is_none_or(|line| line.trim().is_empty());
        if !ends_line || thoughts.contains("<think>") {
            return;
        }
        let thoughts = thoughts.trim().to_owned();
        *text = answer.trim_start().to_owned();
        self.parts.insert(at, Part::Reasoning { text: thoughts, opaque: None });
    }

    /// Creates a complete reply that contains only text.
    pub fn text(text: impl Into<String>) -> Self {
        Self { parts: vec![Part::text(text)], end: EndReason::Complete, usage: None }
    }
}

/// Builds a [`Reply`] from its deltas. The cost is linear in their bytes.
#[derive(Debug, Default)]
pub struct ReplyBuilder {
    /// The parts so far. Arguments of calls stay text until the end.
    parts: Vec<Part>,
    calls: Vec<CallDraft>,
    cursor: TextCursor,
    phase: Option<TextPhase>,
    /// Whether the next text starts a new part.
    begins_text: bool,
    end: Option<EndReason>,
    usage: Option<Usage>,
}

#[derive(Debug)]
struct CallDraft {
    /// The index in the deltas.
    index: usize,
    /// The position among the parts.
    at: usize,
    arguments: String,
    is_complete: bool,
}

/// The name of a call whose own name could not be read.
const UNREADABLE: &str = "unreadable_call";
/// The reason why no call of a reply that reached its length limit runs.
pub(crate) const CUT_BY_LENGTH: &str =
    "The reply was cut off by the limit on its length, so its calls did not run. Write less.";

impl ReplyBuilder {
    /// Creates a builder without deltas.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds the next delta.
    ///
    /// # Errors
    /// `BadResponse` for a delta that cannot be part of a reply, for example one after the end, or arguments of a call
    /// that never started.
    pub fn push(&mut self, delta: &Delta) -> Result<()> {
        if self.end.is_some() {
            return bad("the stream went on after its end");
        }
        match delta {
            Delta::Text { text } => self.text(self.cursor.bytes(), text),
            Delta::CumulativeText { begin, text } => self.text(*begin, text),
            Delta::TextStart { phase } => (self.phase, self.begins_text) = (*phase, true),
            Delta::TextEnd { opaque: wanted } => {
                if let Some(Part::Text { opaque: opaque @ None, .. }) = self.parts.last_mut() {
                    *opaque = Some(wanted.clone());
                }
            }
            Delta::Reasoning { text, opaque } => match self.parts.last_mut() {
                Some(Part::Reasoning { text: last, opaque: kept @ None }) => {
                    last.push_str(text);
                    kept.clone_from(opaque);
                }
                _ => self.parts.push(Part::Reasoning { text: text.clone(), opaque: opaque.clone() }),
            },
            Delta::CallStart { index, id, name } => {
                if self.call(*index).is_some() {
                    return bad(format!("the call {index} began twice"));
                }
                self.start(*index, ToolCall::new(id, name, Value::Null));
            }
            Delta::CallArguments { index, text } => match self.call(*index) {
                Some((draft, _)) if !draft.is_complete => draft.arguments.push_str(text),
                _ => return bad(format!("arguments for the call {index}, which is not open")),
            },
            Delta::CallEnd { index, opaque } => match self.call(*index) {
                Some((draft, call)) if !draft.is_complete => {
                    draft.is_complete = true;
                    call.opaque.clone_from(opaque);
                }
                _ => return bad(format!("an end of the call {index}, which is not open")),
            },
            Delta::CallFault { index, fault, raw } => {
                if self.call(*index).is_none() {
                    self.start(*index, ToolCall::new("", UNREADABLE, Value::Null));
                }
                if let Some((draft, call)) = self.call(*index) {
                    call.fault = Some(fault.clone());
                    draft.arguments.clone_from(raw);
                    draft.is_complete = true;
                }
            }
            Delta::Usage(usage) => self.usage = Some(*usage),
            Delta::Warning { .. } | Delta::Progress => {}
            Delta::End(reason) => self.end = Some(*reason),
        }
        Ok(())
    }

    /// Returns the reply.
    ///
    /// # Errors
    /// `CutStream` if there was no end.
    pub fn finish(mut self) -> Result<Reply> {
        let Some(end) = self.end else {
            return Err(Error::new(ErrorKind::CutStream, "the reply broke off before its end"));
        };
        let (count, mut blank) = (self.calls.len(), Vec::new());
        for draft in self.calls {
            if let Part::Call(call) = &mut self.parts[draft.at] {
                let says_nothing = matches!(draft.arguments.trim(), "" | "{}");
                // Some servers close a reply with a call that has neither a name nor arguments.
                if count > 1 && call.name.trim().is_empty() && call.fault.is_none() && says_nothing {
                    blank.push(draft.at);
                }
                finish_call(call, draft, end);
            }
        }
        blank.into_iter().rev().for_each(|at| _ = self.parts.remove(at));
        // The parts are stored as long as the conversation exists.
        self.parts.iter_mut().for_each(Part::shrink);
        self.parts.shrink_to_fit();
        Ok(Reply { parts: self.parts, end, usage: self.usage })
    }

    /// Returns the tokens so far, as the provider counts them.
    pub fn usage(&self) -> Option<Usage> {
        self.usage
    }

    /// Returns the text and reasoning of a reply that was abandoned. Calls are left out, complete or not.
    pub fn give_up(mut self) -> Vec<Part> {
        self.parts.retain(|part| !matches!(part, Part::Call(_)));
        self.parts
    }

    fn text(&mut self, begin: usize, text: &str) {
        match (self.cursor.new_suffix(begin, text), self.parts.last_mut()) {
            ("", _) => {}
            (text, Some(Part::Text { text: last, opaque: None, .. })) if !self.begins_text => last.push_str(text),
            (text, _) => {
                self.begins_text = false;
                self.parts.push(Part::Text { text: text.into(), phase: self.phase, opaque: None });
            }
        }
    }

    fn start(&mut self, index: usize, call: ToolCall) {
        self.calls.push(CallDraft { index, at: self.parts.len(), arguments: String::new(), is_complete: false });
        self.parts.push(Part::Call(call));
    }

    fn call(&mut self, index: usize) -> Option<(&mut CallDraft, &mut ToolCall)> {
        // The search runs from the end, because deltas nearly always belong to the last call.
        let draft = self.calls.iter_mut().rev().find(|draft| draft.index == index)?;
        match &mut self.parts[draft.at] {
            Part::Call(call) => Some((draft, call)),
            _ => None,
        }
    }
}

fn bad<T>(what: impl Into<String>) -> Result<T> {
    Err(Error::new(ErrorKind::BadResponse, what))
}

/// Parses the arguments of a call, or sets the reason why it must not run.
fn finish_call(call: &mut ToolCall, draft: CallDraft, end: EndReason) {
    if call.name.trim().is_empty() {
        call.name = UNREADABLE.into();
        call.fault.get_or_insert_with(|| "The call had no name, so it did not run.".into());
    }
    let fault = match (call.fault.take(), end) {
        (Some(fault), _) => fault,
        // Arguments that parse may still be incomplete: `{"x":4815}` may be the beginning of `{"x":48151}`.
        (_, EndReason::Length) => CUT_BY_LENGTH.into(),
        (_, EndReason::Filtered | EndReason::Refused) => "The reply was stopped, so its calls did not run.".into(),
        _ if !draft.is_complete => "The call was cut off, so it did not run.".into(),
        _ => return call.set_text(draft.arguments),
    };
    (call.arguments, call.fault) = (Value::String(draft.arguments), Some(fault));
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::message::read_arguments;

    fn start(index: usize, name: &str) -> Delta {
        Delta::CallStart { index, id: format!("c{index}"), name: name.into() }
    }

    fn arguments(index: usize, text: &str) -> Delta {
        Delta::CallArguments { index, text: text.into() }
    }

    fn ended(index: usize) -> Delta {
        Delta::CallEnd { index, opaque: None }
    }

    fn build(deltas: &[Delta]) -> Result<Reply> {
        let mut builder = ReplyBuilder::new();
        deltas.iter().try_for_each(|delta| builder.push(delta))?;
        builder.finish()
    }

    fn calls(reply: &Reply) -> Vec<&ToolCall> {
        reply.parts.iter().filter_map(|part| if let Part::Call(call) = part { Some(call) } else { None }).collect()
    }

    #[test]
    fn thoughts_without_a_beginning_are_reasoning() {
        for (text, thoughts) in
            [("Hm.\n</think>\n\nYes.", 1), ("Yes.", 0), ("Write `</think>` then.", 0), ("It says <think>a</think>", 0)]
        {
            let mut reply = Reply::text(text);
            reply.take_thoughts();
            let reasoning = reply.parts.iter().filter(|part| matches!(part, Part::Reasoning { .. })).count();
            assert_eq!(reasoning, thoughts, "{text}");
            assert!(reply.visible_text() == text || reply.visible_text() == "Yes.");
        }
    }

    #[test]
    fn parts_keep_their_order() {
        let text = |text: &str| Delta::Text { text: text.into() };
        let deltas = [
            Delta::Reasoning { text: "hm".into(), opaque: None },
            Delta::Reasoning { text: String::new(), opaque: Some(json!("sig")) },
            text("a"),
            text("b"),
            start(3, "x"),
            start(9, "y"),
            arguments(3, "{\"k\":"),
            arguments(9, ""),
            arguments(3, "1}"),
            ended(9),
            ended(3),
            text("c"),
            Delta::End(EndReason::Complete),
        ];
        let reply = build(&deltas).unwrap();
        let expected = vec![
            Part::Reasoning { text: "hm".into(), opaque: Some(json!("sig")) },
            Part::text("ab"),
            Part::Call(ToolCall::new("c3", "x", json!({"k": 1}))),
            Part::Call(ToolCall::new("c9", "y", json!({}))),
            Part::text("c"),
        ];
        assert_eq!(reply.parts, expected);
    }

    #[test]
    fn texts_of_two_phases_are_two_parts_and_the_answer_is_without_commentary() {
        let text = |text: &str| Delta::Text { text: text.into() };
        let phase = |phase| Delta::TextStart { phase };
        let (commentary, answer) = (Some(TextPhase::Commentary), Some(TextPhase::FinalAnswer));
        let call = [start(0, "x"), arguments(0, "{}"), ended(0)];
        let said = [phase(commentary), text("a"), text("b")];
        let more = [text("c"), phase(answer), text("d"), Delta::TextEnd { opaque: json!("s") }];
        let end = [Delta::End(EndReason::Complete)];
        let reply = build(&[&said[..], &call, &more, &end].concat()).unwrap();
        let part = |text: &str, phase, opaque| Part::Text { text: text.into(), phase, opaque };
        let call = Part::Call(ToolCall::new("c0", "x", json!({})));
        let expected =
            vec![part("ab", commentary, None), call, part("c", commentary, None), part("d", answer, Some(json!("s")))];
        assert_eq!(reply.parts, expected);
        assert_eq!(Part::answer_text(&reply.parts), "d");
        assert_eq!(Part::answer_text(&reply.parts[..3]), "abc", "where there is nothing else");
        let stored = serde_json::to_value(&reply).unwrap();
        assert_eq!(serde_json::from_value::<Reply>(stored).unwrap(), reply);
    }

    #[test]
    fn arguments_are_parsed_in_every_form_that_servers_send() {
        for (text, expected) in [
            ("", Some(json!({}))),
            ("null", Some(json!({}))),
            ("\"null\"", Some(json!({}))),
            ("\"word\"", None),
            ("{\"a\":1}", Some(json!({"a": 1}))),
            ("\"{\\\"a\\\":1}\"", Some(json!({"a": 1}))),
            ("\"\"", Some(json!({}))),
            ("[1]", None),
            ("{\"a\":", None),
            ("{\"a\":1}}", None),
        ] {
            assert_eq!(read_arguments(text).ok(), expected, "{text}");
        }
    }

    #[test]
    fn a_call_that_is_not_complete_has_a_fault() {
        let whole = [start(0, "x"), arguments(0, "{\"a\":4815}"), ended(0), Delta::End(EndReason::Complete)];
        assert_eq!(calls(&build(&whole).unwrap())[0].fault, None);
        let unended = [start(0, "x"), arguments(0, "{\"a\":4815}"), Delta::End(EndReason::Complete)];
        let cut = [start(0, "x"), arguments(0, "{\"a\":4815}"), ended(0), Delta::End(EndReason::Length)];
        for deltas in [&unended[..], &cut] {
            let reply = build(deltas).unwrap();
            assert!(calls(&reply)[0].fault.is_some(), "{deltas:?}");
        }
    }

    #[test]
    fn a_call_without_a_name_is_told_or_left_out_where_it_says_nothing() {
        let end = Delta::End(EndReason::Complete);
        let named = [start(0, "x"), arguments(0, "{}"), ended(0)];
        let nameless = |text: &str| [start(1, ""), arguments(1, text), ended(1)];
        let read = |deltas: &[&[Delta]]| build(&[deltas.concat(), vec![end.clone()]].concat()).unwrap();
        assert_eq!(calls(&read(&[&named, &nameless("{}")])).len(), 1);
        for reply in [read(&[&named, &nameless("{\"a\":1}")]), read(&[&nameless("{}")])] {
            let fault = calls(&reply).last().unwrap().fault.clone();
            assert!(fault.is_some_and(|fault| fault.contains("no name")), "{reply:?}");
        }
    }

    #[test]
    fn invalid_streams_are_errors() {
        assert_eq!(build(&whole()[..1]).unwrap_err().kind(), ErrorKind::CutStream);
        let end = Delta::End(EndReason::Complete);
        for deltas in [
            vec![end.clone(), end.clone()],
            vec![arguments(0, "{}"), end.clone()],
            vec![start(0, "x"), start(0, "y"), end.clone()],
            vec![start(0, "x"), ended(0), ended(0), end],
        ] {
            assert_eq!(build(&deltas).unwrap_err().kind(), ErrorKind::BadResponse, "{deltas:?}");
        }
    }

    fn whole() -> Vec<Delta> {
        vec![Delta::Text { text: "a".into() }, Delta::End(EndReason::Complete)]
    }
}
