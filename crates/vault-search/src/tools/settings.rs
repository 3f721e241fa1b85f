//! Opens the vaults that a command works on, and reads the policy on what may run there from `tools.toml`.

use std::borrow::Cow;
use std::path::{Path, PathBuf};

use vault_index::dirs::config_folder;
use vault_index::settings_file::read_toml;
use vault_index::{Options as IndexOptions, check_vault_toml};
use vault_tools::{
    Error, ErrorKind, PolicySettings, Result, Vault, VaultOptions, View, builtin_tools, find_tool, is_tool_of, log_file,
};

use crate::{CliResult, Settings, UserConfig, VaultArgs, note, say, vaults_from};

/// The remedy for a `tools.toml` with unknown or invalid settings.
const REMEDY: &str = "vault-tools --help lists its settings";

/// Opens the vault that the arguments select. Its `.vault.toml` is not checked.
///
/// # Errors
/// Those of [`Settings::load`]; several vaults.
pub(super) fn open(vault_args: &VaultArgs) -> CliResult<Vault> {
    let settings = Settings::load(vault_args)?;
    open_folder(settings.only_vault()?, &settings)
}

/// Opens the vaults of the settings, one or several.
///
/// # Errors
/// A vault that cannot be opened.
pub(super) fn open_all(settings: &Settings) -> CliResult<Vec<Vault>> {
    settings.vaults.iter().map(|folder| open_folder(folder, settings)).collect()
}

/// A vault that is opened for a server.
#[derive(Debug)]
pub struct OpenedVault {
    /// The vault.
    pub vault: Vault,
    /// The policy on what may run there.
    pub settings: PolicySettings,
    /// The options with which its index is opened.
    pub index: IndexOptions,
}

/// Opens the vaults that the arguments select, each with its policy.
///
/// # Errors
/// A folder that does not exist; the home folder or `/` unless they were named; invalid settings.
pub fn open_with_settings(vault_args: &VaultArgs) -> CliResult<Vec<OpenedVault>> {
    let settings = Settings::load(vault_args)?;
    let with_settings = |vault: Vault| {
        vault.check_settings()?;
        let policy = policy(&vault)?;
        let index = settings.index_options(vault.path());
        Ok(OpenedVault { vault, settings: policy, index })
    };
    open_all(&settings)?.into_iter().map(with_settings).collect()
}

fn open_folder(folder: &Path, settings: &Settings) -> CliResult<Vault> {
    let mut options = VaultOptions::new();
    options.index = settings.index_options(folder);
    let vault = Vault::open_unchecked(folder, options)?;
    if let Some(recovered) = vault.recovered() {
        let except = if recovered.left.is_empty() { "" } else { ", except for the following" };
        let transaction = format!("transaction {} ({})", recovered.id, recovered.label);
        note(&format!("{transaction} was interrupted; its changes were rolled back{except}"));
        recovered.left.iter().for_each(|left| note(&format!("not rolled back: {left}")));
    }
    vault.warnings().iter().for_each(|warning| say("warning", warning));
    Ok(vault)
}

/// Returns the policy on what may run in a vault. Only the user's file decides, never a file in the vault.
///
/// # Errors
/// A file that cannot be parsed, or names a tool that does not exist, because a typo must not allow a tool that should
/// be denied.
pub(super) fn policy(vault: &Vault) -> Result<PolicySettings> {
    let settings = policy_of(&name_of(vault.path()))?;
    if is_newer_than_the_log(vault) {
        warn_of_absent_paths(&settings, vault)?;
    }
    Ok(settings)
}

/// Returns the errors in the user's `config.toml` and `tools.toml`, and in the `.vault.toml` of the selected vaults.
pub fn check_settings(vault_args: &VaultArgs) -> Vec<Error> {
    let mut faults: Vec<Error> = UserConfig::load().err().map(Error::from).into_iter().collect();
    // Without a vault, only the user's files are checked.
    let current = std::env::current_dir().unwrap_or_default();
    let folders = vaults_from(&current, vault_args).unwrap_or_default();
    let names = folders.iter().map(|folder| name_of(folder).into_owned());
    for name in std::iter::once(String::new()).chain(names) {
        let fault = policy_of(&name).and_then(|settings| settings.compile()).err();
        faults.extend(fault.filter(|fault| faults.iter().all(|known| known.to_string() != fault.to_string())));
    }
    faults.extend(folders.iter().filter_map(|folder| check_vault_toml(folder).err()).map(Error::from));
    faults
}

