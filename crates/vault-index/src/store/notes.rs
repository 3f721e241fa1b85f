//! Rows of files and notes: size and times, tags, properties and warnings.

use rusqlite::{Connection, OptionalExtension, Row, params};
use serde::{Deserialize, Serialize};

use crate::error::{Result, Warning, WarningKind};
use crate::files::{ContentHash, FileStat, KnownFile};
use crate::note::{Properties, Property, TitleSource};
use crate::path::{FileId, FileKind, VaultPath};
use crate::report::{NoteWarning, Skipped, TagCount};
use crate::store::Store;

/// A file as the walk found it and the index keeps it.
#[derive(Debug, Clone)]
pub(crate) struct StoredFile {
    pub known: KnownFile,
    /// The path on disk where it is not the text of the path.
    pub disk: Option<std::path::PathBuf>,
    /// What read it: parser, chunker, window. `None`: to be read again.
    pub version: Option<i64>,
}

/// A file as it was when it was read.
pub(crate) struct ReadFile {
    pub stat: FileStat,
    pub hash: Option<ContentHash>,
    /// Taken before it was read.
    pub checked_at_ns: i64,
}

/// A note without a content hash waits to be read. Its row holds this instead of the hash, so that the final row has
/// the same length and is written in place.
const UNREAD: [u8; 32] = [0; 32];

/// One value of a property.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct PropertyValue {
    pub number: Option<f64>,
    pub text: String,
}

/// What a note row takes; lists and maps as JSON.
#[derive(Debug)]
pub(crate) struct NoteRow {
    pub title: String,
    pub title_source: TitleSource,
    pub aliases: String,
    pub shown_tags: String,
    /// (folded, as first seen).
    pub tags: Vec<(String, String)>,
    pub frontmatter: String,
    pub properties: Vec<(String, PropertyValue)>,
    /// [`Anchors`].
    pub anchors: String,
    pub words: usize,
}

/// What subpaths can lead to.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct Anchors {
    /// (level, text, line).
    pub headings: Vec<(u8, String, u32)>,
    /// (id, line).
    pub blocks: Vec<(String, u32)>,
}

/// What a hit shows of a note.
#[derive(Debug, Clone)]
pub(crate) struct NoteMeta {
    pub path: VaultPath,
    pub title: String,
    pub tags: Vec<String>,
    pub modified_ns: i64,
}

impl Store {
    /// All files known, by path.
    pub(crate) fn files(&self) -> Result<Vec<StoredFile>> {
        let read = || -> rusqlite::Result<Vec<StoredFile>> {
            let mut statement = self.conn.prepare_cached(
                "SELECT id, path, disk, kind, indexed, size, modified_ns, changed_ns, inode, seen_ns, hash, version
                 FROM file",
            )?;
            let mut files: Vec<StoredFile> = statement.query_map([], stored_file)?.collect::<rusqlite::Result<_>>()?;
            files.sort_unstable_by(|a, b| a.known.path.cmp(&b.known.path));
            Ok(files)
        };
        read().map_err(|e| self.error(e))
    }

    /// Paths of all files, for the name table.
    pub(crate) fn paths(&self) -> Result<Vec<(FileId, VaultPath)>> {
        let read = || -> rusqlite::Result<Vec<(FileId, VaultPath)>> {
            let mut statement = self.conn.prepare_cached("SELECT id, path FROM file ORDER BY id")?;
            statement.query_map([], |row| Ok((file_id(row, 0)?, vault_path(row, 1)?)))?.collect()
        };
        read().map_err(|e| self.error(e))
    }

    /// The id that the next new file gets.
    pub(crate) fn next_file_id(&self) -> Result<u32> {
        self.conn
            .query_row("SELECT coalesce(max(id), 0) + 1 FROM file", [], |row| row.get(0))
            .map_err(|e| self.error(e))
    }

