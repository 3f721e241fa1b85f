//! Rows of files and notes: size and times, tags, properties and warnings.

use std::collections::BTreeSet;

use rusqlite::{Row, params};
use serde::{Deserialize, Serialize};

use crate::error::{Result, Warning, WarningKind};
use crate::files::{ContentHash, FileStat, KnownFile};
use crate::note::{Properties, Property, TitleSource};
use crate::path::{FileId, FileKind, VaultPath};
use crate::report::{NoteWarning, SkippedNote, TagCount};
use crate::store::Store;
use crate::store::names::Name;

/// A file, as found by the walk and stored in the index.
#[derive(Debug, Clone)]
pub struct StoredFile {
    /// The values that the next comparison with the disk needs.
    pub known: KnownFile,
    /// The path on disk if it differs from the text of the path.
    pub disk: Option<std::path::PathBuf>,
    /// The version of the parser, chunker and window that read it. `None`: it must be read again.
    pub version: Option<i64>,
}

/// Marks a note that has not been read yet. Its row has this value instead of the content hash, so that the final row
/// has the same length and is written in place.
const UNREAD: [u8; 32] = [0; 32];

/// One value of a property.
#[derive(Debug, Clone, PartialEq)]
pub struct PropertyValue {
    /// Its number, if it is one.
    pub number: Option<f64>,
    /// As it is written.
    pub text: String,
}

/// The data of a note row; lists and maps are JSON.
#[derive(Debug)]
pub struct NoteRow {
    /// Its title.
    pub title: String,
    /// Where the title is from.
    pub title_source: TitleSource,
    /// The file's name if the note does not contain it; it is embedded by itself.
    pub file_title: Option<String>,
    /// All its names.
    pub names: Vec<Name>,
    /// A list.
    pub aliases: String,
    /// A list, as they are spelled.
    pub shown_tags: String,
    /// (folded, first spelling); some twice.
    pub tags: Vec<(String, String)>,
    /// A map.
    pub frontmatter: String,
    /// (folded key, value), lists item by item.
    pub properties: Vec<(String, PropertyValue)>,
    /// [`Anchors`] as JSON.
    pub anchors: String,
    /// The number of its words.
    pub words: usize,
}

/// The possible targets of subpaths.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct Anchors {
    /// (level, text as written, line).
    pub headings: Vec<(u8, String, u32)>,
    /// (id, line).
    pub blocks: Vec<(String, u32)>,
}

/// The data of a note that hits and graphs show.
#[derive(Debug, Clone)]
pub struct NoteMeta {
    /// Its id.
    pub id: FileId,
    /// Its path.
    pub path: VaultPath,
    /// Its title; the name of its file if the title is the first heading of many notes.
    pub title: String,
    /// As they are spelled.
    pub tags: Vec<String>,
    /// When it was changed, in nanoseconds since 1970.
    pub modified_ns: i64,
}

/// The texts of a note's own fields, without its path.
#[derive(Debug)]
pub struct StoredTexts {
    /// Its title.
    pub title: String,
    /// [`TitleSource`] as a number.
    pub title_source: i64,
    /// Its aliases.
    pub aliases: Vec<String>,
    /// As they are spelled.
    pub tags: Vec<String>,
    /// Its frontmatter.
    pub properties: Properties,
}

/// The title is NULL if it is the first heading of many notes.
const NOTE_META: &str = "SELECT note.id, file.path,
    CASE WHEN title_source = 1 AND title IN (SELECT text FROM shared_heading) THEN NULL ELSE title END,
    note.tags, file.modified_ns
  FROM note JOIN file ON file.id = note.id";

/// The value of the column `skipped` of a warning that was found while listing the vault, not while reading a file.
const FOUND_BY_WALK: u8 = 2;

/// The questions of a search about notes and files.
pub trait ReadNotes {
    /// The number of notes that have not been read yet, without those that cannot be read.
    fn unread(&self) -> Result<usize>;

    /// The number of notes.
    fn note_count(&self) -> Result<usize>;

