//! Rows of links: their text and position, and the files that they lead to.

use std::ops::Range;

use rusqlite::{Params, Row, params};

use crate::error::Result;
use crate::note::{Link, LinkKind};
use crate::path::{FileId, VaultPath};
use crate::store::notes::{ReadNotes, WriteNotes};
use crate::store::{Store, number_of};

/// The data of a link row.
#[derive(Debug)]
pub struct LinkRow {
    /// The link as it is written.
    pub link: Link,
    /// The [`number_of`] the name that its resolution depends on. If two names have the same number, links of the other
    /// one are checked needlessly.
    pub name: i64,
    /// The target.
    pub target: Option<FileId>,
}

/// A link row.
#[derive(Debug, Clone, PartialEq)]
pub struct StoredLink {
    /// Its number: ascends with the source, then with the position.
    pub id: i64,
    /// The note that has it.
    pub source: FileId,
    /// Its line in the file, from 1.
    pub line: u32,
    /// Its syntax.
    pub kind: LinkKind,
    /// The whole link as it is written.
    pub raw: String,
    /// The path part.
    pub path: String,
    /// The text after the first `#`.
    pub subpath: Option<String>,
    /// The file that it leads to.
    pub target: Option<FileId>,
}

const COLUMNS: &str = "SELECT id, source, line, kind, raw, path, subpath, target FROM link";

/// In the order of their numbers in the column `kind`.
const KINDS: [LinkKind; 3] = [LinkKind::Wikilink, LinkKind::Markdown, LinkKind::Embed];

/// The questions of a search about links.
pub trait ReadLinks {
    /// The links of a note, in order.
    fn links_from(&self, source: FileId) -> Result<Vec<StoredLink>>;

    /// The links that lead to a file, ordered by source and position.
    fn links_to(&self, target: FileId) -> Result<Vec<StoredLink>>;

    /// The files that have links to them.
    fn linked(&self) -> Result<Vec<FileId>>;
}

/// The indexer's questions about links, and its changes of them.
pub trait WriteLinks {
    /// A page of all links: those after `after`, `limit` at most.
    fn links_after(&self, after: i64, limit: usize) -> Result<Vec<StoredLink>>;

    /// Sets the target of a link.
    fn set_target(&self, link: i64, target: Option<FileId>) -> Result<()>;
}

impl Store {
    /// The links whose resolution depends on a name, and possibly some others.
    pub(crate) fn links_by_name(&self, name_key: &str) -> Result<Vec<StoredLink>> {
        self.links("name = ?1", [number_of(name_key)])
    }

    /// Adds the links of a note.
    pub(super) fn put_links(&self, source: FileId, links: &[LinkRow]) -> Result<()> {
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
    pub(super) fn remove_links(&self, source: FileId) -> Result<()> {
        let ids = ids_of(source);
        self.run("DELETE FROM link WHERE id >= ?1 AND id < ?2", [ids.start, ids.end])
    }

    /// Whether a link leads to a file.
    pub(super) fn is_linked(&self, target: FileId) -> Result<bool> {
        self.only("SELECT EXISTS (SELECT 1 FROM link WHERE target = ?1)", [target])
    }

    /// The links that name a heading or block, ordered by source and position.
    pub(crate) fn links_with_subpath(&self) -> Result<Vec<StoredLink>> {
        self.links("subpath IS NOT NULL ORDER BY id", [])
    }

    fn links(&self, condition: &str, params: impl Params) -> Result<Vec<StoredLink>> {
        self.all(&format!("{COLUMNS} WHERE {condition}"), params, stored_link)
    }

    /// (source, target or the path as written) of every link.
    pub(crate) fn edges(&self) -> Result<Vec<(FileId, Option<FileId>, String)>> {
        self.all("SELECT source, target, path FROM link ORDER BY id", [], |row| row.try_into())
    }

    /// The display texts of links to a file that occur in at least this number of notes, each once.
    pub(crate) fn link_texts(&self, notes: usize) -> Result<Vec<(FileId, String)>> {
        let sql = "SELECT target, display FROM link WHERE target IS NOT NULL AND display IS NOT NULL AND kind < 2
                     GROUP BY target, display HAVING count(DISTINCT source) >= ?1 ORDER BY target, display";
        self.all(sql, [notes], |row| row.try_into())
    }

    /// Copies the former paths of another index; files are matched by their current paths.
    pub(crate) fn copy_former_paths(&self, from: &Self) -> Result<()> {
        for (path, file) in from.former_paths()? {
            let now = file.map_or(Ok(None), |file| from.path_of(file))?;
            let file = now.map_or(Ok(None), |now| self.file_id(&now))?;
            self.put_former_path(&path, file)?;
        }
        Ok(())
    }

    /// The former paths of files, with the current file of each.
    pub(crate) fn former_paths(&self) -> Result<Vec<(VaultPath, Option<FileId>)>> {
        self.all("SELECT path, file FROM former_path", [], |row| row.try_into())
    }

    /// The number of links, and of those that lead nowhere.
    pub(crate) fn link_counts(&self) -> Result<(usize, usize)> {
        Ok((
            self.only("SELECT count(*) FROM link", [])?,
            self.only("SELECT count(*) FROM link WHERE target IS NULL", [])?,
        ))
    }
}

impl WriteLinks for Store {
    fn links_after(&self, after: i64, limit: usize) -> Result<Vec<StoredLink>> {
        self.links("id > ?1 ORDER BY id LIMIT ?2", params![after, limit])
    }

    fn set_target(&self, link: i64, target: Option<FileId>) -> Result<()> {
        self.run("UPDATE link SET target = ?2 WHERE id = ?1", params![link, target])
    }
}

impl ReadLinks for Store {
    fn links_from(&self, source: FileId) -> Result<Vec<StoredLink>> {
        let ids = ids_of(source);
        self.links("id >= ?1 AND id < ?2 ORDER BY id", [ids.start, ids.end])
    }

    fn links_to(&self, target: FileId) -> Result<Vec<StoredLink>> {
        self.links("target = ?1 ORDER BY id", [target])
    }

    fn linked(&self) -> Result<Vec<FileId>> {
        self.all("SELECT DISTINCT target FROM link WHERE target IS NOT NULL", [], |row| row.get(0))
    }
}

/// The range of ids for the links of a note: far more than the largest note has links.
pub fn ids_of(source: FileId) -> Range<i64> {
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
