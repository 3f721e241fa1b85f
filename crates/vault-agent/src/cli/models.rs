//! `vault-agent models`: lists the models of the providers, and which of them run on this machine.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::Duration;

use agent_loop::Provider;
use clap::Args;
use futures_util::future::join_all;
use schemars::JsonSchema;
use serde::Serialize;
use vault_search::{CliResult, Failure, ListArgs, Out, Outcome, note, padded, sanitize_line, say};
use vault_tools::{Error, Result};

use super::runtime::runtime;
use crate::known_providers::{KNOWN, ProviderChoice, connection, context_length, is_this_machine, takes_tools};
use crate::local_models::{self, ModelFile};
use crate::model::{chosen_provider, provider_with_key};
use crate::model_list::{ListedModel, list};
use crate::settings::{SettingArgs, Settings};

#[derive(Debug, Default, Args)]
pub(super) struct ModelsArgs {
    /// The providers to ask, by name or address
    ///
    /// Default: the configured provider, and the servers on this machine.
    #[arg(value_name = "PROVIDER")]
    pub providers: Vec<String>,
    /// Ask every provider that has a key
    #[arg(long, conflicts_with = "providers")]
    pub all: bool,
    #[command(flatten)]
    pub list: ListArgs,
}

/// A model that can be used.
#[derive(Debug, Serialize, JsonSchema)]
// The name in the schema that `models --schema` prints.
#[schemars(rename = "Model")]
pub(super) struct ModelRecord {
    pub provider: String,
    pub model: String,
    /// Whether notes that it reads stay on this machine.
    pub is_local: bool,
    /// In tokens, request and reply together; `null` where it is not known.
    context_length: Option<u64>,
    /// Whether it takes tools, where that is known; one that does not calls them in text.
    takes_tools: Option<bool>,
    /// Of a file: its size.
    #[serde(skip_serializing_if = "Option::is_none")]
    bytes: Option<u64>,
    /// Whether the settings choose it.
    is_chosen: bool,
    /// Whether the settings allow it.
    is_allowed: bool,
}

impl ModelRecord {
    /// The setting `provider` that chooses this model: for a file, how this build runs it, and its name.
    pub fn provider_setting(&self) -> String {
        match self.bytes {
            None => self.provider.clone(),
            Some(_) if cfg!(feature = "local") => format!("local:{}", self.model),
            Some(_) => format!("llama-server:{}", self.model),
        }
    }
}

/// A provider to query.
struct ProviderQuery {
    choice: ProviderChoice,
    /// Whether the user named it, on the command line or in the settings.
    is_named: bool,
}

pub(super) fn models(args: &ModelsArgs, out: &mut Out) -> CliResult {
    if args.list.schema {
        return out.list_schema::<ModelRecord>(&args.list);
    }
    let settings = Settings::load(&SettingArgs::default())?;
    let queries = queries(args, &settings)?;
    let answers = runtime()?.block_on(ask_all(&queries, &settings))?;
    let mut found = Vec::new();
    let (mut named_failures, mut last_failure) = (0, None);
    for (ProviderQuery { choice, is_named }, answer) in queries.iter().zip(answers) {
        match answer {
            Ok((provider, listed)) => {
                found.extend(listed.into_iter().map(|one| model(choice, &provider, one, &settings)))
            }
            Err(error) if *is_named => {
                named_failures += 1;
                if let Some(before) = last_failure.replace(error) {
                    say("warning", &Error::one_line(&before));
                }
            }
            // A server that the user did not name need not be running.
            Err(error) => note(&error.one_line()),
        }
    }
    if let Some(folder) = settings.models_folder.as_deref().filter(|_| args.providers.is_empty()) {
        match files(folder, &settings) {
            Ok(files) => found.extend(files),
            Err(error) => say("warning", &error.one_line()),
        }
    }
    let named = queries.iter().filter(|query| query.is_named).count();
    match last_failure {
        Some(error) if named_failures == named && found.is_empty() => return Err(error.into()),
        Some(error) => say("warning", &error.one_line()),
        None => {}
    }
    out.list(args.list.format(), &found, |out, found| {
        let width = found.iter().map(|model| vault_search::columns(&model.model)).max().unwrap_or(0);
        found.iter().try_for_each(|model| out.line(line(model, width).trim_end()))
    })?;
    Ok(if found.is_empty() { Outcome::Nothing } else { Outcome::Done })
}

/// Lists the models of the servers on this machine, and the files in the folder of models. A server that does not
/// answer in time is left out.
///
/// # Errors
/// Settings that name an invalid provider.
pub(super) fn models_here(settings: &Settings, within: Duration) -> CliResult<Vec<ModelRecord>> {
    let mut queries = queries(&ModelsArgs::default(), settings)?;
    queries.iter_mut().for_each(|query| query.is_named = false);
    queries.retain(|query| matches!(query.choice.provider(None), Ok(Some(at)) if is_this_machine(&at.base_url)));
    let mut found = answered(&queries, settings, within)?.unwrap_or_default();
    if let Some(folder) = settings.models_folder.as_deref() {
        found.extend(files(folder, settings).unwrap_or_default());
    }
    Ok(found)
}

/// Lists the models of one provider.
///
/// # Errors
/// The provider does not answer in time, or answers with an error.
pub(super) fn models_of(choice: ProviderChoice, settings: &Settings, within: Duration) -> CliResult<Vec<ModelRecord>> {
    let queries = [ProviderQuery { choice, is_named: true }];
    let Some(found) = answered(&queries, settings, within)? else {
        let name = queries[0].choice.name();
        return Err(Failure::Error(format!("{name} did not list its models within {} s", within.as_secs())));
    };
    match found.is_empty() {
        true => Err(Failure::Error(format!("{} lists no models", queries[0].choice.name()))),
        false => Ok(found),
    }
}

