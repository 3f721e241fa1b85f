//! The vaults and the index that a command works on, and the user's `config.toml`.
//!
//! Flags override environment variables, which override the file.

use std::collections::HashMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::Args;
use serde::Deserialize;
use vault_index::backend::Database;
use vault_index::settings_file::read_toml;
use vault_index::{Error, ErrorKind, Mode, Options, Result, check_globs, dirs};

use crate::database;
use crate::exit::{CliResult, Failure};
use crate::hyperlink::Hyperlink;
use crate::vault_folders::{FolderList, NamedVaults, VaultSources, find_vaults};

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        match error.kind() {
            ErrorKind::Locked => Self::Refused(error.one_line()),
            _ => Self::Error(error.one_line()),
        }
    }
}

/// The options `--vault` and `--index`.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Vault and index")]
pub struct VaultArgs {
    /// The folder that holds the notes [env: VAULT_DIR]
    ///
    /// Default: the nearest parent folder with an `.obsidian` folder, else the vault that config.toml names, else the
    /// nearest parent folder with an index, else the current folder. Repeatable for commands that work on several
    /// vaults.
    #[arg(long, value_name = "DIR", global = true)]
    pub vault: Vec<PathBuf>,
    /// The index file [env: VAULT_INDEX_FILE]
    ///
    /// Default: one file per vault in the user's cache folder.
    #[cfg_attr(
        feature = "postgres",
        doc = "\n\nAlso a PostgreSQL database with pgvector: \
        postgres://user@host/database, or postgres: for PGHOST, PGUSER and so on, or postgres:?service=NAME. It has \
        the vault under the name of its folder, or under the name after a #. Searches do not update it; \
        vault-index sync and watch do."
    )]
    #[arg(long, value_name = "FILE", global = true)]
    pub index: Option<PathBuf>,
}

impl VaultArgs {
    /// Refuses these options for a command that works on no vault.
    ///
    /// # Errors
    /// An option that was given.
    pub fn refuse(&self) -> CliResult<()> {
        if !self.vault.is_empty() {
            return Err(no_effect("--vault", "works on no vault"));
        }
        self.refuse_index()
    }

    /// Refuses `--index` for a command that uses no index.
    ///
    /// # Errors
    /// As [`Self::refuse`].
    pub fn refuse_index(&self) -> CliResult<()> {
        self.index.as_ref().map_or(Ok(()), |_| Err(no_effect("--index", "uses no index")))
    }
}

/// The error for an option that has no effect on a command; `why` completes "this command …".
pub(crate) fn no_effect(option: &str, why: &str) -> Failure {
    Failure::Error(format!("{option} has no effect here, because this command {why} (leave it out)"))
}

/// The vaults that a command works on, their index file, and the user's `config.toml`.
#[derive(Debug)]
pub struct Settings {
    /// At least one canonical path, without duplicates, in the order in which they were named.
    pub vaults: Vec<PathBuf>,
    /// The index file, if one was named.
    pub index_file: Option<PathBuf>,
    /// The database that has the indexes, if one was named. Then there is no index file.
    pub(crate) database: Option<Arc<dyn Database>>,
    /// The databases of single vaults, from the configuration.
    databases: HashMap<PathBuf, Arc<dyn Database>>,
    /// Whether the vault is the current folder, for no other reason than that.
    is_guess: bool,
    /// The user's file.
    pub config: UserConfig,
}

impl Settings {
    /// Reads flags, environment and configuration.
    ///
    /// # Errors
    /// A configuration that cannot be parsed; a vault that does not exist; the home folder or `/` unless they were
    /// named; an index file with the name of a note, or for several vaults; a database whose address cannot be used, or
    /// for a vault that was not named.
    pub fn load(args: &VaultArgs) -> CliResult<Self> {
        let mut settings = Self::merge(args, &Environment::of_process()?, UserConfig::load()?, dirs::canonical_vault)?;
        if settings.database.is_none() && settings.index_file.is_none() {
            settings.look_up_databases()?;
        }
        Ok(settings)
    }

    fn look_up_databases(&mut self) -> CliResult<()> {
        for vault in &self.vaults {
            let name = vault.file_name().unwrap_or_default().to_string_lossy();
            let Some(address) = self.config.databases.get(&*name) else { continue };
            if self.is_guess && !vault.join(".obsidian").is_dir() {
                return Err(must_be_named());
            }
            self.databases.insert(vault.clone(), database::of_table(&name, address, &config_file())?);
        }
        Ok(())
    }

