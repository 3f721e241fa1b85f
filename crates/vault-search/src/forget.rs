//! `forget` and `adopt`: everything that is stored about a vault is deleted, or taken over by the folder that the vault
//! has moved to. That is the index with the consents to its model, the journal with log, plans and macros, and the
//! conversations and waiting changes of `vault-agent`.

use std::path::{Path, PathBuf};

use clap::Args;
use vault_index::{Error, ErrorKind, Index, dirs};
#[cfg(feature = "tools")]
use vault_tools::State;

use crate::agent_files;
use crate::consents::ConsentFile;
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

/// Deletes everything that is stored about a vault, whose folder may be gone, once a person agreed; prints the paths.
///
/// # Errors
/// [`Failure::Refused`] when nobody agreed, or while another program uses it; files that cannot be deleted.
pub fn forget(vault_args: &VaultArgs, args: &ForgetArgs, out: &mut Out) -> CliResult {
    let settings = Settings::load_with_missing(vault_args)?;
    let vault = settings.only_vault()?;
    let index = Index::open_gone(vault, settings.index_options())?;
    let name = sanitize_line(&vault.to_string_lossy());
    if args.index_only {
        return forget_index(index, &name, args.yes, out);
    }
    let has_journal = has_journal(vault)?;
    if !has_journal && !index.is_kept()? && !agent_files::is_any(vault) {
        // An index that was deleted by hand leaves its consents.
        ConsentFile::of_user().forget(vault)?;
        out.line(&format!("nothing is stored about {name}"))?;
        return Ok(Outcome::Done);
    }
    let undo = if has_journal { " Nothing can be undone afterwards." } else { "" };
    let question = format!("Delete the index, journal, log, macros and conversations of {name}? Its notes stay.{undo}");
    if !(args.yes || can_ask() && confirm(&question)) {
        let refusal = format!(
            "{name}: nothing was deleted, because this needs confirmation (`vault-tools undo --list` and `vault-tools \
             macro list` show what would be lost; then add --yes)"
        );
        return Err(Failure::Refused(refusal));
    }
    // The index comes last: it can be made again, so a failure before it loses least.
    let mut deleted = agent_files::forget(vault)?;
    deleted.extend(forget_journal(vault)?);
    deleted.extend(index.forget()?);
    ConsentFile::of_user().forget(vault)?;
    print_deleted(&deleted, out)
}

/// Deletes an index that is so damaged that it cannot be rebuilt in its place: nothing that cannot be made again goes.
fn forget_index(index: Index, name: &str, yes: bool, out: &mut Out) -> CliResult {
    if !(yes || can_ask() && confirm(&format!("Delete the index of {name}? The next sync rebuilds it."))) {
        let refusal = format!("{name}: nothing was deleted, because this needs confirmation (add --yes)");
        return Err(Failure::Refused(refusal));
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
/// [`Failure::Refused`] when the old folder is still there or another program uses what is stored about it; when nothing
/// is stored about it, or this vault has an index or a journal of its own.
pub fn adopt(vault_args: &VaultArgs, args: &AdoptArgs, out: &mut Out) -> CliResult {
    let settings = Settings::load(vault_args)?;
    let vault = settings.only_vault()?;
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
    // A search in the new folder has made an index there, which is as good: the journal is what cannot be made again.
    let has_index = settings.index_file.is_none() && Index::open(vault, settings.index_options())?.is_kept()?;
    let has_more = !adopted.is_empty() || agent_files::is_any(&old);
    if !(has_index && has_more) {
        match Index::adopt(vault, &old, &settings.index_options()) {
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

/// Whether there was one.
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
