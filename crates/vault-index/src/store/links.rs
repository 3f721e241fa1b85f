//! Rows of links: what is written where, and which file it leads to.

use std::ops::Range;

use rusqlite::{Row, params};

use crate::error::Result;
use crate::note::{Link, LinkKind};
use crate::path::FileId;
use crate::store::notes::file_id;
use crate::store::{Store, number_of};

/// (link, source, path as written, where it leads).
pub(crate) type LinkTarget = (i64, FileId, String, Option<FileId>);

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

impl Store {
    /// Adds the links of notes.
    pub(crate) fn put_links<'l>(&self, notes: impl IntoIterator<Item = (FileId, &'l [LinkRow])>) -> Result<()> {
        let write = || -> rusqlite::Result<()> {
            let mut insert = self.conn.prepare_cached(
                "INSERT INTO link(id, source, line, start, end, kind, raw, path, subpath, display, name, target)
                 VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12)",
            )?;
            for (source, links) in notes {
                for (id, LinkRow { link, name, target }) in (ids_of(source).start..).zip(links) {
                    insert.execute(params![
                        id,
                        source.0,
                        link.line,
                        link.span.start,
                        link.span.end,
                        kind_number(link.kind),
                        link.raw,
                        link.path,
                        link.subpath,
                        link.display,
                        name,
                        target.map(|t| t.0),
                    ])?;
                }
            }
            Ok(())
        };
        write().map_err(|e| self.error(e))
    }

    /// Removes the links of a note.
    pub(crate) fn remove_links(&self, source: FileId) -> Result<()> {
        let ids = ids_of(source);
        self.run("DELETE FROM link WHERE id >= ?1 AND id < ?2", [ids.start, ids.end])
    }

    /// (id, source, path, target) of the links of a source.
    pub(crate) fn targets_of(&self, source: FileId) -> Result<Vec<LinkTarget>> {
        let ids = ids_of(source);
        self.targets("SELECT id, source, path, target FROM link WHERE id >= ?1 AND id < ?2", [ids.start, ids.end])
    }

    /// The same for the links whose resolution depends on a name.
    pub(crate) fn targets_by_name(&self, name_key: &str) -> Result<Vec<LinkTarget>> {
        self.targets("SELECT id, source, path, target FROM link WHERE name = ?1", [number_of(name_key)])
    }

    /// A window of all links by id, for a first sync: those after `after`, `limit` at most.
    pub(crate) fn targets_after(&self, after: i64, limit: usize) -> Result<Vec<LinkTarget>> {
        self.targets(
            "SELECT id, source, path, target FROM link WHERE id > ?1 ORDER BY id LIMIT ?2",
            params![after, limit],
        )
    }

    fn targets(&self, sql: &str, params: impl rusqlite::Params) -> Result<Vec<LinkTarget>> {
        let read = || -> rusqlite::Result<Vec<LinkTarget>> {
            let mut statement = self.conn.prepare_cached(sql)?;
            statement
                .query_map(params, |row| {
                    Ok((row.get(0)?, file_id(row, 1)?, row.get(2)?, row.get::<_, Option<u32>>(3)?.map(FileId)))
                })?
                .collect()
        };
        read().map_err(|e| self.error(e))
    }

    /// Sets where a link leads.
    pub(crate) fn set_target(&self, link: i64, target: Option<FileId>) -> Result<()> {
        self.run("UPDATE link SET target = ?2 WHERE id = ?1", params![link, target.map(|t| t.0)])
    }

    /// The links of a note, in order.
    pub(crate) fn links_from(&self, source: FileId) -> Result<Vec<StoredLink>> {
        let ids = ids_of(source);
        self.links_where("id >= ?1 AND id < ?2 ORDER BY id", [ids.start, ids.end])
    }

    /// The links that lead to a file, in order of their sources and places.
    pub(crate) fn links_to(&self, target: FileId) -> Result<Vec<StoredLink>> {
        self.links_where("target = ?1 ORDER BY id", [target.0])
    }

    fn links_where(&self, condition: &str, params: impl rusqlite::Params) -> Result<Vec<StoredLink>> {
        let read = || -> rusqlite::Result<Vec<StoredLink>> {
            let mut statement = self.conn.prepare_cached(&format!("{COLUMNS} WHERE {condition}"))?;
            statement.query_map(params, stored_link)?.collect()
        };
        read().map_err(|e| self.error(e))
    }

    /// (source, target or the path as written) of every link.
    pub(crate) fn edges(&self) -> Result<Vec<(FileId, Option<FileId>, String)>> {
        let read = || -> rusqlite::Result<Vec<(FileId, Option<FileId>, String)>> {
            let mut statement = self.conn.prepare_cached("SELECT source, target, path FROM link ORDER BY id")?;
            statement
                .query_map([], |row| Ok((file_id(row, 0)?, row.get::<_, Option<u32>>(1)?.map(FileId), row.get(2)?)))?
                .collect()
        };
        read().map_err(|e| self.error(e))
    }

    /// Links, and those of them that lead nowhere.
    pub(crate) fn link_counts(&self) -> Result<(usize, usize)> {
        self.conn
            .query_row("SELECT count(*), count(*) - count(target) FROM link", [], |row| Ok((row.get(0)?, row.get(1)?)))
            .map_err(|e| self.error(e))
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
        source: file_id(row, 1)?,
        line: row.get(2)?,
        kind: match row.get::<_, i64>(3)? {
            0 => LinkKind::Wikilink,
            1 => LinkKind::Markdown,
            _ => LinkKind::Embed,
        },
        raw: row.get(4)?,
        path: row.get(5)?,
        subpath: row.get(6)?,
        target: row.get::<_, Option<u32>>(7)?.map(FileId),
    })
}

fn kind_number(kind: LinkKind) -> i64 {
    match kind {
        LinkKind::Wikilink => 0,
        LinkKind::Markdown => 1,
        LinkKind::Embed => 2,
    }
}
