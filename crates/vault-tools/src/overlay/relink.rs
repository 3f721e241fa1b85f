//! Finds the notes whose links a change of names could redirect, and preserves their links.

use std::collections::BTreeSet;

use vault_index::links::keys_leading_to;

use super::{Node, Overlay};
use crate::change::Notice;
use crate::content::Content;
use crate::error::Result;
use crate::links::{Delta, DiskLinks, LinkChanges, LinkFormat, LinkIndex, Relinker};
use crate::links::{link_keys, lossy, not_looked_through, readable};
use crate::sandbox::{SafePath, View};

impl Overlay<'_> {
    /// Finds the edits that are needed when files are created, deleted or moved, and updates the names. At this time
    /// the overlay's files are still at their old paths.
    pub(super) fn relink(&mut self, delta: &Delta) -> Result<LinkChanges> {
        let mut index = match self.links.take() {
            Some(index) => index,
            None => self.new_link_index()?,
        };
        self.preconditions.observe(index.disk.state.as_ref());
        // On an error the names are dropped, and rebuilt when they are next needed.
        let relinked = self.relink_with(delta, &mut index)?;
        self.check_size(delta.created_bytes + relinked.content_bytes())?;
        self.links = Some(index);
        Ok(relinked)
    }

    fn new_link_index(&mut self) -> Result<LinkIndex> {
        self.touched = self.nodes.keys().cloned().collect();
        let disk = DiskLinks::now(&self.store.sandbox, &self.store.index)?;
        let is_file = |path: &&SafePath| {
            matches!(self.look_up(path), Some(Node::File(_))) && SafePath::found(path.vault_path().clone()).is_some()
        };
        let others: Vec<SafePath> = self.nodes.keys().filter(is_file).cloned().collect();
        Ok(LinkIndex::new(disk, |path| self.look_up(path).is_none(), &others))
    }

    fn relink_with(&mut self, delta: &Delta, index: &mut LinkIndex) -> Result<LinkChanges> {
        let moves = delta.moves.iter().flat_map(|(from, to)| [from, to]);
        let carried = delta.carried.iter().flat_map(|carried| [&carried.from, &carried.to]);
        let named = moves.chain(&delta.created).chain(&delta.deleted).chain(carried);
        let keys: BTreeSet<String> = named.flat_map(|path| keys_leading_to(path.vault_path())).collect();
        let has_rivals = delta.created.iter().any(|path| index.is_name_taken(path));
        self.observe_names(&keys, index);
        if !has_rivals && delta.moves.is_empty() && delta.deleted.is_empty() && delta.carried.is_none() {
            index.apply(delta);
            return Ok(LinkChanges::default());
        }
        for path in std::mem::take(&mut self.touched) {
            if let Some(content) = self.changed_note(&path) {
                index.add_content(&path, content);
            }
        }
        let mut notes = self.notes_linking_by(index, &keys)?;
        self.preconditions.keys.extend(keys);
        notes.extend(delta.moves.iter().map(|(from, _)| from).filter(|from| from.is_note()).cloned());
        // A link within a note has no name, so the notes are not found by it.
        notes.extend(delta.carried.iter().flat_map(|carried| [carried.from.clone(), carried.to.clone()]));
        let deleted: BTreeSet<&SafePath> = delta.deleted.iter().collect();
        let known = self.permits.clone();
        let permits = move |path: &str| known.as_ref().is_none_or(|permits| permits(path));
        notes.retain(|note| !deleted.contains(note) && permits(note.as_str()));

        let mut notices = index.disk.unread();
        // This notice is given whether or not there are such links, so that it does not reveal whether there are.
        if self.permits.is_some() && (delta.carried.is_some() || !(delta.moves.is_empty() && delta.deleted.is_empty()))
        {
            let what = "links in notes that your settings deny are unchanged and may be broken now";
            notices.push(what.to_owned().into());
        }
        let mut read = Vec::new();
        for note in notes {
            // The text of a symbolic link to a note belongs to another note.
            if self.real(&note)? == note {
                match self.read_for_links(&note) {
                    Ok(Some((content, text))) => read.push((note, content, text)),
                    Ok(None) => {}
                    Err(why) => notices.push(not_looked_through(&note, &why)),
                }
            }
        }
        notices.extend(self.dangling_aliases(delta, index));
        let relinking = Relinker::new(delta, read, &index.names, self.store.sandbox.parse_options(), &permits);
        self.observe_names(&relinking.keys_within_moved(), index);
        let settings = self.store.sandbox.obsidian_setting("app.json").unwrap_or_else(|error| {
            let what = "Obsidian's link format is not known, so links are written in the shortest form";
            notices.push(format!("{what}: {}", error.message()).into());
            None
        });
        let relinked = relinking.finish(index, LinkFormat::of(settings.as_deref()))?;
        Ok(LinkChanges { notices, ..relinked })
    }

    /// Returns notices about symbolic links to a file that is moved or deleted, because such links are not updated.
    fn dangling_aliases(&self, delta: &Delta, index: &LinkIndex) -> Vec<Notice> {
        let left: BTreeSet<&SafePath> = delta.moves.iter().map(|(from, _)| from).chain(&delta.deleted).collect();
        let dangles = |alias: &&SafePath| {
            self.stat(alias).is_ok_and(|stat| stat.is_some_and(|stat| stat.symlink))
                && self.real(alias).is_ok_and(|real| left.contains(&real))
        };
        let aliases = index.disk.possible_aliases(&left).filter(dangles);
        let what = "is a symbolic link that leads nowhere now, and so do links to it; recreate it or delete it by hand";
        aliases.map(|alias| Notice { about: Some(alias.clone()), text: format!("{alias} {what}") }).collect()
    }

    /// Records the assumption that links with these keys can lead to the files that are on the disk now. The first
    /// observation is kept.
    fn observe_names(&mut self, keys: &BTreeSet<String>, index: &LinkIndex) {
        for key in keys {
            self.preconditions.names.entry(key.clone()).or_insert_with(|| index.disk.named(key));
        }
    }

    /// Returns the notes, by their current paths, that may contain a link with one of the keys.
    fn notes_linking_by(&mut self, index: &LinkIndex, keys: &BTreeSet<String>) -> Result<BTreeSet<SafePath>> {
        let on_disk = index.disk.linking_by(&self.store.index, keys)?;
        let mut notes = BTreeSet::new();
        for base in &on_disk {
            let now = self.moved.get(base).unwrap_or(base);
            let is_unchanged = match self.look_up(now) {
                None => now == base,
                Some(Node::File(file)) => file.content.is_none() && file.base.as_ref() == Some(base),
                _ => false,
            };
            if is_unchanged && !now.is_in_trash() {
                notes.insert(now.clone());
            }
        }
        self.preconditions.linking.extend(on_disk);
        notes.extend(index.linking_in_changed(keys).filter(|note| self.changed_note(note).is_some()).cloned());
        Ok(notes)
    }

    /// Returns a note's content and text; `None` if it is not text and has no links. For any other note that cannot be
    /// read, returns the reason. A note that cannot be read or rewritten does not prevent the rename of another.
    fn read_for_links(&self, note: &SafePath) -> Result<Option<(Content, String)>, String> {
        let content = readable(self, note).map_err(|error| error.message().to_owned())?;
        if let Some(text) = content.text().map(str::to_owned) {
            return Ok(Some((content, text)));
        }
        match link_keys(note, &lossy(&content)).is_empty() {
            true => Ok(None),
            false => Err("it is not text in UTF-8".to_owned()),
        }
    }
}