    /// (id, path, modified) of every note, for filters.
    fn notes(&self) -> Result<Vec<(FileId, VaultPath, i64)>>;

    /// Paths of all files, for the name table.
    fn paths(&self) -> Result<Vec<(FileId, VaultPath)>>;

    /// The id of a file.
    fn file_id(&self, path: &VaultPath) -> Result<Option<FileId>>;

    /// The displayed data of a note.
    fn note_meta(&self, id: FileId) -> Result<Option<NoteMeta>>;

    /// The headings and block ids of a note. `None`: the file is not an indexed note.
    fn anchors(&self, id: FileId) -> Result<Option<Anchors>>;

    /// The notes with a tag or one nested below it. `key` is folded.
    fn notes_with_tag(&self, key: &str) -> Result<Vec<FileId>>;

    /// Every tag with the number of its notes.
    fn tag_counts(&self) -> Result<Vec<TagCount>>;

    /// The notes whose frontmatter has a key, with any value, or whose text has a field with it; `outer.inner` is a key
    /// of a map. `key` is folded.
    fn notes_with_property(&self, key: &str) -> Result<Vec<FileId>>;

    /// All values of a property, by note. `key` is folded.
    fn property_values(&self, key: &str) -> Result<Vec<(FileId, PropertyValue)>>;

    /// The keys of all properties that have values.
    fn property_keys(&self) -> Result<Vec<String>>;
}

/// The indexer's questions about files and notes, and its changes of them.
pub trait WriteNotes {
    /// The id of the next new file.
    fn next_file_id(&self) -> Result<u32>;

    /// Adds a file or replaces its row. No other file has its path, because renames lead from a path that was removed
    /// to a new one.
    fn put_file(&self, file: &StoredFile) -> Result<()>;

    /// Removes a file that was at `path`. If links lead to it, the path is stored as a former path without a file.
    fn remove_file(&self, id: FileId, path: &VaultPath) -> Result<()>;

    /// The texts of a note's own fields. `None`: the file is not an indexed note.
    fn note_texts(&self, id: FileId) -> Result<Option<StoredTexts>>;

    /// Removes a note with its passages, words and links. Returns whether it existed.
    fn remove_note(&self, id: FileId) -> Result<bool>;

    /// Replaces the warnings about a file, except for those that listing the vault found. With `skipped`, they are the
    /// reason why it is not indexed.
    fn put_warnings(&self, file: &str, warnings: &[Warning], skipped: bool) -> Result<()>;

    /// Moves the warnings of a renamed file.
    fn move_warnings(&self, from: &str, to: &str) -> Result<()>;

    /// The warnings of the last listing of the vault, in its order.
    fn walk_warnings(&self) -> Result<Vec<(String, Warning)>>;

    /// Replaces the warnings of the last listing.
    fn put_walk_warnings(&self, warnings: &[(String, Warning)]) -> Result<()>;

    /// Stores the former path of a file, and its current file if that is certain. A path that two files had is not
    /// certain.
    fn put_former_path(&self, path: &VaultPath, file: Option<FileId>) -> Result<()>;
}

impl Store {
    /// All warnings, ordered by path: (skipped files, warnings about the others).
    pub(crate) fn warnings(&self) -> Result<(Vec<SkippedNote>, Vec<NoteWarning>)> {
        let (mut skipped, mut warnings) = (Vec::new(), Vec::new());
        self.all("SELECT file, skipped, kind, line, message FROM warning ORDER BY file, line, rowid", [], |row| {
            let path: String = row.get(0)?;
            if row.get(1)? {
                skipped.push(SkippedNote { path, reason: row.get(4)? });
            } else if let Some(warning) = warning(row, 2)? {
                warnings.push(NoteWarning { path, warning });
            }
            Ok(())
        })?;
        Ok((skipped, warnings))
    }

    /// All known files, ordered by path.
    pub(crate) fn files(&self) -> Result<Vec<StoredFile>> {
        let mut files = self.all(
            "SELECT id, path, disk, indexed, size, modified_ns, changed_ns, inode, seen_ns, hash, version
             FROM file",
            [],
            stored_file,
        )?;
        files.sort_unstable_by(|a, b| a.known.path.cmp(&b.known.path));
        Ok(files)
    }

