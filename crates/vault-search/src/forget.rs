//! `forget` and `adopt`: delete everything that is stored about a vault, or take it over for the vault's new folder.
//!
//! This covers the index with the consents for its model, the journal with log, plans and macros, and the conversations
//! and pending changes of `vault-agent`.

use std::path::{Path, PathBuf};

use clap::Args;
use vault_index::{Error, ErrorKind, Index, dirs};
#[cfg(feature = "tools")]
use vault_tools::State;

use crate::agent_files;
use crate::consents::ConsentFile;
use crate::database::needs_file;
use crate::exit::{CliResult, Failure, Outcome};
use crate::output::Out;
use crate::sanitize::sanitize_line;
use crate::settings::{Settings, VaultArgs};
use crate::terminal::{can_ask, confirm};

/// The options of `forget`.
#[derive(Debug, Args)]
pub struct ForgetArgs {
    /// Skip confirmation
    #[arg(long)]
    pub yes: bool,
    /// Delete only the index, which the next sync rebuilds
    ///
    /// Journal, macros and conversations stay.
    #[arg(long)]
    pub index_only: bool,
}

/// The options of `adopt`.
#[derive(Debug, Args)]
pub struct AdoptArgs {
    /// The folder the vault was in
    #[arg(value_name = "OLD")]
    pub old: PathBuf,
}

/// Deletes everything that is stored about a vault, after confirmation, and prints the paths. The folder of the vault
/// may no longer exist.
///
/// # Errors
/// [`Failure::Refused`] without confirmation, or while another program uses the files; files that cannot be deleted.
pub fn forget(vault_args: &VaultArgs, args: &ForgetArgs, out: &mut Out) -> CliResult {
    let settings = Settings::load_with_missing(vault_args)?;
    let vault = settings.only_vault()?;
    let index = Index::open_gone(vault, settings.index_options(vault))?;
    let name = sanitize_line(&vault.to_string_lossy());
    if settings.database.is_some() && !args.index_only {
        return Err(Error::new(ErrorKind::Query, "an index in a database is deleted for all of its readers")
            .with_remedy(
                "to delete it, add --index-only; to delete what is stored here about the vault, leave out --index",
            )
            .into());
    }
    if args.index_only {
        return forget_index(index, &name, settings.database.is_some(), args.yes, out);
    }
    let has_journal = has_journal(vault)?;
    if !has_journal && !index.is_kept()? && !agent_files::is_any(vault) {
        // The consents remain if an index was deleted by hand.
        ConsentFile::of_user().forget(vault)?;
        out.line(&format!("nothing is stored about {name}"))?;
        return Ok(Outcome::Done);
    }
    let undo = if has_journal { " Nothing can be undone afterwards." } else { "" };
    let question = format!("Delete the index, journal, log, macros and conversations of {name}? Its notes stay.{undo}");
    if !(args.yes || can_ask() && confirm(&question)) {
        let refusal = format!(
            "{name}: nothing was deleted; this needs confirmation (see with `vault-tools undo --list` and `vault-tools \
             macro list` what would be lost, then add --yes)"
        );
        return Err(Failure::Refused(refusal));
    }
    // The index comes last, because it can be rebuilt: a failure before it loses least.
    let mut deleted = agent_files::forget(vault)?;
    deleted.extend(forget_journal(vault)?);
    deleted.extend(index.forget()?);
    ConsentFile::of_user().forget(vault)?;
    print_deleted(&deleted, out)
}

/// Deletes only the index, for example one that is too damaged to be rebuilt in place. Loses nothing that cannot be
/// rebuilt.
fn forget_index(index: Index, name: &str, has_database: bool, yes: bool, out: &mut Out) -> CliResult {
    let file = sanitize_line(&index.index_file().to_string_lossy());
    let question = match has_database {
        true => format!("Delete {file} for all of its readers? The next sync of its owner rebuilds it."),
        false => format!("Delete the index of {name}? The next sync rebuilds it."),
    };
    if !(yes || can_ask() && confirm(&question)) {
        return Err(Failure::Refused(format!("{name}: nothing was deleted; this needs confirmation (add --yes)")));
    }
    print_deleted(&index.forget()?, out)
}

