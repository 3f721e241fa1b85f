//! The format of plans: their fields as types, and reading them from JSON with every issue located.

use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::condition::Condition;
use crate::policy::Risk;
use crate::tool::{Issue, argument_schema, check, tidy};

/// A list of tool calls that are shown, approved and run as one.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[non_exhaustive]
pub struct Plan {
    /// The version of this format. `if`, `filter`, `unique`, a list in `from`, `[*]`, `|join` and `${loop.number}` need "1.1".
    pub version: Version,
    /// What the plan is for, in a sentence.
    pub goal: String,
    /// What the plan assumes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub assumptions: Vec<String>,
    /// The worst that the plan can do, as its author declares it; what it can really do follows from its tools.
    pub risk_level: RiskLevel,
    /// Defaults for all steps.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub defaults: Option<Defaults>,
    /// The calls. They run in the order of their dependencies; otherwise in the order of this list.
    #[schemars(length(min = 1))]
    pub steps: Vec<Step>,
}

/// Versions of the format.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[non_exhaustive]
pub enum Version {
    /// The first one.
    #[default]
    #[serde(rename = "1.0")]
    V1,
    /// With conditions, `[*]`, and numbers and names in loops.
    #[serde(rename = "1.1")]
    V1_1,
}

/// The risk that a plan declares.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum RiskLevel {
    /// It changes nothing.
    ReadOnly,
    /// It creates, changes, moves or deletes files.
    Writes,
    /// It runs commands of the host.
    Commands,
}

impl RiskLevel {
    /// Returns the name in JSON.
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

/// Defaults for all steps.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[non_exhaustive]
pub struct Defaults {
    /// What happens when a step fails.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub on_error: Option<OnError>,
    /// How a step with onError "retry" is retried.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry: Option<Retry>,
}

/// One call, or one for each item of a list.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[non_exhaustive]
pub struct Step {
    /// A unique name: a letter, then letters, digits, `_` and `-`.
    pub id: String,
    /// The tool.
    pub tool: String,
    /// Its arguments. Texts in them may hold references: `$steps.ID.field` or `$vars.NAME.field` as a whole text is the
    /// value itself, `${$steps.ID.field}`, `${item.field}` and `${parameter}` may stand within a text. `[*]` in a
    /// reference collects what it leads to in every entry of a list (`$steps.ID.items[*].path`), and puts each of them
    /// into the list it stands in: `["${item.tags[*]}", "new"]`. `${$steps.ID.items[*].name|join:", "}` makes one text of
    /// a list.
    pub args: Map<String, Value>,
    /// The step runs only if this holds; otherwise it is skipped, and with it the steps that depend on it. Of a loop, see
    /// `foreach.filter` for a condition on each item.
    #[serde(default, rename = "if", skip_serializing_if = "Option::is_none")]
    pub condition: Option<Condition>,
    /// What the step does, for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub preview: Option<String>,
    /// Steps that must run before this one, besides those it refers to.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub depends_on: Vec<String>,
    /// Makes the step a loop over a list.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub foreach: Option<Foreach>,
    /// A second name for the output: `$vars.NAME`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub capture_as: Option<String>,
    /// What happens when the step fails; default "stop".
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub on_error: Option<OnError>,
    /// How the step is retried.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry: Option<Retry>,
    /// How long the step may take, all attempts together.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub timeout_ms: Option<u64>,
}

/// A loop over a list: the calls run one after the other, and each sees what those before it wrote.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[non_exhaustive]
pub struct Foreach {
    /// The list: a reference, such as `$steps.ID.items`, or several lists as one:
    /// `["$steps.A.items[*]", "$steps.B.items[*]"]`. Of lists within the items, `$steps.ID.items[*].items[*]` takes all
    /// entries.
    #[schemars(extend("type" = ["string", "array"]))]
    pub from: Value,
    /// The name of an item in the arguments: `${item.text}`. An item with a path also has `name`, `basename` (without the
    /// extension) and `folder`, unless it has fields of these names: `${item.folder}/${loop.padded} ${item.basename}.md`.
    #[serde(default = "item")]
    pub item_name: String,
    /// The name of its index, from 0. Besides, there are `${loop.number}`, from 1, `${loop.padded}`, the same with zeros
    /// before it, `${loop.index}` and `${loop.count}`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub index_name: Option<String>,
    /// The loop takes only the items for which this holds; they are numbered without the others.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub filter: Option<Condition>,
    /// Of the items for which this is the same, the loop takes the first: `${item.path}` takes each note once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unique: Option<String>,
}

fn item() -> String {
    "item".to_string()
}

/// What happens when a step fails.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum OnError {
    /// The plan ends; the steps before it stay.
    #[default]
    Stop,
    /// If it fails in the preview, the step and those that depend on it are left out; of a loop, only the items that
    /// fail, unless none is left or its time runs out. While the plan runs, only a failure of the host is ignored; a step
    /// that is cancelled or times out ends the plan.
    Skip,
    /// It is retried, then the plan ends.
    Retry,
}

