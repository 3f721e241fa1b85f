//! Posting lists: for each term, the passages that contain it and how often, in two bytes where the count is small.
//!
//! FTS5 holds the same facts with positions. It lists them one row of a virtual table for each occurrence, about a third
//! of a microsecond each, which was most of a search by words; an entry here takes a small part of that. Phrases are
//! still searched in FTS5.
//!
//! # Layout
//! Table `posting(term, segment, entries)`: a row has the entries of passages with ids from `segment * 4096` on, in
//! ascending order. Ids of new passages are higher than all before, so a row only ever grows at its end. An entry is a
//! little-endian `u16`: the upper 12 bits are the passage's place in the segment; the lower 4 bits are how often its body
//! has the term, from 1 to 15, if its headings do not. Otherwise they are 0, and two more `u16` follow: how often its
//! headings and its body have the term, at most 65,535.
//!
//! Ids are never reused, so the entries of removed passages are harmless: a search skips ids that it does not know. They
//! are deleted when there may be more of them than of others.

use std::collections::{HashMap, HashSet};

use rusqlite::params;

use crate::error::Result;
use crate::store::Store;
use crate::store::fulltext::PassageFields;

/// Passages of a segment.
const SEGMENT: i64 = 1 << 12;
/// The bits of an entry below a passage's place.
const COUNT_BITS: u32 = 4;
const MOST_IN_BITS: u16 = (1 << COUNT_BITS) - 1;

/// Removed passages whose entries are left alone in any case.
const TOLERATED: i64 = 4096;
/// The key of the setting with the first id that no passage had when entries were deleted last.
const CLEANED_AT: &str = "postings_cleaned_at";

/// An occurrence count of a term in a passage.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Entry {
    pub passage: i64,
    pub in_headings: u16,
    pub in_body: u16,
}

/// The entries of new passages, which are written when their transaction is committed: the terms of each segment.
#[derive(Debug, Default)]
pub(super) struct NewPostings(Vec<(i64, HashMap<Box<str>, TermPostings>)>);

/// The entries of a term in a segment. The last one is still being counted.
#[derive(Debug)]
struct TermPostings {
    last: Entry,
    /// Those before it.
    entries: Vec<u8>,
}

impl NewPostings {
    /// Adds the terms of a passage, whose id is higher than those of all before.
    pub(super) fn add(&mut self, passage: i64, fields: &PassageFields) {
        let segment = passage.div_euclid(SEGMENT);
        if self.0.last().is_none_or(|(last, _)| *last != segment) {
            self.0.push((segment, HashMap::new()));
        }
        let (_, terms) = self.0.last_mut().expect("one was pushed");
        let mut count = |text: &str, number: fn(&mut Entry) -> &mut u16| {
            for term in text.split_ascii_whitespace() {
                let none = Entry { passage, in_headings: 0, in_body: 0 };
                let postings = match terms.get_mut(term) {
                    Some(postings) => postings,
                    None => terms.entry(term.into()).or_insert(TermPostings { last: none, entries: Vec::new() }),
                };
                if postings.last.passage != passage {
                    write_entry(postings.last, &mut postings.entries);
                    postings.last = none;
                }
                let number = number(&mut postings.last);
                *number = number.saturating_add(1);
            }
        };
        count(&fields.headings, |entry| &mut entry.in_headings);
        count(&fields.body, |entry| &mut entry.in_body);
    }

    pub(super) fn clear(&mut self) {
        self.0.clear();
    }
}

fn write_entry(entry: Entry, out: &mut Vec<u8>) {
    let place = (entry.passage.rem_euclid(SEGMENT) as u16) << COUNT_BITS;
    if entry.in_headings == 0 && (1..=MOST_IN_BITS).contains(&entry.in_body) {
        out.extend((place | entry.in_body).to_le_bytes());
    } else {
        for number in [place, entry.in_headings, entry.in_body] {
            out.extend(number.to_le_bytes());
        }
    }
}

