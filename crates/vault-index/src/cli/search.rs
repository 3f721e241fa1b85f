//! `vault-search`: searches one vault or several, and shows what was found.

use std::cmp::Ordering;
use std::collections::HashSet;
use std::io;
use std::path::PathBuf;
use std::time::Instant;

use jiff::Zoned;
use schemars::JsonSchema;
use serde::Serialize;
use vault_cli::{CliResult, Format, Out, Outcome, counted, note, padded, sanitize_line};

use super::hits;
use super::open;
use super::search_args::SearchArgs;
use super::settings::Settings;
use crate::{
    Condition, Error, ErrorKind, Expression, Hit, Hits, Index, Mode, NameMatch, NearMiss, Query, Substitution,
    Unmatched,
};

/// The answer to a search of all vaults together. Its fields are only ever added to: scripts rely on them.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct SearchAnswer {
    /// The query, as it was typed.
    pub query: String,
    /// The note that similar ones were searched for, if any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub like: Option<String>,
    /// How passages were ranked: `hybrid`, `semantic` or `lexical`.
    #[schemars(with = "String")]
    pub mode: Mode,
    /// The reranker that gave the scores, if one was used.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reranker: Option<String>,
    /// The vault's folder; null for a search of several.
    pub vault: Option<String>,
    /// The folders of a search of several vaults.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub vaults: Vec<String>,
    /// Notes in the index.
    pub indexed: usize,
    /// Passages that have no vector yet and were ranked by words alone, and notes that are not read yet.
    pub pending: usize,
    /// Milliseconds of the search, without bringing the index up to date.
    pub took_ms: u64,
    /// Why there is no answer; only with `--queries`, which goes on with the next one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// Words of the query that are in no note, and what was searched for in their place.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub substitutions: Vec<Substitution>,
    /// Best first.
    pub results: Vec<SearchResult>,
    /// Notes that are not read yet.
    #[serde(skip)]
    unread: usize,
    /// The nearest notes where nothing was found, best first.
    #[serde(skip)]
    near_misses: Vec<NearMiss>,
    /// Words alone rank, though meaning was to.
    #[serde(skip)]
    fell_back: bool,
}

/// One result of a search.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct SearchResult {
    /// The folder of the vault it lies in; only in a search of several.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub vault: Option<String>,
    #[serde(flatten)]
    pub hit: Hit,
    /// The vault it lies in, as a position among those searched.
    #[serde(skip)]
    vault_index: usize,
}

impl SearchAnswer {
    /// Merges the hits of all vaults, in the order of the vaults: best first, at most as many as the query wants.
    pub(super) fn new(typed: String, query: &Query, hits: Vec<Hits>, vaults: &[PathBuf]) -> Self {
        let text = |vault: &PathBuf| vault.to_string_lossy().into_owned();
        let several = vaults.len() > 1;
        let mut answer = Self {
            query: typed,
            like: query.like.clone(),
            mode: query.mode,
            reranker: None,
            vault: vaults.first().filter(|_| !several).map(text),
            vaults: if several { vaults.iter().map(text).collect() } else { Vec::new() },
            indexed: 0,
            pending: 0,
            took_ms: 0,
            error: None,
            substitutions: Vec::new(),
            results: Vec::new(),
            unread: 0,
            near_misses: Vec::new(),
            fell_back: false,
        };
        for (vault_index, hits) in hits.into_iter().enumerate() {
            answer.mode = hits.mode;
            answer.fell_back |= query.mode == Mode::Hybrid && hits.mode == Mode::Lexical;
            answer.reranker = hits.reranker;
            answer.indexed += hits.indexed;
            answer.pending += hits.pending + hits.unread;
            answer.unread += hits.unread;
            let new = hits.substitutions.into_iter().filter(|read| !answer.substitutions.contains(read));
            answer.substitutions.extend(new.collect::<Vec<_>>());
            answer.near_misses.extend(hits.near_misses);
            let vault = several.then(|| text(&vaults[vault_index]));
            let results = hits.results.into_iter();
            answer.results.extend(results.map(|hit| SearchResult { vault: vault.clone(), hit, vault_index }));
        }
        // Stable: each vault's own order, and the order of the vaults, decide between equal scores.
        // Notes of which a name is the query are first, also where a reranker gave the scores.
        let is_named = |result: &SearchResult| result.hit.why.name == Some(NameMatch::Equal);
        answer.results.sort_by(|a, b| {
            let by_score = || b.hit.score.partial_cmp(&a.hit.score).unwrap_or(Ordering::Equal);
            is_named(b).cmp(&is_named(a)).then_with(by_score)
        });
        answer.results.truncate(query.limit);
        answer.near_misses.sort_by(|a, b| b.score.partial_cmp(&a.score).unwrap_or(Ordering::Equal));
        if !answer.results.is_empty() {
            answer.near_misses.clear();
        }
        answer
    }
}

impl SearchResult {
    /// Its path as it is shown: relative to its vault, or with its vault's folder where there are several.
    fn shown_path(&self) -> String {
        match &self.vault {
            None => self.hit.path.to_string(),
            Some(vault) => PathBuf::from(vault).join(self.hit.path.as_str()).to_string_lossy().into_owned(),
        }
    }
}

