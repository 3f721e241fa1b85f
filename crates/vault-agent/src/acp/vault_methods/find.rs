//! Searches of a vault: by a query, near a note, around a note; and the completions of a query.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Instant;

use vault_index::{Error as IndexError, ErrorKind as IndexErrorKind, Hit, Hits, Index, Mode, Query, SuggestionReason};
use vault_index::{LinkSuggestion, Mention};
use vault_tools::{Cancel, Error, ErrorKind, Result, SafePath, Vault};

use super::excerpt::{excerpt, marked, marked_phrase};
use super::messages::{
    Completes, Coverage, IndexState, IndexStateResult, LinkReason, MentionsRequest, MentionsResult, MissingLink,
    NewLink, NoteName, Operator, Ranking, RelatedNote, RelatedRequest, RelatedResult, SearchHit, SearchRequest,
    SearchResult, SkippedNote, Substitution, Tag, VocabularyResult,
};
use crate::workspace::OpenVault;

/// The most entries of a list, and how many there are unless a request says otherwise.
const MOST: usize = 200;
const USUAL: usize = 20;

/// The most notes that the state of an index names as skipped.
const SKIPPED: usize = 100;

/// How many entries a list has.
///
/// # Errors
/// [`ErrorKind::InvalidArguments`] for a number that is not allowed.
pub(super) fn limit(asked: Option<usize>) -> Result<usize> {
    match asked.unwrap_or(USUAL) {
        limit @ 1..=MOST => Ok(limit),
        _ => Err(Error::new(ErrorKind::InvalidArguments, format!("`limit` must be from 1 to {MOST}"))),
    }
}

/// Whether the settings of a vault permit showing a file; for a symbolic link, its target too.
pub(super) fn permits(open: &OpenVault, path: &str) -> bool {
    let permits = |path: &SafePath| open.policy().permits_path(path.as_str());
    let target = |path: &SafePath| open.vault.sandbox().real(path).ok();
    SafePath::new(path).is_ok_and(|path| permits(&path) && target(&path).is_none_or(|real| permits(&real)))
}

fn permitted<'p>(open: &OpenVault, path: &'p str) -> Result<&'p str> {
    match permits(open, path) {
        true => Ok(path),
        false => Err(Error::new(ErrorKind::Denied, "the settings of this vault deny this path").at(path)),
    }
}

/// Searches a vault.
///
/// # Errors
/// A query that cannot be understood; those of the index.
pub(super) fn search(open: &OpenVault, request: &SearchRequest, cancel: Cancel<'_>) -> Result<SearchResult> {
    let started = Instant::now();
    let mut query = Query::parse(request.query.trim()).map_err(|error| match error.kind() {
        IndexErrorKind::Query => Error::new(ErrorKind::InvalidArguments, error.to_string()),
        _ => error.into(),
    })?;
    query = query.mode(match request.ranking {
        Ranking::Words => Mode::Lexical,
        Ranking::Meaning => Mode::Hybrid,
    });
    let (unknown_operators, limit) = (query.unknown_operators.clone(), limit(request.limit)?);
    let (mut hits, is_current) = ranked(open, query.clone(), limit, cancel)?;
    if request.ranking == Ranking::Words && hits.results.len() < limit && !query.is_empty() {
        // A note that has a word of the query is better than nothing, for example while the first letters are typed.
        let (weak, _) = ranked(open, query.min_score(0.0), limit, cancel)?;
        let known: HashSet<String> = hits.results.iter().map(|hit| hit.path.to_string()).collect();
        let is_new = |hit: &Hit| !hit.why.terms.is_empty() && !known.contains(hit.path.as_str());
        let weak = weak.results.into_iter().filter(is_new).map(|mut hit| {
            hit.is_weak = true;
            hit
        });
        hits.results.extend(weak);
        hits.results.truncate(limit);
    }
    let near_misses = hits.near_misses.iter().filter(|near| permits(open, near.path.as_str()));
    let near_misses = near_misses.map(|near| NoteName { path: near.path.to_string(), title: near.title.clone() });
    let substitutions = hits.substitutions.iter();
    let substitutions =
        substitutions.map(|read| Substitution { word: read.word.clone(), read_as: read.read_as.clone() }).collect();
    Ok(SearchResult {
        ranking: request.ranking,
        coverage: coverage(&hits, is_current),
        substitutions,
        unknown_operators,
        near_misses: near_misses.collect(),
        hits: hits.results.into_iter().map(search_hit).collect(),
        took_ms: u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX),
    })
}

