//! Saved plans: kept under a name, run again without a model, through the same checks, preview and approval.
//!
//! A plan is saved once it has run to its end ([`plan::that_succeeded`](crate::plan::that_succeeded)), unless the caller
//! waives that.
//!
//! They lie in the vault's state folder, private to the user, in the form in which they are exported:
//! `{"version": "1.0", "exported": TIME, "macros": [...]}`.

use std::collections::BTreeSet;

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::error::{Error, ErrorKind, Result};
use crate::plan::{Checked, PlanFaults, has_succeeded, validate};
use crate::state::State;
use crate::toolbox::Toolbox;

const FILE: &str = "macros.json";

const VERSION: &str = "1.0";

/// A plan that was saved.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Macro {
    /// What it is called; letters, digits, spaces, `_`, `-`.
    pub name: String,
    /// What it is for.
    #[serde(default)]
    pub description: String,
    /// What it is given when it runs.
    #[serde(default)]
    pub parameters: Vec<Parameter>,
    /// The plan.
    pub plan: Value,
    /// When it was saved, RFC 3339.
    #[serde(default)]
    pub saved: String,
}

/// What a macro is given.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Parameter {
    /// As it stands in the plan: `${name}`.
    pub name: String,
    /// What it is.
    #[serde(rename = "type")]
    pub kind: ParameterKind,
    /// What it is unless it is given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub default: Option<String>,
}

/// Kinds of parameters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum ParameterKind {
    /// The text that is selected.
    Selection,
    /// The path of a file.
    File,
    /// The name of a folder.
    Folder,
    /// Any text.
    Text,
}

/// Macros as they are exported and stored.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Export {
    /// The version of this form.
    pub version: String,
    /// When they were exported, RFC 3339.
    pub exported: String,
    /// The macros.
    pub macros: Vec<Macro>,
}

/// What an import did.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Imported {
    /// Names of the macros that were taken in.
    pub imported: Vec<String>,
    /// Entries that were not, and why.
    pub rejected: Vec<Rejected>,
}

/// An entry that was not taken in.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Rejected {
    /// Its name, or its number if it has none.
    pub entry: String,
    /// What is wrong with it.
    pub reason: String,
}

/// What happens to a macro of the same name.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Replace {
    /// It stays, and the new one is refused.
    #[default]
    Refuse,
    /// It gives way.
    Replace,
}

/// Whether a plan must have run to its end before it is saved.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Trial {
    /// Yes, in this vault.
    #[default]
    Needed,
    /// No.
    Waived,
}

/// How a plan is saved.
#[derive(Debug, Clone, Default)]
pub struct SaveOptions {
    /// What it is for.
    pub description: String,
    /// Values of parameters that nobody gives.
    pub defaults: Vec<(String, String)>,
    /// What happens to a macro of the same name.
    pub replace: Replace,
    /// Whether the plan must have run to its end.
    pub trial: Trial,
}

/// The macros of a vault.
#[derive(Debug)]
pub struct Macros<'s> {
    state: &'s State,
}

impl<'s> Macros<'s> {
    /// Those in a state folder.
    pub fn new(state: &'s State) -> Self {
        Self { state }
    }

    /// All of them, by name.
    ///
    /// # Errors
    /// A file that cannot be read or understood.
    pub fn list(&self) -> Result<Vec<Macro>> {
        let Some(text) = self.state.read(FILE)? else { return Ok(Vec::new()) };
        let export: Export = serde_json::from_str(&text).map_err(|error| {
            Error::new(ErrorKind::Config, format!("the saved macros cannot be understood: {error}"))
                .at(self.state.folder().join(FILE).display())
                .with_remedy("mend the file, or move it away to begin anew")
        })?;
        Ok(export.macros)
    }

    /// One of them.
    ///
    /// # Errors
    /// When there is none of this name, with the names there are.
    pub fn get(&self, name: &str) -> Result<Macro> {
        let macros = self.list()?;
        macros.iter().find(|saved| saved.name == name).cloned().ok_or_else(|| unknown(name, &macros))
    }

