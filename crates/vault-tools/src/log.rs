//! The log: one line of JSON for each call of a tool, with its arguments, approval, outcome and duration.
//!
//! The file is in the vault's state folder, private to the user. Long texts in it are truncated, because it only
//! records what happened; the contents that undo needs are in the journal.

use std::collections::BTreeMap;

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::error::{Error, ErrorKind, Result};
use crate::policy::Permission;
use crate::state::State;

const FILE: &str = "log.jsonl";

/// The maximum number of characters of a text; the rest is dropped.
const LONGEST_TEXT: usize = 500;

/// The maximum number of items of a list; the rest is dropped.
const LONGEST_LIST: usize = 20;

/// Who approved a call, or that it was not approved.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Approval {
    /// The settings allow it without asking.
    Allowed,
    /// A person saw what it does and approved it.
    Approved,
    /// A person approved it without seeing what it does: with --yes.
    Preapproved,
    /// A person changed its arguments and approved them.
    Edited,
    /// A person allowed it for the session.
    Granted,
    /// The settings or a person refused it.
    Denied,
}

impl Approval {
    /// Requires that the policy allows `what`, or that a person approved it.
    ///
    /// # Errors
    /// [`ErrorKind::Denied`].
    pub(crate) fn check(self, permission: Permission, what: &str) -> Result<()> {
        match self {
            Self::Denied => Permission::Deny(format!("{what} was not approved")),
            Self::Approved | Self::Preapproved | Self::Edited => permission,
            Self::Allowed | Self::Granted => permission.unattended(what),
        }
        .not_denied()
    }

    /// Requires that a person saw the change, if the call needs that.
    ///
    /// # Errors
    /// The given error.
    pub(crate) fn check_seen(self, unless_seen: Option<&Error>) -> Result<()> {
        match (unless_seen, self) {
            (None, _) | (_, Self::Approved | Self::Edited) => Ok(()),
            (Some(error), _) => Err(error.clone()),
        }
    }

    /// Returns the value for a call that failed before a person was asked.
    pub(crate) fn of_failure(error: &Error) -> Self {
        if error.kind() == ErrorKind::Denied { Self::Denied } else { Self::Allowed }
    }
}

/// A call that was made, or refused.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[non_exhaustive]
pub struct Record {
    /// When it ended, RFC 3339.
    pub timestamp: String,
    /// The tool.
    pub tool: String,
    /// Its arguments.
    pub arguments: Value,
    /// Its output.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result: Option<Value>,
    /// The error.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// The number of calls in this record: the calls of a plan's loop share one.
    #[serde(default = "one", skip_serializing_if = "is_one")]
    pub calls: usize,
    /// The duration in milliseconds; for a step of a plan, of its preview and its run together.
    pub duration_ms: u64,
    /// Who approved it.
    pub decision: Approval,
    /// The transaction that `undo` reverts, if it changed anything.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub transaction: Option<u64>,
    /// The parts that a person left out of it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub left_out: Vec<String>,
}

impl Record {
    /// Creates a record with the current time and shortened values; `calls` are the arguments of one call, or of all
    /// calls of a step.
    pub(crate) fn new(
        tool: &str,
        calls: &[&Value],
        outcome: Result<&Value, &Error>,
        duration_ms: u64,
        approval: Approval,
    ) -> Self {
        let (result, error) = match outcome {
            Ok(value) => (Some(shortened(value)), None),
            Err(error) => (None, Some(error.to_string())),
        };
        let arguments = match calls {
            [only] => shortened(only),
            several => shortened_list(several.iter().copied()),
        };
        let timestamp = Timestamp::now().to_string();
        let (tool, decision, left_out) = (tool.to_owned(), approval, Vec::new());
        let calls = calls.len();
        Self { timestamp, tool, arguments, result, error, calls, duration_ms, decision, transaction: None, left_out }
    }
}

