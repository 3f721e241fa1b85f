//! What a word of a query stands for: parts of words, words of two parts, kana; and what a model that reads English is
//! said to do with notes in other languages.

use vault_index::{Index, Mode, ModelName, Options, Query, SyncOptions};

use crate::vault::Vault;

fn first(vault: &Vault, query: &str) -> (String, Vec<(String, Vec<String>)>) {
    let hits = vault.index().search(&Query::literal(query).mode(Mode::Lexical)).unwrap();
    let read = hits.substitutions.into_iter().map(|read| (read.word, read.read_as)).collect();
    (hits.results.first().map(|hit| hit.path.stem().to_owned()).unwrap_or_default(), read)
}

#[test]
fn a_word_that_no_note_has_stands_for_those_that_end_with_it_or_that_it_is_made_of() {
    let vault = Vault::new(
        "//- Papiere.md
        Die Krankenversicherung schreibt im Mai.
        //- Karte.md
        Der Standort des Hauses, und eine Abfrage dazu.
        //- Greeting.md
        A handshake, and i18n of the labels.
        //- Other.md
        A snake in the grass; the version of 2018.
        ",
    );
    vault.sync();
    let read = |word: &str, as_: &[&str]| vec![(word.to_owned(), as_.iter().map(|word| (*word).to_owned()).collect())];
    assert_eq!(first(&vault, "Versicherung"), ("Papiere".into(), read("versicherung", &["krankenversicherung"])));
    assert_eq!(first(&vault, "Standortabfrage"), ("Karte".into(), read("standortabfrage", &["abfrage", "standort"])));
    assert_eq!(first(&vault, "shake").1, read("shake", &["snake", "handshake"]));
    assert_eq!(first(&vault, "18n"), ("Greeting".into(), read("18n", &["i18n"])));
    assert_eq!(first(&vault, "018"), (String::new(), vec![]));
}

#[test]
fn kana_of_either_kind_are_one() {
    let vault = Vault::new("//- Cat.md\nわがはいは猫である。\n//- No.md\nそれはダメです。\n");
    vault.sync();
    for (query, note) in [("ﾜｶﾞﾊｲ", "Cat"), ("ワガハイ", "Cat"), ("だめ", "No"), ("ダメ", "No")] {
        assert_eq!(first(&vault, query).0, note, "{query}");
    }
}

#[test]
fn traditional_and_simplified_chinese_are_one() {
    let vault = Vault::new("//- Old.md\n臺灣的圖書館。\n//- New.md\n台湾的飞机。\n");
    vault.sync();
    for (query, note) in [("图书馆", "Old"), ("圖書館", "Old"), ("飛機", "New"), ("飞机", "New")] {
        assert_eq!(first(&vault, query).0, note, "{query}");
    }
    let hits = vault.index().search(&Query::literal("臺灣").mode(Mode::Lexical)).unwrap();
    assert_eq!(hits.results.len(), 2);
}

#[test]
fn a_status_estimates_the_time_of_the_multilingual_model() {
    let german = "Der Reiher steht im Wasser und wartet auf einen Fisch, der nicht zu groß ist.";
    let japanese = "サギは浅い水の中に立って、あまり大きくない魚を待っている。図書館は週末も開いている。";
    let chinese = "白鹭站在浅水里，等着一条不太大的鱼。图书馆周末开放，可以借阅杂志和地图。";
    for sentence in [german, japanese, chinese] {
        let vault = Vault::new(&(0..40).map(|i| format!("//- {i}.md\n{i}: {sentence}\n")).collect::<String>());
        let options = Options::new().index_file(vault.root().join(".index/i.db")).model(ModelName::MiniLm);
        let index = Index::open(vault.root(), options).unwrap();
        // The time is known where nothing was embedded, and where the model skipped what it cannot read.
        for sync in [SyncOptions::new().without_vectors(), SyncOptions::new()] {
            index.sync_with(&sync).unwrap();
            let advice = index.status().unwrap().advice;
            assert!(advice.len() == 1 && advice[0].contains("models add multilingual-e5-small"), "{advice:?}");
            assert!(advice[0].contains("(embeds all notes again, in about "), "{advice:?}");
            assert!(
                advice[0].contains(" s on this machine") || advice[0].contains(" min on this machine"),
                "{advice:?}"
            );
        }
    }
}

#[test]
fn a_status_names_the_languages_that_the_model_does_not_read() {
    let advice = |files: &str, model: ModelName| {
        let vault = Vault::new(files);
        let options = Options::new().index_file(vault.root().join(".index/i.db")).model(model);
        let index = Index::open(vault.root(), options).unwrap();
        index.sync_with(&SyncOptions::new().without_vectors()).unwrap();
        index.status().unwrap().advice
    };
    let german = "//- a.md\nDer Reiher steht im Wasser und wartet auf einen Fisch, der nicht zu groß ist.\n";
    let english = "//- b.md\nThe heron stands in the water and waits for a fish that is not too large.\n";
    let found = advice(german, ModelName::MiniLm);
    assert!(
        found.len() == 1 && found[0].contains("100 % of the passages are not in English (German), but"),
        "{found:?}"
    );
    for part in [
        "vault-index models add multilingual-e5-small (shows the size of the download, then asks)",
        "vault-index rebuild --model multilingual-e5-small (embeds all notes again, in about ",
        "it finds English notes less well by meaning",
    ] {
        assert!(found[0].contains(part), "{part}: {found:?}");
    }
    // Half of the passages, in two languages of which one is unknown to the model.
    let russian = "//- c.md\nЦапля стоит в воде и ждёт рыбу.\n";
    let two = advice(&[german, english, russian, &english.replace("b.md", "d.md")].concat(), ModelName::MiniLm);
    assert!(two.len() == 1 && two[0].contains("50 % of the passages are not in English (German, …), but"), "{two:?}");
    let one = advice(&[german, english, &english.replace("b.md", "d.md")].concat(), ModelName::MiniLm);
    assert!(one.is_empty(), "{one:?}");
    assert!(advice(english, ModelName::MiniLm).is_empty());
    assert!(advice(german, ModelName::Hashed).is_empty());
}
