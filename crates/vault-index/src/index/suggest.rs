//! Link suggestions for a note: unlinked names of other notes, and notes of similar meaning.
//!
//! A note is named by its file's name, its title, an alias, or the words by which other notes link to it. Words are
//! compared by their stems, so *daily note* names `Daily notes.md`. The score is a logistic function of the evidence
//! for a link:
//!
//! ```text
//! name    = -1.5 + 2.4 * spelling + 2 * linked + 0.8 * words    0 where the note is not named
//! meaning = (cosine - 0.3) / 0.5                                of the nearest passages of the two notes, at least 0
//! score   = 1 / (1 + exp(2.3 - name - 2.4 * meaning - 1.2 * same folder))
//! ```
//!
//! `spelling` is 1 for the exact spelling of the name, `words` is at most 3, and `linked` is the share of linked notes
//! among those that contain the name: Mihalcea and Csomai ("Wikify!", CIKM 2007) use it to decide which words are worth
//! a link. The weights come from a logistic regression on links removed from two vaults, rounded; the benchmark
//! `missing_links` removes links and prints the parts.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::ops::Range;

use crate::error::Result;
use crate::files::{DiskFile, FileStat, MAX_NOTE_BYTES, read_note};
use crate::index::Index;
use crate::links::{Direction, Graph};
use crate::note::{Note, ParseOptions, Prose, parse};
use crate::path::{FileId, FileKind, VaultPath};
use crate::report::{LinkSuggestion, SuggestionParts, SuggestionReason};
use crate::search::{Hit, Mode, Query, Searcher, find_note};
use crate::store::ReadContents;
use crate::terms::{TermMatch, Terms, is_stop_word, stem};

/// The least scores. Few of the links that `missing_links` removed from two vaults score less, and most other
/// candidates do.
const NAMED_FLOOR: f32 = 0.65;
const MEANT_FLOOR: f32 = 0.45;

/// The least share of linked occurrences of a one-word name. Below it, the name is an ordinary word, such as *note*.
const LEAST_LINKED: f32 = 0.1;

/// The number of notes that each passage is compared with: the nearest.
const NEAREST: usize = 20;

/// The number of notes that may share a suggested name.
const MAX_SHARED: usize = 2;

/// The least number of letters and digits in a name.
const SHORTEST: usize = 3;

impl Index {
    /// Missing links, best first: where a note names another one without a link, or means one without naming it. For
    /// one note (its path, or a link to it), by names and by meaning; for all notes, by names only, because comparing
    /// all passages with all others takes long. Each pair of notes occurs once, at the best place; notes that are
    /// already linked are not suggested.
    ///
    /// Reads the note, or all notes. By meaning, it searches once for each passage of the note; passages without a
    /// vector are compared by names only.
    ///
    /// # Errors
    /// [`ErrorKind::NotFound`](crate::ErrorKind::NotFound) with the nearest names.
    pub fn suggest_links(&self, note: Option<&str>) -> Result<Vec<LinkSuggestion>> {
        let (names, sources, graph) = self.read(|store| {
            let graph =
                Graph::new(store.edges()?.into_iter().filter_map(|(source, target, _)| Some((source, target?))));
            let sources = match note {
                Some(note) => vec![find_note(store, note)?],
                None => store.notes()?.into_iter().map(|(id, ..)| id).collect(),
            };
            Ok((NameTable::new(store)?, sources, graph))
        })?;
        let searcher = if note.is_some() { Some(self.searcher()?) } else { None };
        let mut suggestions = Vec::new();
        let mut unlinked = HashMap::new();
        for source in sources {
            suggestions.extend(self.suggestions_of(source, &names, &graph, searcher.as_ref(), &mut unlinked)?);
        }
        suggestions.sort_by(|a, b| {
            b.score
                .total_cmp(&a.score)
                .then_with(|| (&a.source, a.line, &a.target).cmp(&(&b.source, b.line, &b.target)))
        });
        Ok(suggestions)
    }

