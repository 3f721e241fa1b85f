//! `vault-tools macro`: saves, lists, runs, exports and imports plans with a name.

use vault_tools::plan::last_successful;
use vault_tools::{IfExists, Macros, Parameter, SaveOptions, Toolbox, TransactionId};

use crate::{CliResult, Out, Outcome, counted, note, sanitize_line, say};

use super::approve::agreed;
use super::context::{json_of, list_of_parameters, pairs, with_toolbox};
use super::moved::hint_at_adopt;
use super::plan_args::{
    ContextArgs, MacroDeleteArgs, MacroExportArgs, MacroImportArgs, MacroListArgs, MacroNameArgs, MacroRenameArgs,
    MacroRunArgs, MacroSaveArgs,
};
use super::records::MacroRow;
use super::{plan, settings};
use crate::VaultArgs;

pub(super) fn save(vault_args: &VaultArgs, args: &MacroSaveArgs, out: &mut Out) -> CliResult {
    with_toolbox(vault_args, &ContextArgs::default(), |toolbox| save_on(toolbox, args, out))
}

fn save_on(toolbox: &Toolbox, args: &MacroSaveArgs, out: &mut Out) -> CliResult {
    let state = toolbox.vault().state();
    let value = match &args.file {
        Some(file) => json_of(file)?,
        None => {
            let plan = last_successful(state, args.run.map(TransactionId))?;
            serde_json::to_value(plan).map_err(std::io::Error::from)?
        }
    };
    let mut options = SaveOptions::default();
    options.description.clone_from(&args.description);
    options.defaults = pairs("--default", &args.default)?;
    options.if_exists = if_exists(args.force);
    options.allow_untried = args.untried;
    let saved = Macros::new(state).save(toolbox, &args.name, &value, &options)?;
    let parameters = list_of_parameters(saved.parameters.iter().map(|parameter| &parameter.name));
    out.line(&format!("saved {}{parameters}", saved.name))?;
    Ok(Outcome::Done)
}

fn if_exists(force: bool) -> IfExists {
    if force { IfExists::Replace } else { IfExists::Refuse }
}

pub(super) fn list(vault_args: &VaultArgs, args: &MacroListArgs, out: &mut Out) -> CliResult {
    if args.output.schema {
        return out.list_schema::<MacroRow>(&args.output);
    }
    let macros = match args.shipped {
        true => Macros::shipped(),
        false => {
            let vault = settings::open(vault_args)?;
            hint_at_adopt(&vault);
            Macros::new(vault.state()).list()?
        }
    };
    let rows: Vec<MacroRow> = macros.into_iter().map(MacroRow::from).collect();
    if rows.is_empty() && !args.output.json && !args.output.jsonl {
        note("no macro is saved yet; macro list --shipped lists those that come with the program");
    }
    out.list(args.output.format(), &rows, |out, rows| {
        for row in rows {
            let given: Vec<String> = row.parameters.iter().map(in_short).collect();
            let name = out.paint.bold(&row.name);
            let line = format!("{name}  {}  {}", sanitize_line(&row.description), out.paint.dim(&given.join(", ")));
            out.line(line.trim_end())?;
        }
        Ok(())
    })
}

/// Returns a parameter as `NAME=DEFAULT`, or only its name without a default.
fn in_short(parameter: &Parameter) -> String {
    let default = parameter.default.as_ref().map(|default| format!("={}", sanitize_line(default))).unwrap_or_default();
    format!("{}{default}", sanitize_line(&parameter.name))
}

pub(super) fn show(vault_args: &VaultArgs, args: &MacroNameArgs, out: &mut Out) -> CliResult {
    let vault = settings::open(vault_args)?;
    out.json(&Macros::new(vault.state()).get(&args.name)?)?;
    Ok(Outcome::Done)
}

pub(super) fn run(vault_args: &VaultArgs, args: &MacroRunArgs, out: &mut Out) -> CliResult {
    with_toolbox(vault_args, &args.running.context, |toolbox| {
        let saved = Macros::new(toolbox.vault().state()).get(&args.name)?;
        let defaults = saved.parameters.into_iter().filter_map(|parameter| Some((parameter.name, parameter.default?)));
        plan::run_value(toolbox, &saved.plan, &args.running, &defaults.collect::<Vec<_>>(), out)
    })
}

pub(super) fn rename(vault_args: &VaultArgs, args: &MacroRenameArgs, out: &mut Out) -> CliResult {
    let vault = settings::open(vault_args)?;
    Macros::new(vault.state()).rename(&args.name, &args.new_name)?;
    out.line(&format!("renamed {} to {}", args.name, args.new_name))?;
    Ok(Outcome::Done)
}

pub(super) fn delete(vault_args: &VaultArgs, args: &MacroDeleteArgs, out: &mut Out) -> CliResult {
    let vault = settings::open(vault_args)?;
    let macros = Macros::new(vault.state());
    let name = &args.name;
    // A macro that comes with the program is not asked about, because it cannot be deleted.
    if macros.list()?.iter().any(|saved| saved.name == *name) {
        let question = format!("Delete the macro {name}? Undo does not bring it back; macro export keeps a copy.");
        agreed(args.yes, "this", "add --yes", &question)?;
    }
    macros.delete(name)?;
    out.line(&format!("deleted {}", args.name))?;
    Ok(Outcome::Done)
}

pub(super) fn export(vault_args: &VaultArgs, args: &MacroExportArgs, out: &mut Out) -> CliResult {
    let vault = settings::open(vault_args)?;
    out.json(&Macros::new(vault.state()).export(&args.names)?)?;
    Ok(Outcome::Done)
}

pub(super) fn import(vault_args: &VaultArgs, args: &MacroImportArgs, out: &mut Out) -> CliResult {
    with_toolbox(vault_args, &ContextArgs::default(), |toolbox| import_on(toolbox, args, out))
}

fn import_on(toolbox: &Toolbox, args: &MacroImportArgs, out: &mut Out) -> CliResult {
    let export = json_of(&args.file)?;
    let imported = Macros::new(toolbox.vault().state()).import(toolbox, &export, if_exists(args.force))?;
    match args.json {
        true => out.json(&imported)?,
        false => {
            out.line(&format!("imported {}", counted(imported.imported.len(), "macro")))?;
            for rejected in &imported.rejected {
                say("rejected", &format!("{}: {}", rejected.entry, rejected.reason));
            }
        }
    }
    Ok(if imported.rejected.is_empty() { Outcome::Done } else { Outcome::Nothing })
}
