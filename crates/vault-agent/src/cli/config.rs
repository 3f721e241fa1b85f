//! `vault-agent config`: shows, changes and checks the settings.

use clap::{Args, Subcommand};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, Value};
use vault_index::settings_file::read_toml;
use vault_search::VaultArgs;
use vault_search::search::{Finding, FindingKind};
use vault_search::tools::check_settings;
use vault_search::{CliResult, Failure, ListArgs, Out, Outcome, note};
use vault_tools::{Error, ErrorKind, PolicySettings};

use crate::model::{chosen_provider, provider_with_key};
use crate::settings::{
    self, PREFIX, Problem, Setting, SettingArgs, Settings, TABLE, ValueArgs, ValueSource, tools_path,
};

#[derive(Debug, Subcommand)]
pub(super) enum ConfigCommand {
    /// Show every setting with its value and the source of the value
    #[command(
        after_long_help = "A flag overrides a variable, which overrides the file, which overrides the default. Nothing in a vault \
sets any of these.\n\nExamples:\n  vault-agent config show\n  VAULT_AGENT_MAX_TURNS=3 vault-agent config show \
--json --temperature 0"
    )]
    Show(ShowArgs),
    /// Print the path of the file with your settings
    #[command(after_long_help = "Example:\n  $EDITOR \"$(vault-agent config path)\"")]
    Path,
    /// Write a setting into the file
    #[command(
        after_long_help = "Comments and everything else in the file stay as they are. `none` removes a limit.\n\nExamples:\n  \
vault-agent config set provider ollama\n  vault-agent config set model qwen3:8b\n  vault-agent config set toolsets notes,bulk\n  \
vault-agent config set max_total_tokens 200000\n  vault-agent config set model --unset\n  vault-agent config set policy.allow_delete true"
    )]
    Set(SetArgs),
    /// Check the settings, and print each invalid value with its file and line
    #[command(
        after_long_help = "It reads agent.toml, tools.toml and config.toml in your configuration folder, the .vault.toml of the \
vault, and the variables. Exit codes: 0 all is well, 1 something is wrong.\n\nExamples:\n  vault-agent config check\n  vault-agent config check --provider ollama"
    )]
    Check(CheckArgs),
}

#[derive(Debug, Args)]
pub(super) struct ShowArgs {
    #[command(flatten)]
    pub settings: SettingArgs,
    #[command(flatten)]
    pub list: ListArgs,
}

#[derive(Debug, Args)]
pub(super) struct SetArgs {
    /// The setting
    pub name: String,
    /// The value; separate the items of a list with commas
    #[arg(required_unless_present = "unset", allow_hyphen_values = true)]
    pub value: Option<String>,
    /// Remove the setting from the file
    #[arg(long, conflicts_with = "value")]
    pub unset: bool,
}

#[derive(Debug, Args)]
pub(super) struct CheckArgs {
    #[command(flatten)]
    pub settings: ValueArgs,
    #[command(flatten)]
    pub list: ListArgs,
}

/// A setting, its value and the source of the value.
#[derive(Debug, Serialize, JsonSchema)]
// The name in the schema that `config show --schema` prints.
#[schemars(rename = "Shown")]
struct SettingRecord {
    /// Those of `tools.toml` begin with `policy.`.
    setting: String,
    /// `null` where nothing is set.
    value: Value,
    /// `default`, `file`, `variable` or `flag`.
    source: &'static str,
    /// The file and line, the variable, or the flag.
    #[serde(skip_serializing_if = "Option::is_none")]
    at: Option<String>,
    description: String,
}

/// One checked item, and the result.
#[derive(Debug, Serialize, JsonSchema)]
struct Check {
    /// The source of the setting, for example a file and line, a variable or a flag.
    subject: String,
    is_ok: bool,
    message: String,
}

pub(super) fn config(vault_args: &VaultArgs, command: &ConfigCommand, out: &mut Out) -> CliResult {
    match command {
        ConfigCommand::Show(args) => show(args, out),
        ConfigCommand::Path => {
            out.line(&settings::path()?.display().to_string())?;
            Ok(Outcome::Done)
        }
        ConfigCommand::Set(args) => set(args),
        ConfigCommand::Check(args) => check(vault_args, args, out),
    }
}

fn show(args: &ShowArgs, out: &mut Out) -> CliResult {
    if args.list.schema {
        return out.list_schema::<SettingRecord>(&args.list);
    }
    let settings = Settings::load(&args.settings)?;
    let mut shown: Vec<SettingRecord> = TABLE.iter().map(|setting| shown(setting, &settings)).collect();
    shown.extend(policy()?);
    out.list(args.list.format(), &shown, |out, shown| {
        let rows: Vec<(String, String)> = shown
            .iter()
            .map(|row| {
                let from = row.at.as_ref().map_or_else(String::new, |at| format!("  ({at})"));
                (row.setting.clone(), format!("{}{from}", in_words(&row.value)))
            })
            .collect();
        out.table(&rows)
    })
}

fn shown(setting: &Setting, settings: &Settings) -> SettingRecord {
    let source = settings.source(setting.name);
    SettingRecord {
        setting: setting.name.to_owned(),
        value: settings.value(setting.name),
        source: source.kind(),
        at: (*source != ValueSource::Default).then(|| source.to_string()),
        description: setting.what.to_owned(),
    }
}

