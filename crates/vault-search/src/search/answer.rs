//! The answer to a search of one vault or several, with the fields of the JSON output.

use std::cmp::{Ordering, Reverse};
use std::collections::{HashMap, HashSet};
use std::path::PathBuf;

use schemars::JsonSchema;
use serde::Serialize;

use vault_index::{Grouping, Hit, Hits, Mode, NameMatch, NearMiss, Query, Sort, Substitution};

/// The answer to a search of all vaults together. Fields are only ever added, because scripts rely on them.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct SearchAnswer {
    /// The query, as it was typed.
    pub query: String,
    /// The note to which similar notes were searched for, if any.
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
    /// The folders of the vaults of a search of several.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub vaults: Vec<String>,
    /// Those of them that were not searched, because their database does not answer.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub missing: Vec<String>,
    /// The number of notes in the index.
    pub indexed: usize,
    /// The number of passages that have no vector yet, plus that of notes that are not read yet.
    pub pending: usize,
    /// The duration of the search in milliseconds, without the time for bringing the index up to date.
    pub took_ms: u64,
    /// The reason why there is no answer; only with `--queries`, which continues with the next query.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// Words of the query that are in no note, with the words that were searched for instead.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub substitutions: Vec<Substitution>,
    /// Unknown operators such as `foo:bar`, which were searched for as words.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unknown_operators: Vec<String>,
    /// The notices that standard error gets about the answer, one sentence each; not with `--queries`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notices: Vec<String>,
    /// The number of notes (with `--chunks`: passages) that match; only with `--count`, which lists no results.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub count: Option<usize>,
    /// The same number for each folder, the largest first; only with `--count --group folder`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub folders: Vec<FolderCount>,
    /// The results, best first, or in the order of `--sort` and `--group`.
    pub results: Vec<SearchResult>,
    /// Words of the query that are in no note of any vault and were not corrected.
    #[serde(skip)]
    pub unknown_words: Vec<String>,
    /// The number of notes that are not read yet.
    #[serde(skip)]
    pub unread: usize,
    /// The nearest notes if nothing was found, best first.
    #[serde(skip)]
    pub near_misses: Vec<NearMiss>,
    /// Whether words alone rank, although the mode was hybrid.
    #[serde(skip)]
    pub fell_back: bool,
}

/// One result of a search.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct SearchResult {
    /// The folder of its vault; only in a search of several.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub vault: Option<String>,
    #[serde(flatten)]
    pub hit: Hit,
    /// The folder of the note, empty for the vault's root; only with `--group folder`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub folder: Option<String>,
    /// The absolute path of the file, as spelled on disk; only with `--absolute`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub absolute_path: Option<String>,
    /// The position of its vault among the searched ones.
    #[serde(skip)]
    pub vault_index: usize,
    /// The file. Its name may be spelled differently on disk until it is looked up.
    #[serde(skip)]
    pub file: PathBuf,
}

/// A folder, and the number of notes or passages in it that match.
#[derive(Debug, PartialEq, Serialize, JsonSchema)]
pub(super) struct FolderCount {
    /// The folder, empty for the vault's root; in a search of several vaults, it begins with the vault's folder.
    pub folder: String,
    /// The number of matches.
    pub count: usize,
}

