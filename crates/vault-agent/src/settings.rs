//! The settings of `vault-agent`. Each value comes from `agent.toml` in the user's configuration folder, from a
//! variable `VAULT_AGENT_<NAME>` or from a flag; the later of these wins. Nothing in a vault sets a value.
//!
//! The table in `settings/table.rs` drives parsing, `config show`, `config set`, the help and the documents.

mod value;
mod table;
mod file;
mod tools_file;
mod flags;

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use agent_loop::text_calls::Format;
use agent_loop::{Model, ReasoningEffort, TextCalls};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use vault_tools::{Error, ErrorKind, Result, Toolset};

use crate::known_providers::{KEY_OF_ADDRESS, ProviderChoice, host_of};

pub(crate) use file::{change_file, choose_model, config_file, path, remove, set};
pub(crate) use flags::{SettingArgs, ValueArgs, WriterArgs};
pub(crate) use table::{Setting, TABLE, find};
pub(crate) use tools_file::{PREFIX, add_permission, remove_permission, set_policy, tools_path};

/// The values that the user has set, and the defaults of all others.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Settings {
    /// A name in `known_providers.rs`, a URL, `local:FILE.gguf` or `llama-server:FILE.gguf`.
    #[serde(deserialize_with = "provider")]
    pub provider: Option<String>,
    pub model: Option<String>,
    #[serde(deserialize_with = "address")]
    pub base_url: Option<String>,
    pub allowed_models: Vec<String>,
    pub context_length: Option<u64>,
    pub models_folder: Option<PathBuf>,
    pub system: Option<String>,
    pub temperature: Option<f64>,
    pub top_p: Option<f64>,
    pub seed: Option<u32>,
    pub max_tokens: Option<u32>,
    pub reasoning_effort: Option<Effort>,
    pub streaming: bool,
    pub tools: bool,
    pub toolsets: Vec<Toolset>,
    pub text_calls: TextCallsSetting,
    pub review: ReviewSetting,
    pub max_turns: u32,
    pub max_calls: Option<u32>,
    pub max_total_tokens: Option<u64>,
    pub max_seconds: Option<u64>,
    pub show_traffic: bool,
    pub bell: bool,
    pub threads: Option<u32>,
    pub gpu_layers: Option<u32>,
    pub repeat_penalty: Option<f64>,
    #[serde(skip)]
    sources: BTreeMap<&'static str, ValueSource>,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            provider: None,
            model: None,
            base_url: None,
            allowed_models: Vec::new(),
            context_length: None,
            models_folder: None,
            system: None,
            temperature: Some(0.2),
            top_p: None,
            seed: None,
            max_tokens: None,
            reasoning_effort: None,
            streaming: true,
            tools: true,
            toolsets: vec![Toolset::Notes],
            text_calls: TextCallsSetting::Auto,
            review: ReviewSetting::Chat,
            max_turns: 10,
            max_calls: Some(64),
            max_total_tokens: None,
            max_seconds: None,
            show_traffic: false,
            bell: true,
            threads: None,
            gpu_layers: None,
            repeat_penalty: None,
            sources: BTreeMap::new(),
        }
    }
}

/// Which results of tools the person reviews before the model gets them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum ReviewSetting {
    /// Those of the toolset `chat`.
    Chat,
    Always,
    Never,
}

/// Whether tools are called in text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub(crate) enum TextCallsSetting {
    /// If the model does not support tools.
    Auto,
    Never,
    /// Always, in this format.
    In(Format),
}

impl TextCallsSetting {
    /// Wraps the model so that it calls tools in text where the setting asks for it. `takes_tools` says whether the
    /// model supports tools, if that is known.
    pub fn wrap<M: Model + 'static>(self, model: M, takes_tools: Option<bool>) -> Arc<dyn Model> {
        match self {
            Self::Auto if takes_tools == Some(false) => Arc::new(TextCalls::new(model)),
            Self::Auto => Arc::new(TextCalls::when_needed(model)),
            Self::Never => Arc::new(model),
            Self::In(format) => Arc::new(TextCalls::new(model).format(format)),
        }
    }
}

impl TryFrom<String> for TextCallsSetting {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        match &*text {
            "auto" => Ok(Self::Auto),
            "never" => Ok(Self::Never),
            name => Format::named(name).map(Self::In).ok_or_else(|| {
                format!(
                    "{name:?} is neither auto, never nor a form of calls such as hermes, qwen3_coder, llama3, mistral"
                )
            }),
        }
    }
}

impl From<TextCallsSetting> for String {
    fn from(in_text: TextCallsSetting) -> Self {
        match in_text {
            TextCallsSetting::Auto => "auto",
            TextCallsSetting::Never => "never",
            TextCallsSetting::In(format) => format.name(),
        }
        .to_owned()
    }
}

/// How much a model reasons before it answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub(crate) struct Effort(pub ReasoningEffort);

