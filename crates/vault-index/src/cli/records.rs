//! What `--json` and `--jsonl` print: the records that scripts rely on. Their fields only ever grow.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Serialize;

use crate::embed::{ModelInfo, ModelPlace, ModelState};
use crate::{CheckReport, Hit, LinkRow, NoteWarning, Report, Resolved, Skipped, Status, TagCount, UnresolvedName, Why};

/// The answer to a search.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct SearchAnswer {
    /// What was asked, as it was typed.
    pub query: String,
    /// The note that similar ones were asked for, if any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub like: Option<String>,
    /// How passages were ranked: `hybrid`, `semantic` or `lexical`.
    pub mode: &'static str,
    /// The reranker that gave the scores, if one was asked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reranker: Option<String>,
    /// The vault's folder; null for a search over several.
    pub vault: Option<String>,
    /// The folders of a search over several vaults.
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
    /// Best first.
    pub results: Vec<SearchResult>,
}

/// One result of a search.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct SearchResult {
    /// The folder of the vault it lies in; only in a search over several.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub vault: Option<String>,
    /// The note, relative to its vault.
    pub path: String,
    /// The note's title.
    pub title: String,
    /// The headings the passage is under, outermost first.
    pub headings: Vec<String>,
    /// The passage's first line, from 1.
    pub line: u32,
    /// Its last line.
    pub end_line: u32,
    /// 0 to 1; the same for this passage and query whatever else matches. The reranker's, where one was asked.
    pub score: f32,
    /// The passage.
    pub text: String,
    /// The note's tags, without `#`.
    pub tags: Vec<String>,
    /// When the note was last changed, RFC 3339.
    pub modified: String,
    /// What the score is made of.
    pub why: WhyRecord,
}

/// What a score is made of.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct WhyRecord {
    /// Cosine of passage and query, -1 to 1; null where words alone ranked.
    pub semantic: Option<f32>,
    /// Cosine of the file's name and the query, where it was weighed in.
    pub title: Option<f32>,
    /// Share of the best possible BM25 score, 0 to 1.
    pub lexical: f32,
    /// The query's terms that were found, as they are indexed.
    pub terms: Vec<String>,
    /// What `semantic` and `lexical` were multiplied by.
    pub weights: (f32, f32),
    /// What the passage had before a reranker gave it its score.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rerank: Option<RerankRecord>,
}

/// A passage in the ranking that its reranker was given.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct RerankRecord {
    /// Its place among the passages that were reranked, from 1.
    pub rank: usize,
    /// Its score there: `semantic` and `lexical` by their weights.
    pub score: f32,
}

impl SearchResult {
    pub(super) fn new(hit: Hit, vault: Option<String>) -> Self {
        let Why { semantic, title, lexical, terms, weights, rerank } = hit.why;
        let rerank = rerank.map(|before| RerankRecord { rank: before.rank, score: before.score });
        Self {
            vault,
            path: hit.path.to_string(),
            title: hit.title,
            headings: hit.headings,
            line: hit.line,
            end_line: hit.end_line,
            score: hit.score,
            text: hit.text,
            tags: hit.tags,
            modified: hit.modified.to_string(),
            why: WhyRecord { semantic, title, lexical, terms, weights, rerank },
        }
    }
}

/// What a sync did, in numbers of notes unless stated.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct SyncRecord {
    /// New in the index.
    pub added: usize,
    /// With other content than before.
    pub changed: usize,
    /// Renamed or moved with the same content.
    pub renamed: usize,
    /// Gone.
    pub removed: usize,
    /// Already up to date.
    pub unchanged: usize,
    /// Texts that went through the model.
    pub embedded: usize,
    /// Passages of touched notes whose vectors were there already.
    pub reused: usize,
    /// Passages and titles still without a vector, and notes that are not read yet.
    pub pending: usize,
    /// Notes that are not indexed.
    pub skipped: Vec<SkippedRecord>,
    /// Oddities of notes that are indexed all the same.
    pub warnings: Vec<WarningRecord>,
    /// Milliseconds of each stage.
    pub stages_ms: BTreeMap<String, u64>,
    /// Milliseconds of all of it.
    pub took_ms: u64,
}