    /// Refuses a database that was named for a command that stores how to open the index, because its address may hold a
    /// password.
    ///
    /// # Errors
    /// [`ErrorKind::Query`].
    pub fn refuse_named_database(&self) -> Result<()> {
        match self.database {
            None => Ok(()),
            Some(_) => {
                Err(Error::new(ErrorKind::Query, "the address of a database is not written into other programs")
                    .at("--index (VAULT_INDEX_FILE)")
                    .with_remedy("name it in the table [databases] of config.toml, and leave it out here"))
            }
        }
    }

    /// The database with the index of a vault, if it is in one: the named one, else that of the configuration.
    pub fn database_of(&self, vault: &Path) -> Option<&Arc<dyn Database>> {
        self.database.as_ref().or_else(|| self.databases.get(vault))
    }

    /// [`Self::load`] for vaults whose folders may be missing.
    ///
    /// # Errors
    /// Those of [`Self::load`], except for a missing folder.
    pub fn load_with_missing(args: &VaultArgs) -> CliResult<Self> {
        Self::merge(args, &Environment::of_process()?, UserConfig::load()?, dirs::vault_or_gone)
    }

    pub(crate) fn merge(
        args: &VaultArgs,
        environment: &Environment<'_>,
        config: UserConfig,
        canonical: fn(&Path) -> Result<PathBuf>,
    ) -> CliResult<Self> {
        let named = named_vaults(args, environment, &config)?;
        let mut vaults = Vec::with_capacity(named.folders.len());
        for folder in &named.folders {
            let vault = canonical(folder).map_err(|error| match &named.named_in {
                Some(file) => Error::new(error.kind(), "the vault it names cannot be used").at(file).because(error),
                None => error,
            })?;
            if !vaults.contains(&vault) {
                vaults.push(vault);
            }
        }
        let index = args.index.clone().or_else(|| environment.get("VAULT_INDEX_FILE").map(PathBuf::from));
        let database = index.as_deref().map_or(Ok(None), database::named)?;
        if database.is_some() {
            check_database_vaults(args, &named, index.as_deref(), vaults.len())?;
        }
        let index_file = index.filter(|_| database.is_none());
        if let Some(file) = &index_file {
            check_index_file(file, vaults.len())?;
        }
        check_globs(&config.exclude).map_err(|error| error.at(config_file()))?;
        Ok(Self {
            vaults,
            index_file,
            database,
            databases: HashMap::new(),
            is_guess: args.vault.is_empty() && named.named_in.is_none(),
            config,
        })
    }

    /// Returns the vault of a command that works on one.
    ///
    /// # Errors
    /// If several were named.
    pub fn only_vault(&self) -> CliResult<&Path> {
        match self.vaults.as_slice() {
            [vault] => Ok(vault),
            _ => Err(Error::new(ErrorKind::Query, "this command works on one vault at a time")
                .with_remedy("give --vault once")
                .into()),
        }
    }

    /// Returns the options with which the index of a vault is opened.
    pub fn index_options(&self, vault: &Path) -> Options {
        let mut options = Options::new().exclude(&self.config.exclude);
        options.index_file.clone_from(&self.index_file);
        options.database = self.database_of(vault).cloned();
        options
    }
}

/// Returns the folders of the vaults that a command would work on in the folder `current`, as they were named.
///
/// # Errors
/// A configuration that cannot be parsed; the home folder or `/` unless they were named.
pub fn vaults_from(current: &Path, args: &VaultArgs) -> CliResult<Vec<PathBuf>> {
    let environment = Environment { current: current.to_owned(), ..Environment::of_process()? };
    Ok(named_vaults(args, &environment, &UserConfig::load()?)?.folders)
}

fn named_vaults(args: &VaultArgs, environment: &Environment<'_>, config: &UserConfig) -> CliResult<NamedVaults> {
    // An index that was named may belong to any folder.
    let is_default = args.index.is_none() && environment.get("VAULT_INDEX_FILE").is_none();
    find_vaults(&VaultSources {
        flags: &args.vault,
        variable: environment.get("VAULT_DIR"),
        indexed: if is_default { dirs::indexed_above(&environment.current) } else { None },
        current: environment.current.clone(),
        configured: Some((config.vault.0.clone(), config_file())),
        home: environment.home.clone(),
    })
}

