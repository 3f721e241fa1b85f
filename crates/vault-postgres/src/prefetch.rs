//! Many questions in one round trip: those that follow are collected, sent as one statement, and their answers kept.
//!
//! Only readers do this, because they see one state. A question is a statement with its values, or one key of a
//! statement that answers for many keys at once ([`Keyed`]), so that a hundred passages are one part of the statement.

use std::collections::HashMap;
use std::error::Error;
use std::fmt::Write as _;

use postgres::types::private::BytesMut;
use postgres::types::{IsNull, ToSql, Type};

use crate::row::{Row, Rows};

/// The answers that are kept at most before more are prefetched, in bytes.
pub(crate) const KEPT: usize = 64 << 20;

/// A statement whose `$1` is a list of keys.
pub(crate) struct Keyed {
    /// The first column of its rows is their key.
    pub sql: &'static str,
    /// The rows are also those of another statement, whose key is this column; those of a key are adjacent.
    pub also: Option<(usize, &'static str)>,
}

/// A key of a [`Keyed`] statement.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum Key {
    Int(i64),
    Text(String),
}

impl From<&str> for Key {
    fn from(key: &str) -> Self {
        Self::Text(key.to_owned())
    }
}

/// A statement with its values.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Statement {
    sql: String,
    values: Vec<Encoded>,
}

/// A value as the server reads it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Encoded {
    bytes: Option<Vec<u8>>,
    of: Type,
}

impl Statement {
    pub(crate) fn new(sql: String, params: &[(&(dyn ToSql + Sync), Type)]) -> Self {
        let values = params.iter().map(|(value, of)| {
            let mut bytes = BytesMut::new();
            let is_null = value.to_sql_checked(of, &mut bytes).expect("values have the types of their parameters");
            Encoded { bytes: matches!(is_null, IsNull::No).then(|| bytes.to_vec()), of: of.clone() }
        });
        Self { values: values.collect(), sql }
    }

    pub(crate) fn keyed(sql: String, keys: &[Key]) -> Self {
        let (mut ints, mut texts): (Vec<i64>, Vec<&str>) = Default::default();
        for key in keys {
            match key {
                Key::Int(key) => ints.push(*key),
                Key::Text(key) => texts.push(key),
            }
        }
        match texts.is_empty() {
            true => Self::new(sql, &[(&ints, Type::INT8_ARRAY)]),
            false => Self::new(sql, &[(&texts, Type::TEXT_ARRAY)]),
        }
    }
}

impl ToSql for Encoded {
    fn to_sql(&self, _: &Type, out: &mut BytesMut) -> Result<IsNull, Box<dyn Error + Sync + Send>> {
        Ok(match &self.bytes {
            Some(bytes) => {
                out.extend_from_slice(bytes);
                IsNull::No
            }
            None => IsNull::Yes,
        })
    }

    fn accepts(_: &Type) -> bool {
        true
    }

    postgres::types::to_sql_checked!();
}

/// The answers of one state that are kept.
#[derive(Default)]
pub(crate) struct Prefetched {
    pub statements: HashMap<Statement, Rows>,
    /// By SQL and key.
    pub keyed: HashMap<(&'static str, Key), Rows>,
    pub bytes: usize,
}

/// Questions without an answer, each once.
#[derive(Default)]
pub(crate) struct Collected {
    pub statements: Vec<Statement>,
    pub keyed: Vec<(&'static Keyed, Vec<Key>)>,
}

impl Collected {
    pub(crate) fn add(&mut self, statement: &Statement) {
        if !self.statements.contains(statement) {
            self.statements.push(statement.clone());
        }
    }

    pub(crate) fn add_key(&mut self, of: &'static Keyed, key: &Key) {
        match self.keyed.iter_mut().find(|(keyed, _)| keyed.sql == of.sql) {
            Some((_, keys)) if keys.contains(key) => {}
            Some((_, keys)) => keys.push(key.clone()),
            None => self.keyed.push((of, vec![key.clone()])),
        }
    }
}

impl Prefetched {
    /// The rows of a statement, if they are known.
    pub(crate) fn rows(&self, statement: &Statement) -> Option<Rows> {
        self.statements.get(statement).cloned()
    }

    /// The rows of a key, if they are known.
    pub(crate) fn rows_of_key(&self, of: &Keyed, key: &Key) -> Option<Rows> {
        self.keyed.get(&(of.sql, key.clone())).cloned()
    }

    /// Keeps the rows of some keys: those without rows have none.
    pub(crate) fn keep(&mut self, of: &'static Keyed, keys: &[Key], rows: Vec<Row>) {
        let mut by_key: HashMap<Key, Vec<Row>> = keys.iter().map(|key| (key.clone(), Vec::new())).collect();
        for row in rows {
            by_key.entry(row.key(0)).or_default().push(row);
        }
        for (key, rows) in by_key {
            let rows = Rows::new(rows);
            if let Some((column, sql)) = of.also {
                for of_key in rows.chunk_by(|a, b| a.key(column) == b.key(column)) {
                    self.keyed.insert((sql, of_key[0].key(column)), Rows::new(of_key.to_vec()));
                }
            }
            self.keyed.insert((of.sql, key), rows);
        }
    }
}

impl Row {
    fn key(&self, column: usize) -> Key {
        match self.is_of(column, &Type::INT8) {
            true => Key::Int(self.get(column)),
            false => Key::Text(self.get(column)),
        }
    }
}

/// One statement of many: each row has the number of the statement that it is of, and a row of that one.
pub(crate) fn united(statements: &[Statement]) -> (String, Vec<(&(dyn ToSql + Sync), Type)>) {
    let (mut sql, mut params) = (String::new(), Vec::new());
    for (n, statement) in statements.iter().enumerate() {
        let union = if n == 0 { "" } else { " UNION ALL " };
        let _ = write!(sql, "{union}SELECT {n}, part FROM ({}) AS part", renumbered(&statement.sql, params.len()));
        params.extend(statement.values.iter().map(|value| (value as &(dyn ToSql + Sync), value.of.clone())));
    }
    (sql, params)
}

/// A statement whose parameters come after some others.
fn renumbered(sql: &str, before: usize) -> String {
    let mut parts = sql.split('$');
    let mut renumbered = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let digits = part.len() - part.trim_start_matches(|c: char| c.is_ascii_digit()).len();
        match part[..digits].parse::<usize>() {
            Ok(number) => _ = write!(renumbered, "${}{}", number + before, &part[digits..]),
            // The end of a regular expression.
            Err(_) => _ = write!(renumbered, "${part}"),
        }
    }
    renumbered
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_are_renumbered() {
        assert_eq!(renumbered("a = $1 AND b < $12 + $2", 10), "a = $11 AND b < $22 + $12");
        assert_eq!(renumbered("SELECT 'a' ~ 'a$'", 3), "SELECT 'a' ~ 'a$'");
    }
}
