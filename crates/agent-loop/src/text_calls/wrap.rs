//! Wraps a model without tool support so that it can call tools in text.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use futures_util::{StreamExt, stream};

use crate::error::{ErrorKind, Result};
use crate::model::{
    Delta, EndReason, ImageSupport, Model, Parallel, ReplyStream, Request, TextCursor, ToolChoice, ToolSupport,
};
use crate::tool::{BoxFuture, ToolSpec};

use super::checked_answer::{CheckedAnswer, ReplyFn};
use super::deltas::{deltas_of, keep_text};
use super::foreign::{foreign_call, was_told};
use super::leaked::LeakedStream;
use super::prompt::answer_block;
use super::{Format, Parser, prompt_block, transcript_messages};

/// A model that writes its tool calls as text.
///
/// The tools are described after the system text, calls and results in the conversation become text, and the model's
/// text is parsed, in Hermes' form unless another [`Format`] is set.
///
/// If a reply has no calls in this form but one in the form of another family, with the name of an offered tool and
/// outside of code and quotes, the model gets it back once. The second time the reply is the answer, with a
/// [`Delta::Warning`].
///
/// A schema of the answer is described after the tools.
///
/// If the model gets native tools ([`when_needed`](Self::when_needed)), some servers still leave its calls and thoughts
/// in the text. Thoughts at the beginning of a reply become reasoning, and a reply that consists only of a call in a
/// known form becomes that call. A reply with a call beside other text goes back to the model once; the second time it
/// is the answer, with a warning.
#[derive(Debug)]
pub struct TextCalls<M> {
    model: M,
    format: Format,
    corrections: u32,
    /// Whether requests are sent as text. It is never reset.
    in_text: AtomicBool,
}

impl<M: Model> TextCalls<M> {
    /// Wraps a model that always gets its tools as text.
    pub fn new(model: M) -> Self {
        Self { model, format: Format::default(), corrections: 0, in_text: AtomicBool::new(true) }
    }

    /// Wraps a model that gets its tools as text if it reports no tool support, or as soon as a request fails with
    /// `ToolsUnsupported`. That request is sent again immediately.
    pub fn when_needed(model: M) -> Self {
        let in_text = AtomicBool::new(model.tool_support() == ToolSupport::None);
        Self { model, format: Format::default(), corrections: 0, in_text }
    }

    /// Sets the form of the model's calls, that of its family: use [`Format::named`] or [`Format::of_template`].
    #[must_use]
    pub fn format(mut self, format: Format) -> Self {
        self.format = format;
        self
    }

    /// Sets how often the model gets an answer that does not fit its schema back, with the issues. The default is
    /// never, because an [`Agent`](crate::Agent) does so itself; use it for other callers, such as a proxy. The text of
    /// a reply is held back until it fits, and has a [`Delta::Warning`] if it never does.
    #[must_use]
    pub fn corrections(mut self, corrections: u32) -> Self {
        self.corrections = corrections;
        self
    }

    async fn in_text(&self, request: Request) -> Result<ReplyStream<'_>> {
        match request.answer_schema.clone().filter(|_| self.corrections > 0) {
            Some(schema) => {
                let ask: ReplyFn<'_> = Box::new(|request| Box::pin(self.parsed(request)));
                CheckedAnswer::stream(ask, request, schema, self.corrections).await
            }
            None => self.parsed(request).await,
        }
    }

    async fn parsed(&self, request: Request) -> Result<ReplyStream<'_>> {
        let parallel = request.parallel;
        let tools = request.tools.clone();
        let was_told = was_told(&request, FOREIGN);
        let inner = self.model.reply(written_out(self.format, request)).await?;
        let (cursor, parser) = (TextCursor::new(), Parser::of(self.format, tools.clone()));
        let stream = TextCallStream {
            inner,
            cursor,
            parser,
            parallel,
            tools,
            was_told,
            said: String::new(),
            calls: 0,
            is_over: false,
        };
        let batches = stream::unfold(stream, |mut stream| async move { Some((stream.next().await?, stream)) });
        Ok(Box::pin(batches.flat_map(stream::iter)))
    }
}