/// Refuses what would mix vaults up in a database, where others would lose their index.
fn check_database_vaults(args: &VaultArgs, named: &NamedVaults, index: Option<&Path>, vaults: usize) -> CliResult<()> {
    if vaults > 1 && index.and_then(Path::to_str).is_some_and(|address| address.contains('#')) {
        return Err(Error::new(ErrorKind::Query, "the address of the index names one vault, after its `#`")
            .with_remedy("leave out the `#` and the name, or name one vault")
            .into());
    }
    let is_guess = args.vault.is_empty() && named.named_in.is_none();
    if is_guess && !named.folders.iter().any(|folder| folder.join(".obsidian").is_dir()) {
        return Err(must_be_named());
    }
    Ok(())
}

fn must_be_named() -> Failure {
    Failure::Refused(
        "with an index in a database, the vault must be named, because another folder would replace it (--vault DIR)"
            .to_owned(),
    )
}

/// Refuses what cannot be the file of an index.
pub(crate) fn check_index_file(file: &Path, vaults: usize) -> Result<()> {
    if file.to_str().is_some_and(|text| text.contains("://")) {
        return Err(Error::new(ErrorKind::Query, "an index is a file, or a database at postgres://…")
            .with_remedy("change --index (VAULT_INDEX_FILE, --file)"));
    }
    if vaults > 1 {
        return Err(Error::new(ErrorKind::Query, "one index file cannot serve several vaults")
            .with_remedy("leave out --index (VAULT_INDEX_FILE), or name one vault"));
    }
    let is_named_as = |ending: &str| file.extension().is_some_and(|end| end.eq_ignore_ascii_case(ending));
    if ["md", "markdown", "canvas"].into_iter().any(is_named_as) {
        return Err(Error::new(ErrorKind::Query, "an index cannot have the name of a note")
            .at(file)
            .with_remedy("choose another file with --index (VAULT_INDEX_FILE), such as notes.db"));
    }
    Ok(())
}

/// The environment of a command: folders and variables.
pub(crate) struct Environment<'a> {
    pub current: PathBuf,
    pub home: Option<PathBuf>,
    pub variable: &'a dyn Fn(&str) -> Option<OsString>,
}

impl Environment<'_> {
    pub fn of_process() -> Result<Self> {
        let current = std::env::current_dir().map_err(|error| Error::io(".", error))?;
        Ok(Self { current, home: dirs::home(), variable: &|name| std::env::var_os(name) })
    }

    /// Returns a variable; an empty one counts as not set.
    pub fn get(&self, name: &str) -> Option<OsString> {
        (self.variable)(name).filter(|value| !value.is_empty())
    }
}

/// `config.toml` in the user's configuration folder.
#[derive(Debug, Default, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct UserConfig {
    /// The vault, or a list of vaults, for when no flag, variable or current folder names one. `~/` is the home folder.
    pub vault: FolderList,
    /// The embedding model, like `--model`.
    pub model: Option<String>,
    /// The URL of a remote model's service, like `--base-url`.
    pub base_url: Option<String>,
    /// Globs of files that no vault's index includes.
    pub exclude: Vec<String>,
    /// The maximum number of results of a search.
    pub limit: Option<usize>,
    /// The ranking mode of searches.
    pub mode: Option<Mode>,
    /// Whether the best result is printed last on a terminal, nearest the prompt.
    pub best_last: bool,
    /// Whether embedding continues in the background after a search. `None` means yes.
    pub background: Option<bool>,
    /// The target of a click on a printed path.
    pub hyperlink: Hyperlink,
    /// The editor of `--open`: `obsidian`, or a command. `None` means `$VISUAL`, else `$EDITOR`.
    pub editor: Option<String>,
    /// The databases that have the indexes of vaults, by the names of the vaults' folders.
    pub databases: HashMap<String, String>,
}

const REMEDY: &str = "it may hold vault, model, base_url, exclude = [\"GLOB\"], limit, mode = \"hybrid\", \
                      \"semantic\" or \"lexical\", best_last = true, background = false, \
                      hyperlink = \"vscode\" (or another), editor = \"obsidian\" (or a command) and a table [databases] \
                      (VAULT = \"postgres://…\")";

/// Returns the path of the user's configuration file, which may not exist.
pub(crate) fn config_file() -> PathBuf {
    dirs::config_folder().unwrap_or_default().join("config.toml")
}

impl UserConfig {
    /// Reads the user's file; returns the default if it does not exist.
    ///
    /// # Errors
    /// If it cannot be read, or has an unknown setting or an invalid value.
    pub fn load() -> Result<Self> {
        match dirs::config_folder() {
            Some(_) => Self::from_file(&config_file()),
            None => Ok(Self::default()),
        }
    }

