//! `vault-index watch`: stays and keeps the index up to date, a line or a JSON event per batch.

use super::index_args::WatchArgs;
use super::output::Out;
use super::records::WatchRecord;
use super::settings::PlaceArgs;
use super::{Ended, service};

#[cfg(feature = "watch")]
pub(super) fn run(place: &PlaceArgs, args: &WatchArgs, out: &mut Out) -> Ended {
    use std::time::Duration;

    use super::settings::{Sending, Settings};
    use super::{Outcome, cancel};
    use crate::WatchOptions;

    if args.schema {
        return out.schema::<WatchRecord>();
    }
    let settings = Settings::load(place)?;
    let vault = settings.only_vault()?;
    if args.print_service {
        return service::print(vault, place, out);
    }
    let index = settings.open(vault, Sending::Ask)?;
    let listening = cancel::listen();
    let mut options = WatchOptions { cancel: Some(listening.flag()), ..WatchOptions::default() };
    if let Some(ms) = args.debounce {
        options.debounce = Duration::from_millis(ms);
    }
    for event in index.watch(&options)? {
        match args.jsonl {
            true => out.record(&record(event?, index.vault()))?,
            false => print_event(event?, index.vault(), out)?,
        }
        out.flush()?;
    }
    match args.jsonl {
        true => out.record(&WatchRecord::Ended)?,
        false => out.line("ended; everything is committed")?,
    }
    Ok(Outcome::Done)
}

#[cfg(not(feature = "watch"))]
pub(super) fn run(place: &PlaceArgs, args: &WatchArgs, out: &mut Out) -> Ended {
    use super::settings::Settings;
    use crate::{Error, ErrorKind};

    if args.schema {
        return out.schema::<WatchRecord>();
    }
    if args.print_service {
        return service::print(Settings::load(place)?.only_vault()?, place, out);
    }
    let error = Error::new(ErrorKind::Io, "this program was built without watching");
    Err(error.with_remedy("build it with the feature `watch`, or run `vault-index sync` now and then").into())
}

#[cfg(feature = "watch")]
fn record(event: crate::WatchEvent, vault: &std::path::Path) -> WatchRecord {
    use crate::WatchEvent;
    match event {
        WatchEvent::Started => WatchRecord::Started { vault: vault.to_string_lossy().into_owned() },
        WatchEvent::Synced(report) => WatchRecord::Synced { report: report.into() },
        WatchEvent::Notice(message) => WatchRecord::Notice { message },
        WatchEvent::VaultGone => WatchRecord::VaultGone,
        WatchEvent::VaultBack => WatchRecord::VaultBack,
    }
}

#[cfg(feature = "watch")]
fn print_event(event: crate::WatchEvent, vault: &std::path::Path, out: &mut Out) -> Ended<()> {
    use super::terminal::harmless_line;
    use crate::WatchEvent;
    let now = jiff::Zoned::now().strftime("%H:%M:%S").to_string();
    let text = match event {
        WatchEvent::Started => format!("watching {}", vault.display()),
        WatchEvent::Synced(report) => {
            out.line(&format!("{} {}", out.paint.dim(&now), super::sync::paragraph(&report)))?;
            for skipped in &report.skipped {
                out.line(&format!("  skipped: {}", harmless_line(&format!("{}: {}", skipped.path, skipped.reason))))?;
            }
            return Ok(());
        }
        WatchEvent::Notice(message) => message,
        WatchEvent::VaultGone => "the vault's folder is gone; the index is kept until it is back".to_string(),
        WatchEvent::VaultBack => "the vault's folder is back".to_string(),
    };
    out.line(&format!("{} {}", out.paint.dim(&now), harmless_line(&text)))
}
