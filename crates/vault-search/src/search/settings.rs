//! Which vault, index and model a command works on: flags over environment over configuration.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use clap::Args;
use serde::Deserialize;
use vault_index::settings_file::read_toml;
use vault_index::{Error, ErrorKind, Mode, ModelName, Options, Result, check_globs, dirs};

use crate::{CliResult, FolderList, VaultSources, find_vaults};

use super::hyperlink::Hyperlink;

/// What `--help` says about settings, beside the options themselves. Each paragraph is one line: clap breaks it.
pub(super) const SETTINGS_HELP: &str = "\
Settings: flags override the environment (VAULT_DIR, VAULT_INDEX_FILE, VAULT_MODEL, VAULT_BASE_URL), which overrides \
config.toml in the user's configuration folder (~/.config/vault-index on Linux, \
~/Library/Application Support/vault-index on macOS, %APPDATA%\\vault-index on Windows), which may hold vault (a folder, or a list of them), model, \
base_url, exclude, limit, mode, best_last = true (as --best-last) and hyperlink, which says where printed paths lead when \
they are clicked: file, obsidian (the note and its heading), advanced-uri (Obsidian's plugin of that name, with the line), \
vscode, vscodium, cursor, zed, none, or a URL with {path}, {line}, {file}, {vault} and {heading}. A vault's own .vault.toml may hold exclude only. \
Setting NO_COLOR turns colors off.";

/// What can be named depends on what is built in.
const MODEL_HELP: &str = match (cfg!(feature = "fastembed"), cfg!(feature = "http")) {
    (true, true) => {
        "The embedding model [env: VAULT_MODEL]: minilm, fastembed:NAME, onnx:DIR, openai:NAME or ollama:NAME; \
         default: the one the index has, or minilm"
    }
    (true, false) => {
        "The embedding model [env: VAULT_MODEL]: minilm, fastembed:NAME or onnx:DIR; default: the one the index has, \
         or minilm"
    }
    (false, true) => {
        "The embedding model [env: VAULT_MODEL]: minilm, openai:NAME or ollama:NAME; default: the one the index has, \
         or minilm"
    }
    (false, false) => {
        "The embedding model [env: VAULT_MODEL]: minilm, unless the program was installed with others: see vault-index \
         models"
    }
};

/// Options that every command takes.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Vault and index")]
pub(super) struct VaultArgs {
    /// The folder that holds the notes [env: VAULT_DIR]; default: the nearest parent with an `.obsidian` folder, else the
    /// configured vault, else the current folder; vault-search takes several
    #[arg(long, value_name = "DIR", global = true)]
    pub vault: Vec<PathBuf>,
    /// The index file [env: VAULT_INDEX_FILE]; default: one per vault in the user's cache folder
    #[arg(long, value_name = "FILE", global = true)]
    pub index: Option<PathBuf>,
    #[arg(long, value_name = "MODEL", global = true, help = MODEL_HELP)]
    pub model: Option<String>,
    /// The URL of a remote model's service [env: VAULT_BASE_URL]
    #[arg(long, value_name = "URL", global = true, hide = cfg!(not(feature = "http")))]
    pub base_url: Option<String>,
    /// Leave out matching files, besides those of .gitignore, .vaultignore and .vault.toml (repeatable). This changes the
    /// index itself: the files are removed from it, and return with the next sync without the option. To leave them out
    /// for good, name them in .vault.toml or config.toml; to leave them out of one search, write -path:GLOB
    #[arg(long, value_name = "GLOB", global = true)]
    pub exclude: Vec<String>,
}

