//! Names of notes.

use postgres::Row;
use vault_index::backend::{Name, NamedNote, ReadNames, may_share};
use vault_index::{FileId, Result};

use crate::connection::{VaultStore, int, string, text};
use crate::notes::{file_id, path};
use crate::nul::escape;

/// For rows of `name`: whether it counts as a name of the note.
pub(crate) const IS_NAME: &str = "NOT (is_heading AND text IN (SELECT text FROM shared_heading WHERE vault = @vault))";

impl ReadNames for VaultStore {
    fn notes_named(&self, key: &str) -> Result<Vec<NamedNote>> {
        let sql = format!(
            "SELECT name.note, file.path, name.text FROM name JOIN file ON file.id = name.note AND file.vault = @vault
             WHERE name.vault = @vault AND key = $1 AND {IS_NAME}"
        );
        let rows = self.rows(&sql, &[text(&escape(key))])?;
        rows.iter()
            .map(|row| Ok(NamedNote { note: file_id(row, 0), path: path(row, 1)?, text: string(row, 2) }))
            .collect()
    }

    fn names_beginning_with(&self, key: &str, many: usize) -> Result<Vec<(FileId, String)>> {
        // Greater than all keys with this prefix.
        let (key, end) = (escape(key), escape(&format!("{key}\u{10ffff}")).into_owned());
        let sql = format!(
            "SELECT note, key FROM name WHERE vault = @vault AND key >= $1 AND key < $2 AND {IS_NAME}
             ORDER BY length(key), key FETCH FIRST $3 ROWS WITH TIES"
        );
        self.all(&sql, &[text(&key), text(&end), int(&(many.clamp(1, i64::MAX as usize) as i64))], |row| {
            (file_id(row, 0), string(row, 1))
        })
    }

    fn names_of(&self, note: FileId) -> Result<Vec<Name>> {
        let sql = format!(
            "SELECT key, text, is_heading FROM name WHERE vault = @vault AND note = $1 AND {IS_NAME} ORDER BY n"
        );
        let name = |row: &Row| Name { key: string(row, 0), text: string(row, 1), is_heading: row.get(2) };
        self.all(&sql, &[int(&note.0.into())], name)
    }
}

impl VaultStore {
    /// Determines the first headings that too many notes have for them to count as names.
    pub(crate) fn find_shared_headings(&self) -> Result<()> {
        let allowed = may_share(self.count("SELECT count(*) FROM note WHERE vault = @vault", &[])?) as i64;
        self.run("DELETE FROM shared_heading WHERE vault = @vault", &[])?;
        self.run(
            "INSERT INTO shared_heading SELECT @vault, text FROM name WHERE vault = @vault AND is_heading
             GROUP BY text HAVING count(*) > $1",
            &[int(&allowed)],
        )
    }
}
