//! The keyword index: FTS5 with terms, the words of notes, and the statistics that BM25 needs.

use rusqlite::params;

use crate::error::Result;
use crate::path::FileId;
use crate::store::Store;
use crate::terms::{HYPHENATED, QueryTerm, TermMatch};

/// The fields of a note in the keyword index, each as terms joined by spaces. They count as words of all its passages.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct NoteFields {
    /// Of its title.
    pub title: String,
    /// Of its aliases.
    pub aliases: String,
    /// Of its tags.
    pub tags: String,
    /// Of the values of its properties.
    pub properties: String,
    /// Of its folders.
    pub path: String,
}

/// The fields of a passage.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PassageFields {
    /// Of the headings that it is below.
    pub headings: String,
    /// Of its text.
    pub body: String,
}

impl NoteFields {
    /// The total length of all terms.
    pub(crate) fn bytes(&self) -> usize {
        [&self.title, &self.aliases, &self.tags, &self.properties, &self.path].into_iter().map(String::len).sum()
    }
}

impl PassageFields {
    /// The number of terms in the text.
    pub fn length(&self) -> u32 {
        let spaces = self.body.bytes().filter(|byte| *byte == b' ').count() as u32;
        spaces + u32::from(!self.body.is_empty())
    }

    /// The total length of all terms.
    pub(crate) fn bytes(&self) -> usize {
        self.headings.len() + self.body.len()
    }
}

/// The fields in which a term can be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Field {
    /// A note's title.
    Title,
    /// A note's aliases.
    Aliases,
    /// The headings of a passage.
    Headings,
    /// A note's tags.
    Tags,
    /// The values of a note's properties.
    Properties,
    /// A note's folders.
    Path,
    /// The text of a passage.
    Body,
}

/// The fields of a note, each with its column.
const NOTE_FIELDS: [(Field, &str); 5] = [
    (Field::Title, "title"),
    (Field::Aliases, "aliases"),
    (Field::Tags, "tags"),
    (Field::Properties, "properties"),
    (Field::Path, "path"),
];

/// The number of fields.
pub(crate) const FIELD_COUNT: usize = 7;

/// The owner of a field that contains a term.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Holder {
    /// A note.
    Note(FileId),
    /// A passage, by its id.
    Passage(i64),
}

/// A word of the vocabulary, and its stem if that is another word.
pub type Word = (String, Option<String>);

/// The two tables of terms.
const TABLES: [&str; 2] = ["note_words", "words"];

/// The questions of a search about words.
pub trait ReadWords {
    /// All words of the vocabulary, except those for text written with hyphens.
    fn vocabulary(&self) -> Result<Vec<String>>;

    /// The words with a stem, possibly including the stem itself.
    fn words_with_stem(&self, stem: &str) -> Result<Vec<String>>;

    /// Whether any note contains a term.
    fn is_in_a_note(&self, term: &str, matching: TermMatch) -> Result<bool>;

    /// The number of notes with the term in their own fields plus the number of passages with it.
    fn document_frequency(&self, term: &str) -> Result<u64>;

    /// Calls `each` for every occurrence of a term, until it returns `false`, with the term, its owner, and the field.
    /// All occurrences in notes come before those in passages; in both by term, then by id. Passages that were removed
    /// may be among the owners.
    fn each_occurrence(
        &self,
        term: &str,
        matching: TermMatch,
        each: &mut dyn FnMut(&str, Holder, Field) -> bool,
    ) -> Result<()>;

    /// Calls `each` once for every field that contains a term, whatever the number of occurrences, with the same owners as
    /// [`each_occurrence`](Self::each_occurrence).
    fn each_field(&self, term: &str, each: &mut dyn FnMut(Holder, Field)) -> Result<()>;

    /// The passages that contain these terms side by side in one of their fields or of their note's; the last one may
    /// be a prefix. In no order, some twice.
    fn passages_with(&self, phrase: &[QueryTerm]) -> Result<Vec<i64>>;
}

/// The indexer's changes of words besides those of new notes.
pub trait WriteWords {
    /// Replaces the words of notes' own fields, and adds words to the vocabulary.
    fn replace_note_words(&self, notes: Vec<(FileId, NoteFields)>, vocabulary: &[Word]) -> Result<()>;
}

