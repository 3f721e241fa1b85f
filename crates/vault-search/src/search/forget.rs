//! `vault-index forget` and `adopt`: what becomes of an index when its vault is given up or has moved.

use vault_index::{Index, dirs};

use crate::{AdoptArgs, CliResult, ForgetArgs, Out, Outcome, sanitize_line};

use super::consent;
use super::settings::{Settings, VaultArgs};

pub(super) fn forget(vault_args: &VaultArgs, args: &ForgetArgs, out: &mut Out) -> CliResult {
    let settings = Settings::load_with_missing(vault_args)?;
    let vault = settings.only_vault()?;
    let index = Index::open_gone(vault, settings.options())?;
    if !index.is_kept()? {
        // An index that was deleted by hand leaves what was agreed to about it.
        consent::ConsentFile::of_user().forget(vault)?;
        out.line(&format!("nothing is stored about {}", sanitize_line(&vault.to_string_lossy())))?;
        return Ok(Outcome::Done);
    }
    let name = vault.display();
    let question = format!("Delete the index of {name} and all else that is stored about it? Its notes stay.");
    let refusal = format!("{name}: nothing was deleted, since nobody agreed (add --yes)");
    let delete = || {
        let deleted = index.forget()?;
        consent::ConsentFile::of_user().forget(vault)?;
        Ok(deleted)
    };
    crate::forget(args, &question, &refusal, delete, out)
}

pub(super) fn adopt(vault_args: &VaultArgs, args: &AdoptArgs, out: &mut Out) -> CliResult {
    let settings = Settings::load(vault_args)?;
    let vault = settings.only_vault()?;
    let index = Index::adopt(vault, &args.old, &settings.options())?;
    consent::ConsentFile::of_user().adopt(&dirs::vault_or_gone(&args.old)?, vault)?;
    out.line(&format!(
        "the index of {} is now that of {}: {}",
        sanitize_line(&args.old.to_string_lossy()),
        sanitize_line(&vault.to_string_lossy()),
        sanitize_line(&index.to_string_lossy())
    ))?;
    Ok(Outcome::Done)
}