    fn suggestions_of(
        &self,
        source: FileId,
        names: &NameTable,
        graph: &Graph,
        searcher: Option<&Searcher>,
        unlinked: &mut HashMap<usize, usize>,
    ) -> Result<Vec<LinkSuggestion>> {
        let Some(path) = names.paths.get(&source).filter(|path| path.kind() == FileKind::Markdown) else {
            return Ok(Vec::new());
        };
        let file =
            DiskFile { path: path.clone(), disk: None, stat: FileStat::default(), indexed: true, symlink: false };
        // A note that was deleted, or can no longer be read, needs no links.
        let Ok(content) = read_note(&self.vault, &file, MAX_NOTE_BYTES) else { return Ok(Vec::new()) };
        let note = parse(path, &content.bytes, &ParseOptions::of_vault(&self.vault));
        let mut linked: HashSet<FileId> = graph.neighbours(source, Direction::Links).collect();
        linked.insert(source);
        let mut found: BTreeMap<FileId, Candidate> = BTreeMap::new();
        for named in names.named_in(&note) {
            let name = &names.names[named.name];
            if linked.contains(&name.note) {
                continue;
            }
            let unlinked = match unlinked.get(&named.name) {
                Some(known) => *known,
                None => {
                    let count = self.read(|store| notes_holding(store, name, graph))?;
                    *unlinked.entry(named.name).or_insert(count)
                }
            };
            let backlinks = graph.neighbours(name.note, Direction::Backlinks).count();
            let words = name.stems.len().min(3);
            // The longer an unlinked name, the less likely it occurs by chance.
            let doubt = [0.5, 2.0, 4.0][words - 1];
            let parts = SuggestionParts {
                spelling: named.spelling,
                linked: (backlinks as f32 + doubt) / ((backlinks + unlinked) as f32 + doubt),
                words: words as u32,
                ..SuggestionParts::default()
            };
            if words == 1 && parts.linked < LEAST_LINKED {
                continue;
            }
            let candidate = found.entry(name.note).or_default();
            if candidate.named.is_none() || parts.spelling > candidate.parts.spelling {
                (candidate.parts, candidate.named) = (parts, Some(named));
            }
        }
        if let Some(searcher) = searcher {
            for (target, meant) in self.near_in_meaning(source, searcher, names)? {
                if !linked.contains(&target) {
                    found.entry(target).or_default().meant = Some(meant);
                }
            }
        }
        let mut suggestions: Vec<LinkSuggestion> = Vec::new();
        // If a name belongs to several notes, or two names overlap, only one link is possible.
        let mut taken: HashMap<usize, usize> = HashMap::new();
        for (target, candidate) in found {
            let Some(target) = names.paths.get(&target) else { continue };
            let place = candidate.named.as_ref().map(|named| named.span.start);
            let Some(suggestion) = candidate.suggestion(path, target, names, &note) else { continue };
            let floor = if suggestion.text.is_some() { NAMED_FLOOR } else { MEANT_FLOOR };
            if suggestion.score < floor {
                continue;
            }
            match place.and_then(|place| taken.get(&place).copied()) {
                Some(at) if suggestions[at].score >= suggestion.score => {}
                Some(at) => suggestions[at] = suggestion,
                None => {
                    place.map(|place| taken.insert(place, suggestions.len()));
                    suggestions.push(suggestion);
                }
            }
        }
        Ok(suggestions)
    }

    /// The notes with a passage close to one of the note's, with the cosine of the closest pair.
    fn near_in_meaning(
        &self,
        source: FileId,
        searcher: &Searcher,
        names: &NameTable,
    ) -> Result<HashMap<FileId, SimilarPassage>> {
        let (passages, queries) = self.read(|store| {
            let (mut places, mut queries) = (Vec::new(), Vec::new());
            let vectors = store.vectors()?;
            let slots = store.passage_vectors(source)?.unwrap_or_default();
            for (passage, slot) in store.passage_texts(source)?.into_iter().zip(slots) {
                if let Some(slot) = slot {
                    places.push((passage.line, passage.end_line));
                    queries.push(Query::from_vector(vectors(slot)?).mode(Mode::Semantic).limit(NEAREST).min_score(0.0));
                }
            }
            Ok((places, queries))
        })?;
        let ids: HashMap<&VaultPath, FileId> = names.paths.iter().map(|(id, path)| (path, *id)).collect();
        let mut near: HashMap<FileId, SimilarPassage> = HashMap::new();
        for (lines, hits) in passages.into_iter().zip(searcher.search_many(&queries)) {
            for hit in hits?.results {
                let Some(target) = ids.get(&hit.path) else { continue };
                let Some(cosine) = hit.why.semantic else { continue };
                if near.get(target).is_none_or(|best| cosine > best.cosine) {
                    near.insert(*target, SimilarPassage { cosine, lines, hit });
                }
            }
        }
        Ok(near)
    }
}

