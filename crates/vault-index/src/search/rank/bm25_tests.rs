//! On generated notes, scores by words equal the formula, and phrases are found where they occur.

use proptest::prelude::*;

use crate::path::FileId;
use crate::search::note_passages::NotePassages;
use crate::search::rank::bm25::WordScores;
use crate::search::rank::query_expansion::{ExpandedQuery, QueryText};
use crate::search::select::phrase::passages_with_phrase;
use crate::search::vocabulary::Vocabulary;
use crate::store::{NewPassage, NoteFields, PassageFields, PassageRow, Store, key_of};
use crate::terms::{BETWEEN_ITEMS, QueryTerm, TermMatch, Terms, stem};

/// Notes, each with a title, tags and passages.
type Notes = Vec<(String, Vec<String>, Vec<String>)>;

fn text(words: std::ops::Range<usize>) -> impl Strategy<Value = String> {
    let words_of_a_stem = ["garden", "Gardens", "gardening", "gardener", "gard", "rose", "Rosé", "roses", "rosemary"];
    let words = prop::collection::vec(
        prop::sample::select([&words_of_a_stem[..], &["東京", "東京都", "京", "café"]].concat()),
        words,
    );
    words.prop_map(|words| words.join(" "))
}

fn notes() -> impl Strategy<Value = Notes> {
    let note = (text(0..3), prop::collection::vec(text(1..3), 0..3), prop::collection::vec(text(0..12), 1..4));
    prop::collection::vec(note, 1..6)
}

/// The notes in an index, and for each passage its fields as terms with their weights, with separate items of lists.
struct IndexedNotes {
    store: Store,
    passages: Vec<PassageRow>,
    fields: Vec<[(f64, Vec<String>); 3]>,
}

fn terms_of(text: &str) -> Vec<String> {
    let mut terms = Vec::new();
    Terms::new().each(text, |term, _| terms.push(term.to_owned()));
    terms
}

fn indexed(notes: &Notes) -> IndexedNotes {
    let store = Store::scratch().unwrap();
    let batch = store.begin().unwrap();
    let (mut passages, mut fields) = (Vec::new(), Vec::new());
    for (number, (title, tags, bodies)) in notes.iter().enumerate() {
        // Ids of notes are in another order than those of their passages.
        let note = FileId(100 - number as u32);
        let mut tag_terms = Vec::new();
        for tag in tags {
            tag_terms.extend((!tag_terms.is_empty()).then(|| BETWEEN_ITEMS.to_string()));
            tag_terms.extend(terms_of(tag));
        }
        let of_note =
            NoteFields { title: terms_of(title).join(" "), tags: tag_terms.join(" "), ..NoteFields::default() };
        store.put_note_words(note, &of_note).unwrap();
        for body in bodies {
            let id = passages.len() as i64 * 3 + 1;
            let body_terms = terms_of(body);
            // Some passages are those of many notes.
            let repeated = if id % 4 == 0 { 9 } else { 0 };
            let of_passage = PassageFields { headings: String::new(), body: body_terms.join(" ") };
            passages.push(PassageRow {
                id,
                note,
                vector: None,
                title: None,
                length: of_passage.length(),
                said: 0,
                repeated,
            });
            store.put_words(id, &of_passage).unwrap();
            let (span, key) = (0..0, key_of(""));
            let passage = NewPassage {
                headings: "[]".into(),
                lines: (1, 1),
                span,
                text: String::new(),
                key,
                said: 0,
                tokens: 0,
                fields: of_passage,
            };
            store.put_passage(id, note, None, &passage).unwrap();
            for word in terms_of(&format!("{title} {} {body}", tags.join(" "))) {
                let stem = Some(stem(&word).into_owned()).filter(|stem| *stem != word);
                store.put_vocabulary(&[(word, stem)]).unwrap();
            }
            fields.push([(2.0, terms_of(title)), (1.5, tag_terms.clone()), (1.0, body_terms)]);
        }
    }
    // A word that no note has any more has no effect.
    store.put_vocabulary(&[("gardened".to_owned(), Some("garden".to_owned()))]).unwrap();
    batch.commit().unwrap();
    IndexedNotes { store, passages, fields }
}

impl IndexedNotes {
    fn read(&self, text: &str, prefixes: &[String]) -> ExpandedQuery {
        let none = Vocabulary::new(std::iter::empty());
        ExpandedQuery::new(&self.store, &QueryText { text, prefixes }, &|_| Ok(&none), &|_| Ok(())).unwrap()
    }

    /// The weighted count of terms in each passage, and the part in the fields of its note, by a weight for each term.
    fn counts(&self, weight: &dyn Fn(&str) -> f64) -> Vec<(f64, f64)> {
        let in_field = |(field, terms): &(f64, Vec<String>)| field * terms.iter().map(|term| weight(term)).sum::<f64>();
        let of = |[title, tags, body]: &[_; 3]| {
            let of_note = in_field(title) + in_field(tags);
            (of_note + in_field(body), of_note)
        };
        self.fields.iter().map(of).collect()
    }

