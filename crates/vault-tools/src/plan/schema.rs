//! What a plan is: its fields as types, and its reading from JSON with every fault named by its place.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use crate::policy::Risk;
use crate::tool::{Fault, check, of_arguments, tidy};

/// A list of tool calls that are shown, approved and run as one.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Plan {
    /// The version of this format: "1.0".
    pub version: Version,
    /// What the plan is for, in a sentence.
    pub goal: String,
    /// What it takes for granted.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub assumptions: Vec<String>,
    /// What its author thinks it can do at worst; the tools decide what it can.
    pub risk_level: RiskLevel,
    /// What holds for every step that does not say otherwise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub defaults: Option<Defaults>,
    /// The calls. They run in the order of their dependencies, and of this list where those leave it open.
    #[schemars(length(min = 1))]
    pub steps: Vec<Step>,
}

/// Versions of the format.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum Version {
    /// The first one.
    #[default]
    #[serde(rename = "1.0")]
    V1,
}

/// Levels of risk as plans declare them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum RiskLevel {
    /// Nothing is changed.
    ReadOnly,
    /// Files are made, changed, moved or deleted.
    Writes,
    /// Commands of the host are run.
    Commands,
}

impl RiskLevel {
    /// As it is written.
    pub fn name(self) -> &'static str {
        match self {
            Self::ReadOnly => "read-only",
            Self::Writes => "writes",
            Self::Commands => "commands",
        }
    }
}

impl From<Risk> for RiskLevel {
    fn from(risk: Risk) -> Self {
        match risk {
            Risk::Read => Self::ReadOnly,
            Risk::Write | Risk::Delete => Self::Writes,
            Risk::Command => Self::Commands,
        }
    }
}

/// What holds for every step that does not say otherwise.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Defaults {
    /// What a failed step does to the plan.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub on_error: Option<OnError>,
    /// How a step with onError "retry" is tried again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry: Option<Retry>,
}

/// One call, or one for each item of a list.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Step {
    /// A name of its own: a letter, then letters, digits, `_` and `-`.
    pub id: String,
    /// The tool.
    pub tool: String,
    /// Its arguments; texts in them may hold references.
    pub args: Map<String, Value>,
    /// What the step does, for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub preview: Option<String>,
    /// Steps that must be done before this one, besides those it refers to.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub depends_on: Vec<String>,
    /// Makes it a loop.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub foreach: Option<Foreach>,
    /// A second name for its output: `$vars.NAME`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub capture_as: Option<String>,
    /// What its failure does to the plan; "stop" unless told.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub on_error: Option<OnError>,
    /// How it is tried again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry: Option<Retry>,
    /// How long it may take, all attempts together.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub timeout_ms: Option<u64>,
}

/// A loop over a list.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Foreach {
    /// A reference to the list: `$steps.ID.items`.
    pub from: String,
    /// What an item is called in the arguments: `${item.text}`.
    #[serde(default = "item")]
    pub item_name: String,
    /// What its number, from 0, is called.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub index_name: Option<String>,
    /// Read and without effect: the calls run one after the other, in the order of the list, and each sees what those
    /// before it wrote.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 16))]
    pub concurrency: Option<u32>,
}

fn item() -> String {
    "item".to_string()
}

/// What a failed step does to the plan.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum OnError {
    /// The plan ends; what was done stays.
    #[default]
    Stop,
    /// If it fails in the preview, the step and those that depend on it are left out. While the plan runs, only what
    /// the host fails to do is passed over: a step that is stopped or runs out of time ends the plan.
    Skip,
    /// It is tried again, then the plan ends.
    Retry,
}

/// How a step is tried again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Retry {
    /// Attempts in all, the first included.
    #[schemars(range(min = 1, max = 10))]
    pub max_attempts: u32,
    /// The wait before the second attempt; it doubles with each further one.
    #[serde(default)]
    #[schemars(range(max = 60000))]
    pub backoff_ms: u64,
}

impl Default for Retry {
    fn default() -> Self {
        Self { max_attempts: 3, backoff_ms: 200 }
    }
}

impl Plan {
    /// What happens when a step fails.
    pub fn on_error(&self, step: &Step) -> OnError {
        step.on_error.or_else(|| self.defaults.as_ref()?.on_error).unwrap_or_default()
    }

    /// How often and after which waits a step is tried: once, unless it says "retry".
    pub fn retry(&self, step: &Step) -> Retry {
        let told = step.retry.or_else(|| self.defaults.as_ref()?.retry);
        match (self.on_error(step), told) {
            (OnError::Retry, told) => told.unwrap_or_default(),
            _ => Retry { max_attempts: 1, backoff_ms: 0 },
        }
    }
}

/// The portable JSON schema of a plan.
pub fn schema() -> Value {
    of_arguments::<Plan>()
}

/// A plan whose form is wrong.
#[derive(Debug)]
pub(super) struct Malformed {
    /// What is wrong with its form.
    pub faults: Vec<Fault>,
    /// The plan with something harmless in the place of each fault, so that the rest can be checked as well.
    pub rest: Option<Box<Plan>>,
}

