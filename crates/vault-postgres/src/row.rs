//! Rows as the server sends records, so that rows of different statements can be in one result.

use std::ops::Range;

use postgres::types::{FromSql, Type};

/// A row of some statement.
#[derive(Debug, Clone)]
pub(crate) struct Row {
    bytes: Vec<u8>,
    /// The type of each value, and its place in `bytes`. `None`: NULL.
    values: Vec<(Type, Option<Range<usize>>)>,
}

/// The rows of a statement.
pub(crate) type Rows = std::sync::Arc<Vec<Row>>;

/// A number of a column; a trait, so that the type of a literal is known.
pub(crate) trait Column {
    fn number(self) -> usize;
}

impl Column for usize {
    fn number(self) -> usize {
        self
    }
}

impl Row {
    /// The value of a column, counted from 0.
    ///
    /// # Panics
    /// If the statement has no such column, or one of another type.
    pub(crate) fn get<'a, C: Column, T: FromSql<'a>>(&'a self, column: C) -> T {
        let (column, place) = &self.values[column.number()];
        assert!(T::accepts(column), "a value of the type {column} is read as {}", std::any::type_name::<T>());
        let value = place.clone().map(|place| &self.bytes[place]);
        T::from_sql_nullable(column, value).unwrap_or_else(|error| panic!("a value of the type {column}: {error}"))
    }

    /// Whether a column has this type.
    pub(crate) fn is_of(&self, column: usize, wanted: &Type) -> bool {
        self.values[column].0 == *wanted
    }

    /// How many bytes its values take, about.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes.len()
    }
}

/// The number of values, then for each its type and its length, or -1 for NULL, and its bytes.
impl<'a> FromSql<'a> for Row {
    fn from_sql(_: &Type, record: &'a [u8]) -> Result<Self, Box<dyn std::error::Error + Sync + Send>> {
        let mut at = 0;
        let number = |at: &mut usize| -> Result<i32, &str> {
            let bytes = record.get(*at..).and_then(|rest| rest.first_chunk()).ok_or("a record is incomplete")?;
            *at += 4;
            Ok(i32::from_be_bytes(*bytes))
        };
        let mut values = Vec::new();
        for _ in 0..number(&mut at)? {
            let (column, length) = (number(&mut at)?, number(&mut at)?);
            let column = Type::from_oid(column as u32).ok_or("a record has a value of an unknown type")?;
            let place = usize::try_from(length).ok().map(|length| at..at + length);
            at = place.as_ref().map_or(at, |place| place.end);
            values.push((column, place));
        }
        if at != record.len() {
            return Err("a record has another length than its values".into());
        }
        Ok(Self { bytes: record.to_vec(), values })
    }

    fn accepts(column: &Type) -> bool {
        *column == Type::RECORD
    }
}
