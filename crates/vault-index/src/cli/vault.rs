//! Which vault is meant: named, found upward from the current folder, configured, or the current folder.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use vault_cli::Failure;

use crate::{Error, ErrorKind, Result, dirs};

/// Whether the folder of a vault that is named has to be there.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum Presence {
    /// It has to be.
    #[default]
    There,
    /// It may be gone: what is kept about it is deleted.
    MayBeGone,
}

/// Where a vault may be named.
#[derive(Debug, Default)]
pub(super) struct Places<'a> {
    /// `--vault`, each time it is given.
    pub flags: &'a [PathBuf],
    /// `VAULT_DIR`.
    pub variable: Option<OsString>,
    /// The current folder.
    pub current: PathBuf,
    /// The default of the user's configuration, and the file that it stands in.
    pub configured: Option<(PathBuf, PathBuf)>,
    /// The home folder.
    pub home: Option<PathBuf>,
    /// Whether they have to be there.
    pub presence: Presence,
}

/// The vaults meant, canonical, each once, in the order they were named.
///
/// # Errors
/// A folder that is not there; the home folder or `/` when nobody named them.
pub(super) fn find(places: &Places<'_>) -> Result<Vec<PathBuf>, Failure> {
    let mut named: Vec<PathBuf> = places.flags.to_vec();
    // Where it was said, if not on the command line.
    let mut said: Option<&Path> = None;
    if named.is_empty() {
        named = places.variable.as_deref().map(folders_of).unwrap_or_default();
        said = Some(Path::new("VAULT_DIR"));
    }
    if named.is_empty() {
        let above = places.current.ancestors().find(|folder| folder.join(".obsidian").is_dir());
        match (above, &places.configured) {
            (Some(folder), _) => return unnamed(folder, places).map(|vault| vec![vault]),
            (None, Some((configured, file))) => {
                named.push(configured.clone());
                said = Some(file.as_path());
            }
            (None, None) => return unnamed(&places.current, places).map(|vault| vec![vault]),
        }
    }
    let mut vaults = Vec::with_capacity(named.len());
    for folder in named {
        let vault = match places.presence {
            Presence::There => dirs::canonical_vault(&folder),
            Presence::MayBeGone => dirs::vault_or_gone(&folder),
        };
        let vault = vault.map_err(|error| match said {
            Some(place) => Error::new(error.kind(), "the vault it names cannot be used").at(place).because(error),
            None => error,
        })?;
        if !vaults.contains(&vault) {
            vaults.push(vault);
        }
    }
    Ok(vaults)
}

/// One folder, or several separated as in `PATH`; a folder whose name holds the separator is one folder.
fn folders_of(text: &OsStr) -> Vec<PathBuf> {
    if text.is_empty() {
        return Vec::new();
    }
    match Path::new(text).is_dir() {
        true => vec![PathBuf::from(text)],
        false => std::env::split_paths(text).filter(|p| !p.as_os_str().is_empty()).collect(),
    }
}

fn unnamed(folder: &Path, places: &Places<'_>) -> Result<PathBuf, Failure> {
    let vault = dirs::canonical_vault(folder)?;
    let is_home = places.home.as_deref().is_some_and(|home| home.canonicalize().is_ok_and(|home| home == vault));
    if !is_home && vault.parent().is_some() {
        return Ok(vault);
    }
    let what = if is_home { "your home folder" } else { "the root of the file system" };
    Err(Failure::Refused(
        Error::new(ErrorKind::Vault, format!("{what} is not taken as a vault unless it is named"))
            .at(&vault)
            .with_remedy("name the folder that holds your notes with --vault DIR or VAULT_DIR")
            .to_string(),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::create_dir_all;

    /// A home folder with a vault, a plain folder and a folder inside the vault.
    fn home() -> (tempfile::TempDir, PathBuf) {
        let dir = tempfile::tempdir().unwrap();
        let home = dir.path().canonicalize().unwrap();
        for folder in ["notes/.obsidian", "notes/a/b", "plain"] {
            create_dir_all(home.join(folder)).unwrap();
        }
        (dir, home)
    }

    fn found(places: &Places<'_>, home: &Path) -> Vec<String> {
        let vaults = find(places).unwrap();
        vaults.iter().map(|v| v.strip_prefix(home).unwrap().to_string_lossy().into_owned()).collect()
    }

    #[test]
    fn the_order_of_places() {
        let (_dir, home) = home();
        let inside = Places { current: home.join("notes/a/b"), home: Some(home.clone()), ..Places::default() };
        assert_eq!(found(&inside, &home), ["notes"]);
        let plain = || Places { current: home.join("plain"), home: Some(home.clone()), ..Places::default() };
        assert_eq!(found(&plain(), &home), ["plain"]);
        let file = PathBuf::from("config.toml");
        let configured = || Places { configured: Some((home.join("notes"), file.clone())), ..plain() };
        assert_eq!(found(&configured(), &home), ["notes"]);
        let variable = || Places { variable: Some(home.join("notes/a").into()), ..configured() };
        assert_eq!(found(&variable(), &home), ["notes/a"]);
        let flags = [home.join("plain")];
        assert_eq!(found(&Places { flags: &flags, ..variable() }, &home), ["plain"]);
    }

    #[test]
    fn several_vaults_each_once() {
        let (_dir, home) = home();
        let joined = std::env::join_paths([home.join("plain"), home.join("notes"), home.join("plain")]).unwrap();
        let places = Places { variable: Some(joined), current: home.clone(), ..Places::default() };
        assert_eq!(found(&places, &home), ["plain", "notes"]);
        assert_eq!(folders_of(OsStr::new("")), Vec::<PathBuf>::new());
    }

    #[test]
    fn home_and_root_must_be_named() {
        let (_dir, home) = home();
        for current in [home.as_path(), Path::new("/")] {
            let unnamed = Places { current: current.to_path_buf(), home: Some(home.clone()), ..Places::default() };
            assert!(matches!(find(&unnamed), Err(Failure::Refused(_))), "{}", current.display());
            let flags = [current.to_path_buf()];
            assert!(find(&Places { flags: &flags, ..unnamed }).is_ok(), "{}", current.display());
        }
        create_dir_all(home.join(".obsidian")).unwrap();
        let below = Places { current: home.join("plain"), home: Some(home.clone()), ..Places::default() };
        assert!(matches!(find(&below), Err(Failure::Refused(_))));
    }

    #[test]
    fn a_missing_folder_says_what_to_do() {
        let flags = [PathBuf::from("no/such/folder")];
        let Err(Failure::Error(error)) = find(&Places { flags: &flags, ..Places::default() }) else { panic!() };
        assert!(error.to_string().contains("--vault DIR"), "{error}");
        let gone = Places { flags: &flags, presence: Presence::MayBeGone, ..Places::default() };
        assert_eq!(find(&gone).unwrap(), [std::env::current_dir().unwrap().canonicalize().unwrap().join(&flags[0])]);
    }

    #[test]
    fn a_missing_folder_that_no_flag_names_says_where_it_is_named() {
        let variable = Places { variable: Some("/no/such/folder".into()), ..Places::default() };
        let file = PathBuf::from("/c/config.toml");
        let configured = Some((PathBuf::from("/no/such/folder"), file));
        let configured = Places { configured, current: std::env::temp_dir(), ..Places::default() };
        for (places, says) in [(variable, "VAULT_DIR: "), (configured, "config.toml: ")] {
            let Err(Failure::Error(error)) = find(&places) else { panic!() };
            let text = error;
            assert!(text.contains(says) && text.contains("/no/such/folder: there is no such folder"), "{text}");
        }
    }
}
