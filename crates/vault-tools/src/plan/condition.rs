//! Conditions: they determine whether a step runs, and which items a loop takes.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::reference::{Piece, parse, shortened};
use super::scope::Scope;
use crate::tool::Issue;
use crate::toolbox::text_of;

const ONE_VALUE: &str = "expected one text, number or boolean to look for";

/// A test of one value: one of `equals`, `contains`, `exists` and `empty`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[non_exhaustive]
pub struct Condition {
    /// What is tested: a reference, such as `$steps.ID.count` or `${item.path}`. A field that is missing counts as null.
    pub value: String,
    /// It is this value. A text and a number or boolean are compared as texts; case counts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub equals: Option<Value>,
    /// It is a text with this text in it, a list with this entry, or an object with this field; case counts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub contains: Option<Value>,
    /// Whether it is there, so that it is not null.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exists: Option<bool>,
    /// Whether it is null, a text without characters, or a list or an object without entries.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub empty: Option<bool>,
    /// Whether the test must fail instead.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub not: bool,
}

impl Condition {
    /// Returns the issues with its form.
    pub(super) fn issues(&self, at: &str) -> Vec<Issue> {
        let tests = [
            ("equals", self.equals.is_some()),
            ("contains", self.contains.is_some()),
            ("exists", self.exists.is_some()),
            ("empty", self.empty.is_some()),
        ];
        let given: Vec<&str> = tests.iter().filter(|(_, is_given)| *is_given).map(|(name, _)| *name).collect();
        let mut issues = Vec::new();
        let mut issue = |pointer: String, message: String| issues.push(Issue { pointer, message });
        match &given[..] {
            [] => issue(at.to_string(), "there is no test; give one of equals, contains, exists, empty".to_string()),
            [_] => {}
            several => issue(at.to_string(), format!("there are several tests, {}; give one", several.join(" and "))),
        }
        if parse(&self.value).is_ok_and(|pieces| !pieces.iter().any(|piece| matches!(piece, Piece::Reference(_)))) {
            let message = format!("`{}` is always the same; write a reference, such as ${{item.path}}", self.value);
            issue(format!("{at}/value"), message);
        }
        if self.contains.as_ref().is_some_and(|wanted| wanted.is_array() || wanted.is_object()) {
            issue(format!("{at}/contains"), ONE_VALUE.to_string());
        }
        issues
    }

    /// Returns the values that it refers to, with their fields.
    pub(super) fn values(&self) -> impl Iterator<Item = (&'static str, Value)> {
        let others = [("equals", &self.equals), ("contains", &self.contains)];
        let others = others.into_iter().filter_map(|(name, value)| Some((name, value.clone()?)));
        std::iter::once(("value", Value::from(self.value.as_str()))).chain(others)
    }

    /// Returns the reason that it does not hold; `None` if it holds.
    ///
    /// # Errors
    /// References without a value; a list or an object as the operand of `contains`.
    pub(super) fn unmet(&self, scope: &Scope<'_>, at: &str) -> Result<Option<String>, Vec<Issue>> {
        let value = scope.resolve_or_null(&self.value, &format!("{at}/value"))?;
        let resolved = |wanted: &Value, name: &str| scope.resolve(wanted, &Value::Null, &format!("{at}/{name}"));
        let (passes, must) = match self {
            Self { equals: Some(wanted), .. } => {
                let wanted = resolved(wanted, "equals")?;
                (is_equal(&value, &wanted), format!("be {}", shortened(&wanted.to_string())))
            }
            Self { contains: Some(wanted), .. } => {
                let wanted = resolved(wanted, "contains")?;
                if wanted.is_array() || wanted.is_object() {
                    return Err(vec![Issue { pointer: format!("{at}/contains"), message: ONE_VALUE.to_string() }]);
                }
                (contains(&value, &wanted), format!("contain {}", shortened(&wanted.to_string())))
            }
            Self { empty: Some(empty), .. } => (is_empty(&value) == *empty, "be empty".to_string()),
            Self { exists, .. } => (value.is_null() != exists.unwrap_or(true), "exist".to_string()),
        };
        if passes != self.not {
            return Ok(None);
        }
        let is_negative = self.not != [self.exists, self.empty].contains(&Some(false));
        let must = if is_negative { format!("must not {must}") } else { format!("must {must}") };
        let found =
            if value.is_null() { "has no value".to_string() } else { format!("is {}", shortened(&value.to_string())) };
        Ok(Some(format!("{} {found}; it {must}", self.value)))
    }
}

fn is_equal(value: &Value, wanted: &Value) -> bool {
    let is_plain = |value: &Value| value.is_string() || value.is_number() || value.is_boolean();
    value == wanted || is_plain(value) && is_plain(wanted) && text_of(value) == text_of(wanted)
}

