//! `vault-agent setup`: three questions, each of which an option answers, and then the first index.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use serde_json::Value;
use vault_index::dirs::{canonical_vault, config_folder, home};
use vault_index::{Index, Options};
use vault_search::search::sync_vault;
use vault_search::tools::ReadLine;
use vault_search::{
    CliResult, Failure, JsonArgs, Out, Outcome, Settings as VaultSettings, VaultArgs, ask, can_ask, note,
    sanitize_line, say,
};
use vault_tools::{Error, ErrorKind};

use super::args::{ClientChoice, InstallArgs, NONE, OfferArgs, SetupArgs};
use super::first_run::{self, ModelAnswer, number_of};
use super::install::install;
use super::screen::Screen;
use crate::clients::Client;
use crate::model::chosen_provider;
use crate::settings::{self, SettingArgs, Settings};

pub(super) fn setup(vault_args: &VaultArgs, args: &SetupArgs, out: &mut Out) -> CliResult {
    refuse_without_answers(vault_args, args)?;
    // All questions come before anything is written.
    let vault = vault(vault_args)?;
    let client = match args.assistant {
        Some(ClientChoice(client)) => client,
        None => client()?,
    };
    let settings = Settings::load(&SettingArgs::default())?;
    let model = match (&args.provider, &args.model) {
        (Some(provider), _) if provider == NONE => ModelAnswer::None,
        (Some(provider), model) => ModelAnswer::Chosen(provider.clone(), model.clone()),
        (None, _) => model(&settings)?,
    };
    let vault_args = VaultArgs { vault: vec![vault.clone()], index: vault_args.index.clone() };
    let vault_settings = VaultSettings::load(&vault_args)?;
    vault_settings.refuse_named_database()?;
    // Its owner fills an index in a database.
    let syncs = !args.no_sync && vault_settings.database_of(&vault).is_none();
    write_vault(&vault, out)?;
    write_model(&model, &settings, out)?;
    if let Some(client) = client {
        install(&vault_args, &InstallArgs { client, print: false, offer: OfferArgs::default() }, out)?;
    }
    if syncs {
        out.flush()?;
        sync_vault(&vault_args, &JsonArgs::default(), out)?;
    }
    let has_model = chosen_provider(&Settings::load(&SettingArgs::default())?)?.is_some();
    let subject = subject_of(&vault, vault_settings.index_options(&vault));
    if subject.is_none() && syncs {
        note("the folder holds no notes yet; if you meant another one, run setup again");
    }
    out.line("")?;
    out.line(&out.paint.bold("Try this:"))?;
    out.line(&format!("  {}", to_try(&subject, client, has_model)))?;
    Ok(Outcome::Done)
}

/// Without a terminal, every question must be answered by an option.
fn refuse_without_answers(vault_args: &VaultArgs, args: &SetupArgs) -> CliResult<()> {
    if can_ask() {
        return Ok(());
    }
    let missing = [
        (vault_args.vault.is_empty(), "--vault DIR"),
        (args.assistant.is_none(), "--assistant NAME (or none)"),
        (args.provider.is_none(), "--provider PROVIDER (or none)"),
    ];
    let missing: Vec<&str> = missing.iter().filter(|(is_missing, _)| *is_missing).map(|(_, option)| *option).collect();
    match missing.is_empty() {
        true => Ok(()),
        false => {
            let message = format!("there is no terminal to ask at (answer with {})", missing.join(", "));
            Err(Failure::Error(message))
        }
    }
}

fn cancelled() -> Failure {
    Failure::Error("nothing was set up, because a question was not answered".into())
}

/// The vault of the options, or the one that the person names.
fn vault(args: &VaultArgs) -> CliResult<PathBuf> {
    if !args.vault.is_empty() {
        return Ok(VaultSettings::load(args)?.only_vault()?.to_path_buf());
    }
    let known = known_vaults();
    let mut lines = vec!["1 of 3. Which folder holds your notes? It is read; nothing is written to it now.".to_owned()];
    lines.extend(
        known
            .iter()
            .enumerate()
            .map(|(number, vault)| format!("  {:2}  {}", number + 1, sanitize_line(&vault.display().to_string()))),
    );
    Screen::new().show(&lines.join("\n"));
    let question = match known.is_empty() {
        true => "Folder:",
        false => "Number or folder (empty for 1):",
    };
    loop {
        let typed = ask(question).ok_or_else(cancelled)?;
        let chosen = match typed.parse::<usize>() {
            Ok(number) => number.checked_sub(1).and_then(|at| known.get(at)).cloned(),
            Err(_) if typed.is_empty() => known.first().cloned(),
            Err(_) => Some(match (typed.strip_prefix("~/"), home()) {
                (Some(rest), Some(home)) => home.join(rest),
                _ => PathBuf::from(&typed),
            }),
        };
        match chosen.map(|folder| canonical_vault(&folder)) {
            Some(Ok(vault)) => return Ok(vault),
            Some(Err(error)) => say("error", &error.one_line()),
            None => note("type a number from the list, or the path of a folder"),
        }
    }
}

