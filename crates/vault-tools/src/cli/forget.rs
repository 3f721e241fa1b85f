//! `vault-tools forget` and `adopt`: what becomes of journal, log and macros when a vault is given up or has moved.

use super::approve::{declined, nobody_to_ask};
use super::args::{AdoptArgs, ForgetArgs, PlaceArgs};
use super::output::Out;
use super::terminal::{ask, can_ask, harmless_line};
use super::{Ended, Outcome, settings};
use crate::state::{State, there_or_gone};

pub(super) fn forget(place: &PlaceArgs, args: &ForgetArgs, out: &mut Out) -> Ended {
    let vault = there_or_gone(&settings::folder(place)?);
    let state = State::of(&vault)?;
    if !state.folder().exists() {
        out.line(&format!("nothing is kept about {}", harmless_line(&vault.to_string_lossy())))?;
        return Ok(Outcome::Done);
    }
    if !args.yes {
        if !can_ask() {
            let remedy = "see with `undo --list` and `macro list` what would be lost, then add --yes";
            return Err(nobody_to_ask("it").remedy(remedy).into());
        }
        let question = format!(
            "Delete journal, log and macros of {}? Its notes stay; nothing can be taken back any more. [y, n]",
            vault.display()
        );
        if !ask(&question).is_some_and(|answer| matches!(answer.to_lowercase().as_str(), "y" | "yes")) {
            return Err(declined().into());
        }
    }
    for path in state.forget()? {
        out.line(&format!("deleted {}", harmless_line(&path.to_string_lossy())))?;
    }
    Ok(Outcome::Done)
}

pub(super) fn adopt(place: &PlaceArgs, args: &AdoptArgs, out: &mut Out) -> Ended {
    let vault = settings::open(place)?;
    let old = there_or_gone(&args.old);
    vault.state().adopt(&State::of(&old)?)?;
    out.line(&format!(
        "journal, log and macros of {} are now those of {}",
        harmless_line(&old.to_string_lossy()),
        harmless_line(&vault.path().to_string_lossy())
    ))?;
    Ok(Outcome::Done)
}
