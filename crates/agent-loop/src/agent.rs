//! The agent loop, in [`Agent::drive`]: ask the run what it needs next, do it, report the outcome. All waiting, timing
//! and concurrency is here; `run.rs` decides.
//!
//! ```text
//! loop:
//!     next = run.next(tools, policy)        pure: what is needed now
//!     save(run)
//!     CallModel -> reply                    streamed, retried while nothing was shown      reply.rs, retry.rs
//!     RunTools  -> results                  reads in parallel, a write alone               tools.rs
//!     Compact   -> a shorter history                                                       compact.rs
//!     Ask       -> a decision               of the approver, if there is one
//!               -> return Waiting           a person decides; drive again, here or elsewhere
//!     Done      -> return Done
//! ```

mod event;
mod retry;
mod timeouts;
mod spans;
mod compact;
mod reply;
mod tools;
mod stream;

use std::fmt;
use std::future::ready;
use std::sync::Arc;

use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;
use tracing::Instrument;

use crate::approval::{AskBeforeWriting, CallPolicy, Decision, Question, RunId};
use crate::budget::Limit;
use crate::compaction::{Compaction, DropThenSummarize};
use crate::error::{Error, ErrorKind, Result};
use crate::message::UserMessage;
use crate::model::{Model, Request};
use crate::run::{NextStep, Run, RunContext, RunError, RunOptions, RunOutcome, StopReason};
use crate::tool::{BoxFuture, ToolSet, Tools};

pub use event::{Event, Observer};
pub use retry::Retries;
pub use stream::EventStream;
pub use timeouts::Limits;

use reply::ReplyOutcome;

/// A function that decides about calls that the policy asks about.
type DecideFn = dyn Fn(Question) -> BoxFuture<'static, Decision> + Send + Sync;

/// A model, tools and a policy that drive any number of runs at once. Clones share them.
///
/// ```
/// use agent_loop::{Agent, AllowAll, Pause, Run, RunId, RunOptions, ScriptedModel, ScriptedReply, Tool};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let model = ScriptedModel::new([ScriptedReply::text("Hello!"), ScriptedReply::text("Hello again!")]);
/// let agent = Agent::new(model, Vec::<Tool>::new())?.policy(AllowAll);
/// assert_eq!(agent.ask("Hi").await?.text, "Hello!");
///
/// // With events, approvals, cancelling, and a run that can be saved:
/// let mut run = Run::new(RunId::random(), RunOptions::default(), "Hi");
/// let pause = agent.drive(&mut run, &mut (), &Default::default()).await?;
/// assert!(matches!(pause, Pause::Done(outcome) if outcome.text == "Hello again!"));
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Agent {
    model: Arc<dyn Model>,
    tools: Arc<dyn Tools>,
    set: Arc<ToolSet>,
    policy: Arc<dyn CallPolicy>,
    approver: Option<Arc<DecideFn>>,
    compaction: Arc<dyn Compaction>,
    limits: Limits,
    options: RunOptions,
}

impl fmt::Debug for Agent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let tools: Vec<&str> = self.set.specs().iter().map(|spec| spec.name.as_str()).collect();
        let mut agent = f.debug_struct("Agent");
        agent.field("model", &self.model.name()).field("tools", &tools).field("limits", &self.limits);
        agent.finish_non_exhaustive()
    }
}

setters!(Agent { limits: Limits });

/// The reason why [`Agent::ask`] denies a call if the agent has no approver.
const NO_APPROVER: &str = "no one is there to approve it";

/// The reason why [`Agent::drive`] returned.
#[derive(Debug, Clone, PartialEq)]
pub enum Pause {
    /// A person has to decide these questions. Then drive the run again, here or in another process. Only an agent
    /// without an [`approver`](Agent::approver) waits.
    Waiting(Vec<Question>),
    /// The run is done.
    Done(RunOutcome),
}

