//! Why a plan is refused before anything of it runs: every fault in one answer, each with its place.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use serde_json::Value;

use super::order::{Order, captures, order};
use super::reference::{self, Reference, Root, Template, is_name};
use super::schema::{Malformed, Plan, RiskLevel, Step, UNNAMED, read};
use crate::error::{Error, ErrorKind};
use crate::policy::Risk;
use crate::sandbox::SafePath;
use crate::tool::{Fault, OR_ROOT, PATH_MARK, check, pointer, tidy};
use crate::toolbox::Toolbox;

/// A plan that can be previewed.
#[derive(Debug, Clone)]
pub struct Checked {
    /// The plan.
    pub plan: Plan,
    /// What its tools can do at worst.
    pub risk: Risk,
    /// The parameters it uses: names that neither a step nor a loop binds.
    pub parameters: BTreeSet<String>,
    pub(super) order: Order,
}

/// What is wrong with a plan.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlanFaults {
    /// Each fault with its place, in the order of the plan.
    pub faults: Vec<Fault>,
}

impl fmt::Display for PlanFaults {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (number, fault) in self.faults.iter().enumerate() {
            if number > 0 {
                f.write_str("\n")?;
            }
            write!(f, "{fault}")?;
        }
        Ok(())
    }
}

impl std::error::Error for PlanFaults {}

impl From<PlanFaults> for Error {
    fn from(faults: PlanFaults) -> Self {
        let count = faults.faults.len();
        let noun = if count == 1 { "fault" } else { "faults" };
        Self::new(ErrorKind::Plan, format!("the plan has {count} {noun}:\n{faults}")).remedy("nothing was done")
    }
}

/// Checks a plan against the tools there are.
///
/// # Errors
/// Every fault: of form, of references, of order, of arguments, of literal paths, of the declared risk.
pub fn validate(value: &Value, toolbox: &Toolbox) -> Result<Checked, PlanFaults> {
    match read(value) {
        Ok(plan) => checked(plan, toolbox).map_err(|faults| PlanFaults { faults }),
        Err(Malformed { mut faults, rest }) => {
            let more = rest.and_then(|plan| checked(*plan, toolbox).err()).unwrap_or_default();
            let is_known = |fault: &Fault| {
                let is_below = |form: &Fault| {
                    let rest = fault.pointer.strip_prefix(&form.pointer);
                    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
                };
                faults.iter().any(is_below)
            };
            // What stands in the place of a fault of form has no faults of its own.
            let more: Vec<Fault> = more.into_iter().filter(|fault| !is_known(fault)).collect();
            faults.extend(more);
            Err(PlanFaults { faults })
        }
    }
}

/// Checks a plan whose form is right.
fn checked(plan: Plan, toolbox: &Toolbox) -> Result<Checked, Vec<Fault>> {
    let mut checker =
        Checker { toolbox, plan: &plan, captures: captures(&plan), faults: Vec::new(), parameters: BTreeSet::new() };
    checker.names();
    for number in 0..plan.steps.len() {
        checker.step(number);
    }
    let risk = checker.risk();
    let Checker { mut faults, parameters, .. } = checker;
    let order = match order(&plan) {
        Ok(order) => order,
        Err(fault) => {
            faults.push(fault);
            Order::default()
        }
    };
    if faults.is_empty() { Ok(Checked { plan, risk, parameters, order }) } else { Err(faults) }
}

struct Checker<'a> {
    toolbox: &'a Toolbox,
    plan: &'a Plan,
    captures: BTreeMap<String, String>,
    faults: Vec<Fault>,
    parameters: BTreeSet<String>,
}

