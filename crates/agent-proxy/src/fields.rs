//! Parses single fields of a request. A wrong type or an unsupported value is rejected with the field's name.

use serde_json::{Value, json};

use crate::ApiError;

/// The API's limit on the stop sequences of a request.
const MOST_STOPS: usize = 4;
/// The most bytes of a stop sequence. It is limited because every piece of text is compared with it.
const LONGEST_STOP: usize = 1024;

pub(crate) fn read_json(body: &[u8]) -> Result<Value, ApiError> {
    serde_json::from_slice(body).map_err(|error| ApiError {
        status: 400,
        message: format!("The body is not valid JSON: {error}."),
        param: None,
        code: None,
    })
}

/// Parses a required string.
pub(crate) fn needed(value: &Value, param: impl Fn() -> String) -> Result<&str, ApiError> {
    value.as_str().ok_or_else(|| ApiError::invalid(param(), "A string is required."))
}

/// Parses an optional field with `read`; `None` if it is absent.
pub(crate) fn optional<'a, T>(
    value: &'a Value,
    param: &str,
    kind: &str,
    read: impl Fn(&'a Value) -> Option<T>,
) -> Result<Option<T>, ApiError> {
    match value {
        Value::Null => Ok(None),
        value => read(value).map(Some).ok_or_else(|| ApiError::invalid(param, format!("This must be {kind}."))),
    }
}

pub(crate) fn flag(value: &Value, param: &str) -> Result<Option<bool>, ApiError> {
    optional(value, param, "true or false", Value::as_bool)
}

pub(crate) fn text<'a>(value: &'a Value, param: &str) -> Result<Option<&'a str>, ApiError> {
    optional(value, param, "a string", Value::as_str)
}

/// Parses a number from 0 to `most`.
pub(crate) fn number(value: &Value, param: &str, most: f64) -> Result<Option<f64>, ApiError> {
    let in_range = |value: &Value| value.as_f64().filter(|number| (0.0..=most).contains(number));
    optional(value, param, &format!("a number from 0 to {most}"), in_range)
}

/// Parses a limit of tokens.
pub(crate) fn limit(value: &Value, param: &str) -> Result<Option<u32>, ApiError> {
    let positive = |value: &Value| value.as_u64().and_then(|most| u32::try_from(most).ok()).filter(|most| *most > 0);
    optional(value, param, "a whole number above 0", positive)
}

/// Rejects fields that would change the reply and are not supported, unless their value has no effect.
pub(crate) fn refuse_unsupported(body: &Value, fields: &[&str]) -> Result<(), ApiError> {
    match fields.iter().find(|field| !asks_nothing(&body[**field])) {
        Some(field) => Err(ApiError::invalid(*field, "This is not supported here.")),
        None => Ok(()),
    }
}

pub(crate) fn asks_nothing(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Bool(is_asked) => !is_asked,
        Value::Number(number) => number.as_f64() == Some(0.0),
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(fields) => fields.is_empty(),
    }
}

/// Parses the texts at which a reply ends.
pub(crate) fn stop_sequences(value: &Value) -> Result<Vec<String>, ApiError> {
    let wrong = || {
        let what = format!("This must be a string or {MOST_STOPS} of them at most, of 1 to {LONGEST_STOP} bytes each.");
        ApiError::invalid("stop", what)
    };
    let sequences: Option<Vec<String>> = match value {
        Value::Null => Some(Vec::new()),
        Value::String(one) => Some(vec![one.clone()]),
        Value::Array(several) => several.iter().map(|one| one.as_str().map(str::to_owned)).collect(),
        _ => None,
    };
    let fits = |one: &String| (1..=LONGEST_STOP).contains(&one.len());
    sequences.filter(|all| all.len() <= MOST_STOPS && all.iter().all(fits)).ok_or_else(wrong)
}

/// Parses the schema of the answer that a format requests. `param` is the format, and `schema` the position of the
/// schema in it.
pub(crate) fn answer_schema(format: &Value, param: &str, schema: &str) -> Result<Option<Value>, ApiError> {
    match format["type"].as_str() {
        None if format.is_null() => Ok(None),
        Some("text") => Ok(None),
        Some("json_schema") => match format.pointer(schema) {
            Some(schema @ Value::Object(_)) => Ok(Some(schema.clone())),
            _ => Err(ApiError::invalid(param.to_string() + &schema.replace('/', "."), "A schema is required.")),
        },
        // The object is open, so that no wire treats it as an object without fields.
        Some("json_object") => Ok(Some(json!({"type": "object", "additionalProperties": true}))),
        _ => Err(ApiError::invalid(format!("{param}.type"), "This is not one of text, json_schema, json_object.")),
    }
}

/// Parses the text of a content: a string, or parts of text.
pub(crate) fn content_text(content: &Value, param: &str) -> Result<String, ApiError> {
    let part = |(index, part): (usize, &Value)| {
        let text = match part["type"].as_str() {
            Some("refusal") => &part["refusal"],
            Some("text" | "input_text" | "output_text") => &part["text"],
            kind => {
                let kind = kind.unwrap_or("?");
                let message = format!("A part of the type {kind} is not supported here: only text is.");
                return Err(ApiError::invalid(format!("{param}[{index}].type"), message));
            }
        };
        needed(text, || format!("{param}[{index}].text")).map(str::to_owned)
    };
    match content {
        Value::Null => Ok(String::new()),
        Value::String(text) => Ok(text.clone()),
        Value::Array(parts) => Ok(parts.iter().enumerate().map(part).collect::<Result<Vec<_>, _>>()?.join("\n")),
        _ => Err(ApiError::invalid(param, "This must be a string or a list of parts.")),
    }
}