/// `none` already means "not set", so no reasoning is `off`.
const EFFORTS: [(&str, ReasoningEffort); 7] = [
    ("off", ReasoningEffort::None),
    ("minimal", ReasoningEffort::Minimal),
    ("low", ReasoningEffort::Low),
    ("medium", ReasoningEffort::Medium),
    ("high", ReasoningEffort::High),
    ("xhigh", ReasoningEffort::XHigh),
    ("max", ReasoningEffort::Max),
];

impl TryFrom<String> for Effort {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        EFFORTS.iter().find(|(name, _)| *name == text).map(|(_, effort)| Self(*effort)).ok_or_else(|| {
            let names: Vec<&str> = EFFORTS.iter().map(|(name, _)| *name).collect();
            format!("{text:?} is not one of {}", names.join(", "))
        })
    }
}

impl From<Effort> for String {
    fn from(effort: Effort) -> Self {
        EFFORTS.iter().find(|(_, known)| *known == effort.0).map_or("", |(name, _)| name).to_owned()
    }
}

/// Accepts only valid URLs.
fn address<'de, D: serde::Deserializer<'de>>(from: D) -> Result<Option<String>, D::Error> {
    let address = Option::<String>::deserialize(from)?;
    address.as_deref().map(host_of).transpose().map_err(serde::de::Error::custom)?;
    Ok(address)
}

/// Accepts only valid providers.
fn provider<'de, D: serde::Deserializer<'de>>(from: D) -> Result<Option<String>, D::Error> {
    let name = Option::<String>::deserialize(from)?;
    name.as_deref().map(ProviderChoice::parse).transpose().map_err(serde::de::Error::custom)?;
    Ok(name)
}

/// The source of a value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ValueSource {
    Default,
    File { path: PathBuf, line: usize },
    Variable(String),
    Flag(String),
}

impl ValueSource {
    /// The name of the source in records.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Default => "default",
            Self::File { .. } => "file",
            Self::Variable(_) => "variable",
            Self::Flag(_) => "flag",
        }
    }
}

impl fmt::Display for ValueSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Default => f.write_str("default"),
            Self::File { path, line } => write!(f, "{}:{line}", path.display()),
            Self::Variable(name) => f.write_str(name),
            Self::Flag(flag) => write!(f, "--{flag}"),
        }
    }
}

/// An invalid value, and its source.
#[derive(Debug)]
pub(crate) struct Problem {
    pub source: ValueSource,
    pub message: String,
}

impl From<Problem> for Error {
    fn from(problem: Problem) -> Self {
        Self::new(ErrorKind::Config, problem.message).at(problem.source)
    }
}

impl Settings {
    /// Loads the user's settings, with the flags of the command line.
    ///
    /// # Errors
    /// A file that cannot be read, and the first invalid value; [`Settings::check`] finds all of them.
    pub fn load(flags: &SettingArgs) -> Result<Self> {
        let (settings, problems) = Self::check(flags)?;
        match problems.into_iter().next() {
            None => Ok(settings),
            Some(problem) => Err(problem.into()),
        }
    }

    /// Loads the settings, and returns all invalid values.
    ///
    /// # Errors
    /// A file that cannot be read.
    pub fn check(flags: &SettingArgs) -> Result<(Self, Vec<Problem>)> {
        let (in_file, mut problems) = file::read()?;
        let mut settings = Self::default();
        let given = in_file.into_iter().chain(variables(&mut problems)).chain(flags.given(&mut problems));
        for (setting, value, source) in given.collect::<Vec<_>>() {
            if let Err(message) = settings.put(setting, value, source.clone()) {
                // A flag is named like its setting.
                let message = match source {
                    ValueSource::Flag(_) => message,
                    _ => format!("{}: {message}", setting.name),
                };
                problems.push(Problem { source, message });
            }
        }
        Ok((settings, problems))
    }

    /// Sets the model, and the provider if one is given. A new provider resets the address, because it belongs to the
    /// old one.
    pub fn set_model(&mut self, provider: Option<String>, model: String) {
        if provider.is_some() && provider != self.provider {
            (self.base_url, self.provider) = (None, provider);
        }
        self.model = Some(model);
    }

    /// Returns the source of a setting's value.
    pub fn source(&self, name: &str) -> &ValueSource {
        self.sources.get(name).unwrap_or(&ValueSource::Default)
    }

    /// Returns a setting's value, or `null` if it has none.
    pub fn value(&self, name: &str) -> Value {
        serde_json::to_value(self).ok().and_then(|mut all| Some(all.get_mut(name)?.take())).unwrap_or_default()
    }

