//! The value of a frontmatter property: its type, its parsing, and its JSON form.

use std::cell::Cell;
use std::fmt;
use std::marker::PhantomData;

use jiff::Timestamp;
use jiff::civil::{Date, DateTime};
use serde::de::{DeserializeSeed, EnumAccess, Error, IgnoredAny, MapAccess, SeqAccess, VariantAccess, Visitor};
use serde::ser::SerializeMap;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Whole numbers up to this are exact as `f64`; larger ones are stored as text.
const MAX_EXACT: i128 = 1 << 53;

/// The value of a property. Serializes to the expected JSON: for example, dates are strings.
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
    /// Converts a text, which becomes a date if it has the form of one.
    pub fn from_text(text: String) -> Self {
        // Most texts can be distinguished from dates without the parser.
        if !matches!(text.as_bytes(), [b'0'..=b'9', _, _, _, b'-', _, _, b'-', ..]) {
            return Self::Text(text);
        }
        if text.len() == 10 && text.parse::<Date>().is_ok() {
            return Self::Date(text);
        }
        let has_time = text.get(13..14) == Some(":");
        if has_time && (text.parse::<DateTime>().is_ok() || text.parse::<Timestamp>().is_ok()) {
            return Self::DateTime(text);
        }
        Self::Text(text)
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

    /// The text, if it is a text, a date or a date with a time.
    pub fn as_str(&self) -> Option<&str> {
        match self {
            Self::Text(text) | Self::Date(text) | Self::DateTime(text) => Some(text),
            _ => None,
        }
    }

    /// The texts in it: its own, or those of its items. Items that are not text are left out.
    pub fn texts(&self) -> Vec<&str> {
        match self {
            Self::List(items) => items.iter().filter_map(Self::as_str).collect(),
            other => other.as_str().into_iter().collect(),
        }
    }
}

/// Properties in the order of the file.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Properties(pub(super) Vec<(String, Property)>);

impl Properties {
    /// The value of a key, ignoring case. O(number of keys).
    pub fn get(&self, key: &str) -> Option<&Property> {
        let exact = self.0.iter().find(|(known, _)| known == key);
        let found = exact.or_else(|| {
            let lower = key.to_lowercase();
            self.0.iter().find(|(known, _)| known.to_lowercase() == lower)
        });
        found.map(|(_, value)| value)
    }

    /// The keys, as written, and their values.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Property)> {
        self.0.iter().map(|(key, value)| (key.as_str(), value))
    }

    /// The number of properties.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there are no properties.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl From<Vec<(String, Property)>> for Properties {
    fn from(entries: Vec<(String, Property)>) -> Self {
        Self(entries)
    }
}

/// A number in its usual notation: `2024`, not `2024.0`.
pub(super) fn number_text(number: f64) -> String {
    match whole(number) {
        Some(whole) => whole.to_string(),
        None => number.to_string(),
    }
}

fn whole(number: f64) -> Option<i64> {
    (number.fract() == 0.0 && number.abs() <= MAX_EXACT as f64).then_some(number as i64)
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
        Value(&Cell::new(usize::MAX)).deserialize(deserializer)
    }
}

impl<'de> Deserialize<'de> for Properties {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        match Property::deserialize(deserializer)? {
            Property::Map(map) => Ok(map),
            _ => Err(D::Error::custom("properties are keys and values")),
        }
    }
}

/// Reads one value within a budget: one for each value, and one for each byte of text.
#[derive(Clone, Copy)]
pub(super) struct Value<'b>(pub(super) &'b Cell<usize>);

impl Value<'_> {
    fn spend<E: Error>(self, cost: usize) -> Result<(), E> {
        let left = self.0.get().checked_sub(cost);
        self.0.set(left.ok_or_else(|| E::custom("its aliases expand to too much"))?);
        Ok(())
    }
}

fn key_text(key: Property) -> Option<String> {
    match key {
        Property::Text(text) | Property::Date(text) | Property::DateTime(text) => Some(text),
        Property::Bool(truth) => Some(truth.to_string()),
        Property::Number(number) => Some(number_text(number)),
        Property::Null | Property::List(_) | Property::Map(_) => None,
    }
}

impl<'de> DeserializeSeed<'de> for Value<'_> {
    type Value = Property;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Property, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Value<'_> {
    type Value = Property;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }

    fn visit_unit<E: Error>(self) -> Result<Property, E> {
        self.spend(1)?;
        Ok(Property::Null)
    }

    fn visit_none<E: Error>(self) -> Result<Property, E> {
        self.visit_unit()
    }

    fn visit_bool<E: Error>(self, truth: bool) -> Result<Property, E> {
        self.spend(1)?;
        Ok(Property::Bool(truth))
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<Property, E> {
        self.visit_i128(number.into())
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<Property, E> {
        self.visit_i128(number.into())
    }

    fn visit_i128<E: Error>(self, number: i128) -> Result<Property, E> {
        self.spend(1)?;
        Ok(Property::from_integer(number))
    }

    fn visit_u128<E: Error>(self, number: u128) -> Result<Property, E> {
        self.spend(1)?;
        Ok(i128::try_from(number).map_or_else(|_| Property::Text(number.to_string()), Property::from_integer))
    }

    fn visit_f64<E: Error>(self, number: f64) -> Result<Property, E> {
        self.spend(1)?;
        Ok(Property::from_float(number))
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Property, E> {
        self.spend(1 + text.len())?;
        Ok(Property::from_text(text.to_owned()))
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<Property, D::Error> {
        self.deserialize(deserializer)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Property, A::Error> {
        self.spend(1)?;
        let mut items = Vec::new();
        while let Some(item) = seq.next_element_seed(self)? {
            items.push(item);
        }
        Ok(Property::List(items))
    }

    /// The entries in order, including repeated keys.
    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Property, A::Error> {
        self.spend(1)?;
        let mut entries = Vec::new();
        while let Some(key) = map.next_key_seed(self)? {
            let value = map.next_value_seed(self)?;
            // A key that is a list or a mapping, such as `{{date}}` in a template, is not the name of a property.
            entries.extend(key_text(key).map(|key| (key, value)));
        }
        Ok(Property::Map(Properties(entries)))
    }

    /// A value with a tag of its own (`!kind value`): the value.
    fn visit_enum<A: EnumAccess<'de>>(self, data: A) -> Result<Property, A::Error> {
        let (_, value) = data.variant_seed(PhantomData::<IgnoredAny>)?;
        value.newtype_variant_seed(self)
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
