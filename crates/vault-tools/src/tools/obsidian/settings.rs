//! Obsidian's own settings, as JSON: those of the program, its core plugins, and enabled community plugins.

use serde_json::Value;

use crate::error::{Error, ErrorKind, Result};
use crate::vault::Vault;

/// Reads a settings file, by its path in `.obsidian`; null if it does not exist.
///
/// # Errors
/// A file that is not JSON.
pub(in crate::tools) fn read(vault: &Vault, file: &str) -> Result<Value> {
    let Some(text) = vault.sandbox().obsidian_setting(file)? else { return Ok(Value::Null) };
    serde_json::from_str(&text).map_err(|error| {
        Error::new(ErrorKind::Config, format!("cannot be parsed: {error}"))
            .at(format!(".obsidian/{file}"))
            .with_remedy("choose these settings in Obsidian again, or delete the file")
    })
}

/// Reads the settings of a community plugin; null if it is not installed or is disabled.
///
/// # Errors
/// The errors of [`read`].
pub(in crate::tools) fn of_plugin(vault: &Vault, id: &str) -> Result<Value> {
    let plugins = read(vault, "community-plugins.json")?;
    match plugins.as_array().is_some_and(|plugins| plugins.iter().any(|plugin| plugin == id)) {
        true => read(vault, &format!("plugins/{id}/data.json")),
        false => Ok(Value::Null),
    }
}

/// Returns a text in the settings; empty if it is not set.
pub(in crate::tools) fn text<'s>(settings: &'s Value, key: &str) -> &'s str {
    settings[key].as_str().unwrap_or_default().trim()
}

/// Returns a folder in the settings, without slashes at its ends; empty for the vault's root.
pub(in crate::tools) fn folder<'s>(settings: &'s Value, key: &str) -> &'s str {
    text(settings, key).trim_matches('/')
}
