//! `vault-search`: asks one vault or several, and shows what was found.

use std::cmp::Ordering;
use std::collections::HashSet;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Instant;

use jiff::Zoned;
use vault_cli::{CliResult, Format, Out, Outcome, counted, note, padded, sanitize_line};

use super::records::{SearchAnswer, SearchResult};
use super::search_args::SearchArgs;
use super::settings::Settings;
use super::{fresh, passage, queries};
use crate::{Error, ErrorKind, Filter, Hit, Hits, Index, Mode, NearMiss, Query, Unmatched};

/// An index that can be asked.
pub(super) struct Opened {
    pub index: Index,
    pub vault: PathBuf,
}

/// A result and the vault it lies in.
struct Found {
    hit: Hit,
    vault: usize,
}

/// What all vaults together answer.
#[derive(Default)]
pub(super) struct Answer {
    found: Vec<Found>,
    mode: Mode,
    reranker: Option<String>,
    indexed: usize,
    pending: usize,
    unread: usize,
    near: Vec<NearMiss>,
}

pub(super) fn run(args: SearchArgs, out: &mut Out) -> CliResult {
    if args.output.schema {
        return match args.output.jsonl && args.queries.is_none() {
            true => out.schema::<SearchResult>(),
            false => out.schema::<SearchAnswer>(),
        };
    }
    let settings = Settings::load(&args.place)?;
    let now = Zoned::now();
    if let Some(file) = &args.queries {
        return queries::run(&args, file, &settings, &now, out);
    }
    let query = args.question(&settings.config, &now)?;
    if query.like.is_some() && settings.vaults.len() > 1 {
        return Err(Error::new(ErrorKind::Query, "--like looks in one vault at a time")
            .with_remedy("give --vault once")
            .into());
    }
    // What it lacks is said before any work.
    let rerank = args.reranking()?;
    let (opened, why) = open_all(&settings, &args, query.mode)?;
    let started = Instant::now();
    let search = |o: &Opened| match &rerank {
        Some(rerank) => o.index.search_reranked(&query, rerank),
        None => o.index.search(&query),
    };
    let answers = opened.iter().map(search).collect::<Result<Vec<_>, _>>()?;
    let answer = merged(answers, query.limit);
    let took_ms = u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX);

    let outcome = if answer.found.is_empty() { Outcome::Nothing } else { Outcome::Done };
    let unmatched = unmatched(&opened, &query.filter, outcome)?;
    // Neither words alone nor filters alone need vectors.
    let without_vector = if answer.mode == Mode::Lexical || !is_ranked(&query) { 0 } else { answer.pending };
    let (notes, mode, near) = (answer.unread, answer.mode, answer.near.clone());
    let missing = Missing { why, notes, without_vector, mode, near, unmatched };
    match args.output.format() {
        _ if args.files => files(&answer, &opened, out)?,
        Format::Json => out.json(&record(args.typed(), &query, answer, &opened, took_ms))?,
        Format::JsonLines => {
            let record = record(args.typed(), &query, answer, &opened, took_ms);
            record.results.iter().try_for_each(|result| out.record(result))?;
        }
        Format::Human => people(&answer, &opened, &query, args.explain, out)?,
    }
    out.flush()?;
    missing.say(outcome);
    Ok(outcome)
}

/// Opens the index of every vault, brought up to date as asked. The text says why something may be missing.
pub(super) fn open_all(settings: &Settings, args: &SearchArgs, mode: Mode) -> CliResult<(Vec<Opened>, Option<String>)> {
    let before = args.before(mode);
    let mut opened = Vec::with_capacity(settings.vaults.len());
    let mut missing = None;
    for vault in &settings.vaults {
        let (index, why) = fresh::open(settings, vault, before)?;
        opened.push(Opened { index, vault: vault.clone() });
        missing = missing.or(why);
    }
    Ok((opened, missing))
}

/// One answer from those of all vaults, in the order of the vaults: best first, at most `limit`.
pub(super) fn merged(answers: Vec<Hits>, limit: usize) -> Answer {
    let mut all = Answer::default();
    for (vault, hits) in answers.into_iter().enumerate() {
        all.mode = hits.mode;
        all.reranker = hits.reranker;
        all.indexed += hits.indexed;
        all.pending += hits.pending;
        all.unread += hits.unread;
        all.near.extend(hits.near_misses);
        all.found.extend(hits.results.into_iter().map(|hit| Found { hit, vault }));
    }
    // Stable: each vault's own order, and the order of the vaults, decide between equal scores.
    all.found.sort_by(|a, b| b.hit.score.partial_cmp(&a.hit.score).unwrap_or(Ordering::Equal));
    all.found.truncate(limit);
    all.near.sort_by(|a, b| b.score.partial_cmp(&a.score).unwrap_or(Ordering::Equal));
    if !all.found.is_empty() {
        all.near.clear();
    }
    all
}

