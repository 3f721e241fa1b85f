//! What must hold before anything is ranked: tags, paths, dates, properties.

use std::cmp::Ordering;

use jiff::civil::{Date, DateTime};
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp, ToSpan, Zoned};

use crate::error::{Error, ErrorKind, Result};
use crate::search::path_pattern::PathPattern;
use crate::store::PropertyValue;

/// Conditions on notes. Tags, dates and properties must all hold, and one of the paths.
///
/// ```
/// use vault_index::{Filter, Query};
///
/// let filter = Filter::default().tag("#garden")?.path("Notes/**")?.property("rating>=4".parse()?);
/// let query = Query::literal("pruning roses").filter(filter);
/// assert_eq!(query.filter.tags, ["garden"]);
/// # Ok::<(), vault_index::Error>(())
/// ```
#[derive(Debug, Clone, Default, PartialEq)]
#[non_exhaustive]
pub struct Filter {
    /// Tags without `#`; `inbox` is also held by `inbox/x`. All must hold.
    pub tags: Vec<String>,
    /// Globs on vault-relative paths, or names of folders and notes. One must hold.
    pub paths: Vec<String>,
    /// Changed at this moment or later.
    pub after: Option<Timestamp>,
    /// Changed before this moment.
    pub before: Option<Timestamp>,
    /// Conditions on frontmatter properties. All must hold.
    pub properties: Vec<PropertyTest>,
    /// Tags as in `tags`; none of them may be held.
    pub without_tags: Vec<String>,
    /// Paths as in `paths`; none may hold.
    pub without_paths: Vec<String>,
}

/// `KEY`, `KEY=VALUE`, `KEY!=VALUE`, `KEY<VALUE`, … on a frontmatter property. Keys fold case.
#[derive(Debug, Clone, PartialEq)]
pub struct PropertyTest {
    /// The property's name.
    pub key: String,
    /// What is asked of it.
    pub test: Comparison,
    /// What it is compared with; unused by [`Comparison::Exists`].
    pub value: String,
}

/// How a property is compared. Numbers compare as numbers; all else as text, with case folded and without white space
/// around it; a list holds when one of its items does (for `!=`: when none is equal).
///
/// A property that is a month, a day, or a day with a time, compares as a date with all that [`DateEdge::parse`] reads. A
/// period such as `2026-03` or `yesterday` is equal to what lies within it, greater than what is before it, less than
/// what is after it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Comparison {
    /// The key is there, whatever it holds: nothing, an empty list, a map.
    Exists,
    /// Equal.
    Equal,
    /// There, even if empty, and not equal.
    NotEqual,
    /// Less than.
    Less,
    /// Less than or equal.
    LessOrEqual,
    /// Greater than.
    Greater,
    /// Greater than or equal.
    GreaterOrEqual,
}

impl Filter {
    /// Whether every note passes.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Adds a tag, with or without its `#`.
    ///
    /// # Errors
    /// [`ErrorKind::Query`] when it names nothing.
    pub fn tag(mut self, tag: &str) -> Result<Self> {
        self.add_tag(tag)?;
        Ok(self)
    }

    /// [`Filter::tag`] in place.
    ///
    /// # Errors
    /// As [`Filter::tag`].
    pub fn add_tag(&mut self, tag: &str) -> Result<()> {
        self.tags.push(checked_tag(tag)?);
        Ok(())
    }

    /// Adds a path: a glob, or the name of a folder or note.
    ///
    /// # Errors
    /// [`ErrorKind::Query`] when it names nothing, or the glob cannot be understood.
    pub fn path(mut self, glob: &str) -> Result<Self> {
        self.add_path(glob)?;
        Ok(self)
    }

    /// [`Filter::path`] in place.
    ///
    /// # Errors
    /// As [`Filter::path`].
    pub fn add_path(&mut self, glob: &str) -> Result<()> {
        self.paths.push(checked_path(glob)?);
        Ok(())
    }

    /// Adds a condition on a property.
    #[must_use]
    pub fn property(mut self, test: PropertyTest) -> Self {
        self.properties.push(test);
        self
    }

    /// Sets the moment since which notes must have changed.
    #[must_use]
    pub fn after(self, moment: Timestamp) -> Self {
        Self { after: Some(moment), ..self }
    }

    /// Sets the moment before which notes must have changed last.
    #[must_use]
    pub fn before(self, moment: Timestamp) -> Self {
        Self { before: Some(moment), ..self }
    }
}

