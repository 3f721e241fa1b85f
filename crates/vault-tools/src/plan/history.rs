//! The most recent successful plans, which can be saved as macros.
//!
//! They are stored in the vault's state folder, private to the user, one run per line. Above a maximum size the oldest
//! are dropped.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::schema::{Plan, remove_concurrency};
use crate::error::{Error, ErrorKind, Result};
use crate::journal::TransactionId;
use crate::state::State;

const FILE: &str = "plans.jsonl";

/// The maximum size of the file in bytes; above it, the file is cut to half of it.
const MAX_BYTES: u64 = 8 << 20;

/// A successful run of a plan.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Success {
    /// RFC 3339.
    timestamp: String,
    /// The transaction; `None` for a plan that changed nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    transaction: Option<u64>,
    plan: Plan,
}

/// Adds a successful plan.
///
/// # Errors
/// If the state folder cannot be written.
pub(super) fn add(state: &State, plan: &Plan, transaction: Option<TransactionId>) -> Result<()> {
    let success = Success {
        timestamp: Timestamp::now().to_string(),
        transaction: transaction.map(|id| id.0),
        plan: plan.clone(),
    };
    let line = serde_json::to_string(&success)
        .map_err(|error| Error::new(ErrorKind::Io, format!("the plan cannot be written as JSON: {error}")))?;
    {
        let _lock = state.lock_file(FILE)?;
        state.append(FILE, &line)?;
    }
    if state.length(FILE)? > MAX_BYTES {
        prune(state, None, Some(MAX_BYTES / 2))?;
    }
    Ok(())
}

/// Returns whether a plan succeeded before, with any parameters.
///
/// # Errors
/// If the file cannot be read.
pub(crate) fn has_succeeded(state: &State, plan: &Plan) -> Result<bool> {
    Ok(all(state)?.iter().any(|success| success.plan == *plan))
}

/// Returns the plan that succeeded last, or in a given transaction.
///
/// # Errors
/// [`ErrorKind::NotFound`] if there is no such plan, or it is no longer in the history.
pub fn last_successful(state: &State, transaction: Option<TransactionId>) -> Result<Plan> {
    let found = all(state)?
        .into_iter()
        .rev()
        .find(|success| transaction.is_none() || success.transaction == transaction.map(|id| id.0));
    found.map(|success| success.plan).ok_or_else(|| {
        let what = match transaction {
            Some(id) => {
                format!("transaction {id} is not a plan that succeeded, or the plan is no longer in the history")
            }
            None => "no plan has succeeded in this vault yet".to_owned(),
        };
        Error::new(ErrorKind::NotFound, what).with_remedy("run the plan first, or name its file")
    })
}

/// Drops plans older than `before`, then the oldest until the remaining ones take at most `max_bytes`. Returns the
/// number of dropped plans.
///
/// # Errors
/// If the file cannot be read or written.
pub fn prune(state: &State, before: Option<Timestamp>, max_bytes: Option<u64>) -> Result<usize> {
    state.prune_lines(FILE, max_bytes, &|line| {
        let Some(success) = read(line) else { return false };
        let at = success.timestamp.parse::<Timestamp>().ok();
        before.is_none_or(|before| at.is_some_and(|at| at >= before))
    })
}

/// Returns all runs, the oldest first. Unreadable lines, for example after a crash, are skipped.
fn all(state: &State) -> Result<Vec<Success>> {
    Ok(state.lines(FILE)?.iter().filter_map(|line| read(line)).collect())
}

fn read(line: &str) -> Option<Success> {
    let mut value: Value = serde_json::from_str(line).ok()?;
    value.get_mut("plan").map(remove_concurrency);
    serde_json::from_value(value).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn plan(goal: &str) -> Plan {
        let steps = json!([{ "id": "a", "tool": "vault.readFile", "args": { "path": "a.md" } }]);
        let plan = json!({ "version": "1.0", "goal": goal, "riskLevel": "read-only", "steps": steps });
        serde_json::from_value(plan).unwrap()
    }

    #[test]
    fn the_newest_plans_are_found_by_their_transaction() {
        let folder = tempfile::tempdir().unwrap();
        let state = State::at(folder.path().join("state"));
        assert_eq!(last_successful(&state, None).unwrap_err().kind(), ErrorKind::NotFound);
        add(&state, &plan("one"), Some(TransactionId(3))).unwrap();
        state.append(FILE, "{\"half").unwrap();
        add(&state, &plan("two"), None).unwrap();
        assert_eq!(last_successful(&state, None).unwrap(), plan("two"));
        assert_eq!(last_successful(&state, Some(TransactionId(3))).unwrap(), plan("one"));
        assert!(last_successful(&state, Some(TransactionId(4))).is_err());
        assert!(has_succeeded(&state, &plan("one")).unwrap() && !has_succeeded(&state, &plan("three")).unwrap());
        // An entry of a version that had foreach.concurrency.
        let mut old = serde_json::to_value(plan("old")).unwrap();
        old["steps"][0]["foreach"] = json!({ "from": "$steps.a.items", "concurrency": 2 });
        let line = json!({ "timestamp": Timestamp::now().to_string(), "transaction": 9, "plan": old });
        state.append(FILE, &line.to_string()).unwrap();
        assert_eq!(last_successful(&state, Some(TransactionId(9))).unwrap().goal, "old");
        // The file does not grow without limit.
        let long = "x".repeat(1 << 20);
        for number in 0..12 {
            add(&state, &plan(&format!("{number}{long}")), None).unwrap();
        }
        assert!(state.length(FILE).unwrap() <= MAX_BYTES);
        assert!(!has_succeeded(&state, &plan("one")).unwrap());
        assert!(has_succeeded(&state, &plan(&format!("11{long}"))).unwrap());
        assert!(prune(&state, Some(Timestamp::now()), None).unwrap() > 0);
        assert!(last_successful(&state, None).is_err());
    }
}
