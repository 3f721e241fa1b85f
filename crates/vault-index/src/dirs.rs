//! The user's folders for indexes, settings and state, and the folder of a vault.

use std::path::{Path, PathBuf};

use crate::error::{Error, ErrorKind, Result};

const APP: &str = "vault-index";

/// The vault's folder, canonical.
///
/// # Errors
/// [`ErrorKind::Vault`] when there is no such folder, or it cannot be read.
pub fn canonical_vault(vault: &Path) -> Result<PathBuf> {
    let missing = |why: &str| {
        Error::new(ErrorKind::Vault, why)
            .at(vault)
            .with_remedy("name the folder that holds your notes with --vault DIR")
    };
    let canonical = std::fs::canonicalize(vault).map_err(|error| match error.kind() {
        std::io::ErrorKind::NotFound => missing("there is no such folder"),
        _ => missing("the vault cannot be opened").because(error),
    })?;
    if !canonical.is_dir() {
        return Err(missing("this is not a folder"));
    }
    if let Err(error) = std::fs::read_dir(&canonical) {
        return Err(missing("this folder cannot be read")
            .because(error)
            .with_remedy("give yourself the permission to read it, or name another folder with --vault DIR"));
    }
    Ok(canonical)
}

/// The folder of a vault that may no longer exist, with the canonical path that it had: the parent folders that still
/// exist are canonical.
pub fn vault_or_gone(vault: &Path) -> Result<PathBuf> {
    let absolute = std::path::absolute(vault).map_err(|error| Error::io(vault, error))?;
    for above in absolute.ancestors() {
        if let Ok(canonical) = std::fs::canonicalize(above) {
            let rest = absolute.strip_prefix(above).unwrap_or(Path::new(""));
            // `join("")` would add a separator, which would change the key.
            return Ok(if rest.as_os_str().is_empty() { canonical } else { canonical.join(rest) });
        }
    }
    Ok(absolute)
}

/// The index file of a vault: in the user's cache folder, keyed by the canonical path.
///
/// # Errors
/// When the vault does not exist or the system names no cache folder.
pub fn default_index_file(vault: &Path) -> Result<PathBuf> {
    Ok(index_folder_of(&canonical_vault(vault)?)?.join("index.db"))
}

/// The folder of a vault that may no longer exist: `canonical` is taken as it is.
pub(crate) fn index_folder_of(canonical: &Path) -> Result<PathBuf> {
    Ok(indexes_folder()?.join(key_of_vault(canonical)))
}

/// The nearest folder upward, this one included, that has an index in the user's cache folder.
pub fn indexed_above(folder: &Path) -> Option<PathBuf> {
    let canonical = std::fs::canonicalize(folder).ok()?;
    let has_index = |above: &&Path| default_index_file(above).is_ok_and(|file| file.is_file());
    canonical.ancestors().find(has_index).map(Path::to_path_buf)
}

/// The folder that contains the folder of each vault.
pub(crate) fn indexes_folder() -> Result<PathBuf> {
    let cache = cache_folder().ok_or_else(|| {
        Error::new(ErrorKind::Io, "the system names no cache folder")
            .with_remedy("set HOME, or choose a file with --index FILE")
    })?;
    Ok(cache.join(APP))
}

/// The folder of models that were added. Not within that of the indexes, where every folder belongs to a vault.
#[cfg(feature = "minilm")]
pub(crate) fn models_folder() -> Result<PathBuf> {
    let cache = cache_folder()
        .ok_or_else(|| Error::new(ErrorKind::Io, "the system names no cache folder").with_remedy("set HOME"))?;
    Ok(cache.join("vault-models"))
}

/// The folder of the models that fastembed downloads: `asked`, else `FASTEMBED_CACHE_DIR`, else in the user's cache folder.
#[cfg(feature = "fastembed")]
pub(crate) fn downloads_folder(asked: Option<&Path>) -> Result<PathBuf> {
    match (asked, std::env::var_os("FASTEMBED_CACHE_DIR")) {
        (Some(folder), _) => Ok(folder.to_path_buf()),
        (None, Some(folder)) => Ok(folder.into()),
        (None, None) => cache_folder().map(|folder| folder.join(APP).join("models")).ok_or_else(|| {
            Error::new(ErrorKind::Model, "the system names no cache folder to keep the model in")
                .with_remedy("set FASTEMBED_CACHE_DIR")
        }),
    }
}

/// The name of the folder that belongs to a vault, in any of the user's folders: readable and unique to the vault.
pub fn key_of_vault(canonical: &Path) -> String {
    let hash = blake3::hash(canonical.as_os_str().as_encoded_bytes()).to_hex();
    let name = canonical.file_name().map(|name| name.to_string_lossy()).unwrap_or_default();
    let plain = name.chars().filter(|c| c.is_alphanumeric() || matches!(c, '-' | '_')).take(32);
    format!("{}-{}", plain.collect::<String>(), &hash[..16])
}

/// The user's cache folder, as the system's conventions name it.
pub fn cache_folder() -> Option<PathBuf> {
    user_folder("Library/Caches", "LOCALAPPDATA", "XDG_CACHE_HOME", ".cache")
}

/// The user's configuration folder.
pub fn config_folder() -> Option<PathBuf> {
    user_folder("Library/Application Support", "APPDATA", "XDG_CONFIG_HOME", ".config").map(|folder| folder.join(APP))
}

/// The user's state folder: for data that is neither a setting nor a cache.
pub fn state_folder() -> Option<PathBuf> {
    let folder = user_folder("Library/Application Support", "LOCALAPPDATA", "XDG_STATE_HOME", ".local/state");
    folder.map(|folder| folder.join(APP))
}

/// A folder of the user's: on macOS within home; on Windows by a variable; elsewhere by one, else within home.
fn user_folder(macos: &str, windows: &str, xdg: &str, in_home: &str) -> Option<PathBuf> {
    if cfg!(target_os = "macos") {
        home().map(|h| h.join(macos))
    } else if cfg!(windows) {
        variable(windows)
    } else {
        variable(xdg).or_else(|| home().map(|h| h.join(in_home)))
    }
}

/// The user's home folder.
pub fn home() -> Option<PathBuf> {
    std::env::home_dir().filter(|h| h.is_absolute())
}

/// A folder from an environment variable; relative paths are ignored, as the XDG convention requires.
fn variable(name: &str) -> Option<PathBuf> {
    std::env::var_os(name).map(PathBuf::from).filter(|p| p.is_absolute())
}

/// A file beside the index, named after it with an ending.
pub(crate) fn beside(index: &Path, ending: &str) -> PathBuf {
    let mut name = index.as_os_str().to_os_string();
    name.push(ending);
    PathBuf::from(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_vault_that_is_gone_has_the_name_it_had() {
        let dir = tempfile::tempdir().unwrap();
        let vault = dir.path().join("a/vault");
        std::fs::create_dir_all(&vault).unwrap();
        let before = canonical_vault(&vault).unwrap();
        assert_eq!(vault_or_gone(&vault).unwrap(), before);
        for gone in [vault, dir.path().join("a")] {
            std::fs::remove_dir(&gone).unwrap();
            assert_eq!(vault_or_gone(&dir.path().join("a/vault")).unwrap(), before);
        }
    }
}
