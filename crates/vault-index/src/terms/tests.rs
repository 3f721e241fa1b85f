//! Examples and invariants of search terms.

use proptest::prelude::*;

use super::*;

fn terms_of(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    Terms::new().each(text, |term, _| found.push(term.to_owned()));
    found
}

fn stands_for(query: &QueryTerm, term: &str) -> bool {
    match query.matching {
        TermMatch::Whole => query.text == term,
        TermMatch::Prefix => term.starts_with(&query.text),
    }
}

fn check(text: &str, expected: &str) {
    assert_eq!(terms_of(text).join(" "), expected, "{text:?}");
}

fn folded(word: &str) -> String {
    let mut fold = Fold::default();
    fold.clear(MAX_TERM);
    word.chars().for_each(|c| fold.push(c));
    fold.finish().to_owned()
}

#[test]
fn english_inflections_have_one_stem() {
    for word in terms_of("garden gardens Gardening GARDENED garden's gardens'") {
        assert_eq!(stem(&word), "garden", "{word}");
    }
    check("gardens2 gardens_2", "gardens2 gardens 2");
    for word in ["as", "us", "is", "gardens2", "gärten", "садами", "青森", ""] {
        assert_eq!(stem(word), word);
    }
}

#[test]
fn spellings_of_one_word_are_one_term() {
    for (a, b) in [
        ("Café", "cafe"),
        ("Cafe\u{301}", "cafe"),
        ("STRASSE", "straße"),
        ("STRAẞE", "straße"),
        ("naïve", "naive"),
        ("İstanbul", "istanbul"),
        ("ISTANBUL", "ıstanbul"),
        ("Łódź", "lodz"),
        ("Smørrebrød", "smorrebrod"),
        ("Æsir œuvre", "aesir oeuvre"),
        ("ﬁle", "file"),
        ("ＦＵＬＬ　ｗｉｄｔｈ", "full width"),
        ("Ελλάδα", "ΕΛΛΑΔΑ"),
        ("ΟΔΟΣ", "οδός"),
        ("Москва", "МОСКВА"),
        ("ёлка", "елка"),
        ("שָׁלוֹם", "שלום"),
        ("كِتَاب", "كتاب"),
        ("أحمد", "احمد"),
        ("ﾊﾟｿｺﾝ", "パソコン"),
        ("\u{1112}\u{1161}\u{11ab}\u{1100}\u{116e}\u{11a8}", "한국"),
        ("co\u{AD}operate", "cooperate"),
        ("don’t", "don't"),
        ("हिन्दी", "हिंदी"),
        ("सम्बन्ध अङ्ग पञ्च", "संबंध अंग पंच"),
        ("चाँद", "चांद"),
    ] {
        assert_eq!(terms_of(a), terms_of(b), "{a} {b}");
    }
    check("Ελλάδα Москва", "ελλαδα москва");
    check("STRASSE straße Łódź Café", "strasse strasse lodz cafe");
}

#[test]
fn vowels_that_are_marks_are_kept() {
    assert_ne!(terms_of("कि"), terms_of("के"));
    assert_ne!(terms_of("अन्न"), terms_of("अंन"));
    assert_ne!(terms_of("ปี"), terms_of("ปา"));
    assert_ne!(terms_of("か"), terms_of("が"));
}

#[test]
fn scripts_without_spaces_are_pairs() {
    check("青森市", "青森 森市 市");
    check("Rust世界", "rust 世界 界");
    check("2024年3月", "2024 年 3 月");
    check("青森、青森", "青森 森 青森 森");
    check("한국어 집", "한국 국어 어 집");
    check("ไทย", "ไท ทย ย");
    check("が\u{FE00}", "が");
    check("コーヒー", "こー ーひ ひー ー");
}