impl SearchAnswer {
    /// Merges the hits of all vaults, which are in the order of the vaults; `None`: the vault is missing. The results are sorted as the query
    /// demands, best first by default, and limited to the number it asks for.
    pub(super) fn new(typed: String, query: &Query, hits: Vec<Option<Hits>>, vaults: &[PathBuf]) -> Self {
        let text = |vault: &PathBuf| vault.to_string_lossy().into_owned();
        let several = vaults.len() > 1;
        let mut answer = Self {
            query: typed,
            like: query.like.clone(),
            mode: query.mode,
            reranker: None,
            vault: vaults.first().filter(|_| !several).map(text),
            vaults: if several { vaults.iter().map(text).collect() } else { Vec::new() },
            missing: vaults
                .iter()
                .zip(&hits)
                .filter(|(_, hits)| hits.is_none())
                .map(|(vault, _)| text(vault))
                .collect(),
            indexed: 0,
            pending: 0,
            took_ms: 0,
            error: None,
            count: None,
            folders: Vec::new(),
            results: Vec::new(),
            unknown_words: Vec::new(),
            unread: 0,
            near_misses: Vec::new(),
            substitutions: Vec::new(),
            unknown_operators: query.unknown_operators.clone(),
            notices: Vec::new(),
            fell_back: false,
        };
        let mut is_first = true;
        for (vault_index, hits) in hits.into_iter().enumerate() {
            let Some(hits) = hits else { continue };
            answer.mode = hits.mode;
            answer.fell_back |= query.mode == Mode::Hybrid && hits.mode == Mode::Lexical;
            answer.reranker = hits.reranker;
            answer.indexed += hits.indexed;
            answer.pending += hits.pending + hits.unread;
            answer.unread += hits.unread;
            let new = hits.substitutions.into_iter().filter(|read| !answer.substitutions.contains(read));
            answer.substitutions.extend(new.collect::<Vec<_>>());
            match std::mem::take(&mut is_first) {
                true => answer.unknown_words = hits.unknown_words,
                false => answer.unknown_words.retain(|word| hits.unknown_words.contains(word)),
            }
            answer.near_misses.extend(hits.near_misses);
            answer.results.extend(hits.results.into_iter().map(|hit| SearchResult {
                vault: several.then(|| text(&vaults[vault_index])),
                folder: None,
                absolute_path: None,
                vault_index,
                file: vaults[vault_index].join(hit.path.as_str()),
                hit,
            }));
        }
        // The sort is stable: between equals, the order within a vault and the order of the vaults decide. Notes with a
        // name equal to the query come first, even if a reranker gave the scores.
        let is_named = |result: &SearchResult| result.hit.why.name == Some(NameMatch::Equal);
        let by_score = |a: &SearchResult, b: &SearchResult| {
            let by_score = b.hit.score.partial_cmp(&a.hit.score).unwrap_or(Ordering::Equal);
            is_named(b).cmp(&is_named(a)).then(by_score)
        };
        match query.sort {
            Sort::Score => answer.results.sort_by(by_score),
            Sort::Modified => answer.results.sort_by_key(|result| Reverse(result.hit.modified)),
            Sort::Path => answer.results.sort_by_cached_key(SearchResult::shown_path),
        }
        if several {
            answer.leave_out_repeats(query.grouping);
        }
        answer.results.truncate(query.limit);
        answer.near_misses.sort_by(|a, b| b.score.partial_cmp(&a.score).unwrap_or(Ordering::Equal));
        if !answer.results.is_empty() {
            answer.near_misses.clear();
        }
        answer
    }

    /// Removes duplicates of notes, which occur if one vault is inside another: the first result of a note is kept.
    fn leave_out_repeats(&mut self, grouping: Grouping) {
        let passage = |result: &SearchResult| (grouping == Grouping::Passages).then_some(result.hit.start_line);
        let mut listed = HashSet::new();
        self.results.retain(|result| listed.insert((result.file.clone(), passage(result))));
    }

    /// Groups the results by folder. The folder with the first result comes first.
    pub(super) fn group_by_folder(&mut self) {
        let mut order: HashMap<(usize, String), usize> = HashMap::new();
        for result in &mut self.results {
            let folder = result.hit.path.folder().to_string();
            let next = order.len();
            order.entry((result.vault_index, folder.clone())).or_insert(next);
            result.folder = Some(folder);
        }
        self.results
            .sort_by_cached_key(|result| order[&(result.vault_index, result.folder.clone().unwrap_or_default())]);
    }
}

impl SearchResult {
    /// Returns its path for display: relative to its vault, or with the vault's folder if there are several.
    pub(super) fn shown_path(&self) -> String {
        match (&self.absolute_path, &self.vault) {
            (Some(path), _) => path.clone(),
            (None, Some(vault)) => PathBuf::from(vault).join(self.hit.path.as_str()).to_string_lossy().into_owned(),
            (None, None) => self.hit.path.to_string(),
        }
    }

