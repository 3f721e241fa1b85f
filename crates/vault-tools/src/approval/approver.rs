//! Approvers, which ask about a change, and their answers.

use super::prepared::PreparedChange;
use crate::error::{Error, ErrorKind};

/// A front end: shows a change and reports the person's answer. It decides nothing itself.
///
/// It is asked only where the policy asks. Report [`Answer::Yes`] only for a change that you have shown, or offered to
/// show, as a whole: a diff of which the person could see only the first lines is no basis for an approval.
///
/// Closures and functions with this signature are approvers too.
pub trait Approver {
    /// Asks about a change.
    fn ask(&mut self, change: &PreparedChange) -> Answer;
}

/// The answer to a question about a change.
#[derive(Debug)]
#[non_exhaustive]
pub enum Answer {
    /// A person saw it and approves it.
    Yes,
    /// A person approves it without seeing it, for example with `--yes`.
    YesUnseen,
    /// A person declines it. The text, if any, is sent to the client as the person's reason.
    Declined(Option<String>),
    /// It is refused with this error.
    No(Error),
    /// Another change replaces it: one with edited arguments, or without some of its parts. That change is judged, and
    /// asked about, like the first.
    Instead(Box<PreparedChange>),
    /// The answer comes later, in another call or from another process.
    Later,
}

impl<F: FnMut(&PreparedChange) -> Answer> Approver for F {
    fn ask(&mut self, change: &PreparedChange) -> Answer {
        self(change)
    }
}

/// An answer that was given elsewhere, for example in a form that was returned; `None` if it comes later.
#[derive(Debug, Default)]
pub struct GivenAnswer(pub Option<Answer>);

impl Approver for GivenAnswer {
    fn ask(&mut self, _: &PreparedChange) -> Answer {
        self.0.take().unwrap_or(Answer::Later)
    }
}

/// Approves everything that is not denied, unseen. For example, for `--yes`, or for a client that has already asked.
#[derive(Debug, Clone, Copy, Default)]
pub struct AutoApprover;

impl Approver for AutoApprover {
    fn ask(&mut self, _: &PreparedChange) -> Answer {
        Answer::YesUnseen
    }
}

/// Carries out only what the policy allows, because no person can be asked.
#[derive(Debug, Clone, Copy, Default)]
pub struct HeadlessApprover;

impl Approver for HeadlessApprover {
    fn ask(&mut self, change: &PreparedChange) -> Answer {
        let what = change.plan().map_or_else(|| change.title(), |_| "the plan".to_owned());
        let message = format!("{what} needs a person's approval, which cannot be requested here");
        Answer::No(Error::new(ErrorKind::Denied, message))
    }
}