/// How a step is retried.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[non_exhaustive]
pub struct Retry {
    /// Attempts in all, including the first.
    #[schemars(range(min = 1, max = 10))]
    pub max_attempts: u32,
    /// The wait before the second attempt; it doubles with each further one.
    #[serde(default)]
    #[schemars(range(max = 60000))]
    pub backoff_ms: u64,
}

impl Retry {
    /// Returns the wait after a failed attempt, which doubles each time.
    pub(super) fn wait_after(self, attempt: u32) -> Duration {
        Duration::from_millis(self.backoff_ms) * 2_u32.saturating_pow(attempt - 1)
    }
}

impl Default for Retry {
    fn default() -> Self {
        Self { max_attempts: 3, backoff_ms: 200 }
    }
}

impl Plan {
    /// Returns how a failure of a step is handled.
    pub fn on_error(&self, step: &Step) -> OnError {
        step.on_error.or_else(|| self.defaults.as_ref()?.on_error).unwrap_or_default()
    }

    /// Returns how a step is retried: not at all, unless its `onError` is "retry".
    pub fn retry(&self, step: &Step) -> Retry {
        match self.on_error(step) {
            OnError::Retry => step.retry.or_else(|| self.defaults.as_ref()?.retry).unwrap_or_default(),
            _ => Retry { max_attempts: 1, backoff_ms: 0 },
        }
    }
}

/// Returns the portable JSON schema of a plan.
pub fn schema() -> Value {
    argument_schema::<Plan>()
}

/// The first character of the id of a repaired step that had none. A valid id cannot begin with it, because it is not a
/// letter.
pub(super) const UNNAMED: char = '?';

/// Removes `foreach.concurrency`, which earlier plans had and which never had an effect. Returns a notice for each.
pub(super) fn remove_concurrency(plan: &mut Value) -> Vec<String> {
    let mut notices = Vec::new();
    for step in plan.get_mut("steps").and_then(Value::as_array_mut).into_iter().flatten() {
        let foreach = step.get_mut("foreach").and_then(Value::as_object_mut);
        if foreach.is_some_and(|foreach| foreach.remove("concurrency").is_some_and(|value| !value.is_null())) {
            let id = step.get("id").and_then(Value::as_str).unwrap_or("?");
            notices.push(format!("the step {id}: foreach.concurrency is ignored, the calls run one after the other"));
        }
    }
    notices
}

/// Reads a plan, with all issues at once. Each value with an issue is replaced by a harmless one, so that everything
/// else can be checked too; the plan is `None` if that does not help.
pub(super) fn read(value: &Value) -> (Option<Plan>, Vec<Issue>) {
    let schema = schema();
    let mut value = value.clone();
    tidy(&schema, &mut value);
    let mut issues = check(&schema, &value, "", &|_| false);
    issues.iter().for_each(|issue| repair(&mut value, &issue.pointer));
    let plan = serde_json::from_value(value);
    if let (Err(error), true) = (&plan, issues.is_empty()) {
        issues.push(Issue { pointer: String::new(), message: error.to_string() });
    }
    (plan.ok(), issues)
}