fn print_deleted(deleted: &[PathBuf], out: &mut Out) -> CliResult {
    for path in deleted {
        out.line(&format!("deleted {}", sanitize_line(&path.to_string_lossy())))?;
    }
    Ok(Outcome::Done)
}

/// Takes over everything that is stored about a vault whose folder has moved.
///
/// # Errors
/// [`Failure::Refused`] if the old folder still has files, or another program uses the files; also an error if nothing
/// is stored about the old folder, or this vault has an index or a journal of its own.
pub fn adopt(vault_args: &VaultArgs, args: &AdoptArgs, out: &mut Out) -> CliResult {
    let settings = Settings::load(vault_args)?;
    let vault = settings.only_vault()?;
    if settings.database.is_some() {
        return Err(needs_file(&format!("{} adopt", crate::program())).into());
    }
    let mut options = settings.index_options(vault);
    options.database = None;
    let old = dirs::vault_or_gone(&args.old)?;
    if old == vault {
        return Err(Error::new(ErrorKind::Query, "this is where the vault is now, so there is nothing to adopt")
            .at(old)
            .with_remedy("give the folder that the vault was in before it moved, and its new folder with --vault")
            .into());
    }
    if std::fs::read_dir(&old).is_ok_and(|mut entries| entries.next().is_some()) {
        let message = format!("{}: this folder is still there, so it keeps what is stored about it", old.display());
        return Err(Failure::Refused(message));
    }
    let mut adopted = Vec::new();
    if adopt_journal(&old, vault)? {
        adopted.push("journal, log and macros");
    }
    // If a search in the new folder has already built an index there, keep it: only the journal cannot be rebuilt.
    let has_index = settings.index_file.is_none() && Index::open(vault, options.clone())?.is_kept()?;
    let has_more = !adopted.is_empty() || agent_files::is_any(&old);
    if !(has_index && has_more) {
        match Index::adopt(vault, &old, &options) {
            Ok(_) => adopted.push("index"),
            Err(error) if error.kind() == ErrorKind::NotFound && has_more => {}
            Err(error) => return Err(error.into()),
        }
    }
    ConsentFile::of_user().adopt(&old, vault)?;
    if agent_files::adopt(&old, vault)? > 0 {
        adopted.push("conversations");
    }
    out.line(&format!(
        "taken over from {} by {}: {}",
        sanitize_line(&old.to_string_lossy()),
        sanitize_line(&vault.to_string_lossy()),
        adopted.join(", ")
    ))?;
    Ok(Outcome::Done)
}

#[cfg(feature = "tools")]
fn has_journal(vault: &Path) -> CliResult<bool> {
    Ok(State::of(vault)?.folder().exists())
}

#[cfg(feature = "tools")]
fn forget_journal(vault: &Path) -> CliResult<Vec<PathBuf>> {
    Ok(State::of(vault)?.forget()?)
}

/// Takes over the journal, and returns whether there was one.
#[cfg(feature = "tools")]
fn adopt_journal(old: &Path, new: &Path) -> CliResult<bool> {
    let old = State::of(old)?;
    if !old.has_history() {
        return Ok(false);
    }
    State::of(new)?.adopt(&old)?;
    Ok(true)
}

#[cfg(not(feature = "tools"))]
fn has_journal(_: &Path) -> CliResult<bool> {
    Ok(false)
}

#[cfg(not(feature = "tools"))]
fn forget_journal(_: &Path) -> CliResult<Vec<PathBuf>> {
    Ok(Vec::new())
}

#[cfg(not(feature = "tools"))]
fn adopt_journal(_: &Path, _: &Path) -> CliResult<bool> {
    Ok(false)
}