/// A note that may be linked, and the evidence.
#[derive(Default)]
struct Candidate {
    parts: SuggestionParts,
    named: Option<NameOccurrence>,
    meant: Option<SimilarPassage>,
}

/// A passage of another note that is close to one of the note's.
struct SimilarPassage {
    cosine: f32,
    /// The lines of the note's passage.
    lines: (u32, u32),
    hit: Hit,
}

impl Candidate {
    fn suggestion(
        self,
        source: &VaultPath,
        target: &VaultPath,
        names: &NameTable,
        note: &Note,
    ) -> Option<LinkSuggestion> {
        let cosine = self.meant.as_ref().map(|meant| meant.cosine);
        let why = SuggestionParts { cosine, same_folder: source.folder() == target.folder(), ..self.parts };
        let (line, text, sentence, reason) = match self.named {
            Some(named) => {
                let line = note.lines.line_at(named.span.start);
                let text = note.text[named.span.clone()].to_owned();
                (line, Some(text), sentence_around(note, &named.span), names.names[named.name].kind)
            }
            None => {
                let (lines, terms) = self.meant.map_or(((1, u32::MAX), Vec::new()), |meant| {
                    (meant.lines, significant_terms(&format!("{} {}", meant.hit.title, meant.hit.text)))
                });
                let span = best_sentence(note, lines, &terms)?;
                (note.lines.line_at(span.start), None, on_one_line(&note.text[span]), SuggestionReason::Meaning)
            }
        };
        Some(LinkSuggestion {
            source: source.clone(),
            line,
            text,
            sentence,
            target: target.clone(),
            score: score(&why),
            reason,
            why,
        })
    }
}

/// See the formula at the top of the file.
fn score(parts: &SuggestionParts) -> f32 {
    let name = match parts.words {
        0 => 0.0,
        words => -1.5 + 2.4 * parts.spelling + 2.0 * parts.linked + 0.8 * words as f32,
    };
    let meaning = parts.cosine.map_or(0.0, |cosine| ((cosine - 0.3) / 0.5).max(0.0));
    let folder = if parts.same_folder { 1.2 } else { 0.0 };
    1.0 / (1.0 + (2.3 - name - 2.4 * meaning - folder).exp())
}

fn on_one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The names of notes, found by the stem of their first word.
struct NameTable {
    names: Vec<TableName>,
    by_stems: HashMap<Vec<String>, Vec<usize>>,
    /// The most words of a name, by its first stem.
    longest: HashMap<String, usize>,
    paths: HashMap<FileId, VaultPath>,
}

struct TableName {
    text: String,
    /// The stems of its words.
    stems: Vec<String>,
    note: FileId,
    kind: SuggestionReason,
}

/// An occurrence of a name in a note.
struct NameOccurrence {
    name: usize,
    span: Range<usize>,
    /// See [`spelling`].
    spelling: f32,
}

