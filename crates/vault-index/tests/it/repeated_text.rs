//! Text that many notes repeat, and links to other notes: a note is found by its own name and words, not by what others
//! have, too.

use vault_index::{Hit, Mode, NameMatch, Query};

use crate::vault::Vault;

fn found(vault: &Vault, query: &str, mode: Mode) -> Vec<Hit> {
    vault.index().search(&Query::parse(query).unwrap().mode(mode)).unwrap().results
}

const TOPICS: [&str; 8] = ["deadlock", "paging", "cache", "scheduler", "mutex", "pipe", "signal", "socket"];

#[test]
fn a_heading_of_many_notes_is_no_name_of_them() {
    let mut files = String::from("//- Other/Definition.md\n# What a definition is\n\nIt says what a word means.\n");
    for topic in TOPICS {
        files += &format!("//- {topic}.md\n# Definition\n\nOne of the things that a system has: see {topic}s.\n");
    }
    let vault = Vault::new(&files);
    vault.sync();
    for mode in [Mode::Hybrid, Mode::Lexical] {
        for topic in TOPICS {
            let first = &found(&vault, topic, mode)[0];
            assert_eq!((first.path.stem(), first.title.as_str()), (topic, topic));
        }
        let hits = found(&vault, "definition", mode);
        let named: Vec<&str> =
            hits.iter().filter(|hit| hit.why.name == Some(NameMatch::Equal)).map(|hit| hit.path.stem()).collect();
        assert_eq!(named, ["Definition"], "{mode:?}");
        assert_eq!(hits[0].path.as_str(), "Other/Definition.md");
    }
    assert_eq!(vault.dump(), vault.dump_of_rebuild());

    // Of few notes it is one.
    for topic in &TOPICS[2..] {
        std::fs::remove_file(vault.root().join(format!("{topic}.md"))).unwrap();
    }
    vault.sync();
    let hits = found(&vault, "paging", Mode::Hybrid);
    assert_eq!(hits[0].title, "Definition");
    assert_eq!(found(&vault, "definition", Mode::Lexical)[1].why.name, Some(NameMatch::Equal));
}

#[test]
fn a_drawing_is_called_as_its_file_and_its_data_are_no_words() {
    let data = "N4KAkARALgngDgUwgLgAQQQDwMYEMA2AlgCYBOuA7hADTgQBuCpAzoQPYB2KqATLZMzYBXUtiRoIACyhQ4zZAHoFAc0JRJQgEYA6bGwC2CgF7N6hbEcK4OCtptbErHALRY8RMpWdx8Q1TdIEfARcZgRmBShcZQUebR4ABho6IIR9BA4oZm4AbXAwUDAYCRJU3TAAGSg ".repeat(40);
    let drawing = format!(
        "---\nexcalidraw-plugin: parsed\n---\n# Excalidraw Data\n\n## Text Elements\nthe harbour and a guillemot ^a1\n\n%%\n## Drawing\n```compressed-json\n{data}\n```\n%%\n"
    );
    let vault = Vault::new(
        "//- Birds.md\n# Birds\n\nA list: the guillemot, the heron and many others that live at sea, in harbours or inland.\n",
    );
    vault.write("Sketch.md", drawing);
    vault.sync();
    let hits = found(&vault, "harbour guillemot", Mode::Lexical);
    assert_eq!((hits[0].path.as_str(), hits[0].title.as_str()), ("Sketch.md", "Sketch"));
    assert!(found(&vault, "N4KAkARALgngDgUwgLgAQQQDwMYEMA2AlgCYBOuA7hADTgQBuCpAzoQPYB2KqATLZMzYBXUtiRoIACyhQ4zZAHoFAc0JRJQgEYA6bGwC2CgF7N6hbEcK4OCtptbErHALRY8RMpWdx8Q1TdIEfARcZgRmBShcZQUebR4ABho6IIR9BA4oZm4AbXAwUDAYCRJU3TAAGSg", Mode::Lexical).is_empty());
}

/// A passage of many notes earns half; what their titles, tags, folders and properties earn is their own.
#[test]
fn what_a_note_earns_by_itself_is_not_halved() {
    let mut files = String::new();
    for topic in TOPICS {
        files += &format!("//- Course/{topic}/Summary.md\n---\ntags: [{topic}]\n---\nTo be written: the summary.\n");
        files += &format!("//- Course/{topic}/Exercise.md\nThe {topic} is asked about, and what it is good for.\n");
    }
    let vault = Vault::new(&files);
    vault.sync();
    let lexical = |query: &str, path: &str| {
        let hits = found(&vault, query, Mode::Lexical);
        hits.into_iter().find(|hit| hit.path.as_str() == path).map(|hit| (hit.why.lexical, hit.why.repeated))
    };
    let summary = "Course/deadlock/Summary.md";
    // The words of the passage itself: half of what the one note that many do not repeat would earn.
    let (of_text, repeated) = lexical("written", summary).unwrap();
    assert!(of_text < 0.5 && repeated == Some(8), "{of_text}");
    // Those of its tag and folder: all.
    let (of_note, _) = lexical("deadlock", summary).unwrap();
    assert!(of_note > 0.5, "{of_note}");
}

