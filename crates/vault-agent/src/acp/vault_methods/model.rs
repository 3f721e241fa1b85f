//! The model of conversations: which one the settings choose, where notes go for it, what the settings of the vault allow,
//! and whether it answers. A key goes into the system's keyring, and never back out.

use std::time::{Duration, Instant};

use agent_loop::{Message, Reply, Request};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tokio::runtime::Handle;
use tokio_util::sync::CancellationToken;
use vault_tools::{Error, ErrorKind, Result};

use crate::keys;
use crate::known_providers::{KNOWN, ProviderChoice, connection, host_of, is_this_machine};
use crate::loop_error::of_loop;
use crate::model::{self, chosen_provider, provider_with_key};
use crate::model_list::list;
use crate::settings::{self, SettingArgs, Settings, ValueSource, path, tools_path};
use crate::workspace::OpenVault;

/// How long a model may take to answer the test.
const WITHIN: Duration = Duration::from_secs(60);

/// Tokens of the answer to the test: models that reason need some for that.
const TEST_TOKENS: u32 = 256;

/// Characters of that answer that are shown.
const LONGEST_REPLY: usize = 200;

/// The model of conversations, and what may be done in them.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ModelStateResult {
    /// The provider, by name or address; none if no model is chosen.
    pub provider: Option<String>,
    /// The model, by the provider's name for it.
    pub model: Option<String>,
    /// The models that may be chosen; empty if all may.
    pub allowed_models: Vec<String>,
    /// The host that notes are sent to; none if they stay on this machine or no model is chosen.
    pub host: Option<String>,
    /// Where the key of the provider is from, for example a variable or the keyring.
    pub key: Option<String>,
    /// The reason for which no conversation can begin.
    pub problem: Option<String>,
    /// The file with these settings.
    pub file: String,
    /// Settings that a variable or a flag sets, so that the file has no effect on them: `provider`, `model`.
    pub fixed: Vec<String>,
    /// The providers that have a name.
    pub providers: Vec<NamedProvider>,
    /// The policy of this vault.
    pub policy: Vec<PolicySetting>,
    /// The file with the policy.
    pub policy_file: String,
}

/// A provider that has a name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct NamedProvider {
    /// The name.
    pub name: String,
    /// Whether it runs on this machine and needs no key.
    pub is_local: bool,
}

/// A setting of the policy.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct PolicySetting {
    /// The name, as in `vault-agent config set policy.NAME`.
    pub name: String,
    /// The value, in words.
    pub value: String,
    /// The meaning.
    pub description: String,
}

/// Another model. Not `Debug`, because of the key.
#[derive(Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct SetModelRequest {
    /// The vault's folder, absolute. It can be left out if the program was started with one `--vault`.
    pub vault: Option<String>,
    /// The provider, by name or address.
    pub provider: String,
    /// The model; the provider's own if it is left out, as for a file.
    pub model: Option<String>,
    /// A key, which is kept in the system's keyring; the one that is there stays if it is left out.
    pub key: Option<String>,
}

/// The models of a provider.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ModelsRequest {
    /// The vault's folder, absolute. It can be left out if the program was started with one `--vault`.
    pub vault: Option<String>,
    /// The provider, by name or address.
    pub provider: String,
}

/// The models that a provider names.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ModelsResult {
    /// Their names.
    pub models: Vec<String>,
}

/// An answer of the model.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct TestModelResult {
    /// The name of the model.
    pub model: String,
    /// The beginning of its answer.
    pub reply: String,
    /// Milliseconds that it took.
    pub took_ms: u64,
}

/// The model that the settings choose, without asking it.
///
/// # Errors
/// Settings that cannot be read.
pub(super) fn state(open: &OpenVault, flags: &SettingArgs) -> Result<ModelStateResult> {
    let (settings, problems) = Settings::check(flags)?;
    let choice = chosen_provider(&settings);
    let problem = match (problems.into_iter().next(), &choice) {
        (Some(problem), _) => Some(Error::from(problem).one_line()),
        (None, Ok(Some(choice))) => checked(choice, &settings).err().map(|error| error.one_line()),
        (None, Ok(None)) => Some("no model is chosen".to_owned()),
        (None, Err(error)) => Some(error.one_line()),
    };
    let choice = choice.ok().flatten();
    let address = choice.as_ref().and_then(|choice| choice.provider(settings.base_url.as_deref()).ok().flatten());
    let address = address.map(|provider| provider.base_url);
    let is_here = address.as_deref().is_none_or(is_this_machine);
    let key = choice.as_ref().and_then(|choice| if is_here { keys::of_variables(choice) } else { keys::find(choice) });
    let is_fixed = |name: &&str| matches!(settings.source(name), ValueSource::Variable(_) | ValueSource::Flag(_));
    Ok(ModelStateResult {
        host: address.filter(|_| !is_here).and_then(|address| host_of(&address).ok()),
        key: key.map(|key| key.source().to_string()),
        problem,
        file: path()?.display().to_string(),
        fixed: ["provider", "model"].into_iter().filter(is_fixed).map(str::to_owned).collect(),
        providers: KNOWN.iter().map(|known| named(&ProviderChoice::Known(known))).collect(),
        policy: policy(open)?,
        policy_file: tools_path()?.display().to_string(),
        provider: settings.provider,
        model: settings.model,
        allowed_models: settings.allowed_models,
    })
}

