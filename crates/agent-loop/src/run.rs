//! A run as a state machine without I/O: it returns what it needs next, is given the answer, and can be saved between
//! any two steps. `agent.rs` has the loop that drives it.
//!
//! ```text
//!            ┌────────────── say (a person's message) ───────────────┐
//!            v                                                        │
//!   ┌─────> Ready ── next ──> CallModel ── replied ──┬─ no calls ──> Done
//!   │         │                   └─── failed ───────│───────────────> │   (retry leads back to Ready)
//!   │         └── next ──> Compact ── compacted ──> Ready              │
//!   │                                                v                 │
//!   │    all have results                          Calls ── cancel ──> │
//!   └───────────────────────────────────────────── │  │ next:
//!                            RunTools ── finished ─┘  └─ Ask ── decide
//! ```
//!
//! The driver does what [`Run::next`] returns and reports the outcome to the run; [`Agent`](crate::Agent) is such a
//! driver. A run never reads a clock, a file or a random number.

mod outcome;
mod answer;
mod calls;
mod when_to_compact;
mod transitions;
mod saved;

use std::collections::BTreeSet;
use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::approval::{BoundDecision, CallPolicy, Question, Rejection, RejectionReason, Rejections, RunId};
use crate::budget::{AtLimit, Budget, Limit, Repeats, RunUsage};
use crate::error::{Error, ErrorKind, Result};
use crate::message::{CallId, History, Message, Part, ToolCall, ToolResult, UserMessage};
use crate::model::{ModelSettings, Parallel, Request, ToolChoice, is_default};
use crate::tool::{Effect, ToolError, ToolOutput, ToolSet};

pub use answer::AnswerShape;
pub(crate) use answer::{check_answer, correction, without_fence};
pub use outcome::{RunError, RunOutcome, StopReason};
pub(crate) use saved::SavedRun;

use calls::Calls;
use when_to_compact::CompactionState;

/// The options of a run. They are saved with it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct RunOptions {
    /// The system text.
    pub system: Option<String>,
    /// The limits of the run.
    pub budget: Budget,
    /// The shape of the final answer, if it has to be JSON.
    pub answer: Option<AnswerShape>,
    /// How many calls one reply may contain.
    pub parallel: Parallel,
    /// The run asks for compaction above this many tokens of context. `None`: only after the model has refused a
    /// request as too long.
    pub compact_above: Option<u64>,
    /// The most tokens of one reply.
    pub max_output_tokens: Option<u32>,
    /// The sampling temperature.
    pub temperature: Option<f64>,
    /// Whether the model may, must or must not call tools. A required call is required once, in the first reply to each
    /// message of the person, because a call in every reply would leave no reply for the answer.
    #[serde(skip_serializing_if = "is_default")]
    pub tool_choice: ToolChoice,
    /// Settings that not every provider has, such as effort, sampling and caching.
    #[serde(skip_serializing_if = "is_default")]
    pub settings: ModelSettings,
}

setters!(RunOptions {
    system: Option<String>,
    budget: Budget,
    answer: Option<AnswerShape>,
    parallel: Parallel,
    compact_above: Option<u64>,
    max_output_tokens: Option<u32>,
    temperature: Option<f64>,
    tool_choice: ToolChoice,
    settings: ModelSettings,
});

/// The current tools and policy, against which a run is checked.
#[derive(Clone, Copy)]
pub struct RunContext<'a> {
    /// The current tools.
    pub tools: &'a ToolSet,
    /// The current policy.
    pub policy: &'a dyn CallPolicy,
}

impl fmt::Debug for RunContext<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RunContext").field("tools", &self.tools.specs().len()).finish_non_exhaustive()
    }
}

/// The next step that a run needs.
#[derive(Debug)]
pub enum NextStep {
    /// Get a reply to this request, then call [`Run::replied`] or [`Run::failed`]. Drop the request before that,
    /// because a list of messages that is still held has to be copied.
    CallModel(Request),
    /// Get a shorter history, then call [`Run::compacted`].
    Compact,
    /// Run these calls now: one that writes, or any number of reads in parallel. Save the run before they start; then
    /// call [`Run::finished`] for each.
    RunTools(Vec<ReadyCall>),
    /// Wait, because calls are still running.
    Wait,
    /// Get decisions about these questions, then call [`Run::decide`]. Every call that could run without them has run.
    Ask(Vec<Question>),
    /// Nothing: the run is done.
    Done(RunOutcome),
}