#[test]
fn punctuation_splits() {
    check("3.14 v1.2 snake_case a-b camelCase", "3 14 v1 2 snake case a b camelcase");
    check("https://example.org/a?b=c", "https example org a b c");
    check("[[Note#Head|shown]] **bold** `code`", "note head shown bold code");
    check("C++ c# F# C# C C+ c#tag g++ C++11 C#12", "cpp csharp fsharp csharp c c c tag g cpp 11 csharp 12");
    check("m² ½ ⑴ ①", "m2 1 1");
    check("l'été O'Brien ’tis rock'n'roll 5'10 we’re dogs’", "l ete o brien tis rockn roll 5 10 were dogs");
    check("", "");
    check(" \n…— ", "");
}

#[test]
fn words_with_hyphens_are_compounds_too() {
    for (text, expected) in [
        ("a plug-in, E-Mails and Café-bar", vec!["plugin", "emails", "cafebar"]),
        ("re-re-read GPT-4", vec!["rereread", "gpt4"]),
        ("state-of-the-art 2024-05-01 4-ply --flag a--b - b a - b snake_case", vec![]),
        ("-plug-in-", vec!["plugin"]),
        ("青森-a", vec![]),
    ] {
        let mut found = Vec::new();
        Terms::new().compounds(text, |compound, span| {
            assert_eq!(terms_of(&text[span]).concat(), compound);
            found.push(compound.to_owned());
        });
        assert_eq!(found, expected, "{text:?}");
    }
}

#[test]
fn emoji_are_terms() {
    check("ship it 🚀🚀 👍🏽 ❤️ 🇫🇷🇩🇪 👩\u{200D}🔬 1️⃣", "ship it 🚀 🚀 👍 ❤ 🇫🇷 🇩🇪 👩 🔬 1");
}

#[test]
fn spans_are_where_the_terms_came_from() {
    let text = "Don’t eat Café-青森市 👍🏽.";
    let mut spans = Vec::new();
    Terms::new().each(text, |_, span| spans.push(&text[span]));
    assert_eq!(spans, ["Don’t", "eat", "Café", "青森", "森市", "市", "👍"]);
}

#[test]
fn joined_terms_are_appended() {
    let mut terms = Terms::new();
    let mut out = String::new();
    let mut words = Vec::new();
    for text in ["Two gardens", "", "青森"] {
        terms.write_joined(text, &mut out, |word| words.push(word.to_owned()));
    }
    assert_eq!((out.as_str(), words), ("two gardens 青森 森", vec!["two".to_owned(), "gardens".to_owned()]));
    assert_eq!(terms_of(&BETWEEN_ITEMS.to_string()), [""; 0]);
}

#[test]
fn a_query_of_one_character_finds_it_anywhere() {
    let shown = |terms: Vec<QueryTerm>| {
        terms
            .iter()
            .map(|t| t.text.clone() + if t.matching == TermMatch::Prefix { "*" } else { "" })
            .collect::<Vec<_>>()
            .join(" ")
    };
    let mut terms = Terms::new();
    assert_eq!(shown(terms.words("京")), "京*");
    assert_eq!(shown(terms.words("青森市 gardens 3月")), "青森 森市 gardens 3 月*");
    assert_eq!(shown(terms.phrase("青森市")), "青森 森市");
    assert_eq!(shown(terms.phrase("青森 gardens")), "青森 森 gardens");
    assert_eq!(shown(terms.phrase("2024年1月")), "2024 年 1 月*");
    let query = terms.words("森").remove(0);
    for text in ["青森", "森市", "青森市", "森"] {
        assert!(terms_of(text).iter().any(|term| stands_for(&query, term)), "{text}");
    }
}

#[test]
fn long_words_are_cut() {
    for word in [
        "a".repeat(1_000_000),
        "é".repeat(500_000),
        "ก\u{E34}".repeat(2),
        "か\u{3099}".to_owned() + &"\u{3099}".repeat(100_000),
    ] {
        for term in terms_of(&word) {
            assert!(term.len() <= MAX_TERM);
        }
    }
    assert_eq!(terms_of(&"Ab1".repeat(100)), ["ab1".repeat(22)[..MAX_TERM].to_owned()]);
}

