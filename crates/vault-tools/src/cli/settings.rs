//! Which vault a command works on and what may run there: flags over environment over configuration.

use std::path::{Path, PathBuf};

use serde::Deserialize;
use serde::de::DeserializeOwned;
use vault_cli::{note, say};

use super::args::VaultArgs;
use crate::error::{Error, ErrorKind, Result};
use crate::policy::Settings;
use crate::vault::{Vault, VaultOptions};

/// The setting of the search commands that counts here too.
#[derive(Debug, Default, Deserialize)]
struct SearchConfig {
    vault: Option<String>,
}

/// Opens the vault that is meant.
///
/// # Errors
/// No such folder; the home folder or `/` when nobody named them; a configuration that cannot be understood.
pub(super) fn open(vault_args: &VaultArgs) -> Result<Vault> {
    let index_file = vault_args.index.clone().or_else(|| variable("VAULT_INDEX_FILE"));
    let mut index = vault_index::Options::new();
    index.index_file = index_file;
    let vault = Vault::open(folder(vault_args)?, VaultOptions { index, ..VaultOptions::default() })?;
    if let Some(recovered) = vault.recovered() {
        let except = if recovered.left.is_empty() { "" } else { ", except for the following" };
        let transaction = format!("transaction {} ({})", recovered.id, recovered.label);
        note(&format!("{transaction} was interrupted; its changes were rolled back{except}"));
        recovered.left.iter().for_each(|left| note(&format!("not rolled back: {left}")));
    }
    vault.warnings().iter().for_each(|warning| say("warning", warning));
    Ok(vault)
}

/// What may run: the user's file alone decides, never a file in the vault.
///
/// # Errors
/// A file that cannot be understood.
pub(super) fn policy() -> Result<Settings> {
    Ok(read("tools.toml")?.unwrap_or_default())
}

/// The folder of the vault that is meant, as it was named.
pub(super) fn folder(vault_args: &VaultArgs) -> Result<PathBuf> {
    let current = std::env::current_dir().map_err(|error| Error::io(".", &error))?;
    if let Some(named) = vault_args.vault.clone().or_else(|| variable("VAULT_DIR")) {
        return Ok(named);
    }
    if let Some(above) = current.ancestors().find(|folder| folder.join(".obsidian").is_dir()) {
        return unnamed(above);
    }
    let config: SearchConfig = read("config.toml")?.unwrap_or_default();
    match config.vault {
        Some(vault) => Ok(match (vault.strip_prefix("~/"), vault_index::internal::home()) {
            (Some(rest), Some(home)) => home.join(rest),
            _ => PathBuf::from(vault),
        }),
        None => unnamed(&current),
    }
}

fn unnamed(folder: &Path) -> Result<PathBuf> {
    let canonical = |path: &Path| path.canonicalize().ok();
    let is_home = vault_index::internal::home().is_some_and(|home| canonical(&home) == canonical(folder));
    if !is_home && folder.parent().is_some() {
        return Ok(folder.to_path_buf());
    }
    let what = if is_home { "your home folder" } else { "the root of the file system" };
    Err(Error::new(ErrorKind::Refused, format!("{what} is not taken as a vault unless it is named"))
        .with_remedy("name the folder that holds your notes with --vault DIR or VAULT_DIR"))
}

/// A variable that is set to nothing is not set.
fn variable(name: &str) -> Option<PathBuf> {
    std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from)
}

/// A file of the user's configuration folder; `None` if there is none.
fn read<T: DeserializeOwned>(name: &str) -> Result<Option<T>> {
    let Some(file) = vault_index::internal::config_folder().map(|folder| folder.join(name)) else { return Ok(None) };
    match std::fs::read_to_string(&file) {
        Ok(text) => toml::from_str(&text).map(Some).map_err(|error| {
            Error::new(ErrorKind::Config, format!("cannot be understood: {}", error.message()))
                .at(file.display())
                .with_remedy("vault-tools --help says what it may hold")
        }),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(Error::io(file.display(), &error)),
    }
}