/// A call that may run now.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct ReadyCall {
    /// The index of the call in its reply, from 0.
    pub index: usize,
    /// The call, with the arguments it runs with.
    pub call: ToolCall,
    /// Whether the tool has side effects.
    pub effect: Effect,
    /// The tool's own time limit.
    pub time_limit: Option<Duration>,
}

/// One conversation and its state. A run is a value: you can clone it, save it, and resume it in another process.
///
/// [`Agent::drive`](crate::Agent::drive) runs it; a program can also drive it by hand:
///
/// ```
/// use agent_loop::{AllowAll, NextStep, Reply, Run, RunContext, RunId, RunOptions, ToolSet};
///
/// let tools = ToolSet::new(Vec::new())?;
/// let context = RunContext { tools: &tools, policy: &AllowAll };
/// let mut run = Run::new(RunId::random(), RunOptions::default(), "Hello");
/// assert!(matches!(run.next(context), NextStep::CallModel(_)));
/// run.replied(Reply::text("Hello! How can I help?"))?;
///
/// let (mut loaded, _repairs) = Run::from_json(&run.to_json())?;
/// let NextStep::Done(outcome) = loaded.next(context) else { panic!("the model has answered") };
/// assert_eq!(outcome.text, "Hello! How can I help?");
/// # Ok::<(), agent_loop::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct Run {
    id: RunId,
    options: RunOptions,
    history: History,
    state: State,
    /// Results in the history that no observer has received yet, each with the index of its call in the reply.
    untold: Vec<(usize, ToolResult)>,
}

/// A run without its messages. It is small, so that it can be saved after every step.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(default)]
struct State {
    phase: Phase,
    spent: RunUsage,
    grants: BTreeSet<String>,
    repeats: Repeats,
    /// A limit that forbids the next turn, other than those on turns, tokens and time.
    over: Option<Limit>,
    /// The limit for which the last turn is in progress.
    summing_up: Option<Limit>,
    /// How many answers had the wrong shape.
    bad_answers: u32,
    /// Tokens of the last request and reply.
    context: u64,
    compaction: CompactionState,
}

#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(tag = "phase", rename_all = "snake_case")]
enum Phase {
    #[default]
    Ready,
    Calls {
        calls: Calls,
    },
    Done {
        stop: StopReason,
        answer: Option<Value>,
    },
}

impl Run {
    /// Creates a conversation that starts with a person's message: a text, or a [`UserMessage`] with images.
    pub fn new(id: RunId, options: RunOptions, message: impl Into<UserMessage>) -> Self {
        let (history, state) = (History::new(), State::default());
        let mut run = Self { id, options, history, state, untold: Vec::new() };
        run.add(Message::user(message));
        run
    }

    /// Creates a run from a conversation that was started elsewhere, for example by the client of a server. The model's
    /// reply is next.
    ///
    /// # Errors
    /// `History` if the history is empty, or ends with calls that have no results or with the model's own message.
    pub fn of_history(id: RunId, options: RunOptions, history: History) -> Result<Self> {
        match history.messages().last().map(|message| &**message) {
            Some(Message::User { .. } | Message::Note { .. } | Message::Results { .. }) => {}
            Some(Message::Assistant { .. }) | None => {
                return Err(Error::new(ErrorKind::History, "there is nothing that the model could reply to"));
            }
        }
        Ok(Self { id, options, history, state: State::default(), untold: Vec::new() })
    }

    /// Returns the run's id.
    pub fn id(&self) -> &RunId {
        &self.id
    }

    /// Returns the run's options.
    pub fn options(&self) -> &RunOptions {
        &self.options
    }

    /// Replaces the options, for example when settings have changed. A [`Transcript`](crate::Transcript) stores only
    /// the options with which it was created: set them again after opening one.
    pub fn set_options(&mut self, options: RunOptions) {
        self.options = options;
    }

    /// Returns the conversation. While calls are open, it ends with them.
    pub fn history(&self) -> &History {
        &self.history
    }

    /// Returns the usage since the person's last message.
    pub fn spent(&self) -> RunUsage {
        self.state.spent
    }

