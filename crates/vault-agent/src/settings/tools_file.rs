//! The file `tools.toml` in the user's configuration folder, which sets what tools may do: its settings, under the
//! names of `config set`, and the lasting permissions.

use std::path::PathBuf;

use serde_json::{Value, json};
use toml_edit::{ArrayOfTables, DocumentMut, Item, Table};
use vault_tools::{Error, ErrorKind, LastingPermission, PolicySettings, Result};

use super::file::{change_file, config_file, put};
use super::value::Kind;
use crate::known_providers::meant;

/// The prefix that tells the names of these settings from those of `agent.toml`.
pub(crate) const PREFIX: &str = "policy.";

const PERMISSIONS: &str = "permissions";

/// Returns the path of `tools.toml`, whether or not the file exists.
///
/// # Errors
/// When the system names no configuration folder.
pub(crate) fn tools_path() -> Result<PathBuf> {
    config_file("tools.toml")
}

/// Sets `allow_delete`, `denied_paths`, `tools.NAME` or another setting, or removes it. Everything else in the file
/// stays as it was written.
///
/// # Errors
/// An unknown setting; an invalid value; a file that cannot be parsed or written.
pub(crate) fn set_policy(name: &str, text: Option<&str>) -> Result<PathBuf> {
    let bad = |message: String| Error::new(ErrorKind::InvalidArguments, format!("{PREFIX}{name}: {message}"));
    let default = serde_json::to_value(PolicySettings::default()).unwrap_or_default();
    let (table, key) = match name.split_once('.') {
        Some(("tools", tool)) => (Some("tools"), tool),
        _ => (None, name),
    };
    let before = match table {
        Some(_) => &Value::Null,
        None => default.get(name).ok_or_else(|| {
            let meant = meant(name, default.as_object().into_iter().flat_map(|all| all.keys().map(String::as_str)));
            let meant = meant.map(|meant| format!("; did you mean {PREFIX}{meant}?")).unwrap_or_default();
            bad(format!("there is no such setting{meant}")).with_remedy("vault-agent config show lists the settings")
        })?,
    };
    let value = match (text, before) {
        (_, Value::Object(_)) => {
            let file = tools_path()?.display().to_string();
            return Err(bad("this is a table".to_owned()).with_remedy(format!("write it into {file}")));
        }
        (_, Value::Array(_)) if name == PERMISSIONS => {
            return Err(bad("these are given where a change is shown".to_owned())
                .with_remedy("/permissions in vault-agent chat lists and revokes them"));
        }
        (None, _) => None,
        (Some(text), before) => {
            let kind = match before {
                Value::Bool(_) => Kind::Switch,
                Value::Array(_) => Kind::List,
                _ => Kind::Text,
            };
            Some(kind.of_text(text).map_err(bad)?)
        }
    };
    change_tools(|document| {
        let at: &mut Table = match table {
            Some(table) => table_of(document, table),
            None => document.as_table_mut(),
        };
        match value {
            None => drop(at.remove(key)),
            Some(value) => put(at, key, &value),
        }
    })
}

/// Adds a lasting permission for the vault of this name.
///
/// # Errors
/// A file that cannot be parsed or written.
pub(crate) fn add_permission(vault: &str, permission: &LastingPermission) -> Result<PathBuf> {
    change_tools(|document| {
        let mut entry = Table::new();
        put(&mut entry, "tool", &json!(permission.tool));
        put(&mut entry, "folder", &json!(permission.folder));
        if let Some(all) = permissions_of(document, vault) {
            all.push(entry);
        }
    })
}

/// Revokes a permission, wherever the file grants it to the vault of this name.
///
/// # Errors
/// A file that cannot be parsed or written.
pub(crate) fn remove_permission(vault: &str, permission: &LastingPermission) -> Result<PathBuf> {
    change_tools(|document| {
        let is_it = |entry: &Table| {
            let text = |name: &str| entry.get(name).and_then(Item::as_str);
            text("tool") == Some(&permission.tool) && text("folder") == Some(&permission.folder)
        };
        if let Some(all) = document.get_mut(PERMISSIONS).and_then(Item::as_array_of_tables_mut) {
            all.retain(|entry| !is_it(entry));
        }
        if let Some(all) = permissions_of(document, vault) {
            all.retain(|entry| !is_it(entry));
        }
    })
}

fn permissions_of<'d>(document: &'d mut DocumentMut, vault: &str) -> Option<&'d mut ArrayOfTables> {
    let vaults = table_of(document, "vault");
    // The names of vaults are compared without regard to case.
    let known = vaults.iter().map(|(name, _)| name.to_owned()).find(|name| name.to_lowercase() == vault.to_lowercase());
    let name = known.unwrap_or_else(|| vault.to_owned());
    let of_vault = vaults.entry(&name).or_insert_with(|| implicit_table().into());
    let all = of_vault.as_table_mut()?.entry(PERMISSIONS).or_insert_with(|| ArrayOfTables::new().into());
    all.as_array_of_tables_mut()
}

/// Returns a table of the document, and creates it if it is missing.
fn table_of<'d>(document: &'d mut DocumentMut, name: &str) -> &'d mut Table {
    let item = document.entry(name).or_insert_with(|| implicit_table().into());
    if !item.is_table() {
        let inline = std::mem::take(item);
        *item = Item::Table(inline.into_table().unwrap_or_default());
    }
    item.as_table_mut().expect("it was made one")
}

/// A table whose header is written only if the table has values of its own.
fn implicit_table() -> Table {
    let mut table = Table::new();
    table.set_implicit(true);
    table
}

/// Changes the file, but only if the result is still valid.
fn change_tools(act: impl FnOnce(&mut DocumentMut)) -> Result<PathBuf> {
    let path = tools_path()?;
    change_file(path.clone(), |document| {
        act(document);
        let mut policy: PolicySettings = toml_edit::de::from_str(&document.to_string())
            .map_err(|error| Error::new(ErrorKind::Config, error.message().to_owned()).at(path.display()))?;
        let vaults: Vec<String> = policy.vault.keys().cloned().collect();
        vaults.iter().try_for_each(|vault| policy.clone().of_vault(vault).compile().map(drop))?;
        policy.vault.clear();
        policy.compile().map(drop)
    })
}
