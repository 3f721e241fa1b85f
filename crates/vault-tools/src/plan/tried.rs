//! Plans that ran to their end: the newest are kept, so that a macro can be made of one.
//!
//! They lie in the vault's state folder, private to the user, a run a line. Beyond a size the oldest go.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::schema::Plan;
use crate::error::{Error, ErrorKind, Result};
use crate::journal::TransactionId;
use crate::state::State;

pub(crate) const FILE: &str = "plans.jsonl";

/// Bytes that all of them take at most; half of that stays when they are more.
const MOST: u64 = 8 << 20;

/// A run of a plan that came to its end.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Tried {
    /// RFC 3339.
    timestamp: String,
    /// None for a plan that changed nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    run: Option<u64>,
    plan: Plan,
}

/// Notes that a plan ran to its end.
///
/// # Errors
/// When the state folder cannot be written.
pub(crate) fn keep(state: &State, plan: &Plan, run: Option<TransactionId>) -> Result<()> {
    let tried = Tried { timestamp: Timestamp::now().to_string(), run: run.map(|run| run.0), plan: plan.clone() };
    let line = serde_json::to_string(&tried)
        .map_err(|error| Error::new(ErrorKind::Io, format!("the plan is no JSON: {error}")))?;
    {
        let _lock = state.lock_file(FILE)?;
        state.append(FILE, &line)?;
    }
    if state.length(FILE)? > MOST {
        prune(state, None, Some(MOST / 2))?;
    }
    Ok(())
}

/// Whether a plan ran to its end, whatever it was given then.
///
/// # Errors
/// When the file cannot be read.
pub(crate) fn has_succeeded(state: &State, plan: &Plan) -> Result<bool> {
    Ok(all(state)?.iter().any(|tried| tried.plan == *plan))
}

/// The plan that ran to its end last, or in a run.
///
/// # Errors
/// [`ErrorKind::NotFound`] when there is none, or it is no longer kept.
pub fn that_succeeded(state: &State, run: Option<TransactionId>) -> Result<Plan> {
    let found = all(state)?.into_iter().rev().find(|tried| run.is_none() || tried.run == run.map(|run| run.0));
    found.map(|tried| tried.plan).ok_or_else(|| {
        let what = match run {
            Some(run) => format!("run {run} is no plan that ran to its end, or its plan is no longer kept"),
            None => "no plan ran to its end here yet".to_owned(),
        };
        Error::new(ErrorKind::NotFound, what).with_remedy("run the plan, or name its file")
    })
}

/// Drops those older than `before`, then the oldest until the rest takes at most `max_bytes`. Returns how many.
///
/// # Errors
/// When the file cannot be read or written.
pub fn prune(state: &State, before: Option<Timestamp>, max_bytes: Option<u64>) -> Result<usize> {
    state.prune_lines(FILE, max_bytes, &|line| {
        let Ok(tried) = serde_json::from_str::<Tried>(line) else { return false };
        let at = tried.timestamp.parse::<Timestamp>().ok();
        before.is_none_or(|before| at.is_some_and(|at| at >= before))
    })
}

/// The oldest first. Lines that cannot be read, as a crash leaves them, are passed over.
fn all(state: &State) -> Result<Vec<Tried>> {
    Ok(state.lines(FILE)?.iter().filter_map(|line| serde_json::from_str(line).ok()).collect())
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
    fn the_newest_are_kept_and_found_by_their_run() {
        let folder = tempfile::tempdir().unwrap();
        let state = State::at(folder.path().join("state"));
        assert_eq!(that_succeeded(&state, None).unwrap_err().kind(), ErrorKind::NotFound);
        keep(&state, &plan("one"), Some(TransactionId(3))).unwrap();
        state.append(FILE, "{\"half").unwrap();
        keep(&state, &plan("two"), None).unwrap();
        assert_eq!(that_succeeded(&state, None).unwrap(), plan("two"));
        assert_eq!(that_succeeded(&state, Some(TransactionId(3))).unwrap(), plan("one"));
        assert!(that_succeeded(&state, Some(TransactionId(4))).is_err());
        assert!(has_succeeded(&state, &plan("one")).unwrap() && !has_succeeded(&state, &plan("three")).unwrap());
        // What is kept does not grow for ever.
        let long = "x".repeat(1 << 20);
        for number in 0..12 {
            keep(&state, &plan(&format!("{number}{long}")), None).unwrap();
        }
        assert!(state.length(FILE).unwrap() <= MOST);
        assert!(!has_succeeded(&state, &plan("one")).unwrap());
        assert!(has_succeeded(&state, &plan(&format!("11{long}"))).unwrap());
        assert!(prune(&state, Some(Timestamp::now()), None).unwrap() > 0);
        assert!(that_succeeded(&state, None).is_err());
    }
}