fn contains(value: &Value, wanted: &Value) -> bool {
    match value {
        Value::Null => false,
        Value::Array(entries) => entries.iter().any(|entry| is_equal(entry, wanted)),
        Value::Object(fields) => fields.contains_key(&text_of(wanted)),
        plain => text_of(plain).contains(&text_of(wanted)),
    }
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::String(text) => text.is_empty(),
        Value::Array(entries) => entries.is_empty(),
        Value::Object(fields) => fields.is_empty(),
        Value::Number(_) | Value::Bool(_) => false,
    }
}

#[cfg(test)]
mod tests {
    use super::super::reference::Root;
    use super::super::scope::Parameters;
    use super::*;
    use serde_json::json;
    use std::borrow::Cow;

    /// Why a condition on the item does not hold.
    fn unmet(condition: Value) -> Result<Option<String>, String> {
        let parameters = Parameters::default();
        let mut scope = Scope::new(&parameters);
        let item = json!({ "path": "A/b.md", "tags": ["x", 2], "n": 7, "done": true, "no": null, "text": "", "o": { "k": 1 } });
        scope.bind(Root::Name("item".into()), Cow::Owned(item));
        let condition: Condition = serde_json::from_value(condition).unwrap();
        condition.unmet(&scope, "/if").map_err(|issues| issues[0].to_string())
    }

    #[test]
    fn each_test_and_its_opposite() {
        for (field, name, wanted, expected) in [
            ("path", "equals", json!("A/b.md"), true),
            ("path", "equals", json!("a/b.md"), false),
            ("n", "equals", json!(7), true),
            ("n", "equals", json!("7"), true),
            ("done", "equals", json!("true"), true),
            ("tags", "equals", json!(["x", 2]), true),
            ("missing", "equals", json!("x"), false),
            ("path", "contains", json!("b.m"), true),
            ("path", "contains", json!("${item.text}"), true),
            ("tags", "contains", json!("x"), true),
            ("tags", "contains", json!("2"), true),
            ("tags", "contains", json!("X"), false),
            ("o", "contains", json!("k"), true),
            ("no", "contains", json!(""), false),
            ("missing", "contains", json!("x"), false),
            ("n", "exists", json!(true), true),
            ("no", "exists", json!(true), false),
            ("missing", "exists", json!(false), true),
            ("text", "empty", json!(true), true),
            ("missing", "empty", json!(true), true),
            ("n", "empty", json!(true), false),
            ("tags", "empty", json!(false), true),
        ] {
            for not in [false, true] {
                let condition = json!({ "value": format!("${{item.{field}}}"), name: wanted, "not": not });
                assert_eq!(unmet(condition.clone()).unwrap().is_none(), expected != not, "{condition}");
            }
        }
    }

    #[test]
    fn reasons_say_what_was_found_and_what_must_be() {
        for (condition, reason) in [
            (json!({ "value": "${item.path}", "equals": "c.md" }), "${item.path} is \"A/b.md\"; it must be \"c.md\""),
            (
                json!({ "value": "${item.tags}", "contains": "x", "not": true }),
                "${item.tags} is [\"x\",2]; it must not contain \"x\"",
            ),
            (json!({ "value": "${item.status}", "exists": true }), "${item.status} has no value; it must exist"),
            (json!({ "value": "${item.n}", "exists": false }), "${item.n} is 7; it must not exist"),
            (json!({ "value": "${item.n}", "exists": true, "not": true }), "${item.n} is 7; it must not exist"),
            (json!({ "value": "${item.text}", "empty": false }), "${item.text} is \"\"; it must not be empty"),
            (json!({ "value": "${item.text}", "empty": false, "not": true }), ""),
        ] {
            assert_eq!(unmet(condition).unwrap().unwrap_or_default(), reason);
        }
        let error = unmet(json!({ "value": "${item.tags}", "contains": ["x"] })).unwrap_err();
        assert_eq!(error, "/if/contains: expected one text, number or boolean to look for");
        assert!(unmet(json!({ "value": "${item.path[*]}", "exists": true })).unwrap_err().contains("[*]"));
    }

    #[test]
    fn a_condition_has_one_test_of_one_reference() {
        let issues = |condition: Value| {
            let condition: Condition = serde_json::from_value(condition).unwrap();
            condition.issues("/if").iter().map(ToString::to_string).collect::<Vec<_>>()
        };
        let none = issues(json!({ "value": "$steps.a", "not": true }));
        assert_eq!(none, ["/if: there is no test; give one of equals, contains, exists, empty"]);
        assert_eq!(
            issues(json!({ "value": "item.path", "contains": ["a"], "empty": true })),
            [
                "/if: there are several tests, contains and empty; give one",
                "/if/value: `item.path` is always the same; write a reference, such as ${item.path}",
                "/if/contains: expected one text, number or boolean to look for",
            ]
        );
        assert!(issues(json!({ "value": "a ${x}", "equals": ["a"] })).is_empty());
    }
}
