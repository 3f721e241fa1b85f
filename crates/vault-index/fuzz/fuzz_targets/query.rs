//! Any text as a query, a date or a condition is parsed or rejected with a message. Seeds: typical input.

#![no_main]

use jiff::Timestamp;
use jiff::tz::TimeZone;
use libfuzzer_sys::fuzz_target;
use vault_index::{DateEdge, ModelName, PropertyTest, Query};

fuzz_target!(|bytes: &[u8]| {
    let text = String::from_utf8_lossy(bytes);
    match Query::parse(&text) {
        Ok(query) => {
            assert_eq!(query.text, query.text.trim());
            if let Some(condition) = query.condition {
                let again = Query::parse(&condition.to_string()).expect("a condition is read as it is written");
                assert_eq!(again.condition, Some(condition));
            }
        }
        Err(error) => assert!(!error.to_string().is_empty()),
    }
    let literal = Query::parse(&format!("-- {text}")).expect("nothing is syntax behind --");
    assert_eq!(literal.text, text.trim());

    // The first and last timestamps, and one just before daylight saving time starts in Berlin.
    let zone = TimeZone::posix("CET-1CEST,M3.5.0,M10.5.0/3").unwrap();
    for second in [Timestamp::MIN.as_second(), 1_774_746_000, Timestamp::MAX.as_second()] {
        let now = Timestamp::from_second(second).unwrap().to_zoned(zone.clone());
        let [start, end] = [DateEdge::Start, DateEdge::End].map(|edge| edge.parse(&text, &now));
        if let (Ok(start), Ok(end)) = (start, end) {
            assert!(start <= end, "a day begins before it ends");
        }
    }
    if let Ok(test) = text.parse::<PropertyTest>() {
        assert!(!test.key.is_empty() && test.key.trim() == test.key);
    }
    if let Ok(name) = text.parse::<ModelName>() {
        assert_eq!(name.to_string().parse().ok(), Some(name), "a name is read as it is written");
    }
});