/// The best hits that may be shown, and whether the index was brought up to date for them.
fn ranked(open: &OpenVault, mut query: Query, limit: usize, cancel: Cancel<'_>) -> Result<(Hits, bool)> {
    let (index, is_current) = open.vault.index_for_ranking()?;
    if query.is_empty() {
        return without_hits(open, query.mode);
    }
    // Denied notes are left out after the search, so it is repeated with a higher limit until there are enough.
    query.limit = limit;
    loop {
        cancel.check()?;
        let mut hits = index.search(&query)?;
        let is_complete = hits.results.len() < query.limit;
        hits.results.retain(|hit| permits(open, hit.path.as_str()));
        if is_complete || hits.results.len() >= limit {
            hits.results.truncate(limit);
            return Ok((hits, is_current));
        }
        query.limit *= 4;
    }
}

/// An empty answer that says what the index lacks.
fn without_hits(open: &OpenVault, mode: Mode) -> Result<(Hits, bool)> {
    let (index, is_current) = open.vault.index_for_ranking()?;
    Ok((index.searcher()?.nothing(mode), is_current))
}

/// Whether the index has a note.
fn is_known(open: &OpenVault, path: &str) -> Result<bool> {
    let (index, _) = open.vault.index_for_search()?;
    Ok(vault_index::VaultPath::new(path).map_or(Ok(Vec::new()), |path| index.notes_at([&path]))?.len() == 1)
}

fn coverage(hits: &Hits, is_current: bool) -> Coverage {
    Coverage {
        notes: hits.indexed,
        unread: hits.unread,
        passages: hits.passages,
        // Titles are embedded too.
        pending: hits.pending.saturating_sub(hits.unread).min(hits.passages),
        is_current,
    }
}

fn search_hit(hit: Hit) -> SearchHit {
    SearchHit {
        path: hit.path.to_string(),
        line: hit.line,
        start_line: hit.start_line,
        score: hit.score,
        is_weak: hit.is_weak,
        excerpt: excerpt(&hit.text, &hit.why.terms),
        passage: marked(&hit.text, &hit.why.terms),
        tags: hit.tags,
        modified: hit.modified.to_string(),
        headings: hit.headings.into_iter().filter(|heading| *heading != hit.title).collect(),
        title: hit.title,
    }
}

/// Finds the notes that are about the same as a note.
///
/// # Errors
/// No such note in the index; those of the index.
pub(super) fn related(open: &OpenVault, request: &RelatedRequest, cancel: Cancel<'_>) -> Result<RelatedResult> {
    let path = permitted(open, &request.path)?;
    let found = ranked(open, Query::like(path), limit(request.limit)?, cancel);
    let (hits, is_current) = match found {
        // A note that was just written is embedded soon: its answer is empty, and says what is missing.
        Err(error) if error.kind() == ErrorKind::NotFound && is_known(open, path)? => without_hits(open, Mode::Hybrid)?,
        found => found?,
    };
    let linked = linked(open.vault.index_for_search()?.0, path)?;
    let coverage = coverage(&hits, is_current);
    let notes = hits.results.into_iter().map(|hit| RelatedNote {
        is_linked: linked.contains(hit.path.as_str()),
        path: hit.path.to_string(),
        line: hit.line,
        score: hit.score,
        excerpt: excerpt(&hit.text, &[]),
        title: hit.title,
    });
    Ok(RelatedResult { notes: notes.collect(), coverage })
}

/// The files that a link leads to from a note, or from which one leads to it.
fn linked(index: &Index, path: &str) -> Result<HashSet<String>> {
    let targets = index.links(path, 1)?.into_iter().filter_map(|link| link.target);
    let sources = index.backlinks(path, 1)?.into_iter().map(|link| link.source);
    Ok(targets.chain(sources).map(|path| path.to_string()).collect())
}

/// Finds the links that are missing around a note: where others name it, and whom it names or means.
///
/// # Errors
/// No such note in the index; those of the index.
pub(super) fn mentions(open: &OpenVault, request: &MentionsRequest, cancel: Cancel<'_>) -> Result<MentionsResult> {
    let path = permitted(open, &request.path)?;
    let limit = limit(request.limit)?;
    let (index, _) = open.vault.index_for_search()?;
    let mut mentions: Vec<Mention> = index.mentions(path)?;
    mentions.retain(|mention| mention.path.as_str().ends_with(".md") && permits(open, mention.path.as_str()));
    cancel.check()?;
    let mut suggestions: Vec<LinkSuggestion> = index.suggest_links(Some(path))?;
    suggestions.retain(|suggestion| permits(open, suggestion.target.as_str()));
    let (mentions_in_all, suggestions_in_all) = (mentions.len(), suggestions.len());
    mentions.truncate(limit);
    suggestions.truncate(limit);
    let own_title = title(index, path)?;
    let mentions = mentions.into_iter().map(|mention| MissingLink {
        sentence: marked_phrase(&mention.text, &mention.name),
        target_title: own_title.clone(),
        link: NewLink {
            path: mention.path.to_string(),
            line: mention.line,
            text: Some(mention.name),
            target: path.to_owned(),
        },
        reason: LinkReason::Name,
    });
    let suggestions = suggestions.into_iter().map(|suggestion| {
        Ok(MissingLink {
            sentence: marked_phrase(&suggestion.sentence, suggestion.text.as_deref().unwrap_or_default()),
            target_title: title(index, suggestion.target.as_str())?,
            link: NewLink {
                path: path.to_owned(),
                line: suggestion.line,
                text: suggestion.text,
                target: suggestion.target.to_string(),
            },
            reason: match suggestion.reason {
                SuggestionReason::Name => LinkReason::Name,
                SuggestionReason::LinkText => LinkReason::LinkText,
                _ => LinkReason::Meaning,
            },
        })
    });
    Ok(MentionsResult {
        mentions: mentions.collect(),
        mentions_in_all,
        suggestions: suggestions.collect::<Result<_>>()?,
        suggestions_in_all,
    })
}

