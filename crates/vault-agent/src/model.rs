//! Opens the model that the settings choose, and tells the user once per host what will be sent there.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use agent_loop::{
    BoxFuture, ErrorKind as ModelError, HostedModel, ImageSupport, Model, ModelSettings, Provider, ReplyStream,
    Request, Streaming, ToolSupport, Wire,
};
use vault_search::note;
use vault_tools::{Error, ErrorKind, Result};

use crate::known_providers::{
    LOCAL_CONTEXT, Listing, ProviderChoice, connection, context_length, host_of, is_this_machine, takes_tools,
};
use crate::settings::{Settings, ValueSource};
use crate::state_folder::state_of_user;
use crate::traffic::Traffic;
use crate::{keys, local_models};

/// A model that is ready for requests.
#[derive(Clone)]
pub(crate) struct ChosenModel {
    pub model: Arc<dyn Model>,
    pub name: String,
    /// The provider as the settings name it, or the host of an address.
    pub provider: String,
    pub destination: Destination,
    /// The context length in tokens, if it is known or set.
    pub context_length: Option<u64>,
}

/// The destination of the notes that a model reads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Destination {
    ThisMachine,
    /// Another machine, by its name.
    Host(String),
}

/// Returns the provider in the settings, if there is one.
///
/// # Errors
/// A model without a provider.
pub(crate) fn chosen_provider(settings: &Settings) -> Result<Option<ProviderChoice>> {
    let bad = |why| Error::new(ErrorKind::Config, why);
    match (&settings.provider, &settings.base_url, &settings.model) {
        (Some(name), ..) => ProviderChoice::parse(name).map(Some).map_err(bad),
        (None, Some(address), _) => ProviderChoice::parse(address).map(Some).map_err(bad),
        (None, None, Some(model)) => Err(bad(format!("the model {model} has no provider"))
            .with_remedy("set provider, such as ollama, openai or https://host/v1")),
        (None, None, None) => Ok(None),
    }
}

/// Returns the provider in the settings with its key, if it has one, or `None` for a local model.
///
/// # Errors
/// An invalid address; a missing key.
pub(crate) fn provider_with_key(choice: &ProviderChoice, settings: &Settings) -> Result<Option<Provider>> {
    let Some(provider) = choice.provider(settings.base_url.as_deref())? else { return Ok(None) };
    // Skip the keyring for a server on this machine, because it usually needs no key and the keyring may ask for its
    // password.
    let is_here = is_this_machine(&provider.base_url);
    let key = if is_here { keys::of_variables(choice) } else { keys::find(choice) };
    if key.is_none() && !is_here && matches!(choice, ProviderChoice::Known(_)) {
        return Err(keys::missing(choice));
    }
    Ok(Some(provider.key(key.map(|key| key.text().to_owned()))))
}

/// Opens the model that the settings choose, if they choose one.
///
/// # Errors
/// A model without a provider; a model that is not allowed; a missing key; a model that cannot be loaded.
pub(crate) fn open(settings: &Settings) -> Result<Option<ChosenModel>> {
    let Some(choice) = chosen_provider(settings)? else { return Ok(None) };
    let name = allowed_name(&choice, settings)?;
    let (model, destination, loaded) = match provider_with_key(&choice, settings)? {
        None => {
            let (model, context) = local_models::load(&choice, settings)?;
            (model, Destination::ThisMachine, context)
        }
        Some(provider) => {
            let destination = destination(&provider);
            say_once(&destination, &name, &provider.base_url);
            (hosted(provider, &name, settings, takes_tools(&choice, &name))?, destination, None)
        }
    };
    let of_ollama = matches!(choice.listing(), Some(Listing::Ollama)).then_some(LOCAL_CONTEXT);
    let context_length = loaded.or(settings.context_length).or(of_ollama).or_else(|| context_length(&choice, &name));
    Ok(Some(ChosenModel { model, name, provider: choice.name(), destination, context_length }))
}

/// Opens the model like [`open`], for commands that need one.
///
/// # Errors
/// Those of [`open`]; no model is configured.
pub(crate) fn required(settings: &Settings) -> Result<ChosenModel> {
    open(settings)?.ok_or_else(|| {
        Error::new(ErrorKind::Config, "no model is configured").with_remedy(
            "vault-agent config set provider NAME and vault-agent config set model NAME configure one; vault-agent login \
             PROVIDER stores the key of a hosted one; vault-agent models lists them",
        )
    })
}

/// Returns the name of the model that the settings choose.
///
/// # Errors
/// No model is chosen; a model that is not allowed.
pub(crate) fn allowed_name(choice: &ProviderChoice, settings: &Settings) -> Result<String> {
    let (name, allowed) = (model_name(choice, settings)?, &settings.allowed_models);
    if allowed.is_empty() || allowed.contains(&name) {
        return Ok(name);
    }
    let message = format!("the model {name} is not among the allowed_models");
    Err(Error::new(ErrorKind::Denied, message).with_remedy(format!("choose one of {}", allowed.join(", "))))
}

