//! Which vault, index and model a command works on: flags over environment over configuration.

use std::ops::Deref;
use std::path::{Path, PathBuf};

use clap::Args;
use vault_index::dirs::{config_folder, home};
use vault_index::{Error, ModelName, Options, Result, check_globs};

use crate::CliResult;
use crate::database::needs_file;
use crate::settings::{Settings, UserConfig, VaultArgs, config_file, no_effect};

/// The part of `--help` about settings other than options. Each paragraph is one line, because clap wraps it.
pub(super) const SETTINGS_HELP: &str = "\
Settings: flags override environment variables (VAULT_DIR, VAULT_INDEX_FILE, VAULT_MODEL, VAULT_BASE_URL), which override \
config.toml in the user's configuration folder (~/.config/vault-index on Linux, \
~/Library/Application Support/vault-index on macOS, %APPDATA%\\vault-index on Windows). config.toml may set vault (a folder, or a list of folders), model, \
base_url, exclude, limit, mode, best_last = true (like --best-last), background = false (do not embed after a search, like VAULT_BACKGROUND=0), \
editor (the editor of --open, before $VISUAL and $EDITOR: obsidian, or a command), a table [databases] \
(the name of a vault's folder = \"postgres://…\": the database that has its index) and hyperlink (where a click on a printed path leads: \
file, obsidian (the note and its heading), advanced-uri (the Obsidian plugin of that name, with the line), \
vscode, vscodium, cursor, zed, none, or a URL with {path}, {line}, {file}, {vault} and {heading}). A vault's own .vault.toml may set only exclude and [lint]. \
NO_COLOR turns colors off.";

const MODEL_HELP: &str = "The embedding model [env: VAULT_MODEL] [default: the index's, else minilm]";

/// The model names in the help of `--model`, which depend on the features that are built in.
const MODELS: &str = match (cfg!(feature = "fastembed"), cfg!(feature = "http")) {
    (true, true) => {
        "minilm, a name of vault-index models, dir:DIR, fastembed:NAME, onnx:DIR, openai:NAME or ollama:NAME; see vault-index models."
    }
    (true, false) => {
        "minilm, a name of vault-index models, dir:DIR, fastembed:NAME or onnx:DIR; see vault-index models."
    }
    (false, true) => {
        "minilm, a name of vault-index models, dir:DIR, openai:NAME or ollama:NAME; see vault-index models."
    }
    (false, false) => "minilm, dir:DIR or a name of vault-index models.",
};

/// The options of commands that read or write an index.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Vault and index")]
pub(super) struct IndexedVaultArgs {
    #[command(flatten)]
    pub vault_args: VaultArgs,
    #[arg(long, value_name = "MODEL", global = true, help = MODEL_HELP,
        long_help = format!("{MODEL_HELP}\n\n{MODELS}"))]
    pub model: Option<String>,
    /// The URL of a remote model's service [env: VAULT_BASE_URL]
    #[arg(long, value_name = "URL", global = true, hide_short_help = true, hide = cfg!(not(feature = "http")))]
    pub base_url: Option<String>,
    /// Leave out matching files (repeatable)
    ///
    /// This adds to .gitignore, .vaultignore and .vault.toml, and changes the index itself: the files are removed
    /// from it, and the next sync without the option adds them again. To exclude files permanently, list them in
    /// .vault.toml or config.toml; to exclude them from one search, write -path:GLOB.
    #[arg(long, value_name = "GLOB", global = true, hide_short_help = true)]
    pub exclude: Vec<String>,
}

impl IndexedVaultArgs {
    /// Refuses these options for a command that works on no vault.
    ///
    /// # Errors
    /// An option that was given.
    pub(super) fn refuse(&self) -> CliResult<()> {
        self.vault_args.refuse()?;
        self.refuse_filling()
    }

