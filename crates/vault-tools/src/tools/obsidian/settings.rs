//! Obsidian's own settings, as JSON: those of the program and its core plugins, and those of community plugins that are on.

use serde_json::Value;

use crate::error::{Error, ErrorKind, Result};
use crate::vault::Vault;

/// A settings file, by its path in `.obsidian`; null when there is none.
///
/// # Errors
/// A file that is no JSON.
pub(in crate::tools) fn read(vault: &Vault, file: &str) -> Result<Value> {
    let Some(text) = vault.sandbox().obsidian_setting(file)? else { return Ok(Value::Null) };
    serde_json::from_str(&text).map_err(|error| {
        Error::new(ErrorKind::Config, format!("cannot be parsed: {error}"))
            .at(format!(".obsidian/{file}"))
            .with_remedy("choose these settings in Obsidian again, or delete the file")
    })
}

/// The settings of a community plugin; null where it is not there or switched off.
///
/// # Errors
/// As [`read`].
pub(in crate::tools) fn of_plugin(vault: &Vault, id: &str) -> Result<Value> {
    let plugins = read(vault, "community-plugins.json")?;
    match plugins.as_array().is_some_and(|plugins| plugins.iter().any(|plugin| plugin == id)) {
        true => read(vault, &format!("plugins/{id}/data.json")),
        false => Ok(Value::Null),
    }
}

/// A text of the settings; empty where there is none.
pub(in crate::tools) fn text<'s>(settings: &'s Value, key: &str) -> &'s str {
    settings[key].as_str().unwrap_or_default().trim()
}

/// A folder of the settings, without slashes at its ends; empty for the vault's root.
pub(in crate::tools) fn folder<'s>(settings: &'s Value, key: &str) -> &'s str {
    text(settings, key).trim_matches('/')
}
