//! Rows of links: what is written where, and which file it leads to.

use std::ops::Range;

use rusqlite::{Params, Row, params};

use crate::error::Result;
use crate::note::{Link, LinkKind};
use crate::path::{FileId, VaultPath};
use crate::store::{Store, number_of};

/// What a link row takes.
#[derive(Debug)]
pub(crate) struct LinkRow {
    pub link: Link,
    /// [`number_of`] what its resolution depends on: two names with one number cost a look at the other's links.
    pub name: i64,
    /// Where it leads.
    pub target: Option<FileId>,
}

/// A link row.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct StoredLink {
    pub id: i64,
    pub source: FileId,
    pub line: u32,
    pub kind: LinkKind,
    pub raw: String,
    pub path: String,
    pub subpath: Option<String>,
    pub target: Option<FileId>,
}

const COLUMNS: &str = "SELECT id, source, line, kind, raw, path, subpath, target FROM link";

/// By their numbers in the column `kind`.
const KINDS: [LinkKind; 3] = [LinkKind::Wikilink, LinkKind::Markdown, LinkKind::Embed];

impl Store {
    /// Adds the links of a note.
    pub(crate) fn put_links(&self, source: FileId, links: &[LinkRow]) -> Result<()> {
        self.with(|conn| {
            let mut insert = conn.prepare_cached(
                "INSERT INTO link(id, source, line, start, end, kind, raw, path, subpath, display, name, target)
                 VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12)",
            )?;
            for (id, LinkRow { link, name, target }) in ids_of(source).zip(links) {
                insert.execute(params![
                    id,
                    source,
                    link.line,
                    link.span.start,
                    link.span.end,
                    KINDS.iter().position(|kind| *kind == link.kind),
                    link.raw,
                    link.path,
                    link.subpath,
                    link.display,
                    name,
                    target,
                ])?;
            }
            Ok(())
        })
    }

    /// Removes the links of a note.
    pub(crate) fn remove_links(&self, source: FileId) -> Result<()> {
        let ids = ids_of(source);
        self.run("DELETE FROM link WHERE id >= ?1 AND id < ?2", [ids.start, ids.end])
    }

    /// Sets where a link leads.
    pub(crate) fn set_target(&self, link: i64, target: Option<FileId>) -> Result<()> {
        self.run("UPDATE link SET target = ?2 WHERE id = ?1", params![link, target])
    }

    /// The links of a note, in order.
    pub(crate) fn links_from(&self, source: FileId) -> Result<Vec<StoredLink>> {
        let ids = ids_of(source);
        self.links("id >= ?1 AND id < ?2 ORDER BY id", [ids.start, ids.end])
    }

    /// The links that lead to a file, in order of their sources and places.
    pub(crate) fn links_to(&self, target: FileId) -> Result<Vec<StoredLink>> {
        self.links("target = ?1 ORDER BY id", [target])
    }

    /// The links whose resolution depends on a name, and some more.
    pub(crate) fn links_by_name(&self, name_key: &str) -> Result<Vec<StoredLink>> {
        self.links("name = ?1", [number_of(name_key)])
    }

    /// A window of all links: those after `after`, `limit` at most.
    pub(crate) fn links_after(&self, after: i64, limit: usize) -> Result<Vec<StoredLink>> {
        self.links("id > ?1 ORDER BY id LIMIT ?2", params![after, limit])
    }

    fn links(&self, condition: &str, params: impl Params) -> Result<Vec<StoredLink>> {
        self.all(&format!("{COLUMNS} WHERE {condition}"), params, stored_link)
    }

    /// (source, target or the path as written) of every link.
    pub(crate) fn edges(&self) -> Result<Vec<(FileId, Option<FileId>, String)>> {
        self.all("SELECT source, target, path FROM link ORDER BY id", [], |row| row.try_into())
    }

    /// The files that links lead to.
    pub(crate) fn linked(&self) -> Result<Vec<FileId>> {
        self.all("SELECT DISTINCT target FROM link WHERE target IS NOT NULL", [], |row| row.get(0))
    }

    /// The words that links of at least so many notes show for the file that they lead to, each once.
    pub(crate) fn link_texts(&self, notes: usize) -> Result<Vec<(FileId, String)>> {
        let sql = "SELECT target, display FROM link WHERE target IS NOT NULL AND display IS NOT NULL AND kind < 2
                     GROUP BY target, display HAVING count(DISTINCT source) >= ?1 ORDER BY target, display";
        self.all(sql, [notes], |row| row.try_into())
    }

    /// Keeps where a file lay, and which file it is now, if that is certain. A path that two files had says nothing certain.
    pub(crate) fn put_former_path(&self, path: &VaultPath, file: Option<FileId>) -> Result<()> {
        self.run(
            "INSERT INTO former_path(path, file) VALUES(?1, ?2)
             ON CONFLICT DO UPDATE SET file = CASE WHEN file IS excluded.file THEN file END",
            params![path.as_str(), file],
        )
    }

    /// From now on, nothing is known of what became of the file.
    pub(super) fn forget_former_paths(&self, file: FileId) -> Result<()> {
        self.run("UPDATE former_path SET file = NULL WHERE file = ?1", [file])
    }

    /// Takes over what another index knows of where files lay; they are told apart by where they lie now.
    pub(crate) fn copy_former_paths(&self, from: &Self) -> Result<()> {
        for (path, file) in from.former_paths()? {
            let now = file.map_or(Ok(None), |file| from.path_of(file))?;
            let file = now.map_or(Ok(None), |now| self.file_id(&now))?;
            self.put_former_path(&path, file)?;
        }
        Ok(())
    }

    /// Where files lay, with the file that each is now.
    pub(crate) fn former_paths(&self) -> Result<Vec<(VaultPath, Option<FileId>)>> {
        self.all("SELECT path, file FROM former_path", [], |row| row.try_into())
    }

    /// Links, and those of them that lead nowhere.
    pub(crate) fn link_counts(&self) -> Result<(usize, usize)> {
        Ok((
            self.only("SELECT count(*) FROM link", [])?,
            self.only("SELECT count(*) FROM link WHERE target IS NULL", [])?,
        ))
    }
}

/// The ids that the links of a note can have: far more than the largest note has links.
fn ids_of(source: FileId) -> Range<i64> {
    const BITS: u32 = 24;
    let source = i64::from(source.0);
    source << BITS..(source + 1) << BITS
}

fn stored_link(row: &Row<'_>) -> rusqlite::Result<StoredLink> {
    Ok(StoredLink {
        id: row.get(0)?,
        source: row.get(1)?,
        line: row.get(2)?,
        kind: KINDS.get(row.get::<_, usize>(3)?).copied().unwrap_or(LinkKind::Embed),
        raw: row.get(4)?,
        path: row.get(5)?,
        subpath: row.get(6)?,
        target: row.get(7)?,
    })
}
