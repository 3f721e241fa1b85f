//! What several readers need: a JSON value at the beginning of a text, values whose type only the schema knows.

use serde_json::value::RawValue;
use serde_json::{Map, Value};

use crate::message::read_arguments;
use crate::tool::ToolSpec;

use super::super::pieces::Piece;

/// The text of the JSON value that a text begins with, white space aside, and what follows it.
pub(super) fn json_prefix(text: &str) -> Result<(&str, &str), String> {
    let mut values = serde_json::Deserializer::from_str(text).into_iter::<&RawValue>();
    match values.next() {
        Some(Ok(value)) => Ok((value.get(), &text[values.byte_offset()..])),
        Some(Err(error)) => Err(format!("The arguments are not valid JSON: {error}.")),
        None => Err("The tool call has no arguments.".into()),
    }
}

/// A call with arguments in JSON, as they were written.
pub(super) fn call(name: &str, arguments: &str) -> Result<Piece<'static>, String> {
    let name = name.trim();
    if name.is_empty() {
        return Err("The tool call has no name.".into());
    }
    read_arguments(arguments)?;
    Ok(Piece::Call { name: name.into(), arguments: arguments.trim().into() })
}

/// A call with arguments that were no JSON.
pub(super) fn call_of(name: &str, arguments: Map<String, Value>) -> Result<Piece<'static>, String> {
    call(name, &Value::Object(arguments).to_string())
}

/// The argument that a text stands for: itself where the schema takes a text, else the value it spells.
pub(super) fn typed(tools: &[ToolSpec], tool: &str, key: &str, text: &str) -> Value {
    let tool = tools.iter().find(|spec| spec.name == tool);
    let kind = tool.map_or(&Value::Null, |spec| &spec.parameters["properties"][key]["type"]);
    let takes_text = kind == "string" || kind.as_array().is_some_and(|kinds| kinds.iter().any(|kind| kind == "string"));
    match text.trim() {
        _ if takes_text => text.into(),
        "True" => true.into(),
        "False" => false.into(),
        "None" => Value::Null,
        trimmed => serde_json::from_str(trimmed).unwrap_or_else(|_| text.into()),
    }
}

/// A value as a text that [`typed`] reads again: a text as it is, everything else as JSON.
pub(super) fn plain(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), String::from)
}

/// Arguments as JSON in which no mark can stand.
pub(super) fn json_of(arguments: &Map<String, Value>) -> String {
    Value::Object(arguments.clone()).to_string().replace('<', "\\u003c")
}

/// A call as an object, the name first.
pub(super) fn object_of(name: &str, key: &str, arguments: &Map<String, Value>) -> String {
    let name = Value::from(name).to_string().replace('<', "\\u003c");
    format!("{{\"name\":{name},\"{key}\":{}}}", json_of(arguments))
}
