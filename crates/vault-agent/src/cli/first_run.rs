//! The choice of a model, if none is configured or you want another: from servers on this machine, files in the folder
//! of models, and hosted providers whose keys are set.

use std::time::Duration;

use vault_search::tools::ReadLine;
use vault_search::{CliResult, Failure, can_ask, confirm, note, padded, sanitize_line};
use vault_tools::Error;

use super::models::{ModelRecord, models_here, models_of};
use super::screen::Screen;
use crate::known_providers::{KNOWN, ProviderChoice};
use crate::model::{chosen_provider, required};
use crate::settings::{self, Settings};

/// Timeout for a server on this machine.
const LOCAL: Duration = Duration::from_secs(1);

/// Timeout for a hosted provider.
const HOSTED: Duration = Duration::from_secs(10);

/// The maximum number of models listed per provider.
const LISTED: usize = 20;

/// A model, or a provider whose models have not been requested yet.
struct ModelChoice {
    provider: String,
    model: Option<String>,
    about: String,
}

fn model_choices(settings: &Settings) -> CliResult<Vec<ModelChoice>> {
    let of_model = |model: ModelRecord| ModelChoice {
        about: format!("{}, on this machine", model.provider),
        provider: model.provider_setting(),
        model: Some(model.model),
    };
    let mut all: Vec<ModelChoice> =
        models_here(settings, LOCAL)?.into_iter().filter(|model| model.is_local).map(of_model).collect();
    let known = KNOWN.iter().filter(|provider| provider.name != "openai-chat");
    let known: Vec<ProviderChoice> = known.map(ProviderChoice::Known).collect();
    for (choice, source) in known.iter().zip(crate::keys::sources(&known)) {
        if let Some(source) = source {
            let about = format!("hosted; its key is in {source}");
            all.push(ModelChoice { provider: choice.name(), model: None, about });
        }
    }
    Ok(all)
}

/// Lists the usable models in a clause, which is empty without any.
pub(super) fn local_models_hint(settings: &Settings) -> String {
    let named: Vec<String> = model_choices(settings)
        .unwrap_or_default()
        .into_iter()
        .take(LISTED)
        .map(|one| {
            sanitize_line(&one.model.map_or(one.provider.clone(), |model| format!("{model} ({})", one.provider)))
        })
        .collect();
    if named.is_empty() { String::new() } else { format!("; here you can use {}", named.join(", ")) }
}

/// Lets a person at the terminal choose a model, and saves the choice if they confirm it. `read_line` reads the number.
///
/// # Errors
/// No terminal, or nothing to choose from; settings that cannot be written.
pub(super) fn choose(mut settings: Settings, read_line: &mut ReadLine<'_>) -> CliResult<Settings> {
    let (provider, model) = match chosen_provider(&settings)? {
        _ if !can_ask() => return Err(nothing_chosen(&settings)),
        // Use the text of the setting, because the name of an address is shorter than the address.
        Some(choice) => (settings.provider.clone().or(settings.base_url.clone()).unwrap_or(choice.name()), None),
        None => {
            let all = model_choices(&settings)?;
            if all.is_empty() {
                return Err(nothing_chosen(&settings));
            }
            note("no model is configured yet. You can use:");
            picked(all, read_line).ok_or_else(none_chosen)?
        }
    };
    let model = match model {
        Some(model) => model,
        None => model_of(&provider, &settings, read_line)?.ok_or_else(none_chosen)?,
    };
    if confirm("Save it as your default?") {
        settings::choose_model(&provider, Some(&model))?;
    }
    (settings.provider, settings.model) = (Some(provider), Some(model));
    Ok(settings)
}

/// What a person says to the question for a model.
pub(super) enum ModelAnswer {
    /// A provider, and its model; a file has none.
    Chosen(String, Option<String>),
    /// The model that is configured.
    Keep,
    None,
}

/// Lets a person at the terminal choose among all models that can be used here. An empty answer is no model, or the
/// configured one.
///
/// # Errors
/// A provider that does not list its models.
pub(super) fn answer(settings: &Settings, read_line: &mut ReadLine<'_>) -> CliResult<ModelAnswer> {
    let otherwise = match chosen_provider(settings)? {
        Some(choice) => {
            let model = settings.model.as_ref().map_or_else(String::new, |model| format!("{model} of "));
            note(&format!("an empty answer keeps {model}{}", choice.name()));
            ModelAnswer::Keep
        }
        None => ModelAnswer::None,
    };
    let all = model_choices(settings)?;
    if all.is_empty() {
        note(
            "no model was found: no server runs on this machine (such as Ollama), and no provider's key is set \
             (vault-agent login PROVIDER stores one); run setup again when there is one",
        );
        return Ok(otherwise);
    }
    match picked(all, read_line) {
        None => Ok(otherwise),
        Some((provider, Some(model))) => Ok(ModelAnswer::Chosen(provider, Some(model))),
        Some((provider, None)) => Ok(match model_of(&provider, settings, read_line)? {
            Some(model) => ModelAnswer::Chosen(provider, Some(model)),
            None => otherwise,
        }),
    }
}