    fn from_file(file: &Path) -> Result<Self> {
        let config: Self = read_toml(file, REMEDY)?.unwrap_or_default();
        if config.limit == Some(0) {
            return Err(Error::new(ErrorKind::Query, "limit is 0").at(file).with_remedy("write 1 or more"));
        }
        Ok(config)
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// The settings in the system's folder for temporary files, with these variables and no home folder.
    pub(crate) fn merged(
        args: &VaultArgs,
        variables: &[(&str, &OsString)],
        config: UserConfig,
        canonical: fn(&Path) -> Result<PathBuf>,
    ) -> CliResult<Settings> {
        let variable = |name: &str| variables.iter().find(|(n, _)| *n == name).map(|(_, value)| (*value).clone());
        let environment = Environment { current: std::env::temp_dir(), home: None, variable: &variable };
        Settings::merge(args, &environment, config, canonical)
    }

    fn error_of(merged: CliResult<Settings>) -> String {
        let Err(Failure::Error(error)) = merged else { panic!("{merged:?}") };
        error.to_string()
    }

    #[test]
    fn an_index_file_is_named_by_flag_before_variable() {
        let file = OsString::from("e.db");
        let settings = |args: &VaultArgs| {
            let variables = [("VAULT_INDEX_FILE", &file)];
            merged(args, &variables, UserConfig::default(), dirs::canonical_vault).unwrap()
        };
        assert_eq!(settings(&VaultArgs::default()).index_file, Some("e.db".into()));
        let args = VaultArgs { index: Some("f.db".into()), ..VaultArgs::default() };
        assert_eq!(settings(&args).index_file, Some("f.db".into()));
    }

    #[test]
    fn one_index_file_serves_one_vault() {
        let folders = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
        let vault: Vec<PathBuf> = folders.iter().map(|f| f.path().to_path_buf()).collect();
        let of = |vault: &[PathBuf], index: Option<&str>| {
            let args = VaultArgs { vault: vault.to_vec(), index: index.map(PathBuf::from) };
            merged(&args, &[], UserConfig::default(), dirs::canonical_vault)
        };
        assert!(error_of(of(&vault, Some("i.db"))).contains("several vaults"));
        let settings = of(&vault, None).unwrap();
        assert_eq!(settings.vaults.len(), 2);
        assert!(settings.only_vault().is_err());
        assert!(error_of(of(&vault[..1], Some("New.MD"))).contains("the name of a note"));
    }

    #[test]
    fn a_glob_that_cannot_be_understood_says_where_it_stands() {
        let config = UserConfig { exclude: vec!["ok/".to_string(), "private[".to_string()], ..UserConfig::default() };
        let text = error_of(merged(&VaultArgs::default(), &[], config, dirs::canonical_vault));
        assert!(text.contains("config.toml: ") && text.contains("`private[`"), "{text}");
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
        let variables = [("VAULT_DIR", &joined)];
        let settings = merged(&VaultArgs::default(), &variables, UserConfig::default(), dirs::canonical_vault).unwrap();
        assert_eq!(settings.vaults, [home.join("plain"), home.join("notes")]);
    }

    #[test]
    fn a_missing_folder_says_what_to_do_and_where_it_is_named() {
        let flags = VaultArgs { vault: vec!["/no/such/folder".into()], index: None };
        let text = error_of(merged(&flags, &[], UserConfig::default(), dirs::canonical_vault));
        assert!(text.contains("--vault DIR"), "{text}");
        let gone = merged(&flags, &[], UserConfig::default(), dirs::vault_or_gone).unwrap();
        assert_eq!(gone.vaults, [PathBuf::from("/no/such/folder")]);

        let none = VaultArgs::default();
        let folder = OsString::from("/no/such/folder");
        let by_variable = merged(&none, &[("VAULT_DIR", &folder)], UserConfig::default(), dirs::canonical_vault);
        let config = UserConfig { vault: FolderList(vec!["/no/such/folder".to_string()]), ..UserConfig::default() };
        let by_file = merged(&none, &[], config, dirs::canonical_vault);
        for (merged, says) in [(by_variable, "VAULT_DIR: "), (by_file, "config.toml: ")] {
            let text = error_of(merged);
            assert!(text.contains(says) && text.contains("/no/such/folder: there is no such folder"), "{text}");
        }
    }

    #[test]
    fn exit_codes() {
        let code = |kind| Failure::from(Error::new(kind, "x")).code();
        assert_eq!([ErrorKind::Query, ErrorKind::OtherModel, ErrorKind::Locked].map(code), [2, 2, 3]);
    }
}
