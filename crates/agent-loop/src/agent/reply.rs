//! One request to the model: streamed to the observer, timed out when silent, retried until something was shown.

use futures_util::StreamExt;
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;
use tracing::Instrument;

use crate::error::{Error, ErrorKind, Result};
use crate::message::{Part, Usage};
use crate::model::{Delta, ImageSupport, Reply, ReplyBuilder, Request, TextCursor};

use super::{Agent, Event, Observer, spans};

/// The outcome of a request to the model.
pub(super) enum ReplyOutcome {
    Replied(Reply),
    Failed(Error),
    /// The parts that had arrived, and the tokens that the provider had counted.
    Cancelled(Vec<Part>, Option<Usage>),
}

impl Agent {
    /// Gets one reply. The request is retried until something of the reply was shown.
    pub(super) async fn reply(
        &self,
        request: &Request,
        observer: &mut dyn Observer,
        cancel: &CancellationToken,
    ) -> ReplyOutcome {
        for attempt in 1.. {
            let (mut builder, mut is_shown) = (ReplyBuilder::new(), false);
            let span = spans::chat(&*self.model, request);
            let streamed = tokio::select! {
                biased;
                () = cancel.cancelled() => {
                    let usage = builder.usage();
                    return ReplyOutcome::Cancelled(builder.give_up(), usage);
                }
                streamed = self.stream_reply(request, &mut builder, &mut is_shown, observer).instrument(span.clone()) => streamed,
            };
            let reply = streamed.and_then(|()| builder.finish());
            spans::record_reply(&span, reply.as_ref());
            drop(span);
            let error = match reply {
                Ok(reply) => {
                    log::debug!("{}: reply ended {:?}, {:?}", self.model.name(), reply.end, reply.usage);
                    return ReplyOutcome::Replied(reply);
                }
                Err(error) => error,
            };
            let delay = self.limits.retries.delay(attempt, &error, fastrand::f64()).filter(|_| !is_shown);
            let Some(delay) = delay else { return ReplyOutcome::Failed(error) };
            log::warn!("{}: attempt {attempt} failed ({:?}); next in {delay:?}", self.model.name(), error.kind());
            observer.event(Event::Retry { attempt, delay, failure: (&error).into() });
            tokio::select! {
                () = cancel.cancelled() => return ReplyOutcome::Cancelled(Vec::new(), None),
                () = sleep(delay) => {}
            }
        }
        unreachable!("attempts do not end by themselves")
    }

    async fn stream_reply(
        &self,
        request: &Request,
        builder: &mut ReplyBuilder,
        is_shown: &mut bool,
        observer: &mut dyn Observer,
    ) -> Result<()> {
        if self.model.image_support() == ImageSupport::None
            && request.messages.iter().any(|message| !message.images().is_empty())
        {
            return Err(Error::new(
                ErrorKind::BadRequest,
                "the model only reads text, and a message contains an image",
            )
            .with_path(self.model.name())
            .with_remedy("remove the image, or use a model that accepts images"));
        }
        let silent =
            |_| Error::new(ErrorKind::TimedOut, "the model was silent for too long").with_path(self.model.name());
        let mut stream = timeout(self.limits.silence, self.model.reply(request.clone())).await.map_err(silent)??;
        let (mut cursor, mut phase, mut calls) = (TextCursor::new(), None, Vec::new());
        while let Some(delta) = timeout(self.limits.silence, stream.next()).await.map_err(silent)? {
            let delta = cursor.resolve(delta?);
            builder.push(&delta)?;
            if let Delta::TextStart { phase: begun } = delta {
                phase = begun;
            }
            *is_shown |= !matches!(delta, Delta::TextStart { .. } | Delta::Usage(_) | Delta::Progress | Delta::End(_));
            Event::of(delta, phase, &mut calls).into_iter().for_each(|event| observer.event(event));
        }
        Ok(())
    }
}
