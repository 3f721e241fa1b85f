//! Dates as people write them: ISO 8601, `yesterday`, `last friday`, `7d`, `24.12.2023`, `dec 2023`; ranges of days.

use std::fmt;

use jiff::civil::{Date, DateTime, ISOWeekDate, Weekday};
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp, ToSpan, Zoned};

use crate::error::{Error, ErrorKind, Result};

/// Whether a bare date means its start or its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum DateEdge {
    /// Its first moment: what `--after` means.
    Start,
    /// The first moment after it: what `--before` means.
    End,
}

impl DateEdge {
    /// Reads a date as people write it: ISO 8601 (`2026-01-31`, `2026-01`, `2026`, with a time, with a zone), `today`,
    /// `yesterday`, `tomorrow`, `now`, an age (`7d`, `3w`, `2mo`, `1y`, `12h`, `30min`), `last week`, `last month`,
    /// `last year`, `this week`, `this month`, `this year`, `24.12.2023`, `24 Dec 2023`, `Dec 24, 2023`, `dec 2023`,
    /// and `12/24/2023` if only one order of day and month is possible. `friday` is the latest one up to today,
    /// `last friday` the latest one before today, `next friday` the first one after it. Days are local, weeks begin on
    /// Monday.
    ///
    /// # Errors
    /// [`ErrorKind::Query`] with examples of valid dates.
    pub fn parse(self, text: &str, now: &Zoned) -> Result<Timestamp> {
        let lower = text.trim().to_lowercase();
        date_of(&lower, self, now).ok_or_else(|| match written(&lower) {
            Some(WrittenDate::Either(one, other)) => {
                let message =
                    format!("`{text}` can be {} or {}", one.strftime("%-d %B %Y"), other.strftime("%-d %B %Y"));
                Error::new(ErrorKind::Query, message).with_remedy(format!("write {one} or {other}"))
            }
            _ => Error::new(ErrorKind::Query, format!("`{text}` is not a date")).with_remedy(
                "write 2026-01-31, 2026-01, 31.1.2026, jan 2026, today, yesterday, monday, last week, 7d, 3w or 1y",
            ),
        })
    }
}

pub(super) fn date_of(text: &str, edge: DateEdge, now: &Zoned) -> Option<Timestamp> {
    let today = now.date();
    let zone = now.time_zone();
    // A date after the calendar's last day means the end of time.
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
    if let Some(date) = weekday(text, today) {
        return day(date);
    }
    match written(text) {
        Some(WrittenDate::Day(date)) => return day(date),
        Some(WrittenDate::Month(first)) => return span(first, first.checked_add(1.month()).ok()),
        Some(WrittenDate::Either(..)) => return None,
        None => {}
    }
    if let Ok(moment) = text.to_uppercase().parse::<Timestamp>() {
        return Some(moment);
    }
    if let Some((first, end)) = period(text) {
        return span(first, end);
    }
    if text.len() == 10 { day(text.parse().ok()?) } else { local_moment(text, zone) }
}

/// The days of a year, quarter, month or week of ISO 8601, in lower case: `2023`, `2023-q1`, `2023-02`, `2023-w05`;
/// those with a letter also without the hyphen. Returns the first day, and the day after the last.
pub(in crate::search) fn period(text: &str) -> Option<(Date, Option<Date>)> {
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let (year, part) = text.split_at_checked(4).filter(|(year, _)| is_number(year))?;
    let year: i16 = year.parse().ok()?;
    let first = |month: i8| Date::new(year, month, 1).ok();
    let number = |digits: &str| -> Option<i8> { if is_number(digits) { digits.parse().ok() } else { None } };
    let behind = part.strip_prefix('-').unwrap_or(part);
    let (from, days) = match behind.chars().next() {
        None if part.is_empty() => (first(1)?, 1.year()),
        Some('q') => (first(number(&behind[1..]).filter(|quarter| (1..=4).contains(quarter))? * 3 - 2)?, 3.months()),
        Some('w') => (ISOWeekDate::new(year, number(&behind[1..])?, Weekday::Monday).ok()?.date(), 7.days()),
        Some(_) if part.len() == 3 && behind.len() == 2 => (first(number(behind)?)?, 1.month()),
        _ => return None,
    };
    Some((from, from.checked_add(days).ok()))
}

fn local_moment(text: &str, zone: &TimeZone) -> Option<Timestamp> {
    let moment: DateTime = text.to_uppercase().parse().ok()?;
    moment.to_zoned(zone.clone()).ok().map(|z| z.timestamp())
}

