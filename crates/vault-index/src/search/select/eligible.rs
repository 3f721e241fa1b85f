//! The passages that the conditions of a query admit, before ranking.
//!
//! A condition applies to whole notes. Its result is the notes that meet it and, among their passages, those that
//! contain a requested text. The keyword index is used where it suffices; lines, sections, tasks and regular
//! expressions require reading the texts of the remaining passages.

use std::cell::OnceCell;
use std::collections::{HashMap, HashSet};
use std::ops::Range;

use jiff::{Timestamp, Zoned};
use rayon::prelude::*;

use crate::error::{Error, Result};
use crate::note::{TagKey, code_blocks, property_key};
use crate::path::{FileId, VaultPath};
use crate::search::query::Query;
use crate::search::query::condition::{Condition, Expression, Scope, Test};
use crate::search::query::path_pattern::PathPattern;
use crate::search::query::property_condition::{Comparison, PropertyTest};
use crate::search::query::text_condition::{Text, TextMatcher, TextPattern, TextTest};
use crate::search::select::find_note::find_note;
use crate::search::select::note_dates::{Days, days_of_notes};
use crate::search::select::passage_scopes::{blocks, sections, tasks};
use crate::search::select::phrase::passages_with_phrase;
use crate::search::snapshot::Snapshot;
use crate::store::{PropertyValue, ReadStore};
use crate::terms::TermMatch;

/// The number of passage texts that are read before they are searched, on all cores. The index is not locked during the
/// search, because a thread that waits for others may start another search.
const TEXTS_AT_ONCE: usize = 4096;

/// The same limit for whole notes, in bytes, because some are long.
const BYTES_AT_ONCE: usize = 16 << 20;

/// Whether each passage is eligible, by position. `None`: all are.
pub(in crate::search) fn eligible(snapshot: &Snapshot, query: &Query) -> Result<Option<Vec<bool>>> {
    let Some(condition) = query.whole_condition() else { return Ok(None) };
    Evaluator::new(snapshot).passages(&condition).map(Some)
}

/// Evaluates conditions for notes and passages.
pub(in crate::search) struct Evaluator<'a> {
    snapshot: &'a Snapshot,
    now: Zoned,
    notes: OnceCell<Vec<(FileId, VaultPath, i64)>>,
    days: OnceCell<HashMap<FileId, Days>>,
}

/// The result of a condition, by position of passages.
struct ConditionMatches {
    /// All passages of the notes that meet it.
    notes: Vec<bool>,
    /// Those of them that contain a requested text. `None`: no text was requested.
    holding: Option<Vec<bool>>,
}

impl ConditionMatches {
    fn passages(self) -> Vec<bool> {
        self.holding.unwrap_or(self.notes)
    }
}

impl<'a> Evaluator<'a> {
    pub(in crate::search) fn new(snapshot: &'a Snapshot) -> Self {
        Self { snapshot, now: Zoned::now(), notes: OnceCell::new(), days: OnceCell::new() }
    }

    /// The passages that are found with the condition.
    pub(in crate::search) fn passages(&self, condition: &Condition) -> Result<Vec<bool>> {
        let all = vec![true; self.snapshot.passages.len()];
        self.evaluate(condition, &all).map(ConditionMatches::passages)
    }

    /// Evaluates a condition for the passages of some notes. The result for other notes is undefined.
    fn evaluate(&self, condition: &Condition, among: &[bool]) -> Result<ConditionMatches> {
        match condition {
            Expression::Is(test) => self.test(test, among),
            Expression::Not(part) => {
                let ConditionMatches { mut notes, .. } = self.evaluate(part, among)?;
                notes.iter_mut().for_each(|holds| *holds = !*holds);
                Ok(ConditionMatches { notes, holding: None })
            }
            Expression::All(parts) => {
                let mut notes = among.to_vec();
                let mut holding: Option<Vec<bool>> = None;
                // Conditions that read texts come last, and read only those of the remaining notes.
                let (slow, quick): (Vec<_>, Vec<_>) = parts.iter().partition(|part| reads_texts(part));
                for part in quick.into_iter().chain(slow) {
                    let answer = self.evaluate(part, &notes)?;
                    and(&mut notes, &answer.notes);
                    if let Some(passages) = answer.holding {
                        holding = Some(either(holding, passages));
                    }
                }
                if let Some(holding) = &mut holding {
                    and(holding, &notes);
                }
                Ok(ConditionMatches { notes, holding })
            }
            Expression::Any(parts) => {
                let parts = parts.iter().map(|part| self.evaluate(part, among)).collect::<Result<Vec<_>>>()?;
                let asks_texts = parts.iter().any(|answer| answer.holding.is_some());
                let mut notes = vec![false; among.len()];
                let mut holding = None;
                for answer in parts {
                    or(&mut notes, &answer.notes);
                    holding = Some(either(holding, answer.passages()));
                }
                Ok(ConditionMatches { notes, holding: holding.filter(|_| asks_texts) })
            }
        }
    }

