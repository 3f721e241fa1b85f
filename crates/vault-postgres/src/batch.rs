//! Transactions that write.

use std::collections::HashSet;

use vault_index::backend::{Batch, LinkRow, NewNote, ReadVectors, WriteStore, ids_of};
use vault_index::{FileId, Result, VaultPath};

use crate::connection::VaultStore;
use crate::links::KINDS;
use crate::words::{add_note_words, add_vocabulary, add_words};

/// A transaction; rolled back when dropped.
struct Transaction<'a> {
    store: &'a VaultStore,
    /// The id of the next new passage, once there is one.
    next_passage: Option<i64>,
}

impl WriteStore for VaultStore {
    fn begin(&self) -> Result<Box<dyn Batch + '_>> {
        self.batch("BEGIN")?;
        self.is_writing.set(true);
        let transaction = Transaction { store: self, next_passage: None };
        self.check_version()?;
        Ok(Box::new(transaction))
    }

    fn set_meta(&self, key: &str, value: &str) -> Result<()> {
        self.set_setting(key, value)
    }

    /// The server has nothing to tidy up.
    fn checkpoint(&self) {}
}

impl Batch for Transaction<'_> {
    fn put_note(&mut self, id: FileId, path: &VaultPath, note: &NewNote, version: i64, _is_new: bool) -> Result<usize> {
        let store = self.store;
        let vault = store.vault;
        let mut next = self.next_passage.map_or_else(|| store.next_passage_id(), Ok)?;
        let keys: Vec<_> = note.passages.iter().map(|passage| passage.key).chain(note.title_key).collect();
        let slots = store.slots_of(&keys)?;
        store.add_warnings_of(path.as_str(), &note.warnings);
        let mut new = store.new.borrow_mut();
        let stat = &note.stat;
        // Only what the statement for this table reads.
        new.row("file", vault)
            .plain(id.0)
            .text(path.as_str())
            .null()
            .plain(0)
            .plain(true)
            .plain(stat.size as i64)
            .plain(stat.mtime_ns)
            .plain(stat.ctime_ns)
            .plain(stat.inode as i64)
            .plain(note.checked_at_ns)
            .bytes(&note.hash)
            .plain(version);
        let row = &note.row;
        new.row("note", vault)
            .plain(id.0)
            .text(&row.title)
            .plain(row.title_source as i64)
            .text(&row.aliases)
            .text(&row.shown_tags)
            .text(&row.frontmatter)
            .text(&row.anchors)
            .plain(row.words)
            .optional_text(row.file_title.as_deref())
            .optional(note.title_key.and_then(|key| slots.get(&key)));
        for (n, name) in row.names.iter().enumerate() {
            new.row("name", vault).plain(id.0).plain(n).text(&name.key).text(&name.text).plain(name.is_heading);
        }
        let mut tags = HashSet::new();
        for (n, (key, shown)) in row.tags.iter().filter(|(key, _)| tags.insert(key)).enumerate() {
            new.row("tag", vault).plain(id.0).plain(n).text(key).text(shown);
        }
        for (n, (key, value)) in row.properties.iter().enumerate() {
            new.row("property", vault).text(key).plain(id.0).plain(n).optional(value.number).text(&value.text);
        }
        for (link_id, LinkRow { link, name, target }) in ids_of(id).zip(&note.links) {
            let kind = KINDS.iter().position(|kind| *kind == link.kind);
            new.row("link", vault)
                .plain(link_id)
                .plain(id.0)
                .plain(link.line)
                .plain(link.span.start)
                .plain(link.span.end)
                .optional(kind)
                .text(&link.raw)
                .text(&link.path)
                .optional_text(link.subpath.as_deref())
                .optional_text(link.display.as_deref())
                .plain(name)
                .optional(target.map(|target| target.0));
        }
        add_vocabulary(&mut new, vault, &note.words);
        add_note_words(&mut new, vault, id, &note.fields);
        for passage in &note.passages {
            new.row("passage", vault)
                .plain(next)
                .plain(id.0)
                .optional(slots.get(&passage.key))
                .plain(passage.fields.length())
                .plain(passage.said)
                .plain(passage.tokens);
            new.row("passage_text", vault)
                .plain(next)
                .text(&passage.headings)
                .plain(passage.lines.0)
                .plain(passage.lines.1)
                .plain(passage.span.start)
                .plain(passage.span.end)
                .text(&passage.text);
            add_words(&mut new, vault, next, &passage.fields);
            next += 1;
        }
        self.next_passage = Some(next);
        Ok(note.passages.iter().filter(|passage| slots.contains_key(&passage.key)).count())
    }

    fn commit_notes(self: Box<Self>, unread: usize) -> Result<()> {
        self.store.set_setting("unread", &unread.to_string())?;
        if let Some(next) = self.next_passage {
            self.store.set_setting("next_passage", &next.to_string())?;
        }
        self.store.find_shared_headings()?;
        self.commit()
    }

    fn commit(self: Box<Self>) -> Result<()> {
        self.store.batch(
            "INSERT INTO meta VALUES(@vault, 'commits', '1')
             ON CONFLICT(vault, key) DO UPDATE SET value = (meta.value::bigint + 1)::text; COMMIT",
        )?;
        self.store.is_writing.set(false);
        Ok(())
    }
}

impl Drop for Transaction<'_> {
    fn drop(&mut self) {
        if self.store.is_writing.replace(false) {
            // Rows of this transaction that wait.
            self.store.new.take();
            // If the connection is lost, the server rolls it back by itself.
            let _ = self.store.beside(|client| client.batch_execute("ROLLBACK"));
        }
    }
}
