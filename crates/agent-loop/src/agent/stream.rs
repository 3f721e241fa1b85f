//! A run as a stream of its events.

use std::collections::VecDeque;
use std::ops::DerefMut;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::Poll;

use futures_util::stream::{self, BoxStream};
use tokio_util::sync::CancellationToken;

use crate::error::Result;
use crate::run::Run;

use super::{Agent, Event, Observer};

/// The events of a run as they happen.
pub type EventStream<'a> = BoxStream<'a, Result<Event>>;

/// Events that the stream has not returned yet, in order.
#[derive(Clone, Default)]
struct Events(Arc<Mutex<VecDeque<Event>>>);

impl Events {
    fn push(&self, event: Event) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push_back(event);
    }

    fn pop(&self) -> Option<Event> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).pop_front()
    }
}

impl Agent {
    /// Drives a run as [`drive`](Self::drive) does, and returns its events as a stream. The last event is
    /// [`Event::Done`], or [`Event::ApprovalNeeded`] if the run waits for decisions: get the questions from
    /// [`Run::questions`], decide, and stream again.
    ///
    /// The run makes progress only while the stream is polled. Dropping the stream drops the request to the model and
    /// the running tools, and leaves a valid run that can be driven again; [`Run::cancel`] ends it instead.
    ///
    /// `run` is `&mut run`, or a guard such as tokio's `OwnedMutexGuard`, with which the stream borrows nothing and can
    /// be returned as the body of an HTTP response. `observer` is `()`, or `&mut transcript` to save the run after
    /// every step.
    ///
    /// # Errors
    /// The stream ends with an error if the observer could not save the run. Failures of the model or a tool are part
    /// of the run.
    ///
    /// ```
    /// use agent_loop::{Agent, Event, Run, RunId, RunOptions, ScriptedModel, ScriptedReply, Tool};
    /// use futures_util::TryStreamExt;
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> agent_loop::error::Result<()> {
    /// let agent = Agent::new(ScriptedModel::new([ScriptedReply::text("Hello!")]), Vec::<Tool>::new())?;
    /// let mut run = Run::new(RunId::random(), RunOptions::default(), "Hi");
    /// let mut events = agent.stream(&mut run, ());
    /// while let Some(event) = events.try_next().await? {
    ///     match event {
    ///         Event::Text(text) => print!("{text}"),
    ///         Event::Done(outcome) => println!(" ({})", outcome.stop),
    ///         _ => {}
    ///     }
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn stream<'a>(
        &self,
        mut run: impl DerefMut<Target = Run> + Send + 'a,
        observer: impl Observer + 'a,
    ) -> EventStream<'a> {
        let (agent, events) = (self.clone(), Events::default());
        let told = events.clone();
        let mut driving = Some(Box::pin(async move {
            let mut observer = (observer, move |event| told.push(event));
            agent.drive(&mut run, &mut observer, &CancellationToken::new()).await
        }));
        let mut failed = None;
        Box::pin(stream::poll_fn(move |context| {
            if let Some(event) = events.pop() {
                return Poll::Ready(Some(Ok(event)));
            }
            if let Some(drive) = &mut driving
                && let Poll::Ready(ended) = drive.as_mut().poll(context)
            {
                driving = None;
                failed = ended.err();
            }
            match events.pop() {
                Some(event) => Poll::Ready(Some(Ok(event))),
                None if driving.is_some() => Poll::Pending,
                None => Poll::Ready(failed.take().map(Err)),
            }
        }))
    }
}