impl Store {
    /// Adds the words of a note's own fields.
    pub(crate) fn put_note_words(&self, note: FileId, fields: &NoteFields) -> Result<()> {
        let NoteFields { title, aliases, tags, properties, path } = fields;
        self.run(
            "INSERT INTO note_words(rowid, title, aliases, tags, properties, path) VALUES(?1, ?2, ?3, ?4, ?5, ?6)",
            params![note, title, aliases, tags, properties, path],
        )
    }

    /// Removes the words of a note's own fields.
    pub(super) fn remove_note_words(&self, note: FileId) -> Result<()> {
        self.run("DELETE FROM note_words WHERE rowid = ?1", [note])
    }

    /// Adds the words of a passage.
    pub(crate) fn put_words(&self, passage: i64, fields: &PassageFields) -> Result<()> {
        let PassageFields { headings, body } = fields;
        self.run("INSERT INTO words(rowid, headings, body) VALUES(?1, ?2, ?3)", params![passage, headings, body])
    }

    /// Adds words to the vocabulary; existing ones stay. A word stays even if no note has it any more.
    pub(crate) fn put_vocabulary(&self, words: &[Word]) -> Result<()> {
        words.iter().try_for_each(|(word, stem)| {
            self.run("INSERT OR IGNORE INTO vocabulary(word, stem) VALUES(?1, ?2)", params![word, stem])
        })
    }

    /// Creates virtual tables that list the positions of all terms and count them; they are views of the keyword index
    /// without data of their own. Outside of a transaction they are created once per connection, because checking for
    /// them at each term took a tenth of a long search by words.
    pub(super) fn occurrence_views(&self) -> Result<()> {
        if self.has_views.get() {
            return Ok(());
        }
        let view = |table, kind, of| {
            format!("CREATE VIRTUAL TABLE IF NOT EXISTS temp.{table}_{kind} USING fts5vocab(main, {table}, {of});")
        };
        let views = TABLES.map(|table| view(table, "instances", "instance") + &view(table, "counts", "row"));
        self.with(|conn| views.iter().try_for_each(|sql| conn.execute_batch(sql)))?;
        // Rolling back a transaction removes them.
        self.has_views.set(self.conn.is_autocommit());
        Ok(())
    }

    /// Calls `each` for every occurrence of a term, or of the terms from it up to `end`, in notes' own fields, until it
    /// returns `false`. Returns whether it never did.
    fn each_note_occurrence(
        &self,
        term: &str,
        end: Option<&str>,
        each: &mut dyn FnMut(&str, Holder, Field) -> bool,
    ) -> Result<bool> {
        self.occurrence_views()?;
        self.with(|conn| {
            let sql = match end {
                None => "SELECT doc, col, term FROM temp.note_words_instances WHERE term = ?1 AND ?2 IS NULL",
                Some(_) => "SELECT doc, col, term FROM temp.note_words_instances WHERE term >= ?1 AND term < ?2",
            };
            let mut statement = conn.prepare_cached(sql)?;
            let mut rows = statement.query(params![term, end])?;
            while let Some(row) = rows.next()? {
                let column = row.get_ref(1)?.as_str()?;
                let field =
                    NOTE_FIELDS.iter().find(|(_, name)| *name == column).map_or(Field::Path, |(field, _)| *field);
                if !each(row.get_ref(2)?.as_str()?, Holder::Note(row.get(0)?), field) {
                    return Ok(false);
                }
            }
            Ok(true)
        })
    }
}

impl WriteWords for Store {
    fn replace_note_words(&self, mut notes: Vec<(FileId, NoteFields)>, vocabulary: &[Word]) -> Result<()> {
        // All removals come first, then the rest by id; otherwise the keyword index is written out for each.
        notes.sort_unstable_by_key(|(note, _)| *note);
        notes.iter().try_for_each(|(note, _)| self.remove_note_words(*note))?;
        self.put_vocabulary(vocabulary)?;
        notes.iter().try_for_each(|(note, fields)| self.put_note_words(*note, fields))
    }
}

impl ReadWords for Store {
    fn vocabulary(&self) -> Result<Vec<String>> {
        let sql = "SELECT word FROM vocabulary WHERE word NOT GLOB ?1 || '*'";
        self.all(sql, [HYPHENATED.to_string()], |row| row.get(0))
    }

    fn words_with_stem(&self, stem: &str) -> Result<Vec<String>> {
        self.all(
            "SELECT word FROM vocabulary WHERE stem = ?1
             UNION ALL SELECT word FROM vocabulary WHERE word = ?1 AND stem IS NULL",
            [stem],
            |row| row.get(0),
        )
    }

