//! Wraps a model without tool support so that it can call tools in text.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};

use futures_util::{StreamExt, stream};

use crate::error::{ErrorKind, Result};
use crate::model::{Delta, EndReason, Model, Parallel, ReplyStream, Request, TextCursor, ToolChoice, ToolSupport};
use crate::tool::BoxFuture;

use super::{Parser, Piece, prompt_block, transcript_messages};

/// A model whose calls are in its text.
///
/// The tools stand behind the system text, calls and results are written out in the conversation, and what the model
/// writes is parsed: `<tool_call>{"name":"…","arguments":{…}}</tool_call>`.
#[derive(Debug)]
pub struct TextCalls<M> {
    model: M,
    /// Whether requests are written out. Once it is set it stays.
    in_text: AtomicBool,
}

impl<M: Model> TextCalls<M> {
    /// Always in text.
    pub fn new(model: M) -> Self {
        Self { model, in_text: AtomicBool::new(true) }
    }

    /// In text if the model says that it takes no tools, or as soon as a request fails with `ToolsUnsupported`; that
    /// request is made again at once.
    pub fn when_needed(model: M) -> Self {
        let in_text = AtomicBool::new(model.tool_support() == ToolSupport::None);
        Self { model, in_text }
    }

    async fn in_text(&self, request: Request) -> Result<ReplyStream<'_>> {
        let parallel = request.parallel;
        let has_tools = !request.tools.is_empty();
        let inner = self.model.reply(written_out(request)).await?;
        if !has_tools {
            return Ok(inner);
        }
        let parsed = ParsedDeltas { ready: VecDeque::new(), calls: 0, parallel, is_over: false };
        let stream = TextCallStream { inner, cursor: TextCursor::new(), parser: Parser::new(), parsed };
        Ok(Box::pin(stream::unfold(stream, |mut stream| async move {
            let delta = stream.next().await?;
            Some((delta, stream))
        })))
    }
}

impl<M: Model> Model for TextCalls<M> {
    fn name(&self) -> &str {
        self.model.name()
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
                other => other,
            }
        })
    }
}

/// The request as plain texts.
fn written_out(request: Request) -> Request {
    let block = prompt_block(&request.tools, &request.tool_choice, request.parallel);
    let system = match (request.system, block) {
        (system, None) => system,
        (None, Some(block)) => Some(block.into()),
        (Some(system), Some(block)) => Some(format!("{system}\n\n{block}").into()),
    };
    let messages = transcript_messages(&request.messages);
    Request { system, messages, tools: [].into(), tool_choice: ToolChoice::Auto, ..request }
}

/// A reply on its way through the parser.
struct TextCallStream<'a> {
    inner: ReplyStream<'a>,
    cursor: TextCursor,
    parser: Parser,
    parsed: ParsedDeltas,
}

/// What was read of it.
struct ParsedDeltas {
    ready: VecDeque<Delta>,
    calls: usize,
    parallel: Parallel,
    is_over: bool,
}

impl TextCallStream<'_> {
    async fn next(&mut self) -> Option<Result<Delta>> {
        loop {
            if let Some(delta) = self.parsed.ready.pop_front() {
                return Some(Ok(delta));
            }
            if self.parsed.is_over {
                return None;
            }
            match self.inner.next().await?.map(|delta| self.cursor.resolve(delta)) {
                Ok(Delta::Text { text }) => {
                    self.parsed.take(self.parser.push(text.as_bytes()));
                    // Everything is buffered; progress shows that the model is not silent.
                    if self.parsed.ready.is_empty() {
                        return Some(Ok(Delta::Progress));
                    }
                }
                Ok(Delta::End(reason)) => {
                    self.parsed.is_over = true;
                    self.parsed.take(self.parser.finish());
                    // A call that only the end of the text decided is under that end: of a cut reply it must not run.
                    self.parsed.ready.pop_back_if(|delta| matches!(delta, Delta::End(_)));
                    self.parsed.ready.push_back(Delta::End(reason));
                }
                other => return Some(other),
            }
        }
    }
}

impl ParsedDeltas {
    fn take<'p>(&mut self, pieces: impl Iterator<Item = Piece<'p>>) {
        for piece in pieces {
            let index = self.calls;
            match piece {
                Piece::Text(text) => {
                    self.ready.push_back(Delta::Text { text: text.into() });
                    continue;
                }
                Piece::Call { name, arguments } => self.ready.extend([
                    Delta::CallStart { index, id: String::new(), name },
                    Delta::CallArguments { index, text: arguments },
                    Delta::CallEnd { index, opaque: None },
                ]),
                Piece::Fault { fault, raw } => self.ready.push_back(Delta::CallFault { index, fault, raw }),
            }
            self.calls += 1;
            if self.parallel == Parallel::One {
                // Whatever it would write now, it would write without having seen the result.
                self.is_over = true;
                self.ready.push_back(Delta::End(EndReason::Complete));
                return;
            }
        }
    }
}
