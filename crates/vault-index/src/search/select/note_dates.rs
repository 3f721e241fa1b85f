//! The date of a note, from a property or its name.

use std::collections::HashMap;

use jiff::Zoned;
use jiff::civil::Date;

use crate::error::Result;
use crate::path::{FileId, VaultPath};
use crate::search::query::dates::{days_of_property, period, written_day, written_month};
use crate::store::ReadStore;

/// The first day of a note's date, and the day after the last.
pub(super) type Days = (Date, Option<Date>);

/// The dates of all notes that have one: by the property `date`, else by the name of the file, else by the property
/// `created`. Times with a zone are converted to the local day.
pub(super) fn days_of_notes(store: &dyn ReadStore, now: &Zoned) -> Result<HashMap<FileId, Days>> {
    let mut days: HashMap<FileId, Days> = HashMap::new();
    let mut add = |note, of: Option<Days>| {
        if let Some(of) = of {
            days.entry(note).or_insert(of);
        }
    };
    let of_property = |key| store.property_values(key);
    of_property("date")?.into_iter().for_each(|(note, value)| add(note, days_of_property(&value.text, now)));
    store.notes()?.into_iter().for_each(|(note, path, _)| add(note, days_in_name(&path)));
    of_property("created")?.into_iter().for_each(|(note, value)| add(note, days_of_property(&value.text, now)));
    Ok(days)
}

/// The days in the name of a file: the day in it, else a week, month or quarter (`2023-W05`, `2023-02 Monthly`,
/// `Review 2023-Q1`), else the year or month that is the whole name (`2023`, `July 2022`).
fn days_in_name(path: &VaultPath) -> Option<Days> {
    if let Some(day) = day_in_name(path) {
        return Some((day, day.tomorrow().ok()));
    }
    let name = path.stem().to_lowercase();
    let is_year = |text: &str| text.len() == 4;
    let is_plausible = |days: &Days| (1800..2200).contains(&days.0.year());
    let mut periods = name.split([' ', '_', ',', '(', ')']).filter(|word| !is_year(word)).filter_map(period);
    match (periods.next(), periods.next()) {
        (Some(only), None) => Some(only),
        (Some(_), Some(_)) => None,
        (None, _) => Some(name.as_str()).filter(|name| is_year(name)).and_then(period).or_else(|| written_month(&name)),
    }
    .filter(is_plausible)
}

/// The day in the name of a file: `2022-07-24`, `2022_07_24`, `2022.07.24`, `20220724`, and the last with a time of
/// four or six digits; or the day that the whole name means to [`written_day`]. `None` if there is no day, or more than
/// one.
fn day_in_name(path: &VaultPath) -> Option<Date> {
    let name = path.stem();
    let bytes = name.as_bytes();
    let mut found = None;
    let mut at = 0;
    while at < bytes.len() {
        let digits = bytes[at..].iter().take_while(|byte| byte.is_ascii_digit()).count();
        let (day, length) = match digits {
            0 => (None, 1),
            4 => separated(&bytes[at..]).map_or((None, 4), |day| (Some(day), 10)),
            8 | 12 | 14 => (date(&bytes[at..at + 4], &bytes[at + 4..at + 6], &bytes[at + 6..at + 8]), digits),
            _ => (None, digits),
        };
        if let Some(day) = day
            && found.replace(day).is_some_and(|other| other != day)
        {
            return None;
        }
        at += length;
    }
    found.or_else(|| written_day(name))
}

/// A day at the start of a text, with the same separator twice and no digit after it.
fn separated(text: &[u8]) -> Option<Date> {
    let separator = *text.get(4)?;
    let is_date = matches!(separator, b'-' | b'_' | b'.') && *text.get(7)? == separator;
    let ends = !text.get(10).is_some_and(u8::is_ascii_digit);
    if is_date && ends { date(&text[..4], &text[5..7], text.get(8..10)?) } else { None }
}

fn date(year: &[u8], month: &[u8], day: &[u8]) -> Option<Date> {
    let number = |digits: &[u8]| {
        let is_number = digits.iter().all(u8::is_ascii_digit);
        std::str::from_utf8(digits).ok().filter(|_| is_number)?.parse::<i16>().ok()
    };
    // Other numbers of eight digits mostly start differently.
    let year = number(year).filter(|year| (1800..=2199).contains(year))?;
    Date::new(year, i8::try_from(number(month)?).ok()?, i8::try_from(number(day)?).ok()?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn periods_in_names() {
        for (name, expected) in [
            ("2023-02 Monthly", Some("2023-02-01 2023-03-01")),
            ("Monthly 2023-12", Some("2023-12-01 2024-01-01")),
            ("2023-W05", Some("2023-01-30 2023-02-06")),
            ("2023-W5 Review", Some("2023-01-30 2023-02-06")),
            ("2023-Q1", Some("2023-01-01 2023-04-01")),
            ("2023", Some("2023-01-01 2024-01-01")),
            ("July 2022", Some("2022-07-01 2022-08-01")),
            ("2022-07-24", Some("2022-07-24 2022-07-25")),
            ("2023-02 to 2023-04", None),
            ("2023-13", None),
            ("2023-W54", None),
            ("Plans for 2023", None),
            ("1234", None),
            ("Sunday", None),
        ] {
            let days = days_in_name(&VaultPath::new(&format!("Log/{name}.md")).unwrap());
            let days = days.map(|(first, end)| format!("{first} {}", end.unwrap()));
            assert_eq!(days.as_deref(), expected, "{name}");
        }
    }

    #[test]
    fn days_in_names() {
        fn check(name: &str, expected: Option<&str>) {
            let day = day_in_name(&VaultPath::new(name).unwrap());
            assert_eq!(day.map(|day| day.to_string()).as_deref(), expected, "{name}");
        }
        check("Daily/2022-07-24.md", Some("2022-07-24"));
        check("2022-07-24 Sunday.md", Some("2022-07-24"));
        check("Meeting with Ann 2022_07_24.md", Some("2022-07-24"));
        check("2022.07.24.md", Some("2022-07-24"));
        check("20220724.md", Some("2022-07-24"));
        check("202207241530 Zettel.md", Some("2022-07-24"));
        check("20220724153012.md", Some("2022-07-24"));
        check("2022-07-24 again 2022-07-24.md", Some("2022-07-24"));
        check("24.7.2022.md", Some("2022-07-24"));
        check("24 Jul 2022.md", Some("2022-07-24"));
        check("Sunday, July 24th, 2022.md", Some("2022-07-24"));
        check("July 24, 2022 Sunday.md", Some("2022-07-24"));
        check("24-07-2022.md", None);
        check("July 2022.md", None);
        check("Sunday.md", None);
        check("Call on July 24, 2022.md", None);
        check("2022-07-24 to 2022-07-30.md", None);
        check("2022-07.md", None);
        check("2022-13-24.md", None);
        check("2022-07-241.md", None);
        check("2022-07_24.md", None);
        check("12022-07-24.md", None);
        check("00001234.md", None);
        check("2022-07-24/notes.md", None);
        check("日2022-07-24日.md", Some("2022-07-24"));
    }
}