impl NameTable {
    fn new(store: &dyn ReadContents) -> Result<Self> {
        let mut by_stems: BTreeMap<Vec<String>, Vec<TableName>> = BTreeMap::new();
        let mut add = |text: &str, note: FileId, kind| {
            let stems: Vec<String> = words(text).map(|(stem, _)| stem).collect();
            let letters = text.chars().filter(|c| c.is_alphanumeric()).count();
            let is_name = letters >= SHORTEST && text.chars().any(char::is_alphabetic);
            // A span of words has no brackets or punctuation at its ends.
            let is_whole = text.starts_with(char::is_alphanumeric) && text.ends_with(char::is_alphanumeric);
            let is_program = text.contains("<%") || text.contains("{{");
            if !is_name || !is_whole || is_program || stems.iter().all(|stem| is_stop_word(stem)) {
                return;
            }
            let named = by_stems.entry(stems.clone()).or_default();
            if named.iter().all(|name| name.note != note) {
                named.push(TableName { text: text.to_owned(), stems, note, kind });
            }
        };
        for (note, name) in store.all_names()? {
            add(&name.text, note, SuggestionReason::Name);
        }
        // Link text that only one note uses may be specific to that place.
        for (note, text) in store.link_texts(2)? {
            add(&text, note, SuggestionReason::LinkText);
        }
        let mut names: Vec<TableName> = Vec::new();
        for mut named in by_stems.into_values() {
            // Link text does not name a note if it is the name of another one.
            if named.iter().any(|name| name.kind == SuggestionReason::Name) {
                named.retain(|name| name.kind == SuggestionReason::Name);
            }
            if named.len() <= MAX_SHARED {
                names.extend(named);
            }
        }
        let mut by_stems: HashMap<Vec<String>, Vec<usize>> = HashMap::new();
        let mut longest: HashMap<String, usize> = HashMap::new();
        for (at, TableName { stems, .. }) in names.iter().enumerate() {
            by_stems.entry(stems.clone()).or_default().push(at);
            let most = longest.entry(stems[0].clone()).or_default();
            *most = stems.len().max(*most);
        }
        Ok(Self { names, by_stems, longest, paths: store.paths()?.into_iter().collect() })
    }

    /// The names in the prose of a note, the longest at each position, in order.
    fn named_in(&self, note: &Note) -> Vec<NameOccurrence> {
        let body = &note.text[note.body.clone()];
        let prose = Prose::of(note);
        let (stems, spans): (Vec<String>, Vec<Range<usize>>) = words(body).unzip();
        let mut found = Vec::new();
        let mut at = 0;
        while let Some(first) = stems.get(at) {
            let longest = self.longest.get(first).copied().unwrap_or(0).min(stems.len() - at);
            let named = (1..=longest).rev().find_map(|length| {
                let names = self.by_stems.get(&stems[at..at + length])?;
                is_one_phrase(body, &spans[at..at + length]).then_some((length, names))
            });
            let Some((length, names)) = named else {
                at += 1;
                continue;
            };
            let span = spans[at].start..spans[at + length - 1].end;
            // If several notes have the same name, each of them is named.
            for &name in names {
                let Some(spelling) = spelling(&body[span.clone()], &self.names[name].text) else { continue };
                let span = note.body.start + span.start..note.body.start + span.end;
                // A heading that equals the name has the same subject, and need not link to the note.
                let is_heading = note.headings.iter().any(|heading| heading.text == note.text[span.clone()]);
                if prose.holds(&span) && !is_heading {
                    found.push(NameOccurrence { name, span, spelling });
                }
            }
            at += length;
        }
        found
    }
}

/// How similar words with the stems of a name are to the name: 1 for the exact spelling, less for another case, other
/// punctuation, or a plural. Other forms mean other things; for example, *listed* is not `List.md`.
fn spelling(written: &str, name: &str) -> Option<f32> {
    let plain = |text: &str| -> Vec<String> {
        let mut words = Vec::new();
        Terms::new().each(text, |term, _| words.push(term.to_owned()));
        words
    };
    let is_plural = |many: &str, one: &str| match one.strip_suffix('y') {
        Some(stem) => many.strip_suffix("ies") == Some(stem) || many.strip_suffix('s') == Some(one),
        None => many.strip_suffix('s') == Some(one) || many.strip_suffix("es") == Some(one),
    };
    if written == name {
        return Some(1.0);
    }
    let (written, name) = (plain(written), plain(name));
    if written == name {
        return Some(0.95);
    }
    let is_form = |(a, b): (&String, &String)| a == b || is_plural(a, b) || is_plural(b, a);
    (written.len() == name.len() && written.iter().zip(&name).all(is_form)).then_some(0.85)
}

/// The stems of a text's words, with their positions.
fn words(text: &str) -> impl Iterator<Item = (String, Range<usize>)> {
    let mut words = Vec::new();
    Terms::new().each(text, |term, span| words.push((stem(term).into_owned(), span)));
    words.into_iter()
}

/// Whether words form one phrase: only spaces, hyphens and similar characters are between them.
fn is_one_phrase(body: &str, words: &[Range<usize>]) -> bool {
    words.windows(2).all(|pair| {
        // Pairs of characters overlap.
        let between = body.get(pair[0].end..pair[1].start).unwrap_or_default();
        between.chars().all(|c| {
            matches!(c, ' ' | '\u{a0}' | '-' | '–' | '_' | '\'' | '’' | '&' | '/' | '.' | ':' | ',' | '(' | ')')
        }) && !between.contains(". ")
    })
}

