//! Changes that a person starts with a command: undo, saving the conversation as a note, a plan. Each is shown first.

use std::sync::Arc;

use agent_loop::RunUsage;
use serde_json::json;
use tokio::runtime::Handle;
use tokio_util::sync::CancellationToken;
use vault_search::VaultArgs;
use vault_search::tools::{ExecutionArgs, run_plan, texts_of_change};
use vault_search::{CliResult, Out, Outcome, sanitize, sanitize_line};
use vault_tools::approval::{Answer, Approver, ChangeRequest, PreparedChange, now, settle};
use vault_tools::{Cancel, ErrorKind, Grants, Result};

use super::panel::{ChangeView, Key, key};
use crate::call_line::spent_text;
use crate::change_text::{kind, what_undo_does};
use crate::changes::carry_out as carry_out_in;
use crate::cli::plan::{not_written, offer_macro, write_on_screen};
use crate::cli::screen::Screen;
use crate::cli::stop::{Interrupts, Stop};
use crate::conversation::Conversation;
use crate::plan_writer::PlanReply;
use crate::settings::Settings;
use crate::workspace::Workspace;

/// Undoes a transaction, or the newest change in all vaults. If several vaults have a transaction of this number, the
/// newest one is undone.
///
/// # Errors
/// The errors of the vault; nothing to undo.
pub(super) fn undo(workspace: &Workspace, transaction: Option<u64>, screen: &mut Screen, stop: &Stop) -> Result<()> {
    let time = |number: usize| {
        let vault = &workspace.vaults()[number].vault;
        let found = match transaction {
            None => vault.newest_undoable().ok()?,
            Some(id) => vault.transactions().ok()?.into_iter().find(|info| info.id.0 == id)?,
        };
        Some(found.time)
    };
    // If no vault has such a transaction, the first vault reports the error.
    let vault = (0..workspace.vaults().len()).max_by_key(|number| (time(*number), usize::MAX - number)).unwrap_or(0);
    carry_out(workspace, vault, &ChangeRequest::Undo { transaction }, "undone", screen, stop)
}

/// Writes a conversation into a new note.
///
/// # Errors
/// The errors of the tool that writes it; nothing to write.
pub(super) fn save(conversation: &Conversation, note: &str, screen: &mut Screen, stop: &Stop) -> Result<()> {
    let content = conversation.export()?;
    let path = if note.ends_with(".md") { note.to_owned() } else { format!("{note}.md") };
    let workspace = Arc::clone(conversation.tools().workspace());
    let args = json!({ "path": path, "content": content, "mode": "create" });
    let route = workspace.with(|vaults| vaults.route("write_note", args))?;
    let vault = route.vaults.first().copied().unwrap_or_default();
    let request = ChangeRequest::Call { tool: "write_note".to_owned(), args: route.args };
    let done = format!("saved as {}", sanitize_line(&path));
    carry_out(&workspace, vault, &request, &done, screen, stop).map_err(|error| match error.kind() {
        // The tool's remedy is for a model.
        ErrorKind::Exists => error.with_remedy("save it under another name"),
        _ => error,
    })
}

fn carry_out(
    workspace: &Workspace,
    vault: usize,
    request: &ChangeRequest,
    done: &str,
    screen: &mut Screen,
    stop: &Stop,
) -> Result<()> {
    workspace.with(|vaults| {
        let prepared = request.prepare(vaults.toolbox(vault), &now(), Cancel::default())?;
        let mut panel = ChangePanel { screen: &mut *screen, has_refused: false };
        let settled = settle(prepared, &Grants::default(), &mut panel);
        let has_refused = panel.has_refused;
        let approved = match settled.map_err(|refused| refused.log(vaults.toolbox(vault))) {
            Ok(approved) => approved,
            Err(_) if has_refused => {
                screen.quiet("  no; nothing was done");
                return Ok(());
            }
            Err(error) => return Err(error),
        };
        let _busy = stop.busy();
        let ended = carry_out_in(approved, vaults, vault, Cancel::default(), &mut |_| {})?;
        let transaction = ended.transaction.map(|id| format!(" (transaction {id})")).unwrap_or_default();
        screen.quiet(&format!("  {done}{transaction}"));
        ended.notices.iter().for_each(|notice| screen.warn(notice));
        Ok(())
    })
}

/// The approver at the terminal: it shows the change, with keys below.
struct ChangePanel<'a> {
    screen: &'a mut Screen,
    has_refused: bool,
}

impl Approver for ChangePanel<'_> {
    fn ask(&mut self, change: &PreparedChange) -> Answer {
        let paint = self.screen.paint;
        let title = paint.bold(&format!("{}?", sanitize_line(&kind(change))));
        let (short, whole) = texts_of_change(change, Vec::new());
        let mut view = ChangeView::new(&short, whole);
        self.screen.show(&format!("{title}\n  {}\n\n{}", what_undo_does(change.risk()), paint.diff(&view.part)));
        loop {
            let mut keys = vec![('y', view.yes().to_owned()), ('n', "no (Esc)".to_owned())];
            keys.extend(view.key());
            match key(&keys, self.screen) {
                Ok(Key::Letter('y')) if view.is_whole() => return Answer::Yes,
                Ok(Key::Letter('y' | 'w')) => view.show_whole(paint),
                Ok(_) => break,
                Err(error) => return Answer::No(error),
            }
        }
        self.has_refused = true;
        Answer::Declined(None)
    }
}

/// Has the model write a plan, shows it, runs it once it is approved, and offers to save it as a macro. Adds the
/// model's usage to `spent`.
///
/// # Errors
/// The errors of the model, of the plan and of its execution.
pub(super) fn plan(
    conversation: &Conversation,
    settings: &Settings,
    instruction: &str,
    screen: &mut Screen,
    runtime: &Handle,
    spent: &mut RunUsage,
) -> CliResult<()> {
    let (mut out, mut of_plan) = (Out::stdout().indented(), RunUsage::default());
    let outcome = conversation.tools().with(|vaults| {
        let toolbox = vaults.toolbox(0);
        toolbox.set_now(now());
        let cancel = CancellationToken::new();
        let written = runtime.block_on(async {
            let mut interrupts = Interrupts::listen();
            let model = conversation.model();
            let writing = write_on_screen(instruction, toolbox, model, settings, screen, &cancel, &mut of_plan);
            let mut writing = std::pin::pin!(writing);
            loop {
                tokio::select! {
                    ended = &mut writing => break ended,
                    () = interrupts.next(), if !cancel.is_cancelled() => cancel.cancel(),
                }
            }
        });
        screen.quiet(&spent_text(&of_plan));
        *spent += of_plan;
        match written? {
            PlanReply::Plan(plan) => {
                // Ctrl-C ends the question or stops after the current step, and never `chat`.
                let _interrupts = Interrupts::pass_on(runtime);
                run_plan(toolbox, &plan, &ExecutionArgs::default(), &[], &mut out)
            }
            PlanReply::Answer(answer) => {
                out.line(&sanitize(answer.trim()))?;
                out.flush()?;
                Ok(Outcome::Nothing)
            }
            PlanReply::Stopped(stop) => Err(not_written(&stop)),
        }
    })?;
    if outcome == Outcome::Done {
        let open = &conversation.tools().workspace().vaults()[0];
        let vault_args = VaultArgs { vault: vec![open.vault.path().to_owned()], index: open.index.index_file.clone() };
        let _interrupts = Interrupts::pass_on(runtime);
        offer_macro(&vault_args, instruction, &mut out)?;
    }
    Ok(())
}
