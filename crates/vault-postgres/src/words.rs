//! The keyword index: which fields have which terms, and the terms of a field in order.

use std::collections::HashMap;

use vault_index::backend::{
    Field, HYPHENATED, Holder, NoteFields, PassageFields, Prefetch, QueryTerm, ReadWords, TermMatch, Word, WriteWords,
};
use vault_index::{FileId, Result};

use crate::connection::{Param, VaultStore, ints, string, text};
use crate::copy::NewRows;
use crate::prefetch::Keyed;
use crate::row::Row;
use crate::schema::FIRST_OF_PASSAGE;

/// In the order of their numbers in the column `field`: those of notes, then those of passages.
const FIELDS: [Field; 7] =
    [Field::Title, Field::Aliases, Field::Tags, Field::Properties, Field::Path, Field::Headings, Field::Body];

/// The terms of a field as the index file separates them: characters that are neither letters nor digits of ASCII, nor
/// beyond ASCII, are between terms.
fn terms(field: &str) -> impl Iterator<Item = String> + '_ {
    field
        .split(|c: char| c.is_ascii() && !c.is_ascii_alphanumeric())
        .filter(|term| !term.is_empty())
        .map(str::to_ascii_lowercase)
}

/// Adds the postings of a field, and returns its terms, separated and enclosed by spaces, for phrases.
fn add_field(new: &mut NewRows, vault: i32, field: i16, holder: i64, words: &str) -> String {
    let mut counts: HashMap<String, i32> = HashMap::new();
    let mut spaced = String::from(" ");
    for term in terms(words) {
        spaced.push_str(&term);
        spaced.push(' ');
        *counts.entry(term).or_default() += 1;
    }
    for (term, count) in counts {
        new.row("posting", vault).text(&term).plain(field).plain(holder).plain(count);
    }
    spaced
}

/// Adds the words of a note's own fields.
pub(crate) fn add_note_words(new: &mut NewRows, vault: i32, note: FileId, fields: &NoteFields) {
    let NoteFields { title, aliases, tags, properties, path } = fields;
    let holder = i64::from(note.0);
    let spaced: Vec<String> = [title, aliases, tags, properties, path]
        .into_iter()
        .zip(0..)
        .map(|(words, field)| add_field(new, vault, field, holder, words))
        .collect();
    let row = new.row("note_words", vault).plain(holder);
    spaced.iter().fold(row, |row, words| row.text(words));
}

/// Adds the words of a passage.
pub(crate) fn add_words(new: &mut NewRows, vault: i32, passage: i64, fields: &PassageFields) {
    let PassageFields { headings, body } = fields;
    let headings = add_field(new, vault, FIRST_OF_PASSAGE, passage, headings);
    let body = add_field(new, vault, FIRST_OF_PASSAGE + 1, passage, body);
    new.row("words", vault).plain(passage).text(&headings).text(&body);
}

/// Adds words to the vocabulary; existing ones stay.
pub(crate) fn add_vocabulary(new: &mut NewRows, vault: i32, words: &[Word]) {
    for (word, stem) in words {
        new.row("vocabulary", vault).text(word).optional_text(stem.as_deref());
    }
}

/// The occurrences of a term in fields: for each the number of the field (2 bytes), the holder (8), and how often (4).
/// Rows of the protocol would take three times as much.
macro_rules! packed {
    () => {
        "string_agg(int2send(field) || int8send(holder) || int4send(count), '' ORDER BY field >= 5, holder, field)"
    };
}

/// The second and the third column are the term and its occurrences.
const POSTINGS: Keyed = Keyed {
    sql: concat!(
        "SELECT term, term, ",
        packed!(),
        " FROM posting WHERE vault = @vault AND term = ANY($1) GROUP BY term"
    ),
    also: None,
};

/// The words with a stem, and their occurrences, which are the next that is asked for.
const STEMS: Keyed = Keyed {
    sql: concat!(
        "SELECT coalesce(stem, word), word, (SELECT ",
        packed!(),
        " FROM posting WHERE vault = @vault AND term = word)
         FROM vocabulary WHERE vault = @vault AND (stem = ANY($1) OR word = ANY($1) AND stem IS NULL)
         ORDER BY stem IS NULL, word"
    ),
    also: Some((1, POSTINGS.sql)),
};

