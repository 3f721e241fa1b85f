//! Finds the note that the user names in the same way as a link: by name, path or alias.

use std::collections::BTreeSet;

use vault_index::links::{Names, ranked};
use vault_index::note::{ParseOptions, frontmatter_span, parse};
use vault_index::{FileId, FileKind, VaultPath};
use vault_tools::{Entry, EntryKind, Error, ErrorKind, Result, SafePath, Toolbox, View, missing};

use crate::sanitize_line;

/// The maximum number of notes with the same name that an error lists.
const LISTED: usize = 5;

/// The files and folders that can be named. Those that the settings deny are not included.
pub(super) struct NamedNotes<'t> {
    toolbox: &'t Toolbox,
    entries: Vec<Entry>,
    /// The names of the files, by their positions in `entries`.
    names: Names,
}

impl<'t> NamedNotes<'t> {
    /// Lists the vault, without reading a note.
    pub fn new(toolbox: &'t Toolbox) -> Result<Self> {
        let mut entries = toolbox.vault().sandbox().walk(None)?;
        entries.retain(|entry| is_permitted(toolbox, entry));
        let files = (0..).map(FileId).zip(&entries).filter(|(_, entry)| entry.stat.kind == EntryKind::File);
        let names = files.map(|(id, entry)| (id, entry.path.vault_path().clone())).collect();
        Ok(Self { toolbox, entries, names })
    }

    /// Returns the path of the only note or attachment with a name.
    ///
    /// Unlike for a link, a name that matches several notes is an error, and so is a path with a partial folder name.
    pub fn find(&self, written: &str) -> Result<String> {
        let name = self.inside(plain(written));
        let mut found = self.called(name);
        if found.is_empty() {
            self.refuse_subpath(name)?;
            found = self.with_alias(name);
        }
        match &found[..] {
            [path] => Ok(path.to_string()),
            [] => Err(self.no_note(name)),
            several => {
                let mut paths: Vec<&str> = several.iter().map(|path| path.as_str()).collect();
                paths.sort_unstable();
                let more = paths.len().saturating_sub(LISTED);
                let more = if more > 0 { format!(" and {more} more") } else { String::new() };
                let listed = paths[..paths.len().min(LISTED)].join(", ");
                let message = format!("`{name}` can be {} notes: {listed}{more}", paths.len());
                Err(Error::new(ErrorKind::Ambiguous, sanitize_line(&message))
                    .with_remedy("give the path of one of them"))
            }
        }
    }

    /// Returns the folder that the user names, ignoring case if the result is unique. The root, which is also `/`, is
    /// empty. Any other absolute path is returned as it is, so that the tool refuses it.
    pub fn folder(&self, written: &str) -> String {
        let name = self.inside(written.trim()).trim_start_matches("./").trim_end_matches('/');
        if matches!(name, "" | ".") {
            return String::new();
        }
        let folders = || self.entries.iter().filter(|entry| entry.stat.kind == EntryKind::Folder);
        let lower = name.to_lowercase();
        let alike: Vec<&str> =
            folders().map(|entry| entry.path.as_str()).filter(|path| path.to_lowercase() == lower).collect();
        match alike[..] {
            [only] => only.to_owned(),
            _ => name.to_owned(),
        }
    }

    /// Returns the path of a note to create or to rename to. A name without a folder is in `folder`.
    pub fn new_path(&self, written: &str, folder: &str, extension: &str) -> String {
        let written = self.inside(plain(written));
        let (folder, name) = match written.rsplit_once('/') {
            Some((folder, name)) => (self.folder(folder), name),
            None => (folder.to_owned(), written),
        };
        let ending = format!(".{extension}");
        let is_note = |name: &str| VaultPath::new(name).is_some_and(|path| path.kind() == FileKind::Markdown);
        let is_other = || is_note(name) && is_note(&format!("x{ending}"));
        let has_ending = name.to_lowercase().ends_with(&ending.to_lowercase()) || is_other();
        join(&folder, &if has_ending { name.to_owned() } else { format!("{name}{ending}") })
    }