    /// Marks the former paths of a file as uncertain.
    pub(super) fn forget_former_paths(&self, file: FileId) -> Result<()> {
        self.run("UPDATE former_path SET file = NULL WHERE file = ?1", [file])
    }

    /// The hash of a file's content, if it was read.
    pub(crate) fn content_hash(&self, path: &VaultPath) -> Result<Option<ContentHash>> {
        let hash = self.first("SELECT hash FROM file WHERE path = ?1", [path.as_str()], |row| content_hash(row, 0))?;
        Ok(hash.flatten())
    }

    /// Marks a file as read, with its stat at that time.
    pub(super) fn set_read(
        &self,
        id: FileId,
        stat: &FileStat,
        hash: &ContentHash,
        checked_at_ns: i64,
        version: i64,
    ) -> Result<()> {
        self.run(
            "UPDATE file SET size = ?2, modified_ns = ?3, changed_ns = ?4, inode = ?5, seen_ns = ?6, hash = ?7,
               version = ?8 WHERE id = ?1",
            params![
                id,
                stat.size as i64,
                stat.mtime_ns,
                stat.ctime_ns,
                stat.inode as i64,
                checked_at_ns,
                hash.as_slice(),
                version
            ],
        )
    }

    /// Adds a note with its names, tags and properties.
    pub(super) fn put_note(&self, id: FileId, note: &NoteRow, title_vector: Option<i64>) -> Result<()> {
        self.run(
            "INSERT INTO note(id, title, title_source, aliases, tags, frontmatter, anchors, words, title_vector, file_title)
             VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)",
            params![
                id,
                note.title,
                note.title_source as i64,
                note.aliases,
                note.shown_tags,
                note.frontmatter,
                note.anchors,
                note.words,
                title_vector,
                note.file_title,
            ],
        )?;
        self.put_names(id, &note.names)?;
        for (key, shown) in &note.tags {
            self.run("INSERT OR IGNORE INTO tag(key, note, shown) VALUES(?1, ?2, ?3)", params![key, id, shown])?;
        }
        for (n, (key, value)) in note.properties.iter().enumerate() {
            self.run(
                "INSERT INTO property(key, note, n, number, text) VALUES(?1, ?2, ?3, ?4, ?5)",
                params![key, id, n, value.number, value.text],
            )?;
        }
        Ok(())
    }

    /// The displayed data of all notes, ordered by path.
    pub(crate) fn note_metas(&self) -> Result<Vec<NoteMeta>> {
        self.all(&format!("{NOTE_META} ORDER BY file.path"), [], note_meta)
    }

    /// The notes that contain these passages.
    pub(crate) fn notes_of(&self, passages: &[i64]) -> Result<BTreeSet<FileId>> {
        let note = |id: &i64| self.first("SELECT note FROM passage WHERE id = ?1", [id], |row| row.get(0));
        passages.iter().filter_map(|id| note(id).transpose()).collect()
    }

    /// The path of a file.
    pub(crate) fn path_of(&self, id: FileId) -> Result<Option<VaultPath>> {
        self.first("SELECT path FROM file WHERE id = ?1", [id], |row| row.get(0))
    }

    /// A file's path on disk, relative to the vault, if it differs from the text of its path.
    pub(crate) fn disk_path(&self, path: &VaultPath) -> Result<Option<std::path::PathBuf>> {
        let sql = "SELECT disk FROM file WHERE path = ?1 AND disk IS NOT NULL";
        Ok(self.first(sql, [path.as_str()], |row| row.get::<_, Vec<u8>>(0))?.map(os_path))
    }

    /// Stores the number of notes that have not been read yet.
    pub(super) fn set_unread(&self, notes: usize) -> Result<()> {
        self.set_meta("unread", &notes.to_string())
    }

    /// The numbers of notes, attachments and tags.
    pub(crate) fn counts(&self) -> Result<(usize, usize, usize)> {
        Ok((
            self.note_count()?,
            self.only("SELECT count(*) FROM file WHERE kind = 0", [])?,
            self.only("SELECT count(DISTINCT key) FROM tag", [])?,
        ))
    }

    fn add_warning(&self, file: &str, warning: &Warning, skipped: u8) -> Result<()> {
        self.run(
            "INSERT INTO warning(file, skipped, kind, line, message) VALUES(?1, ?2, ?3, ?4, ?5)",
            params![file, skipped, json(&warning.kind), warning.line, warning.message],
        )
    }

    /// Files and folders that could not be read, with the reason. `unlisted` are the folders among them.
    pub(crate) fn unreadable(&self, unlisted: &[String]) -> Result<Vec<(String, String)>> {
        let found = self.all(
            "SELECT file, message, EXISTS (SELECT 1 FROM file AS known WHERE known.path = warning.file)
             FROM warning WHERE kind = ?1 AND skipped ORDER BY 3, file",
            [json(&WarningKind::Unreadable)],
            |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)),
        )?;
        let is_of_vault = |(path, _, is_file): &(String, String, bool)| *is_file || unlisted.contains(path);
        Ok(found.into_iter().filter(is_of_vault).map(|(path, why, _)| (path, why)).collect())
    }
}

