//! Has the file the tables, indexes and views that a fresh one has? Compared with one made in memory.

use std::collections::BTreeMap;

use crate::error::Result;
use crate::store::Store;

/// A table, index, view or trigger that is missing, another one, or one too many.
#[derive(Debug)]
pub(crate) struct Misfit {
    pub fault: String,
    /// The SQL that mends it. `None`: rows are lost or in doubt, and the file is made anew.
    pub mend: Option<String>,
}

/// What `sqlite_master` says of one name.
struct Object {
    kind: String,
    sql: String,
}

impl Object {
    /// Whether no rows are lost with it.
    fn holds_nothing(&self) -> bool {
        self.kind != "table"
    }

    fn is(&self, other: &Self, name: &str) -> bool {
        // Extensions keep tables of their own below their virtual ones; how they make them is theirs.
        let is_shadow =
            (name.starts_with("words_") || name.starts_with("vectors_")) && !self.sql.starts_with("CREATE VIRTUAL");
        let same = |a: &str, b: &str| a.split_whitespace().eq(b.split_whitespace());
        self.kind == other.kind && (is_shadow || same(&self.sql, &other.sql))
    }

    fn drop_sql(&self, name: &str) -> String {
        format!("DROP {} \"{}\";", self.kind, name.replace('"', "\"\""))
    }
}

impl Store {
    /// Where the file is not laid out as a fresh one of this format and model.
    pub(crate) fn misfits(&self) -> Result<Vec<Misfit>> {
        let fresh = Self::scratch()?;
        if let Some((embedder, dimensions)) = self.embedder()?
            && fresh.make_vectors(&embedder, dimensions).is_err()
        {
            let fault = format!("no model has vectors of {dimensions} dimensions");
            return Ok(vec![Misfit { fault, mend: None }]);
        }
        let (has, wanted) = (self.objects()?, fresh.objects()?);
        let mut misfits = Vec::new();
        for (name, wanted) in &wanted {
            let kind = &wanted.kind;
            match has.get(name) {
                Some(has) if has.is(wanted, name) => {}
                Some(has) => misfits.push(Misfit {
                    fault: format!("the {kind} {name} is not what it should be"),
                    mend: (has.holds_nothing() && wanted.holds_nothing())
                        .then(|| format!("{} {};", has.drop_sql(name), wanted.sql)),
                }),
                None => misfits.push(Misfit {
                    fault: format!("the {kind} {name} is missing"),
                    mend: wanted.holds_nothing().then(|| format!("{};", wanted.sql)),
                }),
            }
        }
        for (name, has) in has.iter().filter(|(name, _)| !wanted.contains_key(*name)) {
            misfits.push(Misfit {
                fault: format!("the {} {name} does not belong here", has.kind),
                mend: has.holds_nothing().then(|| has.drop_sql(name)),
            });
        }
        Ok(misfits)
    }

    /// Makes missing indexes and views again.
    pub(crate) fn mend_layout(&self, statements: &[String]) -> Result<()> {
        let batch = self.begin()?;
        for sql in statements {
            self.conn.execute_batch(sql).map_err(|e| self.error(e))?;
        }
        batch.commit()
    }

    /// All that was made by us or by other programs, by name. What SQLite makes by itself is left out.
    fn objects(&self) -> Result<BTreeMap<String, Object>> {
        let read = || -> rusqlite::Result<BTreeMap<String, Object>> {
            let mut statement = self.conn.prepare(
                "SELECT name, type, coalesce(sql, '') FROM sqlite_master WHERE substr(name, 1, 7) <> 'sqlite_'",
            )?;
            statement.query_map([], |row| Ok((row.get(0)?, Object { kind: row.get(1)?, sql: row.get(2)? })))?.collect()
        };
        read().map_err(|e| self.error(e))
    }
}
