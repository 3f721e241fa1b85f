//! State transitions of a run: replies, failures, compacted histories, new messages, retry and cancel.

use crate::budget::{Limit, RunUsage};
use crate::error::{Error, ErrorKind, Failure, Result};
use crate::message::{History, Message, Part, ToolCall, ToolResult, Usage, UserMessage};
use crate::model::{CUT_BY_LENGTH, EndReason, Reply};

use super::answer::correction;
use super::calls::Calls;
use super::when_to_compact::CompactionState;
use super::{Phase, Run, StopReason};

impl Run {
    /// Reports the model's reply to [`NextStep::CallModel`](super::NextStep::CallModel). Calls of a reply that reached
    /// its length limit never run, even if they look complete.
    ///
    /// # Errors
    /// `State` while calls are open, and when the run is done. It is not checked whether a reply or a shorter history
    /// was requested last, because that is not stored.
    pub fn replied(&mut self, reply: Reply) -> Result<()> {
        self.expect_ready("a reply")?;
        self.count(&reply.parts, reply.usage);
        self.state.compaction = CompactionState::default();
        let Reply { mut parts, end, .. } = reply;
        if end == EndReason::Length {
            refuse_calls(&mut parts);
        }
        let calls: Vec<ToolCall> = self.history.free_ids(&mut parts).into_iter().map(|(_, call)| call).collect();
        if let Some(limit) = self.state.summing_up {
            self.sum_up(limit, parts, &calls);
            return Ok(());
        }
        let stop = match end {
            EndReason::Complete => StopReason::Empty,
            EndReason::Length => StopReason::Length,
            EndReason::Filtered => StopReason::Filtered,
            EndReason::Refused => StopReason::Refused,
        };
        if says_nothing(&parts) {
            self.stop(stop);
            return Ok(());
        }
        self.add(Message::Assistant { parts });
        match end {
            EndReason::Filtered | EndReason::Refused => {
                self.answer_all(&calls, "The reply was stopped; the call did not run.");
                self.stop(stop);
            }
            EndReason::Complete | EndReason::Length if !calls.is_empty() => self.open(calls),
            EndReason::Length => self.stop(stop),
            EndReason::Complete => self.conclude(),
        }
        Ok(())
    }

    /// Reports that the model failed and that an immediate retry would not help.
    ///
    /// A conversation that is too long is made shorter first, a limited number of times. Every other failure ends the
    /// run.
    ///
    /// # Errors
    /// `State` as for [`replied`](Self::replied).
    pub fn failed(&mut self, error: &Error) -> Result<()> {
        self.expect_ready("a failure")?;
        let failure = Failure::from(error);
        if error.kind() == ErrorKind::ContextTooLong && self.state.compaction.tries < CompactionState::MOST {
            self.state.compaction.forced = Some(failure);
        } else {
            self.stop(StopReason::Failed { failure });
        }
        Ok(())
    }

    /// Reports the shorter history that [`NextStep::Compact`](super::NextStep::Compact) asked for, or the reason why it
    /// could not be produced.
    ///
    /// A history that is not shorter, or that ends with calls or with the model, counts as a failure. After a failure
    /// the run continues if it can, and ends with the model's failure if the model had refused the request as too long.
    /// Returns the reason if the conversation stays unchanged.
    ///
    /// # Errors
    /// `State` as for [`replied`](Self::replied).
    pub fn compacted(&mut self, shorter: Result<History>) -> Result<Option<Failure>> {
        self.expect_ready("a shorter history")?;
        self.state.compaction.tries = self.state.compaction.tries.saturating_add(1);
        let forced = self.state.compaction.forced.take();
        self.state.compaction.wanted = false;
        let is_usable = |history: &History| {
            let ends_well = history.messages().last().is_some_and(|m| !matches!(**m, Message::Assistant { .. }));
            ends_well && history.size() < self.history.size()
        };
        let why = match shorter {
            Ok(shorter) if is_usable(&shorter) => {
                // Messages after the last reply were not counted.
                let counted = |history: &History| (history.size() - history.since_reply()) as u64;
                let (old, new) = (counted(&self.history).max(1), counted(&shorter));
                self.state.context = self.state.context.saturating_mul(new) / old;
                self.history = shorter;
                return Ok(None);
            }
            Ok(_) => Failure::from(&Error::new(ErrorKind::ContextTooLong, "it did not get shorter")),
            Err(error) => Failure::from(&error),
        };
        self.state.compaction.tries = CompactionState::MOST;
        if let Some(mut failure) = forced {
            failure.message = format!("{}; and it could not be made shorter: {why}", failure.message);
            self.stop(StopReason::Failed { failure });
        }
        Ok(Some(why))
    }