/// The number of notes that contain a name and do not link to its note.
fn notes_holding(store: &dyn ReadContents, name: &TableName, graph: &Graph) -> Result<usize> {
    let Some(passages) = crate::search::passages_with_phrase(store, &name.text, TermMatch::Whole)? else {
        return Ok(0);
    };
    let mut notes = store.notes_of(&passages)?;
    notes.remove(&name.note);
    graph.neighbours(name.note, Direction::Backlinks).for_each(|linking| _ = notes.remove(&linking));
    Ok(notes.len())
}

/// The words of a text that carry its subject.
fn significant_terms(text: &str) -> Vec<String> {
    let mut terms: Vec<String> = words(text).map(|(stem, _)| stem).filter(|stem| !is_stop_word(stem)).collect();
    terms.sort();
    terms.dedup();
    terms
}

/// The sentence that contains a span, on one line.
fn sentence_around(note: &Note, span: &Range<usize>) -> String {
    let sentences = sentences(note, note.body.clone());
    let around = sentences.into_iter().find(|sentence| sentence.start <= span.start && span.start < sentence.end);
    on_one_line(&note.text[around.unwrap_or(span.clone())])
}

/// The sentence of prose in some lines that contains most of the words. Links do not belong in headings, tables and
/// code.
fn best_sentence(note: &Note, (first, last): (u32, u32), terms: &[String]) -> Option<Range<usize>> {
    let prose = Prose::of(note);
    let mut best: Option<(usize, Range<usize>)> = None;
    for sentence in sentences(note, note.body.clone()) {
        let line = note.lines.line_at(sentence.start);
        // The link is added there.
        let is_prose = prose.end_of_line(line).is_some();
        if !(first..=last).contains(&line) || !is_prose {
            continue;
        }
        let found: HashSet<String> = words(&note.text[sentence.clone()]).map(|(stem, _)| stem).collect();
        let count = found.iter().filter(|stem| terms.binary_search(stem).is_ok()).count();
        if best.as_ref().is_none_or(|(most, _)| count > *most) {
            best = Some((count, sentence));
        }
    }
    best.map(|(_, sentence)| sentence)
}