    fn test(&self, test: &Test, among: &[bool]) -> Result<ConditionMatches> {
        let store = self.snapshot.store()?;
        let notes = match test {
            Test::Text(text) => {
                drop(store);
                return Ok(self.holding(self.text(text, among)?));
            }
            Test::Within(scope, tests) => {
                drop(store);
                return Ok(self.holding(self.within(*scope, tests, among)?));
            }
            Test::FileName(text) => {
                let name = text.matcher()?;
                self.notes_where(&*store, |path, _| name.holds(&Text::new(path.file_name())))?
            }
            Test::Path(glob) => {
                let pattern = PathPattern::new(glob)?;
                self.notes_where(&*store, |path, _| pattern.matches(path))?
            }
            Test::PathText(text) => {
                let path_text = text.matcher()?;
                self.notes_where(&*store, |path, _| path_text.holds(&Text::new(path.as_str())))?
            }
            Test::Tag(tag) => store.notes_with_tag(TagKey::new(tag).as_str())?.into_iter().collect(),
            Test::Property(test) => with_property(&*store, test, &self.now)?,
            Test::LinksTo(name) => {
                let target = find_note(&*store, name)?;
                store.links_to(target)?.into_iter().map(|link| link.source).collect()
            }
            Test::LinkedFrom(name) => {
                let source = find_note(&*store, name)?;
                store.links_from(source)?.into_iter().filter_map(|link| link.target).collect()
            }
            Test::Orphan => {
                let linked: HashSet<FileId> = store.linked()?.into_iter().collect();
                let notes = self.snapshot.passages.iter().map(|passage| passage.note);
                notes.filter(|note| !linked.contains(note)).collect()
            }
            Test::Date(range) => {
                if self.days.get().is_none() {
                    _ = self.days.set(days_of_notes(&*store, &self.now)?);
                }
                let days = self.days.get().into_iter().flatten();
                days.filter(|(_, (first, end))| range.contains(*first, *end)).map(|(note, _)| *note).collect()
            }
            Test::ModifiedSince(moment) => {
                let from = nanoseconds(*moment);
                self.notes_where(&*store, |_, modified| modified >= from)?
            }
            Test::ModifiedBefore(moment) => {
                let before = nanoseconds(*moment);
                self.notes_where(&*store, |_, modified| modified < before)?
            }
        };
        let mut meeting = vec![false; among.len()];
        self.each_note(|note, range| meeting[range].fill(notes.contains(&note)));
        Ok(ConditionMatches { notes: meeting, holding: None })
    }

    fn notes_where(&self, store: &dyn ReadStore, holds: impl Fn(&VaultPath, i64) -> bool) -> Result<HashSet<FileId>> {
        if self.notes.get().is_none() {
            _ = self.notes.set(store.notes()?);
        }
        let notes = self.notes.get().into_iter().flatten();
        Ok(notes.filter(|(_, path, modified)| holds(path, *modified)).map(|(note, ..)| *note).collect())
    }

    /// Calls `each` for every note, with the positions of its passages, which are adjacent.
    fn each_note(&self, mut each: impl FnMut(FileId, Range<usize>)) {
        let mut start = 0;
        for of_note in self.snapshot.passages.chunk_by(|a, b| a.note == b.note) {
            each(of_note[0].note, start..start + of_note.len());
            start += of_note.len();
        }
    }

    /// The notes of the passages that contain a requested text.
    fn holding(&self, holding: Vec<bool>) -> ConditionMatches {
        ConditionMatches { notes: self.whole_notes(&holding), holding: Some(holding) }
    }

    fn whole_notes(&self, passages: &[bool]) -> Vec<bool> {
        let mut notes = vec![false; passages.len()];
        self.each_note(|_, range| {
            let holds = passages[range.clone()].contains(&true);
            notes[range].fill(holds);
        });
        notes
    }

    /// The passages that contain a text.
    fn text(&self, test: &TextTest, among: &[bool]) -> Result<Vec<bool>> {
        let indexed = self.indexed(test)?;
        match indexed {
            Some(holders) if !test.match_case => Ok(holders),
            candidates => {
                let matcher = test.matcher()?;
                self.reading(candidates, among, |text| matcher.holds(&Text::new(text)))
            }
        }
    }