    /// The formula, in its simplest form.
    fn naive(&self, query: &str) -> Vec<f64> {
        let all = self.passages.len() as f64;
        let idf = |counts: &[(f64, f64)]| {
            let holding = counts.iter().filter(|count| count.0 > 0.0).count() as f64;
            (1.0 + (all - holding + 0.5) / (holding + 0.5)).ln()
        };
        let average = (self.passages.iter().map(|p| f64::from(p.length)).sum::<f64>() / all).max(1.0);
        let saturated = |at: usize, (count, of_note): (f64, f64)| {
            let share =
                |count: f64| 1.9 * count / (count + 0.9 * (0.6 + 0.4 * f64::from(self.passages[at].length) / average));
            if self.passages[at].is_repeated() { (share(count) + share(of_note)) / 2.0 } else { share(count) }
        };
        let words = Terms::new().words(query);
        let (mut sums, mut ideal) = (vec![0.0; self.passages.len()], 0.0);
        for (position, QueryTerm { text: word, matching }) in words.iter().enumerate() {
            let is = |term: &str, is_so: bool| f64::from(u8::from(!term.starts_with(BETWEEN_ITEMS) && is_so));
            let exact = self.counts(&|term| match matching {
                TermMatch::Whole => is(term, term == word),
                TermMatch::Prefix => is(term, term.starts_with(word.as_str())),
            });
            let has_stem = |term: &str| *matching == TermMatch::Whole && stem(term) == stem(word);
            let same_stem = self.counts(&|term| {
                is(term, has_stem(term))
                    .max(is(term, *matching == TermMatch::Prefix && term.starts_with(word.as_str())))
            });
            // Words count once per occurrence, wherever the last one is.
            let is_last =
                words[position..].iter().all(|other| other.text == *word) || words.last().unwrap().text == *word;
            let begins_so = |term: &str| {
                is_last && *matching == TermMatch::Whole && word.chars().count() >= 3 && term.starts_with(word.as_str())
            };
            let all_forms = self.counts(&|term| match matching {
                TermMatch::Prefix => is(term, term.starts_with(word.as_str())),
                TermMatch::Whole if term == word => is(term, true),
                TermMatch::Whole if has_stem(term) => 0.8 * is(term, true),
                TermMatch::Whole => 0.4 * is(term, begins_so(term)),
            });
            let is_held = same_stem.iter().any(|count| count.0 > 0.0);
            let share = if exact.iter().any(|count| count.0 > 0.0) { 0.1 } else { 0.0 };
            let rarity = idf(if is_held { &same_stem } else { &all_forms });
            ideal += 1.9 * (share * idf(&exact) + (1.0 - share) * rarity);
            for (at, sum) in sums.iter_mut().enumerate() {
                *sum += share * idf(&exact) * saturated(at, exact[at])
                    + (1.0 - share) * rarity * saturated(at, all_forms[at]);
            }
        }
        sums.iter().map(|sum| (sum / ideal).clamp(0.0, 1.0)).collect()
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn scores_are_those_of_the_formula(notes in notes(), query in text(1..6)) {
        let indexed = indexed(&notes);
        let of_notes = NotePassages::new(&indexed.passages);
        let lexical = WordScores::run(&indexed.store, &indexed.passages, &of_notes, &indexed.read(&query, &[]), true).unwrap();
        for (at, expected) in indexed.naive(&query).into_iter().enumerate() {
            prop_assert!((f64::from(lexical.score(at)) - expected).abs() < 1e-6, "{} {} {}", at, lexical.score(at), expected);
        }
    }

    #[test]
    fn a_phrase_is_held_by_the_passages_in_a_field_of_which_it_stands(notes in notes(), phrase in text(1..4), is_prefix in any::<bool>()) {
        let indexed = indexed(&notes);
        let matching = if is_prefix { TermMatch::Prefix } else { TermMatch::Whole };
        let wanted = Terms::new().phrase(&phrase);
        let holds = |terms: &[String]| terms.windows(wanted.len()).any(|window| {
            let last = wanted.len() - 1;
            wanted.iter().zip(window).enumerate().all(|(at, (wanted, term))| {
                let may_go_on = wanted.matching == TermMatch::Prefix || (at == last && is_prefix);
                if may_go_on { term.starts_with(&wanted.text) } else { *term == wanted.text }
            })
        });
        let mut found = passages_with_phrase(&indexed.store, &phrase, matching).unwrap().unwrap();
        found.sort_unstable();
        found.dedup();
        let expected: Vec<i64> = indexed.passages.iter().zip(&indexed.fields)
            .filter(|(_, fields)| fields.iter().any(|(_, terms)| holds(terms)))
            .map(|(passage, _)| passage.id).collect();
        prop_assert_eq!(found, expected);
    }
}
