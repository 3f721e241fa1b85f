//! Rows of files and notes: tags, properties, warnings, former paths.

use std::path::PathBuf;

use postgres::types::Type;
use serde::de::DeserializeOwned;
use vault_index::backend::{
    Anchors, FileStat, KnownFile, NoteMeta, PropertyValue, ReadNotes, StoredFile, StoredTexts, WriteNotes, has_key,
    ids_of, number_of,
};
use vault_index::{FileId, FileKind, Result, TagCount, VaultPath, Warning};

use crate::connection::{VaultStore, damaged, int, optional_string, string, text};
use crate::nul::escape;
use crate::prefetch::{Key, Keyed};
use crate::row::Row;
use crate::schema::equals;

/// In the order of their numbers in the column `kind`.
const KINDS: [FileKind; 3] = [FileKind::Attachment, FileKind::Markdown, FileKind::Canvas];

/// Marks a note that has not been read yet.
pub(crate) const UNREAD: [u8; 32] = [0; 32];

/// The value of the column `skipped` of a warning that was found while listing the vault.
const FOUND_BY_WALK: i16 = 2;

/// The title is NULL if it is the first heading of many notes.
macro_rules! note_meta {
    ($($more:literal)?) => {
        concat!(
            "SELECT note.id, file.path,
               CASE WHEN title_source = 1 AND title IN (SELECT text FROM shared_heading WHERE vault = @vault) THEN NULL
                 ELSE title END,
               note.tags, file.modified_ns
             FROM note JOIN file ON file.id = note.id AND file.vault = @vault WHERE note.vault = @vault ",
            $($more)?
        )
    };
}

pub(crate) const NOTE_METAS: &str = note_meta!("ORDER BY file.path");

const META: Keyed = Keyed { sql: note_meta!("AND note.id = ANY($1)"), also: None };

const ANCHORS: Keyed = Keyed { sql: "SELECT id, anchors FROM note WHERE vault = @vault AND id = ANY($1)", also: None };

/// The condition that a tag is nested below another one: its key is between `key/` and `key0`, because `0` follows `/`.
fn is_below(table: &str, key: &str) -> String {
    format!(
        "{table}.key >= {key} || '/' AND {table}.key < {key} || '0'
         AND left({table}.key, 200) >= left({key} || '/', 200) AND left({table}.key, 200) <= left({key} || '0', 200)"
    )
}

/// The id of a file.
pub(crate) fn file_id(row: &Row, column: usize) -> FileId {
    FileId(row.get::<_, i64>(column) as u32)
}

/// The path of a file, which was one when it was written.
pub(crate) fn path(row: &Row, column: usize) -> Result<VaultPath> {
    let text = string(row, column);
    VaultPath::new(&text).ok_or_else(|| damaged(format!("the index has {text:?} for a path")))
}

/// A row of [`NOTE_METAS`].
pub(crate) fn note_meta(row: &Row) -> Result<NoteMeta> {
    let path = path(row, 1)?;
    let title = optional_string(row, 2);
    Ok(NoteMeta {
        id: file_id(row, 0),
        title: title.unwrap_or_else(|| path.stem().to_owned()),
        path,
        tags: json(row, 3),
        modified_ns: row.get(4),
    })
}

/// A value that was written as JSON.
pub(crate) fn json<T: DeserializeOwned + Default>(row: &Row, column: usize) -> T {
    serde_json::from_str(&string(row, column)).unwrap_or_default()
}

impl ReadNotes for VaultStore {
    fn unread(&self) -> Result<usize> {
        Ok(self.setting("unread")?.and_then(|number| number.parse().ok()).unwrap_or(0))
    }

    fn note_count(&self) -> Result<usize> {
        self.count("SELECT count(*) FROM note WHERE vault = @vault", &[])
    }

    fn notes(&self) -> Result<Vec<(FileId, VaultPath, i64)>> {
        let sql = "SELECT note.id, file.path, file.modified_ns FROM note
             JOIN file ON file.id = note.id AND file.vault = @vault WHERE note.vault = @vault ORDER BY note.id";
        self.rows(sql, &[])?.iter().map(|row| Ok((file_id(row, 0), path(row, 1)?, row.get(2)))).collect()
    }

