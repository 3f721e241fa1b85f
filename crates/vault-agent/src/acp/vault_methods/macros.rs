//! The macros of a vault: saved plans, and those that come with the program.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, json};
use vault_tools::approval::ChangeRequest;
use vault_tools::{Macro, Macros, ParameterKind, Result, Vault};

use crate::workspace::OpenVault;

/// The macros of a vault.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct MacrosResult {
    /// Saved ones first.
    pub macros: Vec<NamedMacro>,
}

/// A macro, without its plan.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct NamedMacro {
    /// Its name.
    pub name: String,
    /// What it is for.
    pub description: String,
    /// Whether it comes with the program.
    pub is_shipped: bool,
    /// The values that it needs.
    pub parameters: Vec<MacroParameter>,
}

/// A value that a macro needs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct MacroParameter {
    /// Its name.
    pub name: String,
    /// What it stands for.
    pub kind: MacroParameterKind,
    /// Its value if none is given.
    pub default: Option<String>,
}

/// What a parameter stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum MacroParameterKind {
    /// The selected text.
    Selection,
    /// The path of a file.
    File,
    /// The name of a folder.
    Folder,
    /// Any text.
    Text,
}

/// Lists the macros of a vault.
///
/// # Errors
/// Saved macros that cannot be read.
pub(super) fn macros(open: &OpenVault) -> Result<MacrosResult> {
    let saved = Macros::new(open.vault.state()).list()?;
    let is_saved = |shipped: &Macro| saved.iter().any(|saved| saved.name == shipped.name);
    let shipped: Vec<Macro> = Macros::shipped().into_iter().filter(|shipped| !is_saved(shipped)).collect();
    let saved = saved.into_iter().map(|saved| named(saved, false));
    Ok(MacrosResult { macros: saved.chain(shipped.into_iter().map(|shipped| named(shipped, true))).collect() })
}

fn named(of: Macro, is_shipped: bool) -> NamedMacro {
    let parameters = of.parameters.into_iter().map(|parameter| MacroParameter {
        name: parameter.name,
        kind: match parameter.kind {
            ParameterKind::Selection => MacroParameterKind::Selection,
            ParameterKind::File => MacroParameterKind::File,
            ParameterKind::Folder => MacroParameterKind::Folder,
            _ => MacroParameterKind::Text,
        },
        default: parameter.default,
    });
    NamedMacro { name: of.name, description: of.description, is_shipped, parameters: parameters.collect() }
}

/// The change that a macro makes.
///
/// # Errors
/// No macro of this name.
pub(super) fn run(vault: &Vault, name: &str, given: &BTreeMap<String, String>) -> Result<ChangeRequest> {
    let of = Macros::new(vault.state()).get(name)?;
    let mut parameters = Map::new();
    for parameter in &of.parameters {
        parameters.extend(parameter.default.clone().map(|value| (parameter.name.clone(), json!(value))));
    }
    parameters.extend(given.iter().map(|(name, value)| (name.clone(), json!(value))));
    Ok(ChangeRequest::Plan { plan: of.plan, parameters })
}
