//! Rows of links.

use postgres::types::Type;
use vault_index::backend::{ReadLinks, StoredLink, WriteLinks, ids_of};
use vault_index::{FileId, LinkKind, Result};

use crate::connection::{Param, VaultStore, int, optional_string, string};
use crate::notes::file_id;
use crate::row::Row;

/// In the order of their numbers in the column `kind`.
pub(crate) const KINDS: [LinkKind; 3] = [LinkKind::Wikilink, LinkKind::Markdown, LinkKind::Embed];

impl VaultStore {
    pub(crate) fn links(&self, condition: &str, params: &[Param<'_>]) -> Result<Vec<StoredLink>> {
        let sql = "SELECT id, source, line, kind, raw, path, subpath, target FROM link WHERE vault = @vault AND";
        self.all(&format!("{sql} {condition}"), params, stored_link)
    }
}

impl ReadLinks for VaultStore {
    fn links_from(&self, source: FileId) -> Result<Vec<StoredLink>> {
        let ids = ids_of(source);
        self.links("id >= $1 AND id < $2 ORDER BY id", &[int(&ids.start), int(&ids.end)])
    }

    fn links_to(&self, target: FileId) -> Result<Vec<StoredLink>> {
        self.links("target = $1 ORDER BY id", &[int(&target.0.into())])
    }

    fn linked(&self) -> Result<Vec<FileId>> {
        let sql = "SELECT DISTINCT target FROM link WHERE vault = @vault AND target IS NOT NULL";
        self.all(sql, &[], |row| file_id(row, 0))
    }
}

impl WriteLinks for VaultStore {
    fn links_after(&self, after: i64, limit: usize) -> Result<Vec<StoredLink>> {
        self.links("id > $1 ORDER BY id LIMIT $2", &[int(&after), int(&(limit as i64))])
    }

    fn set_target(&self, link: i64, target: Option<FileId>) -> Result<()> {
        let target = target.map(|target| i64::from(target.0));
        let sql = "UPDATE link SET target = $2 WHERE vault = @vault AND id = $1";
        self.run(sql, &[int(&link), (&target, Type::INT8)])
    }
}

fn stored_link(row: &Row) -> StoredLink {
    StoredLink {
        id: row.get(0),
        source: file_id(row, 1),
        line: row.get::<_, i64>(2) as u32,
        kind: KINDS.get(row.get::<_, i16>(3) as usize).copied().unwrap_or(LinkKind::Embed),
        raw: string(row, 4),
        path: string(row, 5),
        subpath: optional_string(row, 6),
        target: row.get::<_, Option<i64>>(7).map(|target| FileId(target as u32)),
    }
}
