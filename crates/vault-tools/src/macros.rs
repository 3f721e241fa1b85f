//! Macros: plans saved under a name, which run again without a model through the same checks, preview and approval.
//!
//! A plan can be saved once it has succeeded ([`plan::last_successful`](crate::plan::last_successful)); the caller can
//! waive that condition. The macros of a vault are stored in its state folder, private to the user, in the format of an
//! export: `{"version": "1.0", "exported": TIME, "macros": [...]}`.

use std::collections::BTreeSet;

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::error::{Error, ErrorKind, Result};
use crate::plan::{ValidPlan, has_succeeded, validate};
use crate::state::State;
use crate::toolbox::Toolbox;

const FILE: &str = "macros.json";

const VERSION: &str = "1.0";

/// The macros that are shipped with the program, each in the format of an entry of an export.
const SHIPPED: [&str; 6] = [
    include_str!("macros/archive-done-tasks.json"),
    include_str!("macros/broken-links.json"),
    include_str!("macros/folder-index.json"),
    include_str!("macros/inbox-to-notes.json"),
    include_str!("macros/tag-cleanup.json"),
    include_str!("macros/weekly-review.json"),
];

/// A saved plan.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct Macro {
    /// Its name: letters, digits, spaces, `_`, `-`.
    pub name: String,
    /// Its purpose.
    #[serde(default)]
    pub description: String,
    /// The values it needs when it runs.
    #[serde(default)]
    pub parameters: Vec<Parameter>,
    /// The plan.
    pub plan: Value,
    /// When it was saved, RFC 3339.
    #[serde(default)]
    pub saved: String,
}

impl Macro {
    /// Returns the values for its parameters: those that are given, and the defaults of the others.
    pub fn values(&self, given: Map<String, Value>) -> Map<String, Value> {
        let default = |parameter: &Parameter| Some((parameter.name.clone(), parameter.default.clone()?.into()));
        let mut values: Map<String, Value> = self.parameters.iter().filter_map(default).collect();
        values.extend(given);
        values
    }
}

/// A value that a macro needs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct Parameter {
    /// Its name in the plan: `${name}`.
    pub name: String,
    /// The kind of its value.
    #[serde(rename = "type")]
    pub kind: ParameterKind,
    /// Its value if none is given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub default: Option<String>,
}

/// The kind of a parameter's value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum ParameterKind {
    /// The selected text.
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
#[non_exhaustive]
pub struct Export {
    /// The version of this format.
    pub version: String,
    /// When they were exported, RFC 3339.
    pub exported: String,
    /// The macros.
    pub macros: Vec<Macro>,
}

/// The result of an import.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, JsonSchema)]
#[non_exhaustive]
pub struct ImportReport {
    /// The names of the imported macros.
    pub imported: Vec<String>,
    /// The rejected entries, with the reasons.
    pub rejected: Vec<RejectedEntry>,
}

/// An entry of an import that was rejected.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[non_exhaustive]
pub struct RejectedEntry {
    /// Its name, or its number if it has none.
    pub entry: String,
    /// The reason.
    pub reason: String,
}

/// How to treat an existing macro with the same name.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum IfExists {
    /// Refuse the new macro.
    #[default]
    Refuse,
    /// Replace the old macro.
    Replace,
}

/// Options for saving a plan.
///
/// ```
/// use vault_tools::{IfExists, SaveOptions};
///
/// let options = SaveOptions::default().description("one note per bullet").if_exists(IfExists::Replace);
/// assert!(!options.allow_untried);
/// ```
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct SaveOptions {
    /// The purpose of the macro.
    pub description: String,
    /// Default values of parameters.
    pub defaults: Vec<(String, String)>,
    /// How to treat an existing macro with the same name.
    pub if_exists: IfExists,
    /// Whether to save the plan even if it never succeeded in this vault.
    pub allow_untried: bool,
}

impl SaveOptions {
    /// Sets the purpose of the macro.
    #[must_use]
    pub fn description(self, text: impl Into<String>) -> Self {
        Self { description: text.into(), ..self }
    }

    /// Sets the default of a parameter.
    #[must_use]
    pub fn default_for(mut self, parameter: impl Into<String>, value: impl Into<String>) -> Self {
        self.defaults.push((parameter.into(), value.into()));
        self
    }

    /// Sets how to treat an existing macro with the same name.
    #[must_use]
    pub fn if_exists(self, if_exists: IfExists) -> Self {
        Self { if_exists, ..self }
    }