    /// Saves a plan. Its parameters are found in it.
    ///
    /// # Errors
    /// A name that is none, or is taken; a plan with faults; [`ErrorKind::Refused`] for one that never ran to its end.
    pub fn save(&self, toolbox: &Toolbox, name: &str, plan: &Value, options: &SaveOptions) -> Result<Macro> {
        let checked = checked(toolbox, plan)?;
        if options.trial == Trial::Needed && !has_succeeded(self.state, &checked.plan)? {
            return Err(Error::new(ErrorKind::Refused, "this plan never ran to its end in this vault")
                .with_remedy("run it first (vault-tools plan run), or save it all the same with --untried"));
        }
        let mut parameters = parameters(checked);
        for (name, value) in &options.defaults {
            let Some(parameter) = parameters.iter_mut().find(|parameter| parameter.name == *name) else {
                return Err(Error::new(ErrorKind::InvalidArguments, format!("the plan has no parameter `{name}`")));
            };
            parameter.default = Some(value.clone());
        }
        let saved = Macro {
            name: checked_name(name)?,
            description: options.description.clone(),
            parameters,
            plan: plan.clone(),
            saved: now(),
        };
        let _lock = self.state.lock_file(FILE)?;
        let mut macros = self.list()?;
        put(&mut macros, saved.clone(), options.replace)?;
        self.write(macros)?;
        Ok(saved)
    }

    /// Gives a macro another name.
    ///
    /// # Errors
    /// No such macro; a name that is none, or is taken.
    pub fn rename(&self, name: &str, new_name: &str) -> Result<()> {
        let _lock = self.state.lock_file(FILE)?;
        let mut macros = self.list()?;
        let Some(at) = macros.iter().position(|saved| saved.name == name) else { return Err(unknown(name, &macros)) };
        let renamed = Macro { name: checked_name(new_name)?, ..macros.remove(at) };
        put(&mut macros, renamed, Replace::Refuse)?;
        self.write(macros)
    }

    /// Deletes a macro.
    ///
    /// # Errors
    /// No such macro.
    pub fn delete(&self, name: &str) -> Result<()> {
        let _lock = self.state.lock_file(FILE)?;
        let mut macros = self.list()?;
        let Some(at) = macros.iter().position(|saved| saved.name == name) else { return Err(unknown(name, &macros)) };
        macros.remove(at);
        self.write(macros)
    }

    /// All of them, or those that are named, to be stored elsewhere.
    ///
    /// # Errors
    /// A name that is not there.
    pub fn export(&self, names: &[String]) -> Result<Export> {
        let mut macros = self.list()?;
        if let Some(missing) = names.iter().find(|name| !macros.iter().any(|saved| saved.name == **name)) {
            return Err(unknown(missing, &macros));
        }
        macros.retain(|saved| names.is_empty() || names.contains(&saved.name));
        Ok(Export { version: VERSION.into(), exported: now(), macros })
    }

    /// Takes in what was exported. Bad entries are told of, good ones are kept.
    ///
    /// # Errors
    /// What is no export at all.
    pub fn import(&self, toolbox: &Toolbox, export: &Value, replace: Replace) -> Result<Imported> {
        let is_export = export.get("version").and_then(Value::as_str) == Some(VERSION);
        let (true, Some(entries)) = (is_export, export.get("macros").and_then(Value::as_array)) else {
            let message =
                format!("this is no export of macros: it needs \"version\": \"{VERSION}\" and \"macros\": [...]");
            return Err(Error::new(ErrorKind::InvalidArguments, message));
        };
        let _lock = self.state.lock_file(FILE)?;
        let mut macros = self.list()?;
        let mut imported = Imported::default();
        for (number, entry) in entries.iter().enumerate() {
            let name =
                entry.get("name").and_then(Value::as_str).map_or_else(|| format!("#{}", number + 1), str::to_string);
            match read(toolbox, entry).and_then(|entry| put(&mut macros, entry, replace)) {
                Ok(()) => imported.imported.push(name),
                Err(error) => imported.rejected.push(Rejected { entry: name, reason: error.to_string() }),
            }
        }
        self.write(macros)?;
        Ok(imported)
    }

