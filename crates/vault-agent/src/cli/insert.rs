//! `ask --insert`: inserts the answer into a note, as a change that is shown, approved and undone like any other.

use serde_json::json;
use vault_search::tools::{TerminalPrompt, declined};
use vault_search::{CliResult, can_ask, note, sanitize_line};
use vault_tools::approval::{Answer, Approver, AutoApprover, ChangeRequest, PreparedChange, now, settle};
use vault_tools::{Cancel, Error, ErrorKind, Grants};

use crate::changes::carry_out;
use crate::conversation::Conversation;
use crate::workspace::Workspace;

/// The prompt for inserting an answer.
struct InsertPrompt<'a>(TerminalPrompt<'a>);

impl Approver for InsertPrompt<'_> {
    fn ask(&mut self, change: &PreparedChange) -> Answer {
        match can_ask() {
            // The usual error has the wording for clients of the tools.
            true => match self.0.ask(change) {
                Answer::Declined(None) => Answer::No(declined()),
                answer => answer,
            },
            false => Answer::No(
                Error::new(ErrorKind::Denied, "inserting the answer needs your approval")
                    .with_remedy("run it in a terminal, or add --yes"),
            ),
        }
    }
}

/// Inserts the answer at the cursor, or at the end of the note, as a change that can be undone.
pub(super) fn insert(workspace: &Workspace, conversation: &Conversation, answer: &str, yes: bool) -> CliResult<()> {
    let editor = conversation.tools().editor();
    let Some(path) = editor.active_file.clone() else { return Ok(()) };
    let request = match editor.cursor {
        Some(_) => ChangeRequest::Call { tool: "editor.insertAtCursor".to_owned(), args: json!({ "text": answer }) },
        None => ChangeRequest::Call {
            tool: "append_to_note".to_owned(),
            args: json!({ "path": path.as_str(), "content": answer }),
        },
    };
    workspace.with(|vaults| {
        let toolbox = vaults.toolbox(0);
        toolbox.set_editor(editor);
        let prepared = request.prepare(toolbox, &now(), Cancel::default())?;
        let mut prompt =
            InsertPrompt(TerminalPrompt { question: Some("Insert the answer"), ..TerminalPrompt::default() });
        let approver: &mut dyn Approver = if yes { &mut AutoApprover } else { &mut prompt };
        let approved = settle(prepared, &Grants::default(), approver);
        let approved = approved.map_err(|refused| refused.log(vaults.toolbox(0)))?;
        let done = carry_out(approved, vaults, 0, Cancel::default(), &mut |_| {})?;
        let undo = done.transaction.map(|id| format!("; transaction {id}, vault-agent undo reverts it"));
        note(&format!("inserted into {}{}", sanitize_line(path.as_str()), undo.unwrap_or_default()));
        Ok(())
    })
}