impl WriteNotes for Store {
    fn next_file_id(&self) -> Result<u32> {
        self.only("SELECT coalesce(max(id), 0) + 1 FROM file", [])
    }

    fn put_file(&self, file: &StoredFile) -> Result<()> {
        let known = &file.known;
        let disk = file.disk.as_ref().map(|d| d.as_os_str().as_encoded_bytes());
        let is_note = known.indexed && known.path.kind().is_note();
        self.run(
            "INSERT INTO file(id, path, disk, kind, indexed, size, modified_ns, changed_ns, inode, seen_ns, hash, version)
             VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12)
             ON CONFLICT(id) DO UPDATE SET path = ?2, disk = ?3, kind = ?4, indexed = ?5, size = ?6, modified_ns = ?7,
               changed_ns = ?8, inode = ?9, seen_ns = ?10, hash = ?11, version = ?12",
            params![
                known.id,
                known.path.as_str(),
                disk,
                KINDS.iter().position(|kind| *kind == known.path.kind()),
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

    fn remove_file(&self, id: FileId, path: &VaultPath) -> Result<()> {
        self.forget_former_paths(id)?;
        if self.is_linked(id)? {
            self.put_former_path(path, None)?;
        }
        self.run("DELETE FROM file WHERE id = ?1", [id])
    }

    fn note_texts(&self, id: FileId) -> Result<Option<StoredTexts>> {
        self.first("SELECT title, title_source, aliases, tags, frontmatter FROM note WHERE id = ?1", [id], |row| {
            Ok(StoredTexts {
                title: row.get(0)?,
                title_source: row.get(1)?,
                aliases: from_json(row.get_ref(2)?.as_str()?),
                tags: from_json(row.get_ref(3)?.as_str()?),
                properties: from_json(row.get_ref(4)?.as_str()?),
            })
        })
    }

    fn remove_note(&self, id: FileId) -> Result<bool> {
        self.remove_passages(id)?;
        self.remove_links(id)?;
        self.remove_names(id)?;
        self.run("DELETE FROM tag WHERE note = ?1", [id])?;
        self.run("DELETE FROM property WHERE note = ?1", [id])?;
        self.with(|conn| Ok(conn.prepare_cached("DELETE FROM note WHERE id = ?1")?.execute([id])? > 0))
    }

    fn put_warnings(&self, file: &str, warnings: &[Warning], skipped: bool) -> Result<()> {
        self.run("DELETE FROM warning WHERE file = ?1 AND skipped <> ?2", params![file, FOUND_BY_WALK])?;
        warnings.iter().try_for_each(|warning| self.add_warning(file, warning, skipped.into()))
    }

    fn move_warnings(&self, from: &str, to: &str) -> Result<()> {
        self.run("UPDATE warning SET file = ?2 WHERE file = ?1 AND skipped <> ?3", params![from, to, FOUND_BY_WALK])
    }

    fn walk_warnings(&self) -> Result<Vec<(String, Warning)>> {
        let sql = "SELECT file, kind, line, message FROM warning WHERE skipped = ?1 ORDER BY rowid";
        let found = self.all(sql, [FOUND_BY_WALK], |row| Ok((row.get(0)?, warning(row, 1)?)))?;
        Ok(found.into_iter().filter_map(|(path, warning)| Some((path, warning?))).collect())
    }

    fn put_walk_warnings(&self, warnings: &[(String, Warning)]) -> Result<()> {
        self.run("DELETE FROM warning WHERE skipped = ?1", [FOUND_BY_WALK])?;
        warnings.iter().try_for_each(|(path, warning)| self.add_warning(path, warning, FOUND_BY_WALK))
    }

    fn put_former_path(&self, path: &VaultPath, file: Option<FileId>) -> Result<()> {
        self.run(
            "INSERT INTO former_path(path, file) VALUES(?1, ?2)
             ON CONFLICT DO UPDATE SET file = CASE WHEN file IS excluded.file THEN file END",
            params![path.as_str(), file],
        )
    }
}

impl ReadNotes for Store {
    fn unread(&self) -> Result<usize> {
        Ok(self.meta("unread")?.and_then(|n| n.parse().ok()).unwrap_or(0))
    }

    fn note_count(&self) -> Result<usize> {
        self.only("SELECT count(*) FROM note", [])
    }

    fn notes(&self) -> Result<Vec<(FileId, VaultPath, i64)>> {
        self.all(
            "SELECT note.id, file.path, file.modified_ns FROM note JOIN file ON file.id = note.id ORDER BY note.id",
            [],
            |row| row.try_into(),
        )
    }

    fn paths(&self) -> Result<Vec<(FileId, VaultPath)>> {
        self.all("SELECT id, path FROM file ORDER BY id", [], |row| row.try_into())
    }

    fn file_id(&self, path: &VaultPath) -> Result<Option<FileId>> {
        self.first("SELECT id FROM file WHERE path = ?1", [path.as_str()], |row| row.get(0))
    }

    fn note_meta(&self, id: FileId) -> Result<Option<NoteMeta>> {
        self.first(&format!("{NOTE_META} WHERE note.id = ?1"), [id], note_meta)
    }

    fn anchors(&self, id: FileId) -> Result<Option<Anchors>> {
        self.first("SELECT anchors FROM note WHERE id = ?1", [id], |row| Ok(from_json(row.get_ref(0)?.as_str()?)))
    }

    fn notes_with_tag(&self, key: &str) -> Result<Vec<FileId>> {
        // Nested tags are between `key/` and `key0`, because `0` follows `/` in Unicode.
        let sql = "SELECT note FROM tag WHERE key = ?1 OR (key >= ?1 || '/' AND key < ?1 || '0')";
        self.all(sql, [key], |row| row.get(0))
    }

    fn tag_counts(&self) -> Result<Vec<TagCount>> {
        self.all(
            "SELECT (SELECT shown FROM tag AS first JOIN file ON file.id = first.note
                     WHERE first.key = tag.key ORDER BY path LIMIT 1), count(*),
               (SELECT count(DISTINCT note) FROM tag AS below
                WHERE below.key = tag.key OR (below.key >= tag.key || '/' AND below.key < tag.key || '0'))
             FROM tag GROUP BY key ORDER BY key",
            [],
            |row| Ok(TagCount { tag: row.get(0)?, notes: row.get(1)?, nested: row.get(2)? }),
        )
    }

    fn notes_with_property(&self, key: &str) -> Result<Vec<FileId>> {
        // The database can skip most notes if the key's characters are written in JSON without escapes.
        let last = key.rsplit('.').next().unwrap_or(key);
        let plain = last.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b' '));
        let like = if plain { format!("%{last}\":%") } else { "%".to_string() };
        let found: Vec<(FileId, bool)> =
            self.all("SELECT id, frontmatter FROM note WHERE frontmatter LIKE ?1 ORDER BY id", [like], |row| {
                Ok((row.get(0)?, has_key(&from_json(row.get_ref(1)?.as_str()?), key)))
            })?;
        let mut notes: Vec<FileId> =
            self.all("SELECT DISTINCT note FROM property WHERE key = ?1", [key], |row| row.get(0))?;
        notes.extend(found.into_iter().filter(|(_, has_key)| *has_key).map(|(id, _)| id));
        Ok(notes)
    }

    fn property_values(&self, key: &str) -> Result<Vec<(FileId, PropertyValue)>> {
        self.all("SELECT note, number, text FROM property WHERE key = ?1 ORDER BY note, n", [key], |row| {
            Ok((row.get(0)?, PropertyValue { number: row.get(1)?, text: row.get(2)? }))
        })
    }

    fn property_keys(&self) -> Result<Vec<String>> {
        self.all("SELECT DISTINCT key FROM property ORDER BY key", [], |row| row.get(0))
    }
}