    /// Adds a person's next message. The budget starts over; grants remain.
    ///
    /// If the provider rejected the message before it as invalid, that message loses its images, because every later
    /// request would have them and be rejected too; for example, an image of a type that the model does not read.
    ///
    /// # Errors
    /// `State` while the run is in progress.
    pub fn say(&mut self, message: impl Into<UserMessage>) -> Result<()> {
        if !self.is_done() {
            return Err(Error::new(ErrorKind::State, "the run is still under way")
                .with_remedy("drive it until it is done, or cancel it first"));
        }
        if let Phase::Done { stop: StopReason::Failed { failure }, .. } = &self.state.phase
            && failure.kind == ErrorKind::BadRequest
        {
            self.history.drop_last_images();
        }
        let grants = std::mem::take(&mut self.state.grants);
        let context = self.state.context;
        self.state = super::State { grants, context, ..super::State::default() };
        self.add(Message::user(message));
        Ok(())
    }

    /// Requests a shorter history before the model's next reply, regardless of its length.
    pub fn compact_next(&mut self) {
        self.state.compaction.wanted = true;
    }

    /// Tries again after the model failed. The budget is not reset.
    ///
    /// # Errors
    /// `State` if the run did not end with a failure.
    pub fn retry(&mut self) -> Result<()> {
        if !matches!(self.state.phase, Phase::Done { stop: StopReason::Failed { .. }, .. }) {
            return Err(Error::new(ErrorKind::State, "there is no failure to retry"));
        }
        self.state.compaction = CompactionState::default();
        self.state.phase = Phase::Ready;
        Ok(())
    }

    /// Ends the run now. The history is complete afterwards: each open call has a result that tells whether it may have
    /// had an effect. `said` is the part of a reply that had arrived; its text is kept.
    ///
    /// A run that is done stays unchanged. A partial reply counts as a turn, because its tokens were used.
    pub fn cancel(&mut self, said: Vec<Part>) {
        self.cut_reply(said, None, StopReason::Cancelled);
    }

    /// Does the same as [`cancel`](Self::cancel), with the tokens that the provider had counted by then, and the
    /// reason.
    pub fn cut_reply(&mut self, said: Vec<Part>, usage: Option<Usage>, stop: StopReason) {
        if matches!(self.state.phase, Phase::Ready) && (usage.is_some() || !said.is_empty()) {
            self.count(&said, usage);
        }
        match std::mem::take(&mut self.state.phase) {
            done @ Phase::Done { .. } => self.state.phase = done,
            Phase::Calls { mut calls } => {
                calls.cancel();
                self.untold.extend(calls.take_untold());
                self.add(Message::Results { results: calls.into_results() });
                self.stop(stop);
            }
            Phase::Ready => {
                // Providers that sign reasoning reject it without its signature.
                let is_text = |part: &Part| matches!(part, Part::Text { text, .. } if !text.is_empty());
                let parts: Vec<Part> = said.into_iter().filter(is_text).collect();
                if !parts.is_empty() {
                    self.add(Message::Assistant { parts });
                }
                self.stop(stop);
            }
        }
    }

    /// Returns the results of all calls since the person's last message, oldest first. They include calls that did not
    /// run.
    pub fn results(&self) -> impl Iterator<Item = &ToolResult> {
        let messages = self.history.messages();
        let from = messages.iter().rposition(|message| message.is_of_person()).unwrap_or(0);
        messages[from..].iter().flat_map(|message| match &**message {
            Message::Results { results } => results.as_slice(),
            _ => &[],
        })
    }

