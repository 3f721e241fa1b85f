//! Finds broken links that a plan writes, for example one to a note whose name was changed.

use std::collections::{BTreeMap, HashSet};

use vault_index::links::resolve;
use vault_index::note::{Link, ParseOptions, parse};

use crate::action::Action;
use crate::content::Content;
use crate::error::Result;
use crate::overlay::Overlay;
use crate::sandbox::{SafePath, View};

/// The maximum number of links of a note that are listed.
const MAX_NAMED: usize = 5;

/// Returns a sentence for each note that has new broken links. `actions` are those of the overlay.
///
/// # Errors
/// If the disk cannot be read.
pub(super) fn dead_links(
    actions: &[Action],
    overlay: &Overlay<'_>,
    options: &ParseOptions,
    permits: &dyn Fn(&SafePath) -> bool,
) -> Result<Vec<String>> {
    let new: Vec<(SafePath, Vec<Link>)> = changed_notes(actions)
        .into_iter()
        .map(|(path, texts)| {
            let links = new_links(&path, texts, options);
            (path, links)
        })
        .collect();
    if new.iter().all(|(_, links)| links.is_empty()) {
        return Ok(Vec::new());
    }
    let names = overlay.names()?;
    let mut sentences = Vec::new();
    for (path, links) in new.into_iter().filter(|(path, _)| permits(path)) {
        let is_dead = |link: &Link| {
            let leads_to = || resolve(&names, &link.path, path.vault_path()).target;
            !is_folder(&link.path, overlay) && leads_to().is_none()
        };
        let mut dead: Vec<&str> = links.iter().filter(|link| is_dead(link)).map(|link| link.raw.as_str()).collect();
        let mut known = HashSet::new();
        dead.retain(|link| known.insert(*link));
        if !dead.is_empty() {
            let more = if dead.len() > MAX_NAMED { ", ..." } else { "" };
            let named = dead.iter().take(MAX_NAMED).copied().collect::<Vec<_>>().join(", ");
            sentences.push(format!("{path}: no file is there for {named}{more}"));
        }
    }
    Ok(sentences)
}

type Texts<'a> = (Option<&'a Content>, &'a Content);

/// Returns the notes that are created or edited, each with its text before all actions and after them.
fn changed_notes(actions: &[Action]) -> BTreeMap<SafePath, Texts<'_>> {
    let mut notes: BTreeMap<SafePath, Texts<'_>> = BTreeMap::new();
    for action in actions {
        match action {
            Action::Create { path, content } => drop(notes.insert(path.clone(), (None, content))),
            Action::Edit { path, before, after } => {
                notes.entry(path.clone()).or_insert((Some(before), after)).1 = after;
            }
            Action::Move { from, to } => {
                let moved = |path: SafePath| path.moved(from, to).unwrap_or(path);
                notes = notes.into_iter().map(|(path, texts)| (moved(path), texts)).collect();
            }
            Action::Delete { path, .. } => drop(notes.remove(path)),
            Action::MakeFolder { .. } | Action::RemoveFolder { .. } => {}
        }
    }
    notes.retain(|path, _| path.is_note() && !path.is_in_trash());
    notes
}

/// Returns the links of a note that it did not have before, as they are written.
fn new_links(path: &SafePath, (before, after): Texts<'_>, options: &ParseOptions) -> Vec<Link> {
    let links = |content: &Content| parse(path.vault_path(), content.bytes(), options).links;
    let old: HashSet<String> = before.map(links).unwrap_or_default().into_iter().map(|link| link.raw).collect();
    links(after).into_iter().filter(|link| !link.path.is_empty() && !old.contains(&link.raw)).collect()
}

/// Returns whether a link leads to a folder, which some programs can open.
fn is_folder(link: &str, overlay: &Overlay<'_>) -> bool {
    SafePath::new(link.trim_matches('/')).is_ok_and(|path| overlay.exists(&path).unwrap_or(false))
}
