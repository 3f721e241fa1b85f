//! The order in which the steps of a plan run: dependencies first, otherwise the order of the list.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap};
use std::iter;

use serde_json::Value;

use super::condition::Condition;
use super::reference::{PLACEHOLDER, PathPart, Reference, Root, resolve};
use super::schema::{Plan, Step};
use crate::tool::Issue;

/// The order of a plan. Steps are identified by their positions in its list.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Order {
    /// The steps in the order in which they run.
    pub steps: Vec<usize>,
    /// For each step of the list, the steps it depends on.
    pub dependencies: Vec<BTreeSet<usize>>,
}

/// Returns the position of the step whose output each root of a reference refers to.
pub(super) fn sources(plan: &Plan) -> BTreeMap<Root, usize> {
    let mut sources = BTreeMap::new();
    for (at, step) in plan.steps.iter().enumerate() {
        let captured = step.capture_as.clone().map(Root::Var);
        for root in iter::once(Root::Step(step.id.clone())).chain(captured) {
            sources.entry(root).or_insert(at);
        }
    }
    sources
}

/// Computes the order of a plan. Unknown names are ignored, because validation reports them.
///
/// # Errors
/// A cycle, with its steps.
pub(super) fn order(plan: &Plan) -> Result<Order, Issue> {
    let sources = sources(plan);
    let dependencies: Vec<BTreeSet<usize>> = plan.steps.iter().map(|step| dependencies(step, &sources)).collect();
    let mut dependents = vec![Vec::new(); plan.steps.len()];
    let mut waits_for: Vec<usize> = dependencies.iter().map(BTreeSet::len).collect();
    dependencies.iter().enumerate().for_each(|(at, before)| before.iter().for_each(|one| dependents[*one].push(at)));
    let mut free: BinaryHeap<Reverse<usize>> =
        (0..waits_for.len()).filter(|at| waits_for[*at] == 0).map(Reverse).collect();
    let mut steps = Vec::with_capacity(plan.steps.len());
    while let Some(Reverse(at)) = free.pop() {
        steps.push(at);
        for dependent in &dependents[at] {
            waits_for[*dependent] -= 1;
            if waits_for[*dependent] == 0 {
                free.push(Reverse(*dependent));
            }
        }
    }
    match steps.len() == plan.steps.len() {
        true => Ok(Order { steps, dependencies }),
        false => Err(cycle(plan, &dependencies, &steps.into_iter().collect())),
    }
}

/// Returns the steps that a step depends on, by `dependsOn` or by references.
fn dependencies(step: &Step, sources: &BTreeMap<Root, usize>) -> BTreeSet<usize> {
    let named = step.depends_on.iter().map(|id| Root::Step(id.clone()));
    let mut dependencies: BTreeSet<usize> = named.filter_map(|root| sources.get(&root).copied()).collect();
    let filter = step.foreach.iter().filter_map(|foreach| foreach.filter.as_ref());
    let conditions = step.condition.iter().chain(filter).flat_map(Condition::values).map(|(_, value)| value);
    let of_loop = step.foreach.iter().flat_map(|foreach| [foreach.from.clone(), foreach.unique.clone().into()]);
    for value in conditions.chain(of_loop).chain([step.args.clone().into()]) {
        let note = |reference: &Reference, _: Option<&Value>| {
            dependencies.extend(sources.get(&reference.root));
            Ok(PLACEHOLDER.into())
        };
        resolve(&value, &Value::Null, "", note, |_| PathPart::Segment);
    }
    dependencies
}

/// Follows dependencies from a step that cannot run until a step occurs twice.
fn cycle(plan: &Plan, dependencies: &[BTreeSet<usize>], done: &BTreeSet<usize>) -> Issue {
    let stuck = |at: usize| dependencies[at].iter().copied().find(|before| !done.contains(before));
    let mut path = Vec::new();
    let mut at = (0..plan.steps.len()).find(|at| !done.contains(at)).unwrap_or(0);
    while !path.contains(&at) {
        path.push(at);
        at = stuck(at).unwrap_or(at);
    }
    let start = path.iter().position(|step| *step == at).unwrap_or(0);
    let mut names: Vec<&str> = path[start..].iter().map(|at| plan.steps[*at].id.as_str()).collect();
    names.push(plan.steps[at].id.as_str());
    let message = match &names[..] {
        [only, _] => format!("the step {only} waits for itself"),
        _ => format!("these steps wait for each other: {}", names.join(" waits for ")),
    };
    Issue { pointer: format!("/steps/{at}"), message }
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
    fn conditions_count() {
        let mut plan = plan(&[("a", "", &[]), ("b", "", &[]), ("c", "", &[]), ("d", "", &[])]);
        let on = |step: &str| json!({ "value": "${item.x}", "equals": [format!("$steps.{step}.x[*]")] });
        plan.steps[0].condition = serde_json::from_value(json!({ "value": "$steps.c.count", "equals": 0 })).unwrap();
        let foreach = json!({ "from": ["$steps.d.items[*]", "x"], "filter": on("a") });
        plan.steps[1].foreach = serde_json::from_value(foreach).unwrap();
        assert_eq!(ids(&plan), ["c", "a", "d", "b"]);
    }

    #[test]
    fn cycles_are_reported() {
        let plan = plan(&[("x", "", &[]), ("a", "", &["b"]), ("b", "$steps.c", &[]), ("c", "", &["a"])]);
        let issue = order(&plan).unwrap_err();
        assert_eq!(issue.message, "these steps wait for each other: a waits for b waits for c waits for a");
        let alone = self::plan(&[("a", "$steps.a", &[])]);
        assert_eq!(order(&alone).unwrap_err().message, "the step a waits for itself");
    }
}