    fn paths(&self) -> Result<Vec<(FileId, VaultPath)>> {
        let rows = self.rows("SELECT id, path FROM file WHERE vault = @vault ORDER BY id", &[])?;
        rows.iter().map(|row| Ok((file_id(row, 0), path(row, 1)?))).collect()
    }

    fn file_id(&self, path: &VaultPath) -> Result<Option<FileId>> {
        let sql = format!("SELECT id FROM file WHERE vault = @vault AND {}", equals("path", "$1"));
        self.first(&sql, &[text(&path.as_str())], |row| file_id(row, 0))
    }

    fn note_meta(&self, id: FileId) -> Result<Option<NoteMeta>> {
        let rows = self.rows_of_key(&META, Key::Int(id.0.into()))?;
        rows.first().map(note_meta).transpose()
    }

    fn anchors(&self, id: FileId) -> Result<Option<Anchors>> {
        Ok(self.rows_of_key(&ANCHORS, Key::Int(id.0.into()))?.first().map(|row| json(row, 1)))
    }

    fn notes_with_tag(&self, key: &str) -> Result<Vec<FileId>> {
        let sql = format!(
            "SELECT note FROM tag WHERE vault = @vault AND ({} OR ({}))",
            equals("key", "$1"),
            is_below("tag", "$1")
        );
        self.all(&sql, &[text(&escape(key))], |row| file_id(row, 0))
    }

    fn tag_counts(&self) -> Result<Vec<TagCount>> {
        let sql = format!(
            "SELECT (SELECT shown FROM tag AS first JOIN file ON file.id = first.note AND file.vault = @vault
                     WHERE first.vault = @vault AND {} ORDER BY path LIMIT 1), count(*),
               (SELECT count(DISTINCT note) FROM tag AS below WHERE below.vault = @vault AND ({} OR ({})))
             FROM tag WHERE vault = @vault GROUP BY key ORDER BY key",
            equals("first.key", "tag.key"),
            equals("below.key", "tag.key"),
            is_below("below", "tag.key")
        );
        self.all(&sql, &[], |row| {
            TagCount::new(string(row, 0), row.get::<_, i64>(1) as usize, row.get::<_, i64>(2) as usize)
        })
    }

    fn notes_with_property(&self, key: &str) -> Result<Vec<FileId>> {
        // The server can skip most notes if the key's characters are written in JSON without escapes.
        let last = key.rsplit('.').next().unwrap_or(key);
        let is_plain = last.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b' '));
        let like = if is_plain { format!("%{last}\":%") } else { "%".to_string() };
        let sql = "SELECT id, frontmatter FROM note WHERE vault = @vault AND frontmatter ILIKE $1 ORDER BY id";
        let maps = self.rows(sql, &[text(&like)])?;
        let sql = format!("SELECT DISTINCT note FROM property WHERE vault = @vault AND {}", equals("key", "$1"));
        let mut notes = self.all(&sql, &[text(&escape(key))], |row| file_id(row, 0))?;
        notes.extend(maps.iter().filter(|row| has_key(&json(row, 1), key)).map(|row| file_id(row, 0)));
        Ok(notes)
    }

    fn property_values(&self, key: &str) -> Result<Vec<(FileId, PropertyValue)>> {
        let is_of = equals("key", "$1");
        let sql = format!("SELECT note, number, text FROM property WHERE vault = @vault AND {is_of} ORDER BY note, n");
        self.all(&sql, &[text(&escape(key))], |row| {
            (file_id(row, 0), PropertyValue { number: row.get(1), text: string(row, 2) })
        })
    }

    fn property_keys(&self) -> Result<Vec<String>> {
        self.all("SELECT DISTINCT key FROM property WHERE vault = @vault ORDER BY key", &[], |row| string(row, 0))
    }
}

impl VaultStore {
    fn add_warnings<'w>(&self, skipped: i16, warnings: impl Iterator<Item = (&'w str, &'w Warning)>) {
        let mut new = self.new.borrow_mut();
        for (n, (file, warning)) in warnings.enumerate() {
            let kind = serde_json::to_string(&warning.kind).unwrap_or_default();
            new.row("warning", self.vault)
                .plain(n)
                .text(file)
                .plain(skipped)
                .text(&kind)
                .optional(warning.line)
                .text(&warning.message);
        }
    }

    /// Adds the warnings about a note that was read.
    pub(crate) fn add_warnings_of(&self, file: &str, warnings: &[Warning]) {
        self.add_warnings(0, warnings.iter().map(|warning| (file, warning)));
    }
}

