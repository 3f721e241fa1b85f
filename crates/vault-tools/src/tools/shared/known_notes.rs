//! Lists the notes with titles and tags: those of the index, with the changes of an overlay.

use std::collections::BTreeSet;

use schemars::JsonSchema;
use serde::Serialize;
use vault_index::note::TagKey;
use vault_index::{GraphNode, VaultPath};

use super::locate::parsed;
use crate::error::Result;
use crate::overlay::Overlay;
use crate::sandbox::{SafePath, View};
use crate::tool::Context;

/// A note with its title and tags.
#[derive(Serialize, JsonSchema)]
#[schemars(description = "A note with these tags.")]
pub(in crate::tools) struct KnownNote {
    /// The note.
    #[schemars(with = "String")]
    #[schemars(extend("x-vault-path" = true))]
    pub path: SafePath,
    /// Its title.
    pub title: String,
    /// All of its tags, without `#`.
    pub tags: Vec<String>,
}

/// Returns every permitted note, by path. Changed notes are read from the overlay.
pub(in crate::tools) fn known_notes(context: &Context<'_, '_>) -> Result<Vec<KnownNote>> {
    and_changed(context.vault.index()?.notes()?, context)
}

/// Returns the notes with at least one of the tags, and possibly others that the overlay changed.
pub(in crate::tools) fn notes_tagged(tags: &[TagKey], context: &Context<'_, '_>) -> Result<Vec<KnownNote>> {
    and_changed(context.vault.index()?.notes_tagged(tags)?, context)
}

fn and_changed(indexed: Vec<GraphNode>, context: &Context<'_, '_>) -> Result<Vec<KnownNote>> {
    let changed = changed_paths(context.overlay);
    let mut known = Vec::new();
    for note in indexed {
        let Some(path) = VaultPath::new(&note.path).and_then(SafePath::found) else { continue };
        if context.permits(&path) && !is_among(&changed, &path) {
            known.push(KnownNote { path, title: note.title, tags: note.tags });
        }
    }
    for path in changed {
        known.extend(changed_note(&path, context)?);
    }
    known.sort_by(|a, b| a.path.cmp(&b.path));
    known.dedup_by(|a, b| a.path == b.path);
    Ok(known)
}

/// Returns the note at a changed path; for a folder that was moved, the notes in it.
fn changed_note(path: &SafePath, context: &Context<'_, '_>) -> Result<Vec<KnownNote>> {
    let (listing, mut notes) = (context.listing()?, Vec::new());
    for file in files_at(path, context.overlay)? {
        if file.is_note() && listing.has_file(&file) {
            let note = parsed(&file, &context.overlay.read(&file)?);
            let tags = note.tags.iter().map(|tag| tag.shown.clone()).collect();
            notes.push(KnownNote { path: file, title: note.title.text, tags });
        }
    }
    Ok(notes)
}

/// Returns the file at a path, or the files below a folder.
pub(in crate::tools) fn files_at(path: &SafePath, view: &dyn View) -> Result<Vec<SafePath>> {
    use crate::sandbox::EntryKind;
    match view.stat(path)? {
        None => Ok(Vec::new()),
        Some(stat) if stat.kind == EntryKind::File => Ok(vec![path.clone()]),
        Some(_) => {
            let below = view.walk(Some(path))?.into_iter();
            Ok(below.filter(|entry| entry.stat.kind == EntryKind::File).map(|entry| entry.path).collect())
        }
    }
}

/// Returns the paths of files that the overlay changes, and of folders that it moves.
pub(in crate::tools) fn changed_paths(overlay: &Overlay<'_>) -> BTreeSet<SafePath> {
    if !overlay.is_changed() {
        return BTreeSet::new();
    }
    let change = overlay.change();
    let both = change.actions().iter().map(|action| action.paths());
    both.flat_map(|(path, to)| [Some(path), to]).flatten().filter(|path| !path.is_in_trash()).cloned().collect()
}

/// Returns whether a path is one of `changed` or below one.
pub(in crate::tools) fn is_among(changed: &BTreeSet<SafePath>, path: &SafePath) -> bool {
    if changed.is_empty() {
        return false;
    }
    let mut at = Some(path.clone());
    while let Some(here) = at {
        if changed.contains(&here) {
            return true;
        }
        at = here.parent();
    }
    false
}
