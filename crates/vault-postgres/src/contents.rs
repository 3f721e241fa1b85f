//! The questions of link queries and reports.

use std::collections::BTreeSet;
use std::path::PathBuf;

use vault_index::backend::{
    ContentHash, DatabaseReader, Name, NoteMeta, ReadContents, ReadNotes, StoredFile, StoredLink, least_size, number_of,
};
use vault_index::{FileId, NoteWarning, Result, SkippedNote, VaultPath};

use crate::connection::{VaultStore, int, ints, string, text};
use crate::database::{BEGIN_READING, VERSIONS, value};
use crate::names::IS_NAME;
use crate::notes::{NOTE_METAS, UNREAD, file_id, note_meta, os_path, path, stored_file, warning};
use crate::row::Row;
use crate::schema::equals;

impl ReadContents for VaultStore {
    fn meta(&self, key: &str) -> Result<Option<String>> {
        self.setting(key)
    }

    fn version(&self) -> Result<i64> {
        Ok(self.setting("commits")?.and_then(|commits| commits.parse().ok()).unwrap_or(0))
    }

    fn has_content(&self) -> Result<bool> {
        self.is(
            "SELECT EXISTS (SELECT 1 FROM file WHERE vault = @vault) OR EXISTS (SELECT 1 FROM embedding WHERE vault = @vault)",
            &[],
        )
    }

    /// That of the partitions with their indexes, which anyone may ask for.
    fn bytes(&self) -> Result<u64> {
        let sql = "SELECT coalesce(sum(pg_total_relation_size(oid)), 0)::bigint FROM pg_class
             WHERE relnamespace = 'vault_search'::regnamespace AND relkind = 'r' AND relname ~ '_@vault$'";
        Ok(self.count(sql, &[])? as u64)
    }

    fn files(&self) -> Result<Vec<StoredFile>> {
        let sql = "SELECT id, path, disk, indexed, size, modified_ns, changed_ns, inode, seen_ns, hash, version
             FROM file WHERE vault = @vault";
        let rows = self.rows(sql, &[])?;
        let mut files = rows.iter().map(stored_file).collect::<Result<Vec<_>>>()?;
        files.sort_unstable_by(|a, b| a.known.path.cmp(&b.known.path));
        Ok(files)
    }

    fn path_of(&self, id: FileId) -> Result<Option<VaultPath>> {
        let rows = self.rows("SELECT path FROM file WHERE vault = @vault AND id = $1", &[int(&id.0.into())])?;
        rows.first().map(|row| path(row, 0)).transpose()
    }

    fn disk_path(&self, path: &VaultPath) -> Result<Option<PathBuf>> {
        let is_of = equals("path", "$1");
        let sql = format!("SELECT disk FROM file WHERE vault = @vault AND {is_of} AND disk IS NOT NULL");
        self.first(&sql, &[text(&path.as_str())], |row| os_path(row.get(0)))
    }

    fn content_hash(&self, path: &VaultPath) -> Result<Option<ContentHash>> {
        let sql = format!("SELECT hash FROM file WHERE vault = @vault AND {}", equals("path", "$1"));
        let hash = self.first(&sql, &[text(&path.as_str())], |row| row.get::<_, Option<Vec<u8>>>(0))?.flatten();
        Ok(hash.and_then(|hash| hash.try_into().ok()).filter(|hash| *hash != UNREAD))
    }

    fn note_metas(&self) -> Result<Vec<NoteMeta>> {
        self.rows(NOTE_METAS, &[])?.iter().map(note_meta).collect()
    }

    fn notes_of(&self, passages: &[i64]) -> Result<BTreeSet<FileId>> {
        let sql = "SELECT DISTINCT note FROM passage WHERE vault = @vault AND id = ANY($1)";
        Ok(self.all(sql, &[ints(&passages)], |row| file_id(row, 0))?.into_iter().collect())
    }

    fn counts(&self) -> Result<(usize, usize, usize)> {
        Ok((
            self.note_count()?,
            self.count("SELECT count(*) FROM file WHERE vault = @vault AND kind = 0", &[])?,
            self.count("SELECT count(DISTINCT key) FROM tag WHERE vault = @vault", &[])?,
        ))
    }