impl WriteNotes for VaultStore {
    fn next_file_id(&self) -> Result<u32> {
        let next = self.count("SELECT coalesce(max(id), 0) + 1 FROM file WHERE vault = @vault", &[])?;
        u32::try_from(next).map_err(|_| damaged("a file has a number that is too large"))
    }

    fn put_file(&self, file: &StoredFile) -> Result<()> {
        let known = &file.known;
        let disk = file.disk.as_ref().map(|disk| disk.as_os_str().as_encoded_bytes());
        let is_note = known.indexed && known.path.kind().is_note();
        let hash = known.hash.as_ref().or_else(|| is_note.then_some(&UNREAD)).map(<[u8; 32]>::as_slice);
        let kind = KINDS.iter().position(|kind| *kind == known.path.kind()).map(|kind| kind as i16);
        let stat = &known.stat;
        self.run(
            "INSERT INTO file(vault, id, path, disk, kind, indexed, size, modified_ns, changed_ns, inode, seen_ns, hash,
               version) VALUES(@vault, $1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)
             ON CONFLICT(vault, id) DO UPDATE SET path = $2, disk = $3, kind = $4, indexed = $5, size = $6,
               modified_ns = $7, changed_ns = $8, inode = $9, seen_ns = $10, hash = $11, version = $12",
            &[
                int(&known.id.0.into()),
                text(&known.path.as_str()),
                (&disk, Type::BYTEA),
                (&kind, Type::INT2),
                (&known.indexed, Type::BOOL),
                int(&(stat.size as i64)),
                int(&stat.mtime_ns),
                int(&stat.ctime_ns),
                int(&(stat.inode as i64)),
                int(&known.checked_at_ns),
                (&hash, Type::BYTEA),
                (&file.version, Type::INT8),
            ],
        )
    }

    fn remove_file(&self, id: FileId, path: &VaultPath) -> Result<()> {
        let number = i64::from(id.0);
        self.run("UPDATE former_path SET file = NULL WHERE vault = @vault AND file = $1", &[int(&number)])?;
        if self.is("SELECT EXISTS (SELECT 1 FROM link WHERE vault = @vault AND target = $1)", &[int(&number)])? {
            self.put_former_path(path, None)?;
        }
        self.run("DELETE FROM file WHERE vault = @vault AND id = $1", &[int(&number)])
    }

    fn note_texts(&self, id: FileId) -> Result<Option<StoredTexts>> {
        let sql = "SELECT title, title_source, aliases, tags, frontmatter FROM note WHERE vault = @vault AND id = $1";
        self.first(sql, &[int(&id.0.into())], |row| StoredTexts {
            title: string(row, 0),
            title_source: row.get(1),
            aliases: json(row, 2),
            tags: json(row, 3),
            properties: json(row, 4),
        })
    }

    fn remove_note(&self, id: FileId) -> Result<bool> {
        let links = ids_of(id);
        let passages = "(SELECT id FROM passage WHERE vault = @vault AND note = $1)";
        let sql = format!(
            "WITH of_note AS {passages},
               a AS (DELETE FROM posting WHERE vault = @vault AND (field < 5 AND holder = $1
                     OR field >= 5 AND holder = ANY (ARRAY(SELECT id FROM of_note)))),
               b AS (DELETE FROM words WHERE vault = @vault AND passage IN (SELECT id FROM of_note)),
               c AS (DELETE FROM note_words WHERE vault = @vault AND note = $1),
               d AS (DELETE FROM passage_text WHERE vault = @vault AND id IN (SELECT id FROM of_note)),
               e AS (DELETE FROM passage WHERE vault = @vault AND note = $1),
               f AS (DELETE FROM link WHERE vault = @vault AND id >= $2 AND id < $3),
               g AS (DELETE FROM name WHERE vault = @vault AND note = $1),
               h AS (DELETE FROM tag WHERE vault = @vault AND note = $1),
               i AS (DELETE FROM property WHERE vault = @vault AND note = $1)
             DELETE FROM note WHERE vault = @vault AND id = $1 RETURNING id"
        );
        Ok(self.write(&sql, &[int(&id.0.into()), int(&links.start), int(&links.end)])? > 0)
    }

    fn put_warnings(&self, file: &str, warnings: &[Warning], skipped: bool) -> Result<()> {
        let sql = format!("DELETE FROM warning WHERE vault = @vault AND {} AND skipped <> $2", equals("file", "$1"));
        self.run(&sql, &[text(&escape(file)), (&FOUND_BY_WALK, Type::INT2)])?;
        self.add_warnings(skipped.into(), warnings.iter().map(|warning| (file, warning)));
        Ok(())
    }

    fn move_warnings(&self, from: &str, to: &str) -> Result<()> {
        let is_of = equals("file", "$1");
        let sql = format!("UPDATE warning SET file = $2 WHERE vault = @vault AND {is_of} AND skipped <> $3");
        self.run(&sql, &[text(&escape(from)), text(&escape(to)), (&FOUND_BY_WALK, Type::INT2)])
    }

    fn walk_warnings(&self) -> Result<Vec<(String, Warning)>> {
        let sql = "SELECT file, kind, line, message FROM warning WHERE vault = @vault AND skipped = $1 ORDER BY n";
        let found = self.all(sql, &[(&FOUND_BY_WALK, Type::INT2)], |row| Some((string(row, 0), warning(row, 1)?)))?;
        Ok(found.into_iter().flatten().collect())
    }

    fn put_walk_warnings(&self, warnings: &[(String, Warning)]) -> Result<()> {
        let sql = "DELETE FROM warning WHERE vault = @vault AND skipped = $1";
        self.run(sql, &[(&FOUND_BY_WALK, Type::INT2)])?;
        self.add_warnings(FOUND_BY_WALK, warnings.iter().map(|(path, warning)| (path.as_str(), warning)));
        Ok(())
    }

    fn put_former_path(&self, path: &VaultPath, file: Option<FileId>) -> Result<()> {
        let file = file.map(|file| i64::from(file.0));
        self.run(
            "INSERT INTO former_path(vault, key, path, file) VALUES(@vault, $3, $1, $2) ON CONFLICT(vault, key) DO UPDATE
             SET file = CASE WHEN former_path.file IS NOT DISTINCT FROM excluded.file THEN former_path.file END",
            &[text(&path.as_str()), (&file, Type::INT8), int(&number_of(path.as_str()))],
        )
    }
}