    /// The passages that contain words, according to the keyword index; for case-sensitive words, those that may
    /// contain them. `None`: the index cannot tell.
    fn indexed(&self, test: &TextTest) -> Result<Option<Vec<bool>>> {
        let store = self.snapshot.store()?;
        let holders = match &test.holds {
            TextPattern::Words(text) => passages_with_phrase(&*store, text, TermMatch::Whole)?,
            TextPattern::Prefix(text) => passages_with_phrase(&*store, text, TermMatch::Prefix)?,
            TextPattern::Characters(_) | TextPattern::Regex(_) => None,
        };
        let Some(holders) = holders else { return Ok(None) };
        let mut found = vec![false; self.snapshot.passages.len()];
        holders.into_iter().filter_map(|id| self.snapshot.position(id)).for_each(|at| found[at] = true);
        Ok(Some(found))
    }

    /// The passages, or the notes, that may contain all requested texts. `None`: any may.
    fn candidates(&self, tests: &Expression<TextTest>, scope: Scope) -> Result<Option<Vec<bool>>> {
        let joined = |parts: &[Expression<TextTest>], join: fn(&mut [bool], &[bool])| {
            let mut joined: Option<Vec<bool>> = None;
            let mut is_complete = true;
            for part in parts {
                match (self.candidates(part, scope)?, &mut joined) {
                    (Some(found), Some(joined)) => join(joined, &found),
                    (Some(found), None) => joined = Some(found),
                    (None, _) => is_complete = false,
                }
            }
            Ok::<_, Error>((joined, is_complete))
        };
        Ok(match tests {
            // A section may span several passages.
            Expression::Is(test) if scope == Scope::Section => self.indexed(test)?.map(|held| self.whole_notes(&held)),
            Expression::Is(test) => self.indexed(test)?,
            Expression::Not(_) => None,
            Expression::All(parts) => joined(parts, and)?.0,
            Expression::Any(parts) => {
                Some(joined(parts, or)?).filter(|(_, is_complete)| *is_complete).and_then(|(any, _)| any)
            }
        })
    }

    /// The passages in which a unit of the scope contains all requested texts.
    fn within(&self, scope: Scope, tests: &Expression<TextTest>, among: &[bool]) -> Result<Vec<bool>> {
        let matchers = tests.clone().map(&|test| test.matcher())?;
        let holds = |text: &str| {
            let text = Text::new(text);
            matchers.holds(&|matcher: &TextMatcher| matcher.holds(&text))
        };
        let is_task = |mark: char| match scope {
            Scope::OpenTask => mark == ' ',
            Scope::DoneTask => mark != ' ',
            _ => true,
        };
        let candidates = self.candidates(tests, scope)?;
        match scope {
            Scope::Content => self.reading(candidates, among, holds),
            Scope::Line => self.reading(candidates, among, |text| text.lines().any(holds)),
            Scope::Block => {
                self.reading(candidates, among, |text| blocks(text).into_iter().any(|block| holds(&text[block])))
            }
            Scope::Section => {
                let mut notes = candidates.unwrap_or_else(|| vec![true; among.len()]);
                and(&mut notes, among);
                self.reading_notes(&notes, |note| {
                    let mut sections = sections(&note.body, note.first_line, &note.headings);
                    sections.retain(|section| holds(&note.body[section.clone()]));
                    sections
                })
            }
            Scope::Task | Scope::OpenTask | Scope::DoneTask => {
                let passing = |text: &str| {
                    let mut tasks = tasks(text);
                    tasks.retain(|(mark, task)| is_task(*mark) && holds(&text[task.clone()]));
                    tasks
                };
                let found = self.reading(candidates, among, |text| !passing(text).is_empty())?;
                // Code may start in an earlier passage.
                self.reading_notes(&self.whole_notes(&found), |note| {
                    let code = code_blocks(&note.body);
                    let is_in_code = |task: &Range<usize>| code.iter().any(|code| code.contains(&task.start));
                    let tasks = passing(&note.body).into_iter().map(|(_, task)| task);
                    tasks.filter(|task| !is_in_code(task)).collect()
                })
            }
        }
    }

    /// The candidates among some passages whose text passes.
    fn reading(
        &self,
        candidates: Option<Vec<bool>>,
        among: &[bool],
        passes: impl Fn(&str) -> bool + Sync,
    ) -> Result<Vec<bool>> {
        let mut found = candidates.unwrap_or_else(|| vec![true; among.len()]);
        and(&mut found, among);
        let wanted: Vec<usize> = (0..found.len()).filter(|at| found[*at]).collect();
        for batch in wanted.chunks(TEXTS_AT_ONCE) {
            let ids: Vec<i64> = batch.iter().map(|at| self.snapshot.passages[*at].id).collect();
            let mut texts: Vec<(i64, String)> = Vec::with_capacity(ids.len());
            self.snapshot.store()?.each_text(&ids, &mut |id, text| texts.push((id, text.to_owned())))?;
            let passing: Vec<(i64, bool)> = texts.into_par_iter().map(|(id, text)| (id, passes(&text))).collect();
            for (id, passes) in passing {
                if let Some(at) = self.snapshot.position(id) {
                    found[at] = passes;
                }
            }
        }
        Ok(found)
    }

