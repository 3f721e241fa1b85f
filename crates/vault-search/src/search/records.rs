//! What `--json` and `--jsonl` print beside the library's own types. Fields are only ever added: scripts rely on them.

use schemars::JsonSchema;
use serde::Serialize;

use vault_index::{CheckReport, ModelInfo, Report, ResolvedLink};

/// Something that happened while watching.
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
        report: Box<Report>,
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

/// What a check found.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct CheckRecord {
    /// Whether the index is sound and equal to the vault now.
    pub sound: bool,
    #[serde(flatten)]
    pub report: CheckReport,
}

impl From<CheckReport> for CheckRecord {
    fn from(report: CheckReport) -> Self {
        Self { sound: report.is_sound(), report }
    }
}

/// A model that can be used.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct ModelRecord {
    #[serde(flatten)]
    pub model: ModelInfo,
    /// Whether the vault's index has its vectors.
    pub in_index: bool,
}

impl ModelRecord {
    /// `has`: the model of the index.
    pub(super) fn new(model: ModelInfo, has: Option<&str>) -> Self {
        let family = model.name.trim_end_matches("NAME").trim_end_matches("DIR");
        let is_family = family.len() < model.name.len();
        let in_index = has.is_some_and(|has| has == model.name || (is_family && has.starts_with(family)));
        Self { model, in_index }
    }
}

/// A file of the vault.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct PathRecord {
    /// Where it lies.
    pub path: String,
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
    pub(super) fn new(link: &str, from: Option<&str>, resolved: &ResolvedLink) -> Self {
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

    #[test]
    fn the_model_of_the_index_is_marked() {
        let marked = |has: &str| {
            let all = vault_index::ModelName::all().into_iter().map(|model| ModelRecord::new(model, Some(has)));
            all.filter(|record| record.in_index).map(|record| record.model.name).collect::<Vec<_>>()
        };
        assert_eq!(marked("minilm"), ["minilm"]);
        assert_eq!(marked("ollama:nomic-embed-text"), ["ollama:NAME"]);
        assert!(marked("hashed").is_empty());
    }
}