/// How the id begins of a step that has none, or one that is no text. No id can: this is no letter.
pub(super) const UNNAMED: char = '?';

/// Reads a plan. All faults of its form come back at once.
pub(super) fn read(value: &Value) -> Result<Plan, Malformed> {
    let schema = schema();
    let mut value = value.clone();
    tidy(&schema, &mut value);
    let faults = check(&schema, &value, "", &|_| false);
    if faults.is_empty() {
        return serde_json::from_value(value).map_err(|error| {
            let fault = Fault { pointer: String::new(), message: error.to_string() };
            Malformed { faults: vec![fault], rest: None }
        });
    }
    faults.iter().for_each(|fault| mend(&mut value, &fault.pointer));
    Err(Malformed { faults, rest: serde_json::from_value(value).ok() })
}

/// Takes out the field of the plan or of the step in which a fault is, or puts something in the place of one that
/// has to be there.
fn mend(plan: &mut Value, pointer: &str) {
    let names: Vec<String> =
        pointer.split('/').skip(1).map(|name| name.replace("~1", "/").replace("~0", "~")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let (object, field, stand_ins) = match &names[..] {
        ["steps", number, field, ..] => {
            let stand_ins = json!({ "id": format!("{UNNAMED}{number}"), "tool": "", "args": {} });
            (plan.pointer_mut(&format!("/steps/{number}")), *field, stand_ins)
        }
        ["steps", number] => {
            let step = json!({ "id": format!("{UNNAMED}{number}"), "tool": "", "args": {} });
            plan.pointer_mut(pointer).into_iter().for_each(|place| *place = step.clone());
            return;
        }
        // The highest declared level is never too low.
        [field, ..] => (Some(plan), *field, json!({ "version": "1.0", "goal": "", "riskLevel": "commands" })),
        [] => return,
    };
    let Some(Value::Object(fields)) = object else { return };
    match stand_ins.get(field) {
        Some(stand_in) => drop(fields.insert(field.to_string(), stand_in.clone())),
        None => drop(fields.remove(field)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn faults(value: Value) -> Vec<String> {
        read(&value).unwrap_err().faults.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn every_fault_has_its_place() {
        let step = json!({ "id": "a", "tool": "t", "args": {}, "retries": 1, "onError": "ignore" });
        assert_eq!(
            faults(json!({ "version": "2.0", "goal": "g", "steps": [step], "extra": 1 })),
            [
                "/riskLevel: is missing; expected one of read-only, writes, commands",
                "/extra: `extra` is not a field; there are: assumptions, defaults, goal, riskLevel, steps, version",
                "/steps/0/onError: expected one of stop, skip, retry, found the text \"ignore\"",
                "/steps/0/retries: `retries` is not a field; did you mean `retry`? (there are: args, captureAs, \
                 dependsOn, foreach, id, onError, preview, retry, timeoutMs, tool)",
                "/version: expected one of 1.0, found the text \"2.0\"",
            ]
        );
        assert_eq!(faults(json!([])), ["/: expected an object, found a list"]);
    }

    #[test]
    fn what_is_right_about_a_malformed_plan_is_read() {
        let steps = json!([
            { "id": 1, "tool": "t", "args": {} },
            { "id": "b", "tool": "t", "args": [], "retry": { "maxAttempts": 99 }, "dependsOn": ["c"] },
            3
        ]);
        let rest = read(&json!({ "goal": "g", "riskLevel": "none", "steps": steps, "x~/y": 1 })).unwrap_err().rest;
        let plan = rest.unwrap();
        let ids: Vec<&str> = plan.steps.iter().map(|step| step.id.as_str()).collect();
        assert_eq!((plan.goal.as_str(), plan.risk_level, ids), ("g", RiskLevel::Commands, vec!["?0", "b", "?2"]));
        assert_eq!((plan.steps[1].retry, plan.steps[1].depends_on.len()), (None, 1));
        assert!(read(&json!({ "steps": {} })).unwrap_err().rest.is_none());
    }

    #[test]
    fn defaults_hold_where_a_step_says_nothing() {
        let plan = read(&json!({
            "version": "1.0", "goal": "g", "riskLevel": "writes",
            "defaults": { "onError": "retry", "retry": { "maxAttempts": 4 } },
            "steps": [
                { "id": "a", "tool": "t", "args": {} },
                { "id": "b", "tool": "t", "args": {}, "onError": "skip", "foreach": { "from": "$steps.a", "indexName": null } }
            ]
        }))
        .unwrap();
        assert_eq!(plan.retry(&plan.steps[0]), Retry { max_attempts: 4, backoff_ms: 0 });
        assert_eq!(plan.on_error(&plan.steps[1]), OnError::Skip);
        assert_eq!(plan.retry(&plan.steps[1]).max_attempts, 1);
        assert_eq!(plan.steps[1].foreach.as_ref().unwrap().item_name, "item");
    }
}