impl Checker<'_> {
    fn fault(&mut self, pointer: impl Into<String>, message: impl Into<String>) {
        self.faults.push(Fault { pointer: pointer.into(), message: message.into() });
    }

    /// Ids and captured names are names, and each is there once.
    fn names(&mut self) {
        let plan = self.plan;
        let mut ids = BTreeMap::new();
        let mut captured = BTreeMap::new();
        for (number, step) in plan.steps.iter().enumerate() {
            self.name(&format!("/steps/{number}/id"), &step.id);
            if let Some(first) = ids.insert(step.id.as_str(), number) {
                self.fault(
                    format!("/steps/{number}/id"),
                    format!("the id {} is that of step {} already", step.id, first + 1),
                );
            }
            if let Some(name) = &step.capture_as {
                let at = format!("/steps/{number}/captureAs");
                self.name(&at, name);
                if let Some(first) = captured.insert(name.as_str(), &step.id) {
                    self.fault(at, format!("`{name}` is captured by the step {first} already"));
                }
            }
        }
    }

    fn name(&mut self, at: &str, name: &str) {
        if !is_name(name) {
            self.fault(at, format!("`{name}` is not a name: a letter, then letters, digits, _ and -"));
        }
    }

    fn step(&mut self, number: usize) {
        let step = &self.plan.steps[number];
        let at = format!("/steps/{number}");
        for (place, id) in step.depends_on.iter().enumerate() {
            if !self.has_unnamed() && !self.plan.steps.iter().any(|other| other.id == *id) {
                self.fault(format!("{at}/dependsOn/{place}"), self.no_step(id));
            }
        }
        self.foreach(step, &at);
        let args = Value::Object(step.args.clone());
        let bound: Vec<&String> = step
            .foreach
            .iter()
            .flat_map(|foreach| [Some(&foreach.item_name), foreach.index_name.as_ref()])
            .flatten()
            .collect();
        self.references(&args, &format!("{at}/args"), &bound);
        match self.toolbox.tool(&step.tool) {
            Err(error) => {
                let remedy = error.remedy_text().map(|remedy| format!(" ({remedy})")).unwrap_or_default();
                self.fault(format!("{at}/tool"), format!("{}{remedy}", error.message()));
            }
            Ok(tool) => {
                let args_at = format!("{at}/args");
                let mut args = args;
                tidy(tool.marked_schema(), &mut args);
                let mut faults = check(tool.marked_schema(), &args, &args_at, &reference::is_open);
                literal_paths(tool.marked_schema(), &args, &args_at, &mut faults);
                self.faults.extend(faults);
            }
        }
    }

    fn foreach(&mut self, step: &Step, at: &str) {
        let Some(foreach) = &step.foreach else { return };
        let at = format!("{at}/foreach");
        self.name(&format!("{at}/itemName"), &foreach.item_name);
        if let Some(index) = &foreach.index_name {
            self.name(&format!("{at}/indexName"), index);
            if *index == foreach.item_name {
                self.fault(format!("{at}/indexName"), "item and index have the same name");
            }
        }
        let from = format!("{at}/from");
        match reference::parse(&foreach.from) {
            Ok(Some(Template::Whole(_))) => self.references(&foreach.from.clone().into(), &from, &[]),
            Ok(_) => {
                let message = format!("`{}` is not one reference to a list, such as $steps.ID.items", foreach.from);
                self.fault(from, message);
            }
            Err(message) => self.fault(from, message),
        }
    }

    /// Every reference leads somewhere. `bound` are the loop's own names, which its arguments alone know.
    fn references(&mut self, value: &Value, at: &str, bound: &[&String]) {
        let mut found: Vec<(String, Reference)> = Vec::new();
        let mut faults = Vec::new();
        reference::each(value, at, &mut faults, &mut |at, reference| found.push((at.to_string(), reference.clone())));
        self.faults.append(&mut faults);
        for (at, reference) in found {
            let id = match &reference.root {
                Root::Step(id) => id.clone(),
                Root::Var(name) => match self.captures.get(name) {
                    Some(id) => id.clone(),
                    None => {
                        self.fault(at, format!("`{}`: no step captures `{name}` with captureAs", reference.written));
                        continue;
                    }
                },
                Root::Name(name) => {
                    if !bound.contains(&name) {
                        self.parameters.insert(name.clone());
                    }
                    continue;
                }
            };
            match self.plan.steps.iter().find(|other| other.id == id) {
                None if self.has_unnamed() => {}
                None => self.fault(at, format!("`{}`: {}", reference.written, self.no_step(&id))),
                Some(source) => {
                    if let Some(message) = self.missing_output(source, &reference) {
                        self.fault(at, message);
                    }
                }
            }
        }
    }

    /// Whether there is a step whose id could not be read: it may be the one that is missed.
    fn has_unnamed(&self) -> bool {
        self.plan.steps.iter().any(|step| step.id.starts_with(UNNAMED))
    }

    fn no_step(&self, id: &str) -> String {
        let ids: Vec<&str> = self.plan.steps.iter().map(|step| step.id.as_str()).collect();
        format!("there is no step {id}; there are: {}", ids.join(", "))
    }

    /// What a step's answer cannot hold, going by its tool's schema.
    fn missing_output(&self, source: &Step, reference: &Reference) -> Option<String> {
        let spec = self.toolbox.spec(&source.tool).ok()?;
        if spec.risk == Risk::Command {
            return Some(format!(
                "`{}`: what {} answers is known only when it has run, so no other step can use it; use dependsOn",
                reference.written, source.tool
            ));
        }
        let mut path = reference.path.iter().map(String::as_str).peekable();
        if source.foreach.is_some() {
            match path.next() {
                Some("items") => {
                    path.next();
                }
                None | Some("count") => return None,
                Some(other) => {
                    return Some(format!("`{}`: there is no `{other}`; a loop has: items, count", reference.written));
                }
            }
        }
        let mut schema = &spec.output_schema;
        for key in path {
            schema = match (schema.get("properties").and_then(Value::as_object), schema.get("items")) {
                (Some(known), _) => match known.get(key) {
                    Some(below) => below,
                    None => {
                        let names = known.keys().map(String::as_str).collect::<Vec<_>>().join(", ");
                        return Some(format!("`{}`: there is no `{key}`; there are: {names}", reference.written));
                    }
                },
                (None, Some(items)) => items,
                (None, None) => return None,
            };
        }
        None
    }

    /// The highest risk of the tools; a lower declared one is a fault.
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
            self.fault("/riskLevel", message);
        }
        risk
    }
}

/// What is literal about paths has to be inside the vault, whatever is put in for the rest.
fn literal_paths(schema: &Value, value: &Value, at: &str, faults: &mut Vec<Fault>) {
    match value {
        Value::String(text) if schema.get(PATH_MARK).is_some() => {
            let Some(literal) = reference::with_stand_ins(text) else { return };
            let may_be_root = schema.get(PATH_MARK).is_some_and(|mark| mark == OR_ROOT);
            let is_root = may_be_root && matches!(literal.trim_matches('/'), "" | ".");
            if let (false, Err(error)) = (is_root, SafePath::new(&literal)) {
                faults.push(Fault { pointer: at.to_string(), message: error.to_string() });
            }
        }
        Value::Array(items) => {
            let below = schema.get("items").unwrap_or(&Value::Null);
            for (number, item) in items.iter().enumerate() {
                literal_paths(below, item, &format!("{at}/{number}"), faults);
            }
        }
        Value::Object(fields) => {
            for (name, value) in fields {
                if let Some(below) = schema.get("properties").and_then(|known| known.get(name)) {
                    literal_paths(below, value, &pointer(at, name), faults);
                }
            }
        }
        _ => {}
    }
}