    /// Sets one value.
    ///
    /// # Errors
    /// The reason why the value is invalid.
    fn put(&mut self, setting: &'static Setting, value: Value, source: ValueSource) -> Result<(), String> {
        let mut all = serde_json::to_value(&*self).map_err(|error| error.to_string())?;
        all[setting.name] = value;
        let sources = std::mem::take(&mut self.sources);
        let changed = serde_json::from_value(all).map_err(|error| error.to_string());
        let result = changed.map(|changed| *self = changed);
        self.sources = sources;
        if result.is_ok() {
            self.sources.insert(setting.name, source);
        }
        result
    }
}

/// A value, and the source that gave it.
type SettingValue = (&'static Setting, Value, ValueSource);

/// Reads the settings from the environment. A variable with an empty value counts as unset.
fn variables(problems: &mut Vec<Problem>) -> Vec<SettingValue> {
    let mut given = Vec::new();
    for setting in &TABLE {
        let name = setting.variable();
        let Some(text) = std::env::var_os(&name).filter(|text| !text.is_empty()) else { continue };
        let source = ValueSource::Variable(name);
        match text.to_str().ok_or_else(|| "it is not text in UTF-8".to_owned()).and_then(|text| setting.of_text(text)) {
            Ok(value) => given.push((setting, value, source)),
            Err(message) => problems.push(Problem { source, message: format!("{}: {message}", setting.name) }),
        }
    }
    given
}

/// Returns the variables that begin with `VAULT_AGENT_` but name no setting.
pub(crate) fn unknown_variables() -> Vec<String> {
    let names = std::env::vars_os().filter_map(|(name, _)| name.into_string().ok());
    let known = |name: &str| name == KEY_OF_ADDRESS || TABLE.iter().any(|setting| setting.variable() == name);
    names.filter(|name| name.starts_with("VAULT_AGENT_") && !known(name)).collect()
}

/// Parses a value for the setting, and validates it without the other settings.
///
/// # Errors
/// The reason why it is invalid.
pub(crate) fn read_value(setting: &'static Setting, text: &str) -> Result<Value, String> {
    let value = setting.of_text(text)?;
    Settings::default().put(setting, value.clone(), ValueSource::Default)?;
    Ok(value)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_table_names_every_setting_once() {
        let all = serde_json::to_value(Settings::default()).unwrap();
        let fields: Vec<&String> = all.as_object().unwrap().keys().collect();
        assert_eq!(fields, TABLE.iter().map(|setting| setting.name).collect::<Vec<_>>());
        for setting in &TABLE {
            let default = Settings::default().value(setting.name);
            assert!(!default.is_null() || setting.is_optional, "{}", setting.name);
        }
    }

    #[test]
    fn values_from_text() {
        for (name, text, expected) in [
            ("max_turns", "3", json!(3)),
            ("temperature", "0", json!(0.0)),
            ("temperature", "none", Value::Null),
            ("streaming", "off", json!(false)),
            ("toolsets", "notes, bulk", json!(["notes", "bulk"])),
            ("allowed_models", "", json!([])),
            ("text_calls", "qwen3_coder", json!("qwen3_coder")),
            ("review", "always", json!("always")),
            ("reasoning_effort", "off", json!("off")),
            ("reasoning_effort", "xhigh", json!("xhigh")),
            ("provider", "https://host.example/v1", json!("https://host.example/v1")),
        ] {
            assert_eq!(read_value(find(name).unwrap(), text).unwrap(), expected, "{name} = {text}");
        }
        for (name, text, said) in [
            ("max_turns", "0", "a whole number from 1 to 1000"),
            ("max_turns", "many", "a whole number from 1 to 1000"),
            ("max_turns", "none", "a whole number from 1 to 1000"),
            ("temperature", "2.5", "a number from 0 to 2"),
            ("temperature", "NaN", "a number from 0 to 2"),
            ("streaming", "maybe", "true or false"),
            ("toolsets", "note", "notes"),
            ("text_calls", "chatml", "hermes"),
            ("review", "sometimes", "always"),
            ("reasoning_effort", "much", "off, minimal, low, medium, high, xhigh, max"),
            ("provider", "opnai", "did you mean openai?"),
            ("base_url", "localhost:8080", "https://host/v1"),
            ("modle", "x", "did you mean model?"),
        ] {
            let error = find(name).and_then(|setting| read_value(setting, text)).unwrap_err();
            assert!(error.contains(said), "{name} = {text}: {error}");
        }
    }

    #[test]
    fn the_last_source_counts_and_is_known() {
        let mut settings = Settings::default();
        let setting = find("model").unwrap();
        settings.put(setting, json!("a"), ValueSource::Variable("VAULT_AGENT_MODEL".into())).unwrap();
        settings.put(setting, json!("b"), ValueSource::Flag("model".into())).unwrap();
        assert_eq!((settings.model.as_deref(), settings.source("model").kind()), (Some("b"), "flag"));
        assert_eq!(settings.source("max_turns"), &ValueSource::Default);
        assert!(settings.put(setting, json!(1), ValueSource::Default).is_err());
        assert_eq!(settings.model.as_deref(), Some("b"));
    }
}