    /// Adds a file or replaces what is known of it. Its path is no other file's: renames lead from a path that is
    /// gone to one that is new.
    pub(crate) fn put_file(&self, file: &StoredFile) -> Result<()> {
        let known = &file.known;
        let disk = file.disk.as_ref().map(|d| d.as_os_str().as_encoded_bytes().to_vec());
        let is_note = known.indexed && known.kind.is_note();
        self.run(
            "INSERT INTO file(id, path, disk, kind, indexed, size, modified_ns, changed_ns, inode, seen_ns, hash, version)
             VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12)
             ON CONFLICT(id) DO UPDATE SET path = ?2, disk = ?3, kind = ?4, indexed = ?5, size = ?6, modified_ns = ?7,
               changed_ns = ?8, inode = ?9, seen_ns = ?10, hash = ?11, version = ?12",
            params![
                known.id.0,
                known.path.as_str(),
                disk,
                kind_number(known.kind),
                known.indexed,
                known.stat.size as i64,
                known.stat.mtime_ns,
                known.stat.ctime_ns,
                known.stat.inode as i64,
                known.checked_at_ns,
                known.hash.as_ref().or_else(|| is_note.then_some(&UNREAD)).map(<[u8; 32]>::as_slice),
                file.version,
            ],
        )
    }

    /// Forgets a file.
    pub(crate) fn remove_file(&self, id: FileId) -> Result<()> {
        self.run("DELETE FROM file WHERE id = ?1", [id.0])
    }

    /// Marks files as read, as they were then.
    pub(crate) fn set_read<'r>(
        &self,
        files: impl IntoIterator<Item = (FileId, &'r ReadFile)>,
        version: i64,
    ) -> Result<()> {
        let write = || -> rusqlite::Result<()> {
            let mut update = self.conn.prepare_cached(
                "UPDATE file SET size = ?2, modified_ns = ?3, changed_ns = ?4, inode = ?5, seen_ns = ?6, hash = ?7,
                   version = ?8 WHERE id = ?1",
            )?;
            for (id, ReadFile { stat, hash, checked_at_ns }) in files {
                update.execute(params![
                    id.0,
                    stat.size as i64,
                    stat.mtime_ns,
                    stat.ctime_ns,
                    stat.inode as i64,
                    checked_at_ns,
                    hash.as_ref().map(<[u8; 32]>::as_slice),
                    version
                ])?;
            }
            Ok(())
        };
        write().map_err(|e| self.error(e))
    }

    /// Adds a note with its tags and properties.
    pub(crate) fn put_note(&self, id: FileId, note: &NoteRow, title_vector: Option<i64>) -> Result<()> {
        let write = || -> rusqlite::Result<()> {
            self.conn
                .prepare_cached(
                    "INSERT INTO note(id, title, title_source, aliases, tags, frontmatter, anchors, words, title_vector)
                     VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)",
                )?
                .execute(params![
                    id.0,
                    note.title,
                    note.title_source as i64,
                    note.aliases,
                    note.shown_tags,
                    note.frontmatter,
                    note.anchors,
                    note.words,
                    title_vector,
                ])?;
            let mut insert =
                self.conn.prepare_cached("INSERT OR IGNORE INTO tag(key, note, shown) VALUES(?1, ?2, ?3)")?;
            for (key, shown) in &note.tags {
                insert.execute(params![key, id.0, shown])?;
            }
            let mut insert = self
                .conn
                .prepare_cached("INSERT INTO property(key, note, n, number, text) VALUES(?1, ?2, ?3, ?4, ?5)")?;
            for (n, (key, value)) in note.properties.iter().enumerate() {
                insert.execute(params![key, id.0, n, value.number, value.text])?;
            }
            Ok(())
        };
        write().map_err(|e| self.error(e))
    }

    /// Forgets a note (its passages and links are removed by their own modules). Whether it was there.
    pub(crate) fn remove_note(&self, id: FileId) -> Result<bool> {
        delete_note_parts(&self.conn, id)
            .and_then(|()| self.conn.prepare_cached("DELETE FROM note WHERE id = ?1")?.execute([id.0]))
            .map(|rows| rows > 0)
            .map_err(|e| self.error(e))
    }

    /// What hits show of a note.
    pub(crate) fn note_meta(&self, id: FileId) -> Result<Option<NoteMeta>> {
        self.conn
            .prepare_cached(
                "SELECT file.path, note.title, note.tags, file.modified_ns
                 FROM note JOIN file ON file.id = note.id WHERE note.id = ?1",
            )
            .and_then(|mut s| {
                s.query_row([id.0], |row| {
                    Ok(NoteMeta {
                        path: vault_path(row, 0)?,
                        title: row.get(1)?,
                        tags: from_json(&row.get::<_, String>(2)?),
                        modified_ns: row.get(3)?,
                    })
                })
                .optional()
            })
            .map_err(|e| self.error(e))
    }

    /// The headings and block ids of a note.
    pub(crate) fn anchors(&self, id: FileId) -> Result<Anchors> {
        let text: Option<String> = self
            .conn
            .prepare_cached("SELECT anchors FROM note WHERE id = ?1")
            .and_then(|mut s| s.query_row([id.0], |row| row.get(0)).optional())
            .map_err(|e| self.error(e))?;
        Ok(text.map(|t| from_json(&t)).unwrap_or_default())
    }

    /// A file's id.
    pub(crate) fn file_id(&self, path: &VaultPath) -> Result<Option<FileId>> {
        self.conn
            .prepare_cached("SELECT id FROM file WHERE path = ?1")
            .and_then(|mut s| s.query_row([path.as_str()], |row| file_id(row, 0)).optional())
            .map_err(|e| self.error(e))
    }

    /// Where a file lies.
    pub(crate) fn path_of(&self, id: FileId) -> Result<Option<VaultPath>> {
        self.conn
            .prepare_cached("SELECT path FROM file WHERE id = ?1")
            .and_then(|mut s| s.query_row([id.0], |row| vault_path(row, 0)).optional())
            .map_err(|e| self.error(e))
    }

    /// (id, path, modified) of every note, for filters.
    pub(crate) fn notes(&self) -> Result<Vec<(FileId, VaultPath, i64)>> {
        let read = || -> rusqlite::Result<Vec<(FileId, VaultPath, i64)>> {
            let mut statement = self.conn.prepare_cached(
                "SELECT note.id, file.path, file.modified_ns FROM note JOIN file ON file.id = note.id ORDER BY note.id",
            )?;
            statement.query_map([], |row| Ok((file_id(row, 0)?, vault_path(row, 1)?, row.get(2)?)))?.collect()
        };
        read().map_err(|e| self.error(e))
    }

    /// (id, title, tags) of every note, for pictures.
    pub(crate) fn titles(&self) -> Result<Vec<(FileId, String, Vec<String>)>> {
        let read = || -> rusqlite::Result<Vec<(FileId, String, Vec<String>)>> {
            let mut statement = self.conn.prepare_cached("SELECT id, title, tags FROM note ORDER BY id")?;
            statement
                .query_map([], |row| Ok((file_id(row, 0)?, row.get(1)?, from_json(&row.get::<_, String>(2)?))))?
                .collect()
        };
        read().map_err(|e| self.error(e))
    }

    /// Notes that bear a tag or one nested below it. `key` is folded.
    pub(crate) fn notes_with_tag(&self, key: &str) -> Result<Vec<FileId>> {
        // Nested tags lie between `key/` and `key0`: `0` is what follows `/` in Unicode.
        self.ids("SELECT note FROM tag WHERE key = ?1 OR (key >= ?1 || '/' AND key < ?1 || '0')", [key])
    }

    /// All values of a property, by note. `key` is folded.
    pub(crate) fn property_values(&self, key: &str) -> Result<Vec<(FileId, PropertyValue)>> {
        let read = || -> rusqlite::Result<Vec<(FileId, PropertyValue)>> {
            let mut statement =
                self.conn.prepare_cached("SELECT note, number, text FROM property WHERE key = ?1 ORDER BY note, n")?;
            statement
                .query_map([key], |row| {
                    Ok((file_id(row, 0)?, PropertyValue { number: row.get(1)?, text: row.get(2)? }))
                })?
                .collect()
        };
        read().map_err(|e| self.error(e))
    }

    /// Notes whose frontmatter has a key, whatever it holds; `outer.inner` is a key of a map. `key` is folded.
    pub(crate) fn notes_with_property(&self, key: &str) -> Result<Vec<FileId>> {
        // Most notes are passed over by the database where the key's characters stand in JSON as they are.
        let last = key.rsplit('.').next().unwrap_or(key);
        let plain = last.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b' '));
        let like = if plain { format!("%{last}\":%") } else { "%".to_string() };
        let read = || -> rusqlite::Result<Vec<FileId>> {
            let mut statement =
                self.conn.prepare_cached("SELECT id, frontmatter FROM note WHERE frontmatter LIKE ?1 ORDER BY id")?;
            let mut rows = statement.query([like])?;
            let mut ids = Vec::new();
            while let Some(row) = rows.next()? {
                if has_key(&from_json(&row.get::<_, String>(1)?), key) {
                    ids.push(file_id(row, 0)?);
                }
            }
            Ok(ids)
        };
        read().map_err(|e| self.error(e))
    }

    /// Every tag with its notes counted.
    pub(crate) fn tag_counts(&self) -> Result<Vec<TagCount>> {
        let read = || -> rusqlite::Result<Vec<TagCount>> {
            let mut statement = self.conn.prepare_cached(
                "SELECT (SELECT shown FROM tag AS first JOIN file ON file.id = first.note
                         WHERE first.key = tag.key ORDER BY path LIMIT 1), count(*),
                   (SELECT count(DISTINCT note) FROM tag AS below
                    WHERE below.key = tag.key OR (below.key >= tag.key || '/' AND below.key < tag.key || '0'))
                 FROM tag GROUP BY key ORDER BY key",
            )?;
            statement
                .query_map([], |row| Ok(TagCount { tag: row.get(0)?, notes: row.get(1)?, nested: row.get(2)? }))?
                .collect()
        };
        read().map_err(|e| self.error(e))
    }

    /// How many notes wait to be read; those that cannot be read do not.
    pub(crate) fn unread(&self) -> Result<usize> {
        Ok(self.meta("unread")?.and_then(|n| n.parse().ok()).unwrap_or(0))
    }

    /// Notes how many wait to be read.
    pub(crate) fn set_unread(&self, notes: usize) -> Result<()> {
        self.set_meta("unread", &notes.to_string())
    }

    /// How many notes there are.
    pub(crate) fn note_count(&self) -> Result<usize> {
        self.count("SELECT count(*) FROM note")
    }

    fn count(&self, sql: &str) -> Result<usize> {
        self.conn.prepare_cached(sql).and_then(|mut s| s.query_row([], |row| row.get(0))).map_err(|e| self.error(e))
    }

    /// Notes, attachments and tags, counted.
    pub(crate) fn counts(&self) -> Result<(usize, usize, usize)> {
        Ok((
            self.note_count()?,
            self.count("SELECT count(*) FROM file WHERE kind = 0")?,
            self.count("SELECT count(DISTINCT key) FROM tag")?,
        ))
    }

    /// Replaces the warnings about a file; `skipped` says that they are why it is not indexed. A clash of names is not
    /// among them: the walk adds and removes that.
    pub(crate) fn put_warnings(&self, file: &str, warnings: &[Warning], skipped: bool) -> Result<()> {
        self.run("DELETE FROM warning WHERE file = ?1 AND kind <> ?2", params![file, json(&WarningKind::NameClash)])?;
        warnings.iter().try_for_each(|warning| self.add_warning(file, warning, skipped))
    }

    /// Adds a warning.
    pub(crate) fn add_warning(&self, file: &str, warning: &Warning, skipped: bool) -> Result<()> {
        self.run(
            "INSERT INTO warning(file, skipped, kind, line, message) VALUES(?1, ?2, ?3, ?4, ?5)",
            params![file, skipped, json(&warning.kind), warning.line, warning.message],
        )
    }

    /// Files and folders that could not be read, with the reason. `unlisted` are the folders among them.
    pub(crate) fn unreadable(&self, unlisted: &[String]) -> Result<Vec<(String, String)>> {
        let read = || -> rusqlite::Result<Vec<(String, String)>> {
            let mut statement = self.conn.prepare_cached(
                "SELECT file, message, EXISTS (SELECT 1 FROM file AS known WHERE known.path = warning.file)
                 FROM warning WHERE kind = ?1 AND skipped ORDER BY 3, file",
            )?;
            let mut rows = statement.query([json(&WarningKind::Unreadable)])?;
            let mut found = Vec::new();
            while let Some(row) = rows.next()? {
                let path: String = row.get(0)?;
                if row.get(2)? || unlisted.contains(&path) {
                    found.push((path, row.get(1)?));
                }
            }
            Ok(found)
        };
        read().map_err(|e| self.error(e))
    }

    /// Removes one.
    pub(crate) fn remove_warning(&self, file: &str, warning: &Warning) -> Result<()> {
        self.run(
            "DELETE FROM warning WHERE file = ?1 AND kind = ?2 AND message = ?3",
            params![file, json(&warning.kind), warning.message],
        )
    }

    /// Warnings go with their file.
    pub(crate) fn move_warnings(&self, from: &str, to: &str) -> Result<()> {
        self.run(
            "UPDATE warning SET file = ?2 WHERE file = ?1 AND kind <> ?3",
            params![from, to, json(&WarningKind::NameClash)],
        )
    }

    /// All warnings: (files that are skipped, warnings on the others), by path.
    pub(crate) fn warnings(&self) -> Result<(Vec<Skipped>, Vec<NoteWarning>)> {
        let mut skipped = Vec::new();
        let mut warnings = Vec::new();
        let mut read = || -> rusqlite::Result<()> {
            let mut statement = self
                .conn
                .prepare_cached("SELECT file, skipped, kind, line, message FROM warning ORDER BY file, line, rowid")?;
            let mut rows = statement.query([])?;
            while let Some(row) = rows.next()? {
                let path: String = row.get(0)?;
                let message: String = row.get(4)?;
                if row.get(1)? {
                    skipped.push(Skipped { path, reason: message });
                } else if let Ok(kind) = serde_json::from_str(&row.get::<_, String>(2)?) {
                    warnings.push(NoteWarning { path, warning: Warning { kind, line: row.get(3)?, message } });
                }
            }
            Ok(())
        };
        read().map_err(|e| self.error(e))?;
        Ok((skipped, warnings))
    }

    pub(super) fn ids(&self, sql: &str, params: impl rusqlite::Params) -> Result<Vec<FileId>> {
        let read = || {
            self.conn
                .prepare_cached(sql)?
                .query_map(params, |row| file_id(row, 0))?
                .collect::<rusqlite::Result<Vec<_>>>()
        };
        read().map_err(|e| self.error(e))
    }
}