/// Removes the field of the plan or of the step that has an issue, or replaces it if it is required.
fn repair(plan: &mut Value, pointer: &str) {
    let names: Vec<String> =
        pointer.split('/').skip(1).map(|name| name.replace("~1", "/").replace("~0", "~")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let (object, field, defaults) = match &names[..] {
        ["steps", number, field, ..] => {
            let mut defaults = json!({ "id": format!("{UNNAMED}{number}"), "tool": "", "args": {} });
            // The names in the arguments for the item remain bound.
            let foreach = plan.pointer(&format!("/steps/{number}/foreach")).cloned().unwrap_or_default();
            defaults["foreach"] = json!({ "from": "${unknown}" });
            for name in ["itemName", "indexName"].into_iter().filter(|name| foreach[name].is_string()) {
                defaults["foreach"][name] = foreach[name].clone();
            }
            (plan.pointer_mut(&format!("/steps/{number}")), *field, defaults)
        }
        ["steps", number] => {
            let step = json!({ "id": format!("{UNNAMED}{number}"), "tool": "", "args": {} });
            plan.pointer_mut(pointer).into_iter().for_each(|value| *value = step.clone());
            return;
        }
        // The highest risk level is never too low, and the newest version has every field.
        [field, ..] => (Some(plan), *field, json!({ "version": "1.1", "goal": "", "riskLevel": "commands" })),
        [] => return,
    };
    let Some(Value::Object(fields)) = object else { return };
    match defaults.get(field) {
        Some(default) => drop(fields.insert(field.to_string(), default.clone())),
        None => drop(fields.remove(field)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn issues(value: Value) -> Vec<String> {
        read(&value).1.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn every_issue_has_its_location() {
        let step = json!({ "id": "a", "tool": "t", "args": {}, "retries": 1, "onError": "ignore" });
        assert_eq!(
            issues(json!({ "version": "2.0", "goal": "g", "steps": [step], "extra": 1 })),
            [
                "/riskLevel: is missing; expected one of read-only, writes, commands",
                "/version: expected one of 1.0, 1.1, found the text \"2.0\"",
                "/steps/0/retries: `retries` is not a field; did you mean `retry`? (there are: id, tool, args, if, preview, \
                 dependsOn, foreach, captureAs, onError, retry, timeoutMs)",
                "/steps/0/onError: expected one of stop, skip, retry, found the text \"ignore\"",
                "/extra: `extra` is not a field; there are: version, goal, assumptions, riskLevel, defaults, steps",
            ]
        );
        assert_eq!(issues(json!([])), ["/: expected an object, found a list"]);
    }

    #[test]
    fn the_valid_parts_of_a_malformed_plan_are_read() {
        let steps = json!([
            { "id": 1, "tool": "t", "args": {} },
            { "id": "b", "tool": "t", "args": [], "retry": { "maxAttempts": 99 }, "dependsOn": ["c"] },
            3
        ]);
        let plan = read(&json!({ "goal": "g", "riskLevel": "none", "steps": steps, "x~/y": 1 })).0.unwrap();
        let ids: Vec<&str> = plan.steps.iter().map(|step| step.id.as_str()).collect();
        assert_eq!((plan.goal.as_str(), plan.risk_level, ids), ("g", RiskLevel::Commands, vec!["?0", "b", "?2"]));
        assert_eq!((plan.steps[1].retry, plan.steps[1].depends_on.len()), (None, 1));
        assert!(read(&json!({ "steps": {} })).0.is_none());
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
        .0
        .unwrap();
        assert_eq!(plan.retry(&plan.steps[0]), Retry { max_attempts: 4, backoff_ms: 0 });
        assert_eq!(plan.on_error(&plan.steps[1]), OnError::Skip);
        assert_eq!(plan.retry(&plan.steps[1]).max_attempts, 1);
        assert_eq!(plan.steps[1].foreach.as_ref().unwrap().item_name, "item");
    }
}
