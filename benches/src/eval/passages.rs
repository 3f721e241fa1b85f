//! Evaluates passages, not only notes: documents are sections of long notes, and the lines of the results count.
//!
//! Some random documents are the sections of one note. A resulting passage counts for the most relevant section that
//! its lines touch and that no passage before it counted for, so the right note with the wrong lines is wrong. For
//! comparison, the same is measured by notes, which are relevant if they have a relevant section.

use std::collections::{HashMap, HashSet};
use std::fmt::Write as _;
use std::path::Path;

use serde::Serialize;
use vault_index::{Grouping, VaultPath};

use super::as_notes::{NewNote, one_line, path_of, whole_lines, write_notes};
use super::{Collection, Document, Indexed, JudgedQuery, Judgments, Means, Plan, QueryRow, Result, Scores};
use crate::median::median;
use crate::random::Random;

/// The number of results that count.
const SHOWN: usize = 10;

/// The plan of the notes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PassagePlan {
    /// The number of sections per note.
    pub sections: usize,
    /// The seed. The same seed gives the same notes.
    pub seed: u64,
}

impl Default for PassagePlan {
    fn default() -> Self {
        Self { sections: 8, seed: 1 }
    }
}

/// The report on a collection.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PassageReport {
    /// Its name.
    pub collection: String,
    /// The model.
    pub model: String,
    /// The number of documents, each of which is a section.
    pub documents: usize,
    /// The number of notes that contain them.
    pub notes: usize,
    /// The number of passages of the notes.
    pub passages: usize,
    /// The number of queries.
    pub queries: usize,
    /// The results of each mode.
    pub modes: Vec<PassageMode>,
}

/// The results of one mode.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PassageMode {
    /// The mode.
    pub mode: String,
    /// nDCG@10 of passages.
    pub ndcg10: f64,
    /// Recall@10: relevant sections that one of the first ten passages counts for.
    pub recall10: f64,
    /// nDCG@10 of notes.
    pub note_ndcg10: f64,
    /// Recall@10 of notes.
    pub note_recall10: f64,
    /// The median of milliseconds for ten passages.
    pub ms: f64,
}

/// Writes the collection's documents as sections of long notes below `folder`, indexes them there, and runs all queries
/// for passages and for notes.
///
/// # Errors
/// If notes cannot be written, indexed or searched.
pub fn find_passages(
    collection: &Collection,
    folder: &Path,
    plan: &Plan,
    notes: PassagePlan,
) -> Result<(PassageReport, Vec<QueryRow>)> {
    let (texts, sections) = long_notes(collection, notes);
    let count = texts.len();
    // Another seed or number of sections gives other notes.
    let folder = folder.join(format!("sections-{}-{}", notes.sections, notes.seed));
    write_notes(&folder.join("notes"), texts)?;
    let indexed = Indexed::sync(&folder.join("notes"), &folder.join("index/index.db"), plan)?;
    if indexed.notes != count {
        return Err(format!("{}: {} of {count} notes", collection.name, indexed.notes).into());
    }
    let queries = &collection.queries[..plan.queries.min(collection.queries.len())];
    let (mut modes, mut rows) = (Vec::new(), Vec::new());
    for &mode in &plan.modes {
        if let Some(first) = queries.first() {
            indexed.warm_up(&first.text, mode)?;
        }
        let (mut of_passages, mut of_notes, mut times) = (Vec::new(), Vec::new(), Vec::new());
        for query in queries {
            let (hits, ms) = indexed.ask_timed(&query.text, mode, Grouping::Passages, SHOWN)?;
            let shown: Vec<Shown<'_>> = hits.iter().map(|hit| (&hit.path, (hit.start_line, hit.end_line))).collect();
            let scores = Scores::of_found(&sections.found(collection, query, &shown), &query.judgments, SHOWN);
            rows.push(QueryRow {
                collection: collection.name.clone(),
                mode: mode.name().to_owned(),
                query: query.id.clone(),
                scores,
                top: hits.iter().map(|hit| format!("{}:{}-{}", hit.path, hit.start_line, hit.end_line)).collect(),
            });
            of_passages.push(scores);
            times.push(ms);
            let hits = indexed.ask(&query.text, mode, Grouping::BestPassage, SHOWN)?;
            let judged = sections.judged_notes(collection, query);
            of_notes.push(Scores::of(hits.iter().map(|hit| hit.path.as_str()), &judged, SHOWN));
        }
        let (of_passages, of_notes) = (Means::of(&of_passages), Means::of(&of_notes));
        modes.push(PassageMode {
            mode: mode.name().to_owned(),
            ndcg10: of_passages.ndcg10,
            recall10: of_passages.recall,
            note_ndcg10: of_notes.ndcg10,
            note_recall10: of_notes.recall,
            ms: median(&times),
        });
    }
    let report = PassageReport {
        collection: collection.name.clone(),
        model: indexed.model,
        documents: collection.documents.len(),
        notes: indexed.notes,
        passages: indexed.passages,
        queries: queries.len(),
        modes,
    };
    Ok((report, rows))
}

