//! Who answers the question about a change, and what the answers are.

use super::prepared::PreparedChange;
use crate::error::{Error, ErrorKind};

/// A front end: shows a change and reports what the person answers. It decides nothing itself.
///
/// It is asked only where the policy asks. What it reports as [`Answer::Yes`] must have been shown, or offered to be shown,
/// as a whole: a diff of which the person could see the first lines only is no basis for an approval.
///
/// Closures and functions of this form are approvers too.
pub trait Approver {
    /// The answer to one question.
    fn ask(&mut self, change: &PreparedChange) -> Answer;
}

/// An answer about a change.
#[derive(Debug)]
#[non_exhaustive]
pub enum Answer {
    /// A person saw it and approves it.
    Yes,
    /// A person approves it without seeing it, as by `--yes`.
    YesUnseen,
    /// A person declines it. What they said goes to the client.
    Declined(Option<String>),
    /// It is refused, for this reason.
    No(Error),
    /// Another change takes its place: with edited arguments, or without some of its parts. It is judged and asked about
    /// like the first.
    Instead(Box<PreparedChange>),
    /// The answer comes later, by another call or from another process.
    Later,
}

impl<F: FnMut(&PreparedChange) -> Answer> Approver for F {
    fn ask(&mut self, change: &PreparedChange) -> Answer {
        self(change)
    }
}

/// The answer that was given elsewhere, as in a form that came back; without one, it comes later.
#[derive(Debug, Default)]
pub struct GivenAnswer(pub Option<Answer>);

impl Approver for GivenAnswer {
    fn ask(&mut self, _: &PreparedChange) -> Answer {
        self.0.take().unwrap_or(Answer::Later)
    }
}

/// Approves everything that is not denied, unseen: `--yes`, or a client that has asked already.
#[derive(Debug, Clone, Copy, Default)]
pub struct AutoApprover;

impl Approver for AutoApprover {
    fn ask(&mut self, _: &PreparedChange) -> Answer {
        Answer::YesUnseen
    }
}

/// Nobody can be asked: only what the policy allows is carried out.
#[derive(Debug, Clone, Copy, Default)]
pub struct HeadlessApprover;

impl Approver for HeadlessApprover {
    fn ask(&mut self, change: &PreparedChange) -> Answer {
        let what = change.plan().map_or_else(|| change.title(), |_| "the plan".to_owned());
        let message = format!("{what} needs a person's approval, and nobody can be asked here");
        Answer::No(Error::new(ErrorKind::Denied, message))
    }
}