    /// Also saves a plan that never ran.
    #[must_use]
    pub fn allow_untried(self) -> Self {
        Self { allow_untried: true, ..self }
    }
}

/// The macros of a vault.
#[derive(Debug)]
pub struct Macros<'s> {
    state: &'s State,
}

impl<'s> Macros<'s> {
    /// Returns the macros in a state folder.
    pub fn new(state: &'s State) -> Self {
        Self { state }
    }

    /// Returns all saved macros, by name.
    ///
    /// # Errors
    /// A file that cannot be read or parsed.
    pub fn list(&self) -> Result<Vec<Macro>> {
        let Some(text) = self.state.read(FILE)? else { return Ok(Vec::new()) };
        let export: Export = serde_json::from_str(&text).map_err(|error| {
            Error::new(ErrorKind::Config, format!("the saved macros cannot be parsed: {error}"))
                .at(self.state.folder().join(FILE).display())
                .with_remedy("correct the file, or move it away to start without macros")
        })?;
        Ok(export.macros)
    }

    /// Returns the macros that are shipped with the program, by name.
    pub fn shipped() -> Vec<Macro> {
        SHIPPED.iter().filter_map(|text| serde_json::from_str(text).ok()).collect()
    }

    /// Returns the saved macros, then the shipped ones whose names no saved one has.
    ///
    /// # Errors
    /// Those of [`list`](Self::list).
    pub fn all(&self) -> Result<Vec<Macro>> {
        let mut macros = self.list()?;
        let is_saved = |shipped: &Macro| macros.iter().any(|saved| saved.name == shipped.name);
        let others: Vec<Macro> = Self::shipped().into_iter().filter(|shipped| !is_saved(shipped)).collect();
        macros.extend(others);
        Ok(macros)
    }

    /// Returns the macro with a name: a saved one, or otherwise one that is shipped with the program.
    ///
    /// # Errors
    /// [`ErrorKind::NotFound`], with all names.
    pub fn get(&self, name: &str) -> Result<Macro> {
        let mut macros = self.all()?;
        let at = position(&macros, name)?;
        Ok(macros.swap_remove(at))
    }