/// The day that a weekday refers to.
fn weekday(text: &str, today: Date) -> Option<Date> {
    let (which, name) = text.split_once(' ').unwrap_or(("", text));
    let weekday = match name.trim() {
        "monday" | "mon" => Weekday::Monday,
        "tuesday" | "tue" | "tues" => Weekday::Tuesday,
        "wednesday" | "wed" => Weekday::Wednesday,
        "thursday" | "thu" | "thur" | "thurs" => Weekday::Thursday,
        "friday" | "fri" => Weekday::Friday,
        "saturday" | "sat" => Weekday::Saturday,
        "sunday" | "sun" => Weekday::Sunday,
        _ => return None,
    };
    match which {
        "" if today.weekday() == weekday => Some(today),
        "" | "last" => today.nth_weekday(-1, weekday).ok(),
        "next" => today.nth_weekday(1, weekday).ok(),
        _ => None,
    }
}

/// The day that a text means, if it is unambiguous: `24.12.2023`, `24 Dec 2023`, `Sunday, December 24th, 2023`.
pub(in crate::search) fn written_day(text: &str) -> Option<Date> {
    let text = text.to_lowercase();
    let is_weekday = |word: &str| weekday(word.trim_end_matches(','), Date::ZERO).is_some();
    let words: Vec<&str> = text.split_whitespace().filter(|word| !is_weekday(word)).collect();
    match written(&words.join(" ")) {
        // Half of all days such as 05-12-2023 are ambiguous, so this form is not read at all.
        Some(WrittenDate::Day(day)) if !text.contains('-') => Some(day),
        _ => None,
    }
}

/// The month that a text with its name means: `July 2022`.
pub(in crate::search) fn written_month(text: &str) -> Option<(Date, Option<Date>)> {
    match with_month_name(&text.to_lowercase())? {
        WrittenDate::Month(first) => Some((first, first.checked_add(1.month()).ok())),
        _ => None,
    }
}

/// A day or month in another form than ISO 8601.
#[derive(Debug, Clone, Copy, PartialEq)]
enum WrittenDate {
    Day(Date),
    /// The first day of the month.
    Month(Date),
    /// Ambiguous: day before month, or month before day.
    Either(Date, Date),
}

const MONTHS: [&str; 12] = [
    "january",
    "february",
    "march",
    "april",
    "may",
    "june",
    "july",
    "august",
    "september",
    "october",
    "november",
    "december",
];

fn written(text: &str) -> Option<WrittenDate> {
    let separator = text.find(['.', '/', '-', ' ', ',']).map(|at| text.as_bytes()[at])?;
    if matches!(separator, b' ' | b',') || text.bytes().any(|byte| byte.is_ascii_alphabetic()) {
        return with_month_name(text);
    }
    let parts: Vec<&str> = text.split(char::from(separator)).collect();
    let [a, b, c] = parts[..] else { return None };
    let is_number = |text: &str| (1..=4).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_digit());
    if !parts.iter().all(|part| is_number(part)) {
        return None;
    }
    let date = |y: &str, m: &str, d: &str| Date::new(y.parse().ok()?, m.parse().ok()?, d.parse().ok()?).ok();
    if a.len() == 4 {
        // With `-` it is ISO 8601, which has two digits for each.
        return date(a, b, c).filter(|_| separator != b'-').map(WrittenDate::Day);
    }
    if c.len() != 4 {
        return None;
    }
    // With dots, the month is never first.
    let month_first = if separator == b'.' { None } else { date(c, a, b) };
    match (date(c, b, a), month_first) {
        (Some(day_first), Some(month_first)) if day_first != month_first => {
            Some(WrittenDate::Either(day_first, month_first))
        }
        (Some(date), _) | (None, Some(date)) => Some(WrittenDate::Day(date)),
        (None, None) => None,
    }
}

/// `24 dec 2023`, `dec 24, 2023`, `dec 2023`.
fn with_month_name(text: &str) -> Option<WrittenDate> {
    let (mut month, mut numbers) = (None, Vec::new());
    for part in text.split([' ', ',']).filter(|part| !part.is_empty()) {
        let part = part.trim_end_matches('.');
        let digits = ["st", "nd", "rd", "th"].iter().find_map(|end| part.strip_suffix(end)).unwrap_or(part);
        if let Ok(number) = digits.parse::<i16>() {
            numbers.push((number, part.len()));
        } else {
            let is_name =
                |name: &str| part.len() >= 3 && (name.starts_with(part) || part == "sept" && name.starts_with("sep"));
            let at = MONTHS.into_iter().position(is_name)?;
            if month.replace(at as i8 + 1).is_some() {
                return None;
            }
        }
    }
    match numbers[..] {
        [(year, 4)] => Date::new(year, month?, 1).ok().map(WrittenDate::Month),
        [(day, 1..=4), (year, 4)] => Date::new(year, month?, i8::try_from(day).ok()?).ok().map(WrittenDate::Day),
        _ => None,
    }
}

/// `7d` and similar ages: this time before now.
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

