//! Edits one entry of a configuration; everything else keeps its order, spaces and comments.

use jsonc_parser::ParseOptions;
use jsonc_parser::cst::{CstInputValue, CstObject, CstRootNode};
use serde_json::{Map, Value};
use toml_edit::{DocumentMut, Item, Table, TableLike, value};
use vault_tools::{Error, ErrorKind, Result};

/// The format of a configuration.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Format {
    /// JSON; comments and trailing commas are accepted and kept.
    Json,
    Toml,
}

impl Format {
    /// Parses the configuration; an empty one is an empty object.
    ///
    /// # Errors
    /// Text that is not of the format.
    pub fn parse(self, text: &str) -> Result<Value> {
        let value = match self {
            Self::Json => json(text)?.to_serde_value(),
            Self::Toml => Some(toml::from_str(text).map_err(|error| unreadable(&error))?),
        };
        match value {
            Some(Value::Null) | None => Ok(Value::Object(Map::new())),
            Some(value @ Value::Object(_)) => Ok(value),
            Some(_) => Err(unreadable(&"it is not an object")),
        }
    }

    /// Sets keys of the object at `path`, and creates the object if it is missing.
    ///
    /// # Errors
    /// A value on the way that is not an object.
    pub fn set(self, text: &str, path: &[&str], keys: &Map<String, Value>) -> Result<String> {
        match self {
            Self::Json => {
                let root = json(text)?;
                let mut object = root.object_value_or_create().ok_or_else(|| in_the_way("the file"))?;
                for name in path {
                    object = object.object_value_or_create(name).ok_or_else(|| in_the_way(name))?;
                }
                keys.iter().for_each(|(key, value)| set_json(&object, key, value));
                let text = root.to_string();
                Ok(if text.ends_with('\n') { text } else { text + "\n" })
            }
            Self::Toml => {
                let mut document = toml_document(text)?;
                let mut table: &mut dyn TableLike = document.as_table_mut();
                for (depth, name) in path.iter().enumerate() {
                    let item = table.entry(name).or_insert_with(|| {
                        let mut table = Table::new();
                        table.set_implicit(depth + 1 < path.len());
                        Item::Table(table)
                    });
                    table = item.as_table_like_mut().ok_or_else(|| in_the_way(name))?;
                }
                keys.iter().for_each(|(key, json)| drop(table.insert(key, value(toml_value(json)))));
                Ok(document.to_string())
            }
        }
    }

    /// Removes the value at `path`.
    ///
    /// # Errors
    /// Text that is not of the format.
    pub fn remove(self, text: &str, path: &[&str]) -> Result<String> {
        let Some((last, way)) = path.split_last() else { return Ok(text.to_owned()) };
        match self {
            Self::Json => {
                let root = json(text)?;
                let object = way.iter().try_fold(root.object_value(), |object, name| Some(object?.object_value(name)));
                if let Some(property) = object.flatten().and_then(|object| object.get(last)) {
                    property.remove();
                }
                Ok(root.to_string())
            }
            Self::Toml => {
                let mut document = toml_document(text)?;
                let top: Option<&mut dyn TableLike> = Some(document.as_table_mut());
                let table = way.iter().fold(top, |table, name| table?.get_mut(name)?.as_table_like_mut());
                if let Some(table) = table {
                    table.remove(last);
                }
                Ok(document.to_string())
            }
        }
    }
}

fn json(text: &str) -> Result<CstRootNode> {
    CstRootNode::parse(text, &ParseOptions::default()).map_err(|error| unreadable(&error))
}

fn toml_document(text: &str) -> Result<DocumentMut> {
    text.parse().map_err(|error: toml_edit::TomlError| unreadable(&error))
}

fn unreadable(why: &dyn std::fmt::Display) -> Error {
    Error::new(ErrorKind::Config, format!("this configuration cannot be parsed: {why}"))
        .with_remedy("repair it, or add the server by hand as `--print` shows it")
}

fn in_the_way(name: &str) -> Error {
    Error::new(ErrorKind::Config, format!("{name} is not an object, so no server can be added to it"))
        .with_remedy("repair it, or add the server by hand as `--print` shows it")
}

fn set_json(object: &CstObject, key: &str, value: &Value) {
    match object.get(key) {
        Some(property) => property.set_value(json_value(value)),
        None => drop(object.append(key, json_value(value))),
    }
}

fn json_value(value: &Value) -> CstInputValue {
    match value {
        Value::Null => CstInputValue::Null,
        Value::Bool(is) => CstInputValue::Bool(*is),
        Value::Number(number) => CstInputValue::Number(number.to_string()),
        Value::String(text) => CstInputValue::String(text.clone()),
        Value::Array(values) => CstInputValue::Array(values.iter().map(json_value).collect()),
        Value::Object(object) => {
            CstInputValue::Object(object.iter().map(|(key, value)| (key.clone(), json_value(value))).collect())
        }
    }
}

/// Converts the values of entries, which are strings, lists of strings and objects of strings.
fn toml_value(json: &Value) -> toml_edit::Value {
    match json {
        Value::Array(values) => values.iter().map(toml_value).collect(),
        Value::Object(object) => object.iter().map(|(key, value)| (key, toml_value(value))).collect(),
        Value::String(text) => text.as_str().into(),
        other => other.to_string().into(),
    }
}
