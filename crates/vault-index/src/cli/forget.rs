//! `vault-index forget` and `adopt`: what becomes of an index when its vault is given up or has moved.

use super::index_args::{AdoptArgs, ForgetArgs};
use super::output::Out;
use super::settings::{PlaceArgs, Settings};
use super::terminal::{self, harmless_line};
use super::{Ended, Failure, Outcome, consent};
use crate::{Error, ErrorKind, Index};

pub(super) fn forget(place: &PlaceArgs, args: &ForgetArgs, out: &mut Out) -> Ended {
    let settings = Settings::load_gone(place)?;
    let vault = settings.only_vault()?;
    let index = Index::open_gone(vault, settings.options())?;
    if !index.is_kept()? {
        // An index that was deleted by hand leaves what was agreed to about it.
        consent::forget(vault)?;
        out.line(&format!("nothing is kept about {}", harmless_line(&vault.to_string_lossy())))?;
        return Ok(Outcome::Done);
    }
    let question = format!("Delete the index and all else that is kept about {}? Its notes stay.", vault.display());
    let agreed = args.yes || (terminal::can_ask() && terminal::ask(&question));
    if !agreed {
        let refused = Error::new(ErrorKind::Store, "nothing was deleted, since nobody agreed").at(vault);
        return Err(Failure::Refused(refused.with_remedy("add --yes")));
    }
    for path in index.forget()? {
        out.line(&format!("deleted {}", harmless_line(&path.to_string_lossy())))?;
    }
    consent::forget(vault)?;
    Ok(Outcome::Done)
}

pub(super) fn adopt(place: &PlaceArgs, args: &AdoptArgs, out: &mut Out) -> Ended {
    let settings = Settings::load(place)?;
    let vault = settings.only_vault()?;
    let index = Index::adopt(vault, &args.old, &settings.options())?;
    consent::adopt(&crate::dirs::vault_or_gone(&args.old)?, vault)?;
    out.line(&format!(
        "the index of {} is now that of {}: {}",
        harmless_line(&args.old.to_string_lossy()),
        harmless_line(&vault.to_string_lossy()),
        harmless_line(&index.to_string_lossy())
    ))?;
    Ok(Outcome::Done)
}