    fn warnings(&self) -> Result<(Vec<SkippedNote>, Vec<NoteWarning>)> {
        let (mut skipped, mut warnings) = (Vec::new(), Vec::new());
        let sql = "SELECT file, skipped, kind, line, message FROM warning WHERE vault = @vault
             ORDER BY file, line NULLS FIRST, n";
        for row in self.rows(sql, &[])?.iter() {
            let path = string(row, 0);
            if row.get::<_, i16>(1) != 0 {
                skipped.push(SkippedNote::new(path, string(row, 4)));
            } else if let Some(warning) = warning(row, 2) {
                warnings.push(NoteWarning::new(path, warning));
            }
        }
        Ok((skipped, warnings))
    }

    fn all_names(&self) -> Result<Vec<(FileId, Name)>> {
        let sql =
            format!("SELECT note, key, text, is_heading FROM name WHERE vault = @vault AND {IS_NAME} ORDER BY note, n");
        let name = |row: &Row| Name { key: string(row, 1), text: string(row, 2), is_heading: row.get(3) };
        self.all(&sql, &[], |row| (file_id(row, 0), name(row)))
    }

    fn links_by_name(&self, name_key: &str) -> Result<Vec<StoredLink>> {
        self.links("name = $1", &[int(&number_of(name_key))])
    }

    fn links_with_subpath(&self) -> Result<Vec<StoredLink>> {
        self.links("subpath IS NOT NULL ORDER BY id", &[])
    }

    fn edges(&self) -> Result<Vec<(FileId, Option<FileId>, String)>> {
        self.all("SELECT source, target, path FROM link WHERE vault = @vault ORDER BY id", &[], |row| {
            (file_id(row, 0), target(row, 1), string(row, 2))
        })
    }

    fn link_texts(&self, notes: usize) -> Result<Vec<(FileId, String)>> {
        let sql = "SELECT target, display FROM link
             WHERE vault = @vault AND target IS NOT NULL AND display IS NOT NULL AND kind < 2
             GROUP BY target, display HAVING count(DISTINCT source) >= $1 ORDER BY target, display";
        self.all(sql, &[int(&(notes as i64))], |row| (file_id(row, 0), string(row, 1)))
    }

    fn former_paths(&self) -> Result<Vec<(VaultPath, Option<FileId>)>> {
        let rows = self.rows("SELECT path, file FROM former_path WHERE vault = @vault", &[])?;
        rows.iter().map(|row| Ok((path(row, 0)?, target(row, 1)))).collect()
    }

    fn link_counts(&self) -> Result<(usize, usize)> {
        Ok((
            self.count("SELECT count(*) FROM link WHERE vault = @vault", &[])?,
            self.count("SELECT count(*) FROM link WHERE vault = @vault AND target IS NULL", &[])?,
        ))
    }

    fn passage_count(&self) -> Result<usize> {
        self.count("SELECT count(*) FROM passage WHERE vault = @vault", &[])
    }

    fn sample_texts(&self, step: usize) -> Result<Vec<String>> {
        let sql = "SELECT text FROM passage_text WHERE vault = @vault AND id % $1 = 0 ORDER BY id";
        self.all(sql, &[int(&(step.max(1) as i64))], |row| string(row, 0))
    }

    fn pending_size(&self, texts: usize) -> Result<u64> {
        let sql = "SELECT coalesce(sum(tokens), 0)::bigint FROM passage WHERE vault = @vault AND vector IS NULL";
        Ok(self.count(sql, &[])? as u64 + least_size(texts))
    }

    fn is_pending(&self, id: i64) -> Result<bool> {
        self.is(
            "SELECT EXISTS(SELECT 1 FROM passage WHERE vault = @vault AND id = $1 AND vector IS NULL)
                 OR EXISTS(SELECT 1 FROM note WHERE vault = @vault AND id = -$1 AND title_vector IS NULL
                           AND file_title IS NOT NULL)",
            &[int(&id)],
        )
    }

    fn vector_count(&self) -> Result<usize> {
        self.count("SELECT count(*) FROM embedding WHERE vault = @vault", &[])
    }
}

impl DatabaseReader for VaultStore {
    fn renew(&self) -> Result<()> {
        self.forget_answers();
        let sql = format!("COMMIT; {BEGIN_READING}; {VERSIONS}");
        let messages = self.with(|client| client.simple_query(&sql))?;
        self.check_found(value(&messages, "version"))
    }
}

fn target(row: &Row, column: usize) -> Option<FileId> {
    row.get::<_, Option<i64>>(column).map(|target| FileId(target as u32))
}
