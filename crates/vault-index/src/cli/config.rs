//! The user's configuration file.

use std::path::{Path, PathBuf};

use serde::Deserialize;

use crate::files::read_toml;
use crate::{Error, ErrorKind, Mode, Result, dirs};

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

/// Where the user's file is, or would be.
pub(super) fn file() -> PathBuf {
    dirs::config_folder().unwrap_or_default().join("config.toml")
}

impl UserConfig {
    /// The user's file; the default where there is none.
    ///
    /// # Errors
    /// When it cannot be read or says something it may not say.
    pub(super) fn load() -> Result<Self> {
        match dirs::config_folder() {
            Some(_) => Self::from_file(&file()),
            None => Ok(Self::default()),
        }
    }

    fn from_file(file: &Path) -> Result<Self> {
        let config: Self = read_toml(file, USER_REMEDY)?.unwrap_or_default();
        if config.limit == Some(0) {
            return Err(Error::new(ErrorKind::Query, "limit is 0").at(file).with_remedy("write 1 or more"));
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
}
