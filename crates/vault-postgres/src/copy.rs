//! Rows that are written many at a time: by COPY into a temporary table, then by INSERT … SELECT under the writer's own
//! role, because COPY into a table with row-level security is not allowed.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::Write as _;

use postgres::Client;

use crate::nul::escape;
use crate::schema::TABLES;

/// Rows by table, in the text form of COPY.
#[derive(Default)]
pub(crate) struct NewRows(BTreeMap<&'static str, String>);

/// A row that is being added. Its values are in the order of the table's columns.
pub(crate) struct NewRow<'a>(&'a mut String);

/// How the rows of a table are written, where that is not a plain insertion.
const SPECIAL: [(&str, &str); 3] = [
    // Notes that were read: what is known of their files, and no warnings but those that follow.
    (
        "file",
        "UPDATE file SET size = new.size, modified_ns = new.modified_ns, changed_ns = new.changed_ns,
           inode = new.inode, seen_ns = new.seen_ns, hash = new.hash, version = new.version
         FROM pg_temp.new_file AS new WHERE file.vault = @vault AND file.id = new.id;
         DELETE FROM warning USING pg_temp.new_file AS new
         WHERE warning.vault = @vault AND warning.file = new.path AND left(warning.file, 200) = left(new.path, 200)
           AND warning.skipped <> 2",
    ),
    ("vocabulary", "INSERT INTO vocabulary SELECT * FROM pg_temp.new_vocabulary ON CONFLICT DO NOTHING"),
    (
        "warning",
        "INSERT INTO warning SELECT vault, (SELECT coalesce(max(n), 0) FROM warning WHERE vault = @vault)
           + row_number() OVER (ORDER BY n), file, skipped, kind, line, message FROM pg_temp.new_warning",
    ),
];

/// The temporary tables, created once for a connection.
pub(crate) fn temporary_tables() -> String {
    let table = |(table, ..): &(&str, &str, &str)| {
        format!("CREATE TEMPORARY TABLE new_{table}(LIKE {table}) ON COMMIT DELETE ROWS;\n")
    };
    TABLES.iter().map(table).collect()
}

impl NewRows {
    /// Adds a row to a table.
    pub(crate) fn row(&mut self, table: &'static str, vault: i32) -> NewRow<'_> {
        let rows = self.0.entry(table).or_default();
        if !rows.is_empty() {
            rows.push('\n');
        }
        let _ = write!(rows, "{vault}");
        NewRow(rows)
    }

    /// Whether there are none.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Writes all rows. A transaction is open.
    pub(crate) fn write(self, client: &mut Client, vault: i32) -> Result<(), postgres::Error> {
        if self.0.is_empty() {
            return Ok(());
        }
        let mut statements = String::new();
        for (table, rows) in &self.0 {
            let mut copy = client.copy_in(&format!("COPY pg_temp.new_{table} FROM STDIN"))?;
            // A failure here is reported by the end of the copy.
            let _ = copy.write_all(rows.as_bytes()).and_then(|()| copy.write_all(b"\n"));
            copy.finish()?;
            match SPECIAL.iter().find(|(special, _)| special == table) {
                Some((_, sql)) => statements.push_str(&sql.replace("@vault", &vault.to_string())),
                None => _ = write!(statements, "INSERT INTO {table} SELECT * FROM pg_temp.new_{table}"),
            }
            // It may be filled again in the same transaction.
            let _ = writeln!(statements, "; DELETE FROM pg_temp.new_{table};");
        }
        client.batch_execute(&statements)
    }
}

impl NewRow<'_> {
    /// Adds a number, a truth value, or anything else that is written without special characters.
    pub(crate) fn plain(self, value: impl std::fmt::Display) -> Self {
        let _ = write!(self.0, "\t{value}");
        self
    }

    /// Adds a number, or NULL.
    pub(crate) fn optional(self, value: Option<impl std::fmt::Display>) -> Self {
        match value {
            Some(value) => self.plain(value),
            None => self.null(),
        }
    }

    /// Adds NULL.
    pub(crate) fn null(self) -> Self {
        self.0.push_str("\t\\N");
        self
    }

    /// Adds a text.
    pub(crate) fn text(self, text: &str) -> Self {
        self.0.push('\t');
        for character in escape(text).chars() {
            match character {
                '\\' => self.0.push_str("\\\\"),
                '\t' => self.0.push_str("\\t"),
                '\n' => self.0.push_str("\\n"),
                '\r' => self.0.push_str("\\r"),
                character => self.0.push(character),
            }
        }
        self
    }

    /// Adds a text, or NULL.
    pub(crate) fn optional_text(self, text: Option<&str>) -> Self {
        match text {
            Some(text) => self.text(text),
            None => self.null(),
        }
    }

    /// Adds bytes.
    pub(crate) fn bytes(self, bytes: &[u8]) -> Self {
        self.0.push_str("\t\\\\x");
        for byte in bytes {
            let _ = write!(self.0, "{byte:02x}");
        }
        self
    }

    /// Adds a vector.
    pub(crate) fn vector(self, vector: &[f32]) -> Self {
        self.0.push_str("\t[");
        for (at, number) in vector.iter().enumerate() {
            // The shortest text that gives the same f32 again.
            let _ = write!(self.0, "{}{number:e}", if at == 0 { "" } else { "," });
        }
        self.0.push(']');
        self
    }
}