/// The settings of one run of a command.
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
    /// Reads flags, environment and configuration.
    ///
    /// # Errors
    /// A broken configuration, an unknown model, no vault, a vault that is refused.
    pub(super) fn load(args: &VaultArgs) -> CliResult<Self> {
        Self::load_where(args, false)
    }

    /// The same for vaults whose folders may be missing.
    ///
    /// # Errors
    /// As [`Self::load`].
    pub(super) fn load_with_missing(args: &VaultArgs) -> CliResult<Self> {
        Self::load_where(args, true)
    }

    fn load_where(args: &VaultArgs, may_be_missing: bool) -> CliResult<Self> {
        let current = std::env::current_dir().map_err(|error| Error::io(".", error))?;
        let variable = |name: &str| std::env::var_os(name);
        Self::merge(args, &variable, UserConfig::load()?, current, dirs::home(), may_be_missing)
    }

    fn merge(
        args: &VaultArgs,
        variable: &dyn Fn(&str) -> Option<OsString>,
        config: UserConfig,
        current: PathBuf,
        home: Option<PathBuf>,
        may_be_missing: bool,
    ) -> CliResult<Self> {
        // A variable that is set to nothing is not set.
        let variable = |name| variable(name).filter(|value| !value.is_empty());
        let text = |name| variable(name).map(|value| value.to_string_lossy().into_owned());
        let configured = Some((config.vault.0.clone(), config_file()));
        // An index that is named may be of any folder.
        let is_default = args.index.is_none() && variable("VAULT_INDEX_FILE").is_none();
        let indexed = if is_default { dirs::indexed_above(&current) } else { None };
        let variable_vault = variable("VAULT_DIR");
        let sources = VaultSources { flags: &args.vault, variable: variable_vault, current, configured, home, indexed };
        let settings = Self {
            vaults: find(&sources, may_be_missing)?,
            index_file: args.index.clone().or_else(|| variable("VAULT_INDEX_FILE").map(PathBuf::from)),
            model: model(args, text("VAULT_MODEL"), &config)?,
            base_url: args.base_url.clone().or_else(|| text("VAULT_BASE_URL")).or_else(|| config.base_url.clone()),
            exclude: config.exclude.iter().chain(&args.exclude).cloned().collect(),
            config,
        };
        check_globs(&settings.config.exclude).map_err(|error| error.at(config_file()))?;
        check_globs(&args.exclude).map_err(|error| error.at("--exclude"))?;
        if settings.vaults.len() > 1 && settings.index_file.is_some() {
            return Err(Error::new(ErrorKind::Query, "one index file cannot serve several vaults")
                .with_remedy("leave out --index (VAULT_INDEX_FILE), or search one vault at a time")
                .into());
        }
        if let Some(file) = settings.index_file.as_ref().filter(|file| is_note(file)) {
            return Err(Error::new(ErrorKind::Query, "an index cannot have the name of a note")
                .at(file)
                .with_remedy("choose another file with --index (VAULT_INDEX_FILE), such as notes.db")
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
        let mut options = Options::new().exclude(&self.exclude);
        options.index_file.clone_from(&self.index_file);
        options.model.clone_from(&self.model);
        options.base_url.clone_from(&self.base_url);
        options
    }
}

/// The model that is named; an error says where a wrong name was found.
fn model(args: &VaultArgs, variable: Option<String>, config: &UserConfig) -> Result<Option<ModelName>> {
    let (name, named_in) = match (&args.model, variable, &config.model) {
        (Some(name), ..) => (name.clone(), None),
        (None, Some(name), _) => (name, Some(PathBuf::from("VAULT_MODEL"))),
        (None, None, Some(name)) => (name.clone(), Some(config_file())),
        (None, None, None) => return Ok(None),
    };
    let model = name.parse::<ModelName>().map_err(|error| match named_in {
        Some(file) => error.at(file),
        None => error,
    })?;
    Ok(Some(model))
}

/// `config.toml` in the user's configuration folder.
#[derive(Debug, Default, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct UserConfig {
    /// The vault, or a list of vaults, where neither a flag nor the current folder names one. `~/` is the home folder.
    pub vault: FolderList,
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
    /// Whether the best result stands last on a terminal, nearest the prompt.
    pub best_last: bool,
    /// Where printed paths lead when they are clicked.
    pub hyperlink: Hyperlink,
}

const USER_REMEDY: &str = "it may hold vault, model, base_url, exclude = [\"GLOB\"], limit, mode = \"hybrid\", \
                           \"semantic\" or \"lexical\", best_last = true and hyperlink = \"vscode\" (or another)";

