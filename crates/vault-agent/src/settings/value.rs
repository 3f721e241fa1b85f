//! The kinds of values of settings, parsed from text and from TOML.

use serde_json::{Value, json};
use toml_edit::Value as Toml;

/// The kind of a value.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Kind {
    Text,
    Switch,
    /// A whole number in a range, both ends included.
    Count(u64, u64),
    /// A number in a range, both ends included.
    Number(f64, f64),
    /// A list of texts; separated by commas in variables and flags.
    List,
}

impl Kind {
    /// Describes the valid values, for error messages.
    pub fn described(self) -> String {
        match self {
            Self::Text => "text".to_owned(),
            Self::Switch => "true or false".to_owned(),
            Self::Count(least, u64::MAX) => format!("a whole number from {least} on"),
            Self::Count(least, most) => format!("a whole number from {least} to {most}"),
            Self::Number(least, most) => format!("a number from {least} to {most}"),
            Self::List => "a list of texts".to_owned(),
        }
    }

    /// Parses a value from a variable or a flag.
    ///
    /// # Errors
    /// The values that are valid.
    pub fn of_text(self, text: &str) -> Result<Value, String> {
        let text = text.trim();
        let value = match self {
            Self::Text => Some(json!(text)).filter(|_| !text.is_empty()),
            Self::Switch => match &*text.to_lowercase() {
                "true" | "on" | "yes" | "1" => Some(json!(true)),
                "false" | "off" | "no" | "0" => Some(json!(false)),
                _ => None,
            },
            Self::Count(..) => text.parse().ok().and_then(|count| self.count(count)),
            Self::Number(..) => text.parse().ok().and_then(|number| self.number(number)),
            Self::List => {
                let texts = text.split(',').map(str::trim).filter(|text| !text.is_empty());
                Some(texts.collect())
            }
        };
        value.ok_or_else(|| self.expected(&format!("{text:?}")))
    }

    /// Parses a value from a file.
    ///
    /// # Errors
    /// The values that are valid.
    pub fn of_toml(self, toml: &Toml) -> Result<Value, String> {
        let value = match (self, toml) {
            (Self::Text, Toml::String(text)) => Some(json!(text.value())).filter(|_| !text.value().trim().is_empty()),
            (Self::Switch, Toml::Boolean(is)) => Some(json!(is.value())),
            (Self::Count(..), Toml::Integer(count)) => {
                u64::try_from(*count.value()).ok().and_then(|count| self.count(count))
            }
            (Self::Number(..), Toml::Float(number)) => self.number(*number.value()),
            #[allow(clippy::cast_precision_loss)]
            (Self::Number(..), Toml::Integer(number)) => self.number(*number.value() as f64),
            (Self::List, Toml::Array(texts)) => {
                texts.iter().map(|text| text.as_str().map(|text| json!(text))).collect::<Option<Value>>()
            }
            _ => None,
        };
        value.ok_or_else(|| self.expected(&format!("{} {}", toml.type_name(), toml.to_string().trim())))
    }

    fn count(self, count: u64) -> Option<Value> {
        matches!(self, Self::Count(least, most) if (least..=most).contains(&count)).then(|| json!(count))
    }

    fn number(self, number: f64) -> Option<Value> {
        matches!(self, Self::Number(least, most) if (least..=most).contains(&number)).then(|| json!(number))
    }

    fn expected(self, found: &str) -> String {
        format!("expected {}, found {found}", self.described())
    }
}