    /// Turns the absolute path of a file in the vault into a path of the vault. Returns other names unchanged.
    fn inside<'n>(&self, name: &'n str) -> &'n str {
        let vault = self.toolbox.vault().path().to_str();
        let inside = vault.and_then(|vault| name.strip_prefix(vault)).filter(|rest| rest.starts_with('/'));
        inside.map_or(name, |rest| &rest[1..])
    }

    /// Returns the files to which a link with this path in the vault's root could lead, or only one if it is certain.
    fn called(&self, name: &str) -> Vec<&VaultPath> {
        let root = VaultPath::new("-").expect("a path");
        let ranked = if name.is_empty() { Vec::new() } else { ranked(&self.names, name, &root) };
        let all: Vec<&VaultPath> = ranked.into_iter().filter_map(|id| self.names.path(id)).collect();
        let name = name.trim_start_matches("./").trim_start_matches('/');
        if let Some(spelled) = all.iter().find(|path| is_called(path.as_str(), name)) {
            return vec![spelled];
        }
        let lower = name.to_lowercase();
        let at_path: Vec<&VaultPath> =
            all.iter().filter(|path| is_called(&path.as_str().to_lowercase(), &lower)).copied().collect();
        if !at_path.is_empty() {
            return at_path;
        }
        let ends = |path: &str| path.match_indices('/').any(|(at, _)| is_called(&path[at + 1..], &lower));
        all.into_iter().filter(|path| ends(&path.as_str().to_lowercase())).collect()
    }

    /// Returns the notes with an alias. Reads all notes, so the time grows with their number.
    fn with_alias(&self, name: &str) -> Vec<&VaultPath> {
        let wanted = name.to_lowercase();
        let sandbox = self.toolbox.vault().sandbox();
        let has_it = |entry: &&Entry| {
            let text = sandbox.text(&entry.path).unwrap_or_default();
            let Some(block) = frontmatter_span(&text).map(|span| &text[..span.end]) else { return false };
            // Most notes have no alias, and need not be parsed.
            block.to_lowercase().contains("alias")
                && parse(entry.path.vault_path(), block.as_bytes(), &ParseOptions::default())
                    .aliases
                    .iter()
                    .any(|alias| alias.to_lowercase() == wanted)
        };
        let notes = self.entries.iter().filter(|entry| entry.path.is_markdown() && !entry.stat.symlink);
        notes.filter(has_it).map(|entry| entry.path.vault_path()).collect()
    }

    /// Refuses a name with a heading or block, because a command takes a whole note and would ignore it.
    fn refuse_subpath(&self, name: &str) -> Result<()> {
        match name.split_once('#') {
            Some((note, _)) if !self.called(note).is_empty() => {
                let message = format!("`{name}` is a place in a note, but the command takes a whole note");
                Err(Error::new(ErrorKind::InvalidArguments, message).with_remedy(format!("write `{}`", note.trim())))
            }
            _ => Ok(()),
        }
    }

    fn no_note(&self, name: &str) -> Error {
        let folder = self.folder(name);
        if self.entries.iter().any(|entry| entry.stat.kind == EntryKind::Folder && entry.path.as_str() == folder) {
            let message = format!("`{name}` is a folder, not a note");
            return Error::new(ErrorKind::InvalidArguments, message)
                .with_remedy("name the notes; vault-tools call vault.rename renames a folder");
        }
        let listed: BTreeSet<SafePath> =
            self.toolbox.notes().unwrap_or_default().into_iter().map(|entry| entry.path).collect();
        match SafePath::new(name.trim_start_matches('/')) {
            Ok(path) => missing(&path, self.toolbox.vault().sandbox(), &|entry| listed.contains(&entry.path)),
            Err(_) => Error::not_found(name, &[]),
        }
    }
}

/// Joins a folder and a name. An empty folder is the root.
pub(super) fn join(folder: &str, name: &str) -> String {
    if folder.is_empty() { name.to_owned() } else { format!("{folder}/{name}") }
}

/// Whether the settings permit the path of an entry, and for a symbolic link also its target.
fn is_permitted(toolbox: &Toolbox, entry: &Entry) -> bool {
    let permits = |path: &SafePath| toolbox.policy().permits_path(path.as_str());
    let real = || toolbox.vault().sandbox().real(&entry.path);
    permits(&entry.path) && (!entry.stat.symlink || real().is_ok_and(|real| permits(&real)))
}

/// Removes the brackets and the display text of a link from a name.
fn plain(written: &str) -> &str {
    let name = written.trim();
    let link = name.strip_prefix("[[").and_then(|name| name.strip_suffix("]]"));
    let name = link.map_or(name, |link| link.split('|').next().unwrap_or(link).trim());
    name.strip_suffix('/').filter(|name| !name.is_empty()).unwrap_or(name)
}

/// Whether a path is equal to a name, with or without the extension of a note.
fn is_called(path: &str, name: &str) -> bool {
    path.strip_prefix(name).is_some_and(|rest| matches!(rest, "" | ".md" | ".markdown"))
}