impl From<Report> for SyncRecord {
    fn from(report: Report) -> Self {
        Self {
            added: report.added,
            changed: report.changed,
            renamed: report.renamed,
            removed: report.removed,
            unchanged: report.unchanged,
            embedded: report.embedded,
            reused: report.reused,
            pending: report.pending + report.unread,
            skipped: report.skipped.into_iter().map(Into::into).collect(),
            warnings: report.warnings.into_iter().map(Into::into).collect(),
            stages_ms: report.stages_ms,
            took_ms: report.took_ms,
        }
    }
}

/// A note that is not indexed.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct SkippedRecord {
    /// Where it lies.
    pub path: String,
    /// Why.
    pub reason: String,
}

impl From<Skipped> for SkippedRecord {
    fn from(skipped: Skipped) -> Self {
        Self { path: skipped.path, reason: skipped.reason }
    }
}

/// Something odd in a note.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct WarningRecord {
    /// Where the note lies.
    pub path: String,
    /// What it is about: `frontmatter`, `encoding`, `too-large` and so on.
    pub kind: String,
    /// The line, from 1, where it has one.
    pub line: Option<u32>,
    /// What is odd, and what was done about it.
    pub message: String,
}

impl From<NoteWarning> for WarningRecord {
    fn from(NoteWarning { path, warning }: NoteWarning) -> Self {
        // The library's own spelling, so that there is one list of kinds.
        let kind = serde_json::to_value(warning.kind).ok();
        let kind = kind.as_ref().and_then(serde_json::Value::as_str).unwrap_or("other").to_string();
        Self { path, kind, line: warning.line, message: warning.message }
    }
}

/// Something that happened while watching.
// Without the feature only its schema is printed.
#[cfg_attr(not(feature = "watch"), allow(dead_code))]
#[derive(Debug, Serialize, JsonSchema)]
#[serde(tag = "event", rename_all = "kebab-case")]
pub(super) enum WatchRecord {
    /// The watcher follows the vault.
    Started {
        /// The vault's folder.
        vault: String,
    },
    /// Changes were taken over.
    Synced {
        /// What was done.
        #[serde(flatten)]
        report: SyncRecord,
    },
    /// Something to know.
    Notice {
        /// What.
        message: String,
    },
    /// The vault's folder is not there any more; the index is kept.
    VaultGone,
    /// It is there again.
    VaultBack,
    /// The watcher has ended; everything is committed.
    Ended,
}

/// What an index holds.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct StatusRecord {
    /// The vault's folder.
    pub vault: String,
    /// The index file.
    pub index: String,
    /// Bytes of the index file and its log.
    pub index_bytes: u64,
    /// Notes, canvases included.
    pub notes: usize,
    /// Other files that links can lead to.
    pub attachments: usize,
    /// Passages.
    pub chunks: usize,
    /// Passages and titles without a vector, and notes that are not read yet.
    pub pending: usize,
    /// Links and embeds.
    pub links: usize,
    /// Those that lead nowhere yet.
    pub unresolved: usize,
    /// Different tags.
    pub tags: usize,
    /// The model whose vectors the index holds.
    pub model: String,
    /// The model that a rebuild under way will put in its place.
    pub rebuilding_to: Option<String>,
    /// The length of its vectors.
    pub dimensions: usize,
    /// Vectors held, those kept for reuse included.
    pub vectors: usize,
    /// When the last sync ended, RFC 3339.
    pub last_sync: Option<String>,
    /// Who watches the vault now.
    pub watcher: Option<String>,
    /// Share of passages in which most words are unknown to the model, 0 to 1.
    pub unknown_share: f32,
    /// What the reader should know.
    pub advice: Vec<String>,
    /// Notes that are not indexed.
    pub skipped: Vec<SkippedRecord>,
    /// Oddities of notes.
    pub warnings: Vec<WarningRecord>,
}

