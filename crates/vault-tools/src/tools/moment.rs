//! Formats dates as moment.js does, for Obsidian's daily notes: `YYYY-MM-DD`, `[Week] w`, `gggg/MM`.
//!
//! Names are English. Literal text goes between brackets. Other letters that are not a token are an error, while
//! moment.js would output them: in a file name that is usually a mistake.

use jiff::Zoned;
use jiff::civil::{Date, Weekday};

use crate::error::{Error, ErrorKind, Result};

/// Tokens; longer ones stand before their prefixes.
const TOKENS: [&str; 45] = [
    "YYYY", "GGGG", "gggg", "MMMM", "DDDD", "dddd", "MMM", "DDD", "ddd", "SSS", "YY", "Qo", "MM", "Mo", "DD", "Do",
    "dd", "do", "ww", "wo", "WW", "Wo", "GG", "gg", "HH", "hh", "kk", "mm", "ss", "ZZ", "Y", "Q", "M", "D", "d", "w",
    "W", "E", "e", "H", "h", "k", "m", "s", "Z",
];

const MONTHS: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];

const DAYS: [&str; 7] = ["Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"];

/// Formats a moment.
///
/// # Errors
/// A letter that is not a token; a bracket that is not closed.
pub(super) fn format(moment: &Zoned, format: &str) -> Result<String> {
    let mut written = String::new();
    let mut rest = format;
    while let Some(first) = rest.chars().next() {
        if first == '[' {
            let Some(end) = rest.find(']') else {
                return Err(wrong(format, "a [ is not closed"));
            };
            written.push_str(&rest[1..end]);
            rest = &rest[end + 1..];
        } else if let Some(token) = TOKENS.into_iter().find(|token| rest.starts_with(token)) {
            written.push_str(&token_text(moment, token));
            rest = &rest[token.len()..];
        } else if let Some(word) = ["A", "a", "X", "x"].into_iter().find(|token| rest.starts_with(token)) {
            written.push_str(&token_text(moment, word));
            rest = &rest[1..];
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

fn token_text(moment: &Zoned, token: &str) -> String {
    let date = moment.date();
    let (year, month, day) = (date.year(), date.month(), date.day());
    let quarter = (month - 1) / 3 + 1;
    let day_of_year = date.day_of_year();
    let weekday = date.weekday().to_sunday_zero_offset();
    let iso = date.iso_week_date();
    let (week_year, week) = sunday_week(date);
    let (hour, minute, second) = (moment.hour(), moment.minute(), moment.second());
    let hour_of_12 = if hour % 12 == 0 { 12 } else { hour % 12 };
    let offset = moment.offset().seconds();
    let zone = |colon: &str| {
        let sign = if offset < 0 { '-' } else { '+' };
        format!("{sign}{:02}{colon}{:02}", offset.abs() / 3600, offset.abs() / 60 % 60)
    };
    match token {
        "YYYY" => format!("{year:04}"),
        "YY" => format!("{:02}", year.rem_euclid(100)),
        "Y" => year.to_string(),
        "Q" => quarter.to_string(),
        "Qo" => ordinal(quarter.into()),
        "MMMM" => MONTHS[usize::from(month.unsigned_abs()) - 1].to_string(),
        "MMM" => MONTHS[usize::from(month.unsigned_abs()) - 1][..3].to_string(),
        "MM" => format!("{month:02}"),
        "Mo" => ordinal(month.into()),
        "M" => month.to_string(),
        "DDDD" => format!("{day_of_year:03}"),
        "DDD" => day_of_year.to_string(),
        "DD" => format!("{day:02}"),
        "Do" => ordinal(day.into()),
        "D" => day.to_string(),
        "dddd" => DAYS[usize::from(weekday.unsigned_abs())].to_string(),
        "ddd" => DAYS[usize::from(weekday.unsigned_abs())][..3].to_string(),
        "dd" => DAYS[usize::from(weekday.unsigned_abs())][..2].to_string(),
        "do" => ordinal(weekday.into()),
        "d" | "e" => weekday.to_string(),
        "E" => date.weekday().to_monday_one_offset().to_string(),
        "ww" => format!("{week:02}"),
        "wo" => ordinal(week),
        "w" => week.to_string(),
        "gggg" => format!("{week_year:04}"),
        "gg" => format!("{:02}", week_year.rem_euclid(100)),
        "WW" => format!("{:02}", iso.week()),
        "Wo" => ordinal(iso.week().into()),
        "W" => iso.week().to_string(),
        "GGGG" => format!("{:04}", iso.year()),
        "GG" => format!("{:02}", iso.year().rem_euclid(100)),
        "HH" => format!("{hour:02}"),
        "H" => hour.to_string(),
        "hh" => format!("{hour_of_12:02}"),
        "h" => hour_of_12.to_string(),
        "kk" => format!("{:02}", if hour == 0 { 24 } else { hour }),
        "k" => (if hour == 0 { 24 } else { hour }).to_string(),
        "mm" => format!("{minute:02}"),
        "m" => minute.to_string(),
        "ss" => format!("{second:02}"),
        "s" => second.to_string(),
        "SSS" => format!("{:03}", moment.millisecond()),
        "A" => if hour < 12 { "AM" } else { "PM" }.to_string(),
        "a" => if hour < 12 { "am" } else { "pm" }.to_string(),
        "X" => moment.timestamp().as_second().to_string(),
        "x" => moment.timestamp().as_millisecond().to_string(),
        "Z" => zone(":"),
        _ => zone(""),
    }
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

/// Year and week where weeks begin on Sunday and the first one holds January 1st: moment.js's own default.
fn sunday_week(date: Date) -> (i32, i32) {
    let week_of = |year: i16| -> Option<i32> {
        let first = Date::new(year, 1, 1).ok()?;
        let lead = i32::from(first.weekday().since(Weekday::Sunday));
        let days = (date - first).get_days();
        let number = (days + lead).div_euclid(7) + 1;
        (number >= 1).then_some(number)
    };
    let year = date.year();
    // The last days of December belong to the week that holds January 1st.
    match year.checked_add(1).and_then(week_of) {
        Some(week) => (i32::from(year) + 1, week),
        None => (i32::from(year), week_of(year).unwrap_or(1)),
    }
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
    fn what_is_no_token_is_an_error() {
        let moment = at("2026-03-02T15:04:09+01:00[Europe/Zurich]");
        for (text, says) in [("YYYY-MM-DD of", "`o`"), ("[open", "not closed"), ("LL", "`L`")] {
            let error = format(&moment, text).unwrap_err().to_string();
            assert!(error.contains(says), "{error}");
        }
    }
}
