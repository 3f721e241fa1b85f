//! Finds the vaults that a command works on: from flags, environment, current folder and configuration, in this order.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use serde::Deserialize;

use crate::exit::{CliResult, Failure, note};

/// Folders in a settings file: one folder as a string, or a list of folders.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(from = "FolderValue")]
pub struct FolderList(pub Vec<String>);

#[derive(Deserialize)]
#[serde(untagged, expecting = "a folder, or a list of folders")]
enum FolderValue {
    One(String),
    More(Vec<String>),
}

impl From<FolderValue> for FolderList {
    fn from(folders: FolderValue) -> Self {
        match folders {
            FolderValue::One(folder) => Self(vec![folder]),
            FolderValue::More(folders) => Self(folders),
        }
    }
}

/// The sources that may name a vault.
#[derive(Debug, Clone, Default)]
pub struct VaultSources<'a> {
    /// The values of `--vault`.
    pub flags: &'a [PathBuf],
    /// `VAULT_DIR`; an empty value counts as not set.
    pub variable: Option<OsString>,
    /// The current folder.
    pub current: PathBuf,
    /// The default of the user's configuration, one folder or several, where `~/` is the home folder, and the path of
    /// the configuration file.
    pub configured: Option<(Vec<String>, PathBuf)>,
    /// The home folder.
    pub home: Option<PathBuf>,
    /// The nearest folder that has an index of its own, among the current folder and its ancestors.
    pub indexed: Option<PathBuf>,
}

/// The vaults that a command works on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NamedVaults {
    /// At least one folder, as it was named. A folder may not exist.
    pub folders: Vec<PathBuf>,
    /// The variable or file that names them; `None` if the command line or the current folder does.
    pub named_in: Option<PathBuf>,
}

/// Finds the vaults that a command works on. If none is named, this is the nearest folder upward with an `.obsidian`
/// folder, else the nearest one with an index of its own (with a notice), else the current folder.
///
/// # Errors
/// [`Failure::Refused`] for the home folder and `/` unless they were named.
pub fn find_vaults(sources: &VaultSources<'_>) -> CliResult<NamedVaults> {
    if !sources.flags.is_empty() {
        return Ok(NamedVaults { folders: sources.flags.to_vec(), named_in: None });
    }
    let folders = sources.variable.as_deref().map(folders_of).unwrap_or_default();
    if !folders.is_empty() {
        return Ok(NamedVaults { folders, named_in: Some("VAULT_DIR".into()) });
    }
    let above = sources.current.ancestors().find(|folder| folder.join(".obsidian").is_dir());
    match (above, &sources.configured) {
        (None, Some((vaults, file))) if !vaults.is_empty() => {
            let folder = |vault: &String| match (vault.strip_prefix("~/"), &sources.home) {
                (Some(rest), Some(home)) => home.join(rest),
                _ => PathBuf::from(vault),
            };
            Ok(NamedVaults { folders: vaults.iter().map(folder).collect(), named_in: Some(file.clone()) })
        }
        (above, _) => {
            let home = sources.home.as_deref();
            let indexed = sources.indexed.as_deref().filter(|folder| refuse_home_and_root(folder, home).is_ok());
            let folder = above.or(indexed).unwrap_or(&sources.current);
            refuse_home_and_root(folder, home)?;
            if above.is_none() && indexed.is_some_and(|indexed| indexed != sources.current) {
                note(&format!("the vault is {}, which has an index (another: --vault DIR)", folder.display()));
            }
            Ok(NamedVaults { folders: vec![folder.to_path_buf()], named_in: None })
        }
    }
}

/// Splits a list of folders, separated as in `PATH`. The text is one folder if a folder of this name exists, because
/// its name may contain the separator.
fn folders_of(text: &OsStr) -> Vec<PathBuf> {
    match Path::new(text).is_dir() {
        true => vec![PathBuf::from(text)],
        false => std::env::split_paths(text).filter(|path| !path.as_os_str().is_empty()).collect(),
    }
}

fn refuse_home_and_root(folder: &Path, home: Option<&Path>) -> CliResult<()> {
    let Ok(folder) = folder.canonicalize() else { return Ok(()) };
    let is_home = home.is_some_and(|home| home.canonicalize().is_ok_and(|home| home == folder));
    if !is_home && folder.parent().is_some() {
        return Ok(());
    }
    let what = if is_home { "your home folder" } else { "the root of the file system" };
    Err(Failure::Refused(format!(
        "{}: {what} is not taken as a vault unless it is named (name the folder that holds your notes with --vault DIR \
         or VAULT_DIR)",
        folder.display()
    )))
}