/// Opens the index of every vault, brought up to date as asked. The text says why something may be missing.
pub(super) fn open_all(settings: &Settings, args: &SearchArgs, mode: Mode) -> CliResult<(Vec<Index>, Option<String>)> {
    let policy = args.sync_policy(mode);
    let mut indexes = Vec::with_capacity(settings.vaults.len());
    let mut missing = None;
    for vault in &settings.vaults {
        let (index, why) = open::up_to_date(settings, vault, policy)?;
        indexes.push(index);
        missing = missing.or(why);
    }
    Ok((indexes, missing))
}

pub(super) fn run(args: &SearchArgs, out: &mut Out) -> CliResult {
    if args.output.schema {
        return match args.output.jsonl && args.queries.is_none() {
            true => out.schema::<SearchResult>(),
            false => out.schema::<SearchAnswer>(),
        };
    }
    let settings = Settings::load(&args.vault_args)?;
    let query = args.query(&settings.config, &Zoned::now())?;
    if query.like.is_some() && settings.vaults.len() > 1 {
        return Err(Error::new(ErrorKind::Query, "--like searches one vault at a time")
            .with_remedy("give --vault once")
            .into());
    }
    // A reranker that cannot be loaded is an error before any work.
    let rerank = args.reranking()?;
    let (indexes, why) = open_all(&settings, args, query.mode)?;
    let started = Instant::now();
    let search = |index: &Index| match &rerank {
        Some(rerank) => index.search_reranked(&query, rerank),
        None => index.search(&query),
    };
    let hits = indexes.iter().map(search).collect::<Result<Vec<_>, _>>()?;
    let mut answer = SearchAnswer::new(args.typed(), &query, hits, &settings.vaults);
    answer.took_ms = u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX);

    let outcome = if answer.results.is_empty() { Outcome::Nothing } else { Outcome::Done };
    let unmatched = unmatched(&indexes, &query, outcome)?;
    match args.output.format() {
        _ if args.files => print_paths(&answer, out)?,
        Format::Json => out.json(&answer)?,
        Format::JsonLines => answer.results.iter().try_for_each(|result| out.record(result))?,
        Format::Human => print_results(&answer, &settings.vaults, is_ranked(&query), args.explain, out)?,
    }
    out.flush()?;
    say_missing(&answer, why, &unmatched, is_ranked(&query));
    say_unknown(&query);
    Ok(outcome)
}

fn print_paths(answer: &SearchAnswer, out: &mut Out) -> io::Result<()> {
    let mut printed = HashSet::new();
    for result in &answer.results {
        let path = result.shown_path();
        let path = if out.paint.is_terminal() { sanitize_line(&path) } else { path };
        if !printed.contains(&path) {
            out.line(&path)?;
            printed.insert(path);
        }
    }
    Ok(())
}

/// Whether there is anything but filters.
fn is_ranked(query: &Query) -> bool {
    query.like.is_some() || !query.text.trim().is_empty()
}

/// Conditions that no note of any vault meets: all where nothing was found, else those of what was to be left out.
fn unmatched(indexes: &[Index], query: &Query, outcome: Outcome) -> CliResult<Unmatched> {
    let exclusions = || {
        let parts = query.condition.clone().map(Condition::into_parts).unwrap_or_default();
        let exclusions = parts.into_iter().filter(|part| matches!(part, Expression::Not(_)));
        exclusions.fold(Query::default(), Query::condition)
    };
    let query = if outcome == Outcome::Done { exclusions() } else { query.clone() };
    if query.condition.is_none() && query.filter.is_empty() {
        return Ok(Unmatched::default());
    }
    let mut in_all: Option<Unmatched> = None;
    for index in indexes {
        let here = index.searcher()?.unmatched(&query)?;
        in_all = Some(match in_all {
            Some(mut before) => {
                before.wanted.retain(|text| here.wanted.contains(text));
                before.excluded.retain(|text| here.excluded.contains(text));
                before
            }
            None => here,
        });
    }
    Ok(in_all.unwrap_or_default())
}

fn print_results(
    answer: &SearchAnswer,
    vaults: &[PathBuf],
    is_ranked: bool,
    explain: bool,
    out: &mut Out,
) -> io::Result<()> {
    for (n, result) in answer.results.iter().enumerate() {
        if n > 0 {
            out.line("")?;
        }
        let hit = &result.hit;
        let file = vaults[result.vault_index].join(hit.path.as_str());
        let score = match is_ranked {
            true => format!("{:.2}", hit.score),
            false => hit.modified.to_zoned(jiff::tz::TimeZone::system()).strftime("%Y-%m-%d").to_string(),
        };
        let explained = explain.then(|| hits::explained(hit, answer.reranker.as_deref()));
        let path = sanitize_line(&result.shown_path());
        for line in hits::lines(hit, &file, &path, &score, explained.as_deref(), out.paint) {
            out.line(&line)?;
        }
    }
    Ok(())
}

