//! A reply whose text is held back until it fits the schema of the answer. If it does not, the model is asked again.

use std::sync::Arc;

use futures_util::{StreamExt, stream};
use serde_json::Value;

use crate::error::Result;
use crate::message::{Message, Usage};
use crate::model::{Delta, EndReason, ReplyStream, Request};
use crate::run::{check_answer, correction, without_fence};
use crate::tool::BoxFuture;

/// A function that sends a request to the model.
pub(super) type ReplyFn<'a> = Box<dyn Fn(Request) -> BoxFuture<'a, Result<ReplyStream<'a>>> + Send + Sync + 'a>;

/// The state of a checked answer over all of its replies.
pub(super) struct CheckedAnswer<'a> {
    ask: ReplyFn<'a>,
    request: Request,
    schema: Arc<Value>,
    inner: ReplyStream<'a>,
    /// How often the model may be asked again.
    corrections: u32,
    /// The text that is held back; `None` once the reply contains a call.
    held: Option<String>,
    /// Tokens of the replies before, and of this one.
    usage: (Usage, Usage),
    is_over: bool,
}

impl<'a> CheckedAnswer<'a> {
    /// Requests the first reply and returns the stream of the checked answer.
    pub(super) async fn stream(
        ask: ReplyFn<'a>,
        request: Request,
        schema: Arc<Value>,
        corrections: u32,
    ) -> Result<ReplyStream<'a>> {
        let inner = ask(request.clone()).await?;
        let held = Some(String::new());
        let checked =
            Self { ask, request, schema, inner, corrections, held, usage: Default::default(), is_over: false };
        let batches = stream::unfold(checked, |mut checked| async move { Some((checked.next().await?, checked)) });
        Ok(Box::pin(batches.flat_map(stream::iter)))
    }

    /// Returns the next deltas; `None` after the end.
    async fn next(&mut self) -> Option<Vec<Result<Delta>>> {
        if self.is_over {
            return None;
        }
        let deltas = match self.inner.next().await? {
            Ok(delta) => self.take(delta).await,
            Err(error) => Err(error),
        };
        self.is_over = match &deltas {
            Ok(deltas) => matches!(deltas.last(), Some(Delta::End(_))),
            Err(_) => true,
        };
        Some(match deltas {
            Ok(deltas) => deltas.into_iter().map(Ok).collect(),
            Err(error) => vec![Err(error)],
        })
    }

    async fn take(&mut self, delta: Delta) -> Result<Vec<Delta>> {
        let Some(held) = &mut self.held else { return Ok(vec![self.counted(delta)]) };
        match delta {
            Delta::Text { text } => {
                held.push_str(&text);
                Ok(vec![Delta::Progress])
            }
            Delta::CallStart { .. } | Delta::CallFault { .. } => Ok(self.release(delta)),
            Delta::End(EndReason::Complete) => {
                let faults = match check_answer(held, &self.schema) {
                    Ok(_) => {
                        *held = without_fence(held).to_string();
                        return Ok(self.release(delta));
                    }
                    Err(faults) => faults,
                };
                if self.corrections == 0 {
                    let mut deltas = self.release(delta);
                    let text = format!("the answer does not have the required shape:\n{faults}");
                    deltas.insert(deltas.len() - 1, Delta::Warning { text });
                    return Ok(deltas);
                }
                self.corrections -= 1;
                let said = Message::assistant(std::mem::take(held));
                let messages = self.request.messages.iter().map(|message| (**message).clone());
                self.request.messages = messages.chain([said, Message::note(correction(&faults))]).collect();
                self.usage.0 = self.usage.0.plus(std::mem::take(&mut self.usage.1));
                self.inner = (self.ask)(self.request.clone()).await?;
                Ok(vec![Delta::Progress])
            }
            Delta::End(_) => Ok(self.release(delta)),
            other => Ok(vec![self.counted(other)]),
        }
    }

    /// Returns the text that was held back and the next delta. After that, nothing is held back any more.
    fn release(&mut self, next: Delta) -> Vec<Delta> {
        let text = self.held.take().filter(|text| !text.is_empty());
        text.map(|text| Delta::Text { text }).into_iter().chain([next]).collect()
    }

    /// Adds the tokens of the earlier replies to a usage.
    fn counted(&mut self, delta: Delta) -> Delta {
        let Delta::Usage(usage) = delta else { return delta };
        self.usage.1 = usage;
        Delta::Usage(self.usage.0.plus(usage))
    }
}