/// As [`POSTINGS`], for the terms from `$1` to `$2`. Those in notes come before those in passages.
const POSTINGS_BETWEEN: &str = concat!(
    "SELECT NULL, term, ",
    packed!(),
    " FROM posting WHERE vault = @vault AND term >= $1 AND term < $2 GROUP BY field >= 5, term ORDER BY field >= 5, term"
);

const FREQUENCIES: Keyed = Keyed {
    sql: "SELECT term, count(DISTINCT (field >= 5, holder)) FROM posting WHERE vault = @vault AND term = ANY($1)
          GROUP BY term",
    also: None,
};

/// Greater than all terms with this prefix, because no text contains this character.
fn end_of(term: &str) -> String {
    format!("{term}\u{10ffff}")
}

/// The terms of rows of postings, and each of their fields, its holder, and how often it has the term.
fn postings(rows: &[Row]) -> impl Iterator<Item = (&str, Holder, Field, u32)> {
    rows.iter().flat_map(|row| {
        let packed: &[u8] = row.get::<_, Option<&[u8]>>(2).unwrap_or_default();
        let term: &str = row.get(1);
        packed.as_chunks::<14>().0.iter().map(move |posting| {
            let [f, g, a, b, c, d, e, h, i, j, k, l, m, n] = *posting;
            let field = i16::from_be_bytes([f, g]);
            let holder = i64::from_be_bytes([a, b, c, d, e, h, i, j]);
            let of = match field >= FIRST_OF_PASSAGE {
                true => Holder::Passage(holder),
                false => Holder::Note(FileId(holder as u32)),
            };
            let field = FIELDS.get(field as usize).copied().unwrap_or(Field::Body);
            (term, of, field, u32::from_be_bytes([k, l, m, n]))
        })
    })
}

impl ReadWords for VaultStore {
    fn vocabulary(&self) -> Result<Vec<String>> {
        let sql = "SELECT word FROM vocabulary WHERE vault = @vault AND NOT starts_with(word, $1)";
        self.all(sql, &[text(&HYPHENATED.to_string())], |row| string(row, 0))
    }

    fn words_with_stem(&self, stem: &str) -> Result<Vec<String>> {
        let rows = self.rows_of_key(&STEMS, stem.into())?;
        Ok(rows.iter().map(|row| string(row, 1)).collect())
    }

    fn is_in_a_note(&self, term: &str, matching: TermMatch) -> Result<bool> {
        let end = end_of(term);
        let between = [text(&term), text(&end)];
        let (known, is_term, params) = match matching {
            TermMatch::Whole => (self.known_rows_of_key(&POSTINGS, term.into()), "term = $1", &between[..1]),
            TermMatch::Prefix => {
                (self.known_rows(POSTINGS_BETWEEN, &between), "term >= $1 AND term < $2", &between[..])
            }
        };
        match known {
            Some(rows) => Ok(postings(&rows).next().is_some()),
            None => {
                self.is(&format!("SELECT EXISTS (SELECT 1 FROM posting WHERE vault = @vault AND {is_term})"), params)
            }
        }
    }

    fn document_frequency(&self, term: &str) -> Result<u64> {
        let rows = self.rows_of_key(&FREQUENCIES, term.into())?;
        Ok(rows.first().map_or(0, |row| row.get::<_, i64>(1) as u64))
    }

    fn each_occurrence(
        &self,
        term: &str,
        matching: TermMatch,
        each: &mut dyn FnMut(&str, Holder, Field) -> bool,
    ) -> Result<()> {
        let rows = match matching {
            TermMatch::Whole => self.rows_of_key(&POSTINGS, term.into())?,
            TermMatch::Prefix => self.rows(POSTINGS_BETWEEN, &[text(&term), text(&end_of(term))])?,
        };
        for (term, holder, field, count) in postings(&rows) {
            if (0..count).any(|_| !each(term, holder, field)) {
                break;
            }
        }
        Ok(())
    }

    fn each_field(&self, term: &str, each: &mut dyn FnMut(Holder, Field)) -> Result<()> {
        let rows = self.rows_of_key(&POSTINGS, term.into())?;
        postings(&rows).for_each(|(_, holder, field, _)| each(holder, field));
        Ok(())
    }

