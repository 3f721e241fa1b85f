//! `vault-agent mcp install` and `uninstall`: the server in the configurations of assistants.

use std::path::{Path, PathBuf};

use vault_search::tools::open_with_settings;
use vault_search::{CliResult, Out, Outcome, Settings as VaultSettings, VaultArgs, note};
use vault_tools::{Error, ErrorKind, Result};

use super::args::{InstallArgs, OfferArgs, UninstallArgs};
use crate::clients::{ConfigChange, StartCommand};

/// Variables to write into the entry, because a client may not pass them on, and without them `vault-agent approve` and
/// the server would use different folders.
const PASSED_ON: [&str; 3] = ["XDG_STATE_HOME", "XDG_CACHE_HOME", "XDG_CONFIG_HOME"];

pub(super) fn install(vault_args: &VaultArgs, args: &InstallArgs, out: &mut Out) -> CliResult {
    let mut offer = args.offer.clone();
    offer.approval_page |= args.client.has_page() && !(offer.read_only || offer.trust_client || offer.ask_outside);
    let start = start(vault_args, &offer)?;
    let (title, file) = (args.client.title(), args.client.config_file()?);
    if args.print {
        note(&format!("for {}", file.display()));
        out.text(&args.client.example(&start))?;
        return Ok(Outcome::Done);
    }
    match args.client.install(&start)? {
        ConfigChange::Unchanged => out.line(&format!("{title} already has the server ({})", file.display()))?,
        ConfigChange::Written(backup) => {
            out.line(&format!("Added the server to {title} ({})", file.display()))?;
            said_backup(backup.as_deref(), out)?;
            out.line(&format!("Restart {title}; `vault-agent mcp doctor {}` checks it.", args.client.id()))?;
        }
    }
    if offer.trust_client {
        note(&format!(
            "--trust-client turns the server's own confirmation off: if {title} is ever set to run tools without \
             asking, changes are made without your approval"
        ));
    }
    if offer.approval_page {
        note(&format!(
            "--approval-page: {title} shows changes on a page of its own, where you approve them with a click"
        ));
    }
    Ok(Outcome::Done)
}

pub(super) fn uninstall(args: &UninstallArgs, out: &mut Out) -> CliResult {
    let (title, file) = (args.client.title(), args.client.config_file()?);
    if args.print {
        let installed = args.client.installed()?.and_then(|installed| installed.start);
        match installed {
            Some(start) => {
                note(&format!("in {}", file.display()));
                out.text(&args.client.example(&start))?;
            }
            None => out.line(&format!("{title} does not have it, in {}", file.display()))?,
        }
        return Ok(Outcome::Done);
    }
    match args.client.uninstall()? {
        ConfigChange::Unchanged => out.line(&format!("{title} does not have it, in {}", file.display()))?,
        ConfigChange::Written(backup) => {
            out.line(&format!("{title} no longer starts the server; it was in {}", file.display()))?;
            said_backup(backup.as_deref(), out)?;
        }
    }
    Ok(Outcome::Done)
}

fn said_backup(backup: Option<&Path>, out: &mut Out) -> CliResult<()> {
    if let Some(backup) = backup {
        out.line(&format!("Backup: {}", backup.display()))?;
    }
    Ok(())
}

/// Returns the command that starts this program for these vaults. All paths are absolute, because a client starts it in
/// any folder.
pub(super) fn start(vault_args: &VaultArgs, offer: &OfferArgs) -> CliResult<StartCommand> {
    let program = std::env::current_exe().map_err(|error| Error::io("this program", &error))?;
    VaultSettings::load(vault_args)?.refuse_named_database()?;
    let mut args = vec!["mcp".to_owned()];
    let mut index = None;
    for opened in open_with_settings(vault_args)? {
        args.extend(["--vault".to_owned(), text_of(opened.vault.path())?]);
        index = opened.index.index_file;
    }
    if let Some(index) = index {
        let index = std::path::absolute(&index).map_err(|error| Error::io(index.display(), &error))?;
        args.extend(["--index".to_owned(), text_of(&index)?]);
    }
    args.extend(offer.to_args());
    let set = |name: &&str| {
        Some(((*name).to_owned(), std::env::var(name).ok().filter(|path| Path::new(path).is_absolute())?))
    };
    Ok(StartCommand {
        program: PathBuf::from(text_of(&program)?),
        args,
        env: PASSED_ON.iter().filter_map(set).collect(),
    })
}

/// Returns a path as text for a configuration.
fn text_of(path: &Path) -> Result<String> {
    path.to_str().map(str::to_owned).ok_or_else(|| {
        Error::new(ErrorKind::InvalidPath, "this path is not Unicode, but configurations must be")
            .at(path.display())
            .with_remedy("rename the folder")
    })
}