/// The sentences of a part of a note. A sentence ends with a full stop or similar mark before white space, with a blank
/// line, and before a list item, heading or quote.
fn sentences(note: &Note, part: Range<usize>) -> Vec<Range<usize>> {
    let text = &note.text[part.clone()];
    let mut found = Vec::new();
    let mut start = 0;
    let mut end = |from: usize, to: usize| {
        let trimmed = text[from..to].trim();
        if !trimmed.is_empty() {
            let at = part.start + from + (text[from..to].len() - text[from..to].trim_start().len());
            found.push(at..at + trimmed.len());
        }
    };
    let mut before = ' ';
    for (at, c) in text.char_indices() {
        let next_line = || text[at + 1..].trim_start_matches([' ', '\t']);
        let begins_block = |line: &str| {
            line.starts_with(['\n', '\r', '#', '>', '|', '-', '*', '+', '`'])
                || line.starts_with(|c: char| c.is_ascii_digit())
        };
        let ends = match c {
            '\n' => begins_block(next_line()) || before == '|' || text[start..at].trim_start().starts_with('#'),
            c if c.is_whitespace() => matches!(before, '.' | '!' | '?'),
            '。' | '！' | '？' => true,
            _ => false,
        };
        if ends {
            end(start, at + c.len_utf8());
            start = at + c.len_utf8();
        }
        before = c;
    }
    end(start, text.len());
    found
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::sync::Arc;

    use super::*;
    use crate::embed::HashedEmbedder;
    use crate::index::Options;

    /// `line text target reason`, for each suggestion.
    fn suggestions(notes: &[(&str, &str)], of: Option<&str>) -> Vec<String> {
        let folder = tempfile::tempdir().unwrap();
        let vault = folder.path().join("vault");
        for (path, text) in notes {
            fs::create_dir_all(vault.join(path).parent().unwrap()).unwrap();
            fs::write(vault.join(path), text).unwrap();
        }
        let options =
            Options::new().index_file(folder.path().join("index.db")).embedder(Arc::new(HashedEmbedder::new()));
        let index = Index::open(vault, options).unwrap();
        index.sync().unwrap();
        let found = index.suggest_links(of).unwrap().into_iter();
        found
            .map(|found| {
                format!("{} {} {} {:?}", found.line, found.text.unwrap_or_default(), found.target, found.reason)
            })
            .collect()
    }

    #[test]
    fn names_in_prose_are_suggested_whatever_their_form() {
        let log = "# Hot compost and more\n\nThe hot compost is ready. A `hot compost`, <b>hot</b> compost.\n\n\
                   Pruned the Rose bushes, see raised-bed.\n\nThe listing of seeds, and tea.\n";
        let found = suggestions(
            &[
                ("Log.md", log),
                ("Garden/Hot compost.md", "x"),
                ("Garden/Rose bush.md", "x"),
                ("Garden/Raised bed.md", "x"),
                ("Garden/List.md", "x"),
                ("A.md", "[[Hot compost]] [[List]] [[Green tea|tea]]"),
                ("B.md", "[[Hot compost]] [[Green tea|tea]]"),
                ("Garden/Green tea.md", "x"),
            ],
            Some("Log"),
        );
        for expected in [
            "3 hot compost Garden/Hot compost.md Name",
            "5 Rose bushes Garden/Rose bush.md Name",
            "5 raised-bed Garden/Raised bed.md Name",
            "7 tea Garden/Green tea.md LinkText",
        ] {
            assert!(found.iter().any(|line| line == expected), "{expected} is not in {found:#?}");
        }
        assert!(!found.iter().any(|line| line.contains("List.md")), "{found:#?}");
    }

    #[test]
    fn what_is_linked_is_not_suggested_nor_are_ordinary_words() {
        let mut notes: Vec<(String, String)> =
            (0..30).map(|n| (format!("Day {n}.md"), "A note about soil and weather.".to_owned())).collect();
        notes.push(("Note.md".into(), "x".into()));
        notes.push(("Soil.md".into(), "x".into()));
        notes.push(("Log.md".into(), "A note: [[Soil]] is soil.".into()));
        let notes: Vec<(&str, &str)> = notes.iter().map(|(path, text)| (path.as_str(), text.as_str())).collect();
        let found = suggestions(&notes, Some("Log"));
        assert!(!found.iter().any(|line| line.ends_with("Name")), "{found:#?}");
        let all = suggestions(&notes, None);
        assert!(all.is_empty(), "{all:#?}");
    }

    #[test]
    fn a_note_that_is_meant_is_suggested_with_the_sentence() {
        let found = suggestions(
            &[
                ("Log.md", "It rained. The stems of old shrubs are cut back in late winter above a bud. Tea."),
                ("Pruning.md", "The stems of old shrubs are cut back in late winter above a bud."),
                ("Bread.md", "Knead flour and water."),
            ],
            Some("Log"),
        );
        assert_eq!(found, ["1  Pruning.md Meaning"]);
    }

    #[test]
    fn sentences_end_where_readers_see_it() {
        let path = VaultPath::new("a.md").unwrap();
        let text = "# Head\nOne. Two\ngoes on! 3.5 is no end\n\n- item a\n- item b. c\n| x | y |\n| z |\n";
        let note = parse(&path, text.as_bytes(), &ParseOptions::default());
        let found: Vec<&str> = sentences(&note, note.body.clone()).into_iter().map(|span| &text[span]).collect();
        let expected =
            ["# Head", "One.", "Two\ngoes on!", "3.5 is no end", "- item a", "- item b.", "c", "| x | y |", "| z |"];
        assert_eq!(found, expected);
    }

    proptest::proptest! {
        #[test]
        fn any_text_has_sentences_within_it(text in "\\PC{0,80}") {
            let note = parse(&VaultPath::new("a.md").unwrap(), text.as_bytes(), &ParseOptions::default());
            let mut last = 0;
            for span in sentences(&note, note.body.clone()) {
                proptest::prop_assert!(last <= span.start && span.end <= note.text.len());
                proptest::prop_assert!(!note.text[span.clone()].trim().is_empty());
                last = span.end;
            }
        }
    }
}
