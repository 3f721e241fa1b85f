//! Words that stand side by side, as they were typed, outrank the same words scattered.

use vault_index::{Mode, Query};

use crate::vault::Vault;

#[test]
fn a_phrase_and_an_identifier_come_first_without_quotes() {
    let scattered = "max is a retry that we count. The count of a max retry is a retry count of the max.";
    let vault = Vault::new(&format!(
        "//- Retry notes.md
        # Retry count
        {scattered}
        //- Settings.md
        # Settings of the client
        The client of the service has many settings, and the one that people ask for most is max_retry_count, which is
        three unless somebody has set another one in the file of the service, where also the time between two of them
        can be set, and how long the client waits for the service before it gives up and tells the person at the desk.
        //- Dates.md
        # Days
        On 01 05 we wrote 2024 down, 05 times 01 and 2024 again.
        //- Log.md
        # Log
        A long day at the river with many birds and the usual lunch under the old willow beside the mill, of which
        nothing is left to tell but that it was 2024-05-01 and that the rain came from the west in the afternoon.
        //- Opposites.md
        # The house
        The house of the year is of the kind that a year has.
        //- Other.md
        # Other
        A year of the house."
    ));
    vault.sync();
    let index = vault.index();
    let first = |text: &str| {
        let query = Query::literal(text).mode(Mode::Lexical);
        index.search(&query).unwrap().results[0].path.to_string()
    };
    assert_eq!(first("max_retry_count"), "Settings.md");
    assert_eq!(first("max retry count"), "Settings.md");
    assert_eq!(first("2024-05-01"), "Log.md");
    assert_eq!(first("what is max_retry_count for"), "Settings.md");
    // Of a run of stop words nothing is earned.
    let scores = |text: &str| {
        let query = Query::literal(text).mode(Mode::Lexical);
        let results = index.search(&query).unwrap().results;
        results.into_iter().map(|hit| (hit.path.to_string(), hit.score)).collect::<Vec<_>>()
    };
    assert_eq!(scores("is of the house"), scores("the is house of"));
    // Names first, and nothing else in their band.
    assert!(scores("max retry count")[0].1 <= 0.9);
}

/// The one note that has a phrase is first, also where another one has its words more often and says little else.
#[test]
fn a_rare_phrase_outweighs_meaning() {
    let long = "They measured the height of the dam, the slope of the meadow and the width of the road. ".repeat(4);
    let vault = Vault::new("//- Scattered.md\nMill and wheel, wheel and mill, wheel: old, old.\n");
    vault.write("Phrase.md", format!("{long}Beside it the old mill wheel turned. {long}\n"));
    (0..20).for_each(|n| vault.write(&format!("Day {n}.md"), format!("On day {n} it rained.\n")));
    vault.sync();
    let hits = vault.index().search(&Query::literal("old mill wheel")).unwrap().results;
    assert_eq!(hits[0].path.as_str(), "Phrase.md", "{:?} {:?}", hits[0].why, hits[1].why);
    assert_eq!(hits[0].why.least, Some(hits[0].score));
    assert!(hits[0].score < 0.8 && hits[1].why.least.is_none());
}
