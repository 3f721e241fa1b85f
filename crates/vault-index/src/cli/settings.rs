//! What both commands are told about vault, index and model: flags over environment over configuration.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use clap::Args;
use vault_cli::{CliResult, note};

use super::config::{self, UserConfig};
use super::consent;
use super::vault::{Places, Presence, find};
use crate::files::check_globs;
use crate::{Error, ErrorKind, Index, ModelName, Options, Result, dirs};

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
    /// configured one, else the current folder; vault-search takes several
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
    /// Leave out files that match, besides those of .gitignore, .vaultignore and .vault.toml (repeatable). It changes
    /// what the index holds, for every search of it: they are taken out, and without the option come back. To leave
    /// them out for good, write them to .vault.toml or config.toml; to leave them out of one search, write -path:GLOB
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
    pub(super) fn load(args: &PlaceArgs) -> CliResult<Self> {
        Self::load_where(args, Presence::There)
    }

    /// The same for vaults whose folders may be gone.
    ///
    /// # Errors
    /// As [`Self::load`].
    pub(super) fn load_gone(args: &PlaceArgs) -> CliResult<Self> {
        Self::load_where(args, Presence::MayBeGone)
    }

    fn load_where(args: &PlaceArgs, presence: Presence) -> CliResult<Self> {
        let current = std::env::current_dir().map_err(|error| Error::io(".", error))?;
        let variable = |name: &str| std::env::var_os(name);
        Self::merge(args, &variable, UserConfig::load()?, current, dirs::home(), presence)
    }

    fn merge(
        args: &PlaceArgs,
        variable: &dyn Fn(&str) -> Option<OsString>,
        config: UserConfig,
        current: PathBuf,
        home: Option<PathBuf>,
        presence: Presence,
    ) -> CliResult<Self> {
        // A variable that is set to nothing is not set.
        let variable = |name| variable(name).filter(|value| !value.is_empty());
        let text = |name| variable(name).map(|value| value.to_string_lossy().into_owned());
        let configured = config.vault(home.as_deref()).map(|vault| (vault, config::file()));
        let places =
            Places { flags: &args.vault, variable: variable("VAULT_DIR"), current, configured, home, presence };
        let settings = Self {
            vaults: find(&places)?,
            index_file: args.index.clone().or_else(|| variable("VAULT_INDEX_FILE").map(PathBuf::from)),
            model: model(args, text("VAULT_MODEL"), &config)?,
            base_url: args.base_url.clone().or_else(|| text("VAULT_BASE_URL")).or_else(|| config.base_url.clone()),
            exclude: config.exclude.iter().chain(&args.exclude).cloned().collect(),
            config,
        };
        check_globs(&settings.config.exclude).map_err(|error| error.at(config::file()))?;
        check_globs(&args.exclude).map_err(|error| error.at("--exclude"))?;
        if settings.vaults.len() > 1 && settings.index_file.is_some() {
            return Err(Error::new(ErrorKind::Query, "one index file cannot serve several vaults")
                .with_remedy("leave out --index (VAULT_INDEX_FILE), or search one vault at a time")
                .into());
        }
        Ok(settings)
    }

    /// The vault of a command that works on one.
    ///
    /// # Errors
    /// When several were named.
    pub(super) fn only_vault(&self) -> CliResult<&Path> {
        match self.vaults.as_slice() {
            [vault] => Ok(vault),
            _ => Err(Error::new(ErrorKind::Query, "this command works on one vault at a time")
                .with_remedy("give --vault once")
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
    pub(super) fn open(&self, vault: &Path, sending: Sending) -> CliResult<Index> {
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
    pub(super) fn open_to_rebuild(&self, vault: &Path, sending: Sending) -> CliResult<Index> {
        let mut index = self.open_to_read(vault)?;
        if index.has_lost_its_model() {
            let model = ModelName::default();
            note(&format!(
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
    pub(super) fn open_to_read(&self, vault: &Path) -> CliResult<Index> {
        Ok(Index::open(vault, self.options())?)
    }
}

/// The model that is named; what is no model is an error that says where it stands.
fn model(args: &PlaceArgs, variable: Option<String>, config: &UserConfig) -> Result<Option<ModelName>> {
    let (name, said) = match (&args.model, variable, &config.model) {
        (Some(name), ..) => (name.clone(), None),
        (None, Some(name), _) => (name, Some(PathBuf::from("VAULT_MODEL"))),
        (None, None, Some(name)) => (name.clone(), Some(config::file())),
        (None, None, None) => return Ok(None),
    };
    let model = name.parse::<ModelName>().map_err(|error| match said {
        Some(place) => error.at(place),
        None => error,
    })?;
    Ok(Some(model))
}

#[cfg(test)]
mod tests {
    use super::*;
    use vault_cli::Failure;

    fn merged(args: &PlaceArgs, environment: &[(&str, &str)], config: UserConfig) -> Settings {
        let variable = |name: &str| environment.iter().find(|(n, _)| *n == name).map(|(_, value)| value.into());
        Settings::merge(args, &variable, config, std::env::temp_dir(), None, Presence::There).unwrap()
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
    fn what_is_no_model_says_where_it_stands() {
        let bad = || Some("chatty:x".to_string());
        let none = PlaceArgs::default();
        let said = |result: Result<Option<ModelName>>| result.unwrap_err().to_string();
        let text = said(model(&none, bad(), &UserConfig::default()));
        assert!(text.starts_with("VAULT_MODEL: ") && text.contains("chatty:x"), "{text}");
        let text = said(model(&none, None, &UserConfig { model: bad(), ..UserConfig::default() }));
        assert!(text.contains("config.toml: ") && text.contains("chatty:x"), "{text}");
    }

    #[test]
    fn a_glob_that_cannot_be_understood_says_where_it_stands() {
        let bad = || vec!["ok/".to_string(), "private[".to_string()];
        let flags = PlaceArgs { exclude: bad(), ..PlaceArgs::default() };
        let config = UserConfig { exclude: bad(), ..UserConfig::default() };
        for (args, config, says) in
            [(flags, UserConfig::default(), "--exclude: "), (PlaceArgs::default(), config, "config.toml: ")]
        {
            let merged = Settings::merge(&args, &|_| None, config, std::env::temp_dir(), None, Presence::There);
            let Err(Failure::Error(error)) = merged else { panic!("{says}") };
            let text = error.to_string();
            assert!(text.contains(says) && text.contains("`private[`"), "{text}");
        }
    }

    #[test]
    fn one_index_file_serves_one_vault() {
        let folders = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
        let vault: Vec<PathBuf> = folders.iter().map(|f| f.path().to_path_buf()).collect();
        let args = PlaceArgs { vault, index: Some("i.db".into()), ..PlaceArgs::default() };
        let merged =
            Settings::merge(&args, &|_| None, UserConfig::default(), std::env::temp_dir(), None, Presence::There);
        assert!(matches!(merged, Err(Failure::Error(_))));
        let args = PlaceArgs { index: None, ..args };
        let settings =
            Settings::merge(&args, &|_| None, UserConfig::default(), std::env::temp_dir(), None, Presence::There)
                .unwrap();
        assert_eq!(settings.vaults.len(), 2);
        assert!(settings.only_vault().is_err());
    }
}
