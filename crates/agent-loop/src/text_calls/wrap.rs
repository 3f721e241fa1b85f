//! Wraps a model without tool support so that it can call tools in text.

use std::sync::atomic::{AtomicBool, Ordering};

use futures_util::{StreamExt, stream};

use crate::error::{ErrorKind, Result};
use crate::model::{Delta, EndReason, Model, Parallel, ReplyStream, Request, TextCursor, ToolChoice, ToolSupport};
use crate::tool::BoxFuture;

use super::{Parser, Piece, prompt_block, transcript_messages};

/// A model that writes its tool calls as text.
///
/// The tools are described after the system text, calls and results in the conversation become text, and what the model
/// writes is parsed: `<tool_call>{"name":"…","arguments":{…}}</tool_call>`.
#[derive(Debug)]
pub struct TextCalls<M> {
    model: M,
    /// Whether requests are sent as text. Never reset.
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
        let (cursor, parser) = (TextCursor::new(), Parser::new());
        let stream = TextCallStream { inner, cursor, parser, parallel, calls: 0, is_over: false };
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

/// The request with its tools, calls and results as plain text.
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
    parallel: Parallel,
    /// How many calls were read.
    calls: usize,
    is_over: bool,
}

impl TextCallStream<'_> {
    /// The next deltas, at least one; `None` after the end.
    async fn next(&mut self) -> Option<Vec<Result<Delta>>> {
        if self.is_over {
            return None;
        }
        let mut deltas = match self.inner.next().await?.map(|delta| self.cursor.resolve(delta)) {
            Ok(Delta::Text { text }) => deltas_of(self.parser.push(text.as_bytes()), &mut self.calls, self.parallel),
            Ok(Delta::End(reason)) => {
                let mut deltas = deltas_of(self.parser.finish(), &mut self.calls, self.parallel);
                // A call that was recognized only at the end of the text must not run if the reply was cut there.
                deltas.pop_if(|delta| matches!(delta, Delta::End(_)));
                deltas.push(Delta::End(reason));
                deltas
            }
            other => return Some(vec![other]),
        };
        if deltas.is_empty() {
            // Everything is held back; progress shows that the model is not silent.
            deltas.push(Delta::Progress);
        }
        self.is_over = matches!(deltas.last(), Some(Delta::End(_)));
        Some(deltas.into_iter().map(Ok).collect())
    }
}

/// The pieces as deltas. Where only one call is wanted, the reply ends after it.
fn deltas_of<'p>(pieces: impl Iterator<Item = Piece<'p>>, calls: &mut usize, parallel: Parallel) -> Vec<Delta> {
    let mut deltas = Vec::new();
    for piece in pieces {
        let index = *calls;
        match piece {
            Piece::Text(text) => {
                deltas.push(Delta::Text { text: text.into() });
                continue;
            }
            Piece::Call { name, arguments } => deltas.extend([
                Delta::CallStart { index, id: String::new(), name },
                Delta::CallArguments { index, text: arguments },
                Delta::CallEnd { index, opaque: None },
            ]),
            Piece::Fault { fault, raw } => deltas.push(Delta::CallFault { index, fault, raw }),
        }
        *calls += 1;
        if parallel == Parallel::One {
            // What follows would be written without knowing the result.
            deltas.push(Delta::End(EndReason::Complete));
            break;
        }
    }
    deltas
}