impl Agent {
    /// Creates an agent that asks before writing, with the default compaction and limits.
    ///
    /// # Errors
    /// `Tools` if two tools have the same name or a schema is invalid.
    pub fn new(model: impl Model + 'static, tools: impl Tools + 'static) -> Result<Self> {
        let set = ToolSet::new(tools.specs())?;
        let (model, tools) = (Arc::new(model), Arc::new(tools));
        let (policy, compaction) = (Arc::new(AskBeforeWriting), Arc::new(DropThenSummarize::default()));
        let (limits, options) = (Limits::default(), RunOptions::default());
        Ok(Self { model, tools, set: Arc::new(set), policy, approver: None, compaction, limits, options })
    }

    /// Sets the policy.
    #[must_use]
    pub fn policy(mut self, policy: impl CallPolicy + 'static) -> Self {
        self.policy = Arc::new(policy);
        self
    }

    /// Sets the function that decides about calls that the policy asks about. [`ask`](Self::ask),
    /// [`drive`](Self::drive) and [`stream`](Self::stream) then await it instead of pausing, one question at a time: an
    /// allowed call runs before the next question, because a decision for the session may have made that question
    /// unnecessary.
    ///
    /// A decision that [`Run::decide`] rejects, for example because edited arguments do not fit the schema, counts as a
    /// denial, and the model gets the reason. Cancelling the run drops the future.
    ///
    /// ```
    /// use agent_loop::{Agent, Decision, Question, ScriptedModel, ScriptedReply, ToolError, tool};
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let delete = tool! {
    ///     /// Deletes a file.
    ///     write async fn delete(path: String) -> Result<String, ToolError> { Ok(format!("deleted {path}")) }
    /// };
    /// # let calls = ScriptedReply::calls([("delete", serde_json::json!({"path": "a.tmp"}))]);
    /// # let model = ScriptedModel::new([calls, ScriptedReply::text("Done.")]);
    /// let agent = Agent::new(model, vec![delete])?.approver(async |question: Question| {
    ///     match question.call.arguments["path"].as_str() {
    ///         Some(path) if path.ends_with(".tmp") => Decision::Allow,
    ///         _ => Decision::Deny { reason: Some("only temporary files may be deleted".into()) },
    ///     }
    /// });
    /// assert_eq!(agent.ask("Delete a.tmp.").await?.text, "Done.");
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn approver<F, Fut>(mut self, approver: F) -> Self
    where
        F: Fn(Question) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Decision> + Send + 'static,
    {
        self.approver = Some(Arc::new(move |question| Box::pin(approver(question))));
        self
    }

    /// Sets the compaction.
    #[must_use]
    pub fn compaction(mut self, compaction: impl Compaction + 'static) -> Self {
        self.compaction = Arc::new(compaction);
        self
    }

    /// Returns the tools and the policy, as [`Run::decide`] needs them.
    pub fn context(&self) -> RunContext<'_> {
        RunContext { tools: &self.set, policy: &*self.policy }
    }

    /// Sets the options of the runs that [`ask`](Self::ask) starts.
    #[must_use]
    pub fn options(mut self, options: RunOptions) -> Self {
        self.options = options;
        self
    }

    /// Answers one message: starts a run and drives it to its end. Calls that need a person's decision go to the
    /// [`approver`](Self::approver); without one they do not run, and the model gets the reason. Dropping the future
    /// cancels the run.
    ///
    /// # Errors
    /// [`RunError`] if the run ended without an answer, for example because the provider rejected the key or the budget
    /// was used up. It contains the outcome.
    pub async fn ask(&self, message: impl Into<UserMessage>) -> Result<RunOutcome, RunError> {
        let mut run = Run::new(RunId::random(), self.options.clone(), message);
        let deny: Arc<DecideFn> = Arc::new(|_| Box::pin(ready(Decision::Deny { reason: Some(NO_APPROVER.into()) })));
        let approver = self.approver.as_ref().unwrap_or(&deny);
        let (span, cancel) = (spans::invoke_agent(&run), CancellationToken::new());
        let pause = self.drive_asking(&mut run, &mut (), &cancel, Some(&**approver)).instrument(span).await;
        match pause.expect("nothing is saved, and nothing else drives the run") {
            Pause::Done(outcome) => outcome.answered(),
            Pause::Waiting(_) => unreachable!("an approver decides every question"),
        }
    }

