//! The calls of the approval page, which a client shows to the person and hides from the model: one reads a pending
//! change, and the other decides about it.
//!
//! A server cannot see whether the page or the model calls. So the tool is only offered with `--approval-page`, by
//! which the user states that the client hides it, as clients that show pages must.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use rmcp::model::CallToolResult;
use serde_json::{Value, json};
use vault_tools::{Cancel, Error, ErrorKind, Preview, Result};

use super::results;
use crate::change_text::{digest_of, what_undo_does};
use crate::pending_changes::{PendingChange, PendingChanges};
use crate::workspace::Workspace;

/// The keys that were shown, by code. Only the newest key of a code is valid, and only once.
#[derive(Debug, Default)]
pub(super) struct PageKeys(Mutex<HashMap<String, String>>);

impl PageKeys {
    /// Handles a call of the page.
    ///
    /// # Errors
    /// An unknown code; a decision without a key, or without the newest key of its code; notes that have changed.
    pub fn call(&self, args: &Value, workspace: &Workspace, changes: &PendingChanges) -> Result<CallToolResult> {
        let text = |name: &str| args.get(name).and_then(Value::as_str);
        let pending = changes.get(text("code").unwrap_or_default())?;
        let vault = workspace.vaults().iter().position(|open| open.vault.path() == pending.vault);
        let Some(vault) = vault else {
            return Err(Error::new(ErrorKind::NotFound, "no change is pending under this code in these vaults"));
        };
        let mut keys = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(key) = text("key") else {
            if text("decision").is_some() {
                return Err(Error::new(
                    ErrorKind::InvalidArguments,
                    "a decision needs the `key` that came with the change",
                ));
            }
            let mut random = [0; 16];
            getrandom::fill(&mut random).map_err(|error| Error::new(ErrorKind::Io, format!("no key: {error}")))?;
            let key = digest_of(&format!("{random:?}"));
            let change = shown(&pending, vault, workspace)?;
            keys.insert(pending.code.clone(), key.clone());
            return Ok(results::plain(
                json!({ "status": "waiting", "code": pending.code, "key": key, "change": change }),
            ));
        };
        // A wrong key also revokes the right one, so there is only one try.
        if keys.remove(&pending.code).is_none_or(|known| digest_of(&known) != digest_of(key)) {
            return Err(Error::new(ErrorKind::Refused, "this key does not decide about this change")
                .with_remedy("nothing was approved; open the page again"));
        }
        match text("decision") {
            Some("approve") => {
                // Check that the change is still the one that was shown.
                shown(&pending, vault, workspace)?;
                changes.approve(&pending)?;
                Ok(results::plain(json!({ "status": "approved", "code": pending.code })))
            }
            Some("decline") => {
                changes.remove(&pending.code)?;
                Ok(results::declined("the person declined"))
            }
            _ => Err(Error::new(ErrorKind::InvalidArguments, "`decision` must be `approve` or `decline`")),
        }
    }
}

/// Returns a change as the page shows it.
fn shown(pending: &PendingChange, vault: usize, workspace: &Workspace) -> Result<Value> {
    let prepare = |vaults: &mut vault_tools::Vaults| {
        pending.request.prepare(vaults.toolbox(vault), &pending.now, Cancel::default())
    };
    let prepared = workspace.with(prepare)?;
    if prepared.digest() != pending.digest {
        return Err(Error::new(ErrorKind::Conflict, "the notes have changed since the assistant asked for this")
            .with_remedy("nothing was changed; ask the assistant for the change again"));
    }
    // The page shows all of it, because a truncated change must not be approved.
    let Preview { files, folders, notices } = prepared.preview();
    let effects = prepared.effects().iter().map(|effect| format!("it {effect}"));
    let returns = prepared.returns().map(|value| format!("it returns {value}"));
    // The notices of a plan describe its commands.
    let of_plan = prepared.plan().map(|plan| plan.notices.as_slice()).unwrap_or_default();
    let notices: Vec<String> = effects.chain(returns).chain(notices.iter().chain(of_plan).cloned()).collect();
    Ok(json!({
        "title": prepared.title(),
        "vault": workspace.vaults()[vault].name,
        "risk": prepared.risk().name(),
        "undo": what_undo_does(prepared.risk()),
        "files": files,
        "folders": folders,
        "notices": notices,
    }))
}
