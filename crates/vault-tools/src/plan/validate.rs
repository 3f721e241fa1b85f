//! Checks a plan before anything of it runs, and reports all issues at once, each with its location; and the order in which
//! its steps run: dependencies first, otherwise the order of the list.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::iter;

use serde_json::Value;

use super::reference::{self, PLACEHOLDER, Piece, Reference, Root, is_name, resolve};
use super::schema::{Plan, RiskLevel, Step, UNNAMED, read, remove_concurrency};
use crate::error::{Error, ErrorKind};
use crate::policy::Risk;
use crate::sandbox::SafePath;
use crate::tool::{Issue, check, each_path, tidy};
use crate::toolbox::Toolbox;

/// A valid plan.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Checked {
    /// The plan.
    pub plan: Plan,
    /// The worst that its tools can do.
    pub risk: Risk,
    /// The parameters it uses: names that neither a step nor a loop binds.
    pub parameters: BTreeSet<String>,
    /// What is accepted and ignored.
    pub notices: Vec<String>,
    pub(super) order: Order,
}

/// Why a plan is invalid.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct InvalidPlan {
    /// All issues, those of the schema first.
    pub issues: Vec<Issue>,
}

impl fmt::Display for InvalidPlan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (number, issue) in self.issues.iter().enumerate() {
            if number > 0 {
                f.write_str("\n")?;
            }
            write!(f, "{issue}")?;
        }
        Ok(())
    }
}

impl std::error::Error for InvalidPlan {}

impl From<InvalidPlan> for Error {
    fn from(invalid: InvalidPlan) -> Self {
        let count = invalid.issues.len();
        let noun = if count == 1 { "issue" } else { "issues" };
        Self::new(ErrorKind::Plan, format!("the plan has {count} {noun}:\n{invalid}")).with_remedy("nothing was done")
    }
}

/// Checks a plan against the schema and the tools.
///
/// ```
/// use serde_json::json;
/// use vault_tools::plan::validate;
/// # let folder = tempfile::tempdir()?;
/// # let options = vault_tools::VaultOptions::new().state_folder(folder.path().join("state"));
/// # let options = options.use_index(vault_tools::IndexUse::Scan);
/// # std::fs::create_dir(folder.path().join("notes"))?;
/// # let vault = std::sync::Arc::new(vault_tools::Vault::open(folder.path().join("notes"), options)?);
/// # let toolbox = vault_tools::Toolbox::new(vault, Box::new(vault_tools::Headless::default()), Default::default());
///
/// let step = json!({ "id": "read", "tool": "vault.readFile", "args": { "file": "Log.md" } });
/// let plan = json!({ "version": "1.0", "goal": "Read the log", "riskLevel": "read-only", "steps": [step] });
/// let invalid = validate(&plan, &toolbox).unwrap_err();
/// assert_eq!(invalid.issues[0].pointer, "/steps/0/args/path"); // it is missing
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// All issues at once: of schema, references, order, arguments, literal paths, and declared risk.
pub fn validate(value: &Value, toolbox: &Toolbox) -> Result<Checked, InvalidPlan> {
    let mut value = value.clone();
    let notices = remove_concurrency(&mut value);
    let (plan, mut issues) = read(&value);
    match plan.map(|plan| checked(plan, toolbox)) {
        Some(Ok(checked)) if issues.is_empty() => return Ok(Checked { notices, ..checked }),
        Some(Err(further)) => {
            // What replaces a malformed value has no issues of its own.
            let is_repaired = |issue: &Issue| {
                issues.iter().any(|malformed| {
                    let below = issue.pointer.strip_prefix(&malformed.pointer);
                    below.is_some_and(|below| below.is_empty() || below.starts_with('/'))
                })
            };
            let further: Vec<Issue> = further.into_iter().filter(|issue| !is_repaired(issue)).collect();
            issues.extend(further);
        }
        _ => {}
    }
    Err(InvalidPlan { issues })
}

/// Checks a plan that matches the schema.
fn checked(plan: Plan, toolbox: &Toolbox) -> Result<Checked, Vec<Issue>> {
    let mut checker =
        Checker { toolbox, plan: &plan, sources: sources(&plan), issues: Vec::new(), parameters: BTreeSet::new() };
    checker.names();
    for number in 0..plan.steps.len() {
        checker.step(number);
    }
    let risk = checker.risk();
    let Checker { mut issues, parameters, .. } = checker;
    let order = match order(&plan) {
        Ok(order) => order,
        Err(cycle) => {
            issues.push(cycle);
            Order::default()
        }
    };
    if issues.is_empty() { Ok(Checked { plan, risk, parameters, notices: Vec::new(), order }) } else { Err(issues) }
}

struct Checker<'a> {
    toolbox: &'a Toolbox,
    plan: &'a Plan,
    /// The step whose output each root of a reference stands for.
    sources: BTreeMap<Root, usize>,
    issues: Vec<Issue>,
    parameters: BTreeSet<String>,
}