/// The moment of a text that is a month, a day, or a day with a time, as in frontmatter. A month gives its first moment
/// and the first one after it; all others give their first moment twice.
pub(super) fn date(text: &str, now: &Zoned) -> Option<(Timestamp, Timestamp)> {
    let bytes = text.as_bytes();
    let begins_with_month = bytes.len() >= 7 && bytes[0].is_ascii_digit() && bytes[4] == b'-';
    if begins_with_month && bytes.len() == 7 {
        return date_of(text, DateEdge::Start, now).zip(date_of(text, DateEdge::End, now));
    }
    let is_day = begins_with_month && bytes.len() >= 10 && bytes[7] == b'-';
    if is_day { date_of(text, DateEdge::Start, now).map(|moment| (moment, moment)) } else { None }
}

/// A range of days, whose ends may be open.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DateRange {
    /// The first day.
    pub from: Option<Date>,
    /// The day after the last one.
    pub before: Option<Date>,
    /// The text of the range, as written.
    text: String,
}

impl DateRange {
    /// Reads `2023-12` (all its days), `>=2026-01`, `>2025`, `<2026-03-01`, `<=yesterday`, `2023-01..2023-06` (both
    /// included), `2023..`, `..2023-06`; each date as in [`DateEdge::parse`].
    ///
    /// # Errors
    /// [`ErrorKind::Query`] with examples of valid ranges.
    pub fn parse(text: &str, now: &Zoned) -> Result<Self> {
        let text = text.trim();
        let days = |date: &str| days(date, now);
        let (from, before) = if let Some(date) = text.strip_prefix(">=") {
            (Some(days(date)?.0), None)
        } else if let Some(date) = text.strip_prefix("<=") {
            (None, days(date)?.1)
        } else if let Some(date) = text.strip_prefix('>') {
            (Some(days(date)?.1.unwrap_or(Date::MAX)), None)
        } else if let Some(date) = text.strip_prefix('<') {
            (None, Some(days(date)?.0))
        } else if let Some((first, last)) = text.split_once("..") {
            let first = if first.trim().is_empty() { None } else { Some(days(first)?.0) };
            (first, if last.trim().is_empty() { None } else { days(last)?.1 })
        } else {
            let (from, before) = days(text)?;
            (Some(from), before)
        };
        if from.is_none() && before.is_none() && text == ".." {
            return Err(Error::new(ErrorKind::Query, "`..` has neither a first nor a last day")
                .with_remedy("write a day or a month, such as 2023-12, or 2023-01..2023-06"));
        }
        Ok(Self { from, before, text: text.to_string() })
    }

    /// Whether all days from `first` up to, and without, `end` are in the range.
    pub(in crate::search) fn contains(&self, first: Date, end: Option<Date>) -> bool {
        let ends = self.before.is_none_or(|before| end.is_some_and(|end| end <= before));
        self.from.is_none_or(|from| from <= first) && ends
    }
}

/// As it was written.
impl fmt::Display for DateRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// The days that a date covers: the first one, and the one after the last, which the calendar may not have. A timestamp
/// covers its day.
fn days(text: &str, now: &Zoned) -> Result<(Date, Option<Date>)> {
    let day = |moment: Timestamp| moment.to_zoned(now.time_zone().clone()).date();
    let (start, end) = (DateEdge::Start.parse(text, now)?, DateEdge::End.parse(text, now)?);
    let first = day(start);
    let end = if start == end { first.tomorrow().ok() } else { (end != Timestamp::MAX).then(|| day(end)) };
    Ok((first, end))
}

