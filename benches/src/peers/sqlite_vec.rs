//! sqlite-vec: rows in a `vec0` table of an in-memory database, f32 or int8.

use std::sync::Once;

use rusqlite::{Connection, params};

/// The type of the elements of a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Element {
    /// f32, by cosine: exact.
    F32,
    /// int8, by distance. All rows share one scale, by which the largest number becomes 127.
    Int8,
}

/// A table of rows.
pub struct SqliteVec {
    connection: Connection,
    element: Element,
    /// The factor that scales numbers to int8.
    scale: f32,
}

impl SqliteVec {
    /// Creates a table of the rows, which are one after the other.
    ///
    /// # Errors
    /// Those of SQLite.
    pub fn new(rows: &[f32], dimensions: usize, element: Element) -> rusqlite::Result<Self> {
        register();
        let connection = Connection::open_in_memory()?;
        let largest = rows.iter().fold(f32::MIN_POSITIVE, |largest, x| largest.max(x.abs()));
        let table = Self { connection, element, scale: 127.0 / largest };
        let column = match element {
            Element::F32 => format!("float[{dimensions}] distance_metric=cosine"),
            Element::Int8 => format!("int8[{dimensions}]"),
        };
        table
            .connection
            .execute_batch(&format!("CREATE VIRTUAL TABLE vectors USING vec0(embedding {column}); BEGIN"))?;
        {
            let sql = format!("INSERT INTO vectors(rowid, embedding) VALUES (?1, {})", table.argument());
            let mut insert = table.connection.prepare(&sql)?;
            for (slot, row) in rows.chunks_exact(dimensions).enumerate() {
                insert.execute(params![slot as i64 + 1, table.bytes(row)])?;
            }
        }
        table.connection.execute_batch("COMMIT")?;
        Ok(table)
    }

    /// Returns the best `k` rows, at most 4,096, as slot and distance, nearest first.
    ///
    /// # Errors
    /// Those of SQLite.
    pub fn top_k(&self, query: &[f32], k: usize) -> rusqlite::Result<Vec<(usize, f32)>> {
        let sql = format!(
            "SELECT rowid, distance FROM vectors WHERE embedding MATCH {} AND k = ?1 ORDER BY distance",
            self.argument()
        );
        let mut select = self.connection.prepare_cached(&sql)?;
        let found = select.query_map(params![k as i64, self.bytes(query)], |row| {
            let (rowid, distance): (i64, f64) = (row.get(0)?, row.get(1)?);
            Ok((rowid as usize - 1, distance as f32))
        })?;
        found.collect()
    }

    /// Returns the SQL expression for a vector.
    fn argument(&self) -> &'static str {
        match self.element {
            Element::F32 => "?2",
            Element::Int8 => "vec_int8(?2)",
        }
    }

    fn bytes(&self, vector: &[f32]) -> Vec<u8> {
        match self.element {
            Element::F32 => vector.iter().flat_map(|x| x.to_le_bytes()).collect(),
            Element::Int8 => {
                vector.iter().map(|x| ((x * self.scale).round().clamp(-127.0, 127.0) as i8).cast_unsigned()).collect()
            }
        }
    }
}

/// Registers sqlite-vec for every connection that is opened from now on.
#[allow(unsafe_code)]
fn register() {
    static REGISTERED: Once = Once::new();
    REGISTERED.call_once(|| {
        type Init = unsafe extern "C" fn(
            *mut rusqlite::ffi::sqlite3,
            *mut *mut std::ffi::c_char,
            *const rusqlite::ffi::sqlite3_api_routines,
        ) -> std::ffi::c_int;
        // SAFETY: `sqlite3_vec_init` is the C entry point of a statically linked extension. It is compiled
        // with exactly the signature `Init`, which its Rust declaration leaves out; SQLite calls it with
        // valid arguments when a connection opens. The function lives as long as the program.
        unsafe {
            let init = std::mem::transmute::<unsafe extern "C" fn(), Init>(::sqlite_vec::sqlite3_vec_init);
            rusqlite::ffi::sqlite3_auto_extension(Some(init));
        }
    });
}