/// Lists the models of several providers. Returns `None` on a timeout.
fn answered(queries: &[ProviderQuery], settings: &Settings, within: Duration) -> CliResult<Option<Vec<ModelRecord>>> {
    let mut found = Vec::new();
    let answers = runtime()?.block_on(async { tokio::time::timeout(within, ask_all(queries, settings)).await });
    let Ok(answers) = answers else { return Ok(None) };
    for (ProviderQuery { choice, is_named }, answer) in queries.iter().zip(answers?) {
        match answer {
            Ok((provider, listed)) => {
                found.extend(listed.into_iter().map(|one| model(choice, &provider, one, settings)));
            }
            Err(error) if *is_named => return Err(error.into()),
            Err(_) => {}
        }
    }
    Ok(Some(found))
}

fn line(model: &ModelRecord, width: usize) -> String {
    let mut about = vec![model.provider.clone()];
    about.extend(model.is_local.then(|| "on this machine".to_owned()));
    about.extend(model.bytes.map(|bytes| format!("{:.1} GB", bytes as f64 / 1e9)));
    about.extend(model.context_length.map(|tokens| format!("{tokens} tokens")));
    about.extend(model.takes_tools.map(|takes| if takes { "tools" } else { "tools in text" }.to_owned()));
    about.extend(model.is_chosen.then(|| "chosen".to_owned()));
    about.extend((!model.is_allowed).then(|| "not allowed by allowed_models".to_owned()));
    format!("{}  {}", padded(&sanitize_line(&model.model), width), sanitize_line(&about.join(", ")))
}

/// Lists the model files in the folder of models.
fn files(folder: &Path, settings: &Settings) -> Result<Vec<ModelRecord>> {
    let chosen = chosen_provider(settings)?;
    let mut models = Vec::new();
    for ModelFile { name, header } in local_models::files(folder)? {
        let header = match header {
            Ok(header) => header,
            Err(error) => {
                say("warning", &error.one_line());
                continue;
            }
        };
        let file = folder.join(&name);
        let is_file = |path: &PathBuf| *path == file || path.as_os_str() == name.as_str();
        models.push(ModelRecord {
            provider: "local".to_owned(),
            is_local: true,
            context_length: header.context_length,
            takes_tools: Some(header.tool_format().is_some()),
            bytes: Some(header.file_bytes),
            is_chosen: matches!(&chosen, Some(ProviderChoice::LocalFile(path) | ProviderChoice::LlamaServer(path)) if is_file(path)),
            is_allowed: settings.allowed_models.is_empty() || settings.allowed_models.contains(&name),
            model: name,
        });
    }
    Ok(models)
}

fn queries(args: &ModelsArgs, settings: &Settings) -> CliResult<Vec<ProviderQuery>> {
    let mut queries: Vec<ProviderQuery> = Vec::new();
    if !args.providers.is_empty() {
        for name in &args.providers {
            queries
                .push(ProviderQuery { choice: ProviderChoice::parse(name).map_err(Failure::Error)?, is_named: true });
        }
        return Ok(queries);
    }
    if let Some(choice) = chosen_provider(settings)?.filter(|choice| !choice.is_file()) {
        queries.push(ProviderQuery { choice, is_named: true });
    }
    let mut known: BTreeSet<String> = queries.iter().map(|query| query.choice.name()).collect();
    for provider in &KNOWN {
        let choice = ProviderChoice::Known(provider);
        let is_here = matches!(choice.provider(None), Ok(Some(at)) if is_this_machine(&at.base_url));
        // openai and openai-chat have the same models.
        let is_wanted = is_here || args.all && provider.name != "openai-chat" && crate::keys::find(&choice).is_some();
        if is_wanted && known.insert(choice.name()) {
            queries.push(ProviderQuery { choice, is_named: false });
        }
    }
    Ok(queries)
}

/// Queries all providers concurrently.
async fn ask_all(queries: &[ProviderQuery], settings: &Settings) -> Result<Vec<Result<(Provider, Vec<ListedModel>)>>> {
    let http = connection()?;
    let chosen = chosen_provider(settings)?.map(|choice| choice.name());
    let ask = async |query: &ProviderQuery| {
        // The setting `base_url` is only meant for the configured provider.
        let mut settings = settings.clone();
        settings.base_url = settings.base_url.filter(|_| chosen.as_ref() == Some(&query.choice.name()));
        let at = |error: Error| if error.path().is_none() { error.at(query.choice.name()) } else { error };
        match provider_with_key(&query.choice, &settings).map_err(at)? {
            Some(provider) => Ok((provider.clone(), list(&query.choice, &provider, &http).await?)),
            None => {
                let message = "this is a file with a single model";
                Err(at(Error::new(vault_tools::ErrorKind::Unsupported, message)))
            }
        }
    };
    Ok(join_all(queries.iter().map(ask)).await)
}

fn model(choice: &ProviderChoice, provider: &Provider, listed: ListedModel, settings: &Settings) -> ModelRecord {
    let ListedModel { name, context_length: stated, takes_tools: said } = listed;
    let is_of_chosen = matches!(chosen_provider(settings), Ok(Some(chosen)) if chosen.name() == choice.name());
    ModelRecord {
        provider: choice.name(),
        is_local: is_this_machine(&provider.base_url),
        context_length: stated.or_else(|| context_length(choice, &name)),
        takes_tools: said.or_else(|| takes_tools(choice, &name)),
        bytes: None,
        is_chosen: is_of_chosen && settings.model.as_deref() == Some(&*name),
        is_allowed: settings.allowed_models.is_empty() || settings.allowed_models.contains(&name),
        model: name,
    }
}
