//! Differences between two indexes. Rows are compared by the path of their file, because ids differ.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::fmt::Debug;
use std::hash::{DefaultHasher, Hash, Hasher};

use rusqlite::types::ValueRef;

use crate::error::Result;
use crate::path::FileId;
use crate::store::postings::Entry;
use crate::store::{Holder, ReadContents, ReadWords, Store};
use crate::terms::TermMatch;

/// The parts that are compared: the name of each, and its rows, which start with their path. No row contains an id of
/// its index file, so equal indexes have equal rows. A row whose path is NULL belongs to no file.
const PARTS: &[(&str, &str)] = &[
    (FILE, "SELECT path FROM file"),
    ("kind", "SELECT path, kind, indexed, disk FROM file"),
    (CONTENT, "SELECT path, hash FROM file"),
    ("size or time", "SELECT path, size, modified_ns FROM file"),
    (
        NOTE,
        "SELECT path, title, title_source, file_title, aliases, tags, frontmatter, anchors, words, version
         FROM note LEFT JOIN file USING(id)",
    ),
    (
        "names",
        "SELECT path, n, key, text, is_heading FROM name LEFT JOIN note ON note.id = note LEFT JOIN file USING(id)",
    ),
    ("tags", "SELECT path, key, shown FROM tag LEFT JOIN note ON note.id = note LEFT JOIN file USING(id)"),
    (
        "properties",
        "SELECT path, key, n, number, text FROM property LEFT JOIN note ON note.id = note LEFT JOIN file USING(id)",
    ),
    (
        PASSAGES,
        "SELECT path, length, said, headings, line, end_line, start, end, text
         FROM passage FULL JOIN passage_text USING(id) LEFT JOIN file ON file.id = note",
    ),
    (
        WORDS,
        "SELECT path, start, sz FROM words_docsize LEFT JOIN passage USING(id) LEFT JOIN passage_text USING(id)
         LEFT JOIN file ON file.id = note
         UNION ALL SELECT path, 'note', sz FROM note_words_docsize LEFT JOIN note USING(id) LEFT JOIN file USING(id)",
    ),
    (
        "links",
        "SELECT file.path, link.id & 0xffffff, link.id >> 24 = source, line, start, end, link.kind, raw, link.path,
           subpath, display, name, leads.path
         FROM link LEFT JOIN note ON note.id = source LEFT JOIN file ON file.id = note.id
         LEFT JOIN file AS leads ON leads.id = target",
    ),
    ("warnings", "SELECT file, skipped, kind, line, message FROM warning"),
    (
        "settings",
        "SELECT NULL, key, value FROM meta WHERE key IN ('embedder', 'dimensions')
         UNION ALL SELECT NULL, 'unread', ifnull((SELECT value FROM meta WHERE key = 'unread'), '0')",
    ),
];
const FILE: &str = "file";
const GONE: &str = "gone";
const NEW: &str = "new";
const CONTENT: &str = "content";
const NOTE: &str = "note";
const PASSAGES: &str = "passages";
const WORDS: &str = "words";
const VOCABULARY: &str = "vocabulary";
const VECTORS: &str = "vectors";

/// Tables, indexes, views and triggers, without the internal ones of extensions' virtual tables.
const OBJECTS: &str = "SELECT type || ' ' || name, sql FROM sqlite_master WHERE name NOT LIKE 'sqlite!_%' ESCAPE '!'
   AND (sql LIKE 'CREATE VIRTUAL%' OR NOT (name LIKE 'words!_%' ESCAPE '!' OR name LIKE 'note!_words!_%' ESCAPE '!' OR name LIKE 'vectors!_%' ESCAPE '!'))";

/// The vector of each passage, and that of the title at position -1.
const SLOTS: &str = "SELECT path, start, vector FROM passage JOIN passage_text USING(id) JOIN file ON file.id = note
     WHERE vector IS NOT NULL
   UNION ALL SELECT path, -1, title_vector FROM note JOIN file USING(id) WHERE title_vector IS NOT NULL";

/// The number of notes whose rows are read together from a store behind a network.
const NOTES_AT_ONCE: usize = 128;

/// The differences between two indexes.
#[derive(Debug, Default)]
pub(crate) struct Differences {
    /// Tables, indexes, views and triggers, by kind and name.
    pub objects: Vec<String>,
    /// The parts that differ, by path; rows that belong to no file have an empty path.
    pub rows: BTreeMap<String, Vec<&'static str>>,
    /// Slots of vectors that may belong to other texts than the index says.
    pub doubtful: BTreeSet<i64>,
}