/// Where the user's file is, or would be.
fn config_file() -> PathBuf {
    dirs::config_folder().unwrap_or_default().join("config.toml")
}

impl UserConfig {
    /// The user's file; the default where there is none.
    ///
    /// # Errors
    /// When it cannot be read or says something it may not say.
    fn load() -> Result<Self> {
        match dirs::config_folder() {
            Some(_) => Self::from_file(&config_file()),
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
}

/// Whether a file would be taken for a note.
fn is_note(file: &Path) -> bool {
    file.extension().is_some_and(|end| end.eq_ignore_ascii_case("md") || end.eq_ignore_ascii_case("canvas"))
}

/// The vaults meant, canonical, each once, in the order they were named.
///
/// # Errors
/// A folder that is not there; the home folder or `/` when nobody named them.
fn find(sources: &VaultSources<'_>, may_be_missing: bool) -> CliResult<Vec<PathBuf>> {
    let named = find_vaults(sources)?;
    let mut vaults = Vec::with_capacity(named.folders.len());
    for folder in &named.folders {
        let vault = match may_be_missing {
            false => dirs::canonical_vault(folder),
            true => dirs::vault_or_gone(folder),
        };
        let vault = vault.map_err(|error| match &named.named_in {
            Some(file) => Error::new(error.kind(), "the vault it names cannot be used").at(file).because(error),
            None => error,
        })?;
        if !vaults.contains(&vault) {
            vaults.push(vault);
        }
    }
    Ok(vaults)
}

#[cfg(test)]
mod tests {
    use crate::Failure;

    use super::*;

    fn merged(args: &VaultArgs, environment: &[(&str, &str)], config: UserConfig) -> Settings {
        let variable = |name: &str| environment.iter().find(|(n, _)| *n == name).map(|(_, value)| value.into());
        Settings::merge(args, &variable, config, std::env::temp_dir(), None, false).unwrap()
    }

    #[test]
    fn flags_go_before_the_environment_and_that_before_the_configuration() {
        let config = || UserConfig {
            model: Some("minilm".into()),
            base_url: Some("http://config".into()),
            exclude: vec!["a".into()],
            ..UserConfig::default()
        };
        let none = VaultArgs::default();
        let settings = merged(&none, &[], config());
        assert_eq!(settings.model, Some(ModelName::MiniLm));
        assert_eq!(settings.base_url.as_deref(), Some("http://config"));
        let environment = [("VAULT_MODEL", "ollama:x"), ("VAULT_INDEX_FILE", "e.db"), ("VAULT_BASE_URL", "")];
        let settings = merged(&none, &environment, config());
        assert_eq!(settings.model, Some(ModelName::Ollama("x".into())));
        assert_eq!(settings.base_url.as_deref(), Some("http://config"));
        assert_eq!(settings.index_file, Some("e.db".into()));
        let args = VaultArgs {
            model: Some("openai:y".into()),
            index: Some("f.db".into()),
            exclude: vec!["b".into()],
            ..VaultArgs::default()
        };
        let settings = merged(&args, &environment, config());
        assert_eq!(settings.model, Some(ModelName::OpenAi("y".into())));
        assert_eq!(settings.index_file, Some("f.db".into()));
        assert_eq!(settings.exclude, ["a", "b"]);
    }

    #[test]
    fn what_is_no_model_says_where_it_stands() {
        let bad = || Some("chatty:x".to_string());
        let none = VaultArgs::default();
        let said = |result: Result<Option<ModelName>>| result.unwrap_err().to_string();
        let text = said(model(&none, bad(), &UserConfig::default()));
        assert!(text.starts_with("VAULT_MODEL: ") && text.contains("chatty:x"), "{text}");
        let text = said(model(&none, None, &UserConfig { model: bad(), ..UserConfig::default() }));
        assert!(text.contains("config.toml: ") && text.contains("chatty:x"), "{text}");
    }

    #[test]
    fn a_glob_that_cannot_be_understood_says_where_it_stands() {
        let bad = || vec!["ok/".to_string(), "private[".to_string()];
        let flags = VaultArgs { exclude: bad(), ..VaultArgs::default() };
        let config = UserConfig { exclude: bad(), ..UserConfig::default() };
        for (args, config, says) in
            [(flags, UserConfig::default(), "--exclude: "), (VaultArgs::default(), config, "config.toml: ")]
        {
            let merged = Settings::merge(&args, &|_| None, config, std::env::temp_dir(), None, false);
            let Err(Failure::Error(error)) = merged else { panic!("{says}") };
            let text = error.to_string();
            assert!(text.contains(says) && text.contains("`private[`"), "{text}");
        }
    }

    #[test]
    fn one_index_file_serves_one_vault() {
        let folders = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
        let vault: Vec<PathBuf> = folders.iter().map(|f| f.path().to_path_buf()).collect();
        let args = VaultArgs { vault, index: Some("i.db".into()), ..VaultArgs::default() };
        let merged = Settings::merge(&args, &|_| None, UserConfig::default(), std::env::temp_dir(), None, false);
        assert!(matches!(merged, Err(Failure::Error(_))));
        let args = VaultArgs { index: None, ..args };
        let settings =
            Settings::merge(&args, &|_| None, UserConfig::default(), std::env::temp_dir(), None, false).unwrap();
        assert_eq!(settings.vaults.len(), 2);
        assert!(settings.only_vault().is_err());
        let args = VaultArgs { vault: args.vault[..1].to_vec(), index: Some("New.MD".into()), ..args };
        let merged = Settings::merge(&args, &|_| None, UserConfig::default(), std::env::temp_dir(), None, false);
        assert!(matches!(merged, Err(Failure::Error(error)) if error.to_string().contains("the name of a note")));
    }

    fn user(text: &str) -> Result<UserConfig> {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("config.toml");
        std::fs::write(&file, text).unwrap();
        UserConfig::from_file(&file)
    }

    #[test]
    fn the_users_file() {
        let config = user("vault = '~/Notes'\nexclude = ['Old/**']\nlimit = 5\nmode = 'lexical'\n").unwrap();
        assert_eq!(config.vault.0, ["~/Notes"]);
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
    fn several_vaults_each_once() {
        let dir = tempfile::tempdir().unwrap();
        let home = dir.path().canonicalize().unwrap();
        for folder in ["notes", "plain"] {
            std::fs::create_dir(home.join(folder)).unwrap();
        }
        let joined = std::env::join_paths([home.join("plain"), home.join("notes"), home.join("plain")]).unwrap();
        let sources = VaultSources { variable: Some(joined), current: home.clone(), ..VaultSources::default() };
        assert_eq!(find(&sources, false).unwrap(), [home.join("plain"), home.join("notes")]);
    }

    #[test]
    fn a_missing_folder_says_what_to_do() {
        let flags = [PathBuf::from("no/such/folder")];
        let sources = VaultSources { flags: &flags, ..VaultSources::default() };
        let Err(Failure::Error(error)) = find(&sources, false) else { panic!() };
        assert!(error.to_string().contains("--vault DIR"), "{error}");
        assert_eq!(
            find(&sources, true).unwrap(),
            [std::env::current_dir().unwrap().canonicalize().unwrap().join(&flags[0])]
        );
    }

    #[test]
    fn a_missing_folder_that_no_flag_names_says_where_it_is_named() {
        let variable = VaultSources { variable: Some("/no/such/folder".into()), ..VaultSources::default() };
        let file = PathBuf::from("/c/config.toml");
        let configured = Some((vec!["/no/such/folder".to_string()], file));
        let configured = VaultSources { configured, current: std::env::temp_dir(), ..VaultSources::default() };
        for (sources, says) in [(variable, "VAULT_DIR: "), (configured, "config.toml: ")] {
            let Err(Failure::Error(error)) = find(&sources, false) else { panic!() };
            let text = error.to_string();
            assert!(text.contains(says) && text.contains("/no/such/folder: there is no such folder"), "{text}");
        }
    }
}