fn model_name(choice: &ProviderChoice, settings: &Settings) -> Result<String> {
    let stem = |file: &Path| file.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    match (&settings.model, choice) {
        (Some(name), _) => Ok(name.clone()),
        (None, ProviderChoice::LocalFile(file) | ProviderChoice::LlamaServer(file)) => Ok(stem(file)),
        (None, _) => {
            let message = format!("no model of {} is chosen", choice.name());
            let remedy = "vault-agent models lists them; set model, or add --model NAME";
            Err(Error::new(ErrorKind::Config, message).with_remedy(remedy))
        }
    }
}

fn destination(provider: &Provider) -> Destination {
    match is_this_machine(&provider.base_url) {
        true => Destination::ThisMachine,
        false => Destination::Host(host_of(&provider.base_url).unwrap_or_else(|_| provider.name.clone())),
    }
}

fn hosted(provider: Provider, name: &str, settings: &Settings, takes_tools: Option<bool>) -> Result<Arc<dyn Model>> {
    let provider = provider.streaming(if settings.streaming { Streaming::Yes } else { Streaming::No });
    let is_ollama = provider.wire == Wire::Ollama;
    let traffic = Traffic::new(connection()?, provider.key.clone(), settings.show_traffic);
    let model = ConfiguredModel::new(HostedModel::new(provider, name, traffic), is_ollama, settings);
    Ok(settings.text_calls.wrap(model, takes_tools))
}

/// A model with the provider's settings, in every request that leaves them open.
///
/// If it refuses the default temperature, as reasoning models do, the request is repeated without one. A temperature
/// that the user chose is never left out.
struct ConfiguredModel<M> {
    model: M,
    settings: ModelSettings,
    /// The default temperature, if the user set none.
    temperature: Option<f64>,
    takes_no_temperature: AtomicBool,
}

impl<M> ConfiguredModel<M> {
    fn new(model: M, is_ollama: bool, settings: &Settings) -> Self {
        let context = settings.context_length.unwrap_or(LOCAL_CONTEXT);
        let context = is_ollama.then(|| u32::try_from(context).unwrap_or(u32::MAX));
        let effort = settings.reasoning_effort.map(|effort| effort.0);
        Self {
            model,
            settings: ModelSettings::default().context_length(context).reasoning_effort(effort),
            temperature: settings.temperature.filter(|_| *settings.source("temperature") == ValueSource::Default),
            takes_no_temperature: AtomicBool::new(false),
        }
    }

    fn configured(&self, mut request: Request) -> Request {
        let settings = &mut request.settings;
        settings.context_length = settings.context_length.or(self.settings.context_length);
        settings.reasoning_effort = settings.reasoning_effort.or(self.settings.reasoning_effort);
        request
    }
}

impl<M: Model> Model for ConfiguredModel<M> {
    fn name(&self) -> &str {
        self.model.name()
    }

    fn provider(&self) -> Option<&str> {
        self.model.provider()
    }

    fn tool_support(&self) -> ToolSupport {
        self.model.tool_support()
    }

    fn image_support(&self) -> ImageSupport {
        self.model.image_support()
    }

    fn reply(&self, request: Request) -> BoxFuture<'_, agent_loop::error::Result<ReplyStream<'_>>> {
        let request = self.configured(request);
        if request.temperature.is_none() || request.temperature != self.temperature {
            return self.model.reply(request);
        }
        Box::pin(async move {
            let without = request.clone().temperature(None);
            if self.takes_no_temperature.load(Ordering::Relaxed) {
                return self.model.reply(without).await;
            }
            match self.model.reply(request).await {
                Err(error) if error.kind() == ModelError::BadRequest && names_temperature(&error) => {
                    self.takes_no_temperature.store(true, Ordering::Relaxed);
                    self.model.reply(without).await
                }
                other => other,
            }
        })
    }
}

fn names_temperature(error: &agent_loop::Error) -> bool {
    error.to_string().to_lowercase().contains("temperature")
}

/// Tells the user what will be sent to a host, before anything is sent there for the first time.
fn say_once(destination: &Destination, model: &str, address: &str) {
    const FILE: &str = "hosts";
    let Destination::Host(host) = destination else { return };
    let state = state_of_user("first-use").ok();
    let known = state.as_ref().and_then(|state| state.read(FILE).ok().flatten()).unwrap_or_default();
    if known.lines().any(|line| line == host) {
        return;
    }
    let open = if address.starts_with("http://") { ", unencrypted" } else { "" };
    note(&format!(
        "{model} runs at {host}{open}: your messages, and the parts of your notes that tools find and read for them, are \
sent there (--show-traffic prints all of it; this notice appears once)"
    ));
    // If this cannot be recorded, the notice is repeated next time.
    let _ = state.map(|state| state.append(FILE, host));
}
