//! What the value of a frontmatter property is, and how it is written as JSON.

use std::fmt;

use serde::de::{MapAccess, SeqAccess, Visitor};
use serde::ser::SerializeMap;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Whole numbers up to this are exact as `f64`; larger ones are kept as text.
const MAX_EXACT: i128 = 1 << 53;

/// The value of a property. Serializes to the JSON one would expect: dates are strings.
#[derive(Debug, Clone, PartialEq)]
pub enum Property {
    /// `null`, `~` or nothing.
    Null,
    /// `true` or `false`; `yes` and `no` are text.
    Bool(bool),
    /// A finite number. Whole ones beyond 2^53, infinities and `.nan` are text.
    Number(f64),
    /// Any other scalar.
    Text(String),
    /// A text that is a day: `2024-01-31`.
    Date(String),
    /// A text that is a day and a time: `2024-01-31T09:30`, also with seconds, a fraction, `Z` or an
    /// offset, or a space for the `T`.
    DateTime(String),
    /// A list.
    List(Vec<Property>),
    /// A mapping.
    Map(Properties),
}

impl Property {
    /// A text that is not a date.
    pub fn from_text(text: String) -> Self {
        match date_length(&text) {
            Some(length) if length == text.len() => Self::Date(text),
            Some(length) if is_time(&text.as_bytes()[length..]) => Self::DateTime(text),
            _ => Self::Text(text),
        }
    }

    pub(super) fn from_integer(number: i128) -> Self {
        if number.abs() <= MAX_EXACT { Self::Number(number as f64) } else { Self::Text(number.to_string()) }
    }

    pub(super) fn from_float(number: f64) -> Self {
        if number.is_finite() {
            return Self::Number(number);
        }
        let name = if number.is_nan() { ".nan" } else { ".inf" };
        Self::Text(if number == f64::NEG_INFINITY { format!("-{name}") } else { name.to_owned() })
    }

    /// The text of a text, date or time.
    pub fn as_str(&self) -> Option<&str> {
        match self {
            Self::Text(text) | Self::Date(text) | Self::DateTime(text) => Some(text),
            _ => None,
        }
    }

    /// The texts it holds: its own, or those of its items. Items that are not text are left out.
    pub fn texts(&self) -> Vec<&str> {
        match self {
            Self::List(items) => items.iter().filter_map(Self::as_str).collect(),
            other => other.as_str().into_iter().collect(),
        }
    }
}

/// Properties in the order of the file.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Properties(Vec<(String, Property)>);

impl Properties {
    /// The value of a key, upper and lower case alike. O(number of keys).
    pub fn get(&self, key: &str) -> Option<&Property> {
        let exact = self.0.iter().find(|(known, _)| known == key);
        let found = exact.or_else(|| {
            let lower = key.to_lowercase();
            self.0.iter().find(|(known, _)| known.to_lowercase() == lower)
        });
        found.map(|(_, value)| value)
    }

    /// Keys as written, and values.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Property)> {
        self.0.iter().map(|(key, value)| (key.as_str(), value))
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl From<Vec<(String, Property)>> for Properties {
    fn from(entries: Vec<(String, Property)>) -> Self {
        Self(entries)
    }
}

/// A number as a person writes it: `2024`, not `2024.0`.
pub(super) fn number_text(number: f64) -> String {
    match whole(number) {
        Some(whole) => whole.to_string(),
        None => number.to_string(),
    }
}

fn whole(number: f64) -> Option<i64> {
    (number.fract() == 0.0 && number.abs() <= MAX_EXACT as f64).then_some(number as i64)
}

/// The length of a valid day `yyyy-mm-dd` at the start of a text.
fn date_length(text: &str) -> Option<usize> {
    let bytes = text.as_bytes();
    let date = bytes.get(..10)?;
    if date[4] != b'-' || date[7] != b'-' {
        return None;
    }
    let (year, month, day) = (number(&date[..4])?, number(&date[5..7])?, number(&date[8..])?);
    let days = match month {
        2 if year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        1..=12 => 31,
        _ => return None,
    };
    (1..=days).contains(&day).then_some(10)
}

/// What follows the day: `Thh:mm`, then maybe `:ss`, `.fff` and an offset.
fn is_time(rest: &[u8]) -> bool {
    let [b'T' | b't' | b' ', time @ ..] = rest else { return false };
    let Some(mut rest) = clock(time) else { return false };
    if let [b':', a, b, more @ ..] = rest {
        if number(&[*a, *b]).is_none_or(|second| second > 60) {
            return false;
        }
        rest = more;
        if let [b'.', more @ ..] = rest {
            let digits = more.iter().take_while(|b| b.is_ascii_digit()).count();
            if digits == 0 {
                return false;
            }
            rest = &more[digits..];
        }
    }
    match rest {
        [] | [b'Z' | b'z'] => true,
        [b'+' | b'-', offset @ ..] => clock(offset).is_some_and(<[u8]>::is_empty),
        _ => false,
    }
}

/// `hh:mm` at the start, and what follows.
fn clock(bytes: &[u8]) -> Option<&[u8]> {
    let (time, rest) = bytes.split_at_checked(5)?;
    let valid = time[2] == b':' && number(&time[..2])? < 24 && number(&time[3..])? < 60;
    valid.then_some(rest)
}

fn number(digits: &[u8]) -> Option<u32> {
    digits.iter().try_fold(0, |sum, b| b.is_ascii_digit().then(|| sum * 10 + u32::from(b - b'0')))
}

impl Serialize for Property {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Null => serializer.serialize_unit(),
            Self::Bool(truth) => serializer.serialize_bool(*truth),
            Self::Number(number) => match whole(*number) {
                Some(whole) => serializer.serialize_i64(whole),
                None => serializer.serialize_f64(*number),
            },
            Self::Text(text) | Self::Date(text) | Self::DateTime(text) => serializer.serialize_str(text),
            Self::List(items) => serializer.collect_seq(items),
            Self::Map(map) => map.serialize(serializer),
        }
    }
}