    /// The passages that overlap with passing parts, for notes whose passages are given.
    fn reading_notes(
        &self,
        notes: &[bool],
        passing: impl Fn(&NoteText) -> Vec<Range<usize>> + Sync,
    ) -> Result<Vec<bool>> {
        let mut found = vec![false; notes.len()];
        let mut wanted = Vec::new();
        self.each_note(|note, range| {
            if notes[range.start] {
                wanted.push((note, range));
            }
        });
        let mut wanted = wanted.into_iter().peekable();
        while wanted.peek().is_some() {
            let (mut texts, mut bytes) = (Vec::new(), 0);
            let store = self.snapshot.store()?;
            while bytes < BYTES_AT_ONCE
                && let Some((note, range)) = wanted.next()
            {
                let text = NoteText::read(&*store, note)?;
                bytes += text.body.len();
                texts.push((range, text));
            }
            drop(store);
            let parts: Vec<Vec<Range<usize>>> = texts.par_iter().map(|(_, text)| passing(text)).collect();
            for ((range, text), parts) in texts.iter().zip(parts) {
                for passages in parts.into_iter().map(|part| text.passages(&part)) {
                    found[range.start + passages.start..(range.start + passages.end).min(range.end)].fill(true);
                }
            }
        }
        Ok(found)
    }
}

/// The text of a note without its frontmatter.
struct NoteText {
    body: String,
    /// The starts of its passages.
    starts: Vec<usize>,
    first_line: u32,
    /// The lines of its headings.
    headings: HashSet<u32>,
}

impl NoteText {
    fn read(store: &dyn ReadStore, note: FileId) -> Result<Self> {
        let mut body = String::new();
        let mut starts = Vec::new();
        let mut first_line = 1;
        for passage in store.passage_texts(note)? {
            if starts.is_empty() {
                let blank = passage.text.len() - passage.text.trim_start().len();
                first_line = passage.line.saturating_sub(passage.text[..blank].matches('\n').count() as u32);
            }
            starts.push(body.len());
            body.push_str(&passage.text);
        }
        let headings = store.anchors(note)?.unwrap_or_default().headings.iter().map(|(_, _, line)| *line).collect();
        Ok(Self { body, starts, first_line, headings })
    }

    /// The passages, counted from 0, that a part of the body overlaps.
    fn passages(&self, part: &Range<usize>) -> Range<usize> {
        let from = self.starts.partition_point(|start| *start <= part.start).saturating_sub(1);
        from..self.starts.partition_point(|start| *start < part.end).max(from + 1)
    }
}

/// Whether a condition reads texts.
fn reads_texts(condition: &Condition) -> bool {
    let reads = |test: &&Test| match test {
        Test::Within(..) => true,
        Test::Text(text) => text.match_case || matches!(text.holds, TextPattern::Regex(_) | TextPattern::Characters(_)),
        _ => false,
    };
    condition.tests().iter().any(reads)
}

fn and(all: &mut [bool], others: &[bool]) {
    all.iter_mut().zip(others).for_each(|(one, other)| *one &= *other);
}

fn or(any: &mut [bool], others: &[bool]) {
    any.iter_mut().zip(others).for_each(|(one, other)| *one |= *other);
}

/// The union of two sets.
fn either(one: Option<Vec<bool>>, mut other: Vec<bool>) -> Vec<bool> {
    one.iter().for_each(|one| or(&mut other, one));
    other
}

/// Times of files are limited to 1677 to 2262; a later or earlier date is clamped.
fn nanoseconds(moment: Timestamp) -> i64 {
    moment.as_nanosecond().clamp(i128::from(i64::MIN), i128::from(i64::MAX)) as i64
}

/// Notes whose properties pass a test.
fn with_property(store: &dyn ReadStore, test: &PropertyTest, now: &Zoned) -> Result<HashSet<FileId>> {
    let key = property_key(&test.key);
    if test.test == Comparison::Exists {
        return Ok(store.notes_with_property(&key)?.into_iter().collect());
    }
    let mut of_notes: HashMap<FileId, Vec<PropertyValue>> = HashMap::new();
    if test.test == Comparison::NotEqual {
        // An empty property has no values, and is not equal to any.
        of_notes.extend(store.notes_with_property(&key)?.into_iter().map(|note| (note, Vec::new())));
    }
    for (note, value) in store.property_values(&key)? {
        of_notes.entry(note).or_default().push(value);
    }
    let wanted = test.matcher(now)?;
    of_notes.retain(|_, values| wanted.holds(values));
    Ok(of_notes.into_keys().collect())
}