    fn expect_ready(&self, what: &str) -> Result<()> {
        if matches!(self.state.phase, Phase::Ready) {
            return Ok(());
        }
        Err(Error::new(ErrorKind::State, format!("{what} that was not requested"))
            .with_remedy("do the step that Run::next returns, and report its outcome"))
    }

    fn count(&mut self, parts: &[Part], usage: Option<Usage>) {
        let bytes: usize = parts.iter().map(Part::size).sum();
        let estimate = ((self.history.size() + bytes) / 4) as u64;
        let tokens = usage.map_or(estimate, |usage| usage.total());
        let cost = usage.and_then(|usage| usage.cost);
        self.state.spent += RunUsage { turns: 1, tokens, cost, ..RunUsage::default() };
        self.state.context = tokens;
    }

    /// Opens the calls of a reply; those beyond the budget are answered immediately.
    fn open(&mut self, calls: Vec<ToolCall>) {
        let left = self.options.budget.calls_left(&self.state.spent);
        let granted = u32::try_from(calls.len()).unwrap_or(u32::MAX).min(left);
        self.state.spent.calls = self.state.spent.calls.saturating_add(granted);
        if (granted as usize) < calls.len() {
            self.state.over = Some(Limit::Calls);
        }
        let calls = Calls::open(calls, granted as usize, &Limit::Calls.to_string());
        // Results that no observer has taken are discarded.
        self.untold.clear();
        self.state.phase = Phase::Calls { calls };
    }

    /// Answers calls none of which will run.
    fn answer_all(&mut self, calls: &[ToolCall], text: &str) {
        if !calls.is_empty() {
            let mut calls = Calls::open(calls.to_vec(), 0, text);
            self.untold.extend(calls.take_untold());
            self.add(Message::Results { results: calls.into_results() });
        }
    }

    /// Ends the run after its last turn, whatever the reply is.
    fn sum_up(&mut self, limit: Limit, parts: Vec<Part>, calls: &[ToolCall]) {
        let mut answer = None;
        if !says_nothing(&parts) {
            self.add(Message::Assistant { parts });
            answer = self.read_answer().and_then(Result::ok);
            self.answer_all(calls, &limit.to_string());
        }
        self.state.phase = Phase::Done { stop: StopReason::Limit { limit }, answer };
    }

    /// Ends the run with the model's answer, or asks for a correction if the answer does not have the required shape.
    fn conclude(&mut self) {
        let (stop, answer) = match self.read_answer() {
            None => (StopReason::Answered, None),
            Some(Ok(answer)) => (StopReason::Answered, Some(answer)),
            Some(Err(faults)) => {
                self.state.bad_answers = self.state.bad_answers.saturating_add(1);
                let attempts = self.options.answer.as_ref().map_or(0, |answer| answer.corrections);
                if self.state.bad_answers <= attempts {
                    self.add(Message::note(correction(&faults)));
                    self.state.phase = Phase::Ready;
                    return;
                }
                (StopReason::BadAnswer { faults }, None)
            }
        };
        self.state.phase = Phase::Done { stop, answer };
    }
}

/// Returns whether a reply has neither text nor calls. Reasoning alone is not a reply, and some providers reject it as
/// a message.
fn says_nothing(parts: &[Part]) -> bool {
    parts.iter().all(|part| match part {
        Part::Text { text, .. } => text.trim().is_empty(),
        Part::Reasoning { .. } => true,
        Part::Call(_) => false,
    })
}

/// Marks the calls of a reply that was cut off as faulty, because arguments that happen to parse may be the beginning
/// of longer ones.
fn refuse_calls(parts: &mut [Part]) {
    for part in parts {
        if let Part::Call(call) = part {
            call.fault.get_or_insert_with(|| CUT_BY_LENGTH.into());
        }
    }
}
