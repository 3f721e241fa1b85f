//! Calls and thoughts that a server leaves in the text of a model although the request offered native tools.
//!
//! ```text
//! text ──> may it be a call? ── yes ──> held to the end of the reply ──> a whole call ──> the call
//!               │ no                                      └─ anything else ──> text
//!               └──> text, immediately
//! ```

use std::sync::Arc;

use futures_util::{StreamExt, stream};

use crate::error::Result;
use crate::model::{Delta, EndReason, Parallel, ReplyStream, Request, TextCursor, ToolChoice};
use crate::run::without_fence;
use crate::tool::ToolSpec;

use super::deltas::{deltas_of, keep_text};
use super::foreign::{MARKS, foreign_call, was_told};
use super::{Format, Parser};

/// The message for a model that wrote a call as text.
const AS_TEXT: &str = "This looks like a tool call written as text, so nothing ran. Call tools the way they were offered, or, \
    if no call was meant, answer again.";

/// The forms of complete calls, the most common first. ReAct is missing, because its lines occur in any protocol.
const FORMATS: [Format; 14] = [
    Format::Hermes,
    Format::Qwen3Coder,
    Format::Glm,
    Format::Llama3,
    Format::Mistral,
    Format::Dsml,
    Format::DeepSeek,
    Format::KimiK2,
    Format::Harmony,
    Format::Granite,
    Format::Phi,
    Format::Gemma,
    Format::Functionary,
    Format::Pythonic,
];

/// The beginning of gpt-oss's channels if a server has dropped the marks around their names.
const BARE_CALL: &str = "commentary to=";
const BARE_ANALYSIS: &str = "analysis";
const BARE_FINAL: &str = "assistantfinal";

/// A reply of a model that got native tools. Thoughts at its beginning become reasoning, and a text that is exactly one
/// call becomes that call. If there is other text beside a call, the model is told once, then the person.
pub(super) struct LeakedStream<'a> {
    inner: ReplyStream<'a>,
    cursor: TextCursor,
    /// A parser that looks only for thoughts.
    thoughts: Parser,
    tools: Arc<[ToolSpec]>,
    parallel: Parallel,
    /// Whether the model was told of a call in text since the person's last message.
    was_told: bool,
    /// Text so far that may be a call.
    held: Option<String>,
    /// The text of the reply.
    said: String,
    has_calls: bool,
    is_over: bool,
}