impl From<Status> for StatusRecord {
    fn from(status: Status) -> Self {
        Self {
            vault: status.vault.to_string_lossy().into_owned(),
            index: status.index.to_string_lossy().into_owned(),
            index_bytes: status.index_bytes,
            notes: status.notes,
            attachments: status.attachments,
            chunks: status.chunks,
            pending: status.pending + status.unread,
            links: status.links,
            unresolved: status.unresolved,
            tags: status.tags,
            model: status.model,
            rebuilding_to: status.rebuilding_to,
            dimensions: status.dimensions,
            vectors: status.vectors,
            last_sync: status.last_sync.map(|moment| moment.to_string()),
            watcher: status.watcher,
            unknown_share: status.unknown_share,
            advice: status.advice,
            skipped: status.skipped.into_iter().map(Into::into).collect(),
            warnings: status.warnings.into_iter().map(Into::into).collect(),
        }
    }
}

/// What a check found.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct CheckRecord {
    /// Whether the index is sound and equal to the vault now.
    pub sound: bool,
    /// One line a fault that was found.
    pub faults: Vec<String>,
    /// One line a note or folder that could not be read, so that it was not compared.
    pub unreadable: Vec<String>,
    /// Notes that were read and compared.
    pub notes: usize,
    /// Passages and titles without a vector yet, which is no fault.
    pub pending: usize,
    /// Whether the faults were mended.
    pub repaired: bool,
    /// Milliseconds.
    pub took_ms: u64,
}

impl From<CheckReport> for CheckRecord {
    fn from(report: CheckReport) -> Self {
        let sound = report.is_sound();
        let CheckReport { faults, unreadable, notes, pending, repaired, took_ms } = report;
        Self { sound, faults, unreadable, notes, pending, repaired, took_ms }
    }
}

/// A model that can be used.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct ModelRecord {
    /// What `--model` takes; capitals stand for what you fill in.
    pub name: String,
    /// The length of its vectors, where it is known without asking.
    pub dimensions: Option<usize>,
    /// Whether notes stay on this machine, whatever its address is.
    pub local: bool,
    /// The feature that this program lacks to use it; null where it can be used.
    pub needs_feature: Option<String>,
    /// What else to know.
    pub note: String,
    /// Whether the vault's index has its vectors.
    pub in_index: bool,
}

impl ModelRecord {
    /// `has`: the model of the index.
    pub(super) fn new(model: ModelInfo, has: Option<&str>) -> Self {
        let family = model.name.trim_end_matches("NAME").trim_end_matches("DIR");
        let is_family = family.len() < model.name.len();
        Self {
            in_index: has.is_some_and(|has| has == model.name || (is_family && has.starts_with(family))),
            dimensions: model.dimensions,
            local: model.place == ModelPlace::Local,
            needs_feature: match model.state {
                ModelState::NeedsFeature(feature) => Some(feature.to_string()),
                _ => None,
            },
            note: model.note,
            name: model.name,
        }
    }
}

/// One link of the vault.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct LinkRecord {
    /// The note it stands in.
    pub source: String,
    /// Its line, from 1.
    pub line: u32,
    /// As written.
    pub raw: String,
    /// `wikilink`, `markdown` or `embed`.
    pub kind: &'static str,
    /// Its path as written, decoded, without subpath.
    pub path: String,
    /// What follows `#`.
    pub subpath: Option<String>,
    /// Where it leads; null while there is no such file.
    pub target: Option<String>,
    /// The line of text it stands in.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// How many steps away, for walks.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub depth: Option<usize>,
}

impl From<LinkRow> for LinkRecord {
    fn from(row: LinkRow) -> Self {
        Self {
            source: row.source.to_string(),
            line: row.line,
            raw: row.raw,
            kind: match row.kind {
                crate::LinkKind::Wikilink => "wikilink",
                crate::LinkKind::Markdown => "markdown",
                crate::LinkKind::Embed => "embed",
            },
            path: row.path,
            subpath: row.subpath,
            target: row.target.map(|target| target.to_string()),
            text: row.text,
            depth: row.depth,
        }
    }
}

/// A file of the vault.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct PathRecord {
    /// Where it lies.
    pub path: String,
}

/// A name that links lead to and no file bears.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct UnresolvedRecord {
    /// The name, as first written.
    pub name: String,
    /// How many links lead to it.
    pub count: usize,
    /// The notes they stand in.
    pub sources: Vec<String>,
}