    /// Drives a run until it is done or, if the agent has no [`approver`](Self::approver), until a person has to
    /// decide.
    ///
    /// The observer receives every event as it happens and saves the run after every step. Cancelling ends the run
    /// within [`Limits::cancel`]. If the future is dropped instead, the run can be driven again.
    ///
    /// # Errors
    /// Only a failure of the observer to save the run. Failures of the model or a tool are part of the run.
    pub async fn drive(&self, run: &mut Run, observer: &mut dyn Observer, cancel: &CancellationToken) -> Result<Pause> {
        let span = spans::invoke_agent(run);
        self.drive_asking(run, observer, cancel, self.approver.as_deref()).instrument(span).await
    }

    async fn drive_asking(
        &self,
        run: &mut Run,
        observer: &mut dyn Observer,
        cancel: &CancellationToken,
        approver: Option<&DecideFn>,
    ) -> Result<Pause> {
        run.interrupted();
        loop {
            if cancel.is_cancelled() {
                run.cancel(Vec::new());
            }
            let next = run.next(self.context());
            tell_results(run, observer);
            observer.save(run)?;
            match next {
                NextStep::CallModel(request) => self.call_model(run, request, observer, cancel).await?,
                NextStep::Compact => self.compact(run, observer, cancel).await?,
                NextStep::RunTools(calls) => self.run_tools(run, calls, observer, cancel).await?,
                NextStep::Wait => return Err(Error::new(ErrorKind::State, "calls of this run are running elsewhere")),
                NextStep::Ask(questions) if let Some(approver) = approver => {
                    self.approve(run, &questions[0], observer, cancel, approver).await;
                }
                NextStep::Ask(questions) => {
                    questions.iter().for_each(|question| observer.event(Event::ApprovalNeeded(question.clone())));
                    return Ok(Pause::Waiting(questions));
                }
                NextStep::Done(outcome) => {
                    log::debug!("{}: done after {} turns", run.id(), outcome.spent.turns);
                    observer.event(Event::Done(outcome.clone()));
                    return Ok(Pause::Done(outcome));
                }
            }
        }
    }

    /// Lets the approver decide one question. No decision is made if the run is cancelled first.
    async fn approve(
        &self,
        run: &mut Run,
        question: &Question,
        observer: &mut dyn Observer,
        cancel: &CancellationToken,
        approver: &DecideFn,
    ) {
        observer.event(Event::ApprovalNeeded(question.clone()));
        let decision = tokio::select! {
            biased;
            () = cancel.cancelled() => return,
            decision = approver(question.clone()) => decision,
        };
        if let Err(rejections) = run.decide(self.context(), [question.decide(decision)]) {
            let reason = Some(format!("the decision about it was not valid: {rejections}"));
            // This denial may be rejected too, if the current policy decides: then no question is left.
            drop(run.decide(self.context(), [question.decide(Decision::Deny { reason })]));
        }
    }

    async fn call_model(
        &self,
        run: &mut Run,
        request: Request,
        observer: &mut dyn Observer,
        cancel: &CancellationToken,
    ) -> Result<()> {
        let (started, within) = (Instant::now(), cancel.child_token());
        let left = run.options().budget.time.map(|limit| limit.saturating_sub(run.spent().time));
        let ended = {
            let mut reply = std::pin::pin!(self.reply(&request, observer, &within));
            tokio::select! {
                ended = &mut reply => ended,
                () = sleep(left.unwrap_or_default()), if left.is_some() => {
                    within.cancel();
                    reply.await
                }
            }
        };
        drop(request);
        run.spend_time(started.elapsed());
        match ended {
            ReplyOutcome::Replied(mut reply) => {
                reply.take_thoughts();
                reply.calls_mut().for_each(|call| self.set.mend(call));
                run.replied(reply)
            }
            ReplyOutcome::Failed(error) => run.failed(&error),
            ReplyOutcome::Cancelled(said, usage) => {
                let is_late = !cancel.is_cancelled();
                let stop = if is_late { StopReason::Limit { limit: Limit::Time } } else { StopReason::Cancelled };
                run.cut_reply(said, usage, stop);
                Ok(())
            }
        }
    }
}

/// Reports the calls that have got their results.
fn tell_results(run: &mut Run, observer: &mut dyn Observer) {
    for (index, result) in run.take_untold() {
        observer.event(Event::ToolFinished { index, result });
    }
}