fn one() -> usize {
    1
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_one(calls: &usize) -> bool {
    *calls == 1
}

/// Returns the path of the log.
pub fn file(state: &State) -> std::path::PathBuf {
    state.folder().join(FILE)
}

/// Appends a record.
///
/// # Errors
/// If the state folder cannot be written.
pub fn append(state: &State, record: &Record) -> Result<()> {
    let line = serde_json::to_string(record)
        .map_err(|error| Error::new(ErrorKind::Io, format!("the record cannot be written as JSON: {error}")))?;
    let _lock = state.lock_file(FILE)?;
    state.append(FILE, &line)
}

/// Returns the records, oldest first. Unreadable lines, for example after a crash, are skipped.
///
/// # Errors
/// If the file cannot be read.
pub fn read(state: &State) -> Result<Vec<Record>> {
    Ok(state.lines(FILE)?.iter().filter_map(|line| serde_json::from_str(line).ok()).collect())
}

/// Drops records older than `before`, then the oldest until the remaining ones take at most `max_bytes`. Returns the
/// number of dropped records.
///
/// # Errors
/// If the file cannot be read or written.
pub fn prune(state: &State, before: Option<Timestamp>, max_bytes: Option<u64>) -> Result<usize> {
    state.prune_lines(FILE, max_bytes, &|line| {
        let Ok(record) = serde_json::from_str::<Record>(line) else { return false };
        let at = record.timestamp.parse::<Timestamp>().ok();
        before.is_none_or(|before| at.is_some_and(|at| at >= before))
    })
}

/// The calls of one tool in numbers.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[non_exhaustive]
pub struct ToolStats {
    /// The tool.
    pub tool: String,
    /// Calls, including those that failed or were refused.
    pub calls: usize,
    /// Calls that ended with an error.
    pub failures: usize,
    /// Calls that were refused.
    pub refusals: usize,
    /// The total duration in milliseconds.
    pub total_ms: u64,
    /// The average duration in milliseconds.
    pub mean_ms: f64,
    /// The duration of the slowest call in milliseconds.
    pub max_ms: u64,
}

/// Computes the statistics of each tool.
pub fn stats(records: &[Record]) -> Vec<ToolStats> {
    let mut tools: BTreeMap<&str, ToolStats> = BTreeMap::new();
    for record in records {
        let entry = tools.entry(&record.tool).or_default();
        entry.calls += record.calls;
        match (record.decision, &record.error) {
            (Approval::Denied, _) => entry.refusals += record.calls,
            (_, Some(_)) => entry.failures += record.calls,
            (_, None) => {}
        }
        entry.total_ms += record.duration_ms;
        entry.max_ms = entry.max_ms.max(record.duration_ms);
    }
    let named = tools.into_iter().map(|(tool, stats)| ToolStats {
        tool: tool.to_string(),
        mean_ms: stats.total_ms as f64 / stats.calls.max(1) as f64,
        ..stats
    });
    named.collect()
}

fn shortened_list<'v>(items: impl ExactSizeIterator<Item = &'v Value>) -> Value {
    let left_out = items.len().saturating_sub(LONGEST_LIST);
    let note = (left_out > 0).then(|| Value::String(format!("… ({} in all)", items.len())));
    Value::Array(items.take(LONGEST_LIST).map(shortened).chain(note).collect())
}

/// Shortens long texts and lists in a value.
fn shortened(value: &Value) -> Value {
    match value {
        Value::String(text) => match text.char_indices().nth(LONGEST_TEXT) {
            Some((end, _)) => Value::String(format!("{}… ({} bytes)", &text[..end], text.len())),
            None => value.clone(),
        },
        Value::Array(items) => shortened_list(items.iter()),
        Value::Object(fields) => fields.iter().map(|(name, value)| (name.clone(), shortened(value))).collect(),
        other => other.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn record(tool: &str, outcome: Result<Value>, decision: Approval) -> Record {
        Record::new(tool, &[&json!({ "path": "a.md" })], outcome.as_ref(), 10, decision)
    }

    #[test]
    fn no_line_is_lost_while_others_are_pruned() {
        let folder = tempfile::tempdir().unwrap();
        let state = State::at(folder.path().join("state"));
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..25 {
                        append(&state, &record("a", Ok(json!("x")), Approval::Allowed)).unwrap();
                        append(&state, &record("b", Ok(json!("x")), Approval::Allowed)).unwrap();
                        // Drops what cannot be read alone, which is what the next line puts there.
                        prune(&state, None, None).unwrap();
                        state.append(FILE, "half").unwrap();
                    }
                });
            }
        });
        assert_eq!(read(&state).unwrap().len(), 200);
    }

    #[test]
    fn written_read_summed_up_and_pruned() {
        let folder = tempfile::tempdir().unwrap();
        let state = State::at(folder.path().join("state"));
        assert!(read(&state).unwrap().is_empty());
        append(&state, &record("a", Ok(json!("x".repeat(2000))), Approval::Allowed)).unwrap();
        append(&state, &record("b", Err(Error::new(ErrorKind::NotFound, "no")), Approval::Approved)).unwrap();
        // A line that a crash cut in the middle of a letter.
        let file = state.folder().join(FILE);
        let mut bytes = std::fs::read(&file).unwrap();
        bytes.extend(b"{\"half \xf0\x9f");
        std::fs::write(&file, bytes).unwrap();
        append(&state, &record("b", Err(Error::new(ErrorKind::Denied, "no")), Approval::Denied)).unwrap();
        let records = read(&state).unwrap();
        assert_eq!(records.len(), 3);
        let text = records[0].result.as_ref().unwrap().as_str().unwrap();
        assert!(text.ends_with("… (2000 bytes)") && text.len() < 600, "{text}");
        let stats = stats(&records);
        assert_eq!((stats[1].calls, stats[1].failures, stats[1].refusals, stats[1].total_ms), (2, 1, 1, 20));
        assert_eq!(prune(&state, None, None).unwrap(), 1);
        let last = serde_json::to_string(&records[2]).unwrap().len() as u64;
        assert_eq!(prune(&state, None, Some(last + 10)).unwrap(), 2);
        assert_eq!(read(&state).unwrap(), records[2..]);
        assert_eq!(prune(&state, Some(Timestamp::now()), None).unwrap(), 1);
    }
}