    /// Refuses the options that control how an index is filled, for a command that fills no index.
    ///
    /// # Errors
    /// As [`Self::refuse`].
    pub(super) fn refuse_filling(&self) -> CliResult<()> {
        refuse("--model", self.model.is_some())?;
        self.refuse_syncing()
    }

    /// Refuses the options that have an effect only on a sync, for a command that does not sync.
    ///
    /// # Errors
    /// As [`Self::refuse`].
    pub(super) fn refuse_syncing(&self) -> CliResult<()> {
        refuse("--base-url", self.base_url.is_some())?;
        refuse("--exclude", !self.exclude.is_empty())
    }
}

fn refuse(option: &str, is_given: bool) -> CliResult<()> {
    if is_given { Err(no_effect(option, "fills no index")) } else { Ok(()) }
}

/// The settings of one run of a command.
#[derive(Debug)]
pub(super) struct IndexSettings {
    settings: Settings,
    model: Option<ModelName>,
    base_url: Option<String>,
    /// The globs of `--exclude`.
    exclude: Vec<String>,
}

impl Deref for IndexSettings {
    type Target = Settings;

    fn deref(&self) -> &Settings {
        &self.settings
    }
}

impl IndexSettings {
    /// Reads flags, environment and configuration.
    ///
    /// # Errors
    /// An invalid configuration, an unknown model, no vault, a vault that is refused.
    pub(super) fn load(args: &IndexedVaultArgs) -> CliResult<Self> {
        Self::with(Settings::load(&args.vault_args)?, args)
    }

    fn with(settings: Settings, args: &IndexedVaultArgs) -> CliResult<Self> {
        check_globs(&args.exclude).map_err(|error| error.at("--exclude"))?;
        let variable = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
        let config = &settings.config;
        let model = model(args.model.as_deref(), variable("VAULT_MODEL"), config)?;
        let base_url = args.base_url.clone().or_else(|| variable("VAULT_BASE_URL")).or_else(|| config.base_url.clone());
        Ok(Self { model, base_url, exclude: args.exclude.clone(), settings })
    }

    /// Refuses an index in a database for a command that needs an index file.
    ///
    /// # Errors
    /// [`ErrorKind::Query`](vault_index::ErrorKind::Query).
    pub(super) fn needs_file(&self, command: &str) -> CliResult<()> {
        match self.vaults.iter().any(|vault| self.database_of(vault).is_some()) {
            true => Err(needs_file(command).into()),
            false => Ok(()),
        }
    }

    /// The options with which the library opens the index of a vault.
    pub(super) fn options(&self, vault: &Path) -> Options {
        let mut options = self.index_options(vault).exclude(&self.exclude);
        options.model.clone_from(&self.model);
        options.base_url.clone_from(&self.base_url);
        options
    }
}

/// The model from the flag, the variable or the configuration, in this order. An error names the source of a wrong name.
///
/// The index records the name, so a folder in it becomes absolute: from the folder of the configuration for a name that
/// stands there, else from the current one; `~/` is the home folder.
fn model(flag: Option<&str>, variable: Option<String>, config: &UserConfig) -> Result<Option<ModelName>> {
    let (name, named_in, base) = match (flag, variable, &config.model) {
        (Some(name), ..) => (name.to_owned(), None, None),
        (None, Some(name), _) => (name, Some(PathBuf::from("VAULT_MODEL")), None),
        (None, None, Some(name)) => (name.clone(), Some(config_file()), config_folder()),
        (None, None, None) => return Ok(None),
    };
    let model = name.parse::<ModelName>().map_err(|error: Error| match named_in {
        Some(file) => error.at(file),
        None => error,
    })?;
    let base = base.unwrap_or_default();
    Ok(Some(match model {
        ModelName::Dir(folder) => ModelName::Dir(absolute(&folder, &base)?),
        ModelName::Onnx(folder) => ModelName::Onnx(absolute(&folder, &base)?),
        model => model,
    }))
}