/// A resulting passage: its note, its first and its last line.
type Shown<'a> = (&'a VaultPath, (u32, u32));

/// The lines of each document, by note and in the order of the lines.
struct Sections(HashMap<VaultPath, Vec<Section>>);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Section {
    /// The document's number.
    document: usize,
    /// Its first line, from 1, and its last one, heading included.
    lines: (u32, u32),
}

impl Sections {
    /// Returns the judgment that each passage counts for; 0 if it counts for none.
    fn found(&self, collection: &Collection, query: &JudgedQuery, shown: &[Shown<'_>]) -> Vec<u32> {
        let judgment = |document: usize| query.judgments.get(&collection.documents[document].id).copied().unwrap_or(0);
        let mut counted: HashSet<usize> = HashSet::new();
        let mut found = Vec::with_capacity(shown.len());
        for (path, lines) in shown {
            let new = self.touched(path, *lines).filter(|document| !counted.contains(document));
            let best = new.map(|document| (judgment(document), document)).filter(|(judgment, _)| *judgment > 0).max();
            found.push(best.map_or(0, |(judgment, _)| judgment));
            counted.extend(best.map(|(_, document)| document));
        }
        found
    }

    /// Returns the documents that some lines of a note touch.
    fn touched(&self, path: &VaultPath, (first, last): (u32, u32)) -> impl Iterator<Item = usize> {
        let sections = self.0.get(path).map(Vec::as_slice).unwrap_or_default();
        let touched = sections.iter().filter(move |section| section.lines.0 <= last && first <= section.lines.1);
        touched.map(|section| section.document)
    }

    /// Returns each note with the best judgment of its sections.
    fn judged_notes(&self, collection: &Collection, query: &JudgedQuery) -> Judgments {
        let best = |sections: &[Section]| {
            let judged = sections.iter().filter_map(|s| query.judgments.get(&collection.documents[s.document].id));
            judged.copied().max()
        };
        self.0.iter().filter_map(|(path, sections)| Some((path.to_string(), best(sections)?))).collect()
    }
}

/// Returns the documents in random order, in groups of `plan.sections`.
fn long_notes(collection: &Collection, plan: PassagePlan) -> (Vec<NewNote>, Sections) {
    let mut order: Vec<usize> = (0..collection.documents.len()).collect();
    let mut random = Random(plan.seed);
    // A Fisher–Yates shuffle.
    for at in (1..order.len()).rev() {
        order.swap(at, random.below(at + 1));
    }
    let (mut notes, mut places) = (Vec::new(), HashMap::new());
    for (number, documents) in order.chunks(plan.sections.max(1)).enumerate() {
        let path = path_of(&number.to_string(), number);
        let (mut text, mut sections) = (String::new(), Vec::new());
        for (at, &document) in documents.iter().enumerate() {
            let first = line_after(&text);
            write_section(&mut text, &collection.documents[document], at + 1);
            // The blank line at its end is not part of it.
            sections.push(Section { document, lines: (first, line_after(&text) - 2) });
        }
        places.insert(path.clone(), sections);
        notes.push(NewNote { path, text });
    }
    (notes, Sections(places))
}

/// Returns a section: a heading, a blank line, the text, a blank line. Without a title, the heading is the section's
/// number.
fn write_section(text: &mut String, document: &Document, number: usize) {
    let title = one_line(&document.title);
    let heading = if title.is_empty() { number.to_string() } else { title };
    let _ = write!(text, "## {heading}\n\n{}\n\n", whole_lines(&document.text));
}

/// Returns the number of the next line.
fn line_after(text: &str) -> u32 {
    let before = text.bytes().filter(|byte| *byte == b'\n').count();
    u32::try_from(before + 1).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn collection() -> Collection {
        let document = |n: usize| {
            let title = if n == 0 { String::new() } else { format!("Title {n}") };
            Document { id: format!("d{n}"), title, text: format!("first of {n}\nsecond of {n}\n") }
        };
        let judgments: Judgments = [("d0", 1), ("d1", 2), ("d2", 0)].map(|(id, s)| (id.to_owned(), s)).into();
        let query = JudgedQuery { id: "q".into(), text: "x".into(), judgments };
        Collection { name: "c".into(), documents: (0..5).map(document).collect(), queries: vec![query], unjudged: 0 }
    }

    #[test]
    fn sections_stand_where_they_are_said_to() {
        let collection = collection();
        let (notes, sections) = long_notes(&collection, PassagePlan { sections: 2, seed: 3 });
        assert_eq!(notes.len(), 3);
        let mut seen = HashSet::new();
        for note in &notes {
            let lines: Vec<&str> = note.text.lines().collect();
            for section in &sections.0[&note.path] {
                let (first, last) = (section.lines.0 as usize, section.lines.1 as usize);
                assert!(lines[first - 1].starts_with("## "), "{lines:?} {section:?}");
                assert_eq!(lines[last - 1], format!("second of {}", section.document));
                assert!(seen.insert(section.document));
            }
        }
        assert_eq!(seen.len(), 5);
        let again = long_notes(&collection, PassagePlan { sections: 2, seed: 3 }).0;
        assert!(notes.iter().zip(&again).all(|(a, b)| a.text == b.text && a.path == b.path));
    }

    #[test]
    fn a_passage_counts_for_one_section_and_a_section_once() {
        let collection = collection();
        let path = VaultPath::new("n.md").unwrap();
        let section = |document, first| Section { document, lines: (first, first + 3) };
        let sections = Sections([(path.clone(), vec![section(0, 1), section(1, 6), section(2, 11)])].into());
        let touched = |first, last| sections.touched(&path, (first, last)).collect::<Vec<_>>();
        assert_eq!(touched(1, 4), [0]);
        assert_eq!(touched(4, 6), [0, 1]);
        assert!(touched(5, 5).is_empty());
        assert_eq!(touched(1, 99), [0, 1, 2]);

        let found = |lines: &[(u32, u32)]| {
            let shown: Vec<Shown<'_>> = lines.iter().map(|lines| (&path, *lines)).collect();
            sections.found(&collection, &collection.queries[0], &shown)
        };
        // Sections 0 and 1 are touched: the better one counts; then the other; then none is left.
        assert_eq!(found(&[(3, 7), (1, 9), (1, 9)]), [2, 1, 0]);
        // Section 2 was judged not relevant.
        assert_eq!(found(&[(11, 14), (6, 6)]), [0, 2]);
        let expected: Judgments = [("n.md".to_owned(), 2)].into();
        assert_eq!(sections.judged_notes(&collection, &collection.queries[0]), expected);
    }
}