    /// Returns the grants given for the session.
    pub fn grants(&self) -> impl Iterator<Item = &str> {
        self.state.grants.iter().map(String::as_str)
    }

    /// Revokes all grants.
    pub fn revoke_grants(&mut self) {
        self.state.grants.clear();
    }

    /// Returns whether the run is done. A new message or a retry continues it.
    pub fn is_done(&self) -> bool {
        matches!(self.state.phase, Phase::Done { .. })
    }

    /// Returns what the run needs next. Called again without an answer in between, it returns the same, except for
    /// [`NextStep::RunTools`]: no call is handed out twice.
    ///
    /// The cost is, for each call that has not run, a check of its arguments and an evaluation of the policy; for a
    /// request, a copy of the system text and of the answer's schema. Messages are shared, not copied.
    pub fn next(&mut self, context: RunContext<'_>) -> NextStep {
        loop {
            match &mut self.state.phase {
                Phase::Done { stop, answer } => {
                    let (stop, answer) = (stop.clone(), answer.clone());
                    let text = if stop == StopReason::Empty { String::new() } else { self.last_text() };
                    return NextStep::Done(RunOutcome { stop, text, answer, spent: self.state.spent });
                }
                Phase::Calls { calls } => {
                    let ready = calls.take_ready(context, &self.state.grants);
                    if !ready.is_empty() {
                        return NextStep::RunTools(ready);
                    }
                    if calls.any_running() {
                        return NextStep::Wait;
                    }
                    let questions = calls.questions(&self.id, &self.state.grants);
                    if !questions.is_empty() {
                        return NextStep::Ask(questions);
                    }
                    self.close_calls();
                }
                Phase::Ready => {
                    if self.stopped_by_budget() {
                        continue;
                    }
                    return if self.wants_compaction() {
                        NextStep::Compact
                    } else {
                        NextStep::CallModel(self.request(context))
                    };
                }
            }
        }
    }

    /// Returns the open questions, even while other calls are running.
    pub fn questions(&mut self, context: RunContext<'_>) -> Vec<Question> {
        let Phase::Calls { calls } = &mut self.state.phase else { return Vec::new() };
        calls.check(context, &self.state.grants);
        calls.questions(&self.id, &self.state.grants)
    }

    /// Applies any number of a person's decisions. Valid ones take effect even if others are rejected. A call that has
    /// not run yet can be decided even if the current policy would let it run without asking.
    ///
    /// # Errors
    /// One rejection for each decision that does not fit. Its question stays open.
    pub fn decide(
        &mut self,
        context: RunContext<'_>,
        decisions: impl IntoIterator<Item = BoundDecision>,
    ) -> Result<(), Rejections> {
        let mut rejections = Vec::new();
        for decision in decisions {
            let call = decision.call.clone();
            let taken = match &mut self.state.phase {
                Phase::Calls { calls } => calls.decide(context, &self.id, &mut self.state.grants, decision),
                _ if self.history.has_call(&call) => Err(RejectionReason::AlreadyDecided),
                _ => Err(RejectionReason::UnknownCall),
            };
            rejections.extend(taken.err().map(|why| Rejection { call, why }));
        }
        if rejections.is_empty() { Ok(()) } else { Err(Rejections(rejections)) }
    }

    /// Reports how long the tool of a running call took, before [`finished`](Self::finished).
    pub fn ran_for(&mut self, call: &CallId, duration: Duration) {
        if let Phase::Calls { calls } = &mut self.state.phase {
            calls.ran_for(call, duration);
        }
    }

    /// Reports how a running call ended.
    ///
    /// # Errors
    /// `State` if this call is not running.
    pub fn finished(
        &mut self,
        context: RunContext<'_>,
        call: &CallId,
        end: Result<ToolOutput, ToolError>,
    ) -> Result<()> {
        match &mut self.state.phase {
            Phase::Calls { calls } => calls.finished(context, call, end),
            _ => Err(Error::new(ErrorKind::State, format!("the call {call} is not running"))),
        }
    }

    /// Reports that no call is running any more, because the process that ran them has ended. Reads will run again.
    /// Writes get a result that warns that they may or may not have taken effect.
    pub fn interrupted(&mut self) {
        if let Phase::Calls { calls } = &mut self.state.phase {
            calls.interrupted();
        }
    }

