//! `vault-index status`, `check` and `models`: the content of the index, whether it is sound, and models for it.

use std::collections::BTreeSet;
use std::path::Path;

use vault_index::{BackgroundStatus, FailedText, ModelInfo, RerankerName, Status, SyncOptions};

use crate::{CliResult, Failure, ListArgs, Out, Outcome, bytes, columns, counted, counted_as, padded, sanitize_line};

use super::index_args::{CheckArgs, ReportArgs};
use super::open;
use super::progress::with_progress;
use super::records::{CheckRecord, ModelRecord};
use super::settings::{IndexSettings, IndexedVaultArgs};
use super::sync::{findings, labelled};

pub(super) fn status(vault_args: &IndexedVaultArgs, args: &ReportArgs, out: &mut Out) -> CliResult {
    if args.json.schema {
        return out.schema::<Status>();
    }
    let settings = IndexSettings::load(vault_args)?;
    let mut status = open::to_read(&settings, settings.only_vault()?)?.status()?;
    if args.json.json {
        status.pending += status.unread;
        out.json(&status)?;
        return Ok(Outcome::Done);
    }
    out.table(&rows(&status))?;
    labelled("advice", &status.advice, out)?;
    let failed: Vec<String> = status.background.failed.iter().map(failed).collect();
    labelled("not embedded", &failed, out)?;
    findings(&status.warnings, &status.skipped, args.warnings, out)?;
    Ok(Outcome::Done)
}

fn rows(status: &Status) -> Vec<(String, String)> {
    let mut rows: Vec<(String, String)> = Vec::new();
    let mut row = |name: &str, value: String| rows.push((name.to_string(), value));
    row("vault", status.vault.display().to_string());
    row("index", format!("{} ({})", status.index.display(), bytes(status.index_bytes)));
    row("notes", format!("{}, and {}", status.notes, counted(status.attachments, "other file")));
    row(
        "passages",
        match status.pending {
            0 => format!("{}, all with vectors", status.chunks),
            pending => format!("{}; still to embed: {}: vault-index sync", status.chunks, counted(pending, "passage")),
        },
    );
    if status.unread > 0 {
        row("not read yet", format!("{}: vault-index sync", counted(status.unread, "note")));
    }
    row("links", format!("{}, {} of them unresolved", status.links, status.unresolved));
    row("tags", status.tags.to_string());
    row(
        "model",
        format!("{}, {} dimensions, {} kept", status.model, status.dimensions, counted(status.vectors, "vector")),
    );
    if let Some(next) = &status.rebuilding_to {
        row("rebuilding", format!("to {next}: vault-index rebuild resumes it"));
    }
    row("last sync", status.last_sync.map_or_else(|| "never".to_string(), local_time));
    row("background", background(&status.background));
    row("watcher", status.watcher.clone().unwrap_or_else(|| "none".to_string()));
    rows
}

fn failed(text: &FailedText) -> String {
    let line = text.line.map_or_else(String::new, |line| format!(":{line}"));
    format!("{}{line}: {}", text.path, text.error)
}

fn background(status: &BackgroundStatus) -> String {
    match status {
        BackgroundStatus { process: Some(process), started: Some(started), .. } => {
            format!("{process} has been embedding since {}: vault-index stop ends it", local_time(*started))
        }
        BackgroundStatus { started: Some(started), ended: None, .. } => {
            format!("a process that started at {} was killed", local_time(*started))
        }
        BackgroundStatus { ended: Some(ended), error: Some(error), .. } => {
            format!("failed at {}: {error}", local_time(*ended))
        }
        _ => "nothing".to_string(),
    }
}

/// `2026-01-31 08:15:00`.
pub(super) fn local_time(moment: jiff::Timestamp) -> String {
    moment.to_zoned(jiff::tz::TimeZone::system()).strftime("%Y-%m-%d %H:%M:%S").to_string()
}

pub(super) fn check(vault_args: &IndexedVaultArgs, args: &CheckArgs, out: &mut Out) -> CliResult {
    if args.output.schema {
        return out.schema::<CheckRecord>();
    }
    let settings = IndexSettings::load(vault_args)?;
    let vault = settings.only_vault()?;
    let index = match args.repair {
        true => open::to_rebuild(&settings, vault, false)?,
        false => open::to_read(&settings, vault)?,
    };
    let (checked, is_cancelled) = with_progress(SyncOptions::default(), |options| match args.repair {
        true => index.repair(options),
        false => index.check(options),
    });
    if is_cancelled {
        return Err(Failure::Interrupted("the check is not complete; what was repaired is kept".into()));
    }
    let record = CheckRecord::from(checked?);
    let outcome = if record.sound { Outcome::Done } else { Outcome::Nothing };
    if args.output.json {
        out.json(&record)?;
        return Ok(outcome);
    }
    labelled("fault", &record.report.faults, out)?;
    labelled("not compared", &record.report.unreadable, out)?;
    out.line(&verdict(&record, args.repair))?;
    Ok(outcome)
}

