//! Runs a batch of calls in parallel, each with its timeout. Cancelling ends all of them within a time limit.

use std::panic::AssertUnwindSafe;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, timeout};
use tokio_util::sync::CancellationToken;
use tracing::Instrument;

use crate::error::Result;
use crate::run::{ReadyCall, Run};
use crate::tool::{Effect, ToolError, ToolOutput, Tools};

use super::{Agent, Event, Observer, spans, tell_results};

impl Agent {
    /// Runs calls in parallel and reports each result to the run. After a cancellation it waits for a limited time.
    pub(super) async fn run_tools(
        &self,
        run: &mut Run,
        calls: Vec<ReadyCall>,
        observer: &mut dyn Observer,
        cancel: &CancellationToken,
    ) -> Result<()> {
        let started = Instant::now();
        let most = self.limits.parallel_reads.max(1);
        let (mut waiting, mut tasks) = (calls.into_iter(), JoinSet::new());
        // After a cancellation, tools have a moment to stop.
        let mut given_up = pin!(async {
            cancel.cancelled().await;
            sleep(self.limits.cancel).await;
        });
        loop {
            while tasks.len() < most
                && !cancel.is_cancelled()
                && let Some(ready) = waiting.next()
            {
                observer.event(Event::ToolStarted { index: ready.index, call: ready.call.clone() });
                let (tools, cancel) = (Arc::clone(&self.tools), cancel.child_token());
                let limit = ready.time_limit.unwrap_or(self.limits.tool);
                let span = spans::execute_tool(&ready.call);
                let of_call = span.clone();
                let running = async move {
                    let started = Instant::now();
                    let end = AssertUnwindSafe(run_one(&*tools, &ready, limit, &cancel)).catch_unwind().await;
                    let crashed = |_| Err(ToolError(format!("The tool crashed.{}", write_warning(ready.effect))));
                    let end = end.unwrap_or_else(crashed);
                    if end.is_err() {
                        spans::failed(&of_call, "tool_error");
                    }
                    (ready.call.id, end, started.elapsed())
                };
                tasks.spawn(running.instrument(span));
            }
            let joined = tokio::select! {
                biased;
                joined = tasks.join_next() => joined,
                () = &mut given_up => break,
            };
            let (call, end, duration) = match joined {
                Some(Ok(ended)) => ended,
                Some(Err(_)) => continue,
                None => break,
            };
            run.ran_for(&call, duration);
            run.finished(self.context(), &call, end)?;
            tell_results(run, observer);
            observer.save(run)?;
        }
        run.spend_time(started.elapsed());
        Ok(())
    }
}

async fn run_one(
    tools: &dyn Tools,
    ready: &ReadyCall,
    limit: Duration,
    cancel: &CancellationToken,
) -> Result<ToolOutput, ToolError> {
    let Ok(end) = timeout(limit, tools.call(&ready.call, cancel)).await else {
        cancel.cancel();
        return Err(ToolError(format!("Timed out after {limit:?}.{}", write_warning(ready.effect))));
    };
    end
}

/// Returns a warning for a write that did not complete.
fn write_warning(effect: Effect) -> &'static str {
    match effect {
        Effect::Read => "",
        Effect::Write => " It may or may not have taken effect: check before repeating it.",
    }
}