impl<M: Model> Model for TextCalls<M> {
    fn name(&self) -> &str {
        self.model.name()
    }

    fn provider(&self) -> Option<&str> {
        self.model.provider()
    }

    fn image_support(&self) -> ImageSupport {
        self.model.image_support()
    }

    fn reply(&self, request: Request) -> BoxFuture<'_, Result<ReplyStream<'_>>> {
        Box::pin(async move {
            if self.in_text.load(Ordering::Relaxed) {
                return self.in_text(request).await;
            }
            match self.model.reply(request.clone()).await {
                Err(error) if error.kind() == ErrorKind::ToolsUnsupported => {
                    self.in_text.store(true, Ordering::Relaxed);
                    self.in_text(request).await
                }
                other => Ok(LeakedStream::deltas(other?, &request)),
            }
        })
    }
}

/// Returns the request with its tools, calls and results as plain text, for a model without tool support.
pub fn written_out(format: Format, request: Request) -> Request {
    let tools = prompt_block(format, &request.tools, &request.tool_choice, request.parallel);
    let answer = request.answer_schema.as_deref().map(answer_block);
    let blocks: Vec<&str> =
        [request.system.as_deref(), tools.as_deref(), answer.as_deref()].into_iter().flatten().collect();
    let system = (!blocks.is_empty()).then(|| blocks.join("\n\n").into());
    let messages = transcript_messages(format, &request.messages);
    Request { system, messages, tools: [].into(), tool_choice: ToolChoice::Auto, ..request }
}

/// The message for a model that wrote a call in the form of another family.
const FOREIGN: &str = "This looks like a tool call in a form that is not known here, so nothing ran. Write calls exactly in \
    the form that the system text shows, or, if no call was meant, answer again.";

/// A reply that is being parsed.
struct TextCallStream<'a> {
    inner: ReplyStream<'a>,
    cursor: TextCursor,
    parser: Parser,
    parallel: Parallel,
    tools: Arc<[ToolSpec]>,
    /// Whether the model was told that its form is unknown.
    was_told: bool,
    /// The text of the reply.
    said: String,
    /// How many calls were parsed.
    calls: usize,
    is_over: bool,
}

impl TextCallStream<'_> {
    /// Returns the next deltas, at least one; `None` after the end.
    async fn next(&mut self) -> Option<Vec<Result<Delta>>> {
        if self.is_over {
            return None;
        }
        let mut deltas = match self.inner.next().await?.map(|delta| self.cursor.resolve(delta)) {
            Ok(Delta::Text { text }) => {
                let deltas = deltas_of(self.parser.push(text.as_bytes()), &mut self.calls, self.parallel);
                keep_text(&mut self.said, &deltas);
                deltas
            }
            Ok(Delta::End(reason)) => {
                let mut deltas = deltas_of(self.parser.finish(), &mut self.calls, self.parallel);
                // A call that was recognized only at the end of the text must not run if the reply was cut off there.
                deltas.pop_if(|delta| matches!(delta, Delta::End(_)));
                keep_text(&mut self.said, &deltas);
                if reason == EndReason::Complete && self.calls == 0 {
                    deltas.extend(self.foreign());
                }
                deltas.push(Delta::End(reason));
                deltas
            }
            other => return Some(vec![other]),
        };
        if deltas.is_empty() {
            // Everything is held back. Progress shows that the model is still sending.
            deltas.push(Delta::Progress);
        }
        self.is_over = matches!(deltas.last(), Some(Delta::End(_)));
        Some(deltas.into_iter().map(Ok).collect())
    }

    /// Handles a reply without calls that contains a call of another family.
    fn foreign(&self) -> Option<Delta> {
        let tool = foreign_call(&self.said, &self.tools)?;
        if self.was_told {
            let text = format!("the answer holds a call of {tool} in a form that is not known here");
            return Some(Delta::Warning { text });
        }
        Some(Delta::CallFault { index: self.calls, fault: FOREIGN.into(), raw: String::new() })
    }
}