/// Whether a frontmatter has a key; `outer.inner` is a key of a map. `key` is folded.
pub fn has_key(properties: &Properties, key: &str) -> bool {
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

/// In the order of their numbers in the column `kind`.
const KINDS: [FileKind; 3] = [FileKind::Attachment, FileKind::Markdown, FileKind::Canvas];

fn stored_file(row: &Row<'_>) -> rusqlite::Result<StoredFile> {
    let disk: Option<Vec<u8>> = row.get(2)?;
    Ok(StoredFile {
        known: KnownFile {
            id: row.get(0)?,
            path: row.get(1)?,
            indexed: row.get(3)?,
            stat: FileStat {
                size: row.get::<_, i64>(4)? as u64,
                mtime_ns: row.get(5)?,
                ctime_ns: row.get(6)?,
                inode: row.get::<_, i64>(7)? as u64,
            },
            checked_at_ns: row.get(8)?,
            hash: content_hash(row, 9)?,
        },
        disk: disk.map(os_path),
        version: row.get(10)?,
    })
}

/// Also `None` for a note that has not been read yet.
fn content_hash(row: &Row<'_>, column: usize) -> rusqlite::Result<Option<ContentHash>> {
    let hash: Option<Vec<u8>> = row.get(column)?;
    Ok(hash.and_then(|hash| hash.try_into().ok()).filter(|hash| *hash != UNREAD))
}

/// The path whose encoded bytes this operating system stored.
fn os_path(bytes: Vec<u8>) -> std::path::PathBuf {
    #[cfg(unix)]
    let path = <std::ffi::OsString as std::os::unix::ffi::OsStringExt>::from_vec(bytes);
    #[cfg(not(unix))]
    let path: std::ffi::OsString = String::from_utf8_lossy(&bytes).into_owned().into();
    std::path::PathBuf::from(path)
}

fn note_meta(row: &Row<'_>) -> rusqlite::Result<NoteMeta> {
    let path: VaultPath = row.get(1)?;
    let title: Option<String> = row.get(2)?;
    Ok(NoteMeta {
        id: row.get(0)?,
        title: title.unwrap_or_else(|| path.stem().to_owned()),
        path,
        tags: from_json(row.get_ref(3)?.as_str()?),
        modified_ns: row.get(4)?,
    })
}

/// Reads the columns kind, line and message, starting with column `first`. `None` if this program does not know the
/// kind.
fn warning(row: &Row<'_>, first: usize) -> rusqlite::Result<Option<Warning>> {
    let Ok(kind) = serde_json::from_str(row.get_ref(first)?.as_str()?) else { return Ok(None) };
    Ok(Some(Warning { kind, line: row.get(first + 1)?, message: row.get(first + 2)? }))
}

/// A value as it is stored in a column.
pub(crate) fn json(value: &impl Serialize) -> String {
    serde_json::to_string(value).unwrap_or_default()
}

pub(super) fn from_json<T: for<'de> Deserialize<'de> + Default>(text: &str) -> T {
    serde_json::from_str(text).unwrap_or_default()
}