/// Calls `each` for the entries of a row, in ascending order, until it returns `false`. Returns whether it never did.
/// Half an entry at the end, which only damage can leave, is skipped.
fn each_entry(segment: i64, bytes: &[u8], mut each: impl FnMut(Entry) -> bool) -> bool {
    let first = segment.wrapping_mul(SEGMENT);
    let mut numbers = bytes.as_chunks().0.iter().map(|bytes| u16::from_le_bytes(*bytes));
    while let Some(number) = numbers.next() {
        let passage = first.wrapping_add(i64::from(number >> COUNT_BITS));
        let (in_headings, in_body) = match number & MOST_IN_BITS {
            0 => match (numbers.next(), numbers.next()) {
                (Some(in_headings), Some(in_body)) => (in_headings, in_body),
                _ => return true,
            },
            in_body => (0, in_body),
        };
        if !each(Entry { passage, in_headings, in_body }) {
            return false;
        }
    }
    true
}

impl Store {
    /// Calls `each` for every passage that contains a term, or one of the terms from it up to `end`, until it returns
    /// `false`: by term, then by id. Entries of removed passages are included.
    pub(super) fn each_posting(
        &self,
        term: &str,
        end: Option<&str>,
        mut each: impl FnMut(&str, Entry) -> bool,
    ) -> Result<()> {
        self.with(|conn| {
            let sql = match end {
                None => "SELECT term, segment, entries FROM posting WHERE term = ?1 AND ?2 IS NULL",
                Some(_) => "SELECT term, segment, entries FROM posting WHERE term >= ?1 AND term < ?2",
            };
            let mut statement = conn.prepare_cached(sql)?;
            let mut rows = statement.query(params![term, end])?;
            while let Some(row) = rows.next()? {
                let (term, segment, entries) = (row.get_ref(0)?.as_str()?, row.get(1)?, row.get_ref(2)?.as_blob()?);
                if !each_entry(segment, entries, |entry| each(term, entry)) {
                    break;
                }
            }
            Ok(())
        })
    }

    /// Writes the entries of the transaction's new passages, by term so that each page is written once, and deletes
    /// those of removed passages if there may be too many.
    pub(super) fn write_postings(&self) -> Result<()> {
        let NewPostings(segments) = self.new_postings.take();
        if segments.is_empty() {
            return Ok(());
        }
        self.with(|conn| {
            let mut statement = conn.prepare_cached(
                "INSERT INTO posting(term, segment, entries) VALUES(?1, ?2, ?3)
                 ON CONFLICT DO UPDATE SET entries = CAST(entries || ?3 AS BLOB)",
            )?;
            for (segment, terms) in segments {
                let mut terms: Vec<_> = terms.into_iter().collect();
                terms.sort_unstable_by(|(a, _), (b, _)| a.cmp(b));
                for (term, TermPostings { last, mut entries }) in terms {
                    write_entry(last, &mut entries);
                    statement.execute(params![term, segment, entries])?;
                }
            }
            Ok(())
        })?;
        let next = self.next_passage_id()?;
        let cleaned_at: i64 = self.meta(CLEANED_AT)?.and_then(|id| id.parse().ok()).unwrap_or(0);
        match next - cleaned_at > self.passage_count()? as i64 + TOLERATED {
            true => self.delete_dead_postings(next),
            false => Ok(()),
        }
    }