impl Differences {
    /// One line for each path and object, except for the paths that `ignored` selects.
    pub(crate) fn faults(&self, ignored: impl Fn(&str) -> bool) -> Vec<String> {
        let objects = self
            .objects
            .iter()
            .map(|object| format!("the {object} is missing, unexpected, or has a different definition"));
        let rows = self.rows.iter().filter(|(path, _)| !ignored(path)).map(|(path, parts)| match parts[0] {
            _ if path.is_empty() => format!("content that belongs to no note differs: {}", parts.join(", ")),
            GONE => format!("{path}: was deleted, but is still in the index"),
            NEW => format!("{path}: is not in the index"),
            _ if parts.contains(&CONTENT) => format!("{path}: has other content than the index"),
            _ => format!("rows of {path} differ: {}", parts.join(", ")),
        });
        objects.chain(rows).collect()
    }
}

impl Store {
    /// Compares the whole content of this index with `expected`, which has the same slots for the same texts. Pending
    /// texts are not differences.
    pub(crate) fn differences(&self, expected: &Self) -> Result<Differences> {
        let objects = differing(&self.objects()?, &expected.objects()?).into_iter().cloned().collect();
        let mut differences = Differences { objects, ..Differences::default() };
        for (part, sql) in PARTS {
            let (mut here, mut there) = (self.row_hashes(sql)?, expected.row_hashes(sql)?);
            if *part == WORDS {
                self.add_word_hashes(&mut here)?;
                expected.add_word_hashes(&mut there)?;
            }
            for path in differing(&here, &there) {
                let part = match *part {
                    FILE if here.contains_key(path) => GONE,
                    FILE => NEW,
                    part => part,
                };
                differences.rows.entry(path.clone()).or_default().push(part);
            }
        }
        if self.missing_words(expected)? > 0 {
            differences.rows.entry(String::new()).or_default().push(VOCABULARY);
        }
        let expected = expected.slots()?;
        for ((path, start), slot) in self.slots()? {
            let parts = differences.rows.get(&path);
            // Different texts have different vectors.
            if parts.is_some_and(|parts| parts.iter().any(|part| [CONTENT, NOTE, PASSAGES].contains(part))) {
                continue;
            }
            let wanted = expected.get(&(path.clone(), start));
            if wanted != Some(&slot) {
                // It is unknown which of the two is wrong.
                differences.doubtful.extend([Some(slot), wanted.copied()].into_iter().flatten());
                let parts = differences.rows.entry(path).or_default();
                if !parts.contains(&VECTORS) {
                    parts.push(VECTORS);
                }
            }
        }
        Ok(differences)
    }

    /// The SQL of tables, indexes, views and triggers, with normalized spaces, which depend on the versions of SQLite
    /// and its extensions.
    fn objects(&self) -> Result<HashMap<String, String>> {
        let objects = self.all(OBJECTS, [], |row| Ok((row.get(0)?, row.get::<_, Option<String>>(1)?)))?;
        let words = |sql: Option<String>| sql.unwrap_or_default().split_whitespace().collect::<Vec<_>>().join(" ");
        Ok(objects.into_iter().map(|(name, sql)| (name, words(sql))).collect())
    }

    /// By the first column: the sum of the hashes of its rows, in any order.
    fn row_hashes(&self, sql: &str) -> Result<HashMap<String, u64>> {
        self.with(|conn| {
            let mut statement = conn.prepare(sql)?;
            let columns = statement.column_count();
            let mut rows = statement.query([])?;
            let mut hashes: HashMap<String, u64> = HashMap::new();
            while let Some(row) = rows.next()? {
                let mut hasher = DefaultHasher::new();
                (1..columns).try_for_each(|column| row.get_ref(column).map(|value| hash_value(value, &mut hasher)))?;
                let path = match row.get_ref(0)? {
                    ValueRef::Text(path) => String::from_utf8_lossy(path),
                    _ => "".into(),
                };
                add(&mut hashes, &path, hasher.finish());
            }
            Ok(hashes)
        })
    }

