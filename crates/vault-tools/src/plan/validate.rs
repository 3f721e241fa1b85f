//! Checks a plan before any of it runs, and reports all issues at once, each with its location.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use serde_json::{Value, json};

use super::condition::Condition;
use super::foreach::{self, LOOP};
use super::order::{Order, order, sources};
use super::output;
use super::reference::{self, PLACEHOLDER, PathPart, Reference, ResolvedValue, Root, is_name, only_reference, resolve};
use super::schema::{Foreach, Plan, RiskLevel, Step, UNNAMED, Version, read, remove_concurrency};
use crate::error::{Error, ErrorKind};
use crate::policy::Risk;
use crate::sandbox::SafePath;
use crate::tool::{Issue, check, each_path, expected, pointer, tidy};
use crate::toolbox::Toolbox;

/// A valid plan.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct ValidPlan {
    /// The plan.
    pub plan: Plan,
    /// The highest risk of its tools.
    pub risk: Risk,
    /// The names of the parameters it uses: those that neither a step nor a loop binds.
    pub parameters: BTreeSet<String>,
    /// Notices about fields that are accepted and ignored, and about possible mistakes.
    pub notices: Vec<String>,
    pub(super) order: Order,
}

/// The reasons that a plan is invalid.
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
pub fn validate(value: &Value, toolbox: &Toolbox) -> Result<ValidPlan, InvalidPlan> {
    let mut value = value.clone();
    let mut notices = remove_concurrency(&mut value);
    let (plan, mut issues) = read(&value);
    match plan.map(|plan| checked(plan, toolbox)) {
        Some(Ok(checked)) if issues.is_empty() => {
            notices.extend(checked.notices);
            return Ok(ValidPlan { notices, ..checked });
        }
        Some(Err(further)) => {
            // The replacement of a malformed value causes no issues of its own.
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
fn checked(plan: Plan, toolbox: &Toolbox) -> Result<ValidPlan, Vec<Issue>> {
    let output_of = |step: &Step| {
        let of_call = toolbox.spec(&step.tool).map_or(&Value::Null, |spec| &spec.output_schema);
        if step.foreach.is_some() { output::of_loop(of_call) } else { of_call.clone() }
    };
    let mut checker = Checker {
        toolbox,
        plan: &plan,
        sources: sources(&plan),
        has_unnamed: plan.steps.iter().any(|step| step.id.starts_with(UNNAMED)),
        outputs: plan.steps.iter().map(output_of).collect(),
        issues: Vec::new(),
        parameters: BTreeSet::new(),
        notices: Vec::new(),
    };
    checker.names();
    for number in 0..plan.steps.len() {
        checker.step(number);
    }
    let risk = checker.risk();
    let Checker { mut issues, parameters, notices, .. } = checker;
    let order = match order(&plan) {
        Ok(order) => order,
        Err(cycle) => {
            issues.push(cycle);
            Order::default()
        }
    };
    if issues.is_empty() { Ok(ValidPlan { plan, risk, parameters, notices, order }) } else { Err(issues) }
}

struct Checker<'a> {
    toolbox: &'a Toolbox,
    plan: &'a Plan,
    /// The step whose output each root of a reference refers to.
    sources: BTreeMap<Root, usize>,
    /// Whether a step has no readable id, so that it may be the one that a reference cannot find.
    has_unnamed: bool,
    /// The schema of each step's output.
    outputs: Vec<Value>,
    issues: Vec<Issue>,
    parameters: BTreeSet<String>,
    notices: Vec<String>,
}

/// The schemas of the names that a loop binds; [`HIDDEN`] for those that cannot be used yet.
type BoundSchemas = BTreeMap<String, Value>;

/// A schema that no value matches.
const HIDDEN: Value = Value::Bool(false);

/// Why a plan of version 1.0 cannot use a feature of version 1.1.
const NEEDS_1_1: &str = "needs \"version\": \"1.1\"";

impl Checker<'_> {
    fn issue(&mut self, pointer: impl Into<String>, message: impl Into<String>) {
        self.issues.push(Issue { pointer: pointer.into(), message: message.into() });
    }

    /// Checks that ids and captured names are valid and unique.
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
            if !self.has_unnamed && !self.sources.contains_key(&Root::Step(id.clone())) {
                self.issue(format!("{at}/dependsOn/{index}"), self.no_step(id));
            }
        }
        let bound =
            step.foreach.as_ref().map(|foreach| self.foreach(foreach, &format!("{at}/foreach"))).unwrap_or_default();
        if let Some(condition) = &step.condition {
            let hidden = bound.keys().map(|name| (name.clone(), HIDDEN)).collect();
            self.condition(condition, &format!("{at}/if"), &hidden);
        }
        let args_at = format!("{at}/args");
        let mut args = Value::Object(step.args.clone());
        let tool = self.toolbox.tool(&step.tool);
        let schema = tool.as_ref().map_or(&Value::Null, |tool| tool.marked_schema());
        let resolved = self.references(&args, schema, &args_at, &bound);
        self.literals(&args, &args_at);
        if let Err(error) = tool {
            let remedy = error.remedy().map(|remedy| format!(" ({remedy})")).unwrap_or_default();
            return self.issue(format!("{at}/tool"), format!("{}{remedy}", error.message()));
        }
        tidy(schema, &mut args);
        self.issues.extend(check(schema, &args, &args_at, &reference::is_open));
        // Whatever the values of the references, the literal parts of a path must stay inside the vault.
        each_path(schema, &resolved, &args_at, &mut |path, at, may_be_root| {
            let is_root = may_be_root && matches!(path.trim_matches('/'), "" | ".");
            let sandbox = self.toolbox.vault().sandbox();
            let safe = SafePath::new_or_existing(path, |path| sandbox.is_there(path).unwrap_or(false));
            if let (false, Err(error)) = (is_root, safe) {
                self.issue(at, error.to_string());
            }
        });
    }

    /// Checks a loop. Returns the names that it binds.
    fn foreach(&mut self, foreach: &Foreach, at: &str) -> BoundSchemas {
        let names = [("itemName", Some(&foreach.item_name)), ("indexName", foreach.index_name.as_ref())];
        for (field, name) in names.into_iter().filter_map(|(field, name)| Some((field, name?))) {
            let at = format!("{at}/{field}");
            self.name(&at, name);
            if name == LOOP && self.plan.version >= Version::V1_1 {
                self.issue(at, "`loop` is reserved for a loop's own properties; choose another name");
            }
        }
        if foreach.index_name.as_ref() == Some(&foreach.item_name) {
            self.issue(format!("{at}/indexName"), "item and index have the same name");
        }
        let list = self.list(&foreach.from, &format!("{at}/from"));
        let bound = foreach::schemas(foreach, self.plan.version, &list);
        // The items are numbered only after they have been chosen.
        let is_item = |name: &String| *name == foreach.item_name;
        let known =
            |(name, schema): (&String, &Value)| (name.clone(), if is_item(name) { schema.clone() } else { HIDDEN });
        let known = bound.iter().map(known).collect();
        if let Some(filter) = &foreach.filter {
            self.condition(filter, &format!("{at}/filter"), &known);
        }
        if let Some(unique) = &foreach.unique {
            let at = format!("{at}/unique");
            if self.plan.version < Version::V1_1 {
                self.issue(&at, format!("this {NEEDS_1_1}"));
            }
            if !reference::is_open(&unique.as_str().into()) {
                self.issue(&at, format!("`{unique}` is always the same; write a reference, such as ${{item.path}}"));
            }
            self.references(&unique.as_str().into(), &Value::Null, &at, &known);
        }
        bound
    }

    /// Checks the list of a loop. Returns its schema.
    fn list(&mut self, from: &Value, at: &str) -> Value {
        let none = BoundSchemas::new();
        let entries = match from {
            Value::Array(entries) => {
                if self.plan.version < Version::V1_1 {
                    self.issue(at, format!("a list {NEEDS_1_1}"));
                }
                entries.iter().map(Value::as_str).collect()
            }
            from => vec![from.as_str()],
        };
        if let Value::String(text) = from
            && reference::parse(text).is_ok()
            && only_reference(text).is_none()
        {
            self.issue(at, format!("`{text}` is not one reference to a list, such as $steps.ID.items"));
            return Value::Null;
        }
        self.references(from, &json!({ "type": "array" }), at, &none);
        // The schema of an entry is known only if all lists have the same one.
        let mut schemas = entries.into_iter().map(|text| {
            let reference = only_reference(text?).filter(|reference| from.is_string() || reference.collects())?;
            self.target(&reference, &none).ok()
        });
        let first = schemas.next().flatten();
        let are_alike = schemas.all(|schema| schema == first);
        first.filter(|_| are_alike).unwrap_or_default()
    }

    fn condition(&mut self, condition: &Condition, at: &str, bound: &BoundSchemas) {
        if self.plan.version < Version::V1_1 {
            self.issue(at, format!("a condition {NEEDS_1_1}"));
        }
        self.issues.extend(condition.issues(at));
        for (field, value) in condition.values() {
            self.references(&value, &Value::Null, &format!("{at}/{field}"), bound);
        }
    }

    /// Checks that every reference has a target that fits its place. `bound` are the names that the loop binds. Returns
    /// the tree with placeholders in place of the references.
    fn references(&mut self, value: &Value, schema: &Value, at: &str, bound: &BoundSchemas) -> Value {
        let placeholder = |reference: &Reference, place: Option<&Value>| {
            let mut found = self.target(reference, bound)?;
            if reference.join.is_some() {
                if self.plan.version < Version::V1_1 {
                    return Err(format!("`{}`: |join {NEEDS_1_1}", reference.written));
                }
                if !output::can_fit(&found, &json!({ "type": "array" })) {
                    let found = output::named(&found);
                    return Err(format!("`{}` is {found}, so nothing can be joined", reference.written));
                }
                found = json!({ "type": "string" });
            }
            match place.filter(|place| !output::can_fit(&found, place)) {
                Some(place) => {
                    Err(format!("`{}` is {}; expected {}", reference.written, output::named(&found), expected(place)))
                }
                None => Ok(match found.get("type").and_then(Value::as_str) {
                    Some("array") => json!([]),
                    Some("object") => json!({}),
                    _ => PLACEHOLDER.into(),
                }),
            }
        };
        let ResolvedValue { value, issues, .. } = resolve(value, schema, at, placeholder, |_| PathPart::Segment);
        self.issues.extend(issues);
        value
    }

    /// Returns the schema of the target of a reference; null if it is unknown.
    fn target(&mut self, reference: &Reference, bound: &BoundSchemas) -> Result<Value, String> {
        let written = &reference.written;
        if reference.collects() && self.plan.version < Version::V1_1 {
            return Err(format!("`{written}`: [*] {NEEDS_1_1}"));
        }
        let schema = match (self.sources.get(&reference.root), &reference.root) {
            (Some(source), _) => {
                let source = &self.plan.steps[*source].tool;
                if self.toolbox.spec(source).is_ok_and(|spec| spec.risk == Risk::Command) {
                    return Err(format!(
                        "`{written}`: the output of {source} is known only when it has run, so no other step can use it; use \
                         dependsOn"
                    ));
                }
                &self.outputs[self.sources[&reference.root]]
            }
            (None, Root::Name(name)) => match bound.get(name) {
                Some(Value::Bool(false)) => {
                    return Err(format!(
                        "`{written}` is not known yet: `if` comes before the loop, `filter` and `unique` before its items are numbered"
                    ));
                }
                Some(schema) => schema,
                None if reference.path.is_empty() => {
                    self.parameters.insert(name.clone());
                    return Ok(Value::Null);
                }
                None if name == LOOP => return Err(format!("`{written}` {NEEDS_1_1}, and a loop")),
                None => {
                    let names = bound.keys().map(String::as_str).collect::<Vec<_>>().join(", ");
                    let known = if names.is_empty() { "has no loop".to_string() } else { format!("knows {names}") };
                    return Err(format!("`{written}`: this step {known}, and a parameter has no fields"));
                }
            },
            (None, Root::Var(name)) => return Err(format!("`{written}`: no step captures `{name}` with captureAs")),
            (None, Root::Step(_)) if self.has_unnamed => return Ok(Value::Null),
            (None, Root::Step(id)) => return Err(format!("`{written}`: {}", self.no_step(id))),
        };
        output::at(schema, &reference.path).map_err(|missing| format!("`{written}`: {missing}"))
    }

    /// Adds notices about texts that contain a step's output reference literally, because it was probably meant as a
    /// reference.
    fn literals(&mut self, value: &Value, at: &str) {
        match value {
            Value::String(text) => {
                for literal in reference::literals(text) {
                    if self.sources.contains_key(&literal.root) {
                        let written = literal.written;
                        let message = format!("`{written}` stays as it is written; its value is ${{{written}}}");
                        self.notices.push(Issue { pointer: at.to_string(), message }.to_string());
                    }
                }
            }
            Value::Array(entries) => {
                entries.iter().enumerate().for_each(|(index, entry)| self.literals(entry, &format!("{at}/{index}")));
            }
            Value::Object(fields) => fields.iter().for_each(|(name, value)| self.literals(value, &pointer(at, name))),
            _ => {}
        }
    }

    fn no_step(&self, id: &str) -> String {
        let ids: Vec<&str> = self.plan.steps.iter().map(|step| step.id.as_str()).collect();
        format!("there is no step {id}; there are: {}", ids.join(", "))
    }

    /// Returns the highest risk of the tools; a lower declared risk is an issue.
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