impl Checker<'_> {
    fn issue(&mut self, pointer: impl Into<String>, message: impl Into<String>) {
        self.issues.push(Issue { pointer: pointer.into(), message: message.into() });
    }

    /// Ids and captured names are valid and unique.
    fn names(&mut self) {
        let plan = self.plan;
        for (number, step) in plan.steps.iter().enumerate() {
            let at = format!("/steps/{number}/id");
            self.name(&at, &step.id);
            let first = self.sources[&Root::Step(step.id.clone())];
            if first != number {
                self.issue(at, format!("the id {} is that of step {} already", step.id, first + 1));
            }
            if let Some(name) = &step.capture_as {
                let at = format!("/steps/{number}/captureAs");
                self.name(&at, name);
                let first = self.sources[&Root::Var(name.clone())];
                if first != number {
                    self.issue(at, format!("`{name}` is captured by the step {} already", plan.steps[first].id));
                }
            }
        }
    }

    fn name(&mut self, at: &str, name: &str) {
        if !is_name(name) {
            self.issue(at, format!("`{name}` is not a name: a letter, then letters, digits, _ and -"));
        }
    }

    fn step(&mut self, number: usize) {
        let step = &self.plan.steps[number];
        let at = format!("/steps/{number}");
        for (index, id) in step.depends_on.iter().enumerate() {
            if !self.has_unnamed() && !self.sources.contains_key(&Root::Step(id.clone())) {
                self.issue(format!("{at}/dependsOn/{index}"), self.no_step(id));
            }
        }
        self.foreach(step, &at);
        let args_at = format!("{at}/args");
        let mut args = Value::Object(step.args.clone());
        let tool = self.toolbox.tool(&step.tool);
        let schema = tool.as_ref().map_or(&Value::Null, |tool| tool.marked_schema());
        let bound = step.foreach.iter().flat_map(|foreach| [Some(&foreach.item_name), foreach.index_name.as_ref()]);
        let resolved = self.references(&args, schema, &args_at, &bound.flatten().collect::<Vec<_>>());
        if let Err(error) = tool {
            let remedy = error.remedy().map(|remedy| format!(" ({remedy})")).unwrap_or_default();
            return self.issue(format!("{at}/tool"), format!("{}{remedy}", error.message()));
        }
        tidy(schema, &mut args);
        self.issues.extend(check(schema, &args, &args_at, &reference::is_open));
        // Whatever the references stand for, the literal parts of a path must stay inside the vault.
        each_path(schema, &resolved, &args_at, &mut |path, at, may_be_root| {
            let is_root = may_be_root && matches!(path.trim_matches('/'), "" | ".");
            let sandbox = self.toolbox.vault().sandbox();
            let safe = SafePath::new_or_existing(path, |path| sandbox.is_there(path).unwrap_or(false));
            if let (false, Err(error)) = (is_root, safe) {
                self.issue(at, error.to_string());
            }
        });
    }

    fn foreach(&mut self, step: &Step, at: &str) {
        let Some(foreach) = &step.foreach else { return };
        let at = format!("{at}/foreach");
        self.name(&format!("{at}/itemName"), &foreach.item_name);
        if let Some(index) = &foreach.index_name {
            self.name(&format!("{at}/indexName"), index);
            if *index == foreach.item_name {
                self.issue(format!("{at}/indexName"), "item and index have the same name");
            }
        }
        let from = format!("{at}/from");
        match reference::parse(&foreach.from) {
            Ok(pieces) if matches!(pieces[..], [Piece::Reference(_)]) => {
                self.references(&foreach.from.clone().into(), &Value::Null, &from, &[]);
            }
            Ok(_) => {
                let message = format!("`{}` is not one reference to a list, such as $steps.ID.items", foreach.from);
                self.issue(from, message);
            }
            Err(message) => self.issue(from, message),
        }
    }

    /// Every reference has a target. `bound` are the names of the loop, valid in its arguments only. Returns the tree with
    /// placeholders for the references.
    fn references(&mut self, value: &Value, schema: &Value, at: &str, bound: &[&String]) -> Value {
        let (resolved, issues) = resolve(
            value,
            schema,
            at,
            |reference| {
                self.target(reference, bound)?;
                Ok(PLACEHOLDER.into())
            },
            |_| false,
        );
        self.issues.extend(issues);
        resolved
    }

    fn target(&mut self, reference: &Reference, bound: &[&String]) -> Result<(), String> {
        let written = &reference.written;
        match (self.sources.get(&reference.root), &reference.root) {
            (Some(source), _) => self.check_output(&self.plan.steps[*source], reference),
            (None, Root::Name(name)) => {
                if !bound.contains(&name) {
                    self.parameters.insert(name.clone());
                }
                Ok(())
            }
            (None, Root::Var(name)) => Err(format!("`{written}`: no step captures `{name}` with captureAs")),
            (None, Root::Step(_)) if self.has_unnamed() => Ok(()),
            (None, Root::Step(id)) => Err(format!("`{written}`: {}", self.no_step(id))),
        }
    }

    /// Whether a step has no readable id: it may be the one that is missing.
    fn has_unnamed(&self) -> bool {
        self.plan.steps.iter().any(|step| step.id.starts_with(UNNAMED))
    }

    fn no_step(&self, id: &str) -> String {
        let ids: Vec<&str> = self.plan.steps.iter().map(|step| step.id.as_str()).collect();
        format!("there is no step {id}; there are: {}", ids.join(", "))
    }

    /// Whether a step can have what a reference names, going by the output schema of its tool.
    fn check_output(&self, source: &Step, reference: &Reference) -> Result<(), String> {
        let written = &reference.written;
        let Ok(spec) = self.toolbox.spec(&source.tool) else { return Ok(()) };
        if spec.risk == Risk::Command {
            return Err(format!(
                "`{written}`: the output of {} is known only when it has run, so no other step can use it; use dependsOn",
                source.tool
            ));
        }
        let mut path = reference.path.iter().map(String::as_str);
        if source.foreach.is_some() {
            match (path.next(), path.next()) {
                (Some("items"), _) => {}
                (None | Some("count"), _) => return Ok(()),
                (Some(other), _) => {
                    return Err(format!("`{written}`: there is no `{other}`; a loop has: items, count"));
                }
            }
        }
        let mut schema = &spec.output_schema;
        for key in path {
            schema = match (schema.get("properties").and_then(Value::as_object), schema.get("items")) {
                (Some(known), _) => known.get(key).ok_or_else(|| {
                    let names = known.keys().map(String::as_str).collect::<Vec<_>>().join(", ");
                    format!("`{written}`: there is no `{key}`; there are: {names}")
                })?,
                (None, Some(items)) => items,
                (None, None) => return Ok(()),
            };
        }
        Ok(())
    }

    /// The highest risk of the tools; a lower declared one is an issue.
    fn risk(&mut self) -> Risk {
        let risk_of = |step: &Step| self.toolbox.spec(&step.tool).map_or(Risk::Read, |spec| spec.risk);
        let worst = self.plan.steps.iter().max_by_key(|step| risk_of(step));
        let risk = worst.map_or(Risk::Read, risk_of);
        let (computed, declared) = (RiskLevel::from(risk), self.plan.risk_level);
        if let (Some(step), true) = (worst, declared < computed) {
            let does = match risk {
                Risk::Command => "runs a command of the host",
                Risk::Delete => "deletes files",
                _ => "changes files",
            };
            let message = format!(
                "the plan says it is {}, but the step {} ({}) {does}, so it is {}",
                declared.name(),
                step.id,
                step.tool,
                computed.name()
            );
            self.issue("/riskLevel", message);
        }
        risk
    }
}

