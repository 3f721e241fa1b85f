//! Finds the note that a person names, or the most similar names.

use crate::error::{Error, ErrorKind, Result};
use crate::likeness::nearest;
use crate::links::{Names, ranked};
use crate::path::{FileId, VaultPath};
use crate::store::ReadStore;

/// The note that a person names: by its path, with or without its extension, or as in a link from the vault's root.
/// Among files whose paths differ only in case, the exact spelling wins, which a link would ignore.
pub(crate) fn find_note(store: &dyn ReadStore, name: &str) -> Result<FileId> {
    let name = name.trim().trim_start_matches("[[").trim_end_matches("]]");
    if let Some(path) = VaultPath::new(name)
        && let Some(id) = store.file_id(&path)?
    {
        return Ok(id);
    }
    let files = store.paths()?;
    let mut names = Names::new();
    files.iter().for_each(|(id, path)| names.insert(*id, path));
    let root = VaultPath::new("x.md").expect("a path");
    let candidates = if name.is_empty() { Vec::new() } else { ranked(&names, name, &root) };
    let is_spelled_so = |id: &&FileId| names.path(**id).is_some_and(|path| ends_with(path, name));
    if let Some(id) = candidates.iter().find(is_spelled_so).or(candidates.first()) {
        return Ok(*id);
    }
    let error = Error::new(ErrorKind::NotFound, format!("there is no note `{name}`"));
    let notes = files.iter().filter(|(_, path)| path.kind().is_note());
    let stem = name.rsplit('/').next().unwrap_or(name).trim_end_matches(".md").trim_end_matches(".markdown");
    let near: Vec<String> =
        nearest(stem, notes.map(|(_, path)| (path.stem(), path))).into_iter().map(|path| format!("`{path}`")).collect();
    Err(match near.is_empty() {
        true => error.with_remedy("name it by its path in the vault, or as a link would"),
        false => error.with_remedy(format!("did you mean {}?", near.join(" or "))),
    })
}

/// Whether a path ends with segments, with or without its extension.
fn ends_with(path: &VaultPath, segments: &str) -> bool {
    let segments = segments.trim_start_matches(['.', '/']);
    let path = path.as_str();
    let bare = path.strip_suffix(".md").or_else(|| path.strip_suffix(".markdown"));
    [path, bare.unwrap_or_default()]
        .iter()
        .any(|path| path.strip_suffix(segments).is_some_and(|before| before.is_empty() || before.ends_with('/')))
}
