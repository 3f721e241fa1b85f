//! Finds the notes that answers cite, and the notes that the tools have returned.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use agent_loop::{Message, Run};
use serde_json::{Value, json};
use vault_index::ResolvedLink;
use vault_tools::{SafePath, View};

use super::citations::{CitationCheck, CitedNote, Source};
use super::note_tools::NoteTools;
use crate::workspace::Workspace;

/// Tools that return a note, not a list of notes that were found.
const READS: [&str; 2] = ["read_note", "file_read"];

/// Creates a check of the answer to a message. It reads the notes itself, so that the results that the model saw do not
/// matter. It holds at most `hold` bytes, or whole lines. An image or another file counts as a note without lines.
pub(crate) fn citation_check(tools: &NoteTools, message: &str, hold: Option<usize>) -> CitationCheck<'static> {
    let workspace = Arc::clone(tools.workspace());
    CitationCheck::new(message, hold, move |name: &str| {
        let (path, text) = named_file(&workspace, name)?;
        Some(CitedNote { path, text: text.unwrap_or_default() })
    })
}

/// Returns the path of the note that a person names by its path or as a link does.
pub(crate) fn named_note(workspace: &Workspace, name: &str) -> Option<String> {
    cited_note(workspace, name).map(|note| note.path)
}

/// Finds a note by its path or as a link does. A note that the settings deny is not found.
pub(super) fn cited_note(workspace: &Workspace, name: &str) -> Option<CitedNote> {
    first_cited_note(workspace, &[name])
}

/// [`cited_note`] for the first of several names that is one of a note.
pub(super) fn first_cited_note(workspace: &Workspace, names: &[&str]) -> Option<CitedNote> {
    let (path, text) = first_named_file(workspace, names, Option::is_some)?;
    Some(CitedNote { path, text: text? })
}

/// Returns the path of a file as it is shown, and its text unless it holds none.
fn named_file(workspace: &Workspace, name: &str) -> Option<(String, Option<String>)> {
    first_named_file(workspace, &[name], |_| true)
}

/// [`named_file`] for the first of several names whose text is wanted. The index of a vault resolves all names at once,
/// because it reads the names of all files for that.
fn first_named_file(
    workspace: &Workspace,
    names: &[&str],
    is_wanted: fn(&Option<String>) -> bool,
) -> Option<(String, Option<String>)> {
    workspace.with(|vaults| {
        let vault_names: Vec<String> = vaults.names().map(str::to_owned).collect();
        let routed = |name: &&str| {
            let route = vaults.route("read_note", json!({ "path": name })).ok()?;
            let named = route.args["path"].as_str().filter(|name| !name.trim().is_empty())?.to_owned();
            Some((named, route.vaults))
        };
        let routed: Vec<(String, Vec<usize>)> = names.iter().filter_map(routed).collect();
        let links: Vec<String> = routed.iter().map(|(named, _)| format!("[[{named}]]")).collect();
        let links: Vec<&str> = links.iter().map(String::as_str).collect();
        let mut resolved: BTreeMap<usize, Vec<ResolvedLink>> = BTreeMap::new();
        routed.iter().enumerate().find_map(|(number, (named, of_vaults))| {
            of_vaults.iter().find_map(|vault| {
                let toolbox = vaults.toolbox(*vault);
                let sandbox = toolbox.vault().sandbox();
                let path = SafePath::new(named).ok().filter(|path| sandbox.text(path).is_ok()).or_else(|| {
                    let resolve = || toolbox.vault().index().ok()?.resolve_all(&links, None).ok();
                    let resolved = resolved.entry(*vault).or_insert_with(|| resolve().unwrap_or_default());
                    SafePath::new(resolved.get(number)?.target.as_ref()?.as_str()).ok()
                })?;
                let real = sandbox.real(&path).ok()?;
                let permits = |path: &SafePath| toolbox.policy().permits_path(path.as_str());
                let shown = match vault_names.len() {
                    1 => path.to_string(),
                    _ => format!("{}/{path}", vault_names[*vault]),
                };
                let text = sandbox.text(&path).ok();
                (permits(&path) && permits(&real) && is_wanted(&text)).then_some((shown, text))
            })
        })
    })
}

/// Returns the paths of the notes in an item of a result.
fn notes_in(item: &str) -> Vec<String> {
    fn collect(value: &Value, paths: &mut Vec<String>) {
        match value {
            Value::Object(fields) => {
                paths.extend(fields.get("path").and_then(Value::as_str).map(str::to_owned));
                fields.values().for_each(|value| collect(value, paths));
            }
            Value::Array(items) => items.iter().for_each(|item| collect(item, paths)),
            _ => {}
        }
    }
    let mut paths = Vec::new();
    // The fields of a note are followed by its text.
    if let Some(Ok(value)) = serde_json::Deserializer::from_str(item).into_iter::<Value>().next() {
        collect(&value, &mut paths);
    }
    paths
}

/// Marks the places whose notes neither a tool nor the person has shown.
pub(super) fn marked(run: &Run, sources: &[Source]) -> Vec<Source> {
    let (mut shown, mut said) = (BTreeSet::new(), String::new());
    for message in run.history().messages().iter() {
        match &**message {
            Message::Results { results } => {
                results.iter().flat_map(|result| &result.items).for_each(|item| shown.extend(notes_in(item)));
            }
            Message::User { text, .. } | Message::Note { text } => said.push_str(text),
            Message::Assistant { .. } => {}
        }
    }
    let is_read = |path: &str| shown.contains(path) || said.contains(path);
    sources.iter().map(|source| Source { unread: !is_read(&source.path), ..source.clone() }).collect()
}

/// Returns the notes that were read since the person's last message, or else the notes that were found.
pub(super) fn notes_of_turn(run: &Run) -> Vec<String> {
    let of = |reads: bool| {
        let results = run.results().filter(move |result| !reads || READS.contains(&&*result.name));
        let mut all: Vec<String> = Vec::new();
        for path in results.flat_map(|result| &result.items).flat_map(|item| notes_in(item)) {
            if !all.contains(&path) {
                all.push(path);
            }
        }
        all
    };
    let read = of(true);
    if read.is_empty() { of(false) } else { read }
}
