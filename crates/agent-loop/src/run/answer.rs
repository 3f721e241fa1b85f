//! Structured final answers: parsed from the text and validated against a schema, never repaired.

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::error::{Error, ErrorKind, Result};
use crate::tool::{SchemaCheck, list_issues, portable_schema};

use super::{Phase, Run, RunOutcome, StopReason};

/// The shape a final answer must have.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct AnswerShape {
    /// A JSON Schema. An invalid one accepts no answer, and the outcome contains the reason.
    pub schema: Value,
    /// How often the model gets the issues and another attempt; by default 2. Each attempt counts as a turn.
    pub corrections: u32,
}

impl AnswerShape {
    /// Creates the shape of a type, with two corrections.
    pub fn of<T: schemars::JsonSchema>() -> Self {
        Self::new(portable_schema::<T>().0)
    }

    /// Creates the shape that a JSON Schema describes, with two corrections.
    pub fn new(schema: Value) -> Self {
        Self { schema, corrections: 2 }
    }
}

setters!(AnswerShape { corrections: u32 });

impl Run {
    /// Returns the answer of a run that is done, as a type.
    ///
    /// # Errors
    /// `State` if there is no answer, with the reason why the run ended; `BadResponse` if the answer does not fit the
    /// type.
    pub fn answer<T: DeserializeOwned>(&self) -> Result<T> {
        match &self.state.phase {
            Phase::Done { stop, answer } => typed(stop, answer.as_ref()),
            _ => Err(Error::new(ErrorKind::State, "there is no answer yet: the run is under way")),
        }
    }

    /// Returns the answer in the last message: `None` if no shape was requested, else the value or its issues.
    pub(super) fn read_answer(&self) -> Option<Result<Value, String>> {
        let shape = self.options.answer.as_ref()?;
        Some(check_answer(&self.last_text(), &shape.schema))
    }
}

impl RunOutcome {
    /// Returns the field `answer` as a type.
    ///
    /// # Errors
    /// The same as those of [`Run::answer`].
    pub fn answer<T: DeserializeOwned>(&self) -> Result<T> {
        typed(&self.stop, self.answer.as_ref())
    }
}

fn typed<T: DeserializeOwned>(stop: &StopReason, answer: Option<&Value>) -> Result<T> {
    let Some(answer) = answer else {
        return Err(Error::new(ErrorKind::State, format!("there is no answer of a shape: {stop}"))
            .with_remedy("RunOptions::answer asks for one"));
    };
    T::deserialize(answer)
        .map_err(|error| Error::new(ErrorKind::BadResponse, "the answer does not fit the type").with_source(error))
}

/// Returns the message for a model whose answer has these faults.
pub(crate) fn correction(faults: &str) -> String {
    format!("(The answer does not have the required shape:\n{faults}\nAnswer again, with the JSON alone.)")
}

/// Returns the value that a text contains, or its issues.
pub(crate) fn check_answer(text: &str, schema: &Value) -> Result<Value, String> {
    let value: Value =
        serde_json::from_str(without_fence(text)).map_err(|error| format!("- it is not valid JSON: {error}"))?;
    let check = SchemaCheck::new(schema).map_err(|error| format!("- the schema itself cannot be used: {error}"))?;
    let issues = check.issues(&value);
    if issues.is_empty() { Ok(value) } else { Err(list_issues(&issues)) }
}

/// Returns the content of a text that is a single code block, or the text itself if it is anything else.
pub(crate) fn without_fence(text: &str) -> &str {
    let text = text.trim();
    let inner = text.strip_prefix("```").and_then(|rest| rest.strip_suffix("```"));
    let Some((info, body)) = inner.and_then(|inner| inner.split_once('\n')) else { return text };
    if matches!(info.trim(), "" | "json" | "JSON") && !body.contains("```") { body.trim() } else { text }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn answers_are_parsed_or_their_issues_listed() {
        let schema = json!({"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]});
        for (text, expected) in [
            ("{\"n\": 1}", Ok(json!({"n": 1}))),
            (" ```json\n{\"n\": 1}\n``` ", Ok(json!({"n": 1}))),
            ("```\n{\"n\": 1}\n```", Ok(json!({"n": 1}))),
            ("Here: {\"n\": 1}", Err("not valid JSON")),
            ("{\"n\": \"1\"}", Err("/n")),
            ("", Err("not valid JSON")),
        ] {
            match (check_answer(text, &schema), expected) {
                (Ok(value), Ok(expected)) => assert_eq!(value, expected),
                (Err(fault), Err(expected)) => assert!(fault.contains(expected), "{fault}"),
                (read, expected) => panic!("{text:?}: {read:?}, not {expected:?}"),
            }
        }
        assert!(check_answer("{}", &json!({"type": 5})).unwrap_err().contains("schema itself"));
    }
}
