//! Conditions on frontmatter properties: `rating>=4`, `status=done`, `director~nolan`.

use std::cmp::Ordering;

use jiff::{Timestamp, Zoned};

use crate::error::{Error, ErrorKind, Result};
use crate::search::query::dates::{DateEdge, date, date_of};
use crate::search::query::text_condition::{Text, TextMatcher, TextPattern, TextTest};
use crate::store::PropertyValue;

/// `KEY`, `KEY=VALUE`, `KEY!=VALUE`, `KEY<VALUE`, `KEY~TEXT`, … on a frontmatter property. Keys ignore case.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PropertyTest {
    /// The property's name.
    pub key: String,
    /// The comparison.
    pub test: Comparison,
    /// The value to compare with; unused by [`Comparison::Exists`].
    pub value: String,
}

/// The kind of comparison. Numbers compare as numbers; everything else as text, with case folded and without
/// surrounding white space. A list passes if one of its items does (for `!=`: if none is equal).
///
/// A property that is a month, a day, or a day with a time, is compared as a date, with any value that
/// [`DateEdge::parse`] reads. A period such as `2026-03` or `yesterday` is equal to the dates within it, greater than
/// earlier dates, and less than later ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Comparison {
    /// The key is present with any value, including nothing, an empty list or a map.
    Exists,
    /// Equal.
    Equal,
    /// Present, even if empty, and not equal.
    NotEqual,
    /// Less than.
    Less,
    /// Less than or equal.
    LessOrEqual,
    /// Greater than.
    Greater,
    /// Greater than or equal.
    GreaterOrEqual,
    /// Contains this text, ignoring case and diacritics. Written `/…/`: matches this regular expression.
    Contains,
}

/// The signs of comparisons; the first match is read.
const SIGNS: [(&str, Comparison); 8] = [
    (">=", Comparison::GreaterOrEqual),
    ("<=", Comparison::LessOrEqual),
    ("!=", Comparison::NotEqual),
    ("==", Comparison::Equal),
    ("=", Comparison::Equal),
    (">", Comparison::Greater),
    ("<", Comparison::Less),
    ("~", Comparison::Contains),
];

impl Comparison {
    /// The comparison for a sign.
    pub(super) fn written(sign: &str) -> Option<Self> {
        SIGNS.iter().find(|(written, _)| *written == sign).map(|(_, test)| *test)
    }
}

/// In the syntax of `--prop`.
impl std::fmt::Display for PropertyTest {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match SIGNS.iter().rfind(|(_, test)| *test == self.test) {
            Some((sign, _)) => write!(f, "{}{sign}{}", self.key, self.value),
            None => f.write_str(&self.key),
        }
    }
}

impl std::str::FromStr for PropertyTest {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let at = text.find(['=', '<', '>', '!', '~']).unwrap_or(text.len());
        let (key, rest) = text.split_at(at);
        let signed = SIGNS.iter().find_map(|(sign, test)| Some((*test, rest.strip_prefix(sign)?)));
        let (test, value) = signed.unwrap_or((Comparison::Exists, rest));
        let (key, value) = (key.trim(), value.trim());
        // `=>` is a typo, not a value that begins with `>`.
        let odd = match test {
            Comparison::Exists => !value.is_empty(),
            Comparison::Contains => false,
            _ => value.starts_with(['=', '<', '>']),
        };
        let lacks_value = test != Comparison::Exists && value.is_empty();
        if key.is_empty() || odd || lacks_value {
            return Err(Error::new(ErrorKind::Query, format!("`{text}` is not a condition on a property"))
                .with_remedy(
                    "write KEY, KEY=VALUE, KEY!=VALUE, KEY~TEXT, KEY<VALUE, KEY<=VALUE, KEY>VALUE or KEY>=VALUE",
                ));
        }
        let test = Self { key: key.to_string(), test, value: value.to_string() };
        test.contained()?;
        Ok(test)
    }
}

impl PropertyTest {
    /// Compiles the condition. Words such as `yesterday` are relative to `now`.
    ///
    /// # Errors
    /// For an invalid regular expression.
    pub(in crate::search) fn matcher(&self, now: &Zoned) -> Result<PropertyMatcher> {
        let text = self.value.trim().to_lowercase();
        let edge = |edge| date_of(&text, edge, now);
        let period = edge(DateEdge::Start).zip(edge(DateEdge::End));
        let number = text.parse().ok().filter(|n: &f64| n.is_finite());
        Ok(PropertyMatcher { test: self.test, number, period, text, contained: self.contained()?, now: now.clone() })
    }

    /// Compiles the text that a value must contain.
    ///
    /// # Errors
    /// For an invalid regular expression.
    pub(super) fn contained(&self) -> Result<Option<TextMatcher>> {
        if self.test != Comparison::Contains {
            return Ok(None);
        }
        let pattern = self.value.strip_prefix('/').and_then(|rest| rest.strip_suffix('/')).filter(|p| !p.is_empty());
        let holds = match pattern {
            Some(pattern) => TextPattern::Regex(pattern.to_string()),
            None => TextPattern::Characters(self.value.clone()),
        };
        TextTest { holds, match_case: false }.matcher().map(Some)
    }
}

/// A [`PropertyTest`] that is compiled, to test many notes.
pub(in crate::search) struct PropertyMatcher {
    test: Comparison,
    number: Option<f64>,
    /// The first moment of the date and the first one after it; twice the same for a timestamp.
    period: Option<(Timestamp, Timestamp)>,
    /// Folded text.
    text: String,
    /// For [`Comparison::Contains`].
    contained: Option<TextMatcher>,
    now: Zoned,
}

