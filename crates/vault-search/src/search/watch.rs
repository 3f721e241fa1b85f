//! `vault-index watch`: keeps the index up to date as files change, and prints a line or a JSON event per batch.

use crate::{CliResult, Out};

use super::index_args::WatchArgs;
use super::records::WatchRecord;
use super::service;
use super::settings::{IndexSettings, IndexedVaultArgs};

pub(super) fn run(vault_args: &IndexedVaultArgs, args: &WatchArgs, out: &mut Out) -> CliResult {
    if args.schema {
        return out.schema::<WatchRecord>();
    }
    let settings = IndexSettings::load(vault_args)?;
    if args.print_service {
        // The address may hold a password, and belongs into the environment of the service.
        settings.needs_file("vault-index watch --print-service")?;
        return service::print(settings.only_vault()?, vault_args, out);
    }
    watch(&settings, args, out)
}

fn watch(settings: &IndexSettings, args: &WatchArgs, out: &mut Out) -> CliResult {
    use std::io;
    use std::path::Path;
    use std::time::Duration;

    use crate::{Outcome, sanitize_line};

    use super::open;
    use super::sync::{paragraph, pending_summed};
    use vault_index::{WatchEvent, WatchOptions};

    fn record(event: WatchEvent, vault: &Path) -> WatchRecord {
        match event {
            WatchEvent::Started => WatchRecord::Started { vault: vault.to_string_lossy().into_owned() },
            WatchEvent::Synced(report) => WatchRecord::Synced { report: Box::new(pending_summed(report)) },
            WatchEvent::Notice(message) => WatchRecord::Notice { message },
            WatchEvent::VaultGone => WatchRecord::VaultGone,
            WatchEvent::VaultBack => WatchRecord::VaultBack,
        }
    }

    fn print(event: WatchEvent, vault: &Path, out: &mut Out) -> io::Result<()> {
        let now = jiff::Zoned::now().strftime("%H:%M:%S").to_string();
        let text = match event {
            WatchEvent::Started => format!("watching {}", vault.display()),
            WatchEvent::Synced(report) => {
                out.line(&format!("{} {}", out.paint.dim(&now), paragraph(&report)))?;
                return report.skipped.iter().try_for_each(|skipped| {
                    let skipped = format!("{}: {}", skipped.path, skipped.reason);
                    out.line(&format!("  skipped: {}", sanitize_line(&skipped)))
                });
            }
            WatchEvent::Notice(message) => message,
            WatchEvent::VaultGone => "the vault's folder is gone; the index is kept until it is back".to_string(),
            WatchEvent::VaultBack => "the vault's folder is back".to_string(),
        };
        out.line(&format!("{} {}", out.paint.dim(&now), sanitize_line(&text)))
    }

    let index = open::to_fill(settings, settings.only_vault()?, false)?;
    let listening = crate::listen();
    let mut options = WatchOptions::default();
    options.cancel = Some(listening.flag());
    if let Some(ms) = args.debounce {
        options.debounce = Duration::from_millis(ms);
    }
    for event in index.watch(&options)? {
        match args.jsonl {
            true => out.record(&record(event?, index.vault()))?,
            false => print(event?, index.vault(), out)?,
        }
        out.flush()?;
    }
    match args.jsonl {
        true => out.record(&WatchRecord::Ended)?,
        false => out.line("ended; everything is committed")?,
    }
    Ok(Outcome::Done)
}