    fn is_in_a_note(&self, term: &str, matching: TermMatch) -> Result<bool> {
        let star = if matching == TermMatch::Prefix { "*" } else { "" };
        self.only(
            "SELECT EXISTS (SELECT 1 FROM note_words WHERE note_words MATCH ?1)
                 OR EXISTS (SELECT 1 FROM words WHERE words MATCH ?1)",
            [format!("\"{term}\"{star}")],
        )
    }

    fn document_frequency(&self, term: &str) -> Result<u64> {
        self.occurrence_views()?;
        self.only(
            "SELECT ifnull((SELECT doc FROM temp.note_words_counts WHERE term = ?1), 0)
                  + ifnull((SELECT doc FROM temp.words_counts WHERE term = ?1), 0)",
            [term],
        )
    }

    fn each_occurrence(
        &self,
        term: &str,
        matching: TermMatch,
        each: &mut dyn FnMut(&str, Holder, Field) -> bool,
    ) -> Result<()> {
        // Greater than all terms with the prefix: terms are text, and no text contains this character.
        let end = (matching == TermMatch::Prefix).then(|| format!("{term}\u{10ffff}"));
        if !self.each_note_occurrence(term, end.as_deref(), each)? {
            return Ok(());
        }
        self.each_posting(term, end.as_deref(), |term, entry| {
            let holder = Holder::Passage(entry.passage);
            (0..entry.in_headings).all(|_| each(term, holder, Field::Headings))
                && (0..entry.in_body).all(|_| each(term, holder, Field::Body))
        })
    }

    fn each_field(&self, term: &str, each: &mut dyn FnMut(Holder, Field)) -> Result<()> {
        self.with(|conn| {
            for (field, column) in NOTE_FIELDS {
                let mut statement = conn.prepare_cached("SELECT rowid FROM note_words WHERE note_words MATCH ?1")?;
                let mut rows = statement.query([format!("{column} : \"{term}\"")])?;
                while let Some(row) = rows.next()? {
                    each(Holder::Note(row.get(0)?), field);
                }
            }
            Ok(())
        })?;
        self.each_posting(term, None, |_, entry| {
            let fields = [(entry.in_headings, Field::Headings), (entry.in_body, Field::Body)];
            fields
                .iter()
                .filter(|(count, _)| *count > 0)
                .for_each(|(_, field)| each(Holder::Passage(entry.passage), *field));
            true
        })
    }

    fn passages_with(&self, phrase: &[QueryTerm]) -> Result<Vec<i64>> {
        let Some(expression) = phrase_expression(phrase) else { return Ok(Vec::new()) };
        self.all(
            "SELECT rowid FROM words WHERE words MATCH ?1
             UNION ALL SELECT passage.id FROM passage
               WHERE passage.note IN (SELECT rowid FROM note_words WHERE note_words MATCH ?1)",
            [expression],
            |row| row.get(0),
        )
    }
}

/// The FTS5 expression for terms side by side.
fn phrase_expression(phrase: &[QueryTerm]) -> Option<String> {
    let terms: Vec<&str> = phrase.iter().map(|term| term.text.as_str()).collect();
    let star = if phrase.last()?.matching == TermMatch::Prefix { "*" } else { "" };
    Some(format!("\"{}\"{star}", terms.join(" ")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::terms::Terms;

    #[test]
    fn a_transaction_that_ends_takes_no_view_along() {
        let store = Store::scratch().unwrap();
        let fields = NoteFields { title: "heron".to_owned(), ..NoteFields::default() };
        store.put_note_words(FileId(7), &fields).unwrap();
        let holders = || {
            let mut holders = Vec::new();
            let state = store.reading().unwrap();
            let found = store.each_occurrence("heron", TermMatch::Whole, &mut |_, holder, _| {
                holders.push(holder);
                true
            });
            drop(state);
            found.map(|()| holders)
        };
        assert_eq!(holders().unwrap(), [Holder::Note(FileId(7))]);
        assert_eq!(holders().unwrap(), [Holder::Note(FileId(7))]);
        store.occurrence_views().unwrap();
        assert_eq!(holders().unwrap(), [Holder::Note(FileId(7))]);
    }

    #[test]
    fn expressions_of_phrases() {
        let expression = |text: &str| phrase_expression(&Terms::new().phrase(text));
        assert_eq!(expression("Gardening tools").as_deref(), Some("\"gardening tools\""));
        assert_eq!(expression("京").as_deref(), Some("\"京\"*"));
        assert_eq!(expression("?!"), None);
    }
}
