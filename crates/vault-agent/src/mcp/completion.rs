//! Completes the arguments of prompts and resource templates: vaults, notes, headings and topics.

use std::collections::BTreeSet;

use rmcp::model::{CompleteRequestParams, CompletionInfo, Reference};
use serde_json::json;
use vault_tools::approval::HeadlessApprover;
use vault_tools::{Result, Vaults};

use super::prompts::has_topic;
use super::resources::number;

/// Returns the completions of an argument, best first.
///
/// # Errors
/// A vault that cannot be read.
pub(super) fn complete(vaults: &mut Vaults, params: &CompleteRequestParams) -> Result<CompletionInfo> {
    let (argument, typed) = (params.argument.name.as_str(), params.argument.value.as_str());
    let given = |name: &str| params.context.as_ref()?.get_argument(name).cloned();
    let values = match &params.r#ref {
        Reference::Prompt(prompt) if has_topic(&prompt.name, argument) => topics(vaults, typed)?,
        Reference::Resource(_) => {
            let names: Vec<String> = vaults.names().map(str::to_owned).collect();
            let vault = given("vault").and_then(|vault| number(&names, &vault).ok()).unwrap_or(0);
            match argument {
                "vault" => beginning_with(names.into_iter(), typed),
                "path" => notes(vaults, vault, typed)?,
                "heading" => headings(vaults, vault, &given("path").unwrap_or_default(), typed)?,
                _ => Vec::new(),
            }
        }
        _ => Vec::new(),
    };
    Ok(cut(values))
}

fn cut(mut values: Vec<String>) -> CompletionInfo {
    let total = values.len();
    values.truncate(CompletionInfo::MAX_VALUES);
    let has_more = values.len() < total;
    let mut info = CompletionInfo::default();
    info.values = values;
    info.total = u32::try_from(total).ok();
    info.has_more = Some(has_more);
    info
}

/// Returns the values that begin with the typed text, then those that contain it, without regard to case.
fn beginning_with(values: impl Iterator<Item = String>, typed: &str) -> Vec<String> {
    let typed = typed.to_lowercase();
    let (mut begin, mut hold) = (Vec::new(), Vec::new());
    for value in values {
        let folded = value.to_lowercase();
        let name = folded.rsplit('/').next().unwrap_or(&folded);
        if folded.starts_with(&typed) || name.starts_with(&typed) {
            begin.push(value);
        } else if folded.contains(&typed) {
            hold.push(value);
        }
    }
    begin.extend(hold);
    begin
}

fn notes(vaults: &mut Vaults, vault: usize, typed: &str) -> Result<Vec<String>> {
    let notes = vaults.toolbox(vault).notes()?;
    Ok(beginning_with(notes.iter().map(|note| note.path.to_string()), typed))
}

/// Returns the headings of a note. Its outline has lines such as `12: ## Plan (340 bytes)`.
fn headings(vaults: &mut Vaults, vault: usize, path: &str, typed: &str) -> Result<Vec<String>> {
    let args = json!({ "path": path, "outline": true });
    let outline = vaults.toolbox(vault).call("read_note", args, &mut HeadlessApprover)?.value;
    let lines = outline["content"].as_str().unwrap_or_default().lines();
    let heading = |line: &str| {
        let (_, heading) = line.split_once('#')?;
        let heading = heading.trim_start_matches('#').trim();
        Some(heading.rsplit_once(" (").map_or(heading, |(heading, _)| heading).trim().to_owned())
    };
    Ok(beginning_with(lines.filter_map(heading), typed))
}

/// Returns tags and titles of notes.
fn topics(vaults: &mut Vaults, typed: &str) -> Result<Vec<String>> {
    let mut topics = BTreeSet::new();
    for vault in 0..vaults.names().count() {
        let toolbox = vaults.toolbox(vault);
        let notes = toolbox.notes()?;
        let shown: BTreeSet<&str> = notes.iter().map(|note| note.path.as_str()).collect();
        for note in toolbox.vault().index()?.notes()? {
            if shown.contains(note.path.as_str()) {
                topics.insert(note.title);
                topics.extend(note.tags);
            }
        }
    }
    Ok(beginning_with(topics.into_iter(), typed))
}