fn has_key(properties: &Properties, key: &str) -> bool {
    properties.iter().any(|(outer, value)| {
        let outer = outer.to_lowercase();
        key == outer || key.strip_prefix(&outer).and_then(|k| k.strip_prefix('.')).is_some_and(|k| has_inner(value, k))
    })
}

fn has_inner(value: &Property, key: &str) -> bool {
    match value {
        Property::Map(map) => has_key(map, key),
        Property::List(items) => items.iter().any(|item| has_inner(item, key)),
        _ => false,
    }
}

fn delete_note_parts(conn: &Connection, id: FileId) -> rusqlite::Result<()> {
    conn.prepare_cached("DELETE FROM tag WHERE note = ?1")?.execute([id.0])?;
    conn.prepare_cached("DELETE FROM property WHERE note = ?1")?.execute([id.0])?;
    Ok(())
}

fn stored_file(row: &Row<'_>) -> rusqlite::Result<StoredFile> {
    let hash: Option<Vec<u8>> = row.get(10)?;
    let disk: Option<Vec<u8>> = row.get(2)?;
    Ok(StoredFile {
        known: KnownFile {
            id: file_id(row, 0)?,
            path: vault_path(row, 1)?,
            kind: match row.get::<_, i64>(3)? {
                1 => FileKind::Markdown,
                2 => FileKind::Canvas,
                _ => FileKind::Attachment,
            },
            indexed: row.get(4)?,
            stat: FileStat {
                size: row.get::<_, i64>(5)? as u64,
                mtime_ns: row.get(6)?,
                ctime_ns: row.get(7)?,
                inode: row.get::<_, i64>(8)? as u64,
            },
            checked_at_ns: row.get(9)?,
            hash: hash.and_then(|h| h.try_into().ok()).filter(|hash| *hash != UNREAD),
        },
        disk: disk.map(os_path),
        version: row.get(11)?,
    })
}