/// Returns the name of a vault, which is that of its folder.
pub(super) fn name_of(folder: &Path) -> Cow<'_, str> {
    folder.file_name().unwrap_or_default().to_string_lossy()
}

/// Returns the policy of the user's `tools.toml` for a vault with this name.
///
/// # Errors
/// A file that cannot be parsed, or names a tool that does not exist, because a typo must not allow a tool that should
/// be denied.
pub fn policy_of(name: &str) -> Result<PolicySettings> {
    let settings = read_policy()?.unwrap_or_default().of_vault(name);
    let is_glob = |name: &str| name.contains(['*', '?', '[', '{']);
    let tools = builtin_tools();
    // Tools of MCP servers, `server__tool`, are known only while such a server runs.
    let globs = settings.allowed_tools.iter().chain(&settings.denied_tools);
    let globs = globs.filter(|name| is_glob(name) && !name.contains("__"));
    for glob in globs {
        if !tools.iter().map(|tool| &tool.spec().name).any(|tool| is_tool_of(glob, tool)) {
            return Err(Error::new(ErrorKind::Config, format!("no tool matches {glob:?}")).at(of_user("tools.toml")));
        }
    }
    let named = settings.allowed_tools.iter().chain(&settings.denied_tools).filter(|name| !is_glob(name));
    // A built-in tool with one underscore too many is a typo, so it is checked and refused.
    let named = named.filter(|name| !name.contains("__") || find_tool(&tools, &name.replace("__", "_")).is_ok());
    for name in named.chain(settings.tools.keys()) {
        find_tool(&tools, name).map_err(|error| {
            let remedy = error.remedy().unwrap_or_default().to_owned();
            Error::new(ErrorKind::Config, format!("there is no tool {name:?}"))
                .at(of_user("tools.toml"))
                .with_remedy(remedy)
        })?;
    }
    Ok(settings)
}

/// Returns the path of a file in the user's configuration folder, for errors.
fn of_user(name: &str) -> String {
    config_folder().map_or_else(|| name.to_owned(), |folder| folder.join(name).display().to_string())
}

/// Whether `tools.toml` has changed since the last call in this vault, so that its warnings have not been shown yet.
fn is_newer_than_the_log(vault: &Vault) -> bool {
    let modified = |file: PathBuf| std::fs::metadata(file).and_then(|metadata| metadata.modified()).ok();
    let settings = config_folder().and_then(|folder| modified(folder.join("tools.toml")));
    settings.is_some_and(|settings| modified(log_file(vault.state())).is_none_or(|log| log <= settings))
}

/// Warns about paths of the settings that match nothing in the vault. Walks the vault, which is slow if it is large.
fn warn_of_absent_paths(settings: &PolicySettings, vault: &Vault) -> Result<()> {
    let allowed = settings.allowed_paths.iter().map(|path| (path, true));
    let denied = settings.denied_paths.iter().map(|path| (path, false));
    let mut entries = None;
    for (path, is_allowed) in allowed.chain(denied) {
        let mut alone = PolicySettings::default();
        let paths = if is_allowed { &mut alone.allowed_paths } else { &mut alone.denied_paths };
        paths.push(path.clone());
        let policy = alone.compile()?;
        let entries = entries.get_or_insert_with(|| vault.sandbox().walk(None).unwrap_or_default());
        if !entries.iter().any(|entry| policy.permits_path(entry.path.as_str()) == is_allowed) {
            // This is only a warning, because the settings apply to all vaults.
            say("warning", &format!("tools.toml: nothing in this vault matches {path:?}"));
        }
    }
    Ok(())
}

/// Reads the user's `tools.toml`; returns `None` if it does not exist.
fn read_policy() -> Result<Option<PolicySettings>> {
    let Some(file) = config_folder().map(|folder| folder.join("tools.toml")) else { return Ok(None) };
    read_toml(&file, REMEDY).map_err(|error| match error.kind() {
        vault_index::ErrorKind::Query => {
            Error::new(ErrorKind::Config, error.message()).at(file.display()).with_remedy(REMEDY)
        }
        _ => error.into(),
    })
}