impl Serialize for Properties {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.0.len()))?;
        for (key, value) in &self.0 {
            map.serialize_entry(key, value)?;
        }
        map.end()
    }
}

impl<'de> Deserialize<'de> for Property {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(JsonValue)
    }
}

impl<'de> Deserialize<'de> for Properties {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        match Property::deserialize(deserializer)? {
            Property::Map(map) => Ok(map),
            _ => Err(serde::de::Error::custom("properties are keys and values")),
        }
    }
}

/// Reads what [`Serialize`] writes.
struct JsonValue;

impl<'de> Visitor<'de> for JsonValue {
    type Value = Property;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a property")
    }

    fn visit_unit<E>(self) -> Result<Property, E> {
        Ok(Property::Null)
    }

    fn visit_bool<E>(self, truth: bool) -> Result<Property, E> {
        Ok(Property::Bool(truth))
    }

    fn visit_i64<E>(self, number: i64) -> Result<Property, E> {
        Ok(Property::from_integer(number.into()))
    }

    fn visit_u64<E>(self, number: u64) -> Result<Property, E> {
        Ok(Property::from_integer(number.into()))
    }

    fn visit_f64<E>(self, number: f64) -> Result<Property, E> {
        Ok(Property::from_float(number))
    }

    fn visit_str<E>(self, text: &str) -> Result<Property, E> {
        Ok(Property::from_text(text.to_owned()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Property, A::Error> {
        let mut items = Vec::new();
        while let Some(item) = seq.next_element()? {
            items.push(item);
        }
        Ok(Property::List(items))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Property, A::Error> {
        let mut entries = Vec::new();
        while let Some(entry) = map.next_entry()? {
            entries.push(entry);
        }
        Ok(Property::Map(Properties(entries)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_told_from_text() {
        for (text, expected) in [
            ("2024-02-29", "date"),
            ("2023-02-29", "text"),
            ("2024-13-01", "text"),
            ("2024-01-31T09:30", "time"),
            ("2024-01-31 09:30:15", "time"),
            ("2024-01-31T09:30:15.250Z", "time"),
            ("2024-01-31T09:30:15+02:00", "time"),
            ("2024-01-31T24:30", "text"),
            ("2024-01-31T09:30:15.", "text"),
            ("2024-01-31 noon", "text"),
            ("2024-1-31", "text"),
            ("09:30", "text"),
            ("2024-01-3é", "text"),
        ] {
            let kind = match Property::from_text(text.to_owned()) {
                Property::Date(_) => "date",
                Property::DateTime(_) => "time",
                _ => "text",
            };
            assert_eq!(kind, expected, "{text:?}");
        }
    }

    #[test]
    fn json_goes_there_and_back() {
        let json = r#"{"a":null,"b":true,"c":2024,"d":1.5,"e":"yes","f":"2024-01-31","g":[1,{"h":"i"}],"j":"12345678901234567890"}"#;
        let properties: Properties = serde_json::from_str(json).unwrap();
        assert_eq!(serde_json::to_string(&properties).unwrap(), json);
        assert_eq!(properties.get("F"), Some(&Property::Date("2024-01-31".to_owned())));
    }
}
