//! `.vault.toml`, the settings that a vault brings along: excluded files and the rules of its checks, nothing else.

use std::fs;
use std::path::Path;

use serde::Deserialize;

use crate::error::{Error, ErrorKind, Result};
use crate::settings_file::read_toml;

/// The vault's own settings, relative to the vault.
pub(super) const VAULT_TOML: &str = ".vault.toml";

/// The contents of `.vault.toml`. A vault may come from a stranger, so its file decides only which further files are
/// excluded, and what a check of the vault reports.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct VaultToml {
    pub(super) exclude: Vec<String>,
    lint: LintTable,
}

impl VaultToml {
    /// Reads the file; the defaults if there is none.
    ///
    /// # Errors
    /// [`ErrorKind::Query`], with the line.
    pub(super) fn read(file: &Path) -> Result<Self> {
        const REMEDY: &str = "a .vault.toml may hold exclude = [\"GLOB\"], a table [lint] with on, off and ignore, and nothing else; all other settings are the user's";
        if fs::symlink_metadata(file).is_ok_and(|metadata| metadata.is_symlink()) {
            let error = Error::new(ErrorKind::Query, "is a symbolic link, which is not followed").at(file);
            return Err(error.with_remedy("put the file itself there"));
        }
        Ok(read_toml(file, REMEDY)?.unwrap_or_default())
    }
}

/// A vault's settings for the checks that are made of it. The rules and globs are not validated here.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct LintTable {
    /// Rules that are turned off.
    pub off: Vec<String>,
    /// Rules that are turned on besides those that always apply.
    pub on: Vec<String>,
    /// Globs of files about which nothing is reported.
    pub ignore: Vec<String>,
}

impl LintTable {
    /// Reads the table `[lint]` of a vault's `.vault.toml`.
    ///
    /// # Errors
    /// [`ErrorKind::Query`], with the line.
    pub fn of(vault: &Path) -> Result<Self> {
        Ok(VaultToml::read(&vault.join(VAULT_TOML))?.lint)
    }
}

/// Checks that a vault's `.vault.toml`, if it has one, is valid.
///
/// # Errors
/// [`ErrorKind::Query`], with the line.
pub fn check_vault_toml(vault: &Path) -> Result<()> {
    VaultToml::read(&vault.join(VAULT_TOML)).map(drop)
}
