//! Names of notes.

use vault_index::backend::{Name, NamedNote, ReadNames, may_share};
use vault_index::{FileId, Result};

use crate::connection::{VaultStore, int, string, text};
use crate::notes::{file_id, path};
use crate::nul::escape;
use crate::prefetch::{Key, Keyed};
use crate::row::Row;

/// For rows of `name`: whether it counts as a name of the note.
macro_rules! is_name {
    () => {
        "NOT (is_heading AND text IN (SELECT text FROM shared_heading WHERE vault = @vault))"
    };
}

pub(crate) const IS_NAME: &str = is_name!();

const NAMED: Keyed = Keyed {
    sql: concat!(
        "SELECT name.key, name.note, file.path, name.text
         FROM name JOIN file ON file.id = name.note AND file.vault = @vault
         WHERE name.vault = @vault AND key = ANY($1) AND ",
        is_name!()
    ),
    also: None,
};

/// The second column is the note.
const NAMES: Keyed = Keyed {
    sql: concat!(
        "SELECT note, note, key, text, is_heading FROM name WHERE vault = @vault AND note = ANY($1) AND ",
        is_name!(),
        " ORDER BY note, n"
    ),
    also: None,
};

/// The names of the notes whose titles and aliases have a word of every stem. The steps are fixed, because a planner
/// without statistics joins all occurrences of all words.
const NAMES_WITH: Keyed = Keyed {
    sql: concat!(
        "WITH words AS MATERIALIZED (
           SELECT word, coalesce(stem, word) AS root FROM vocabulary
           WHERE vault = @vault AND (stem = ANY($1) OR word = ANY($1) AND stem IS NULL)),
         named AS MATERIALIZED (
           SELECT holder FROM posting JOIN words ON word = term
           WHERE vault = @vault AND field < 2 AND term = ANY(ARRAY(SELECT word FROM words))
           GROUP BY holder HAVING count(DISTINCT root) = cardinality($1))
         SELECT ($1)[1], note, key, text, is_heading FROM name
         WHERE vault = @vault AND note = ANY(ARRAY(SELECT holder FROM named)) AND ",
        is_name!(),
        " ORDER BY note, n"
    ),
    also: Some((1, NAMES.sql)),
};

impl ReadNames for VaultStore {
    fn notes_named(&self, key: &str) -> Result<Vec<NamedNote>> {
        let rows = self.rows_of_key(&NAMED, Key::Text(escape(key).into_owned()))?;
        rows.iter()
            .map(|row| Ok(NamedNote { note: file_id(row, 1), path: path(row, 2)?, text: string(row, 3) }))
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
        let name = |row: &Row| Name { key: string(row, 2), text: string(row, 3), is_heading: row.get(4) };
        Ok(self.rows_of_key(&NAMES, Key::Int(note.0.into()))?.iter().map(name).collect())
    }

    fn ask_for_names(&self, stems: &[String]) -> Result<()> {
        stems.iter().try_for_each(|stem| self.rows_of_key(&NAMES_WITH, stem.as_str().into()).map(drop))
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