fn absolute(folder: &Path, base: &Path) -> Result<PathBuf> {
    let named = match (folder.strip_prefix("~"), home()) {
        (Ok(rest), Some(home)) => home.join(rest),
        _ => base.join(folder),
    };
    std::path::absolute(&named).map_err(|error| Error::io(named, error))
}

#[cfg(test)]
mod tests {
    use vault_index::dirs::canonical_vault;

    use super::*;
    use crate::Failure;
    use crate::settings::tests::merged;

    #[test]
    fn flags_go_before_the_environment_and_that_before_the_configuration() {
        let config = UserConfig { model: Some("minilm".into()), ..UserConfig::default() };
        let named = |flag, variable: Option<&str>| model(flag, variable.map(str::to_owned), &config).unwrap();
        assert_eq!(named(None, None), Some(ModelName::MiniLm));
        assert_eq!(named(None, Some("ollama:x")), Some(ModelName::Ollama("x".into())));
        assert_eq!(named(Some("openai:y"), Some("ollama:x")), Some(ModelName::OpenAi("y".into())));
        let config =
            UserConfig { exclude: vec!["a".into()], base_url: Some("http://c".into()), ..UserConfig::default() };
        let settings = merged(&VaultArgs::default(), &[], config, canonical_vault).unwrap();
        let args = IndexedVaultArgs { exclude: vec!["b".into()], ..IndexedVaultArgs::default() };
        let options = IndexSettings::with(settings, &args).unwrap().options(Path::new(""));
        assert_eq!((options.exclude, options.base_url.as_deref()), (vec!["a".into(), "b".into()], Some("http://c")));
    }

    #[test]
    fn folders_of_models_are_absolute() {
        let config = |model: &str| UserConfig { model: Some(model.into()), ..UserConfig::default() };
        let current = std::env::current_dir().unwrap();
        let set = config_folder().unwrap();
        let flag = |text: &str| model(Some(text), None, &UserConfig::default()).unwrap().unwrap();
        assert_eq!(flag("dir:e5"), ModelName::Dir(current.join("e5")));
        assert_eq!(flag("onnx:./e5"), ModelName::Onnx(current.join("e5")));
        assert_eq!(flag("dir:~/e5"), ModelName::Dir(home().unwrap().join("e5")));
        let variable = model(None, Some("dir:e5".into()), &config("dir:other")).unwrap();
        assert_eq!(variable, Some(ModelName::Dir(current.join("e5"))));
        let configured = |text: &str| model(None, None, &config(text)).unwrap().unwrap();
        assert_eq!(configured("dir:models/e5"), ModelName::Dir(set.join("models/e5")));
        assert_eq!(configured("onnx:~/e5"), ModelName::Onnx(home().unwrap().join("e5")));
    }

    #[test]
    fn a_wrong_model_says_where_it_stands() {
        let bad = || Some("chatty:x".to_string());
        let message = |result: Result<Option<ModelName>>| result.unwrap_err().to_string();
        let text = message(model(None, bad(), &UserConfig::default()));
        assert!(text.starts_with("VAULT_MODEL: ") && text.contains("chatty:x"), "{text}");
        let text = message(model(None, None, &UserConfig { model: bad(), ..UserConfig::default() }));
        assert!(text.contains("config.toml: ") && text.contains("chatty:x"), "{text}");
    }

    #[test]
    fn a_glob_of_a_flag_that_cannot_be_understood_is_named() {
        let settings = merged(&VaultArgs::default(), &[], UserConfig::default(), canonical_vault).unwrap();
        let args = IndexedVaultArgs { exclude: vec!["private[".to_string()], ..IndexedVaultArgs::default() };
        let Err(Failure::Error(error)) = IndexSettings::with(settings, &args) else { panic!() };
        let text = error.to_string();
        assert!(text.contains("--exclude: ") && text.contains("`private[`"), "{text}");
    }
}