pub(crate) fn stored_file(row: &Row) -> Result<StoredFile> {
    let hash: Option<Vec<u8>> = row.get(9);
    Ok(StoredFile {
        known: KnownFile {
            id: file_id(row, 0),
            path: path(row, 1)?,
            indexed: row.get(3),
            stat: FileStat {
                size: row.get::<_, i64>(4) as u64,
                mtime_ns: row.get(5),
                ctime_ns: row.get(6),
                inode: row.get::<_, i64>(7) as u64,
            },
            checked_at_ns: row.get(8),
            hash: hash.and_then(|hash| hash.try_into().ok()).filter(|hash| *hash != UNREAD),
        },
        disk: row.get::<_, Option<Vec<u8>>>(2).map(os_path),
        version: row.get(10),
    })
}

/// The path whose encoded bytes this operating system stored.
pub(crate) fn os_path(bytes: Vec<u8>) -> PathBuf {
    #[cfg(unix)]
    let path = <std::ffi::OsString as std::os::unix::ffi::OsStringExt>::from_vec(bytes);
    #[cfg(not(unix))]
    let path: std::ffi::OsString = String::from_utf8_lossy(&bytes).into_owned().into();
    PathBuf::from(path)
}

/// The columns kind, line and message. `None` if this program does not know the kind.
pub(crate) fn warning(row: &Row, first: usize) -> Option<Warning> {
    let kind = serde_json::from_str(&string(row, first)).ok()?;
    let line = row.get::<_, Option<i64>>(first + 1).and_then(|line| line.try_into().ok());
    Some(Warning { kind, line, message: string(row, first + 2) })
}
