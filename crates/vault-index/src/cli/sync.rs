//! `vault-index sync` and `rebuild`: bring the index up to date, and say what was done.

use std::io;

use vault_cli::{CliResult, Failure, JsonArgs, Out, Outcome, counted, note, sanitize_line};

use super::index_args::{RebuildArgs, SyncArgs};
use super::open;
use super::progress::Bar;
use super::settings::{Settings, VaultArgs};
use crate::{ErrorKind, Index, Report, Result, SyncOptions};

/// Skipped notes and warnings that a summary names.
const NAMED: usize = 10;

const KEPT: &str = "what has been indexed is kept; run it again to resume";

pub(super) fn sync(vault_args: &VaultArgs, args: &SyncArgs, out: &mut Out) -> CliResult {
    if args.output.schema {
        return out.schema::<Report>();
    }
    let settings = Settings::load(vault_args)?;
    let vault = settings.only_vault()?;
    let index = match args.no_vectors {
        true => open::to_read(&settings, vault)?,
        false => open::to_fill(&settings, vault, args.yes)?,
    };
    let options = SyncOptions { vectors: !args.no_vectors, read_all: args.full, ..SyncOptions::default() };
    run(&index, Index::sync_with, options, &args.output, out)
}

pub(super) fn rebuild(vault_args: &VaultArgs, args: &RebuildArgs, out: &mut Out) -> CliResult {
    if args.output.schema {
        return out.schema::<Report>();
    }
    let settings = Settings::load(vault_args)?;
    let index = open::to_rebuild(&settings, settings.only_vault()?, args.yes)?;
    // A damaged index may not say how much there is to do.
    if let Some((has, wants)) = index.stale_model()?
        && let Ok(status) = index.status()
    {
        let chunks = counted(status.chunks, "passage");
        note(&format!("{chunks} with vectors of {has}: embedded again by {wants}"));
    }
    run(&index, Index::rebuild, SyncOptions::default(), &args.output, out)
}

fn run(
    index: &Index,
    work: impl Fn(&Index, &SyncOptions<'_>) -> Result<Report>,
    options: SyncOptions<'_>,
    output: &JsonArgs,
    out: &mut Out,
) -> CliResult {
    let listening = vault_cli::listen();
    let bar = Bar::new();
    let done = work(
        index,
        &SyncOptions { cancel: Some(listening.flag()), progress: Some(&|progress| bar.show(progress)), ..options },
    );
    drop(bar);
    let report = match done {
        Err(error) if error.kind() == ErrorKind::Cancelled => return Err(Failure::Interrupted(KEPT)),
        done => done?,
    };
    if output.json {
        out.json(&pending_summed(report))?;
    } else {
        summary(&report, out)?;
    }
    out.flush()?;
    if listening.is_cancelled() { Err(Failure::Interrupted(KEPT)) } else { Ok(Outcome::Done) }
}

/// A report as JSON has it: notes that are not read yet count as pending.
pub(super) fn pending_summed(report: Report) -> Report {
    Report { pending: report.pending + report.unread, ..report }
}

/// What was done: a paragraph, then oddities and what is not indexed.
pub(super) fn summary(report: &Report, out: &mut Out) -> io::Result<()> {
    out.line(&paragraph(report))?;
    let warnings = report.warnings.iter().map(|odd| {
        let line = odd.warning.line.map_or_else(String::new, |line| format!(":{line}"));
        ("warning", format!("{}{line}: {}", odd.path, odd.warning.message))
    });
    let skipped = report.skipped.iter().map(|skipped| ("skipped", format!("{}: {}", skipped.path, skipped.reason)));
    for list in [warnings.collect::<Vec<_>>(), skipped.collect()] {
        for (kind, text) in list.iter().take(NAMED) {
            let kind = out.paint.bad(kind);
            out.line(&format!("{kind}: {}", sanitize_line(text)))?;
        }
        if list.len() > NAMED {
            out.line(&format!("… and {} more: vault-index status", list.len() - NAMED))?;
        }
    }
    Ok(())
}

/// One line for a batch of changes, one paragraph for a sync.
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
    use crate::{NoteWarning, Skipped, Warning, WarningKind};
    use vault_cli::Captured;

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
        let nothing = Report { unchanged: 66, took_ms: 12, ..Report::default() };
        assert_eq!(paragraph(&nothing), "66 notes: nothing changed (12 ms)");
        let one = Report { added: 1, embedded: 1, took_ms: 12, ..Report::default() };
        assert_eq!(paragraph(&one), "1 note: 1 added; 1 passage embedded (12 ms)");
        let much = Report {
            added: 2,
            removed: 1,
            unchanged: 3,
            embedded: 9,
            pending: 4,
            stages_ms: [("vectors".to_string(), 4000), ("walk".to_string(), 3), ("links".to_string(), 0)].into(),
            took_ms: 4_100,
            ..Report::default()
        };
        let expected =
            "5 notes: 2 added, 1 removed; 9 passages embedded, 4 still to embed (4.1 s: walk 3 ms, vectors 4.0 s)";
        assert_eq!(paragraph(&much), expected);
    }

    #[test]
    fn a_summary_names_the_first_ten() {
        let warning = Warning::new(WarningKind::Frontmatter, "broken\u{1b}[0m YAML").on_line(2);
        let report = Report {
            skipped: (0..12).map(|n| Skipped { path: format!("{n}.md"), reason: "too large".into() }).collect(),
            warnings: vec![NoteWarning { path: "a.md".into(), warning }],
            ..Report::default()
        };
        let captured = Captured::default();
        summary(&report, &mut Out::to(captured.clone())).unwrap();
        let text = captured.text();
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines[1], "warning: a.md:2: broken␛[0m YAML");
        assert_eq!((lines[2], lines.len()), ("skipped: 0.md: too large", 13));
        assert_eq!(lines[12], "… and 2 more: vault-index status");
    }
}
