//! Laws of names: a note whose name was typed is first, and what is nearly its name comes before what is in texts.

use vault_index::{Filter, Grouping, Hit, Mode, NameMatch, Query};

use crate::vault::Vault;

const MODES: [Mode; 3] = [Mode::Hybrid, Mode::Lexical, Mode::Semantic];

fn found(vault: &Vault, query: &Query) -> Vec<Hit> {
    vault.index().search(query).unwrap().results
}

fn paths(hits: &[Hit]) -> Vec<&str> {
    hits.iter().map(|hit| hit.path.as_str()).collect()
}

fn equal(hits: &[Hit]) -> Vec<&str> {
    hits.iter().filter(|hit| hit.why.name == Some(NameMatch::Equal)).map(|hit| hit.path.as_str()).collect()
}

/// Names of many kinds, each of which stands more often in another note.
fn named() -> Vault {
    let vault = Vault::new(
        "//- Plugins/QuickAdd.md
        Captures a thought.
        //- Home.md
        Where to begin.
        //- Journal/2022-07-24.md
        Rain all day.
        //- Journal/2023-07-24.md
        As on 2022-07-24: 2022-07-24 was a Sunday.
        //- Lists/Talks.md
        # Quick add, add quick, home, home, home
        Home of the quick: add quick add. Home, c, c, c++, c#. Calendar, calendar, malus.
        //- Code/C.md
        A language.
        //- Code/C++.md
        Another language.
        //- Code/C#.md
        One more language.
        //- Code/c sharp tips.md
        C tips.
        //- Trees/Apple.md
        ---
        aliases: [Malus, \"1984\", Apple tree]
        ---
        # Of apples
        They grow.
        //- ???.md
        Questions.
        //- 🎉.md
        Feasts.
        //- 最佳实践.md
        怎么做。
        //- Long.md
        # Everything that was ever written about the pruning of old apple trees in late winter, and some of what was not
        Short.
        ",
    );
    vault.sync();
    vault
}

#[test]
fn the_note_whose_name_was_typed_is_first() {
    let vault = named();
    for (query, path) in [
        ("quick add", "Plugins/QuickAdd.md"),
        ("QuickAdd", "Plugins/QuickAdd.md"),
        ("quick-add.md", "Plugins/QuickAdd.md"),
        ("Home", "Home.md"),
        ("home", "Home.md"),
        ("2022-07-24", "Journal/2022-07-24.md"),
        ("20220724", "Journal/2022-07-24.md"),
        ("malus", "Trees/Apple.md"),
        ("1984", "Trees/Apple.md"),
        ("Of Apples", "Trees/Apple.md"),
        ("c", "Code/C.md"),
        ("c++", "Code/C++.md"),
        ("C#", "Code/C#.md"),
        ("???", "???.md"),
        ("🎉", "🎉.md"),
        ("最佳实践", "最佳实践.md"),
        (
            "everything that was ever written about the pruning of old apple trees in late winter and some of what was not",
            "Long.md",
        ),
    ] {
        for mode in MODES {
            for grouping in [Grouping::BestPassage, Grouping::Passages] {
                let hits = found(&vault, &Query::literal(query).mode(mode).grouping(grouping));
                assert_eq!(
                    (hits[0].path.as_str(), equal(&hits).len()),
                    (path, 1),
                    "{query} {mode:?}: {:?}",
                    paths(&hits)
                );
                assert!(hits[0].score > 0.9 && hits[1..].iter().all(|hit| hit.score <= 0.9), "{query} {mode:?}");
            }
        }
    }
    // A note that is like another has no name for it, and a filter takes the name away with the note.
    assert!(equal(&found(&vault, &Query::like("Home").min_score(0.0))).is_empty());
    let elsewhere = Filter::default().path("Lists").unwrap();
    assert_eq!(paths(&found(&vault, &Query::literal("home").filter(elsewhere))), ["Lists/Talks.md"]);
}

#[test]
fn several_notes_of_one_name_are_first_by_spelling_then_by_folders() {
    let vault = Vault::new(
        "//- b/c/Plan.md
        plan
        //- b/PLAN.md
        plan plan
        //- z/plan.md
        other plan
        //- y/plan.md
        other plan
        //- Plan B.md
        plan plan plan plan
        //- a/My plan.md
        plan plan plan plan
        //- a/x.md
        plan plan plan plan plan plan plan plan
        ",
    );
    vault.sync();
    for mode in MODES {
        let ask = |query: &str, limit| {
            let hits = found(&vault, &Query::literal(query).mode(mode).limit(limit).min_score(0.01));
            hits.into_iter().map(|hit| hit.path.to_string()).collect::<Vec<_>>()
        };
        let all = ask("Plan", 20);
        assert_eq!(all[..4], ["b/c/Plan.md", "b/PLAN.md", "y/plan.md", "z/plan.md"], "{mode:?}");
        assert_eq!((ask("Plan", 2), ask("PLAN", 1)), (all[..2].to_vec(), vec!["b/PLAN.md".to_string()]), "{mode:?}");
        let mut near = all[4..6].to_vec();
        near.sort();
        assert_eq!(
            (near.as_slice(), ask("plan", 20)[0].as_str()),
            (&["Plan B.md", "a/My plan.md"].map(String::from)[..], "y/plan.md")
        );
        assert!(all[6..].iter().all(|path| path == "a/x.md"), "{all:?}");
    }
    // Notes that share all but the case of a name are told apart where a person names one.
    let like = |note: &str| {
        let hits = found(&vault, &Query::like(note).min_score(0.0).limit(20));
        let missing = ["b/c/Plan.md", "b/PLAN.md", "z/plan.md", "y/plan.md"];
        missing.into_iter().find(|path| !paths(&hits).contains(path))
    };
    assert_eq!(
        (like("Plan"), like("PLAN"), like("b/plan")),
        (Some("b/c/Plan.md"), Some("b/PLAN.md"), Some("b/PLAN.md"))
    );
    assert_eq!(like("z/plan.md"), Some("z/plan.md"));
}

#[test]
fn names_that_begin_with_the_query_or_hold_its_words_come_before_texts() {
    let vault = Vault::new(
        "//- Excalidraw plugin.md
        Draws.
        //- Notes on Excalidraw in meetings.md
        Drawn.
        //- Draw.md
        ---
        aliases: [the sketch, excalidraw file]
        ---
        Draws.
        //- Text.md
        excalidraw plugin excalidraw plugin excalidraw plugin
        ",
    );
    vault.sync();
    for mode in [Mode::Hybrid, Mode::Lexical] {
        let bands = |query: &str| {
            let hits = found(&vault, &Query::literal(query).mode(mode));
            let band = |hit: &Hit| {
                let is_in_band = (0.8..=0.9).contains(&hit.score);
                assert_eq!(is_in_band, hit.why.name.is_some(), "{query}: {} {}", hit.path, hit.score);
                (hit.path.to_string(), hit.why.name)
            };
            hits.iter().map(band).collect::<Vec<_>>()
        };
        let expected = |found: &[(&str, Option<NameMatch>)]| {
            found.iter().map(|(path, name)| ((*path).to_string(), *name)).collect::<Vec<_>>()
        };
        let (begins, words) = (Some(NameMatch::Begins), Some(NameMatch::Words));
        let text = ("Text.md", None);
        let [plugin, draw, notes] = ["Excalidraw plugin.md", "Draw.md", "Notes on Excalidraw in meetings.md"];
        let by_word = bands("excalidraw");
        let mut sorted = by_word.clone();
        sorted.sort_by(|a, b| a.0.cmp(&b.0));
        assert_eq!(sorted, expected(&[(draw, begins), (plugin, begins), (notes, words), text]));
        assert_eq!(by_word[3].0, "Text.md");
        assert_eq!(bands("plugin of the excalidraw")[..2], expected(&[(plugin, words), text]));
        assert_eq!(bands("excali")[..2].iter().filter(|(_, name)| *name == begins).count(), 2);
        // A slip is read as the word that is meant, and the last word as a beginning.
        let with_slip = bands("exclaidraw");
        assert_eq!(with_slip[..2].iter().filter(|(_, name)| *name == begins).count(), 2, "{with_slip:?}");
        assert_eq!(with_slip[2..], expected(&[(notes, words), text]));
        assert_eq!(bands("plugin excal")[0], (plugin.to_string(), words));
        // The words of two names of one note are not one name.
        assert!(bands("sketch file").iter().all(|(_, name)| name.is_none()));
    }
}

#[test]
fn a_name_that_holds_the_words_as_typed_comes_before_one_with_other_forms_of_them() {
    let vault = Vault::new(
        "//- About other plugins.md
        A list.
        //- Kanban plugin.md
        Boards, cards and columns for plugins.
        ",
    );
    vault.sync();
    for mode in MODES {
        let hits = found(&vault, &Query::literal("other plugins").mode(mode));
        assert_eq!(paths(&hits)[0], "About other plugins.md", "{mode:?}");
    }
}

#[test]
fn a_name_that_is_being_typed_or_has_a_slip_comes_before_others_with_its_words() {
    let vault = Vault::new(
        "//- Weather in the garden.md
        The harvest of the year.
        //- Garden weather.md
        Weather, garden, harvest: weather in gardens, garden weather, wheather.
        //- Garden.md
        Weather of the garden.
        //- Weather in the garden of Ada in the year of the great flood.md
        Weather in the garden.
        ",
    );
    vault.sync();
    for mode in MODES {
        let [longer, shorter] =
            ["Weather in the garden of Ada in the year of the great flood.md", "Weather in the garden.md"];
        for query in ["weather in the gard", "weahter in the garden", "weather in the gadren", "weahter in the gard"] {
            let hits = found(&vault, &Query::literal(query).mode(mode));
            assert_eq!(paths(&hits)[..2], [shorter, longer], "{query} {mode:?}");
        }
        // Whole words do not say where in a name they are.
        let hits = found(&vault, &Query::literal("weather").mode(mode));
        assert_eq!(paths(&hits)[0], "Garden weather.md", "{mode:?}");
    }
}

#[test]
fn names_follow_their_notes() {
    let vault = Vault::new("//- Old name.md\ntext\n//- Other.md\nold name, new name, third name\n");
    vault.sync();
    let first = |query: &str| equal(&found(&vault, &Query::literal(query))).join(" ");
    assert_eq!(first("old name"), "Old name.md");
    std::fs::create_dir(vault.root().join("sub")).unwrap();
    std::fs::rename(vault.root().join("Old name.md"), vault.root().join("sub/New name.md")).unwrap();
    vault.sync();
    assert_eq!((first("old name").as_str(), first("new name").as_str()), ("", "sub/New name.md"));
    std::fs::rename(vault.root().join("sub"), vault.root().join("other")).unwrap();
    vault.sync();
    assert_eq!(first("new name"), "other/New name.md");
    vault.write("other/New name.md", "# Third name\ntext\n");
    vault.sync();
    assert_eq!((first("third name").as_str(), first("newname").as_str()), ("other/New name.md", "other/New name.md"));
    assert_eq!(vault.dump(), vault.dump_of_rebuild());
    std::fs::remove_file(vault.root().join("other/New name.md")).unwrap();
    vault.sync();
    assert_eq!((first("third name").as_str(), first("new name").as_str()), ("", ""));
}

/// Names that are common words and phrases, each of which stands in the texts of at least twenty other notes.
#[test]
fn common_words_and_phrases_find_the_notes_that_they_name() {
    let words = ["river", "stone", "cloud", "meeting", "project", "idea", "garden", "winter", "letter", "market"];
    let mut names: Vec<String> = words.iter().map(|word| (*word).to_string()).collect();
    for (at, word) in words.iter().enumerate() {
        names.push(format!("{word} {}", words[(at * 3 + 1) % words.len()]));
        names.push(format!("The {word} of {} and {}", words[(at + 2) % words.len()], words[(at + 5) % words.len()]));
    }
    let vault = Vault::new("");
    for (at, name) in names.iter().enumerate() {
        let others: Vec<&str> = (1..=24).map(|step| names[(at + step) % names.len()].as_str()).collect();
        let title = name.replace(' ', if at % 2 == 0 { " " } else { "-" });
        vault.write(&format!("n{}/{title}.md", at % 4), format!("{}.\n", others.join(", ").repeat(1 + at % 3)));
    }
    vault.sync();
    let queries: Vec<Query> =
        names.iter().flat_map(|name| MODES.map(|mode| Query::literal(name.to_uppercase()).mode(mode))).collect();
    let answers = vault.index().searcher().unwrap().search_many(&queries);
    for (at, (answer, query)) in answers.into_iter().zip(&queries).enumerate() {
        let answer = answer.unwrap();
        let stem = answer.results[0].path.stem().replace('-', " ");
        assert_eq!(stem, names[at / MODES.len()], "{:?}", query.mode);
        assert_eq!(answer, vault.index().search(query).unwrap());
    }
}

#[test]
fn notes_of_one_name_are_found_by_folder_and_name() {
    let vault = Vault::new("");
    let topics: Vec<String> = (0..400).map(|n| format!("{} {}", COLOURS[n % 20], BIRDS[n / 20])).collect();
    for topic in &topics {
        let others =
            topics.iter().step_by(37).map(|other| format!("See also {other}, as the readme of {other} says. "));
        let text = format!("# Overview\n\nAll about it.\n\n{}\n", others.collect::<String>());
        vault.write(&format!("Guide/{topic}/README.md"), &text);
        vault.write(
            &format!("Guide/{topic}/Details.md"),
            format!("# {topic}\n\nThe readme of {topic}: readme, readme.\n"),
        );
    }
    vault.sync();
    let index = vault.index();
    let first = |text: &str| index.search(&Query::literal(text)).unwrap().results[0].path.to_string();
    for topic in topics.iter().step_by(7) {
        let expected = format!("Guide/{topic}/README.md");
        assert_eq!(first(&format!("{topic} readme")), expected);
        assert_eq!(first(&format!("readme {topic}")), expected);
    }
    // The words of a folder alone name none of its notes.
    let hits = index.search(&Query::literal("guide red heron")).unwrap().results;
    let readme = hits.iter().find(|hit| hit.path.stem() == "README");
    assert!(readme.is_none_or(|hit| hit.why.name.is_none()), "{readme:?}");
}

const COLOURS: [&str; 20] = [
    "red", "blue", "green", "amber", "violet", "white", "black", "grey", "brown", "pink", "ochre", "teal", "crimson",
    "olive", "ivory", "silver", "golden", "scarlet", "indigo", "beige",
];

const BIRDS: [&str; 20] = [
    "heron", "robin", "sparrow", "finch", "owl", "crow", "raven", "swan", "stork", "plover", "lark", "wren", "thrush",
    "eagle", "falcon", "kestrel", "puffin", "gannet", "avocet", "dunlin",
];

#[test]
fn a_letter_that_is_a_word_is_not_the_beginning_of_names() {
    let vault = Vault::new(
        "//- Carrots.md
        Orange.
        //- Code/C scope.md
        Braces.
        //- Languages.md
        The first program in C was short: C has few words, and C is old.
        //- Rust.md
        Iron.
        ",
    );
    vault.sync();
    let lexical = |query: &str| found(&vault, &Query::parse(query).unwrap().mode(Mode::Lexical));
    assert_eq!(paths(&lexical("C")), ["Code/C scope.md", "Languages.md"]);
    assert_eq!(paths(&lexical("<C>"))[..2], ["Code/C scope.md", "Languages.md"]);
    assert_eq!(paths(&lexical("ca")), ["Carrots.md"]);
    assert_eq!(paths(&lexical("r")), ["Rust.md"], "no note has the word");
}