/// The days that the text of a property covers, if it is a month, a day, or a day with a time.
pub(in crate::search) fn days_of_property(text: &str, now: &Zoned) -> Option<(Date, Option<Date>)> {
    let text = text.trim();
    date(&text.to_lowercase(), now)?;
    days(text, now).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_date_in_words_covers_its_whole_period() {
        let now: Zoned = "2026-03-18T12:00:00+01:00[Europe/Zurich]".parse().unwrap();
        let check = |text: &str, start: &str, end: &str| {
            let moment = |edge: DateEdge| edge.parse(text, &now).unwrap().to_zoned(now.time_zone().clone());
            assert_eq!(moment(DateEdge::Start).datetime().to_string(), start, "{text}, start");
            assert_eq!(moment(DateEdge::End).datetime().to_string(), end, "{text}, end");
        };
        check("2026-01-31", "2026-01-31T00:00:00", "2026-02-01T00:00:00");
        check("2026-01", "2026-01-01T00:00:00", "2026-02-01T00:00:00");
        check("2026", "2026-01-01T00:00:00", "2027-01-01T00:00:00");
        check("2026-Q1", "2026-01-01T00:00:00", "2026-04-01T00:00:00");
        check("2026q4", "2026-10-01T00:00:00", "2027-01-01T00:00:00");
        // The week with the first Thursday is the first one.
        check("2026-W01", "2025-12-29T00:00:00", "2026-01-05T00:00:00");
        check("2026-w12", "2026-03-16T00:00:00", "2026-03-23T00:00:00");
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
        // It is a Wednesday.
        check("wednesday", "2026-03-18T00:00:00", "2026-03-19T00:00:00");
        check("Monday", "2026-03-16T00:00:00", "2026-03-17T00:00:00");
        check("thu", "2026-03-12T00:00:00", "2026-03-13T00:00:00");
        check("last friday", "2026-03-13T00:00:00", "2026-03-14T00:00:00");
        check("last wednesday", "2026-03-11T00:00:00", "2026-03-12T00:00:00");
        check("next wed", "2026-03-25T00:00:00", "2026-03-26T00:00:00");
        for day in [
            "24.12.2023",
            "24/12/2023",
            "12/24/2023",
            "24-12-2023",
            "2023/12/24",
            "2023.12.24",
            "24 Dec 2023",
            "Dec 24, 2023",
            "december 24th 2023",
            "24. dec. 2023",
        ] {
            check(day, "2023-12-24T00:00:00", "2023-12-25T00:00:00");
        }
        check("5.4.2023", "2023-04-05T00:00:00", "2023-04-06T00:00:00");
        check("4/4/2023", "2023-04-04T00:00:00", "2023-04-05T00:00:00");
        check("dec 2023", "2023-12-01T00:00:00", "2024-01-01T00:00:00");
        check("Sept 2023", "2023-09-01T00:00:00", "2023-10-01T00:00:00");
        let either = DateEdge::Start.parse("12/11/2023", &now).unwrap_err().to_string();
        assert!(either.contains("can be 12 November 2023 or 11 December 2023"), "{either}");
        assert!(either.contains("write 2023-11-12 or 2023-12-11"), "{either}");
        // The day of the change to summer time is 23 hours long.
        check("2026-03-29", "2026-03-29T00:00:00", "2026-03-30T00:00:00");
        assert_eq!(DateEdge::Start.parse("9999", &now).unwrap().to_string(), "9998-12-31T23:00:00Z");
        for end in ["9999", "9999-12", "9999-12-31"] {
            assert_eq!(DateEdge::End.parse(end, &now).unwrap(), Timestamp::MAX, "{end}");
        }
        for bad in [
            "",
            "soon",
            "2026-13",
            "2026-02-30",
            "99999999999999999999d",
            "26",
            "2026-1",
            "31.2.2023",
            "13/13/2023",
            "1.2",
            "dec",
            "dec dec 2023",
            "24 dec",
            "32 dec 2023",
            "24.12.23",
            "last",
            "last dog",
            "1/2/3/2023",
        ] {
            assert!(DateEdge::Start.parse(bad, &now).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn ranges_of_days() {
        let now: Zoned = "2026-03-18T12:00:00+01:00[Europe/Zurich]".parse().unwrap();
        let check = |text: &str, from: &str, before: &str| {
            let range = DateRange::parse(text, &now).unwrap();
            let shown = |day: Option<Date>| day.map_or("-".to_string(), |day| day.to_string());
            assert_eq!((shown(range.from).as_str(), shown(range.before).as_str()), (from, before), "{text}");
            assert_eq!(DateRange::parse(&range.to_string(), &now).unwrap(), range);
        };
        check("2023-12", "2023-12-01", "2024-01-01");
        check("yesterday", "2026-03-17", "2026-03-18");
        check("7d", "2026-03-11", "2026-03-12");
        check(">=2026-01", "2026-01-01", "-");
        check(">2025", "2026-01-01", "-");
        check("< 2026-03-01", "-", "2026-03-01");
        check("<=2026-02", "-", "2026-03-01");
        check(">=7d", "2026-03-11", "-");
        check("2023-01..2023-06", "2023-01-01", "2023-07-01");
        check("2023..", "2023-01-01", "-");
        check("..2023-06", "-", "2023-07-01");
        check("9999", "9999-01-01", "-");
        for bad in ["", "..", ">", "soon", "2023-01..soon", "1/2/2023", ">=..2023"] {
            assert!(DateRange::parse(bad, &now).is_err(), "{bad:?}");
        }
        let covers = |text: &str| days_of_property(text, &now).map(|(first, end)| format!("{first} {}", end.unwrap()));
        assert_eq!(covers("2026-03").as_deref(), Some("2026-03-01 2026-04-01"));
        assert_eq!(covers(" 2026-03-05T23:30").as_deref(), Some("2026-03-05 2026-03-06"));
        assert_eq!(covers("2026-03-05T23:30:00Z").as_deref(), Some("2026-03-06 2026-03-07"), "the local day");
        assert_eq!(covers("7d"), None);
    }
}
