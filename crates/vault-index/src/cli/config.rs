//! The two configuration files: the user's own, and a vault's `.vault.toml`, which may only skip more.

use std::io::Read;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use serde::de::DeserializeOwned;

use crate::{Error, ErrorKind, Mode, Result, place};

/// No configuration is larger; a file that is, is something else.
const MAX_BYTES: u64 = 64 * 1024;

/// `config.toml` in the user's configuration folder.
#[derive(Debug, Default, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct UserConfig {
    /// The vault, where neither a flag nor the current folder names one. `~/` is the home folder.
    pub vault: Option<String>,
    /// As `--model` takes it.
    pub model: Option<String>,
    /// As `--base-url` takes it.
    pub base_url: Option<String>,
    /// Globs of what no vault's index holds.
    pub exclude: Vec<String>,
    /// Results of a search.
    pub limit: Option<usize>,
    /// How a search ranks.
    pub mode: Option<Mode>,
}

const USER_REMEDY: &str = "it may hold vault, model, base_url, exclude = [\"GLOB\"], limit and mode = \"hybrid\", \
                           \"semantic\" or \"lexical\"";

/// `.vault.toml` in a vault. A vault may come from a stranger, so it decides nothing but what to skip.
#[derive(Debug, Default, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct VaultConfig {
    exclude: Vec<String>,
}

const VAULT_REMEDY: &str =
    "a .vault.toml may hold exclude = [\"GLOB\"] and nothing else; all other settings are the user's";

impl UserConfig {
    /// The user's file; the default where there is none.
    ///
    /// # Errors
    /// When it cannot be read or says something it may not say.
    pub(super) fn load() -> Result<Self> {
        match place::config_folder() {
            Some(folder) => Self::from_file(&folder.join("config.toml")),
            None => Ok(Self::default()),
        }
    }

    fn from_file(file: &Path) -> Result<Self> {
        let config: Self = parse(file, USER_REMEDY)?.unwrap_or_default();
        if config.limit == Some(0) {
            return Err(Error::new(ErrorKind::Query, "limit is 0").at(file).remedy("write 1 or more"));
        }
        Ok(config)
    }

    /// The default vault, with `~/` written out.
    pub(super) fn vault(&self, home: Option<&Path>) -> Option<PathBuf> {
        let text = self.vault.as_deref()?;
        Some(match (text.strip_prefix("~/"), home) {
            (Some(rest), Some(home)) => home.join(rest),
            _ => PathBuf::from(text),
        })
    }
}

/// The globs of a vault's own `.vault.toml`; none where there is no such file.
///
/// # Errors
/// When it cannot be read or holds anything but `exclude`.
pub(super) fn vault_excludes(vault: &Path) -> Result<Vec<String>> {
    let config: VaultConfig = parse(&vault.join(".vault.toml"), VAULT_REMEDY)?.unwrap_or_default();
    Ok(config.exclude)
}

fn parse<T: DeserializeOwned>(file: &Path, remedy: &str) -> Result<Option<T>> {
    let bad = |message: String| Error::new(ErrorKind::Query, message).at(file).remedy(remedy);
    let mut text = String::new();
    match std::fs::File::open(file) {
        Ok(open) => {
            let is_file = open.metadata().is_ok_and(|m| m.is_file());
            if !is_file {
                return Err(bad("is not a file".to_string()));
            }
            open.take(MAX_BYTES + 1).read_to_string(&mut text).map_err(|error| Error::io(file, error))?;
        }
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(Error::io(file, error)),
    }
    if text.len() as u64 > MAX_BYTES {
        return Err(bad("is larger than any configuration".to_string()));
    }
    toml::from_str(&text).map(Some).map_err(|error| {
        let line = error.span().map(|span| 1 + text[..span.start.min(text.len())].matches('\n').count());
        bad(match line {
            Some(line) => format!("line {line}: {}", error.message()),
            None => error.message().to_string(),
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn user(text: &str) -> Result<UserConfig> {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("config.toml");
        std::fs::write(&file, text).unwrap();
        UserConfig::from_file(&file)
    }

    #[test]
    fn the_users_file() {
        let config = user("vault = '~/Notes'\nexclude = ['Old/**']\nlimit = 5\nmode = 'lexical'\n").unwrap();
        assert_eq!(config.vault(Some(Path::new("/home/u"))), Some(PathBuf::from("/home/u/Notes")));
        assert_eq!((config.exclude.as_slice(), config.limit), (&["Old/**".to_string()][..], Some(5)));
        assert_eq!(config.mode, Some(Mode::Lexical));
        assert_eq!(user("").unwrap(), UserConfig::default());
        assert_eq!(UserConfig::from_file(Path::new("no/such/file")).unwrap(), UserConfig::default());
    }

    #[test]
    fn errors_name_the_line_and_what_is_allowed() {
        for (text, expected) in [
            ("limit = 5\ncolour = 1\n", "line 2: unknown field `colour`"),
            ("mode = 'best'\n", "line 1: unknown variant `best`"),
            ("limit = 'x'\n", "line 1: invalid type"),
            ("limit = 0\n", "limit is 0"),
            ("vault = \n", "line 1"),
        ] {
            let message = user(text).unwrap_err().to_string();
            assert!(message.contains(expected), "{message}");
            assert!(message.contains("config.toml"), "{message}");
        }
        assert!(user("api_key = 'x'").unwrap_err().to_string().contains("it may hold vault, model"));
    }

    #[test]
    fn a_vault_may_only_skip() {
        let dir = tempfile::tempdir().unwrap();
        assert_eq!(vault_excludes(dir.path()).unwrap(), Vec::<String>::new());
        std::fs::write(dir.path().join(".vault.toml"), "exclude = ['Private/**']").unwrap();
        assert_eq!(vault_excludes(dir.path()).unwrap(), ["Private/**"]);
        for text in ["model = 'openai:x'", "base_url = 'http://x'", "vault = '/'", "exclude = 'x'"] {
            std::fs::write(dir.path().join(".vault.toml"), text).unwrap();
            let message = vault_excludes(dir.path()).unwrap_err().to_string();
            assert!(message.contains("nothing else"), "{message}");
        }
        std::fs::write(dir.path().join(".vault.toml"), "#".repeat(70_000)).unwrap();
        assert!(vault_excludes(dir.path()).is_err());
    }
}
