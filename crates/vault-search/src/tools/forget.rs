//! `vault-tools forget` and `adopt`: deletes what is stored about a vault, or takes it over when the vault has moved.

use vault_index::dirs::vault_or_gone;
use vault_index::{FolderState, Index};
use vault_tools::{Error, State, Vault};

use crate::{AdoptArgs, CliResult, Failure, ForgetArgs, Out, Outcome, note, sanitize_line};

use super::args::VaultArgs;
use super::settings;

pub(super) fn forget(vault_args: &VaultArgs, args: &ForgetArgs, out: &mut Out) -> CliResult {
    let vault = vault_or_gone(&settings::folder(vault_args)?).map_err(Error::from)?;
    let state = State::of(&vault)?;
    let name = vault.display();
    if !state.folder().exists() {
        out.line(&format!("nothing is stored about {}", sanitize_line(&name.to_string())))?;
        return Ok(Outcome::Done);
    }
    let question =
        format!("Delete the journal, log and macros of {name}? Its notes stay; nothing can be undone any more.");
    let refusal = format!(
        "{name}: nothing was deleted, since nobody agreed (see with `undo --list` and `macro list` what would be lost, \
         then add --yes)"
    );
    crate::forget(args, &question, &refusal, || Ok(state.forget()?), out)
}

/// What to say where a vault has no history, but one that is gone has: it may have moved.
pub(super) fn hint_at_adopt(vault: &Vault) {
    if vault.state().has_history() {
        return;
    }
    // Only the indexes know the folders of their vaults.
    let gone = Index::list().unwrap_or_default().into_iter().filter(|index| index.state == FolderState::Gone);
    for old in gone.filter_map(|index| index.vault).filter(|old| State::of(old).is_ok_and(|state| state.has_history()))
    {
        let old = sanitize_line(&old.to_string_lossy());
        note(&format!(
            "there is a history of {old}, which is gone: if this vault was there, vault-tools adopt \"{old}\""
        ));
    }
}

pub(super) fn adopt(vault_args: &VaultArgs, args: &AdoptArgs, out: &mut Out) -> CliResult {
    let vault = settings::open(vault_args)?;
    let old = vault_or_gone(&args.old).map_err(Error::from)?;
    if std::fs::read_dir(&old).is_ok_and(|mut entries| entries.next().is_some()) && old != vault.path() {
        let what = format!("{}: this folder is still there, so what is stored about it stays its own", old.display());
        return Err(Failure::Refused(what));
    }
    vault.state().adopt(&State::of(&old)?)?;
    out.line(&format!(
        "the journal, log and macros of {} are now those of {}",
        sanitize_line(&old.to_string_lossy()),
        sanitize_line(&vault.path().to_string_lossy())
    ))?;
    Ok(Outcome::Done)
}
