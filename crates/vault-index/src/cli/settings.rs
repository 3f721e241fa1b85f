//! What both commands are told about vault, index and model: flags over environment over configuration.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use clap::Args;

use super::config::UserConfig;
use super::vault::{Places, find};
use super::{Ended, consent, notice};
use crate::{Error, ErrorKind, Index, ModelName, Options, place};

/// What `--help` says about settings, beside the options themselves. Each paragraph is one line: clap breaks it.
pub(super) const SETTINGS_HELP: &str = "\
Settings: flags go before the environment (VAULT_DIR, VAULT_INDEX_FILE, VAULT_MODEL, VAULT_BASE_URL), and that before \
config.toml in the user's configuration folder (~/.config/vault-index on Linux, \
~/Library/Application Support/vault-index on macOS, %APPDATA%\\vault-index on Windows), which may hold vault, model, \
base_url, exclude, limit and mode. A vault's own .vault.toml may hold exclude, and nothing else. \
NO_COLOR set to anything turns colours off.";

/// Options that every command takes.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Vault and index")]
pub(super) struct PlaceArgs {
    /// The folder that holds the notes [env: VAULT_DIR]; default: the nearest one upward with an `.obsidian`, else the
    /// configured one, else the current folder
    #[arg(long, value_name = "DIR", global = true)]
    pub vault: Vec<PathBuf>,
    /// The index file [env: VAULT_INDEX_FILE]; default: one per vault in the user's cache folder
    #[arg(long, value_name = "FILE", global = true)]
    pub index: Option<PathBuf>,
    /// The embedding model [env: VAULT_MODEL]: minilm, fastembed:NAME, onnx:DIR, openai:NAME or ollama:NAME; default:
    /// the one the index has, or minilm
    #[arg(long, value_name = "MODEL", global = true)]
    pub model: Option<String>,
    /// The address of a remote model's service [env: VAULT_BASE_URL]
    #[arg(long, value_name = "URL", global = true)]
    pub base_url: Option<String>,
    /// Leave out files that match, besides those of .gitignore, .vaultignore and .vault.toml (repeatable)
    #[arg(long, value_name = "GLOB", global = true)]
    pub exclude: Vec<String>,
}

/// Whether a model that sends notes elsewhere may be used without being asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Sending {
    /// Asks once for each vault and address.
    Ask,
    /// `--yes`.
    Agreed,
}

impl Sending {
    /// From `--yes`.
    pub(super) fn from_yes(yes: bool) -> Self {
        if yes { Self::Agreed } else { Self::Ask }
    }
}

/// All that was said, with what goes before what already settled.
#[derive(Debug)]
pub(super) struct Settings {
    /// At least one; canonical.
    pub vaults: Vec<PathBuf>,
    /// The user's file, for what only one command asks of it.
    pub config: UserConfig,
    index_file: Option<PathBuf>,
    model: Option<ModelName>,
    base_url: Option<String>,
    exclude: Vec<String>,
}

impl Settings {
    /// Settles everything.
    ///
    /// # Errors
    /// A broken configuration, an unknown model, no vault, a vault that is refused.
    pub(super) fn load(args: &PlaceArgs) -> Ended<Self> {
        let current = std::env::current_dir().map_err(|error| Error::io(".", error))?;
        Self::merge(args, &|name| std::env::var_os(name), UserConfig::load()?, current, place::home())
    }

    fn merge(
        args: &PlaceArgs,
        variable: &dyn Fn(&str) -> Option<OsString>,
        config: UserConfig,
        current: PathBuf,
        home: Option<PathBuf>,
    ) -> Ended<Self> {
        // A variable that is set to nothing is not set.
        let variable = |name| variable(name).filter(|value| !value.is_empty());
        let text = |name| variable(name).map(|value| value.to_string_lossy().into_owned());
        let configured = config.vault(home.as_deref());
        let places = Places { flags: &args.vault, variable: variable("VAULT_DIR"), current, configured, home };
        let model = args.model.clone().or_else(|| text("VAULT_MODEL")).or_else(|| config.model.clone());
        let settings = Self {
            vaults: find(&places)?,
            index_file: args.index.clone().or_else(|| variable("VAULT_INDEX_FILE").map(PathBuf::from)),
            model: model.map(|name| name.parse()).transpose()?,
            base_url: args.base_url.clone().or_else(|| text("VAULT_BASE_URL")).or_else(|| config.base_url.clone()),
            exclude: config.exclude.iter().chain(&args.exclude).cloned().collect(),
            config,
        };
        if settings.vaults.len() > 1 && settings.index_file.is_some() {
            return Err(Error::new(ErrorKind::Query, "one index file cannot serve several vaults")
                .remedy("leave out --index (VAULT_INDEX_FILE), or search one vault at a time")
                .into());
        }
        Ok(settings)
    }