/// The title of a note, or its path where the index does not know it.
fn title(index: &Index, path: &str) -> Result<String> {
    let known = vault_index::VaultPath::new(path);
    let known = known.map_or(Ok(Vec::new()), |path| index.notes_at([&path]))?;
    Ok(known.into_iter().next().map_or_else(|| path.to_owned(), |note| note.title))
}

/// Lists what a query can be completed with.
///
/// # Errors
/// Those of the index.
pub(super) fn vocabulary(open: &OpenVault) -> Result<VocabularyResult> {
    let (index, _) = open.vault.index_for_search()?;
    let mut tags: Vec<Tag> = index.tags()?.into_iter().map(|tag| Tag { name: tag.tag, notes: tag.nested }).collect();
    tags.sort_by(|a, b| b.notes.cmp(&a.notes).then_with(|| a.name.cmp(&b.name)));
    let operators = OPERATORS.iter().map(|(insert, description, completes)| Operator {
        insert: (*insert).to_owned(),
        description: (*description).to_owned(),
        completes: *completes,
    });
    Ok(VocabularyResult { operators: operators.collect(), tags, properties: index.properties()? })
}

/// The operators that are offered, in the order of the manual.
const OPERATORS: [(&str, &str, Completes); 20] = [
    ("tag:", "Notes with this tag, or a tag below it", Completes::Tags),
    ("path:", "Notes in this folder", Completes::Folders),
    ("file:", "Notes whose file name has this text", Completes::Notes),
    ("date:", "Notes of these days, for example date:2026-01 or date:>=yesterday", Completes::Nothing),
    ("[", "Notes with this property, for example [status:draft]", Completes::Properties),
    ("link:", "Notes that link to this note", Completes::Notes),
    ("linked-from:", "Notes that this note links to", Completes::Notes),
    ("is:orphan", "Notes that no link leads to", Completes::Nothing),
    ("line:(", "Notes with all of this on one line", Completes::Nothing),
    ("block:(", "Notes with all of this in one paragraph or list item", Completes::Nothing),
    ("section:(", "Notes with all of this between two headings", Completes::Nothing),
    ("content:(", "Notes with all of this in the text of one passage", Completes::Nothing),
    ("task:", "Notes with this in a task", Completes::Nothing),
    ("task-todo:", "Notes with this in an open task", Completes::Nothing),
    ("task-done:", "Notes with this in a done task", Completes::Nothing),
    ("match-case:", "Notes that have this word with this case", Completes::Nothing),
    ("ignore-case:", "Notes that have this word in any case", Completes::Nothing),
    ("OR", "Either of two words or groups", Completes::Nothing),
    ("\"", "An exact phrase", Completes::Nothing),
    ("-", "Not: leaves out the notes that have the next word, phrase or operator", Completes::Nothing),
];

/// The state of a vault's index. It waits for no other process.
///
/// # Errors
/// Those of reading the index.
pub(super) fn index_state(open: &OpenVault) -> Result<IndexStateResult> {
    let vault: &Arc<Vault> = &open.vault;
    let status = Index::open(vault.path(), open.index.clone()).and_then(|index| index.status());
    let index = match status {
        Ok(status) => Some(IndexState {
            file: status.index.to_string_lossy().into_owned(),
            bytes: status.index_bytes,
            model: status.model,
            notes: status.notes,
            unread: status.unread,
            passages: status.chunks,
            pending: status.pending,
            last_sync: status.last_sync.map(|time| time.to_string()),
            skipped: skipped(open, &status.skipped),
            advice: status.advice,
        }),
        Err(error) if is_missing(&error) => None,
        Err(error) => return Err(error.into()),
    };
    Ok(IndexStateResult {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        vault: vault.path().to_string_lossy().into_owned(),
        index,
    })
}

fn is_missing(error: &IndexError) -> bool {
    error.kind() == IndexErrorKind::NotFound
}

fn skipped(open: &OpenVault, notes: &[vault_index::SkippedNote]) -> Vec<SkippedNote> {
    let shown = notes.iter().filter(|note| permits(open, &note.path)).take(SKIPPED);
    shown.map(|note| SkippedNote { path: note.path.clone(), reason: note.reason.clone() }).collect()
}