    /// Saves a plan. Its parameters are taken from its references.
    ///
    /// # Errors
    /// An invalid or taken name; an invalid plan; [`ErrorKind::Refused`] for a plan that never succeeded.
    pub fn save(&self, toolbox: &Toolbox, name: &str, plan: &Value, options: &SaveOptions) -> Result<Macro> {
        let checked = validate(plan, toolbox)?;
        if !options.allow_untried && !has_succeeded(self.state, &checked.plan)? {
            return Err(Error::new(ErrorKind::Refused, "this plan never succeeded in this vault")
                .with_remedy("run it first (vault-tools plan run), or save it anyway with --untried"));
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
        put(&mut macros, saved.clone(), options.if_exists)?;
        self.write(macros)?;
        Ok(saved)
    }

    /// Renames a macro.
    ///
    /// # Errors
    /// No such macro; an invalid or taken name.
    pub fn rename(&self, name: &str, new_name: &str) -> Result<()> {
        let _lock = self.state.lock_file(FILE)?;
        let mut macros = self.list()?;
        let at = position(&macros, name)?;
        let renamed = Macro { name: checked_name(new_name)?, ..macros.remove(at) };
        put(&mut macros, renamed, IfExists::Refuse)?;
        self.write(macros)
    }

    /// Deletes a macro.
    ///
    /// # Errors
    /// No such macro; one that is shipped with the program.
    pub fn delete(&self, name: &str) -> Result<()> {
        let _lock = self.state.lock_file(FILE)?;
        let mut macros = self.list()?;
        let is_called_so = |other: &Macro| other.name == name;
        if !macros.iter().any(is_called_so) && Self::shipped().iter().any(is_called_so) {
            return Err(Error::new(ErrorKind::Refused, format!("`{name}` comes with the program")));
        }
        macros.remove(position(&macros, name)?);
        self.write(macros)
    }

    /// Exports all saved macros, or those with the given names.
    ///
    /// # Errors
    /// An unknown name.
    pub fn export(&self, names: &[String]) -> Result<Export> {
        let macros = match names {
            [] => self.list()?,
            names => names.iter().map(|name| self.get(name)).collect::<Result<_>>()?,
        };
        Ok(Export { version: VERSION.into(), exported: now(), macros })
    }

    /// Imports exported macros. Valid entries are imported and invalid ones are reported.
    ///
    /// # Errors
    /// A value that is not an export.
    pub fn import(&self, toolbox: &Toolbox, export: &Value, if_exists: IfExists) -> Result<ImportReport> {
        let is_export = export.get("version").and_then(Value::as_str) == Some(VERSION);
        let (true, Some(entries)) = (is_export, export.get("macros").and_then(Value::as_array)) else {
            let message =
                format!("this is not an export of macros: it needs \"version\": \"{VERSION}\" and \"macros\": [...]");
            return Err(Error::new(ErrorKind::InvalidArguments, message));
        };
        let _lock = self.state.lock_file(FILE)?;
        let mut macros = self.list()?;
        let mut imported = ImportReport::default();
        for (number, entry) in entries.iter().enumerate() {
            let name =
                entry.get("name").and_then(Value::as_str).map_or_else(|| format!("#{}", number + 1), str::to_string);
            match read(toolbox, entry).and_then(|entry| put(&mut macros, entry, if_exists)) {
                Ok(()) => imported.imported.push(name),
                Err(error) => imported.rejected.push(RejectedEntry { entry: name, reason: error.one_line() }),
            }
        }
        self.write(macros)?;
        Ok(imported)
    }

    fn write(&self, mut macros: Vec<Macro>) -> Result<()> {
        macros.sort_by(|a, b| a.name.cmp(&b.name));
        let export = Export { version: VERSION.into(), exported: now(), macros };
        let text = serde_json::to_string_pretty(&export)
            .map_err(|error| Error::new(ErrorKind::Io, format!("the macros cannot be written as JSON: {error}")))?;
        self.state.replace(FILE, format!("{text}\n"))
    }
}

/// Returns the parameters of a plan without the dates, which come from the clock.
fn parameters(checked: ValidPlan) -> Vec<Parameter> {
    let names: BTreeSet<String> = checked.parameters;
    let asked = names.into_iter().filter(|name| !matches!(name.as_str(), "date" | "today" | "now"));
    asked.map(|name| Parameter { kind: kind_of(&name), name, default: None }).collect()
}

/// Guesses the kind of a parameter from its name.
fn kind_of(name: &str) -> ParameterKind {
    let lower = name.to_lowercase();
    match lower.as_str() {
        "selection" => ParameterKind::Selection,
        name if name.ends_with("file") || name.ends_with("note") || name.ends_with("path") => ParameterKind::File,
        name if name.contains("folder") => ParameterKind::Folder,
        _ => ParameterKind::Text,
    }
}

/// Reads an entry of an export. Its plan is checked, and its parameters are taken from the plan.
fn read(toolbox: &Toolbox, entry: &Value) -> Result<Macro> {
    let saved: Macro = serde_json::from_value(entry.clone())
        .map_err(|error| Error::new(ErrorKind::InvalidArguments, error.to_string()))?;
    let mut found = parameters(validate(&saved.plan, toolbox)?);
    for parameter in &mut found {
        if let Some(given) = saved.parameters.iter().find(|given| given.name == parameter.name) {
            *parameter = given.clone();
        }
    }
    let when = if saved.saved.is_empty() { now() } else { saved.saved };
    Ok(Macro { name: checked_name(&saved.name)?, parameters: found, saved: when, ..saved })
}

fn put(macros: &mut Vec<Macro>, saved: Macro, if_exists: IfExists) -> Result<()> {
    match (macros.iter().position(|other| other.name == saved.name), if_exists) {
        (Some(_), IfExists::Refuse) => {
            Err(Error::new(ErrorKind::Exists, format!("there is already a macro `{}`", saved.name))
                .with_remedy("choose another name, or replace it with --force"))
        }
        (Some(at), IfExists::Replace) => {
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
        false => Err(Error::new(ErrorKind::InvalidArguments, format!("`{name}` is not a valid name for a macro"))
            .with_remedy("use letters, digits, spaces, _ and -, and begin with a letter or digit")),
    }
}

fn position(macros: &[Macro], name: &str) -> Result<usize> {
    macros.iter().position(|saved| saved.name == name).ok_or_else(|| {
        let names: Vec<&str> = macros.iter().map(|saved| saved.name.as_str()).collect();
        let error = Error::new(ErrorKind::NotFound, format!("there is no macro `{name}`"));
        match names.is_empty() {
            true => error.with_remedy("none is saved yet: run a plan, then `macro save NAME`"),
            false => error.with_remedy(format!("there are: {}", names.join(", "))),
        }
    })
}

fn now() -> String {
    format!("{:.0}", Timestamp::now())
}