#[cfg(test)]
mod tests {
    use std::fs::create_dir_all;

    use super::*;

    /// A home folder with a vault, a plain folder and a folder inside the vault.
    fn home() -> (tempfile::TempDir, PathBuf) {
        let dir = tempfile::tempdir().unwrap();
        let home = dir.path().canonicalize().unwrap();
        for folder in ["notes/.obsidian", "notes/a/b", "plain"] {
            create_dir_all(home.join(folder)).unwrap();
        }
        (dir, home)
    }

    fn found(sources: &VaultSources<'_>, home: &Path) -> Vec<String> {
        let vaults = find_vaults(sources).unwrap().folders;
        vaults.iter().map(|v| v.strip_prefix(home).unwrap().to_string_lossy().into_owned()).collect()
    }

    #[test]
    fn the_order_of_sources() {
        let (_dir, home) = home();
        let inside =
            VaultSources { current: home.join("notes/a/b"), home: Some(home.clone()), ..VaultSources::default() };
        assert_eq!(found(&inside, &home), ["notes"]);
        let plain =
            || VaultSources { current: home.join("plain"), home: Some(home.clone()), ..VaultSources::default() };
        assert_eq!(found(&plain(), &home), ["plain"]);
        let file = PathBuf::from("config.toml");
        let configured = || VaultSources { configured: Some((vec!["~/notes".into()], file.clone())), ..plain() };
        assert_eq!(found(&configured(), &home), ["notes"]);
        let variable = || VaultSources { variable: Some(home.join("notes/a").into()), ..configured() };
        assert_eq!(found(&variable(), &home), ["notes/a"]);
        let flags = [home.join("plain")];
        assert_eq!(found(&VaultSources { flags: &flags, ..variable() }, &home), ["plain"]);
    }

    #[test]
    fn a_variable_can_name_several() {
        let (_dir, home) = home();
        let joined = std::env::join_paths([home.join("plain"), home.join("notes")]).unwrap();
        let sources = VaultSources { variable: Some(joined), current: home.clone(), ..VaultSources::default() };
        assert_eq!(found(&sources, &home), ["plain", "notes"]);
        assert_eq!(folders_of(OsStr::new("")), Vec::<PathBuf>::new());
    }

    #[test]
    fn a_folder_upward_with_an_index_comes_before_the_current_one() {
        let (_dir, home) = home();
        let in_plain = |indexed: &Path| VaultSources {
            current: home.join("plain"),
            home: Some(home.clone()),
            indexed: Some(indexed.to_path_buf()),
            ..VaultSources::default()
        };
        assert_eq!(found(&in_plain(&home.join("notes")), &home), ["notes"]);
        assert_eq!(found(&in_plain(&home), &home), ["plain"], "what is refused unnamed is not taken");
        let configured = Some((vec!["~/notes/a".to_string()], PathBuf::from("config.toml")));
        assert_eq!(found(&VaultSources { configured, ..in_plain(&home.join("notes")) }, &home), ["notes/a"]);
        let inside = VaultSources { current: home.join("notes/a"), ..in_plain(&home.join("notes/a")) };
        assert_eq!(found(&inside, &home), ["notes"]);
    }

    #[test]
    fn home_and_root_must_be_named() {
        let (_dir, home) = home();
        for current in [home.as_path(), Path::new("/")] {
            let unnamed =
                VaultSources { current: current.to_path_buf(), home: Some(home.clone()), ..VaultSources::default() };
            assert!(matches!(find_vaults(&unnamed), Err(Failure::Refused(_))), "{}", current.display());
            let flags = [current.to_path_buf()];
            assert!(find_vaults(&VaultSources { flags: &flags, ..unnamed }).is_ok(), "{}", current.display());
        }
        create_dir_all(home.join(".obsidian")).unwrap();
        let below = VaultSources { current: home.join("plain"), home: Some(home.clone()), ..VaultSources::default() };
        assert!(matches!(find_vaults(&below), Err(Failure::Refused(_))));
    }
}