/// A path glob that can be understood.
///
/// # Errors
/// [`ErrorKind::Query`] when it names nothing, or the glob cannot be understood.
pub(crate) fn checked_path(glob: &str) -> Result<String> {
    PathPattern::new(glob)?;
    Ok(glob.to_string())
}

/// A tag without its `#`.
///
/// # Errors
/// [`ErrorKind::Query`] when nothing is left of it.
pub(crate) fn checked_tag(text: &str) -> Result<String> {
    let tag = text.trim().trim_start_matches('#').trim_end_matches('/');
    if tag.is_empty() {
        return Err(Error::new(ErrorKind::Query, format!("`{text}` is not a tag"))
            .with_remedy("write a tag's name, such as garden or garden/roses; `vault-index tags` lists them"));
    }
    Ok(tag.to_string())
}

/// How comparisons are written; the first that fits is read.
const SIGNS: [(&str, Comparison); 7] = [
    (">=", Comparison::GreaterOrEqual),
    ("<=", Comparison::LessOrEqual),
    ("!=", Comparison::NotEqual),
    ("==", Comparison::Equal),
    ("=", Comparison::Equal),
    (">", Comparison::Greater),
    ("<", Comparison::Less),
];

/// As it is written in a query.
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
        let at = text.find(['=', '<', '>', '!']).unwrap_or(text.len());
        let (key, rest) = text.split_at(at);
        let signed = SIGNS.iter().find_map(|(sign, test)| Some((*test, rest.strip_prefix(sign)?)));
        let (test, value) = signed.unwrap_or((Comparison::Exists, rest));
        let (key, value) = (key.trim(), value.trim());
        // `=>` is a typing error, not a value that begins with `>`.
        let odd = if test == Comparison::Exists { !value.is_empty() } else { value.starts_with(['=', '<', '>']) };
        let lacks_value = test != Comparison::Exists && value.is_empty();
        if key.is_empty() || odd || lacks_value {
            return Err(Error::new(ErrorKind::Query, format!("`{text}` is not a condition on a property"))
                .with_remedy("write KEY, KEY=VALUE, KEY!=VALUE, KEY<VALUE, KEY<=VALUE, KEY>VALUE or KEY>=VALUE"));
        }
        Ok(Self { key: key.to_string(), test, value: value.to_string() })
    }
}

impl PropertyTest {
    /// What values are compared with, `now` being what words such as `yesterday` count from.
    pub(crate) fn wanted(&self, now: &Zoned) -> Wanted {
        let text = self.value.trim().to_lowercase();
        let edge = |edge| date_of(&text, edge, now);
        let period = edge(DateEdge::Start).zip(edge(DateEdge::End));
        let number = text.parse().ok().filter(|n: &f64| n.is_finite());
        Wanted { test: self.test, number, period, text, now: now.clone() }
    }
}

/// A [`PropertyTest`] that is ready to be asked of many notes.
pub(crate) struct Wanted {
    test: Comparison,
    number: Option<f64>,
    /// The first moment of the date and the first one after it; twice the same where it is a moment.
    period: Option<(Timestamp, Timestamp)>,
    /// Folded.
    text: String,
    now: Zoned,
}

impl Wanted {
    /// Whether the values of a property that is there (none: it is empty) pass.
    pub(crate) fn holds(&self, values: &[PropertyValue]) -> bool {
        let equal = |value: &PropertyValue| self.order(value).is_some_and(Ordering::is_eq);
        match self.test {
            Comparison::Exists => true,
            Comparison::Equal => values.iter().any(equal),
            Comparison::NotEqual => !values.iter().any(equal),
            test => values.iter().filter_map(|value| self.order(value)).any(|order| match test {
                Comparison::Less => order.is_lt(),
                Comparison::LessOrEqual => order.is_le(),
                Comparison::Greater => order.is_gt(),
                _ => order.is_ge(),
            }),
        }
    }

