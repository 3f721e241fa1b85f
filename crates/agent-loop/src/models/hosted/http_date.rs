//! The one form of date that HTTP headers are written in: `Sun, 06 Nov 1994 08:49:37 GMT`.

const MONTHS: [&str; 12] = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
const DAYS_BEFORE: [i64; 12] = [0, 31, 59, 90, 120, 151, 181, 212, 243, 273, 304, 334];

/// Seconds since 1970; `None` for any other form.
pub(super) fn seconds(date: &str) -> Option<i64> {
    let (_, rest) = date.trim().split_once(", ")?;
    let words: Vec<&str> = rest.split(' ').collect();
    let [day, month, year, time, "GMT"] = words[..] else { return None };
    let number = |text: &str, most: i64| text.parse::<u16>().ok().map(i64::from).filter(|number| *number <= most);
    let (day, year) = (number(day, 31)?, number(year, 9_999).filter(|year| *year >= 1970)?);
    let month = MONTHS.iter().position(|name| *name == month)?;
    let clock: Vec<&str> = time.split(':').collect();
    let [hour, minute, second] = clock[..] else { return None };
    let second = number(hour, 23)? * 3_600 + number(minute, 59)? * 60 + number(second, 60)?;
    // Of the years up to the last whole one before this day's leap day.
    let past = if month < 2 { year - 1 } else { year };
    let leap_days = |year: i64| year / 4 - year / 100 + year / 400;
    let days = (year - 1970) * 365 + leap_days(past) - leap_days(1969) + DAYS_BEFORE[month] + day - 1;
    Some(days * 86_400 + second)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_read() {
        for (date, expected) in [
            ("Thu, 01 Jan 1970 00:00:00 GMT", Some(0)),
            ("Sun, 06 Nov 1994 08:49:37 GMT", Some(784_111_777)),
            ("Tue, 29 Feb 2000 00:00:00 GMT", Some(951_782_400)),
            ("Wed, 01 Mar 2000 00:00:00 GMT", Some(951_868_800)),
            ("Sun, 28 Feb 2100 00:00:00 GMT", Some(4_107_456_000)),
            ("Mon, 01 Mar 2100 00:00:00 GMT", Some(4_107_542_400)),
            ("Sun, 06 Nov 1994 08:49:37 CET", None),
            ("Sunday, 06-Nov-94 08:49:37 GMT", None),
            ("Sun, 06 Nov 1994 24:00:00 GMT", None),
            ("soon", None),
        ] {
            assert_eq!(seconds(date), expected, "{date}");
        }
    }
}
