//! Macros as tools and prompts, if the toolset `library` is offered: `list_macros`, `run_macro`, and a prompt for each.

use rmcp::model::{GetPromptResult, JsonObject, Prompt, PromptArgument, PromptMessage, Role};
use serde_json::{Map, Value, json};
use vault_tools::approval::ChangeRequest;
use vault_tools::{Error, ErrorKind, Macro, Macros, Parameter, Result, Toolbox};

pub(super) const LIST_MACROS: &str = "list_macros";
pub(super) const RUN_MACRO: &str = "run_macro";

/// Returns the macros of a vault: the saved ones, and those that ship with the program.
fn all(toolbox: &Toolbox) -> Result<Vec<Macro>> {
    Macros::new(toolbox.vault().state()).all()
}

/// Returns the macros whose names contain `part`, as `list_macros` does.
pub(super) fn list(toolbox: &Toolbox, part: &str) -> Result<Value> {
    let shown = |saved: &Macro| {
        let parameters = saved
            .parameters
            .iter()
            .map(|parameter| json!({ "name": parameter.name, "type": parameter.kind, "default": parameter.default }));
        json!({ "name": saved.name, "description": saved.description, "parameters": parameters.collect::<Vec<_>>() })
    };
    let found = all(toolbox)?.into_iter().filter(|saved| saved.name.to_lowercase().contains(&part.to_lowercase()));
    Ok(json!({ "macros": found.map(|saved| shown(&saved)).collect::<Vec<_>>() }))
}

/// Returns the plan of a macro, with values for its parameters.
///
/// # Errors
/// An unknown macro; an unknown parameter.
pub(super) fn request(toolbox: &Toolbox, name: &str, given: &Map<String, Value>) -> Result<ChangeRequest> {
    let saved = Macros::new(toolbox.vault().state()).get(name)?;
    let known: Vec<&str> = saved.parameters.iter().map(|parameter| parameter.name.as_str()).collect();
    if let Some(unknown) = given.keys().find(|key| !known.contains(&key.as_str())) {
        let remedy = if known.is_empty() { "it has none".to_owned() } else { format!("it has {}", known.join(", ")) };
        return Err(Error::new(ErrorKind::InvalidArguments, format!("the macro has no parameter {unknown:?}"))
            .at("/parameters")
            .with_remedy(remedy));
    }
    let parameters = saved.values(given.clone());
    Ok(ChangeRequest::Plan { plan: saved.plan, parameters })
}

/// Returns the macros as prompts.
pub(super) fn prompts(toolbox: &Toolbox) -> Vec<Prompt> {
    let prompt = |saved: Macro| {
        let argument = |parameter: Parameter| {
            let is_needed = parameter.default.is_none();
            PromptArgument::new(parameter.name).with_required(is_needed)
        };
        let arguments = saved.parameters.into_iter().map(argument).collect();
        Prompt::new(saved.name.clone(), Some(saved.description), Some(arguments)).with_title(saved.name)
    };
    // list_macros reports macros that cannot be read.
    all(toolbox).unwrap_or_default().into_iter().map(prompt).collect()
}

/// Returns the prompt of a macro, or `None` if there is no macro of this name.
pub(super) fn prompt(toolbox: &Toolbox, name: &str, args: Option<&JsonObject>) -> Option<GetPromptResult> {
    let saved = all(toolbox).ok()?.into_iter().find(|saved| saved.name == name)?;
    let given = json!({ "name": saved.name, "parameters": args.cloned().unwrap_or_default() });
    let text = format!(
        "Run my macro {:?} ({}): call {RUN_MACRO} with {given}, and tell me in a few lines what it changed. undo reverts it \
         as a whole.",
        saved.name, saved.description
    );
    Some(GetPromptResult::new(vec![PromptMessage::new_text(Role::User, text)]).with_description(saved.description))
}
