//! Formats dates as moment.js does, for Obsidian's daily notes: `YYYY-MM-DD`, `[Week] w`, `gggg/MM`.
//!
//! Names are in English. Literal text goes between brackets. Other letters that are not a token are an error, although
//! moment.js would output them, because in a file name that is usually a mistake.

use jiff::civil::Date;
use jiff::fmt::strtime;
use jiff::{ToSpan, Zoned};

use crate::error::{Error, ErrorKind, Result};

/// The maximum number of letters of a token.
const LONGEST_TOKEN: usize = 4;

/// Formats a moment.
///
/// # Errors
/// A letter that is not a token; an unclosed bracket.
pub(super) fn format(moment: &Zoned, format: &str) -> Result<String> {
    let mut written = String::new();
    let mut rest = format;
    while let Some(first) = rest.chars().next() {
        let text_of = |length| Some((token_text(moment, rest.get(..length)?)?, length));
        if let Some((text, length)) = (1..=LONGEST_TOKEN).rev().find_map(text_of) {
            written.push_str(&text);
            rest = &rest[length..];
        } else if first == '[' {
            let Some(end) = rest.find(']') else {
                return Err(wrong(format, "a [ is not closed"));
            };
            written.push_str(&rest[1..end]);
            rest = &rest[end + 1..];
        } else if first.is_ascii_alphabetic() {
            return Err(wrong(format, &format!("`{first}` is not a token")));
        } else {
            written.push(first);
            rest = &rest[first.len_utf8()..];
        }
    }
    Ok(written)
}

fn wrong(format: &str, why: &str) -> Error {
    Error::new(ErrorKind::Config, format!("the date format `{format}` cannot be used: {why}"))
        .with_remedy("use tokens such as YYYY-MM-DD, MMMM, dddd, ww, HH-mm, and put other letters between [ and ]")
}

/// Returns the text for a token; `None` if it is not a token.
fn token_text(moment: &Zoned, token: &str) -> Option<String> {
    let directive = match token {
        "YYYY" => "%Y",
        "Y" => "%-Y",
        "Q" => "%q",
        "MMMM" => "%B",
        "MMM" => "%b",
        "MM" => "%m",
        "M" => "%-m",
        "DDDD" => "%j",
        "DDD" => "%-j",
        "DD" => "%d",
        "D" => "%-d",
        "dddd" => "%A",
        "ddd" => "%a",
        "d" | "e" => "%w",
        "E" => "%u",
        "GGGG" => "%G",
        "WW" => "%V",
        "W" => "%-V",
        "HH" => "%H",
        "H" => "%-H",
        "hh" => "%I",
        "h" => "%-I",
        "mm" => "%M",
        "m" => "%-M",
        "ss" => "%S",
        "s" => "%-S",
        "SSS" => "%3f",
        "A" => "%p",
        "a" => "%P",
        "X" => "%s",
        "Z" => "%:z",
        "ZZ" => "%z",
        other => return token_without_directive(moment, other),
    };
    strtime::format(directive, moment).ok()
}

/// Handles the tokens for which strftime has no directive, or one that works only for some years.
fn token_without_directive(moment: &Zoned, token: &str) -> Option<String> {
    let of = |token| token_text(moment, token);
    let (week_year, week) = sunday_week(moment.date());
    let hour_from_1 = if moment.hour() == 0 { 24 } else { moment.hour() };
    Some(match token {
        "YY" => format!("{:02}", moment.year().rem_euclid(100)),
        "GG" => format!("{:02}", moment.date().iso_week_date().year().rem_euclid(100)),
        "gggg" => format!("{week_year:04}"),
        "gg" => format!("{:02}", week_year.rem_euclid(100)),
        "ww" => format!("{week:02}"),
        "w" => week.to_string(),
        "kk" => format!("{hour_from_1:02}"),
        "k" => hour_from_1.to_string(),
        "dd" => of("ddd")?[..2].to_string(),
        "x" => moment.timestamp().as_millisecond().to_string(),
        "Qo" | "Mo" | "Do" | "do" | "wo" | "Wo" => ordinal(of(&token[..1])?.parse().ok()?),
        _ => return None,
    })
}

fn ordinal(number: i32) -> String {
    let ending = match (number % 10, number % 100) {
        (1, rest) if rest != 11 => "st",
        (2, rest) if rest != 12 => "nd",
        (3, rest) if rest != 13 => "rd",
        _ => "th",
    };
    format!("{number}{ending}")
}

/// Returns year and week if weeks begin on Sunday and the first one contains January 1st, which is moment.js's own
/// default. A week belongs to the year of its Saturday.
fn sunday_week(date: Date) -> (i16, i16) {
    let saturday = date.saturating_add((6 - date.weekday().to_sunday_zero_offset()).days());
    (saturday.year(), (saturday.day_of_year() - 1) / 7 + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(moment: &str) -> Zoned {
        moment.parse().unwrap()
    }

    #[test]
    fn tokens() {
        fn check(text: &str, expected: &str) {
            let moment = at("2026-03-02T15:04:09+01:00[Europe/Zurich]");
            assert_eq!(format(&moment, text).unwrap(), expected, "{text}");
        }
        check("YYYY-MM-DD", "2026-03-02");
        check("YYYY/MM/DD dddd", "2026/03/02 Monday");
        check("dddd, MMMM Do YYYY", "Monday, March 2nd 2026");
        check("[Week] w, gggg", "Week 10, 2026");
        check("GGGG-[W]WW", "2026-W10");
        check("YY.M.D ddd dd d E", "26.3.2 Mon Mo 1 1");
        check("HH:mm:ss h A a kk", "15:04:09 3 PM pm 15");
        check("DDDD DDD Q Qo", "061 61 1 1st");
        check("Z ZZ", "+01:00 +0100");
        check("日記 YYYY年", "日記 2026年");
        check("", "");
    }

    #[test]
    fn weeks_at_the_turn_of_the_year() {
        fn check(day: &str, expected: &str) {
            let moment = at(&format!("{day}T12:00:00+00:00[UTC]"));
            assert_eq!(format(&moment, "gggg-ww GGGG-WW").unwrap(), expected, "{day}");
        }
        check("2026-12-26", "2026-52 2026-52");
        check("2026-12-27", "2027-01 2026-52");
        check("2027-01-01", "2027-01 2026-53");
        check("2023-01-01", "2023-01 2022-52");
        check("2026-01-01", "2026-01 2026-01");
    }

    #[test]
    fn ordinals() {
        let texts: Vec<String> = [1, 2, 3, 4, 11, 12, 13, 21, 22, 23, 101, 111].into_iter().map(ordinal).collect();
        assert_eq!(texts.join(" "), "1st 2nd 3rd 4th 11th 12th 13th 21st 22nd 23rd 101st 111th");
    }

    #[test]
    fn unknown_tokens_are_errors() {
        let moment = at("2026-03-02T15:04:09+01:00[Europe/Zurich]");
        for (text, says) in [("YYYY-MM-DD of", "`o`"), ("[open", "not closed"), ("LL", "`L`")] {
            let error = format(&moment, text).unwrap_err().to_string();
            assert!(error.contains(says), "{error}");
        }
    }
}