impl<'a> LeakedStream<'a> {
    /// Returns the deltas of the reply to a request.
    pub(super) fn deltas(inner: ReplyStream<'a>, request: &Request) -> ReplyStream<'a> {
        let tools = if request.tool_choice == ToolChoice::None { Arc::default() } else { Arc::clone(&request.tools) };
        let stream = Self {
            inner,
            cursor: TextCursor::new(),
            thoughts: Parser::of(Format::Hermes, Arc::default()),
            was_told: was_told(request, AS_TEXT),
            held: (!tools.is_empty()).then(String::new),
            tools,
            parallel: request.parallel,
            said: String::new(),
            has_calls: false,
            is_over: false,
        };
        let batches = stream::unfold(stream, |mut stream| async move { Some((stream.next().await?, stream)) });
        batches.flat_map(stream::iter).boxed()
    }

    /// Returns the next deltas, at least one; `None` after the end.
    async fn next(&mut self) -> Option<Vec<Result<Delta>>> {
        if self.is_over {
            return None;
        }
        let mut deltas = match self.inner.next().await?.map(|delta| self.cursor.resolve(delta)) {
            Ok(Delta::Text { text }) => {
                let pieces = deltas_of(self.thoughts.push(text.as_bytes()), &mut 0, Default::default());
                self.pass(pieces)
            }
            Ok(Delta::End(reason)) => self.end(reason),
            Ok(call @ (Delta::CallStart { .. } | Delta::CallFault { .. })) => {
                self.has_calls = true;
                let mut deltas = self.release();
                deltas.push(call);
                deltas
            }
            other => return Some(vec![other]),
        };
        if deltas.is_empty() {
            deltas.push(Delta::Progress);
        }
        self.is_over = matches!(deltas.last(), Some(Delta::End(_)));
        keep_text(&mut self.said, &deltas);
        Some(deltas.into_iter().map(Ok).collect())
    }

    /// Returns the deltas that cannot be part of a call.
    fn pass(&mut self, deltas: Vec<Delta>) -> Vec<Delta> {
        let mut passed = Vec::new();
        for delta in deltas {
            match (delta, &mut self.held) {
                (Delta::Text { text }, Some(held)) => {
                    held.push_str(&text);
                    if !may_be_call(held, &self.tools) {
                        passed.extend(self.release());
                    }
                }
                (other, _) => passed.push(other),
            }
        }
        passed
    }

    /// Returns the held text, which is not a call. Later text is not held any more.
    fn release(&mut self) -> Vec<Delta> {
        let text = self.held.take().filter(|held| !held.is_empty());
        text.map(|text| Delta::Text { text }).into_iter().collect()
    }

    fn end(&mut self, reason: EndReason) -> Vec<Delta> {
        let rest = deltas_of(self.thoughts.finish(), &mut 0, Default::default());
        let mut deltas = self.pass(rest);
        let held = self.held.take().unwrap_or_default();
        let may_call = reason == EndReason::Complete && !self.has_calls;
        match whole(&held, &self.tools).filter(|_| may_call) {
            Some(mut recovered) => {
                let first = recovered.iter().position(|delta| matches!(delta, Delta::CallEnd { .. }));
                if let Some(first) = first.filter(|_| self.parallel == Parallel::One) {
                    recovered.truncate(first + 1);
                }
                deltas.extend(recovered);
            }
            None => {
                if !held.is_empty() {
                    deltas.push(Delta::Text { text: held });
                }
                if may_call {
                    let mut said = std::mem::take(&mut self.said);
                    keep_text(&mut said, &deltas);
                    deltas.extend(foreign_call(&said, &self.tools).map(|tool| self.foreign(tool)));
                }
            }
        }
        deltas.push(Delta::End(reason));
        deltas
    }

    /// Reports a call within a text: to the model the first time, then as a warning.
    fn foreign(&self, tool: &str) -> Delta {
        if self.was_told {
            let text =
                format!("the model writes its calls as text ({tool}), so nothing ran: set text_calls to its form");
            return Delta::Warning { text };
        }
        Delta::CallFault { index: 0, fault: AS_TEXT.into(), raw: String::new() }
    }
}

/// Returns whether a text may become a complete call: apart from leading white space, it starts like a call, or is
/// itself the start of such a beginning.
fn may_be_call(text: &str, tools: &[ToolSpec]) -> bool {
    let text = text.trim_start();
    if let Some(fenced) = text.strip_prefix("```") {
        return match fenced.split_once('\n') {
            Some((info, body)) => info.trim() == "tool_code" || begins_call(body.trim_start(), tools),
            None => fenced.len() < 20,
        };
    }
    begins_call(text, tools) || (text.len() < 3 && "```".starts_with(text))
}

fn begins_call(text: &str, tools: &[ToolSpec]) -> bool {
    let lower = text[..text.floor_char_boundary(80)].to_ascii_lowercase();
    let begins = |mark: &str| lower.starts_with(mark) || mark.starts_with(&lower);
    // Shorter marks, such as a bracket, begin other texts too.
    let own = FORMATS.iter().flat_map(|format| format.marks()).map(|mark| mark.text.to_ascii_lowercase());
    let mut own = own.filter(|mark| mark.len() > 2);
    // `[name(` is a call in Python's form; `[{"name": ` and `{"name": ` are calls in JSON.
    let list = lower.strip_prefix('[').unwrap_or(&lower).trim_start();
    let json = list.strip_prefix('{').map(str::trim_start);
    json.is_some_and(|rest| rest.is_empty() || rest.starts_with('"'))
        || MARKS.iter().copied().any(begins)
        // Matched in the case that gpt-oss uses, because an answer may begin with "Analysis".
        || [BARE_CALL, BARE_ANALYSIS].iter().any(|bare| text.starts_with(bare) || bare.starts_with(text))
        || own.any(|mark| begins(&mark))
        || (lower.starts_with('[') && tools.iter().any(|tool| is_called(list, &tool.name.to_ascii_lowercase())))
}

/// Returns whether a text is `name(…`, or the beginning of it.
fn is_called(text: &str, name: &str) -> bool {
    name.starts_with(text) || text.strip_prefix(name).is_some_and(|rest| rest.starts_with('('))
}

/// Returns the calls if a text consists only of calls, or its thoughts and answer if it has channels with known marks.
fn whole(text: &str, tools: &[ToolSpec]) -> Option<Vec<Delta>> {
    if text.trim().is_empty() {
        return None;
    }
    let text = with_marks(text.trim());
    let tools: Arc<[ToolSpec]> = tools.into();
    let texts = [text.as_str(), without_fence(&text)];
    FORMATS.iter().flat_map(|format| texts.map(|text| (format, text))).find_map(|(format, text)| {
        let mut parser = Parser::of(*format, Arc::clone(&tools));
        let mut deltas = deltas_of(parser.push(text.as_bytes()), &mut 0, Default::default());
        let mut calls = deltas.iter().filter(|delta| matches!(delta, Delta::CallStart { .. })).count();
        deltas.extend(deltas_of(parser.finish(), &mut calls, Default::default()));
        is_whole(*format, &deltas, &tools).then(|| {
            deltas.retain(|delta| !matches!(delta, Delta::Text { .. }) || calls == 0);
            deltas
        })
    })
}

fn is_whole(format: Format, deltas: &[Delta], tools: &[ToolSpec]) -> bool {
    let (mut calls, mut thoughts, mut says) = (0, false, false);
    for delta in deltas {
        match delta {
            Delta::CallStart { name, .. } => {
                let name = name.strip_prefix("functions.").unwrap_or(name);
                if !tools.iter().any(|tool| tool.name.eq_ignore_ascii_case(name)) {
                    return false;
                }
                calls += 1;
            }
            Delta::CallFault { .. } => return false,
            Delta::Text { text } => says |= !text.trim_matches(|c: char| c.is_whitespace() || c == '`').is_empty(),
            Delta::Reasoning { .. } => thoughts = true,
            _ => {}
        }
    }
    (calls > 0 && !says) || (format == Format::Harmony && thoughts && says)
}

/// Returns a text of gpt-oss with the marks that a server has dropped.
fn with_marks(text: &str) -> String {
    if let Some(call) = text.strip_prefix(BARE_CALL)
        && let Some((name, arguments)) = call.split_once('{')
    {
        let name = name.split([' ', '<']).next().unwrap_or_default();
        return format!("<|channel|>{BARE_CALL}{name} <|constrain|>json<|message|>{{{arguments}<|call|>");
    }
    match text.strip_prefix(BARE_ANALYSIS).and_then(|rest| rest.split_once(BARE_FINAL)) {
        Some((thoughts, answer)) => {
            format!(
                "<|channel|>analysis<|message|>{thoughts}<|end|><|start|>assistant<|channel|>final<|message|>{answer}"
            )
        }
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::error::Error;
    use crate::message::Part;
    use crate::model::{Model, Reply};
    use crate::tool::{BoxFuture, Effect};

    /// Streams a text in pieces of this many bytes.
    #[derive(Debug)]
    struct TextModel(String, usize);

    impl Model for TextModel {
        fn name(&self) -> &str {
            "says"
        }

        fn reply(&self, _: Request) -> BoxFuture<'_, Result<ReplyStream<'_>>> {
            let letters: Vec<char> = self.0.chars().collect();
            let pieces: Vec<String> = letters.chunks(self.1).map(|piece| piece.iter().collect()).collect();
            let text = |text| Ok::<_, Error>(Delta::Text { text });
            let deltas = pieces.into_iter().map(text).chain([Ok(Delta::End(EndReason::Complete))]);
            Box::pin(async move { Ok(stream::iter(deltas.collect::<Vec<_>>()).boxed()) })
        }
    }

    fn tool() -> ToolSpec {
        ToolSpec {
            name: "search_notes".into(),
            description: String::new(),
            parameters: json!({"type": "object", "properties": {"query": {"type": "string"}}}),
            effect: Effect::Read,
            time_limit: None,
        }
    }

    /// Returns thoughts, text, and calls of a reply, as one line.
    fn shown(text: &str, piece: usize) -> String {
        let request = Request { tools: [tool()].into(), ..Request::default() };
        let model = crate::TextCalls::when_needed(TextModel(text.to_owned(), piece));
        let reply = futures_util::FutureExt::now_or_never(async { Reply::collect(model.reply(request).await?).await });
        let parts = reply.unwrap().unwrap().parts;
        let shown = parts.iter().map(|part| match part {
            Part::Text { text, .. } => text.trim().to_owned(),
            Part::Reasoning { text, .. } => format!("({})", text.trim()),
            Part::Call(call) if call.fault.is_some() => "fault".to_owned(),
            Part::Call(call) => format!("{} {}", call.name, call.arguments),
        });
        shown.collect::<Vec<_>>().join("|")
    }

    #[test]
    fn a_text_that_is_a_call_is_run_and_thoughts_are_reasoning() {
        const CALL: &str = "search_notes {\"query\":\"x\"}";
        for (text, expected) in [
            ("<tool_call>{\"name\": \"search_notes\", \"arguments\": {\"query\": \"x\"}}</tool_call>", CALL.to_owned()),
            ("<tool_call>\n{\"name\": \"search_notes\", \"arguments\": {\"query\": \"x\"}}", CALL.to_owned()),
            ("{\"name\": \"search_notes\", \"parameters\": {\"query\": \"x\"}}", CALL.to_owned()),
            ("```json\n{\"name\": \"search_notes\", \"arguments\": {\"query\": \"x\"}}\n```", CALL.to_owned()),
            ("[TOOL_CALLS]search_notes{\"query\": \"x\"}", CALL.to_owned()),
            (
                "<tool_call>\n<function=search_notes>\n<parameter=query>\nx\n</parameter>\n</function>\n</tool_call>",
                CALL.to_owned(),
            ),
            (
                "<｜DSML｜function_calls>\n<｜DSML｜invoke name=\"search_notes\">\n<｜DSML｜parameter name=\"query\" string=\"true\">x</｜DSML｜parameter>\n</｜DSML｜invoke>\n</｜DSML｜function_calls>",
                CALL.to_owned(),
            ),
            (
                "<|channel|>commentary to=functions.search_notes <|constrain|>json<|message|>{\"query\":\"x\"}<|call|>",
                CALL.to_owned(),
            ),
            ("commentary to=functions.search_notes json{\"query\":\"x\"}", CALL.to_owned()),
            ("```tool_code\nsearch_notes(query=\"x\")\n```", CALL.to_owned()),
            ("[search_notes(query=\"x\")]", CALL.to_owned()),
            (
                "<think>Hm.</think>\n<tool_call>{\"name\": \"search_notes\", \"arguments\": {\"query\": \"x\"}}</tool_call>",
                format!("(Hm.)|{CALL}"),
            ),
            ("<think>Hm.</think>\nYes.", "(Hm.)|Yes.".to_owned()),
            ("<thinking>Hm.</thinking>Yes.", "(Hm.)|Yes.".to_owned()),
            ("analysisWe look.assistantfinalYes.", "(We look.)|Yes.".to_owned()),
            (
                "<|channel|>analysis<|message|>We look.<|end|><|start|>assistant<|channel|>final<|message|>Yes.",
                "(We look.)|Yes.".to_owned(),
            ),
            (
                "I search.\n<tool_call>{\"name\": \"search_notes\", \"arguments\": {}}</tool_call>",
                "I search.\n<tool_call>{\"name\": \"search_notes\", \"arguments\": {}}</tool_call>|fault".to_owned(),
            ),
            // A text without calls stays unchanged.
            ("{\"name\": \"other\", \"arguments\": {}}", "{\"name\": \"other\", \"arguments\": {}}".to_owned()),
            ("{\"answer\": 1}", "{\"answer\": 1}".to_owned()),
            ("[[Compost]] says so.", "[[Compost]] says so.".to_owned()),
            ("```json\n{\"a\": 1}\n```", "```json\n{\"a\": 1}\n```".to_owned()),
            ("analysis of it", "analysis of it".to_owned()),
            ("Use `<tool_call>` so.", "Use `<tool_call>` so.".to_owned()),
            ("", String::new()),
        ] {
            for piece in [1, 7, 1000] {
                assert_eq!(shown(text, piece), expected, "{text:?} in pieces of {piece}");
            }
        }
    }

    #[test]
    fn text_that_is_no_call_streams() {
        let tools = [tool()];
        for text in
            ["Hello", "[[Note]]", "[Garden/Compost.md:19]", "{x}", "<b>", "```rust\nlet", "analysts", "Analysis of"]
        {
            assert!(!may_be_call(text, &tools), "{text}");
        }
    }
}