impl PropertyMatcher {
    /// Whether the values of an existing property pass. Without values, the property is empty.
    pub(in crate::search) fn holds(&self, values: &[PropertyValue]) -> bool {
        let equal = |value: &PropertyValue| self.order(value).is_some_and(Ordering::is_eq);
        match self.test {
            Comparison::Exists => true,
            Comparison::Equal => values.iter().any(equal),
            Comparison::NotEqual => !values.iter().any(equal),
            Comparison::Contains => {
                let contained =
                    |value: &PropertyValue| self.contained.as_ref().is_some_and(|m| m.holds(&Text::new(&value.text)));
                values.iter().any(contained)
            }
            test => values.iter().filter_map(|value| self.order(value)).any(|order| match test {
                Comparison::Less => order.is_lt(),
                Comparison::LessOrEqual => order.is_le(),
                Comparison::Greater => order.is_gt(),
                _ => order.is_ge(),
            }),
        }
    }

    /// Compares a value with the requested one. `None`: they are not comparable, such as a number and a word, or a date
    /// and a word.
    fn order(&self, value: &PropertyValue) -> Option<Ordering> {
        if let (Some(a), Some(b)) = (value.number, self.number) {
            return a.partial_cmp(&b);
        }
        let text = value.text.trim().to_lowercase();
        let date = date(&text, &self.now);
        if let (Some((from, to)), Some((start, end))) = (date, self.period) {
            // A month is within a period if it ends within it; a timestamp, if it is before the period's end.
            let is_within = if from < to { to <= end } else { from < end || from == start };
            return Some(match from {
                from if from < start => Ordering::Less,
                _ if is_within => Ordering::Equal,
                _ => Ordering::Greater,
            });
        }
        let same_kind = value.number.is_some() == self.number.is_some() && date.is_some() == self.period.is_some();
        (same_kind || text == self.text).then(|| text.cmp(&self.text))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn conditions_hold_for_values_of_their_kind() {
        let now: Zoned = "2026-03-18T12:00:00+01:00[Europe/Zurich]".parse().unwrap();
        let check = |test: &str, values: &[&str], expected: bool| {
            let values: Vec<_> = values
                .iter()
                .map(|text| PropertyValue { number: text.parse().ok(), text: (*text).to_string() })
                .collect();
            let parsed: PropertyTest = test.parse().unwrap();
            assert_eq!(parsed.matcher(&now).unwrap().holds(&values), expected, "{test} on {values:?}");
        };
        check("status", &["draft"], true);
        check("status", &[], true);
        check("status=Draft", &["draft"], true);
        check("status != draft", &["draft"], false);
        check("status!=done", &["draft"], true);
        check("status!=done", &[], true);
        check("status=done", &[], false);
        check("status>a", &[], false);
        check("s=pad", &[" Pad "], true);
        check("s= PAD ", &["pad"], true);
        check("s!=pad", &[" pad "], false);
        check("rating>=4", &["10"], true);
        check("rating>4", &["4"], false);
        check("rating<5", &["high"], false);
        check("due<2026-02-01", &["2026-01-31"], true);
        check("due<2026-02-01", &["2026-02-01T00:00:00"], false);
        check("authors=ann", &["Bob", "Ann"], true);
        check("authors!=ann", &["Bob", "Ann"], false);
        let day = &["2026-03-05"];
        for (test, expected) in [
            ("due>=2026-03", true),
            ("due>2026", false),
            ("due>2025", true),
            ("due<2027", true),
            ("due<=2026", true),
            ("due<yesterday", true),
            ("due<7d", true),
            ("due>7d", false),
            ("due>=2026-03-05", true),
            ("due>2026-03-05", false),
            ("due=2026-03", true),
            ("due=2026-04", false),
            ("due!=2026-03", false),
            ("due=2026-03-05T10:00", false),
        ] {
            check(test, day, expected);
        }
        for (test, expected) in [
            ("due=2026", true),
            ("due=2026-03", true),
            ("due=2026-02", false),
            ("due>2026-02", true),
            ("due>=2026-03", true),
            ("due<=2026-03", true),
            ("due>2026-03", false),
            ("due<2026-04", true),
            ("due<2026-03-15", true),
            ("due=2026-03-01", false),
            ("due=this month", true),
            ("due<march", false),
            ("due<9999", true),
        ] {
            check(test, &["2026-03"], expected);
        }
        check("version=2026-13", &["2026-13"], true);
        check("when=2026-03-05", &["2026-03-05T10:00"], true);
        check("when=2026-03-05", &["2026-03-05 10:00"], true);
        check("when<2026-03-05T10:00", &["2026-03-05T09:59"], true);
        check("when=2026-03-05", &["2026-03-05T23:30:00Z"], false);
        check("year>=2026", &["2026"], true);
        check("name>=today", &["tomorrow"], false);
        check("mood=today", &["Today"], true);
        check("s>=abc", &["ABD"], true);
        check("by~nolan", &["[[Christopher Nolan]]"], true);
        check("by ~ RENE", &["Bob", "René"], true);
        check("by~/^b.b$/", &["Ann", "Bob"], true);
        check("by~ann", &[], false);
        check("by~=x", &["a=x"], true);
        assert!("by~/(/".parse::<PropertyTest>().is_err());
        for bad in ["", "by~", "=x", "a!b", " >= 3", "s>", "s=", "s=>1", "s=<1", "s!="] {
            assert!(bad.parse::<PropertyTest>().is_err(), "{bad:?}");
        }
    }
}