/// Returns the last line of a check.
fn verdict(record: &CheckRecord, repair: bool) -> String {
    let faults = counted(record.report.faults.len(), "fault");
    let mut text = match (record.report.faults.len(), record.report.repaired) {
        (0, _) => {
            let state = if record.sound { "sound" } else { "no fault found" };
            format!("{state}: {} read and compared", counted(record.report.notes, "note"))
        }
        (1, true) => format!("{faults}, repaired"),
        (_, true) => format!("{faults}, all repaired"),
        (_, false) if repair => format!("{faults} left; `vault-index rebuild` rebuilds the index"),
        (_, false) => format!("{faults}; `vault-index check --repair` repairs the index"),
    };
    if !record.report.unreadable.is_empty() {
        let places = counted_as(record.report.unreadable.len(), "file or folder", "files or folders");
        text.push_str(&format!("; could not be read and compared: {places}"));
    }
    if record.report.pending > 0 {
        let texts = counted_as(record.report.pending, "text has", "texts have");
        text.push_str(&format!("; {texts} no vector yet: vault-index sync makes them"));
    }
    format!("{text} ({})", super::sync::duration(record.report.took_ms))
}

pub(super) fn models(vault_args: &IndexedVaultArgs, args: &ListArgs, out: &mut Out) -> CliResult {
    if args.schema {
        return out.list_schema::<ModelRecord>(args);
    }
    let settings = IndexSettings::load(vault_args)?;
    let has = model_of(&settings, settings.only_vault()?);
    let rows: Vec<ModelRecord> =
        vault_index::ModelName::all().into_iter().map(|model| ModelRecord::new(model, has.as_deref())).collect();
    out.list(args.format(), &rows, |out, rows| {
        let width = rows.iter().map(|row| columns(&row.model.name)).max().unwrap_or(0);
        let lacks = |feature| format!(" (not in this program: it lacks the feature {feature})");
        for ModelRecord { model, in_index } in rows {
            let mark = if *in_index { "*" } else { " " };
            let location = if model.local { "local " } else { "remote" };
            let name = out.paint.bold(&padded(&model.name, width));
            let lacking = out.paint.bad(&model.needs_feature.map(lacks).unwrap_or_default());
            let installed = if model.installed == Some(true) { "installed; " } else { "" };
            out.line(&format!("{mark} {name}  {location}  {installed}{}{lacking}", model.note))?;
        }
        match &has {
            Some(has) => out.line(&format!("* the index has vectors of {}", sanitize_line(has))),
            None => out.line("there is no index of this vault yet"),
        }?;
        out.line("vault-index models add NAME installs one of those with rankings: BEIR is search in English, MIRACL in 18 languages")?;
        let lacking = if cfg!(feature = "fastembed") { String::new() } else { lacks("fastembed") };
        let rerankers = RerankerName::FASTEMBED.map(|name| format!("fastembed:{name}")).join(", ");
        out.line(&format!("vault-search --rerank takes {rerankers} and onnx:DIR{}", out.paint.bad(&lacking)))?;
        let missing: BTreeSet<&str> = rows.iter().filter_map(|row| row.model.needs_feature).collect();
        match missing.is_empty() {
            true => Ok(()),
            false => {
                let features = missing.into_iter().collect::<Vec<_>>().join(",");
                out.line(&format!(
                    "to get the models that are not in this program, {}",
                    ModelInfo::install_with(&features)
                ))
            }
        }
    })
}

/// Returns the model of the vault's index, if there is an index.
fn model_of(settings: &IndexSettings, vault: &Path) -> Option<String> {
    open::to_read(settings, vault).ok()?.status().ok().map(|status| status.model)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn verdicts() {
        let record = |faults: usize, unreadable: usize, pending| {
            let mut report = vault_index::CheckReport::default();
            (report.notes, report.pending) = (2, pending);
            report.faults = vec![String::new(); faults];
            report.unreadable = vec![String::new(); unreadable];
            verdict(&CheckRecord::from(report), false)
        };
        assert_eq!(record(0, 0, 0), "sound: 2 notes read and compared (0 ms)");
        assert_eq!(
            record(0, 0, 1),
            "sound: 2 notes read and compared; 1 text has no vector yet: vault-index sync makes them (0 ms)"
        );
        assert_eq!(
            record(0, 2, 0),
            "no fault found: 2 notes read and compared; could not be read and compared: 2 files or folders (0 ms)"
        );
        assert!(record(1, 1, 3).starts_with("1 fault; `vault-index check --repair`"));
    }
}