/// Returns the settings of `tools.toml` that hold for all vaults.
fn policy() -> vault_tools::Result<Vec<SettingRecord>> {
    let Ok(file) = tools_path() else { return Ok(Vec::new()) };
    let given: Map<String, Value> = read_toml(&file, "vault-tools --help lists its settings")?.unwrap_or_default();
    let bad = |error: serde_json::Error| Error::new(ErrorKind::Config, error.to_string()).at(file.display());
    let policy: PolicySettings = serde_json::from_value(Value::Object(given.clone())).map_err(bad)?;
    let values: Map<String, Value> = serde_json::to_value(policy).and_then(serde_json::from_value).map_err(bad)?;
    let schema = schemars::schema_for!(PolicySettings);
    let shown = |(name, value): (String, Value)| {
        let is_given = given.contains_key(&name);
        let description = schema.as_value()["properties"][&name]["description"].as_str().unwrap_or_default();
        SettingRecord {
            setting: format!("{PREFIX}{name}"),
            value,
            source: if is_given { "file" } else { "default" },
            at: is_given.then(|| file.display().to_string()),
            description: description.split(['\n']).next().unwrap_or_default().to_owned(),
        }
    };
    Ok(values.into_iter().map(shown).collect())
}

fn in_words(value: &Value) -> String {
    match value {
        Value::Null => "none".to_owned(),
        Value::String(text) => text.clone(),
        Value::Array(values) if values.is_empty() => "none".to_owned(),
        Value::Object(fields) if fields.is_empty() => "none".to_owned(),
        Value::Array(values) => values.iter().map(in_words).collect::<Vec<_>>().join(", "),
        other => other.to_string(),
    }
}

fn set(args: &SetArgs) -> CliResult {
    if let Some(name) = args.name.strip_prefix(PREFIX) {
        let file = settings::set_policy(name, args.value.as_deref())?;
        note(&format!("written to {}; running programs keep the settings that they started with", file.display()));
        return Ok(Outcome::Done);
    }
    let setting = settings::find(&args.name).map_err(Failure::Error)?;
    let file = match &args.value {
        Some(text) => {
            let value =
                settings::read_value(setting, text).map_err(|why| Failure::Error(format!("{}: {why}", args.name)))?;
            let file = settings::set(setting, &value)?;
            let variable = setting.variable();
            if std::env::var_os(&variable).is_some_and(|value| !value.is_empty()) {
                note(&format!("the variable {variable} is set, and overrides the file"));
            }
            file
        }
        None => settings::remove(setting)?,
    };
    note(&format!("written to {}", file.display()));
    Ok(Outcome::Done)
}

fn check(vault_args: &VaultArgs, args: &CheckArgs, out: &mut Out) -> CliResult {
    if args.list.schema {
        return out.list_schema::<Check>(&args.list);
    }
    let (settings, problems) = Settings::check(&args.settings.0)?;
    let mut checks: Vec<Check> = Vec::new();
    let mut add = |subject: String, is_ok: bool, message: String| checks.push(Check { subject, is_ok, message });
    for problem in &problems {
        add(problem.source.to_string(), false, problem.message.clone());
    }
    for name in settings::unknown_variables() {
        add(name, false, "there is no such setting, so the variable has no effect".to_owned());
    }
    for fault in check_settings(vault_args) {
        let subject = fault.path().unwrap_or("settings").to_owned();
        let remedy = fault.remedy().map_or_else(String::new, |remedy| format!(" ({remedy})"));
        add(subject, false, format!("{}{remedy}", fault.message()));
    }
    if problems.is_empty() {
        match model_of(&settings) {
            Ok(found) => add("model".to_owned(), true, found),
            Err(error) => add("model".to_owned(), false, error.one_line()),
        }
    }
    let is_ok = checks.iter().all(|check| check.is_ok);
    out.list(args.list.format(), &checks, |out, checks| {
        checks.iter().try_for_each(|check| {
            let kind = if check.is_ok { "ok" } else { "fault" };
            out.line(&vault_search::sanitize_line(&format!("{kind}: {}: {}", check.subject, check.message)))
        })
    })?;
    Ok(if is_ok { Outcome::Done } else { Outcome::Nothing })
}

/// What is wrong with the settings, as findings of `doctor`.
pub(super) fn findings() -> CliResult<Vec<Finding>> {
    let (_, problems) = Settings::check(&SettingArgs::default())?;
    let finding = |problem: Problem| {
        let remedy = "vault-agent config set NAME VALUE writes a valid one; vault-agent config show lists the settings";
        Finding::problem(FindingKind::Settings, problem.source.to_string(), problem.message, remedy)
    };
    Ok(problems.into_iter().map(finding).collect())
}

/// Describes the model that would be used, without a request to it.
fn model_of(settings: &Settings) -> vault_tools::Result<String> {
    let Some(choice) = chosen_provider(settings)? else {
        return Ok("none is configured; for example, run vault-agent config set provider ollama".to_owned());
    };
    let provider = provider_with_key(&choice, settings)?;
    crate::local_models::check(&choice, settings)?;
    let name = crate::model::allowed_name(&choice, settings)?;
    let at = provider.map(|provider| crate::known_providers::host_of(&provider.base_url).unwrap_or_default());
    Ok(format!("{name} of {}{}", choice.name(), at.map_or_else(String::new, |host| format!(" at {host}"))))
}
