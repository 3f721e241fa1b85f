//! In which order steps run: dependencies first, the order of the list among those that are free.

use std::collections::{BTreeMap, BTreeSet};

use super::reference::{self, Root};
use super::schema::{Plan, Step};
use crate::tool::Fault;

/// What each step waits for, by position, and the order that follows.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Order {
    /// Positions of steps, first to run first.
    pub steps: Vec<usize>,
    /// For each position: the positions it waits for.
    pub waits_for: Vec<BTreeSet<usize>>,
}

/// Which step captures which name.
pub(super) fn captures(plan: &Plan) -> BTreeMap<String, String> {
    plan.steps.iter().filter_map(|step| Some((step.capture_as.clone()?, step.id.clone()))).collect()
}

/// The order of a plan.
///
/// Names that are not there are the business of validation; here they are passed over.
///
/// # Errors
/// A circle, with the steps on it.
pub(super) fn order(plan: &Plan) -> Result<Order, Fault> {
    let place: BTreeMap<&str, usize> =
        plan.steps.iter().enumerate().rev().map(|(at, step)| (step.id.as_str(), at)).collect();
    let captured = captures(plan);
    let mut waits_for: Vec<BTreeSet<usize>> = Vec::with_capacity(plan.steps.len());
    for step in &plan.steps {
        let before = named_by(step, &captured);
        waits_for.push(before.iter().filter_map(|id| place.get(id.as_str()).copied()).collect());
    }
    let mut done = BTreeSet::new();
    let mut steps = Vec::with_capacity(plan.steps.len());
    while steps.len() < plan.steps.len() {
        let free = (0..plan.steps.len()).find(|at| !done.contains(at) && waits_for[*at].is_subset(&done));
        let Some(free) = free else { return Err(circle(plan, &waits_for, &done)) };
        done.insert(free);
        steps.push(free);
    }
    Ok(Order { steps, waits_for })
}

/// The ids of the steps that a step names, in `dependsOn` or in references.
pub(super) fn named_by(step: &Step, captures: &BTreeMap<String, String>) -> BTreeSet<String> {
    let mut named: BTreeSet<String> = step.depends_on.iter().cloned().collect();
    let mut visit = |_: &str, reference: &reference::Reference| match &reference.root {
        Root::Step(id) => drop(named.insert(id.clone())),
        Root::Var(name) => named.extend(captures.get(name).cloned()),
        Root::Name(_) => {}
    };
    let args = serde_json::Value::Object(step.args.clone());
    let mut faults = Vec::new();
    reference::each(&args, "", &mut faults, &mut visit);
    if let Some(foreach) = &step.foreach {
        reference::each(&foreach.from.clone().into(), "", &mut faults, &mut visit);
    }
    named
}

/// Walks back from a step that cannot run until a step comes twice.
fn circle(plan: &Plan, waits_for: &[BTreeSet<usize>], done: &BTreeSet<usize>) -> Fault {
    let stuck = |at: usize| waits_for[at].iter().copied().find(|before| !done.contains(before));
    let mut walked = Vec::new();
    let mut at = (0..plan.steps.len()).find(|at| !done.contains(at)).unwrap_or(0);
    while !walked.contains(&at) {
        walked.push(at);
        at = stuck(at).unwrap_or(at);
    }
    let start = walked.iter().position(|step| *step == at).unwrap_or(0);
    let mut names: Vec<&str> = walked[start..].iter().map(|at| plan.steps[*at].id.as_str()).collect();
    names.push(plan.steps[at].id.as_str());
    let message = match &names[..] {
        [only, _] => format!("the step {only} waits for itself"),
        _ => format!("these steps wait for each other: {}", names.join(" waits for ")),
    };
    Fault { pointer: format!("/steps/{at}"), message }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    /// Steps as (id, arguments, dependsOn).
    fn plan(steps: &[(&str, &str, &[&str])]) -> Plan {
        let steps: Vec<_> = steps
            .iter()
            .map(|(id, text, before)| json!({ "id": id, "tool": "t", "args": { "a": text }, "dependsOn": before }))
            .collect();
        let plan = json!({ "version": "1.0", "goal": "g", "riskLevel": "writes", "steps": steps });
        serde_json::from_value(plan).unwrap()
    }

    fn ids(plan: &Plan) -> Vec<&str> {
        order(plan).unwrap().steps.iter().map(|at| plan.steps[*at].id.as_str()).collect()
    }

    #[test]
    fn dependencies_first_then_the_list() {
        assert_eq!(ids(&plan(&[("a", "", &[]), ("b", "", &[]), ("c", "", &[])])), ["a", "b", "c"]);
        assert_eq!(ids(&plan(&[("a", "$steps.c.x", &[]), ("b", "", &[]), ("c", "", &[])])), ["b", "c", "a"]);
        assert_eq!(ids(&plan(&[("a", "", &["b"]), ("b", "x ${$steps.c}", &[]), ("c", "", &[])])), ["c", "b", "a"]);
    }

    #[test]
    fn captured_names_and_loops_count() {
        let mut plan = plan(&[("a", "$vars.all", &[]), ("b", "", &[]), ("c", "", &[])]);
        plan.steps[2].capture_as = Some("all".into());
        plan.steps[1].foreach = serde_json::from_value(json!({ "from": "$steps.a.items" })).unwrap();
        assert_eq!(ids(&plan), ["c", "a", "b"]);
    }

    #[test]
    fn circles_are_named() {
        let plan = plan(&[("x", "", &[]), ("a", "", &["b"]), ("b", "$steps.c", &[]), ("c", "", &["a"])]);
        let fault = order(&plan).unwrap_err();
        assert_eq!(fault.message, "these steps wait for each other: a waits for b waits for c waits for a");
        let alone = self::plan(&[("a", "$steps.a", &[])]);
        assert_eq!(order(&alone).unwrap_err().message, "the step a waits for itself");
    }
}