/// The path whose encoded bytes were stored by this system.
fn os_path(bytes: Vec<u8>) -> std::path::PathBuf {
    #[cfg(unix)]
    let path = <std::ffi::OsString as std::os::unix::ffi::OsStringExt>::from_vec(bytes);
    #[cfg(not(unix))]
    let path: std::ffi::OsString = String::from_utf8_lossy(&bytes).into_owned().into();
    std::path::PathBuf::from(path)
}

fn kind_number(kind: FileKind) -> i64 {
    match kind {
        FileKind::Attachment => 0,
        FileKind::Markdown => 1,
        FileKind::Canvas => 2,
    }
}

pub(super) fn file_id(row: &Row<'_>, column: usize) -> rusqlite::Result<FileId> {
    row.get(column).map(FileId)
}

/// Paths come from [`VaultPath`]s; one that no longer is one can only be damage, and reads as its raw text.
pub(super) fn vault_path(row: &Row<'_>, column: usize) -> rusqlite::Result<VaultPath> {
    let text: String = row.get(column)?;
    VaultPath::new(&text).ok_or_else(|| {
        rusqlite::Error::FromSqlConversionFailure(
            column,
            rusqlite::types::Type::Text,
            format!("not a path: {text:?}").into(),
        )
    })
}

/// A value as a column keeps it.
pub(crate) fn json(value: &impl Serialize) -> String {
    serde_json::to_string(value).unwrap_or_default()
}

pub(super) fn from_json<T: for<'de> Deserialize<'de> + Default>(text: &str) -> T {
    serde_json::from_str(text).unwrap_or_else(|_| T::default())
}
