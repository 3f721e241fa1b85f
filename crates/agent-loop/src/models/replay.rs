//! Replays the model's side of a recorded conversation for as long as the conversation is the same.

use futures_util::stream;

use crate::error::{Error, ErrorKind, Result};
use crate::message::{Message, Messages, Part};
use crate::model::{Delta, EndReason, ImageSupport, Model, ReplyStream, Request};
use crate::tool::BoxFuture;

/// Replays a conversation, for example one of a [`Transcript`](crate::Transcript).
///
/// The reply to a request is the next message of the recording after the request's messages. A request whose messages
/// differ from the recording fails with `Script`, and the error names the first that differs.
#[derive(Debug, Clone)]
pub struct ReplayModel {
    recorded: Messages,
}

impl ReplayModel {
    /// Creates a model from a recorded conversation.
    pub fn new(recorded: Messages) -> Self {
        Self { recorded }
    }

    fn answer(&self, request: &Request) -> Result<Vec<Delta>> {
        let wrong = |what: String| Err(Error::new(ErrorKind::Script, what).with_path("replayed model"));
        let differs = request.messages.iter().zip(self.recorded.iter()).position(|(asked, recorded)| asked != recorded);
        if let Some(index) = differs {
            return wrong(format!("message {} differs from the recorded one", index + 1));
        }
        match self.recorded.get(request.messages.len()).map(|message| &**message) {
            Some(Message::Assistant { parts }) => {
                let deltas = parts.iter().enumerate().flat_map(|(index, part)| deltas_of(index, part));
                Ok(deltas.chain([Delta::End(EndReason::Complete)]).collect())
            }
            _ => wrong(format!("the recording has no reply after message {}", request.messages.len())),
        }
    }
}

fn deltas_of(index: usize, part: &Part) -> Vec<Delta> {
    match part {
        Part::Text { text, phase, opaque } => {
            let text = [Delta::TextStart { phase: *phase }, Delta::Text { text: text.clone() }];
            text.into_iter().chain(opaque.clone().map(|opaque| Delta::TextEnd { opaque })).collect()
        }
        Part::Reasoning { text, opaque } => vec![Delta::Reasoning { text: text.clone(), opaque: opaque.clone() }],
        Part::Call(call) => {
            let start = Delta::CallStart { index, id: call.id.0.clone(), name: call.name.clone() };
            let raw = || call.arguments.as_str().map_or_else(|| call.arguments_text().into_owned(), str::to_owned);
            match &call.fault {
                Some(fault) => vec![start, Delta::CallFault { index, fault: fault.clone(), raw: raw() }],
                None => vec![
                    start,
                    Delta::CallArguments { index, text: call.arguments_text().into_owned() },
                    Delta::CallEnd { index, opaque: call.opaque.clone() },
                ],
            }
        }
    }
}

impl Model for ReplayModel {
    fn name(&self) -> &str {
        "replay"
    }

    fn image_support(&self) -> ImageSupport {
        ImageSupport::Native
    }

    fn reply(&self, request: Request) -> BoxFuture<'_, Result<ReplyStream<'_>>> {
        Box::pin(async move {
            let deltas = self.answer(&request)?;
            Ok(Box::pin(stream::iter(deltas.into_iter().map(Ok))) as ReplyStream<'_>)
        })
    }
}
