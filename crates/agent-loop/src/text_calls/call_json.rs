//! Reads a call from the JSON that a model wrote.

use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::value::RawValue;

use crate::message::read_arguments;

use super::Piece;

/// A call as the model wrote it. Any other key is a fault, because the call would run without the value under it.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct CallJson<'a> {
    name: Option<String>,
    #[serde(borrow)]
    arguments: Option<&'a RawValue>,
    #[serde(borrow)]
    parameters: Option<&'a RawValue>,
    #[serde(rename = "type")]
    _type: Option<IgnoredAny>,
    #[serde(rename = "id")]
    _id: Option<IgnoredAny>,
    #[serde(rename = "call_id")]
    _call_id: Option<IgnoredAny>,
    #[serde(rename = "index")]
    _index: Option<IgnoredAny>,
}

pub(super) fn read_calls(json: &str) -> Result<Vec<Piece<'static>>, String> {
    let wrong = |error: serde_json::Error| {
        let what = if error.is_data() { "has not the right form" } else { "is not valid JSON" };
        format!("The tool call {what}: {error}.")
    };
    if json.starts_with('[') {
        let written: Vec<CallJson<'_>> = serde_json::from_str(json).map_err(wrong)?;
        return written.into_iter().map(read_call).collect();
    }
    Ok(vec![read_call(serde_json::from_str(json).map_err(wrong)?)?])
}

fn read_call(written: CallJson<'_>) -> Result<Piece<'static>, String> {
    let name = written.name.filter(|name| !name.is_empty()).ok_or("The tool call has no \"name\".")?;
    let raw = written.arguments.or(written.parameters).map_or("null", RawValue::get);
    // A string that contains the arguments is decoded once; its content is not changed.
    let text =
        if raw.starts_with('"') { serde_json::from_str(raw).map_err(|e| e.to_string())? } else { raw.to_string() };
    let arguments = match read_arguments(&text)? {
        serde_json::Value::Object(fields) if fields.is_empty() => "{}".into(),
        _ => text,
    };
    Ok(Piece::Call { name, arguments })
}