    /// How a value stands to what is wanted. `None`: a number and a word, or a date and a word, are neither less nor
    /// greater nor equal.
    fn order(&self, value: &PropertyValue) -> Option<Ordering> {
        if let (Some(a), Some(b)) = (value.number, self.number) {
            return a.partial_cmp(&b);
        }
        let text = value.text.trim().to_lowercase();
        let date = date(&text, &self.now);
        if let (Some((from, to)), Some((start, end))) = (date, self.period) {
            // A month is within what it ends with or before; a moment, within what it begins before.
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

/// When a text is that is a month, a day, or a day with a time, as frontmatter has them: a month from its first moment
/// to the first one after it, all else its first moment twice.
fn date(text: &str, now: &Zoned) -> Option<(Timestamp, Timestamp)> {
    let bytes = text.as_bytes();
    let begins_with_month = bytes.len() >= 7 && bytes[0].is_ascii_digit() && bytes[4] == b'-';
    if begins_with_month && bytes.len() == 7 {
        return date_of(text, DateEdge::Start, now).zip(date_of(text, DateEdge::End, now));
    }
    let is_day = begins_with_month && bytes.len() >= 10 && bytes[7] == b'-';
    if is_day { date_of(text, DateEdge::Start, now).map(|moment| (moment, moment)) } else { None }
}

/// Which side of a day or month a bare date means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum DateEdge {
    /// Its first moment: what `--after` means.
    Start,
    /// The first moment after it: what `--before` means.
    End,
}

impl DateEdge {
    /// Reads a date as people write it: ISO 8601 (`2026-01-31`, `2026-01`, `2026`, with a time, with a zone),
    /// `today`, `yesterday`, `tomorrow`, `now`, an age (`7d`, `3w`, `2mo`, `1y`, `12h`, `30min`), `last week`,
    /// `last month`, `last year`, `this week`, `this month`, `this year`. Days are local, weeks begin on Monday.
    ///
    /// # Errors
    /// [`ErrorKind::Query`] with what can be written.
    pub fn parse(self, text: &str, now: &Zoned) -> Result<Timestamp> {
        date_of(text.trim().to_lowercase().as_str(), self, now).ok_or_else(|| {
            Error::new(ErrorKind::Query, format!("`{text}` is not a date")).with_remedy(
                "write 2026-01-31, 2026-01, 2026-01-31T09:30, today, yesterday, last week, 7d, 3w, 2mo or 1y",
            )
        })
    }
}

fn date_of(text: &str, edge: DateEdge, now: &Zoned) -> Option<Timestamp> {
    let today = now.date();
    let zone = now.time_zone();
    // What is beyond the calendar's last day is the end of all time.
    let span = |from: Date, to: Option<Date>| {
        let day = if edge == DateEdge::Start { Some(from) } else { to };
        Some(day.and_then(|day| day.to_zoned(zone.clone()).ok()).map_or(Timestamp::MAX, |day| day.timestamp()))
    };
    let day = |d: Date| span(d, d.tomorrow().ok());
    let monday = || today.checked_sub(i64::from(today.weekday().to_monday_zero_offset()).days()).ok();
    let month = today.first_of_month();
    let year = |y: i16| Date::new(y, 1, 1).ok();
    match text {
        "now" => return Some(now.timestamp()),
        "today" => return day(today),
        "yesterday" => return day(today.yesterday().ok()?),
        "tomorrow" => return day(today.tomorrow().ok()?),
        "this week" => return span(monday()?, monday()?.checked_add(7.days()).ok()),
        "last week" => return span(monday()?.checked_sub(7.days()).ok()?, monday()),
        "this month" => return span(month, month.checked_add(1.month()).ok()),
        "last month" => return span(month.checked_sub(1.month()).ok()?, Some(month)),
        "this year" => return span(year(today.year())?, year(today.year() + 1)),
        "last year" => return span(year(today.year() - 1)?, year(today.year())),
        _ => {}
    }
    if let Some(moment) = age(text, now) {
        return Some(moment);
    }
    if let Ok(moment) = text.to_uppercase().parse::<Timestamp>() {
        return Some(moment);
    }
    let digits = text.bytes().filter(u8::is_ascii_digit).count();
    match text.split('-').collect::<Vec<_>>()[..] {
        [y] if digits == 4 && y.len() == 4 => {
            let y = y.parse::<i16>().ok()?;
            span(year(y)?, y.checked_add(1).and_then(year))
        }
        [y, m] if digits == 6 && y.len() == 4 && m.len() == 2 => {
            let first = Date::new(y.parse().ok()?, m.parse().ok()?, 1).ok()?;
            span(first, first.checked_add(1.month()).ok())
        }
        _ if text.len() == 10 => day(text.parse().ok()?),
        _ => local_moment(text, zone),
    }
}

fn local_moment(text: &str, zone: &TimeZone) -> Option<Timestamp> {
    let moment: DateTime = text.to_uppercase().parse().ok()?;
    moment.to_zoned(zone.clone()).ok().map(|z| z.timestamp())
}

/// `7d` and the like: that long before now.
fn age(text: &str, now: &Zoned) -> Option<Timestamp> {
    let text = text.strip_suffix(" ago").unwrap_or(text).trim();
    let unit_at = text.find(|c: char| !c.is_ascii_digit())?;
    let count: i64 = text[..unit_at].parse().ok()?;
    let moment = match text[unit_at..].trim() {
        "h" | "hour" | "hours" => now.checked_sub(SignedDuration::try_from_hours(count)?),
        "min" | "minute" | "minutes" => now.checked_sub(SignedDuration::try_from_mins(count)?),
        "d" | "day" | "days" => now.checked_sub(jiff::Span::new().try_days(count).ok()?),
        "w" | "week" | "weeks" => now.checked_sub(jiff::Span::new().try_weeks(count).ok()?),
        "mo" | "m" | "month" | "months" => now.checked_sub(jiff::Span::new().try_months(count).ok()?),
        "y" | "year" | "years" => now.checked_sub(jiff::Span::new().try_years(count).ok()?),
        _ => return None,
    };
    moment.ok().map(|z| z.timestamp())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates() {
        let now: Zoned = "2026-03-18T12:00:00+01:00[Europe/Zurich]".parse().unwrap();
        let check = |text: &str, start: &str, end: &str| {
            let moment = |edge: DateEdge| edge.parse(text, &now).unwrap().to_zoned(now.time_zone().clone());
            assert_eq!(moment(DateEdge::Start).datetime().to_string(), start, "{text}, start");
            assert_eq!(moment(DateEdge::End).datetime().to_string(), end, "{text}, end");
        };
        check("2026-01-31", "2026-01-31T00:00:00", "2026-02-01T00:00:00");
        check("2026-01", "2026-01-01T00:00:00", "2026-02-01T00:00:00");
        check("2026", "2026-01-01T00:00:00", "2027-01-01T00:00:00");
        check("today", "2026-03-18T00:00:00", "2026-03-19T00:00:00");
        check("Yesterday", "2026-03-17T00:00:00", "2026-03-18T00:00:00");
        check("last week", "2026-03-09T00:00:00", "2026-03-16T00:00:00");
        check("last month", "2026-02-01T00:00:00", "2026-03-01T00:00:00");
        check("last year", "2025-01-01T00:00:00", "2026-01-01T00:00:00");
        check("7d", "2026-03-11T12:00:00", "2026-03-11T12:00:00");
        check("2w", "2026-03-04T12:00:00", "2026-03-04T12:00:00");
        check("3 days ago", "2026-03-15T12:00:00", "2026-03-15T12:00:00");
        check("2026-03-01T09:30", "2026-03-01T09:30:00", "2026-03-01T09:30:00");
        check("2026-03-01T08:30:00Z", "2026-03-01T09:30:00", "2026-03-01T09:30:00");
        // The day of the change to summer time is 23 hours long.
        check("2026-03-29", "2026-03-29T00:00:00", "2026-03-30T00:00:00");
        assert_eq!(DateEdge::Start.parse("9999", &now).unwrap().to_string(), "9998-12-31T23:00:00Z");
        for end in ["9999", "9999-12", "9999-12-31"] {
            assert_eq!(DateEdge::End.parse(end, &now).unwrap(), Timestamp::MAX, "{end}");
        }
        for bad in ["", "soon", "2026-13", "2026-02-30", "99999999999999999999d", "26", "2026-1"] {
            assert!(DateEdge::Start.parse(bad, &now).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn property_tests() {
        let now: Zoned = "2026-03-18T12:00:00+01:00[Europe/Zurich]".parse().unwrap();
        let check = |test: &str, values: &[&str], expected: bool| {
            let values: Vec<_> = values
                .iter()
                .map(|text| PropertyValue { number: text.parse().ok(), text: (*text).to_string() })
                .collect();
            let parsed: PropertyTest = test.parse().unwrap();
            assert_eq!(parsed.wanted(&now).holds(&values), expected, "{test} on {values:?}");
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
        for bad in ["", "=x", "a!b", " >= 3", "s>", "s=", "s=>1", "s=<1", "s!="] {
            assert!(bad.parse::<PropertyTest>().is_err(), "{bad:?}");
        }
    }
}