    /// The vault of a command that works on one.
    ///
    /// # Errors
    /// When several were named.
    pub(super) fn only_vault(&self) -> Ended<&Path> {
        match self.vaults.as_slice() {
            [vault] => Ok(vault),
            _ => Err(Error::new(ErrorKind::Query, "this command works on one vault at a time")
                .remedy("give --vault once")
                .into()),
        }
    }

    /// How the library is to open an index.
    pub(super) fn options(&self) -> Options {
        Options {
            index_file: self.index_file.clone(),
            model: self.model.clone(),
            base_url: self.base_url.clone(),
            exclude: self.exclude.clone(),
            ..Options::default()
        }
    }

    /// Opens the index to fill it, once it is settled that notes may go where its model runs.
    ///
    /// # Errors
    /// As [`Index::open`]; refused when notes would leave the machine and nobody agreed.
    pub(super) fn open(&self, vault: &Path, sending: Sending) -> Ended<Index> {
        let index = self.open_to_read(vault)?;
        if let Some(model) = index.model_of_sync()? {
            consent::obtain(vault, &model, sending, "sync")?;
        }
        Ok(index)
    }

    /// The same to make it anew. One that is too damaged to say which model it has gets the default, and that is
    /// said.
    ///
    /// # Errors
    /// As [`Self::open`].
    pub(super) fn open_to_rebuild(&self, vault: &Path, sending: Sending) -> Ended<Index> {
        let mut index = self.open_to_read(vault)?;
        if index.has_lost_its_model() {
            let model = ModelName::default();
            notice(&format!(
                "the index is so damaged that it does not say which model it had; it is made anew with {model} \
                 (for another one: vault-index rebuild --model NAME)"
            ));
            index = Index::open(vault, Options { model: Some(model), ..self.options() })?;
        }
        if let Some(model) = index.model_of_rebuild()? {
            consent::obtain(vault, &model, sending, "rebuild")?;
        }
        Ok(index)
    }

    /// Opens the index to ask it what it holds, or to fill it without embedding anything.
    ///
    /// # Errors
    /// As [`Index::open`].
    pub(super) fn open_to_read(&self, vault: &Path) -> Ended<Index> {
        Ok(Index::open(vault, self.options())?)
    }
}

#[cfg(test)]
mod tests {
    use super::super::Failure;
    use super::*;

    fn merged(args: &PlaceArgs, environment: &[(&str, &str)], config: UserConfig) -> Settings {
        let variable = |name: &str| environment.iter().find(|(n, _)| *n == name).map(|(_, value)| value.into());
        Settings::merge(args, &variable, config, std::env::temp_dir(), None).unwrap()
    }

    #[test]
    fn flags_go_before_the_environment_and_that_before_the_configuration() {
        let config = || UserConfig {
            model: Some("minilm".into()),
            base_url: Some("http://config".into()),
            exclude: vec!["a".into()],
            ..UserConfig::default()
        };
        let none = PlaceArgs::default();
        let settings = merged(&none, &[], config());
        assert_eq!(settings.model, Some(ModelName::MiniLm));
        assert_eq!(settings.base_url.as_deref(), Some("http://config"));
        let environment = [("VAULT_MODEL", "ollama:x"), ("VAULT_INDEX_FILE", "e.db"), ("VAULT_BASE_URL", "")];
        let settings = merged(&none, &environment, config());
        assert_eq!(settings.model, Some(ModelName::Ollama("x".into())));
        assert_eq!(settings.base_url.as_deref(), Some("http://config"));
        assert_eq!(settings.index_file, Some("e.db".into()));
        let args = PlaceArgs {
            model: Some("openai:y".into()),
            index: Some("f.db".into()),
            exclude: vec!["b".into()],
            ..PlaceArgs::default()
        };
        let settings = merged(&args, &environment, config());
        assert_eq!(settings.model, Some(ModelName::OpenAi("y".into())));
        assert_eq!(settings.index_file, Some("f.db".into()));
        assert_eq!(settings.exclude, ["a", "b"]);
    }

    #[test]
    fn one_index_file_serves_one_vault() {
        let folders = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
        let vault: Vec<PathBuf> = folders.iter().map(|f| f.path().to_path_buf()).collect();
        let args = PlaceArgs { vault, index: Some("i.db".into()), ..PlaceArgs::default() };
        let merged = Settings::merge(&args, &|_| None, UserConfig::default(), std::env::temp_dir(), None);
        assert!(matches!(merged, Err(Failure::Error(_))));
        let args = PlaceArgs { index: None, ..args };
        let settings = Settings::merge(&args, &|_| None, UserConfig::default(), std::env::temp_dir(), None).unwrap();
        assert_eq!(settings.vaults.len(), 2);
        assert!(settings.only_vault().is_err());
    }
}
