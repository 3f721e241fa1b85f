//! `vault-index sync`, `rebuild` and `stop`: bring the index up to date, and report the result.

use std::collections::BTreeMap;
use std::io;
use std::time::Duration;

#[cfg(feature = "postgres")]
use vault_index::{Error, Index};
use vault_index::{ErrorKind, NoteWarning, Report, Result, SkippedNote, SyncOptions, WarningKind};

use crate::{CliResult, Failure, Out, Outcome, counted, counted_as, note, sanitize_line};

#[cfg(feature = "postgres")]
use super::consent;
#[cfg(feature = "postgres")]
use super::index_args::CopyArgs;
use super::index_args::{RebuildArgs, ReportArgs, StopArgs, SyncArgs};
use super::models;
use super::open;
use super::progress::with_progress;
use super::settings::{IndexSettings, IndexedVaultArgs};

/// Up to this many warnings, or skipped files, are all listed.
const NAMED: usize = 3;

/// If there are more, this many of each kind are listed.
const EXAMPLES: usize = 2;

const KEPT: &str = "what has been indexed is kept; run it again to resume";

pub(super) fn sync(vault_args: &IndexedVaultArgs, args: &SyncArgs, out: &mut Out) -> CliResult {
    if args.output.json.schema {
        return out.schema::<Report>();
    }
    let settings = IndexSettings::load(vault_args)?;
    let vault = settings.only_vault()?;
    let index = match args.no_vectors {
        true => open::to_read(&settings, vault)?,
        false => open::to_fill(&settings, vault, args.yes)?,
    };
    let mut options = SyncOptions::new();
    (options.vectors, options.read_all) = (!args.no_vectors, args.full);
    run(options, |options| index.sync_with(options), &args.output, out)
}

pub(super) fn rebuild(vault_args: &IndexedVaultArgs, args: &RebuildArgs, out: &mut Out) -> CliResult {
    if args.output.json.schema {
        return out.schema::<Report>();
    }
    let settings = IndexSettings::load(vault_args)?;
    let index = open::to_rebuild(&settings, settings.only_vault()?, args.yes)?;
    if let Some((model, _)) = index.model_of_rebuild()? {
        models::add_missing(&model, args.yes)?;
    }
    // The status of a damaged index may be an error; then there is no notice.
    if let Some((has, wants)) = index.stale_model()?
        && let Ok(status) = index.status()
    {
        let chunks = counted(status.chunks, "passage");
        note(&format!("{chunks} with vectors of {has}: embedded again by {wants}"));
    }
    run(SyncOptions::default(), |options| index.rebuild(options), &args.output, out)
}

/// `vault-index push` and `pull`: copy the index between a file and a database.
#[cfg(feature = "postgres")]
pub(super) fn copy(vault_args: &IndexedVaultArgs, args: &CopyArgs, is_push: bool, out: &mut Out) -> CliResult {
    if args.output.json.schema {
        return out.schema::<Report>();
    }
    let settings = IndexSettings::load(vault_args)?;
    let vault = settings.only_vault()?;
    let command = if is_push { "push" } else { "pull" };
    if settings.database_of(vault).is_none() {
        return Err(Error::new(ErrorKind::Query, format!("vault-index {command} needs a database"))
            .with_remedy("name it with --index postgres://user@host/database")
            .into());
    }
    if let Some(file) = &args.file {
        crate::settings::check_index_file(file, 1)?;
    }
    let mut of_file = settings.options(vault);
    (of_file.database, of_file.index_file) = (None, args.file.clone());
    let (file, database) = (Index::open(vault, of_file)?, open::to_read(&settings, vault)?);
    let (source, target) = if is_push { (file, database) } else { (database, file) };
    // Texts that the source lacks are embedded.
    if let Some(model) = source.model_of_sync()? {
        consent::obtain(vault, &model, args.yes, command)?;
    }
    run(SyncOptions::default(), |options| target.copy_from(&source, options), &args.output, out)
}

/// How long to wait for the background process to end.
const STOPPING: Duration = Duration::from_secs(10);

pub(super) fn stop(vault_args: &IndexedVaultArgs, _: &StopArgs, out: &mut Out) -> CliResult {
    let settings = IndexSettings::load(vault_args)?;
    settings.needs_file("vault-index stop")?;
    let was_at_work = open::to_read(&settings, settings.only_vault()?)?.stop_background(STOPPING)?;
    out.line(if was_at_work {
        "stopped; what was embedded is kept"
    } else {
        "no process is embedding in the background"
    })?;
    Ok(Outcome::Done)
}

