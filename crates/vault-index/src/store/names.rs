//! The names of notes: title, file name and aliases, found by the key that they are compared by.

use crate::error::Result;
use crate::path::{FileId, VaultPath};
use crate::store::Store;

/// A name of a note.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Name {
    /// The key that it is compared by.
    pub key: String,
    /// The name as it is spelled.
    pub text: String,
    /// Whether it is the note's first heading, and differs from the name of its file.
    pub is_heading: bool,
}

/// A note that has a name.
#[derive(Debug)]
pub struct NamedNote {
    /// Its id.
    pub note: FileId,
    /// Its path.
    pub path: VaultPath,
    /// The name as it is spelled.
    pub text: String,
}

/// How many of a vault's `notes` may share something that still counts as their own.
pub fn may_share(notes: usize) -> usize {
    (notes / 100).max(5)
}

/// For rows of `name`: whether it counts as a name of the note.
const IS_NAME: &str = "NOT (is_heading AND text IN (SELECT text FROM shared_heading))";

/// The questions of a search about names.
pub trait ReadNames {
    /// The notes with a name of this key, each once per such name.
    fn notes_named(&self, key: &str) -> Result<Vec<NamedNote>>;

    /// Notes with those keys of their names that equal this key or begin with it: the `many` shortest keys, and all
    /// others that have the last of these keys. The order does not depend on ids.
    fn names_beginning_with(&self, key: &str, many: usize) -> Result<Vec<(FileId, String)>>;

    /// The names of a note.
    fn names_of(&self, note: FileId) -> Result<Vec<Name>>;

    /// For a store that prefetches: the names of the notes that have a word of each of these stems in their titles or
    /// aliases will be asked for.
    fn ask_for_names(&self, stems: &[String]) -> Result<()> {
        let _ = stems;
        Ok(())
    }
}

impl Store {
    /// Adds the names of a note that has none yet.
    pub(super) fn put_names(&self, note: FileId, names: &[Name]) -> Result<()> {
        names.iter().enumerate().try_for_each(|(n, name)| {
            let sql = "INSERT INTO name(note, n, key, text, is_heading) VALUES(?1, ?2, ?3, ?4, ?5)";
            self.run(sql, (note, n, &name.key, &name.text, name.is_heading))
        })
    }

    pub(super) fn remove_names(&self, note: FileId) -> Result<()> {
        self.run("DELETE FROM name WHERE note = ?1", [note])
    }

    /// The names of all notes.
    pub(crate) fn all_names(&self) -> Result<Vec<(FileId, Name)>> {
        let sql = format!("SELECT note, key, text, is_heading FROM name WHERE {IS_NAME} ORDER BY note, n");
        let name = |row: &rusqlite::Row<'_>| {
            Ok((row.get(0)?, Name { key: row.get(1)?, text: row.get(2)?, is_heading: row.get(3)? }))
        };
        self.all(&sql, [], name)
    }

    /// Determines the first headings that too many notes have for them to count as names.
    pub(super) fn find_shared_headings(&self) -> Result<()> {
        let allowed = may_share(self.only("SELECT count(*) FROM note", [])?);
        self.run("DELETE FROM shared_heading", [])?;
        self.run(
            "INSERT INTO shared_heading SELECT text FROM name WHERE is_heading GROUP BY text HAVING count(*) > ?1",
            [allowed],
        )
    }
}

impl ReadNames for Store {
    fn notes_named(&self, key: &str) -> Result<Vec<NamedNote>> {
        let sql = format!(
            "SELECT name.note, file.path, name.text FROM name JOIN file ON file.id = name.note
             WHERE key = ?1 AND {IS_NAME}"
        );
        self.all(&sql, [key], |row| Ok(NamedNote { note: row.get(0)?, path: row.get(1)?, text: row.get(2)? }))
    }

    fn names_beginning_with(&self, key: &str, many: usize) -> Result<Vec<(FileId, String)>> {
        // Greater than all keys with this prefix, because no text contains this character.
        let end = format!("{key}\u{10ffff}");
        let sql =
            format!("SELECT note, key FROM name WHERE key >= ?1 AND key < ?2 AND {IS_NAME} ORDER BY length(key), key");
        self.with(|conn| {
            let mut statement = conn.prepare_cached(&sql)?;
            let mut rows = statement.query([key, &end])?;
            let mut found: Vec<(FileId, String)> = Vec::new();
            while let Some(row) = rows.next()? {
                let (note, key) = row.try_into()?;
                if found.len() >= many && found.last().is_some_and(|(_, last)| *last != key) {
                    break;
                }
                found.push((note, key));
            }
            Ok(found)
        })
    }

    fn names_of(&self, note: FileId) -> Result<Vec<Name>> {
        let sql = format!("SELECT key, text, is_heading FROM name WHERE note = ?1 AND {IS_NAME} ORDER BY n");
        self.all(&sql, [note], |row| Ok(Name { key: row.get(0)?, text: row.get(1)?, is_heading: row.get(2)? }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_one_key_are_not_parted() {
        let store = Store::scratch().unwrap();
        for (note, key) in [(5, "plan"), (4, "planb"), (3, "planc"), (1, "planc"), (2, "pland"), (6, "pl")] {
            let name = Name { key: key.into(), text: key.into(), is_heading: false };
            store.put_names(FileId(note), &[name]).unwrap();
        }
        let found = |key, many| {
            let mut found = store.names_beginning_with(key, many).unwrap();
            found.sort();
            found.into_iter().map(|(note, _)| note.0).collect::<Vec<_>>()
        };
        assert_eq!(found("plan", 1), [5]);
        assert_eq!(found("plan", 2), [4, 5]);
        assert_eq!(found("plan", 3), [1, 3, 4, 5]);
        assert_eq!(found("plan", 9), [1, 2, 3, 4, 5]);
        assert!(found("x", 9).is_empty());
    }
}