/// The JSON document of an answer.
pub(super) fn record(typed: String, query: &Query, answer: Answer, opened: &[Opened], took_ms: u64) -> SearchAnswer {
    let text = |o: &Opened| o.vault.to_string_lossy().into_owned();
    let several = opened.len() > 1;
    SearchAnswer {
        query: typed,
        like: query.like.clone(),
        mode: answer.mode.name(),
        reranker: answer.reranker,
        vault: opened.first().filter(|_| !several).map(text),
        vaults: if several { opened.iter().map(text).collect() } else { Vec::new() },
        indexed: answer.indexed,
        pending: answer.pending + answer.unread,
        took_ms,
        error: None,
        results: answer
            .found
            .into_iter()
            .map(|found| SearchResult::new(found.hit, several.then(|| text(&opened[found.vault]))))
            .collect(),
    }
}

/// A result's path as it is shown: relative to its vault, or with its vault's folder where there are several.
fn shown_path(found: &Found, opened: &[Opened]) -> String {
    match opened.len() {
        1 => found.hit.path.to_string(),
        _ => opened[found.vault].vault.join(found.hit.path.as_str()).to_string_lossy().into_owned(),
    }
}

fn files(answer: &Answer, opened: &[Opened], out: &mut Out) -> io::Result<()> {
    let mut printed = HashSet::new();
    for found in &answer.found {
        let path = shown_path(found, opened);
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
    query.like.is_some() || !query.text.trim().is_empty() || !query.phrases.is_empty()
}

/// Conditions that no note of any vault meets: where nothing was found, and whenever something was to be left out.
fn unmatched(opened: &[Opened], filter: &Filter, outcome: Outcome) -> CliResult<Unmatched> {
    let excludes = !filter.without_tags.is_empty() || !filter.without_paths.is_empty();
    if outcome == Outcome::Done && !excludes {
        return Ok(Unmatched::default());
    }
    let mut of_all: Option<Unmatched> = None;
    for one in opened {
        let here = one.index.searcher()?.unmatched(filter)?;
        of_all = Some(match of_all {
            Some(mut before) => {
                before.wanted.retain(|text| here.wanted.contains(text));
                before.excluded.retain(|text| here.excluded.contains(text));
                before
            }
            None => here,
        });
    }
    Ok(of_all.unwrap_or_default())
}

fn people(answer: &Answer, opened: &[Opened], query: &Query, explain: bool, out: &mut Out) -> io::Result<()> {
    let ranked = is_ranked(query);
    for (n, found) in answer.found.iter().enumerate() {
        if n > 0 {
            out.line("")?;
        }
        let file = opened[found.vault].vault.join(Path::new(found.hit.path.as_str()));
        let path = sanitize_line(&shown_path(found, opened));
        let score = if ranked {
            format!("{:.2}", found.hit.score)
        } else {
            found.hit.modified.to_zoned(jiff::tz::TimeZone::system()).strftime("%Y-%m-%d").to_string()
        };
        let explained = explain.then(|| explained(&found.hit, answer.reranker.as_deref()));
        for line in block(&found.hit, &file, &path, &score, explained.as_deref(), out) {
            out.line(&line)?;
        }
    }
    Ok(())
}

/// The lines of one result.
fn block(hit: &Hit, file: &Path, path: &str, score: &str, explained: Option<&str>, out: &Out) -> Vec<String> {
    let paint = out.paint;
    let place = format!("{}{}", paint.path(path), paint.dim(&format!(":{}", hit.line)));
    let mut lines = vec![format!("{}  {}", paint.link(file, &place), paint.good(score))];
    let below_title = hit.headings.iter().filter(|heading| **heading != hit.title);
    let titles: Vec<String> = std::iter::once(&hit.title).chain(below_title).map(|text| sanitize_line(text)).collect();
    lines.push(format!("  {}", paint.bold(&titles.join(" › "))));
    for line in passage::excerpt(&hit.text, &hit.why.terms, paint.columns() - 4) {
        lines.push(format!("    {}", passage::painted(&line, &paint)));
    }
    if let Some(explained) = explained {
        lines.push(format!("    {}", paint.dim(explained)));
    }
    lines
}

/// The parts of a score on one line.
fn explained(hit: &Hit, reranker: Option<&str>) -> String {
    let why = &hit.why;
    let mut parts = Vec::new();
    if let Some(semantic) = why.semantic {
        parts.push(format!("meaning {semantic:.3} × {:.2}", why.weights.0));
    }
    parts.push(format!("words {:.3} × {:.2}", why.lexical, why.weights.1));
    let mut text = parts.join(" + ");
    if let Some(before) = why.rerank {
        let by = sanitize_line(reranker.unwrap_or_default());
        text =
            format!("reranked {:.3} by {by}; before: place {}, {:.3} = {text}", hit.score, before.rank, before.score);
    }
    if let Some(title) = why.title {
        text.push_str(&format!("; file name {title:.3}"));
    }
    if !why.terms.is_empty() {
        text.push_str(&format!("; found: {}", sanitize_line(&why.terms.join(", "))));
    }
    text
}

/// What an answer lacks, for people.
struct Missing {
    /// Why the index is not up to date.
    why: Option<String>,
    /// Notes not read yet.
    notes: usize,
    /// Texts that meaning cannot find for want of a vector.
    without_vector: usize,
    mode: Mode,
    near: Vec<NearMiss>,
    unmatched: Unmatched,
}

impl Missing {
    fn say(&self, outcome: Outcome) {
        if outcome == Outcome::Nothing {
            note("nothing was found");
            self.unmatched.wanted.iter().for_each(|text| note(text));
            for miss in &self.near {
                note(&format!("near: {}  {:.2}  {}", padded(miss.path.as_str(), 24), miss.score, miss.title));
            }
        }
        self.unmatched.excluded.iter().for_each(|text| note(text));
        let mut parts: Vec<String> = self.why.iter().cloned().collect();
        if self.notes > 0 {
            parts.push(format!("not read yet, so that they cannot be found: {}", counted(self.notes, "note")));
        }
        if self.without_vector > 0 {
            let so = if self.mode == Mode::Semantic { "cannot be found" } else { "are ranked by words alone" };
            parts.push(format!("without a vector yet, so that they {so}: {}", counted(self.without_vector, "text")));
        }
        if parts.is_empty() {
            return;
        }
        if self.why.is_none() {
            parts.push("`vault-index sync` completes the index".to_string());
        }
        note(&parts.join("; "));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Reranked, VaultPath, Why};

    fn hit(path: &str, score: f32) -> Hit {
        Hit {
            path: VaultPath::new(path).unwrap(),
            title: "A \u{1b}[31mtitle".into(),
            headings: vec!["A \u{1b}[31mtitle".into(), "Part".into()],
            line: 7,
            end_line: 9,
            score,
            text: "## Part\n\nSome words about soil.\n".into(),
            tags: vec!["garden".into()],
            modified: "2026-01-02T03:04:05Z".parse().unwrap(),
            why: Why {
                semantic: Some(0.5),
                title: None,
                lexical: 0.25,
                terms: vec!["soil".into()],
                weights: (0.75, 0.25),
                rerank: None,
            },
        }
    }

    fn hits(results: Vec<Hit>) -> Hits {
        let near = NearMiss { path: VaultPath::new("n.md").unwrap(), title: "N".into(), score: 0.1 };
        Hits { results, mode: Mode::Hybrid, reranker: None, indexed: 3, pending: 1, unread: 0, near_misses: vec![near] }
    }

    #[test]
    fn several_vaults_are_one_answer() {
        let answer = merged(
            vec![hits(vec![hit("a.md", 0.9), hit("b.md", 0.4)]), hits(vec![hit("c.md", 0.9), hit("d.md", 0.5)])],
            3,
        );
        let order: Vec<_> = answer.found.iter().map(|f| (f.vault, f.hit.path.as_str())).collect();
        assert_eq!(order, [(0, "a.md"), (1, "c.md"), (1, "d.md")]);
        assert_eq!((answer.indexed, answer.pending, answer.near.len()), (6, 2, 0));
        assert_eq!(merged(vec![hits(vec![])], 3).near.len(), 1);
    }

    #[test]
    fn a_block_for_people() {
        let out = Out::to(Vec::new());
        let hit = hit("Garden/Soil.md", 0.5);
        let why = explained(&hit, None);
        let lines = block(&hit, Path::new("/v/Garden/Soil.md"), "Garden/Soil.md", "0.50", Some(&why), &out);
        assert_eq!(
            lines,
            [
                "Garden/Soil.md:7  0.50",
                "  A ␛[31mtitle › Part",
                "    Some words about soil.",
                "    meaning 0.500 × 0.75 + words 0.250 × 0.25; found: soil",
            ]
        );
    }

    #[test]
    fn what_a_reranker_did_is_explained() {
        let mut hit = hit("a.md", 0.875);
        hit.why.rerank = Some(Reranked { rank: 7, score: 0.4375 });
        assert_eq!(
            explained(&hit, Some("onnx:my \u{1b}model")),
            "reranked 0.875 by onnx:my ␛model; before: place 7, 0.438 = meaning 0.500 × 0.75 + words 0.250 × 0.25; \
             found: soil"
        );
        let json = serde_json::to_value(SearchResult::new(hit, None)).unwrap();
        assert_eq!(json["why"]["rerank"], serde_json::json!({"rank": 7, "score": 0.4375}));
    }

    #[test]
    fn the_json_of_a_result() {
        let json = serde_json::to_value(SearchResult::new(hit("a.md", 0.5), None)).unwrap();
        assert_eq!(
            json,
            serde_json::json!({
                "path": "a.md", "title": "A \u{1b}[31mtitle", "headings": ["A \u{1b}[31mtitle", "Part"], "line": 7, "end_line": 9,
                "score": 0.5, "text": "## Part\n\nSome words about soil.\n", "tags": ["garden"],
                "modified": "2026-01-02T03:04:05Z",
                "why": {"semantic": 0.5, "title": null, "lexical": 0.25, "terms": ["soil"], "weights": [0.75, 0.25]},
            })
        );
    }
}