#[test]
fn stop_words_are_stems_in_order() {
    assert!(stop::STOP_WORDS.is_sorted());
    for word in ["The", "was", "because", "very", "any", "does", "don't", "before", "why"] {
        assert!(is_stop_word(&terms_of(word)[0]), "{word}");
    }
    for word in ["garden", "vitamin", "rust", "京", "well"] {
        assert!(!is_stop_word(&terms_of(word)[0]), "{word}");
    }
}

#[test]
fn folding_any_character_twice_changes_nothing() {
    for c in '\0'..=char::MAX {
        let once = folded(&c.to_string());
        assert_eq!(folded(&once), once, "{c:?} U+{:04X}", c as u32);
    }
}

/// Text of all character classes, with many special cases.
fn text() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        "[a-zA-Z0-9 '_.+#-]{0,6}",
        "\\PC{0,4}",
        prop::sample::select(vec![
            "青森",
            "か\u{3099}",
            "한국",
            "ก\u{E34}",
            "\u{1112}\u{1161}",
            "é",
            "e\u{301}",
            "’",
            "\u{200D}",
            "👍🏽",
            "🇫🇷",
            "ß",
            "İ",
            "ﬁ",
            "\u{FE0F}",
            "ﾊﾟ",
            "क्षि",
            "\u{640}",
            "\u{AD}",
            "\u{345}",
            "ΐ",
            "\u{1160}",
            "\u{FFA0}",
        ])
        .prop_map(str::to_owned),
    ];
    prop::collection::vec(piece, 0..12).prop_map(|pieces| pieces.concat())
}

/// The part of a note's terms that must contain a phrase's terms for the phrase to be found.
fn stands_in(phrase: &[QueryTerm], terms: &[String]) -> bool {
    phrase.is_empty()
        || terms.windows(phrase.len()).any(|window| phrase.iter().zip(window).all(|(q, t)| stands_for(q, t)))
}

#[test]
fn letters_that_compose_fold_the_same_twice() {
    let once = folded("\u{1112}\u{1161}\u{16D68}");
    assert_eq!(folded(&once), once);
}

proptest! {
    #[test]
    fn terms_can_be_indexed(text in text()) {
        let (mut last, mut end) = (None, 0);
        let mut all = Vec::new();
        Terms::new().each(&text, |term, span| {
            assert!(!term.is_empty() && term.len() <= MAX_TERM, "{term:?}");
            assert!(term.chars().all(|c| !c.is_ascii() || c.is_ascii_lowercase() || c.is_ascii_digit()), "{term:?}");
            assert!(!text[span.clone()].is_empty());
            assert!(last < Some(span.start) && end <= span.end);
            (last, end) = (Some(span.start), span.end);
            all.push(term.to_owned());
        });
        let mut joined = String::new();
        Terms::new().write_joined(&text, &mut joined, |_| {});
        prop_assert_eq!(joined, all.join(" "));
    }

    #[test]
    fn a_term_knows_its_span(text in text()) {
        let mut terms = Terms::new();
        let mut all = Vec::new();
        terms.each(&text, |term, span| all.push((term.to_owned(), span)));
        for (term, span) in all {
            let alone = terms.words(&text[span.clone()]);
            prop_assert!(alone.iter().any(|q| stands_for(q, &term)), "{:?} {:?} {:?}", term, &text[span], alone);
        }
    }

    #[test]
    fn folding_twice_changes_nothing(text in text()) {
        let word: String = text.chars().filter(|c| !matches!(class(*c), Class::Separator | Class::Joiner | Class::Apostrophe | Class::Emoji)).collect();
        let once = folded(&word);
        prop_assert_eq!(folded(&once), once);
    }

    #[test]
    fn a_phrase_is_found_where_it_stands(before in text(), phrase in text(), after in text()) {
        let note = format!("{before} {phrase} {after}");
        let mut terms = Terms::new();
        prop_assert!(stands_in(&terms.phrase(&phrase), &terms_of(&note)));
        let all = terms_of(&note);
        for word in terms.words(&phrase) {
            prop_assert!(all.iter().any(|term| stands_for(&word, term)), "{:?}", word);
        }
    }

    #[test]
    fn any_word_can_be_stemmed(word in "[a-z]{1,40}") {
        prop_assert!(!stem(&word).is_empty());
    }
}