#[test]
fn a_note_whose_name_stands_in_a_question_comes_before_lists_that_mention_it() {
    let mut files = String::from("//- Plugins/Kanban.md\nBoards with cards and columns, kept in a note.\n");
    files += "//- Kanban board.md\nOf cards that are moved.\n";
    for n in 0..3 {
        files += &format!("//- Lists/Community {n}.md\nWhat people ask: the best plugin, for tasks, a calendar, ");
        files += "a table, an outline, a kanban, a mind map, a clock or the weather.\n";
    }
    for n in 0..30 {
        files += &format!("//- Days/Day {n}.md\nToday the best plugin was number {n}.\n");
    }
    let vault = Vault::new(&files);
    vault.sync();
    for mode in [Mode::Hybrid, Mode::Lexical] {
        let hits = found(&vault, "best plugin for kanban", mode);
        assert_eq!(hits[0].path.as_str(), "Plugins/Kanban.md", "{mode:?}");
        assert!(hits[0].score < 0.8, "no name is the whole query");
        assert_eq!(found(&vault, "which kanban board should I take", mode)[0].path.as_str(), "Kanban board.md");
    }
}

/// Each note ends with a line that leads to its own page.
#[test]
fn a_line_with_an_address_of_its_own_in_each_note_finds_none_of_them_first() {
    let subjects =
        ["tulips", "ferns", "roses", "mosses", "lilies", "daisies", "orchids", "poppies", "violets", "asters"];
    let mut files = String::new();
    for subject in subjects {
        let body = format!("The {subject} want light soil and water each morning, and no wind. ").repeat(30);
        files += &format!("//- Plants/{subject}.md\n# About {subject}\n\n{body}\n\n## More\n\n");
        files += &format!(
            "[Edit this page on GitHub from your phone](https://github.com/x/garden/edit/main/{subject}.md)\n"
        );
    }
    files += "//- Devices.md\nA phone rings. What a phone is made of, and how long it lasts until it is thrown away.\n";
    files +=
        "//- Versions.md\nGitHub keeps what was committed, and shows each change; much of it is done by machines.\n";
    files += "//- Prose.md\nEditing takes longer than writing: read the page aloud, and cut.\n";
    let vault = Vault::new(&files);
    vault.sync();
    for mode in [Mode::Hybrid, Mode::Lexical] {
        for (query, first) in [("phone", "Devices.md"), ("github", "Versions.md"), ("editing a page", "Prose.md")] {
            assert_eq!(found(&vault, query, mode)[0].path.as_str(), first, "{query} {mode:?}");
        }
    }
}

#[test]
fn notes_are_alike_in_what_they_say_not_in_their_template() {
    let day = |n: usize, text: &str| {
        format!(
            "//- Daily/2024-01-{n:02}.md\n## How the day began\n- [ ] drink a glass of water\n- [ ] ten minutes of stretching\n- [ ] read the plan of the week\n\n## What happened\n{text}\n\n## Gratitude\nThree good things of this day, however small they are:\n1.\n2.\n3.\n"
        )
    };
    let happened = [
        "New skis on deep snow, down the slope.",
        "Wrote the report on taxes, and sent it to the office.",
        "The baker had no bread; soup for dinner.",
        "Fixed the bicycle chain and oiled it.",
        "A long call with the insurance company.",
        "Planted onions behind the house.",
        "Heard a concert for two violins.",
    ];
    let mut files: String = happened.iter().zip(1..).map(|(text, n)| day(n, text)).collect();
    files += "//- Skiing.md\nHow to wax skis, and which snow suits which slope: deep snow wants wide skis.\n";
    files += "//- Taxes.md\nThe report on taxes goes to the office in May, with all receipts.\n";
    let vault = Vault::new(&files);
    vault.sync();
    let first = |note: &str| {
        let hits = vault.index().search(&Query::like(note).min_score(0.0)).unwrap().results;
        hits[0].path.to_string()
    };
    assert_eq!(first("Daily/2024-01-01"), "Skiing.md");
    assert_eq!(first("Daily/2024-01-02"), "Taxes.md");
    // All template: as it is.
    vault.write("Daily/2024-01-08.md", day(8, "").split_once('\n').unwrap().1);
    vault.sync();
    assert!(first("Daily/2024-01-08").starts_with("Daily/"));
}

#[test]
fn prose_comes_before_a_list_of_links_with_the_same_words() {
    let titles = ["Pruning apple trees", "Frost in the orchard", "When sap begins to rise", "Grafting in early spring"];
    let prose: String = titles.iter().map(|title| format!("- {title}\n")).collect();
    let links: String = titles.iter().map(|title| format!("- [[{title}]]\n")).collect();
    let markdown: String = titles.iter().map(|title| format!("- [{title}]({})\n", title.replace(' ', "%20"))).collect();
    let vault = Vault::new("");
    for (path, list) in [("A/Links.md", links), ("A/Markdown links.md", markdown), ("B/Prose.md", prose)] {
        vault.write(path, format!("# Orchard\n\n## Reading\n\n{list}"));
    }
    vault.sync();
    for query in ["pruning trees", "frost in an early spring", "grafting apple"] {
        let hits = found(&vault, query, Mode::Semantic);
        assert_eq!(
            hits[0].path.as_str(),
            "B/Prose.md",
            "{query}: {:?}",
            hits.iter().map(|hit| hit.score).collect::<Vec<_>>()
        );
    }
    assert_eq!(vault.dump(), vault.dump_of_rebuild());
}
