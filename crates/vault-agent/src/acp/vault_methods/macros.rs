//! The macros of a vault: saved plans, and those that come with the program.

use std::collections::{BTreeMap, BTreeSet};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use vault_tools::approval::ChangeRequest;
use vault_tools::plan::last_successful;
use vault_tools::{Error, ErrorKind, Macro, Macros, ParameterKind, Result, SaveOptions, Toolbox, TransactionId, Vault};

use crate::workspace::{OpenVault, Workspace};

/// The macros of a vault.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct MacrosResult {
    /// Saved ones first.
    pub macros: Vec<NamedMacro>,
}

/// A plan to save as a macro.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct SaveMacroRequest {
    /// The vault's folder, absolute. It can be left out if the program was started with one `--vault`.
    pub vault: Option<String>,
    /// The name of the macro.
    pub name: String,
    /// The transaction that the plan made.
    pub transaction: u64,
}

/// A macro, without its plan.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct NamedMacro {
    /// Its name.
    pub name: String,
    /// Its purpose.
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
    /// The kind of its value.
    pub kind: MacroParameterKind,
    /// Its value if none is given.
    pub default: Option<String>,
}

/// The kind of a parameter's value.
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
    let macros = Macros::new(open.vault.state());
    let saved: BTreeSet<String> = macros.list()?.into_iter().map(|saved| saved.name).collect();
    let named = |of: Macro| named(of.clone(), !saved.contains(&of.name));
    Ok(MacrosResult { macros: macros.all()?.into_iter().map(named).collect() })
}

/// Saves the plan of a transaction as a macro.
///
/// # Errors
/// No plan succeeded in this transaction; an invalid or taken name.
pub(super) fn save(workspace: &Workspace, request: &SaveMacroRequest) -> Result<NamedMacro> {
    let transaction = Some(TransactionId(request.transaction));
    workspace.with(|vaults| save_macro(vaults.toolbox(0), &request.name, transaction)).map(|saved| named(saved, false))
}

/// Saves the plan of a transaction as a macro, or without one the last plan that succeeded.
///
/// # Errors
/// No such plan; an invalid or taken name.
pub(in crate::acp) fn save_macro(toolbox: &Toolbox, name: &str, transaction: Option<TransactionId>) -> Result<Macro> {
    let plan = last_successful(toolbox.vault().state(), transaction)?;
    let plan = serde_json::to_value(plan).map_err(|error| Error::new(ErrorKind::Plan, error.to_string()))?;
    Macros::new(toolbox.vault().state()).save(toolbox, name, &plan, &SaveOptions::default())
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
    let parameters = of.values(given.iter().map(|(name, value)| (name.clone(), json!(value))).collect());
    Ok(ChangeRequest::Plan { plan: of.plan, parameters })
}