/// The vault that a command would work on here, and those that Obsidian has open or had.
fn known_vaults() -> Vec<PathBuf> {
    #[derive(Deserialize)]
    struct Registry {
        vaults: BTreeMap<String, Value>,
    }
    let mut known: Vec<PathBuf> = Vec::new();
    // The current folder is a vault only if something says so.
    if let Ok(settings) = VaultSettings::load(&VaultArgs::default()) {
        let current = std::env::current_dir().and_then(|folder| folder.canonicalize()).ok();
        known.extend(
            settings
                .vaults
                .into_iter()
                .filter(|vault| vault.join(".obsidian").is_dir() || Some(vault) != current.as_ref()),
        );
    }
    let registry = config_folder().and_then(|own| Some(own.parent()?.join("obsidian/obsidian.json")));
    let registry = registry.and_then(|file| std::fs::read(file).ok());
    let registry = registry.and_then(|text| serde_json::from_slice::<Registry>(&text).ok());
    for vault in registry.into_iter().flat_map(|registry| registry.vaults.into_values()) {
        let vault = vault["path"].as_str().and_then(|path| canonical_vault(Path::new(path)).ok());
        known.extend(vault.filter(|vault| !known.contains(vault)));
    }
    known
}

/// The assistant that the person chooses.
fn client() -> CliResult<Option<Client>> {
    Screen::new().show(
        "2 of 3. Which assistant or editor may search your notes? It gets what it searches for and reads; it changes a \
         note only after you approve.",
    );
    let about = |client: &Client| match client.config_file().is_ok_and(|file| file.exists()) {
        true => "is on this machine",
        false => "",
    };
    let lines: Vec<(String, String)> =
        Client::all().iter().map(|client| (client.title().to_owned(), about(client).to_owned())).collect();
    let chosen = answered(|read_line| Ok(number_of(&lines, read_line)))?;
    Ok(chosen.map(|at| Client::all()[at]))
}

/// The model that the person chooses.
fn model(settings: &Settings) -> CliResult<ModelAnswer> {
    Screen::new().show(
        "3 of 3. Which model answers your questions?\n\
         Stays on this machine: searching, links, changes, undo, and models that run here.\n\
         Leaves it, with a hosted model: your questions, and the passages and notes that are read for an answer.\n\
         Without a model, nothing leaves, and a question is answered with the passages that match best.",
    );
    answered(|read_line| first_run::answer(settings, read_line))
}

/// Returns the answer to questions.
///
/// # Errors
/// The input ended before one of them was answered.
fn answered<T>(asking: impl FnOnce(&mut ReadLine<'_>) -> CliResult<T>) -> CliResult<T> {
    let mut is_ended = false;
    let answer = asking(&mut |question| {
        let typed = ask(question);
        is_ended |= typed.is_none();
        typed
    })?;
    if is_ended { Err(cancelled()) } else { Ok(answer) }
}

fn write_vault(vault: &Path, out: &mut Out) -> CliResult<()> {
    let text = vault.to_str().ok_or_else(|| {
        Error::new(ErrorKind::InvalidPath, "this path is not Unicode, but settings must be")
            .at(vault.display())
            .with_remedy("rename the folder")
    })?;
    let mut before = None;
    let file = settings::change_file(settings::config_file("config.toml")?, |document| {
        before = document.get("vault").map(|item| item.to_string().trim().to_owned());
        document["vault"] = toml_edit::value(text);
        Ok(())
    })?;
    out.line(&format!("Vault: {}, in {}", sanitize_line(text), file.display()))?;
    if let Some(before) = before.filter(|before| *before != toml_edit::value(text).to_string()) {
        note(&format!("it replaces {before}"));
    }
    Ok(())
}

fn write_model(answer: &ModelAnswer, settings: &Settings, out: &mut Out) -> CliResult<()> {
    match answer {
        ModelAnswer::Chosen(provider, model) => {
            let file = settings::choose_model(provider, model.as_deref())?;
            let model = model.as_ref().map_or_else(String::new, |model| format!("{} of ", sanitize_line(model)));
            out.line(&format!("Model: {model}{}, in {}", sanitize_line(provider), file.display()))?;
        }
        ModelAnswer::None => {
            if settings.provider.is_some() || settings.base_url.is_some() || settings.model.is_some() {
                for name in ["provider", "model", "base_url"] {
                    settings::remove(settings::find(name).map_err(Failure::Error)?)?;
                }
            }
            out.line("Model: none; nothing leaves this machine")?;
        }
        ModelAnswer::Keep => {}
    }
    Ok(())
}

/// A word that the vault is about: its most frequent tag, else the title of a note.
fn subject_of(vault: &Path, options: Options) -> Option<String> {
    let index = Index::open(vault, options).ok()?;
    let tag = index.tags().ok()?.into_iter().max_by_key(|tag| tag.nested).map(|tag| tag.tag.replace(['/', '-'], " "));
    tag.or_else(|| index.notes().ok()?.into_iter().next().map(|note| note.title))
        .map(|text| sanitize_line(&text).replace('"', ""))
}

/// One thing to try, with what was set up.
fn to_try(subject: &Option<String>, client: Option<Client>, has_model: bool) -> String {
    let subject = subject.as_deref().unwrap_or("a subject of yours");
    match (client, has_model) {
        (Some(client), _) => format!("restart {}, and ask it: What do my notes say about {subject}?", client.title()),
        (None, true) => format!("vault-agent ask \"what do my notes say about {subject}?\""),
        (None, false) => format!("vault-search \"{subject}\""),
    }
}
