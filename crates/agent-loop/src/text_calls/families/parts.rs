//! Functions that several readers need: a JSON value at the beginning of a text, values typed by the schema.

use serde_json::value::RawValue;
use serde_json::{Map, Value};

use crate::message::read_arguments;
use crate::tool::ToolSpec;

use super::super::pieces::Piece;

/// Returns the JSON value at the beginning of a text, after white space, and the text after it.
pub(super) fn json_prefix(text: &str) -> Result<(&str, &str), String> {
    let mut values = serde_json::Deserializer::from_str(text).into_iter::<&RawValue>();
    match values.next() {
        Some(Ok(value)) => Ok((value.get(), &text[values.byte_offset()..])),
        Some(Err(error)) => Err(format!("The arguments are not valid JSON: {error}.")),
        None => Err("The tool call has no arguments.".into()),
    }
}

/// Returns a call with arguments in JSON, as they were written.
pub(super) fn call(name: &str, arguments: &str) -> Result<Piece<'static>, String> {
    let name = name.trim();
    if name.is_empty() {
        return Err("The tool call has no name.".into());
    }
    read_arguments(arguments)?;
    Ok(Piece::Call { name: name.into(), arguments: arguments.trim().into() })
}

/// Returns a call whose arguments were not written as JSON.
pub(super) fn call_of(name: &str, arguments: Map<String, Value>) -> Result<Piece<'static>, String> {
    call(name, &Value::Object(arguments).to_string())
}

/// Returns the argument for a text: the text itself if the schema accepts a text, else the value that it spells.
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

/// Returns a value as a text that [`typed`] reads back: a text unchanged, everything else as JSON.
pub(super) fn plain(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), String::from)
}

/// Returns arguments as JSON that cannot contain a mark.
pub(super) fn json_of(arguments: &Map<String, Value>) -> String {
    Value::Object(arguments.clone()).to_string().replace('<', "\\u003c")
}

/// Returns a call as an object, with the name first.
pub(super) fn object_of(name: &str, key: &str, arguments: &Map<String, Value>) -> String {
    let name = Value::from(name).to_string().replace('<', "\\u003c");
    format!("{{\"name\":{name},\"{key}\":{}}}", json_of(arguments))
}