    /// Adds the positions of each term: the passage and its file, the field, and the number of preceding terms.
    fn add_word_hashes(&self, hashes: &mut HashMap<String, u64>) -> Result<()> {
        self.occurrence_views()?;
        let tables = [
            (
                "SELECT passage.id, path, start FROM passage JOIN passage_text USING(id) JOIN file ON file.id = note",
                "SELECT doc, term, col, offset FROM temp.words_instances",
            ),
            (
                "SELECT note.id, path, 0 FROM note JOIN file USING(id)",
                "SELECT doc, term, col, offset FROM temp.note_words_instances",
            ),
        ];
        for (places, terms) in tables {
            let places = self.all(places, [], |row| Ok((row.get(0)?, (row.get(1)?, row.get(2)?))))?;
            let places: HashMap<i64, (String, i64)> = places.into_iter().collect();
            self.with(|conn| {
                let mut statement = conn.prepare(terms)?;
                let mut rows = statement.query([])?;
                while let Some(row) = rows.next()? {
                    let mut hasher = DefaultHasher::new();
                    (1..4).try_for_each(|column| row.get_ref(column).map(|value| hash_value(value, &mut hasher)))?;
                    let (path, start) = places.get(&row.get(0)?).map_or(("", 0), |(path, start)| (path, *start));
                    hasher.write_i64(start);
                    add(hashes, path, hasher.finish());
                }
                Ok(())
            })?;
        }
        Ok(())
    }

    /// The number of terms whose posting lists differ from the keyword index, without those of removed passages. Takes memory
    /// for each term and each passage, not for each entry.
    pub(super) fn unsound_postings(&self) -> Result<usize> {
        self.occurrence_views()?;
        // For each term: the sum of the hashes of its occurrences, whatever their order.
        let mut expected: HashMap<String, u64> = HashMap::new();
        self.with(|conn| {
            let mut statement = conn.prepare("SELECT term, doc, col = 'headings' FROM temp.words_instances")?;
            let mut rows = statement.query([])?;
            while let Some(row) = rows.next()? {
                add(&mut expected, row.get_ref(0)?.as_str()?, hash_of(row.get(1)?, row.get(2)?));
            }
            Ok(())
        })?;
        let alive: HashSet<i64> = self.all("SELECT id FROM passage", [], |row| row.get(0))?.into_iter().collect();
        let mut found: HashMap<String, u64> = HashMap::new();
        self.each_posting("", Some("\u{10ffff}"), |term, Entry { passage, in_headings, in_body }| {
            if alive.contains(&passage) {
                let of = |number: u16, is_heading| hash_of(passage, is_heading).wrapping_mul(number.into());
                add(&mut found, term, of(in_headings, true).wrapping_add(of(in_body, false)));
            }
            true
        })?;
        Ok(differing(&expected, &found).len())
    }

    /// The number of words of another index that differ in or are missing from the vocabulary. Additional words are not
    /// differences, because words stay in it.
    fn missing_words(&self, expected: &Self) -> Result<usize> {
        let vocabulary = |store: &Self| -> Result<HashMap<String, Option<String>>> {
            let words = store.all("SELECT word, stem FROM vocabulary", [], |row| row.try_into())?;
            Ok(words.into_iter().collect())
        };
        let here = vocabulary(self)?;
        Ok(vocabulary(expected)?.iter().filter(|(word, stem)| here.get(*word) != Some(*stem)).count())
    }

    /// The slots of vectors, by path and position in it.
    fn slots(&self) -> Result<HashMap<(String, i64), i64>> {
        let slots = self.all(SLOTS, [], |row| Ok(((row.get(0)?, row.get(1)?), row.get(2)?)))?;
        Ok(slots.into_iter().collect())
    }
}

/// Compares what an index answers to all questions with the answers of `expected`, which has no vectors. A store in a
/// database has no rows of the file's tables.
pub(crate) fn differences_of(here: &dyn ReadContents, expected: &Store) -> Result<Differences> {
    let mut differences = Differences::default();
    let (answers, wanted) = (answers(here)?, answers(expected)?);
    for part in wanted.keys().chain(answers.keys()).collect::<BTreeSet<_>>() {
        let none = HashMap::new();
        let (here, there) = (answers.get(part).unwrap_or(&none), wanted.get(part).unwrap_or(&none));
        for path in differing(here, there) {
            let part = match *part {
                FILE if here.contains_key(path) => GONE,
                FILE => NEW,
                part => part,
            };
            differences.rows.entry(path.clone()).or_default().push(part);
        }
    }
    let words: BTreeSet<String> = here.vocabulary()?.into_iter().collect();
    if expected.vocabulary()?.iter().any(|word| !words.contains(word)) {
        differences.rows.entry(String::new()).or_default().push(VOCABULARY);
    }
    Ok(differences)
}