    /// Deletes the entries of removed passages.
    fn delete_dead_postings(&self, next: i64) -> Result<()> {
        let alive: HashSet<i64> = self.all("SELECT id FROM passage", [], |row| row.get(0))?.into_iter().collect();
        let mut changed: Vec<(String, i64, Vec<u8>)> = Vec::new();
        self.with(|conn| {
            let mut statement = conn.prepare("SELECT term, segment, entries FROM posting")?;
            let mut rows = statement.query([])?;
            while let Some(row) = rows.next()? {
                let (segment, entries) = (row.get(1)?, row.get_ref(2)?.as_blob()?);
                let mut left = Vec::new();
                each_entry(segment, entries, |entry| {
                    if alive.contains(&entry.passage) {
                        write_entry(entry, &mut left);
                    }
                    true
                });
                if left.len() != entries.len() {
                    changed.push((row.get(0)?, segment, left));
                }
            }
            Ok(())
        })?;
        for (term, segment, left) in changed {
            match left.is_empty() {
                true => self.run("DELETE FROM posting WHERE term = ?1 AND segment = ?2", params![term, segment])?,
                false => self.run(
                    "UPDATE posting SET entries = ?3 WHERE term = ?1 AND segment = ?2",
                    params![term, segment, left],
                )?,
            }
        }
        self.set_meta(CLEANED_AT, &next.to_string())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::path::FileId;
    use crate::store::{NewPassage, key_of};

    fn passage(headings: &str, body: &str) -> NewPassage {
        let fields = PassageFields { headings: headings.to_owned(), body: body.to_owned() };
        let (key, text) = (key_of(body), body.to_owned());
        NewPassage { headings: "[]".into(), lines: (1, 1), span: 0..0, text, key, said: 0, tokens: 0, fields }
    }

    /// Replaces the passages of a note, in one transaction.
    fn replace(store: &Store, note: FileId, passages: &[NewPassage]) {
        let transaction = store.begin().unwrap();
        store.remove_passages(note).unwrap();
        let mut next = store.next_passage_id().unwrap();
        for passage in passages {
            store.put_words(next, &passage.fields).unwrap();
            store.put_passage(next, note, None, passage).unwrap();
            next += 1;
        }
        store.set_next_passage_id(next).unwrap();
        transaction.commit().unwrap();
    }

    fn entries_of(store: &Store, term: &str) -> Vec<(i64, u16, u16)> {
        let mut entries = Vec::new();
        let add = |_: &str, entry: Entry| {
            entries.push((entry.passage, entry.in_headings, entry.in_body));
            true
        };
        store.each_posting(term, None, add).unwrap();
        entries
    }

    #[test]
    fn rows_grow_with_each_transaction_and_cross_segments() {
        let store = Store::scratch().unwrap();
        let many: Vec<_> = (0..SEGMENT).map(|_| passage("", "heron")).collect();
        replace(&store, FileId(1), &many);
        replace(&store, FileId(2), &[passage("heron", "heron heron ibis"), passage("ibis", "")]);
        replace(&store, FileId(3), &[passage("", "ibis heron")]);
        assert_eq!(entries_of(&store, "heron")[4094..], [(4095, 0, 1), (4096, 0, 1), (4097, 1, 2), (4099, 0, 1)]);
        assert_eq!(entries_of(&store, "ibis"), [(4097, 0, 1), (4098, 1, 0), (4099, 0, 1)]);
        assert_eq!(store.unsound_postings().unwrap(), 0);
    }

    #[test]
    fn a_transaction_that_is_rolled_back_leaves_no_entry() {
        let store = Store::scratch().unwrap();
        let transaction = store.begin().unwrap();
        store.put_passage(1, FileId(1), None, &passage("", "heron")).unwrap();
        drop(transaction);
        replace(&store, FileId(1), &[passage("", "ibis")]);
        assert_eq!(entries_of(&store, "heron"), []);
        assert_eq!(entries_of(&store, "ibis"), [(1, 0, 1)]);
    }

    #[test]
    fn entries_of_removed_passages_are_deleted_when_there_are_many() {
        let store = Store::scratch().unwrap();
        replace(&store, FileId(1), &[passage("", "ibis")]);
        let half: Vec<_> = (0..TOLERATED / 2).map(|_| passage("", "heron")).collect();
        replace(&store, FileId(2), &half);
        replace(&store, FileId(2), &half);
        assert_eq!(entries_of(&store, "heron").len(), 2 * half.len(), "not yet");
        replace(&store, FileId(2), &half);
        assert_eq!(entries_of(&store, "heron").len(), half.len());
        assert_eq!(entries_of(&store, "ibis"), [(1, 0, 1)]);
        assert_eq!(store.unsound_postings().unwrap(), 0);
    }

    proptest! {
        #[test]
        fn entries_are_read_as_they_were_written(
            counts in prop::collection::btree_map(0..SEGMENT, (0u16..3, prop_oneof![0u16..40, Just(u16::MAX)]), 0..40),
            segment in 0i64..1 << 30,
        ) {
            let entries: Vec<Entry> = counts
                .into_iter()
                .map(|(place, (in_headings, in_body))| Entry { passage: segment * SEGMENT + place, in_headings, in_body })
                .collect();
            let mut bytes = Vec::new();
            entries.iter().for_each(|entry| write_entry(*entry, &mut bytes));
            let mut read = Vec::new();
            each_entry(segment, &bytes, |entry| { read.push(entry); true });
            prop_assert_eq!(read, entries);
        }

        #[test]
        fn any_bytes_are_read(bytes: Vec<u8>, segment: i64) {
            let mut entries = 0;
            each_entry(segment, &bytes, |_| { entries += 1; true });
            prop_assert!(entries <= bytes.len() / 2);
        }
    }
}
