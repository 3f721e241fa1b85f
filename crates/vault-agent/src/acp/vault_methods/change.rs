//! Changes of a vault: prepared and shown first, made after a person approved the digest of what was shown.

use serde_json::{Map, Value, json};
use vault_tools::approval::{ChangeRequest, PreparedChange, now, settle_shown};
use vault_tools::{
    Cancel, Error, ErrorKind, Permission, Result, SafePath, TransactionKind, TransactionStatus, Vault, Vaults,
};

use super::macros;
use super::messages::{ApplyRequest, ApplyResult, NewLink, PrepareResult, WantedChange};
use super::past::shown;
use crate::changes::carry_out;

/// Prepares a change. Nothing is done.
///
/// # Errors
/// Those of the tools, for example that a file is already there.
pub(super) fn prepare(
    vaults: &mut Vaults,
    vault: usize,
    change: &WantedChange,
    cancel: Cancel<'_>,
) -> Result<PrepareResult> {
    let prepared = prepared(vaults, vault, change, cancel)?;
    let preview = prepared.preview();
    let (files, folders) = shown(preview);
    let of_plan = prepared.plan().map(|plan| plan.notices.as_slice()).unwrap_or_default();
    let touched = prepared.touched();
    let blocked = prepared.plan().and_then(|plan| plan.blocked.as_ref()).map(ToString::to_string);
    let denied = match prepared.permission() {
        Permission::Deny(reason) => Some(reason.clone()),
        Permission::Allow | Permission::Ask => None,
    };
    Ok(PrepareResult {
        digest: prepared.digest().to_owned(),
        files,
        folders,
        notices: preview.notices.iter().chain(of_plan).cloned().collect(),
        notes: touched.notes,
        links: touched.links,
        denied: denied.or(blocked),
    })
}

/// Makes a change that a person has approved.
///
/// # Errors
/// [`ErrorKind::Conflict`] if it would be another change than the one that was shown; [`ErrorKind::Denied`]; those of the
/// vault. Nothing is done then.
pub(super) fn apply(
    vaults: &mut Vaults,
    vault: usize,
    request: &ApplyRequest,
    cancel: Cancel<'_>,
) -> Result<ApplyResult> {
    let prepared = prepared(vaults, vault, &request.change, cancel)?;
    let approved = settle_shown(prepared, &request.digest, PreparedChange::is_other_than_shown())
        .map_err(|refused| refused.log(vaults.toolbox(vault)))?;
    // A change that has begun is made as a whole: a client that loses interest must not leave half of it.
    let done = carry_out(approved, vaults, vault, Cancel::default(), &mut |_| {})?;
    Ok(ApplyResult { transaction: done.transaction, notices: done.notices })
}

fn prepared(vaults: &mut Vaults, vault: usize, change: &WantedChange, cancel: Cancel<'_>) -> Result<PreparedChange> {
    let toolbox = vaults.toolbox(vault);
    let request = request(toolbox.vault(), change)?;
    request.prepare(toolbox, &now(), cancel)
}

/// The change as the tools know it.
fn request(vault: &Vault, change: &WantedChange) -> Result<ChangeRequest> {
    Ok(match change {
        WantedChange::Rename { path, new_path } => {
            let is_note = SafePath::new(path).is_ok_and(|path| path.is_note());
            let tool = if is_note { "rename_note" } else { "move_file" };
            call(tool, json!({ "path": path, "new_path": new_path }))
        }
        WantedChange::Links { links } => match links.as_slice() {
            [] => return Err(Error::new(ErrorKind::InvalidArguments, "there is no link to make")),
            [link] => call("set_link", link_args(link)),
            links => ChangeRequest::Plan { plan: plan(links), parameters: Map::new() },
        },
        WantedChange::Macro { name, parameters } => macros::run(vault, name, parameters)?,
        WantedChange::Undo { transaction } => ChangeRequest::Undo { transaction: *transaction },
        WantedChange::Redo { transaction } => ChangeRequest::Undo { transaction: Some(undo_of(vault, *transaction)?) },
    })
}

fn call(tool: &str, args: Value) -> ChangeRequest {
    ChangeRequest::Call { tool: tool.to_owned(), args }
}

fn link_args(link: &NewLink) -> Value {
    let mut args = json!({ "path": link.path, "line": link.line, "target": link.target });
    if let Some(text) = &link.text {
        args["text"] = json!(text);
    }
    args
}

/// One step for each link, all in one transaction.
fn plan(links: &[NewLink]) -> Value {
    let step = |(number, link): (usize, &NewLink)| {
        let mut args = link_args(link);
        let texts = args.as_object_mut().into_iter().flat_map(Map::values_mut);
        texts.filter(|value| value.is_string()).for_each(|text| *text = literal(text).into());
        json!({ "id": format!("link-{}", number + 1), "tool": "set_link", "args": args })
    };
    let steps: Vec<Value> = links.iter().enumerate().map(step).collect();
    json!({ "version": "1.0", "goal": "Make suggested links", "riskLevel": "writes", "steps": steps })
}

/// A text in which a plan finds no references.
fn literal(text: &Value) -> String {
    let text = text.as_str().unwrap_or_default();
    let is_reference = text.starts_with("$steps.") || text.starts_with("$vars.");
    format!("{}{}", if is_reference { "$" } else { "" }, text.replace("${", "$${"))
}

/// The undo that is in effect: of a transaction, or the newest one.
fn undo_of(vault: &Vault, undone: Option<u64>) -> Result<u64> {
    let transactions = vault.transactions()?;
    // A redo that was undone again belongs to the transaction that it redid.
    let root = |number: u64| {
        let of = transactions.iter().find(|info| info.id.0 == number).and_then(|info| info.of);
        of.map_or(number, |of| of.0)
    };
    let undone = undone.map(root);
    let is_meant = |of: u64| undone.is_none_or(|undone| undone == of);
    let in_effect = transactions.iter().find(|info| {
        info.kind == TransactionKind::Undo
            && info.status == TransactionStatus::Done
            && info.of.is_some_and(|of| is_meant(of.0))
    });
    let in_effect = in_effect.map(|info| info.id.0);
    in_effect.ok_or_else(|| {
        let what = match undone {
            Some(number) => format!("transaction {number} is not undone"),
            None => "there is nothing to redo".to_owned(),
        };
        Error::new(ErrorKind::NotFound, what)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plan_takes_the_words_of_notes_as_they_stand() {
        let link = |text: &str| NewLink {
            path: "a.md".to_owned(),
            line: 1,
            text: Some(text.to_owned()),
            target: "$vars.x".to_owned(),
        };
        let plan = plan(&[link("${date}"), link("plain")]);
        assert_eq!(plan["steps"][0]["args"]["text"], "$${date}");
        assert_eq!(plan["steps"][1]["args"]["text"], "plain");
        assert_eq!(plan["steps"][1]["args"]["target"], "$$vars.x");
    }
}