/// Lets a person at the terminal choose another model: of the current provider, of this machine, or of another provider
/// whose key is set. The choice holds for the conversation and is not saved. Returns `None` if no model was chosen.
///
/// # Errors
/// There is nothing to choose from; a provider that does not list its models.
pub(super) fn choose_other(mut settings: Settings, read_line: &mut ReadLine<'_>) -> CliResult<Option<Settings>> {
    let current = chosen_provider(&settings)?.filter(|choice| !choice.is_file());
    let current_name = current.as_ref().map(ProviderChoice::name);
    let mut all: Vec<ModelChoice> = Vec::new();
    if let Some(choice) = current {
        let at = settings.provider.clone().or(settings.base_url.clone()).unwrap_or(choice.name());
        match models_of(choice, &settings, HOSTED) {
            Ok(models) => all.extend(models.into_iter().take(LISTED).map(|model| ModelChoice {
                about: if model.is_local { format!("{at}, on this machine") } else { at.clone() },
                provider: at.clone(),
                model: Some(model.model),
            })),
            Err(failure) => note(&failure.to_string()),
        }
    }
    // Those of the current provider are listed already, under the name that the settings have for it.
    all.extend(model_choices(&settings)?.into_iter().filter(|one| Some(&one.provider) != current_name.as_ref()));
    if all.is_empty() {
        return Err(nothing_chosen(&settings));
    }
    let Some((provider, model)) = picked(all, read_line) else { return Ok(None) };
    let model = match model {
        Some(model) => Some(model),
        None => model_of(&provider, &settings, read_line)?,
    };
    Ok(model.map(|model| {
        settings.set_model(Some(provider), model);
        settings
    }))
}

/// Lets a person at the terminal choose the default model, and saves it.
///
/// # Errors
/// No terminal, nothing to choose from or nothing chosen; a provider that does not list its models; settings that cannot
/// be written.
pub(super) fn choose_default(settings: Settings, read_line: &mut ReadLine<'_>) -> CliResult<()> {
    if !can_ask() {
        return Err(Failure::Error("there is no terminal to choose a model in".to_owned()));
    }
    let chosen = choose_other(settings, read_line)?.ok_or_else(none_chosen)?;
    let provider = chosen.provider.as_deref().unwrap_or_default();
    let model = chosen.model.as_deref().unwrap_or_default();
    let file = settings::choose_model(provider, Some(model))?;
    note(&format!(
        "{} of {} is the default model now; written to {}",
        sanitize_line(model),
        sanitize_line(provider),
        file.display()
    ));
    Ok(())
}

/// Lets a person choose a line; it names a provider, and may name a model.
fn picked(mut all: Vec<ModelChoice>, read_line: &mut ReadLine<'_>) -> Option<(String, Option<String>)> {
    let name = |one: &ModelChoice| one.model.clone().unwrap_or_else(|| one.provider.clone());
    let at = number_of(&all.iter().map(|one| (name(one), one.about.clone())).collect::<Vec<_>>(), read_line)?;
    let ModelChoice { provider, model, .. } = all.swap_remove(at);
    Some((provider, model))
}

/// Lets a person choose a model of the provider.
fn model_of(provider: &str, settings: &Settings, read_line: &mut ReadLine<'_>) -> CliResult<Option<String>> {
    let choice = ProviderChoice::parse(provider).map_err(Failure::Error)?;
    let mut models = models_of(choice, settings, HOSTED)?;
    models.truncate(LISTED);
    note(&format!("models of {provider}:"));
    let lines: Vec<(String, String)> = models.iter().map(|model| (model.model.clone(), String::new())).collect();
    Ok(number_of(&lines, read_line).map(|at| models.swap_remove(at).model))
}

fn none_chosen() -> Failure {
    Failure::Error("no model was chosen".into())
}

/// The error for a missing model, with the models that could be used.
fn nothing_chosen(settings: &Settings) -> Failure {
    let here = local_models_hint(settings);
    match required(settings) {
        Err(error) if here.is_empty() => error.into(),
        Err(error) => Error::new(error.kind(), format!("{}{here}", error.message()))
            .with_remedy(error.remedy().unwrap_or_default())
            .into(),
        Ok(_) => Failure::Error("no model is configured".to_owned()),
    }
}

/// Lets a person choose a line by its number, and returns its index. Asks again after another answer.
pub(super) fn number_of(lines: &[(String, String)], read_line: &mut ReadLine<'_>) -> Option<usize> {
    let width = lines.iter().map(|(name, _)| vault_search::columns(name)).max().unwrap_or(0);
    let line = |(number, (name, about)): (usize, &(String, String))| {
        let line = format!("  {:2}  {}  {}", number + 1, padded(&sanitize_line(name), width), sanitize_line(about));
        line.trim_end().to_owned()
    };
    Screen::new().show(&lines.iter().enumerate().map(line).collect::<Vec<_>>().join("\n"));
    loop {
        let typed = read_line("Number (empty for none):").filter(|typed| !typed.is_empty())?;
        match typed.parse::<usize>() {
            Ok(number) if (1..=lines.len()).contains(&number) => return Some(number - 1),
            _ => note("type a number from the list, or press Enter for none"),
        }
    }
}