fn run(
    options: SyncOptions<'_>,
    work: impl FnOnce(&SyncOptions<'_>) -> Result<Report>,
    output: &ReportArgs,
    out: &mut Out,
) -> CliResult {
    let (done, is_cancelled) = with_progress(options, work);
    let report = match done {
        Err(error) if error.kind() == ErrorKind::Cancelled => return Err(Failure::Interrupted(KEPT.into())),
        done => done?,
    };
    if output.json.json {
        out.json(&pending_summed(report))?;
    } else {
        summary(&report, output.warnings, out)?;
    }
    out.flush()?;
    if is_cancelled { Err(Failure::Interrupted(KEPT.into())) } else { Ok(Outcome::Done) }
}

/// Returns a report as it is printed as JSON, where notes that are not read yet count as pending.
pub(super) fn pending_summed(mut report: Report) -> Report {
    report.pending += report.unread;
    report
}

/// Prints the summary of a sync: a paragraph, then warnings and skipped files. If nothing has changed and none of them
/// is new, they are only counted.
fn summary(report: &Report, all: bool, out: &mut Out) -> io::Result<()> {
    let old = report.warnings.len() + report.skipped.len();
    let mut text = paragraph(report);
    if report.is_unchanged() && !report.has_new_findings && !all && old > 0 {
        let warnings = counted(report.warnings.len(), "warning");
        let skipped = counted_as(report.skipped.len(), "file is", "files are");
        text.push_str(&format!("; as before {warnings}, {skipped} not indexed: vault-index status"));
        return out.line(&text);
    }
    out.line(&text)?;
    findings(&report.warnings, &report.skipped, all, out)
}

/// Prints warnings and skipped files: all of them, or examples of each kind and their number.
pub(super) fn findings(warnings: &[NoteWarning], skipped: &[SkippedNote], all: bool, out: &mut Out) -> io::Result<()> {
    let warning = |NoteWarning { path, warning, .. }: &NoteWarning| {
        let line = warning.line.map_or_else(String::new, |line| format!(":{line}"));
        (json_name(&warning.kind), format!("{path}{line}: {}", warning.message))
    };
    let warnings: Vec<(String, String)> = warnings.iter().map(warning).collect();
    let skipped = skipped.iter().map(|skipped| (String::new(), format!("{}: {}", skipped.path, skipped.reason)));
    let skipped: Vec<(String, String)> = skipped.collect();
    let mut is_cut = false;
    for (label, texts) in [("warning", warnings), ("skipped", skipped)] {
        if all || texts.len() <= NAMED {
            labelled(label, &texts.into_iter().map(|(_, text)| text).collect::<Vec<_>>(), out)?;
            continue;
        }
        is_cut = true;
        let mut kinds: BTreeMap<String, Vec<String>> = BTreeMap::new();
        texts.into_iter().for_each(|(kind, text)| kinds.entry(kind).or_default().push(text));
        for (kind, texts) in kinds {
            let of_kind = if kind.is_empty() { label.to_string() } else { format!("{label} ({kind})") };
            labelled(&of_kind, &texts[..texts.len().min(EXAMPLES)], out)?;
            if texts.len() > EXAMPLES {
                out.line(&format!("  … and {} more of this kind", texts.len() - EXAMPLES))?;
            }
        }
    }
    if is_cut { out.line("--warnings lists all") } else { Ok(()) }
}

/// Returns the name of a kind in JSON.
fn json_name(kind: &WarningKind) -> String {
    serde_json::to_string(kind).unwrap_or_default().trim_matches('"').to_string()
}

/// Prints a line for each text, after a label.
pub(super) fn labelled(kind: &str, texts: &[String], out: &mut Out) -> io::Result<()> {
    let kind = out.paint.bad(kind);
    texts.iter().try_for_each(|text| out.line(&format!("{kind}: {}", sanitize_line(text))))
}

/// Returns the summary of a report in one paragraph: of a sync, or of a batch of changes from the watcher.
pub(super) fn paragraph(report: &Report) -> String {
    let notes = report.added + report.changed + report.renamed + report.unchanged;
    let count = |n: usize, what: &str| (n > 0).then(|| format!("{n} {what}"));
    let counts = |n: usize, one: &str, what: &str| (n > 0).then(|| format!("{} {what}", counted(n, one)));
    let changes: Vec<String> = [
        count(report.added, "added"),
        count(report.changed, "changed"),
        count(report.renamed, "renamed"),
        count(report.removed, "removed"),
    ]
    .into_iter()
    .flatten()
    .collect();
    let texts: Vec<String> = [
        counts(report.embedded, "passage", "embedded"),
        counts(report.reused, "vector", "reused"),
        count(report.pending, "still to embed"),
        counts(report.unread, "note", "still to read"),
    ]
    .into_iter()
    .flatten()
    .collect();
    let changes = if changes.is_empty() { "nothing changed".to_string() } else { changes.join(", ") };
    let mut text = format!("{}: {changes}", counted(notes, "note"));
    if !texts.is_empty() {
        text.push_str(&format!("; {}", texts.join(", ")));
    }
    text.push_str(&format!(" ({}", duration(report.took_ms)));
    let stages = ["walk", "read", "text", "links", "vectors"];
    let known = stages.iter().filter_map(|name| report.stages_ms.get(*name).map(|ms| (*name, *ms)));
    let others = report.stages_ms.iter().filter(|(name, _)| !stages.contains(&name.as_str()));
    let times: Vec<String> = known
        .chain(others.map(|(name, ms)| (name.as_str(), *ms)))
        .filter(|(_, ms)| *ms > 0)
        .map(|(name, ms)| format!("{name} {}", duration(ms)))
        .collect();
    if !times.is_empty() {
        text.push_str(&format!(": {}", times.join(", ")));
    }
    text.push(')');
    text
}

/// `40 ms`, `4.0 s`, `3 min 5 s`.
pub(super) fn duration(ms: u64) -> String {
    match ms {
        0..1_000 => format!("{ms} ms"),
        1_000..60_000 => format!("{}.{} s", ms / 1000, ms % 1000 / 100),
        _ => format!("{} min {} s", ms / 60_000, ms % 60_000 / 1000),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::CapturedOutput;
    use vault_index::Warning;

    #[test]
    fn durations() {
        for (ms, expected) in
            [(0, "0 ms"), (999, "999 ms"), (1_050, "1.0 s"), (59_999, "59.9 s"), (185_000, "3 min 5 s")]
        {
            assert_eq!(duration(ms), expected);
        }
    }

    #[test]
    fn paragraphs() {
        let mut nothing = Report::default();
        (nothing.unchanged, nothing.took_ms) = (66, 12);
        assert_eq!(paragraph(&nothing), "66 notes: nothing changed (12 ms)");
        let mut one = Report::default();
        (one.added, one.embedded, one.took_ms) = (1, 1, 12);
        assert_eq!(paragraph(&one), "1 note: 1 added; 1 passage embedded (12 ms)");
        let mut much = Report::default();
        (much.added, much.removed, much.unchanged) = (2, 1, 3);
        (much.embedded, much.pending, much.took_ms) = (9, 4, 4_100);
        much.stages_ms = [("vectors".to_string(), 4000), ("walk".to_string(), 3), ("links".to_string(), 0)].into();
        let expected =
            "5 notes: 2 added, 1 removed; 9 passages embedded, 4 still to embed (4.1 s: walk 3 ms, vectors 4.0 s)";
        assert_eq!(paragraph(&much), expected);
    }

    fn shown(report: &Report, all: bool) -> Vec<String> {
        let captured = CapturedOutput::default();
        summary(report, all, &mut Out::to(captured.clone())).unwrap();
        captured.text().lines().map(str::to_string).collect()
    }

    #[test]
    fn many_warnings_are_counted() {
        let warning = |n: usize| {
            let kind = if n == 7 { WarningKind::Encoding } else { WarningKind::Frontmatter };
            let warning = Warning::new(kind, "broken\u{1b}[0m YAML").on_line(2);
            let mut json = serde_json::to_value(warning).unwrap();
            json["path"] = format!("{n}.md").into();
            serde_json::from_value::<NoteWarning>(json).unwrap()
        };
        let skipped = |n: usize| {
            let json = serde_json::json!({ "path": format!("{n}.png.md"), "reason": "too large" });
            serde_json::from_value::<SkippedNote>(json).unwrap()
        };
        let mut many = Report::default();
        many.has_new_findings = true;
        many.warnings = (0..1000).map(warning).collect();
        many.skipped = (0..3).map(skipped).collect();
        let lines = shown(&many, false);
        let expected = [
            "warning (encoding): 7.md:2: broken␛[0m YAML",
            "warning (frontmatter): 0.md:2: broken␛[0m YAML",
            "warning (frontmatter): 1.md:2: broken␛[0m YAML",
            "  … and 997 more of this kind",
            "skipped: 0.png.md: too large",
            "skipped: 1.png.md: too large",
            "skipped: 2.png.md: too large",
            "--warnings lists all",
        ];
        assert_eq!(lines[1..], expected);
        assert_eq!(shown(&many, true).len(), 1004);
        // Old ones are not repeated.
        let mut unchanged = many;
        unchanged.has_new_findings = false;
        let expected =
            "0 notes: nothing changed (0 ms); as before 1000 warnings, 3 files are not indexed: vault-index status";
        assert_eq!(shown(&unchanged, false), [expected]);
        assert_eq!(shown(&unchanged, true).len(), 1004);
    }
}
