//! One compaction: bounded in time, its tokens counted, its outcome reported as an event.

use std::sync::atomic::{AtomicU64, Ordering};

use futures_util::StreamExt;
use tokio::time::{Instant, timeout};
use tokio_util::sync::CancellationToken;

use crate::error::{Error, ErrorKind, Result};
use crate::model::{Delta, Model, ReplyStream, Request, TextCursor, ToolSupport};
use crate::run::Run;
use crate::tool::BoxFuture;

use super::{Agent, Event, Observer};

impl Agent {
    pub(super) async fn compact(
        &self,
        run: &mut Run,
        observer: &mut dyn Observer,
        cancel: &CancellationToken,
    ) -> Result<()> {
        let (started, before) = (Instant::now(), run.history().size());
        let model = MeteredModel { model: &*self.model, tokens: AtomicU64::new(0) };
        let shorter = tokio::select! {
            () = cancel.cancelled() => None,
            shorter = timeout(self.limits.compaction, self.compaction.compact(run.history(), &model)) => Some(shorter),
        };
        run.spend_time(started.elapsed());
        run.spend_tokens(model.tokens.into_inner());
        let Some(shorter) = shorter else { return Ok(()) };
        let shorter = shorter.unwrap_or_else(|_| {
            Err(Error::new(ErrorKind::TimedOut, "compacting the conversation took too long")
                .with_path(self.model.name()))
        });
        observer.event(match run.compacted(shorter)? {
            None => Event::Compacted { before, after: run.history().size() },
            Some(failure) => Event::NotCompacted { failure },
        });
        Ok(())
    }
}

/// The model that a compaction uses. It counts its tokens, because they belong to the run's budget even if the
/// compaction fails.
struct MeteredModel<'m> {
    model: &'m dyn Model,
    tokens: AtomicU64,
}

impl Model for MeteredModel<'_> {
    fn name(&self) -> &str {
        self.model.name()
    }

    fn tool_support(&self) -> ToolSupport {
        self.model.tool_support()
    }

    fn reply(&self, request: Request) -> BoxFuture<'_, Result<ReplyStream<'_>>> {
        Box::pin(async move {
            let mut bytes: usize = request.messages.iter().map(|message| message.size()).sum();
            let stream = self.model.reply(request).await?;
            let (mut counted, mut has_usage, mut cursor) = (0, false, TextCursor::new());
            let resolved = stream.map(move |delta| delta.map(|delta| cursor.resolve(delta)));
            let metered = resolved.inspect(move |delta| {
                let now = match delta {
                    Ok(Delta::Usage(usage)) => {
                        has_usage = true;
                        usage.total()
                    }
                    _ if has_usage => return,
                    // As for the run's own replies, four bytes are one token until the provider reports a count.
                    Ok(Delta::Text { text } | Delta::Reasoning { text, .. } | Delta::CallArguments { text, .. }) => {
                        bytes += text.len();
                        bytes as u64 / 4
                    }
                    _ => bytes as u64 / 4,
                };
                // The sum over all replies. A negative difference wraps around and back.
                self.tokens.fetch_add(now.wrapping_sub(counted), Ordering::Relaxed);
                counted = now;
            });
            Ok(Box::pin(metered) as ReplyStream<'_>)
        })
    }
}
