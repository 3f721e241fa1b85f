//! Records that `--json` and `--jsonl` print, in addition to types of the library.
//!
//! Fields are only ever added, because scripts rely on them.

use schemars::JsonSchema;
use serde::Serialize;

use vault_index::{CheckReport, ModelInfo, Report, ResolvedLink};

/// An event of a watcher.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(tag = "event", rename_all = "kebab-case")]
pub(super) enum WatchRecord {
    /// The watcher has started to follow the vault.
    Started {
        /// The vault's folder.
        vault: String,
    },
    /// Changes were synced.
    Synced {
        /// The report of the sync.
        #[serde(flatten)]
        report: Box<Report>,
    },
    /// A notice.
    Notice {
        /// Its text.
        message: String,
    },
    /// The vault's folder no longer exists; the index is kept.
    VaultGone,
    /// The vault's folder exists again.
    VaultBack,
    /// The watcher has ended; everything is committed.
    Ended,
}

/// The result of a check.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct CheckRecord {
    /// Whether the index is sound and now matches the vault.
    pub sound: bool,
    #[serde(flatten)]
    pub report: CheckReport,
}

impl From<CheckReport> for CheckRecord {
    fn from(report: CheckReport) -> Self {
        Self { sound: report.is_sound(), report }
    }
}

/// An embedding model.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct ModelRecord {
    #[serde(flatten)]
    pub model: ModelInfo,
    /// Whether the vault's index uses it.
    pub in_index: bool,
}

impl ModelRecord {
    /// Creates the record; `has` is the model of the index.
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
    /// Its path in the vault.
    pub path: String,
}

/// The resolution of a link.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct ResolvedRecord {
    /// The link.
    pub link: String,
    /// The note that contains the link, if it was given.
    pub from: Option<String>,
    /// The file that the link leads to; null if it does not exist.
    pub target: Option<String>,
    /// The line of the heading or block that its subpath names.
    pub line: Option<u32>,
    /// Whether its subpath names a heading or block that the target does not have.
    pub subpath_missing: bool,
    /// The rule that decided, in one word; for example, `exact-path`.
    pub rule: &'static str,
    /// The rule in a sentence.
    pub because: String,
    /// All files with the name, in the order in which the rules prefer them.
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