/// The hashes of what a store answers: by part, then by path.
fn answers(store: &dyn ReadContents) -> Result<BTreeMap<&'static str, HashMap<String, u64>>> {
    let mut answers: BTreeMap<&'static str, HashMap<String, u64>> = BTreeMap::new();
    let mut tell = |part: &'static str, path: &str, answer: &dyn Debug| {
        let mut hasher = DefaultHasher::new();
        hasher.write(format!("{answer:?}").as_bytes());
        add(answers.entry(part).or_default(), path, hasher.finish());
    };
    let mut paths: HashMap<FileId, String> = HashMap::new();
    for file in store.files()? {
        let (known, path) = (&file.known, file.known.path.as_str());
        tell(FILE, path, &());
        tell("kind", path, &(known.path.kind(), known.indexed, &file.disk));
        tell(CONTENT, path, &(known.hash, file.version));
        tell("size or time", path, &(known.stat.size, known.stat.mtime_ns));
        paths.insert(known.id, path.to_owned());
    }
    let path_of = |id: FileId| paths.get(&id).map_or("", String::as_str);
    let metas = store.note_metas()?;
    for meta in &metas {
        tell(NOTE, path_of(meta.id), &(&meta.title, &meta.tags));
    }
    for notes in metas.chunks(NOTES_AT_ONCE) {
        store.prefetch(&mut || {
            for note in notes {
                store.anchors(note.id)?;
                store.names_of(note.id)?;
                store.passage_texts(note.id)?;
                store.links_from(note.id)?;
            }
            Ok(())
        })?;
        for note in notes {
            let path = path_of(note.id);
            tell(NOTE, path, &store.anchors(note.id)?);
            tell("names", path, &store.names_of(note.id)?);
            tell(PASSAGES, path, &store.passage_texts(note.id)?);
            for link in store.links_from(note.id)? {
                let place = (link.id & 0xff_ffff, link.line, link.kind, link.raw, link.path, link.subpath);
                tell("links", path, &(place, link.target.map(path_of)));
            }
        }
    }
    for key in store.property_keys()? {
        for (note, value) in store.property_values(&key)? {
            tell("properties", path_of(note), &(&key, value));
        }
    }
    // The number of each passage in its note.
    let mut places: HashMap<i64, (&str, usize)> = HashMap::new();
    let mut number: HashMap<FileId, usize> = HashMap::new();
    for passage in store.passages()? {
        let number = number.entry(passage.note).or_default();
        tell(PASSAGES, path_of(passage.note), &(*number, passage.length, passage.said));
        places.insert(passage.id, (path_of(passage.note), *number));
        *number += 1;
    }
    store.each_occurrence("", TermMatch::Prefix, &mut |term, holder, field| {
        let (path, number) = match holder {
            Holder::Note(note) => (path_of(note), None),
            Holder::Passage(passage) => places.get(&passage).map_or(("", None), |(path, n)| (*path, Some(n))),
        };
        tell(WORDS, path, &(term, field as usize, number));
        true
    })?;
    let (skipped, warnings) = store.warnings()?;
    skipped.iter().for_each(|skipped| tell("warnings", &skipped.path, skipped));
    warnings.iter().for_each(|warning| tell("warnings", &warning.path, warning));
    tell("settings", "", &(store.embedder()?, store.unread()?));
    Ok(answers)
}

/// Hashes an occurrence of a term.
fn hash_of(passage: i64, is_heading: bool) -> u64 {
    let mut hasher = DefaultHasher::new();
    (passage, is_heading).hash(&mut hasher);
    hasher.finish()
}

fn add(hashes: &mut HashMap<String, u64>, path: &str, hash: u64) {
    match hashes.get_mut(path) {
        Some(sum) => *sum = sum.wrapping_add(hash),
        None => drop(hashes.insert(path.to_owned(), hash)),
    }
}

/// The keys that both have with different hashes, and those that only one has.
fn differing<'m, T: PartialEq>(a: &'m HashMap<String, T>, b: &'m HashMap<String, T>) -> BTreeSet<&'m String> {
    let keys = a.keys().chain(b.keys());
    keys.filter(|key| a.get(*key) != b.get(*key)).collect()
}

/// Hashes a value with its type and length, so that different sequences of values give different sequences of bytes.
fn hash_value(value: ValueRef<'_>, hasher: &mut DefaultHasher) {
    let (kind, number, bytes): (u8, i64, &[u8]) = match value {
        ValueRef::Null => (0, 0, &[]),
        ValueRef::Integer(number) => (1, number, &[]),
        ValueRef::Real(number) => (2, number.to_bits() as i64, &[]),
        ValueRef::Text(text) => (3, text.len() as i64, text),
        ValueRef::Blob(bytes) => (4, bytes.len() as i64, bytes),
    };
    hasher.write_u8(kind);
    hasher.write_i64(number);
    hasher.write(bytes);
}