/// Whether a conversation can begin, without asking the model.
fn checked(choice: &ProviderChoice, settings: &Settings) -> Result<()> {
    provider_with_key(choice, settings)?;
    crate::local_models::check(choice, settings)?;
    model::allowed_name(choice, settings).map(drop)
}

fn named(choice: &ProviderChoice) -> NamedProvider {
    let is_local = matches!(choice.provider(None), Ok(Some(at)) if is_this_machine(&at.base_url));
    NamedProvider { name: choice.name(), is_local }
}

fn policy(open: &OpenVault) -> Result<Vec<PolicySetting>> {
    let schema = schemars::schema_for!(vault_tools::PolicySettings);
    let policy = open.policy();
    let values =
        serde_json::to_value(policy.settings()).map_err(|error| Error::new(ErrorKind::Config, error.to_string()))?;
    let shown = |(name, value): (&String, &Value)| {
        let description = schema.as_value()["properties"][name]["description"].as_str().unwrap_or_default();
        let description = description.split('\n').next().unwrap_or_default().to_owned();
        PolicySetting { name: name.clone(), value: in_words(value), description }
    };
    // The lists for single vaults are merged already.
    Ok(values.as_object().into_iter().flatten().filter(|(name, _)| *name != "vault").map(shown).collect())
}

fn in_words(value: &Value) -> String {
    match value {
        Value::Null => "none".to_owned(),
        Value::Bool(is) => if *is { "yes" } else { "no" }.to_owned(),
        Value::String(text) => text.clone(),
        Value::Array(values) if values.is_empty() => "none".to_owned(),
        Value::Object(fields) if fields.is_empty() => "none".to_owned(),
        Value::Array(values) => values.iter().map(in_words).collect::<Vec<_>>().join(", "),
        other => other.to_string(),
    }
}

/// Chooses another model, and stores the key if one is given.
///
/// # Errors
/// A provider that is not known; no keyring; a file that cannot be written.
pub(super) fn set(open: &OpenVault, request: &SetModelRequest, flags: &SettingArgs) -> Result<ModelStateResult> {
    let bad = |why: String| Error::new(ErrorKind::InvalidArguments, why);
    let choice = ProviderChoice::parse(&request.provider).map_err(bad)?;
    if let Some(key) = request.key.as_deref().filter(|key| !key.trim().is_empty()) {
        if choice.key_variables().is_empty() {
            return Err(bad(format!("{} takes no key", choice.name())));
        }
        keys::keep(&choice, keys::read(key).map_err(|why| bad(why.to_owned()))?)?;
    }
    settings::choose_model(
        request.provider.trim(),
        request.model.as_deref().map(str::trim).filter(|model| !model.is_empty()),
    )?;
    state(open, flags)
}

/// The models that a provider names.
///
/// # Errors
/// A provider that is not known, cannot be reached, or refuses the key.
pub(super) fn models(request: &ModelsRequest, flags: &SettingArgs, stop: &CancellationToken) -> Result<ModelsResult> {
    let choice =
        ProviderChoice::parse(&request.provider).map_err(|why| Error::new(ErrorKind::InvalidArguments, why))?;
    let mut settings = Settings::load(flags)?;
    let is_chosen = chosen_provider(&settings)?.is_some_and(|chosen| chosen.name() == choice.name());
    settings.base_url = settings.base_url.filter(|_| is_chosen);
    // A key is for an address that the user has saved, not for one that a client names.
    let provider = match choice {
        ProviderChoice::Address(_) if !is_chosen => choice.provider(None)?,
        _ => provider_with_key(&choice, &settings)?,
    };
    let Some(provider) = provider else { return Ok(ModelsResult { models: Vec::new() }) };
    let http = connection()?;
    let listed = Handle::current().block_on(stop.run_until_cancelled(list(&choice, &provider, &http)));
    let listed = listed.ok_or_else(cancelled)??;
    Ok(ModelsResult { models: listed.into_iter().map(|model| model.name).collect() })
}

fn cancelled() -> Error {
    Error::new(ErrorKind::Cancelled, "the request was cancelled")
}

/// Asks the model that the settings choose for a word. No note is sent.
///
/// # Errors
/// No model; one that does not answer.
pub(super) fn test(flags: &SettingArgs, stop: &CancellationToken) -> Result<TestModelResult> {
    let settings = Settings::load(flags)?;
    let chosen = model::required(&settings)?;
    let began = Instant::now();
    let message = Message::user("This is a test of the connection. Answer with the one word: ready");
    let request = Request::default().messages([message].into_iter().collect()).max_output_tokens(Some(TEST_TOKENS));
    let asked = async { Reply::collect(chosen.model.reply(request).await?).await };
    let asked = async { stop.run_until_cancelled(tokio::time::timeout(WITHIN, asked)).await };
    let reply = Handle::current().block_on(asked).ok_or_else(cancelled)?.map_err(|_| {
        let message = format!("{} did not answer within {} seconds", chosen.name, WITHIN.as_secs());
        Error::new(ErrorKind::TimedOut, message).with_remedy("try again later")
    })?;
    let text = reply.map_err(of_loop)?.visible_text();
    Ok(TestModelResult {
        model: chosen.name,
        reply: text.trim().chars().take(LONGEST_REPLY).collect(),
        took_ms: began.elapsed().as_millis().try_into().unwrap_or(u64::MAX),
    })
}