/// Says on standard error what looked like an operator.
fn say_unknown(query: &Query) {
    for word in &query.unknown_operators {
        note(&format!("`{word}` is searched for as words; `vault-search --help` lists the operators"));
    }
}

/// What a word that is in no note was taken for.
fn substituted(read: &Substitution) -> String {
    let words = match read.read_as.split_last() {
        Some((last, others)) if !others.is_empty() => format!("{} or {last}", others.join(", ")),
        _ => read.read_as.concat(),
    };
    format!("searched for {words} ({} is in no note)", read.word)
}

/// Says on standard error what an answer lacks; `why` is the reason that the index is not up to date.
fn say_missing(answer: &SearchAnswer, why: Option<String>, unmatched: &Unmatched, is_ranked: bool) {
    answer.substitutions.iter().for_each(|read| note(&substituted(read)));
    if answer.results.is_empty() {
        note("nothing was found");
        unmatched.wanted.iter().for_each(|text| note(text));
        for miss in &answer.near_misses {
            note(&format!("near: {}  {:.2}  {}", padded(miss.path.as_str(), 24), miss.score, miss.title));
        }
    }
    if answer.fell_back && !answer.results.is_empty() {
        note("nothing is near it in meaning, so words alone rank (is it in another language than the model's?)");
    }
    unmatched.excluded.iter().for_each(|text| note(text));
    let is_unexplained = why.is_none();
    let mut parts: Vec<String> = why.into_iter().collect();
    if answer.unread > 0 {
        parts.push(format!("not read yet, so not found: {}", counted(answer.unread, "note")));
    }
    // Neither words alone nor filters alone need vectors.
    let pending = answer.pending - answer.unread;
    if pending > 0 && is_ranked && answer.mode != Mode::Lexical {
        let so = if answer.mode == Mode::Semantic { "not found" } else { "ranked by words alone" };
        parts.push(format!("without a vector yet, so {so}: {}", counted(pending, "text")));
    }
    if parts.is_empty() {
        return;
    }
    if is_unexplained {
        parts.push("`vault-index sync` completes the index".to_string());
    }
    note(&parts.join("; "));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Reranked, VaultPath};

    fn hit(path: &str, score: f32) -> Hit {
        let (title, text) = ("A".to_string(), "words".to_string());
        Hit { headings: vec![title.clone(), "Part".into()], title, text, ..hits::tests::hit(path, score) }
    }

    fn merged(results: Vec<Vec<Hit>>, limit: usize) -> SearchAnswer {
        let near = NearMiss { path: VaultPath::new("n.md").unwrap(), title: "N".into(), score: 0.1 };
        let hits = |results| Hits {
            results,
            mode: Mode::Hybrid,
            reranker: None,
            indexed: 3,
            pending: 1,
            unread: 1,
            substitutions: Vec::new(),
            near_misses: vec![near.clone()],
        };
        let vaults: Vec<PathBuf> = (0..results.len()).map(|n| format!("/v{n}").into()).collect();
        let query = Query { limit, ..Query::literal("x") };
        SearchAnswer::new("x".into(), &query, results.into_iter().map(hits).collect(), &vaults)
    }

    #[test]
    fn several_vaults_are_one_answer() {
        let answer =
            merged(vec![vec![hit("a.md", 0.9), hit("b.md", 0.4)], vec![hit("c.md", 0.9), hit("d.md", 0.5)]], 3);
        let order: Vec<_> = answer.results.iter().map(SearchResult::shown_path).collect();
        assert_eq!(order, ["/v0/a.md", "/v1/c.md", "/v1/d.md"]);
        assert_eq!((answer.indexed, answer.pending, answer.unread), (6, 4, 2));
        assert_eq!((answer.vault, answer.vaults.len(), answer.near_misses.len()), (None, 2, 0));
        assert_eq!(merged(vec![vec![]], 3).near_misses.len(), 1);
        // As a reranker may have scored it.
        let mut named = hit("e.md", 0.2);
        named.why.name = Some(NameMatch::Equal);
        let answer = merged(vec![vec![hit("a.md", 0.9)], vec![named, hit("d.md", 0.5)]], 2);
        let order: Vec<_> = answer.results.iter().map(SearchResult::shown_path).collect();
        assert_eq!(order, ["/v1/e.md", "/v0/a.md"]);
    }

    #[test]
    fn the_json_of_an_answer() {
        let mut hit = hit("a.md", 0.5);
        hit.why.rerank = Some(Reranked { rank: 7, score: 0.4375 });
        let json = serde_json::to_string(&merged(vec![vec![hit]], 3)).unwrap();
        assert_eq!(
            json,
            r#"{"query":"x","mode":"hybrid","vault":"/v0","indexed":3,"pending":2,"took_ms":0,"results":[{"path":"a.md","#
                .to_string()
                + r#""title":"A","headings":["A","Part"],"line":7,"end_line":9,"score":0.5,"text":"words","#
                + r#""tags":["garden"],"modified":"2026-01-02T03:04:05Z","why":{"semantic":0.5,"title":null,"#
                + r#""lexical":0.25,"terms":["soil"],"weights":[0.75,0.25],"rerank":{"rank":7,"score":0.4375}}}]}"#
        );
    }
}