    fn write(&self, mut macros: Vec<Macro>) -> Result<()> {
        macros.sort_by(|a, b| a.name.cmp(&b.name));
        let export = Export { version: VERSION.into(), exported: now(), macros };
        let text = serde_json::to_string_pretty(&export)
            .map_err(|error| Error::new(ErrorKind::Io, format!("the macros are no JSON: {error}")))?;
        self.state.replace(FILE, &format!("{text}\n"))
    }
}

/// The parameters of a plan: names that neither a step nor a loop binds. Dates are given by the clock.
fn parameters(checked: Checked) -> Vec<Parameter> {
    let names: BTreeSet<String> = checked.parameters;
    let asked = names.into_iter().filter(|name| !matches!(name.as_str(), "date" | "today" | "now"));
    asked.map(|name| Parameter { kind: kind_of(&name), name, default: None }).collect()
}

fn checked(toolbox: &Toolbox, plan: &Value) -> Result<Checked> {
    validate(plan, toolbox).map_err(|faults: PlanFaults| Error::from(faults))
}

/// Names say what they stand for.
fn kind_of(name: &str) -> ParameterKind {
    let lower = name.to_lowercase();
    match lower.as_str() {
        "selection" => ParameterKind::Selection,
        name if name.ends_with("file") || name.ends_with("note") || name.ends_with("path") => ParameterKind::File,
        name if name.contains("folder") => ParameterKind::Folder,
        _ => ParameterKind::Text,
    }
}

/// An entry of an export: its plan is checked, and what it says of its parameters is compared with the plan.
fn read(toolbox: &Toolbox, entry: &Value) -> Result<Macro> {
    let saved: Macro = serde_json::from_value(entry.clone())
        .map_err(|error| Error::new(ErrorKind::InvalidArguments, error.to_string()))?;
    let mut found = parameters(checked(toolbox, &saved.plan)?);
    for parameter in &mut found {
        if let Some(told) = saved.parameters.iter().find(|told| told.name == parameter.name) {
            *parameter = told.clone();
        }
    }
    let when = if saved.saved.is_empty() { now() } else { saved.saved };
    Ok(Macro { name: checked_name(&saved.name)?, parameters: found, saved: when, ..saved })
}

fn put(macros: &mut Vec<Macro>, saved: Macro, replace: Replace) -> Result<()> {
    match (macros.iter().position(|other| other.name == saved.name), replace) {
        (Some(_), Replace::Refuse) => {
            Err(Error::new(ErrorKind::Exists, format!("there is already a macro `{}`", saved.name))
                .with_remedy("choose another name, or replace it with --force"))
        }
        (Some(at), Replace::Replace) => {
            macros[at] = saved;
            Ok(())
        }
        (None, _) => {
            macros.push(saved);
            Ok(())
        }
    }
}

fn checked_name(name: &str) -> Result<String> {
    let name = name.trim();
    let is_name = !name.is_empty()
        && name.chars().count() <= 80
        && name.chars().all(|c| c.is_alphanumeric() || matches!(c, ' ' | '_' | '-' | '.'))
        && name.starts_with(char::is_alphanumeric);
    match is_name {
        true => Ok(name.to_string()),
        false => Err(Error::new(ErrorKind::InvalidArguments, format!("`{name}` is no name for a macro"))
            .with_remedy("use letters, digits, spaces, _ and -, and begin with a letter or digit")),
    }
}

fn unknown(name: &str, macros: &[Macro]) -> Error {
    let names: Vec<&str> = macros.iter().map(|saved| saved.name.as_str()).collect();
    let error = Error::new(ErrorKind::NotFound, format!("there is no macro `{name}`"));
    match names.is_empty() {
        true => error.with_remedy("none is saved yet: run a plan, then vault-tools macro save NAME"),
        false => error.with_remedy(format!("there are: {}", names.join(", "))),
    }
}

fn now() -> String {
    let now = Timestamp::now();
    Timestamp::from_second(now.as_second()).unwrap_or(now).to_string()
}