    /// Returns the results that calls got since the last time, each with the index of its call in the reply.
    pub(crate) fn take_untold(&mut self) -> Vec<(usize, ToolResult)> {
        let mut untold = std::mem::take(&mut self.untold);
        if let Phase::Calls { calls } = &mut self.state.phase {
            untold.extend(calls.take_untold());
        }
        untold
    }

    /// Adds time during which the model or tools worked.
    pub fn spend_time(&mut self, time: Duration) {
        self.state.spent.time = self.state.spent.time.saturating_add(time);
    }

    /// Adds tokens that were used in addition to the run's own replies, such as those of a summary.
    pub fn spend_tokens(&mut self, tokens: u64) {
        self.state.spent.tokens = self.state.spent.tokens.saturating_add(tokens);
    }

    /// Returns the model's last message since the person's message.
    fn last_text(&self) -> String {
        let mut since = self.history.messages().iter().rev().take_while(|message| !message.is_of_person());
        let said = since.find(|message| matches!(***message, Message::Assistant { .. }));
        match said.map(|message| &**message) {
            Some(Message::Assistant { parts }) => Part::answer_text(parts),
            _ => String::new(),
        }
    }

    /// Adds a message that is known to fit.
    fn add(&mut self, message: Message) {
        self.history.push(message).expect("a run adds only what its phase allows");
    }

    fn stop(&mut self, stop: StopReason) {
        self.state.phase = Phase::Done { stop, answer: None };
    }

    /// Turns the results of all calls into one message, after which the model may be asked again. Every call must have
    /// a result.
    fn close_calls(&mut self) {
        let Phase::Calls { mut calls } = std::mem::take(&mut self.state.phase) else { return };
        self.untold.extend(calls.take_untold());
        let limit = self.options.budget.repeats;
        for (call, result) in calls.answered() {
            let count = self.state.repeats.count(&call.name, &call.arguments, &result.text());
            if limit.is_some_and(|limit| count >= limit) {
                self.state.over.get_or_insert(Limit::Repeats);
            }
        }
        self.add(Message::Results { results: calls.into_results() });
    }

    /// Ends the run, or starts its last turn, if the budget does not allow another turn.
    fn stopped_by_budget(&mut self) -> bool {
        if self.state.summing_up.is_some() {
            return false;
        }
        let hard = self.options.budget.reached(&self.state.spent);
        let limit = match (hard, self.state.over) {
            (Some(limit @ (Limit::Tokens | Limit::Time)), _) | (_, Some(limit)) | (Some(limit), None) => limit,
            (None, None) => return false,
        };
        let may_sum_up = !matches!(limit, Limit::Tokens | Limit::Time);
        if may_sum_up && self.options.budget.at_limit == AtLimit::SumUp {
            self.state.summing_up = Some(limit);
            self.add(Message::note(format!("({limit}. Sum up what you have found so far; do not call tools.)")));
            return false;
        }
        self.stop(StopReason::Limit { limit });
        true
    }

    fn request(&self, context: RunContext<'_>) -> Request {
        Request {
            system: self.options.system.as_deref().map(Into::into),
            messages: self.history.messages().clone(),
            tools: context.tools.specs().clone(),
            tool_choice: self.tool_choice(),
            parallel: self.options.parallel,
            answer_schema: self.options.answer.as_ref().map(|answer| answer.schema.clone().into()),
            max_output_tokens: self.options.max_output_tokens,
            temperature: self.options.temperature,
            settings: self.options.settings.clone(),
        }
    }

    fn tool_choice(&self) -> ToolChoice {
        let since_person = || self.history.messages().iter().rev().take_while(|message| !message.is_of_person());
        match &self.options.tool_choice {
            _ if self.state.summing_up.is_some() => ToolChoice::None,
            ToolChoice::Required | ToolChoice::Tool(_)
                if since_person().any(|message| matches!(**message, Message::Results { .. })) =>
            {
                ToolChoice::Auto
            }
            choice => choice.clone(),
        }
    }
}

impl RunId {
    /// Returns a random id of 128 bits.
    pub fn random() -> Self {
        Self(format!("run_{:032x}", fastrand::u128(..)))
    }
}