    /// Returns its folder for display, with a slash at the end.
    pub(super) fn shown_folder(&self) -> Option<String> {
        let folder = self.folder.as_deref()?;
        let within = |base: &str| format!("{}/", [base, folder].join("/").trim_matches('/'));
        Some(match &self.vault {
            Some(vault) => format!("/{}", within(vault)),
            None if folder.is_empty() => "./".to_string(),
            None => within(""),
        })
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use serde_json::json;

    /// A sample.
    pub(in crate::search) fn hit(path: &str, score: f32) -> Hit {
        let mut hit: Hit = serde_json::from_value(json!({
            "path": path, "title": "A \u{1b}[31mtitle", "headings": ["A \u{1b}[31mtitle", "Part"],
            "line": 9, "start_line": 7, "end_line": 9, "score": 0,
            "text": "## Part\n\nSome words about soil.\n", "tags": ["garden"], "modified": "2026-01-02T03:04:05Z",
            "why": { "semantic": 0.5, "title": null, "lexical": 0.25, "terms": ["soil"], "weights": [0.75, 0.25] },
        }))
        .unwrap();
        hit.score = score;
        hit
    }

    fn hits(results: Vec<Hit>) -> Hits {
        let mut hits: Hits = serde_json::from_value(json!({
            "results": [], "mode": "hybrid", "indexed": 3, "passages": 3, "pending": 1, "unread": 1,
            "near_misses": [{ "path": "n.md", "title": "N", "score": 0.1 }],
        }))
        .unwrap();
        hits.results = results;
        hits
    }

    pub(in crate::search) fn merged(results: Vec<Vec<Hit>>, query: &Query) -> SearchAnswer {
        let vaults: Vec<PathBuf> = (0..results.len()).map(|n| format!("/v{n}").into()).collect();
        SearchAnswer::new("x".into(), query, results.into_iter().map(hits).map(Some).collect(), &vaults)
    }

    fn paths(answer: &SearchAnswer) -> Vec<String> {
        answer.results.iter().map(SearchResult::shown_path).collect()
    }

    #[test]
    fn several_vaults_are_one_answer() {
        let found = || vec![vec![hit("a.md", 0.9), hit("b.md", 0.4)], vec![hit("c.md", 0.9), hit("d.md", 0.5)]];
        let query = Query::literal("x").limit(3);
        let answer = merged(found(), &query);
        assert_eq!(paths(&answer), ["/v0/a.md", "/v1/c.md", "/v1/d.md"]);
        assert_eq!((answer.indexed, answer.pending, answer.unread), (6, 4, 2));
        assert_eq!((answer.vault, answer.vaults.len(), answer.near_misses.len()), (None, 2, 0));
        assert_eq!(merged(vec![vec![]], &query).near_misses.len(), 1);

        // As a reranker may have scored it.
        let mut named = hit("e.md", 0.2);
        named.why.name = Some(NameMatch::Equal);
        let with_named = merged(vec![vec![hit("a.md", 0.9)], vec![named, hit("d.md", 0.5)]], &query.clone().limit(2));
        assert_eq!(paths(&with_named), ["/v1/e.md", "/v0/a.md"]);

        // A vault in another one.
        let nested = |grouping| {
            let query = query.clone().grouping(grouping);
            let mut second = hit("sub/a.md", 0.3);
            second.start_line = 40;
            let results = vec![vec![hit("sub/a.md", 0.4), second], vec![hit("a.md", 0.5)]];
            let vaults = ["/v0".into(), "/v0/sub".into()];
            paths(&SearchAnswer::new("x".into(), &query, results.into_iter().map(hits).map(Some).collect(), &vaults))
        };
        assert_eq!(nested(Grouping::BestPassage), ["/v0/sub/a.md"]);
        assert_eq!(nested(Grouping::Passages), ["/v0/sub/a.md"; 2]);

        let mut hits = found();
        hits[1][1].modified = "2026-02-02T03:04:05Z".parse().unwrap();
        assert_eq!(paths(&merged(hits.clone(), &query.clone().sort(Sort::Path))), ["/v0/a.md", "/v0/b.md", "/v1/c.md"]);
        assert_eq!(paths(&merged(hits, &query.sort(Sort::Modified))), ["/v1/d.md", "/v0/a.md", "/v0/b.md"]);
    }

    #[test]
    fn folders_in_the_order_of_their_best() {
        let query = Query::literal("x");
        let hits = ["b/x.md", "top.md", "a/y.md", "b/z.md", "b/c/w.md"];
        let hits: Vec<Hit> = hits.iter().zip([0.9, 0.8, 0.7, 0.6, 0.5]).map(|(path, score)| hit(path, score)).collect();
        let mut answer = merged(vec![hits.clone()], &query);
        answer.group_by_folder();
        assert_eq!(paths(&answer), ["b/x.md", "b/z.md", "top.md", "a/y.md", "b/c/w.md"]);
        let folders: Vec<_> = answer.results.iter().filter_map(SearchResult::shown_folder).collect();
        assert_eq!(folders, ["b/", "b/", "./", "a/", "b/c/"]);
        let mut several = merged(vec![hits.clone(), hits], &query);
        several.group_by_folder();
        let folders: Vec<_> = several.results.iter().filter_map(SearchResult::shown_folder).collect();
        assert_eq!(folders[..5], ["/v0/b/", "/v0/b/", "/v1/b/", "/v1/b/", "/v0/"]);
    }

    #[test]
    fn the_json_of_an_answer() {
        let mut hit = hit("a.md", 0.5);
        hit.title = "A".into();
        hit.headings = vec!["A".into(), "Part".into()];
        hit.text = "words".into();
        hit.why.rerank = serde_json::from_value(json!({ "rank": 7, "score": 0.4375 })).unwrap();
        let json = serde_json::to_string(&merged(vec![vec![hit]], &Query::literal("x"))).unwrap();
        assert_eq!(
            json,
            r#"{"query":"x","mode":"hybrid","vault":"/v0","indexed":3,"pending":2,"took_ms":0,"results":[{"path":"a.md","#
                .to_string()
                + r#""title":"A","headings":["A","Part"],"line":9,"start_line":7,"end_line":9,"score":0.5,"text":"words","#
                + r#""tags":["garden"],"modified":"2026-01-02T03:04:05Z","why":{"semantic":0.5,"title":null,"#
                + r#""lexical":0.25,"terms":["soil"],"weights":[0.75,0.25],"rerank":{"rank":7,"score":0.4375}}}]}"#
        );
    }
}
