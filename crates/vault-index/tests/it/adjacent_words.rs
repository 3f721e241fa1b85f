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

/// A vault with programs' names, and notes about the same words.
fn programs() -> Vault {
    let vault = Vault::new(
        "//- Normalized device coordinate.md
        A device coordinate of a device, for each device.
        //- Device drivers.md
        A device driver drives a device.
        //- Kernels.md
        Functions on the other side are marked with `__global__` or `__device__`.
        //- Copying.md
        Copy a file if it is newer; a copy is a copy if you copy all of it.
        //- Algorithms.md
        The elements for which a predicate is true go through `std::copy_if` into another container.
        //- Init systems.md
        An init system has an init process, and init is all.
        //- Classes.md
        What `__init__` does when an object is made; `__all__` is what a module exports.
        //- Counts.md
        The max of a retry is a count; count each retry up to the max.
        //- Client.md
        The client reads max_retry_count from its file.
        //- Frontend.md
        The hook returns pageNumber and renders again.
        //- Pages.md
        The number of each page is on the page; page and number, number and page.",
    );
    (0..20).for_each(|n| vault.write(&format!("Day {n}.md"), format!("On day {n} all of it was rain.\n")));
    vault.sync();
    vault
}

#[test]
fn an_identifier_is_found_by_its_underscores() {
    let vault = programs();
    let index = vault.index();
    for mode in [Mode::Lexical, Mode::Hybrid] {
        let first = |text: &str| {
            let hits = index.search(&Query::literal(text).mode(mode)).unwrap().results;
            (hits[0].path.stem().to_owned(), hits[0].score)
        };
        for (text, note) in [
            ("__device__", "Kernels"),
            ("__DEVICE__", "Kernels"),
            ("what is __device__", "Kernels"),
            ("copy_if", "Algorithms"),
            ("std::copy_if", "Algorithms"),
            ("__init__", "Classes"),
            ("__all__", "Classes"),
            ("max_retry_count", "Client"),
        ] {
            let (found, score) = first(text);
            assert!(found == note && score <= 0.8, "{text} ({mode:?}): {found} {score}");
        }
        // The same words without underscores are those of names.
        assert_eq!(first("device").0, "Device drivers");
        assert_eq!(first("copy if").0, "Copying");
    }
}

#[test]
fn a_name_in_a_program_is_found_in_either_form() {
    let vault = programs();
    let first = |text: &str| {
        let hits = vault.index().search(&Query::literal(text).mode(Mode::Lexical)).unwrap();
        let read = hits.substitutions.into_iter().map(|read| (read.word, read.read_as));
        (hits.results[0].path.stem().to_owned(), read.collect::<Vec<_>>())
    };
    assert_eq!(first("page_number"), ("Frontend".into(), vec![]));
    assert_eq!(first("pageNumber"), ("Frontend".into(), vec![]));
    let read = vec![("maxretrycount".to_owned(), ["max", "retry", "count"].map(String::from).to_vec())];
    assert_eq!(first("maxRetryCount"), ("Client".into(), read));
    // Where a part is in no note, the word is not read in parts.
    assert_eq!(vault.index().search(&Query::literal("maxQuetzalCount")).unwrap().unknown_words, ["maxQuetzalCount"]);
}