    fn passages_with(&self, phrase: &[QueryTerm]) -> Result<Vec<i64>> {
        let Some(last) = phrase.last() else { return Ok(Vec::new()) };
        let is_prefix = last.matching == TermMatch::Prefix;
        let words: Vec<String> = phrase.iter().flat_map(|term| terms(&term.text).collect::<Vec<_>>()).collect();
        let Some((last, others)) = words.split_last() else { return Ok(Vec::new()) };
        let searched = format!(" {}{}", words.join(" "), if is_prefix { "" } else { " " });
        // For a whole word: the next possible text.
        let end = if is_prefix { end_of(last) } else { format!("{last}\u{1}") };
        let others: Vec<&str> = others.iter().map(String::as_str).collect();
        // Who has all terms, then who has them side by side.
        let holders = |passages: bool| {
            let field = if passages { "field >= 5" } else { "field < 5" };
            let of = format!("SELECT holder FROM posting WHERE vault = @vault AND {field} AND");
            format!(
                "SELECT holder FROM ({of} term >= $2 AND term < $3 GROUP BY holder) AS last WHERE NOT EXISTS (
                   SELECT 1 FROM unnest($4::text[]) AS other(term) WHERE NOT EXISTS (
                     {of} posting.term = other.term AND posting.holder = last.holder))"
            )
        };
        let sql = format!(
            "SELECT passage FROM words WHERE vault = @vault AND passage IN ({})
               AND (strpos(headings, $1) > 0 OR strpos(body, $1) > 0)
             UNION ALL SELECT passage.id FROM passage WHERE vault = @vault AND note IN (
               SELECT note FROM note_words WHERE vault = @vault AND note IN ({}) AND (strpos(title, $1) > 0
                 OR strpos(aliases, $1) > 0 OR strpos(tags, $1) > 0 OR strpos(properties, $1) > 0
                 OR strpos(path, $1) > 0))",
            holders(true),
            holders(false)
        );
        let others: Param<'_> = (&others, postgres::types::Type::TEXT_ARRAY);
        self.all(&sql, &[text(&searched), text(last), text(&end), others], |row| row.get(0))
    }
}

impl WriteWords for VaultStore {
    fn replace_note_words(&self, notes: Vec<(FileId, NoteFields)>, vocabulary: &[Word]) -> Result<()> {
        let ids: Vec<i64> = notes.iter().map(|(note, _)| i64::from(note.0)).collect();
        let sql = "WITH removed AS (DELETE FROM posting WHERE vault = @vault AND field < 5 AND holder = ANY($1))
             DELETE FROM note_words WHERE vault = @vault AND note = ANY($1)";
        self.run(sql, &[ints(&ids)])?;
        let mut new = self.new.borrow_mut();
        add_vocabulary(&mut new, self.vault, vocabulary);
        notes.iter().for_each(|(note, fields)| add_note_words(&mut new, self.vault, *note, fields));
        Ok(())
    }
}

impl VaultStore {
    /// The number of the next new passage: never one that was given before.
    pub(crate) fn next_passage_id(&self) -> Result<i64> {
        let there =
            self.first("SELECT coalesce(max(id), 0) + 1 FROM passage WHERE vault = @vault", &[], |row| row.get(0))?;
        let given = self.setting("next_passage")?.and_then(|id| id.parse().ok());
        Ok(there.unwrap_or(1).max(given.unwrap_or(0)))
    }

    /// A setting of the vault. All are read at once, because there are few.
    pub(crate) fn setting(&self, key: &str) -> Result<Option<String>> {
        let ask = || self.rows("SELECT key, value FROM meta WHERE vault = @vault", &[]);
        // A reader keeps them.
        self.prefetch(&mut || ask().map(drop))?;
        Ok(ask()?.iter().find(|row| row.get::<_, &str>(0) == key).map(|row| row.get(1)))
    }

    /// Sets a setting of the vault.
    pub(crate) fn set_setting(&self, key: &str, value: &str) -> Result<()> {
        let sql = "INSERT INTO meta VALUES(@vault, $1, $2) ON CONFLICT(vault, key) DO UPDATE SET value = $2";
        self.run(sql, &[text(&key), text(&value)])
    }
}
