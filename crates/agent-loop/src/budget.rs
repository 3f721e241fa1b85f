//! The budget of a run: limits on turns, calls, tokens, time and identical calls. It never estimates prices.

use std::collections::VecDeque;
use std::fmt;
use std::ops::AddAssign;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::canonical::{canonical_json, fingerprint};
use crate::message::costs;

/// The limits of one run, counted from the person's last message. `None` means no limit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct Budget {
    /// Model replies; by default 10.
    pub turns: Option<u32>,
    /// Tool calls; by default 64.
    pub calls: Option<u32>,
    /// Input and output tokens, as the provider counts them; if it does not, four bytes count as one token.
    pub tokens: Option<u64>,
    /// Time during which the model or tools work. Waiting for a person does not count. A reply in progress is stopped
    /// at this limit; running tools are limited by the agent's own timeouts.
    pub time: Option<Duration>,
    /// The run ends when the same call (name and arguments) gives the same result this many times; by default 3.
    pub repeats: Option<u32>,
    /// Whether the run stops at a limit of turns, calls or repeats, or sums up first.
    pub at_limit: AtLimit,
}

setters!(Budget {
    turns: Option<u32>,
    calls: Option<u32>,
    tokens: Option<u64>,
    time: Option<Duration>,
    repeats: Option<u32>,
    at_limit: AtLimit,
});

impl Default for Budget {
    fn default() -> Self {
        Self { turns: Some(10), calls: Some(64), tokens: None, time: None, repeats: Some(3), at_limit: AtLimit::Stop }
    }
}

/// How a run ends when it reaches a limit.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AtLimit {
    /// The run ends.
    #[default]
    Stop,
    /// The model gets one more turn, without tools, to sum up its findings; then the run ends. Limits of tokens and
    /// time end it at once.
    SumUp,
}

/// A limit that a run reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Limit {
    /// The limit on turns.
    Turns,
    /// The limit on tool calls.
    Calls,
    /// The limit on tokens.
    Tokens,
    /// The limit on time.
    Time,
    /// The limit on identical calls.
    Repeats,
}

impl fmt::Display for Limit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Turns => "Agent exceeded maximum iterations",
            Self::Calls => "Maximum number of tool uses reached",
            Self::Tokens => "Maximum number of tokens reached",
            Self::Time => "Maximum time reached",
            Self::Repeats => "The same tool call gave the same result too often",
        })
    }
}

/// The usage of a run since the person's last message.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct RunUsage {
    /// Model replies.
    pub turns: u32,
    /// Tool calls that the model requested and the budget allowed, failed ones included.
    pub calls: u32,
    /// Tokens.
    pub tokens: u64,
    /// The cost in millionths of a US dollar, as far as the provider reported it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cost: Option<u64>,
    /// Time during which the model or tools worked.
    pub time: Duration,
}

impl AddAssign for RunUsage {
    fn add_assign(&mut self, more: Self) {
        self.turns = self.turns.saturating_add(more.turns);
        self.calls = self.calls.saturating_add(more.calls);
        self.tokens = self.tokens.saturating_add(more.tokens);
        self.cost = costs(self.cost, more.cost);
        self.time = self.time.saturating_add(more.time);
    }
}

impl Budget {
    /// Returns the limit that forbids another turn, if there is one.
    pub fn reached(&self, spent: &RunUsage) -> Option<Limit> {
        let limits = [
            (Limit::Tokens, self.tokens.is_some_and(|limit| spent.tokens >= limit)),
            (Limit::Time, self.time.is_some_and(|limit| spent.time >= limit)),
            (Limit::Turns, self.turns.is_some_and(|limit| spent.turns >= limit)),
        ];
        limits.into_iter().find_map(|(limit, is_reached)| is_reached.then_some(limit))
    }

    /// Returns how many more calls may run.
    pub fn calls_left(&self, spent: &RunUsage) -> u32 {
        self.calls.map_or(u32::MAX, |limit| limit.saturating_sub(spent.calls))
    }
}

/// Counts how often the same call gave the same result, over the last [`Repeats::REMEMBERED`] different ones.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Repeats {
    seen: VecDeque<(u64, u32)>,
}

impl Repeats {
    /// How many different calls are remembered. The number is bounded so that saved states stay small; a model that
    /// repeats a longer cycle is stopped by the other limits.
    pub const REMEMBERED: usize = 128;

    /// Counts one call with its result and returns the new count.
    pub fn count(&mut self, name: &str, arguments: &Value, result: &str) -> u32 {
        // The first eight bytes of the hash are enough, because a collision does no harm.
        let hash = fingerprint([name, &canonical_json(arguments), result]);
        let key = hash.as_bytes().first_chunk().map_or(0, |bytes| u64::from_le_bytes(*bytes));
        if let Some((_, count)) = self.seen.iter_mut().find(|(seen, _)| *seen == key) {
            *count = count.saturating_add(1);
            return *count;
        }
        // A state that was edited by hand may have more.
        while self.seen.len() >= Self::REMEMBERED {
            self.seen.pop_front();
        }
        self.seen.push_back((key, 1));
        1
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn limits_are_reached() {
        let budget = Budget { tokens: Some(100), time: Some(Duration::from_secs(5)), ..Budget::default() };
        let spent = RunUsage { turns: 9, calls: 60, tokens: 99, time: Duration::from_secs(4), ..RunUsage::default() };
        assert_eq!(budget.reached(&spent), None);
        assert_eq!(budget.calls_left(&spent), 4);
        assert_eq!(budget.reached(&RunUsage { turns: 10, ..spent }), Some(Limit::Turns));
        assert_eq!(budget.reached(&RunUsage { tokens: 100, ..spent }), Some(Limit::Tokens));
        assert_eq!(budget.reached(&RunUsage { time: Duration::from_secs(5), ..spent }), Some(Limit::Time));
        let free = Budget { turns: None, calls: None, ..Budget::default() };
        assert_eq!(free.reached(&RunUsage { turns: u32::MAX, ..spent }), None);
        assert_eq!(free.calls_left(&spent), u32::MAX);
    }

    #[test]
    fn repeats_are_counted_by_call_and_result() {
        let mut repeats = Repeats::default();
        assert_eq!(repeats.count("a", &json!({"x": 1, "y": [2]}), "r"), 1);
        let other_order: Value = serde_json::from_str(r#"{"y":[2],"x":1}"#).unwrap();
        assert_eq!(repeats.count("a", &other_order, "r"), 2);
        assert_eq!(repeats.count("a", &other_order, "changed"), 1);
        assert_eq!(repeats.count("ax", &json!({}), ""), 1);
        assert_eq!(repeats.count("a", &json!({"x": 1, "y": [2]}), "r"), 3);
        for number in 0..Repeats::REMEMBERED {
            repeats.count("n", &json!(number), "");
        }
        assert_eq!(repeats.count("a", &json!({"x": 1, "y": [2]}), "r"), 1);
    }
}