/// The order of a plan. Steps are identified by their position in its list.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Order {
    /// The steps in the order in which they run.
    pub steps: Vec<usize>,
    /// For each step of the list, the steps it depends on.
    pub dependencies: Vec<BTreeSet<usize>>,
}

/// The position of the step whose output each root of a reference stands for.
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

/// The order of a plan. Unknown names are ignored; validation reports them.
///
/// # Errors
/// A cycle, with its steps.
pub(super) fn order(plan: &Plan) -> Result<Order, Issue> {
    let sources = sources(plan);
    let dependencies: Vec<BTreeSet<usize>> = plan.steps.iter().map(|step| dependencies(step, &sources)).collect();
    let mut done = BTreeSet::new();
    let mut steps = Vec::with_capacity(plan.steps.len());
    while steps.len() < plan.steps.len() {
        let free = (0..plan.steps.len()).find(|at| !done.contains(at) && dependencies[*at].is_subset(&done));
        let Some(free) = free else { return Err(cycle(plan, &dependencies, &done)) };
        done.insert(free);
        steps.push(free);
    }
    Ok(Order { steps, dependencies })
}

/// The steps that a step depends on, by `dependsOn` or by references.
fn dependencies(step: &Step, sources: &BTreeMap<Root, usize>) -> BTreeSet<usize> {
    let named = step.depends_on.iter().map(|id| Root::Step(id.clone()));
    let mut dependencies: BTreeSet<usize> = named.filter_map(|root| sources.get(&root).copied()).collect();
    let from = step.foreach.as_ref().map_or(Value::Null, |foreach| foreach.from.clone().into());
    for value in [from, step.args.clone().into()] {
        resolve(
            &value,
            &Value::Null,
            "",
            |reference| {
                dependencies.extend(sources.get(&reference.root));
                Ok(PLACEHOLDER.into())
            },
            |_| false,
        );
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
    fn cycles_are_reported() {
        let plan = plan(&[("x", "", &[]), ("a", "", &["b"]), ("b", "$steps.c", &[]), ("c", "", &["a"])]);
        let issue = order(&plan).unwrap_err();
        assert_eq!(issue.message, "these steps wait for each other: a waits for b waits for c waits for a");
        let alone = self::plan(&[("a", "$steps.a", &[])]);
        assert_eq!(order(&alone).unwrap_err().message, "the step a waits for itself");
    }
}