impl From<UnresolvedName> for UnresolvedRecord {
    fn from(name: UnresolvedName) -> Self {
        let sources = name.sources.iter().map(ToString::to_string).collect();
        Self { name: name.name, count: name.count, sources }
    }
}

/// A tag of the vault.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct TagRecord {
    /// As first seen, without `#`.
    pub tag: String,
    /// Notes that bear it itself.
    pub notes: usize,
    /// Notes that bear it or one nested below it.
    pub nested: usize,
}

impl From<TagCount> for TagRecord {
    fn from(count: TagCount) -> Self {
        Self { tag: count.tag, notes: count.notes, nested: count.nested }
    }
}

/// Where a link leads.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct ResolvedRecord {
    /// The link that was asked for.
    pub link: String,
    /// The note it was taken to stand in.
    pub from: Option<String>,
    /// The file; null when there is none.
    pub target: Option<String>,
    /// The line of the heading or block that its subpath names.
    pub line: Option<u32>,
    /// Whether it has a subpath that names nothing in the target.
    pub subpath_missing: bool,
    /// The rule that decided, in one word: `exact-path` and so on.
    pub rule: &'static str,
    /// The same in a sentence.
    pub because: String,
    /// All files that bear the name, in the order the rules prefer them.
    pub candidates: Vec<String>,
}

impl ResolvedRecord {
    pub(super) fn new(link: &str, from: Option<&str>, resolved: &Resolved) -> Self {
        Self {
            link: link.to_string(),
            from: from.map(str::to_string),
            target: resolved.target.as_ref().map(ToString::to_string),
            line: resolved.line,
            subpath_missing: resolved.subpath_missing,
            rule: resolved.rule.name(),
            because: resolved.rule.to_string(),
            candidates: resolved.candidates.iter().map(ToString::to_string).collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keys<T: Serialize>(value: &T) -> Vec<String> {
        let serde_json::Value::Object(map) = serde_json::to_value(value).unwrap() else { panic!("not an object") };
        map.keys().cloned().collect()
    }

    #[test]
    fn a_sync_report_has_the_fields_that_scripts_read() {
        let mut expected = [
            "added",
            "changed",
            "renamed",
            "removed",
            "unchanged",
            "embedded",
            "reused",
            "pending",
            "skipped",
            "warnings",
            "stages_ms",
            "took_ms",
        ];
        expected.sort_unstable();
        assert_eq!(keys(&SyncRecord::from(Report::default())), expected);
    }

    #[test]
    fn warnings_bear_the_librarys_kind() {
        let warning = crate::Warning::new(crate::WarningKind::TooLarge, "m").on_line(2);
        let record = WarningRecord::from(NoteWarning { path: "a.md".into(), warning });
        let json = serde_json::to_value(record).unwrap();
        assert_eq!(json, serde_json::json!({"path": "a.md", "kind": "too-large", "line": 2, "message": "m"}));
    }

    #[test]
    fn the_model_of_the_index_is_marked() {
        let marked = |has: &str| {
            let all = crate::ModelName::all().into_iter().map(|model| ModelRecord::new(model, Some(has)));
            all.filter(|record| record.in_index).map(|record| record.name).collect::<Vec<_>>()
        };
        assert_eq!(marked("minilm"), ["minilm"]);
        assert_eq!(marked("ollama:nomic-embed-text"), ["ollama:NAME"]);
        assert!(marked("hashed").is_empty());
    }

    #[test]
    fn an_unresolved_link_has_a_null_target() {
        let row = LinkRow {
            source: crate::VaultPath::new("a.md").unwrap(),
            line: 3,
            raw: "[[x#y]]".into(),
            kind: crate::LinkKind::Wikilink,
            path: "x".into(),
            subpath: Some("y".into()),
            target: None,
            text: None,
            depth: None,
        };
        let json = serde_json::to_string(&LinkRecord::from(row)).unwrap();
        let expected =
            r#"{"source":"a.md","line":3,"raw":"[[x#y]]","kind":"wikilink","path":"x","subpath":"y","target":null}"#;
        assert_eq!(json, expected);
    }
}
