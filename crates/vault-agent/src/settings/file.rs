//! The file `agent.toml` in the user's configuration folder, beside `tools.toml`: read with the line of each value, and
//! edited in place.

use std::path::PathBuf;

use serde_json::{Value, json};
use toml_edit::{Document, DocumentMut, Table};
use vault_index::dirs::config_folder;
use vault_index::settings_file::read_settings_file;
use vault_tools::{Error, ErrorKind, Result, State};

use super::table::{Setting, find};
use super::{Problem, SettingValue, ValueSource};

const NAME: &str = "agent.toml";

const REMEDY: &str = "vault-agent config show lists the settings";

/// Returns the path of `agent.toml`, whether or not the file exists.
///
/// # Errors
/// When the system names no configuration folder.
pub(crate) fn path() -> Result<PathBuf> {
    config_file(NAME)
}

/// Returns the path of a file in the user's configuration folder, whether or not the file exists.
///
/// # Errors
/// When the system names no configuration folder.
pub(crate) fn config_file(name: &str) -> Result<PathBuf> {
    config_folder().map(|folder| folder.join(name)).ok_or_else(|| {
        Error::new(ErrorKind::Io, "the system names no folder for configurations")
            .with_remedy("set HOME or XDG_CONFIG_HOME")
    })
}

/// Reads the values in the file and the problems with them. A missing file is read as empty.
///
/// # Errors
/// When it cannot be read.
pub(super) fn read() -> Result<(Vec<SettingValue>, Vec<Problem>)> {
    let (mut given, mut problems) = (Vec::new(), Vec::new());
    let Ok(path) = path() else { return Ok((given, problems)) };
    let Some(text) = read_settings_file(&path, REMEDY)? else { return Ok((given, problems)) };
    let source = |at: Option<usize>| {
        let before = at.and_then(|at| text.get(..at)).unwrap_or_default();
        ValueSource::File { path: path.clone(), line: 1 + before.matches('\n').count() }
    };
    let document = match Document::parse(&*text) {
        Ok(document) => document,
        Err(error) => {
            let source = source(error.span().map(|span| span.start));
            problems.push(Problem { source, message: error.message().to_owned() });
            return Ok((given, problems));
        }
    };
    for (name, item) in document.iter() {
        let key = document.key(name).and_then(|key| key.span());
        let source = source(key.or(item.span()).map(|span| span.start));
        let value = find(name).and_then(|setting| {
            let value = item.as_value().ok_or_else(|| format!("expected {}, found a table", setting.kind.described()));
            let value = value.and_then(|value| setting.of_toml(value));
            Ok((setting, value.map_err(|message| format!("{name}: {message}"))?))
        });
        match value {
            Ok((setting, value)) => given.push((setting, value, source)),
            Err(message) => problems.push(Problem { source, message }),
        }
    }
    Ok((given, problems))
}

/// Writes a value into the file. Everything else in it stays as it was written.
///
/// # Errors
/// A file that cannot be understood or written.
pub(crate) fn set(setting: &Setting, value: &Value) -> Result<PathBuf> {
    change_file(path()?, |document| {
        put(document.as_table_mut(), setting.name, value);
        Ok(())
    })
}

/// Sets the provider and its model in one write. A new provider removes the address, because it belongs to the old one
/// and must never get the new one's key.
pub(crate) fn choose_model(provider: &str, model: Option<&str>) -> Result<PathBuf> {
    change_file(path()?, |document| {
        if document.get("provider").and_then(|item| item.as_str()) != Some(provider) {
            document.remove("base_url");
        }
        put(document.as_table_mut(), "provider", &json!(provider));
        match model {
            Some(model) => put(document.as_table_mut(), "model", &json!(model)),
            None => _ = document.remove("model"),
        }
        Ok(())
    })
}

/// Sets a value in a table. A comment behind the value stays.
pub(super) fn put(table: &mut Table, name: &str, value: &Value) {
    let value = of_json(value);
    match table.get_mut(name).and_then(|item| item.as_value_mut()) {
        Some(old) => {
            let decor = old.decor().clone();
            *old = value;
            *old.decor_mut() = decor;
        }
        None => table[name] = toml_edit::value(value),
    }
}

/// Removes a setting from the file.
///
/// # Errors
/// As [`set`].
pub(crate) fn remove(setting: &Setting) -> Result<PathBuf> {
    change_file(path()?, |document| {
        document.remove(setting.name);
        Ok(())
    })
}

/// Changes a settings file. If `act` fails, the file stays as it is.
pub(crate) fn change_file(path: PathBuf, act: impl FnOnce(&mut DocumentMut) -> Result<()>) -> Result<PathBuf> {
    // A link to a file elsewhere stays one.
    let path = path.canonicalize().unwrap_or(path);
    let text = read_settings_file(&path, REMEDY)?.unwrap_or_default();
    let mut document: DocumentMut = text.parse().map_err(|error: toml_edit::TomlError| {
        Error::new(ErrorKind::Config, error.to_string()).at(path.display()).with_remedy("repair it, then set it again")
    })?;
    act(&mut document)?;
    let (folder, name) = (path.parent().unwrap_or(&path), path.file_name().unwrap_or_default());
    State::at(folder).replace(&name.to_string_lossy(), document.to_string().into_bytes())?;
    Ok(path)
}

fn of_json(value: &Value) -> toml_edit::Value {
    match value {
        Value::Bool(is) => (*is).into(),
        Value::Number(number) => match number.as_i64() {
            Some(whole) => whole.into(),
            None => number.as_f64().unwrap_or_default().into(),
        },
        Value::Array(values) => values.iter().map(of_json).collect(),
        Value::String(text) => text.as_str().into(),
        Value::Null | Value::Object(_) => "none".into(),
    }
}
