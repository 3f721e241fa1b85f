//! The commands that a person types, and their effects. A command that changes notes is prepared, shown and approved
//! like a call of the model.

use std::collections::BTreeSet;

use agent_loop::{Event, RunUsage, StopReason as LoopStopReason};
use serde_json::{Map, Value, json};
use tokio::runtime::Handle;
use tokio::task::block_in_place;
use vault_search::sanitize_line;
use vault_tools::approval::{Answer, Approver, ChangeOutput, ChangeRequest, PreparedChange, UNDO, now, settle};
use vault_tools::plan::{self, CallId, Parameters, StepPreview, StepState, validate};
use vault_tools::{
    Cancel, Error as ToolsError, ErrorKind, Grants, Macro, Macros, Permission, Result as ToolsResult, Risk, Vaults,
};

use super::display::{code, fenced, whole};
use super::forms;
use super::permission_requests::{Choice, ClientAnswer, PermissionPrompt, Questioner, ROUNDS, yes_or_no};
use super::turn_state::TurnState;
use super::updates::Updates;
use super::vault_methods::{Approval, ApprovalPlan, ApprovalStep, save_macro};
use super::wire::{
    AvailableCommand, AvailableCommandInput, Error, NoticeSeverity, Plan, PlanEntry, PlanEntryPriority,
    PlanEntryStatus, SessionUpdate, StopReason, ToolCallId, ToolCallStatus, ToolCallUpdateFields, ToolKind,
    UnstructuredCommandInput, text,
};
use crate::change_text::{title, what_undo_does};
use crate::changes::{blocking, carry_out};
use crate::conversation::NoteTools;
use crate::loop_error::stop_text;
use crate::plan_writer::{PlanReply, write};
use crate::settings::Settings;
use crate::workspace::OpenVault;

/// A parsed command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Command {
    Plan(String),
    Undo(String),
    Macro(String),
    Tools,
    Compact,
    Continue,
}

/// The name, the description and the placeholder of the argument.
const COMMANDS: [(&str, &str, Option<&str>); 6] = [
    ("plan", "Write a plan for an instruction, show its changes, and run it once you approve it", Some("what to do")),
    ("undo", "Undo the last change of the notes, or the one with this number", Some("[transaction]")),
    ("macro", "List macros, run one, or save the last plan as one", Some("[NAME [PARAMETER=VALUE …] | save NAME]")),
    ("tools", "List the tools that the model has, and which of them ask", None),
    ("compact", "Make the conversation shorter for the model", None),
    ("continue", "Continue a saved conversation that waits for a decision", None),
];

/// Returns the commands for the editor's list.
pub(super) fn available() -> Vec<AvailableCommand> {
    let command = |(name, what, hint): &(&str, &str, Option<&str>)| {
        let input = hint.map(|hint| AvailableCommandInput::Unstructured(UnstructuredCommandInput::new(hint)));
        AvailableCommand::new(*name, *what).input(input)
    };
    COMMANDS.iter().map(command).collect()
}

impl Command {
    /// Parses a message that begins with the name of a command. Any other message is for the model.
    pub fn parse(said: &str) -> Option<Self> {
        let line = said.trim().strip_prefix('/')?;
        let (name, rest) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
        let rest = rest.trim().to_owned();
        Some(match name {
            "plan" => Self::Plan(rest),
            "undo" => Self::Undo(rest),
            "macro" => Self::Macro(rest),
            "tools" => Self::Tools,
            "compact" => Self::Compact,
            "continue" => Self::Continue,
            _ => return None,
        })
    }
}

/// How a command ended, other than by an error.
enum CommandEnd {
    Done,
    Cancelled,
}

/// Runs a command. Errors of the command are shown to the person.
///
/// # Errors
/// Only errors of the protocol.
pub(super) async fn run(
    command: Command,
    state: &mut TurnState,
    questioner: &Questioner<'_>,
    settings: &Settings,
) -> Result<StopReason, Error> {
    let ended = match command {
        Command::Plan(instruction) => plan(&instruction, state, questioner, settings).await,
        Command::Undo(which) => undo(&which, state, questioner).await,
        Command::Macro(which) => run_macro(&which, state, questioner).await,
        Command::Tools => {
            let list = block_in_place(|| tools(state));
            state.updates.paragraph(&list);
            Ok(CommandEnd::Done)
        }
        Command::Compact => {
            state.conversation.compact_next();
            state.updates.paragraph("The conversation is made shorter before the next message.");
            Ok(CommandEnd::Done)
        }
        Command::Continue => Ok(CommandEnd::Done),
    };
    match ended {
        Ok(CommandEnd::Done) => Ok(StopReason::EndTurn),
        Ok(CommandEnd::Cancelled) => Ok(StopReason::Cancelled),
        Err(error) if error.kind() == ErrorKind::Cancelled && questioner.cancel.is_cancelled() => {
            Ok(StopReason::Cancelled)
        }
        Err(error) => {
            state.updates.paragraph(&fenced(&error.one_line()));
            Ok(StopReason::EndTurn)
        }
    }
}

/// Runs a closure on the toolboxes of the session's vaults.
fn with<T>(state: &TurnState, act: impl FnOnce(&mut Vaults) -> T) -> T {
    block_in_place(|| state.conversation.tools().with(act))
}

async fn plan(
    instruction: &str,
    state: &mut TurnState,
    questioner: &Questioner<'_>,
    settings: &Settings,
) -> ToolsResult<CommandEnd> {
    if instruction.is_empty() {
        return Err(
            ToolsError::new(ErrorKind::InvalidArguments, "the instruction is missing").with_remedy("/plan WHAT TO DO")
        );
    }
    state.updates.thinking("Writing a plan.");
    let TurnState { conversation, updates, .. } = state;
    let (tools, model) = (conversation.tools().clone(), conversation.model().clone());
    let mut on_event = |event: Event| {
        // The text is the plan's JSON.
        if !matches!(event, Event::Text(_) | Event::Commentary(_)) {
            updates.event(event);
        }
    };
    // The toolbox cannot leave this thread while the model writes.
    let written = block_in_place(|| {
        tools.with(|vaults| {
            let toolbox = vaults.toolbox(0);
            toolbox.set_now(now());
            // The usage has already been reported by the events.
            let spent = &mut RunUsage::default();
            let writing = write(instruction, toolbox, &model, settings, &mut on_event, questioner.cancel, spent);
            Handle::current().block_on(writing)
        })
    })?;
    let plan = match written {
        PlanReply::Plan(plan) => plan,
        PlanReply::Answer(answer) => {
            state.updates.paragraph(&answer);
            return Ok(CommandEnd::Done);
        }
        PlanReply::Stopped(LoopStopReason::Cancelled) => return Ok(CommandEnd::Cancelled),
        PlanReply::Stopped(stop) => {
            let message = format!("{}; nothing was done", stop_text(&stop));
            return Err(ToolsError::new(ErrorKind::Refused, message));
        }
    };
    let Some(ended) = run_plan(plan, Map::new(), state, questioner).await? else { return Ok(CommandEnd::Cancelled) };
    if ended {
        state.updates.paragraph("`/macro save NAME` saves this plan, so that it can run again without a model.");
    }
    Ok(CommandEnd::Done)
}

/// Runs a plan once it is approved. Returns whether it ran, or `None` if the turn was cancelled.
async fn run_plan(
    plan: Value,
    mut parameters: Map<String, Value>,
    state: &mut TurnState,
    questioner: &Questioner<'_>,
) -> ToolsResult<Option<bool>> {
    let missing = with(state, |vaults| {
        let toolbox = vaults.toolbox(0);
        let checked = validate(&plan, toolbox)?;
        let mut known = Parameters::needed(toolbox, &checked.parameters)?;
        parameters.iter().for_each(|(name, value)| known.set(name.clone(), value.clone()));
        Ok::<_, ToolsError>(known.missing(&checked.parameters).into_iter().map(str::to_owned).collect::<Vec<_>>())
    })?;
    if !missing.is_empty() {
        let fields = missing.iter().map(|name| (name.clone(), json!(""))).collect::<Map<_, _>>();
        let fields = Value::Object(fields);
        if !questioner.has_forms {
            let message = format!("the plan needs values for {}", missing.join(", "));
            return Err(ToolsError::new(ErrorKind::InvalidArguments, message).with_remedy("give them as NAME=VALUE"));
        }
        let id = state.updates.command("plan", ToolKind::Edit, "plan: its parameters");
        let filled = questioner.form(&id, "The values that the plan needs", forms::arguments(&fields)).await;
        let is_filled = matches!(filled, ClientAnswer::Given(_));
        let status = if is_filled { ToolCallStatus::Completed } else { ToolCallStatus::Failed };
        state.updates.update(&id, ToolCallUpdateFields::new().status(status));
        match filled {
            ClientAnswer::Given(filled) => {
                let values = forms::arguments_in(&fields, &filled).unwrap_or_default();
                parameters.extend(values.as_object().cloned().unwrap_or_default());
            }
            ClientAnswer::None(_) => return Ok(Some(false)),
            ClientAnswer::Cancelled => return Ok(None),
        }
    }
    let Some(done) = change(0, ChangeRequest::Plan { plan, parameters }, "plan", state, questioner).await? else {
        return Ok(None);
    };
    Ok(Some(done.is_some()))
}

async fn undo(which: &str, state: &mut TurnState, questioner: &Questioner<'_>) -> ToolsResult<CommandEnd> {
    let (vault, number) = which_vault(which, state)?;
    let transaction = match number.trim() {
        "" => None,
        number => Some(number.parse().map_err(|_| {
            ToolsError::new(ErrorKind::InvalidArguments, format!("{number:?} is not a transaction number"))
        })?),
    };
    let done = change(vault, ChangeRequest::Undo { transaction }, UNDO, state, questioner).await?;
    Ok(if done.is_some() { CommandEnd::Done } else { CommandEnd::Cancelled })
}

/// Splits off the name of the vault at the beginning of the text; it is required only if there are several vaults.
fn which_vault<'t>(text: &'t str, state: &TurnState) -> ToolsResult<(usize, &'t str)> {
    let vaults = state.conversation.tools().workspace().vaults();
    if vaults.len() == 1 {
        return Ok((0, text));
    }
    let begins = |(at, open): (usize, &OpenVault)| {
        let rest = text.strip_prefix(&*open.name)?;
        (rest.is_empty() || rest.starts_with(char::is_whitespace)).then_some((at, rest))
    };
    let named = vaults.iter().enumerate().filter_map(begins).max_by_key(|(at, _)| vaults[*at].name.len());
    named.ok_or_else(|| {
        let names: Vec<&str> = vaults.iter().map(|open| open.name.as_str()).collect();
        ToolsError::new(ErrorKind::InvalidArguments, "there are several vaults")
            .with_remedy(format!("begin with the name of one: {}", names.join(", ")))
    })
}

async fn run_macro(which: &str, state: &mut TurnState, questioner: &Questioner<'_>) -> ToolsResult<CommandEnd> {
    if which.is_empty() {
        let list = with(state, macros)?;
        state.updates.paragraph(&list);
        return Ok(CommandEnd::Done);
    }
    if let Some(name) = which.strip_prefix("save ") {
        let saved = with(state, |vaults| save_macro(vaults.toolbox(0), name.trim(), None))?;
        state.updates.paragraph(&format!("Saved {}.", code(&saved.name)));
        return Ok(CommandEnd::Done);
    }
    let (saved, given) = with(state, |vaults| named_macro(vaults, which))?;
    let parameters = saved.values(given);
    let ran = run_plan(saved.plan, parameters, state, questioner).await?;
    Ok(if ran.is_some() { CommandEnd::Done } else { CommandEnd::Cancelled })
}

fn macros(vaults: &mut Vaults) -> ToolsResult<String> {
    let macros = Macros::new(vaults.toolbox(0).vault().state()).all()?;
    let line = |of: &Macro| {
        let names: Vec<&str> = of.parameters.iter().map(|parameter| parameter.name.as_str()).collect();
        let needs = if names.is_empty() { String::new() } else { format!(" ({})", names.join(", ")) };
        format!("{}: {}{needs}", sanitize_line(&of.name), sanitize_line(&of.description))
    };
    Ok(fenced(&macros.iter().map(line).collect::<Vec<_>>().join("\n")))
}

/// Parses the name of a macro, and the parameter values after it.
fn named_macro(vaults: &mut Vaults, which: &str) -> ToolsResult<(Macro, Map<String, Value>)> {
    let all = Macros::new(vaults.toolbox(0).vault().state());
    let words = words(which);
    let names = words.iter().take_while(|word| !word.contains('=')).count();
    let saved = all.get(&words[..names].join(" "))?;
    let mut given = Map::new();
    for word in &words[names..] {
        let Some((name, value)) = word.split_once('=').filter(|(name, _)| !name.is_empty()) else {
            let message = format!("{word:?} is not of the form NAME=VALUE");
            return Err(ToolsError::new(ErrorKind::InvalidArguments, message)
                .with_remedy("put a value with spaces in quotes: NAME=\"two words\""));
        };
        given.insert(name.to_owned(), json!(value));
    }
    Ok((saved, given))
}

/// Splits a line into words; double quotes keep spaces in a word.
fn words(line: &str) -> Vec<String> {
    let (mut words, mut word, mut is_quoted) = (Vec::new(), String::new(), false);
    for c in line.chars() {
        match c {
            '"' => is_quoted = !is_quoted,
            c if c.is_whitespace() && !is_quoted => {
                words.extend(Some(std::mem::take(&mut word)).filter(|w| !w.is_empty()))
            }
            c => word.push(c),
        }
    }
    words.extend(Some(word).filter(|word| !word.is_empty()));
    words
}

/// Lists each tool with its permission in the settings.
fn tools(state: &TurnState) -> String {
    let tools = state.conversation.tools();
    let lines = tools.with(|vaults| {
        let toolbox = vaults.toolbox(0);
        let mut lines = Vec::new();
        for spec in toolbox.specs(None).into_iter().filter(|spec| tools.has(&spec.name) || has_alias(tools, spec)) {
            let call = vault_tools::Call::new(&spec.name, spec.toolset, spec.risk, &[]);
            let ruling = match toolbox.policy().decide(&call, &Grants::default()) {
                Permission::Allow => "runs",
                Permission::Ask => "asks",
                Permission::Deny(_) => "denied",
            };
            let what = spec.description.split(". ").next().unwrap_or_default();
            lines.push(format!("{ruling:6}  {}: {}", spec.name, sanitize_line(what)));
        }
        lines
    });
    if lines.is_empty() { "The model has no tools.".to_owned() } else { fenced(&lines.join("\n")) }
}

fn has_alias(tools: &NoteTools, spec: &vault_tools::ToolSpec) -> bool {
    spec.alias.as_ref().is_some_and(|alias| tools.has(alias))
}

/// Prepares a change, asks if the settings require it, and makes it. Returns `Some(None)` if the person declined, and
/// `None` if the turn was cancelled.
async fn change(
    vault: usize,
    request: ChangeRequest,
    name: &str,
    state: &mut TurnState,
    questioner: &Questioner<'_>,
) -> ToolsResult<Option<Option<ChangeOutput>>> {
    if state.is_read_only() {
        return Err(
            ToolsError::new(ErrorKind::Denied, "this conversation is read only").with_remedy("choose the other mode")
        );
    }
    let prepared = with(state, |vaults| request.prepare(vaults.toolbox(vault), &now(), Cancel::default()))?;
    let kind = if prepared.risk() == Risk::Delete { ToolKind::Delete } else { ToolKind::Edit };
    let id = state.updates.command(name, kind, &title(&prepared).replace('`', "'"));
    let mut progress = Progress::of(&prepared);
    progress.show(&mut state.updates);
    let mut question = CommandQuestion {
        questioner,
        updates: &mut state.updates,
        tools: state.conversation.tools().clone(),
        request: &request,
        vault,
        name,
        id: &id,
        problem: None,
        left_out: BTreeSet::new(),
        ended: None,
    };
    let settled = settle(prepared, &Grants::default(), &mut question);
    let (is_partial, ended) = (!question.left_out.is_empty(), question.ended);
    let approved = settled.map_err(|refused| with(state, |vaults| refused.log(vaults.toolbox(vault))));
    // The mode may have changed while the question was open.
    let approved = match state.conversation.tools().closed() {
        Some(reason) => Err(ToolsError::new(ErrorKind::Denied, reason)),
        None => approved,
    };
    let approved = match (approved, ended) {
        (Ok(approved), _) => approved,
        (Err(error), ended) => {
            state.updates.update(&id, ToolCallUpdateFields::new().status(ToolCallStatus::Failed));
            return match ended {
                Some(CommandEnd::Cancelled) => Ok(None),
                Some(CommandEnd::Done) => {
                    state.updates.paragraph("Nothing was changed.");
                    Ok(Some(None))
                }
                None => Err(error),
            };
        }
    };
    if is_partial {
        progress = Progress::of_steps(approved.change(), |step| step.state == StepState::Ready);
        progress.show(&mut state.updates);
    }
    state.updates.update(&id, ToolCallUpdateFields::new().status(ToolCallStatus::InProgress));
    let (tools, (events, mut heard)) = (state.conversation.tools().clone(), tokio::sync::mpsc::unbounded_channel());
    let running = blocking(questioner.cancel.cancelled(), move |cancel| {
        tools.with(|vaults| carry_out(approved, vaults, vault, cancel, &mut |event| _ = events.send(event.clone())))
    });
    let showing = async {
        while let Some(event) = heard.recv().await {
            progress.follow(&event, &mut state.updates);
        }
    };
    let (done, ()) = tokio::join!(running, showing);
    let status = if done.is_ok() { ToolCallStatus::Completed } else { ToolCallStatus::Failed };
    let transaction = done.as_ref().ok().and_then(|done| done.transaction);
    state.updates.end_command(&id, status, transaction);
    let done = done?;
    done.notices.iter().for_each(|notice| state.updates.notice(NoticeSeverity::Info, &sanitize_line(notice)));
    state.updates.paragraph(&match done.transaction {
        Some(transaction) => format!("Done: transaction {transaction}. `/undo {transaction}` undoes it."),
        None => "Done.".to_owned(),
    });
    Ok(Some(Some(done)))
}

/// The approver of commands, which sends a permission request to the editor.
struct CommandQuestion<'a, 'c> {
    questioner: &'a Questioner<'c>,
    updates: &'a mut Updates,
    tools: NoteTools,
    request: &'a ChangeRequest,
    vault: usize,
    name: &'a str,
    id: &'a ToolCallId,
    /// Why it is asked again.
    problem: Option<String>,
    /// The steps that the person left out.
    left_out: BTreeSet<CallId>,
    /// How the command ends if the change was not approved.
    ended: Option<CommandEnd>,
}

impl Approver for CommandQuestion<'_, '_> {
    fn ask(&mut self, change: &PreparedChange) -> Answer {
        let said = change.plan().map(|plan| plan.notices.join("\n")).filter(|said| !said.is_empty());
        let said = said.map(|said| format!("\n\n{}", whole(&said))).unwrap_or_default();
        let steps: Vec<StepPreview> = change.plan().map(|plan| plan.steps.clone()).unwrap_or_default();
        let has_steps = steps.len() > 1 && self.questioner.has_forms && self.questioner.has_approvals;
        for _ in 0..ROUNDS {
            let prompt = PermissionPrompt {
                id: self.id,
                title: title(change).replace('`', "'"),
                content: vec![text(format!("{}{said}", what_undo_does(change.risk())))],
                change: Some((self.vault, change.preview())),
                arguments: Value::Null,
                approval: self.approval(change),
            };
            let answer = self.questioner.permission(self.updates, prompt, yes_or_no(self.questioner, has_steps));
            let ended = match block_in_place(|| Handle::current().block_on(answer)) {
                ClientAnswer::Given(Choice::Yes) => return Answer::Yes,
                ClientAnswer::Given(choice @ (Choice::Pick | Choice::Again)) => {
                    if choice == Choice::Pick && !self.leave_out_steps(&steps) {
                        continue;
                    }
                    match self.prepare_again() {
                        Ok(other) => return Answer::Instead(Box::new(other)),
                        Err(error) => self.problem = Some(error.one_line()),
                    }
                    continue;
                }
                ClientAnswer::Cancelled => CommandEnd::Cancelled,
                _ => CommandEnd::Done,
            };
            self.ended = Some(ended);
            return Answer::Declined(None);
        }
        self.ended = Some(CommandEnd::Done);
        Answer::Declined(None)
    }
}

impl CommandQuestion<'_, '_> {
    /// Records the steps that the person unticked. Returns whether any step is left.
    fn leave_out_steps(&mut self, steps: &[StepPreview]) -> bool {
        let labels: Vec<String> = steps.iter().map(|step| step.preview.clone().unwrap_or(step.tool.clone())).collect();
        let answer = self.questioner.form(self.id, "The steps that run", forms::ticks("Run", &labels));
        let ClientAnswer::Given(filled) = block_in_place(|| Handle::current().block_on(answer)) else { return false };
        let unticked = forms::unticked(&filled, steps.len());
        if unticked.len() == steps.len() {
            return false;
        }
        self.left_out = unticked.into_iter().map(|at| CallId { step: steps[at].id.clone(), item: None }).collect();
        true
    }

    fn prepare_again(&self) -> ToolsResult<PreparedChange> {
        let prepare = |vaults: &mut Vaults| {
            self.request.prepare_without(vaults.toolbox(self.vault), &now(), &self.left_out, Cancel::default())
        };
        block_in_place(|| self.tools.with(prepare))
    }

    fn approval(&mut self, change: &PreparedChange) -> Approval {
        let touched = change.touched();
        let plan = change.plan().map(|plan| ApprovalPlan {
            goal: plan.plan.goal.clone(),
            assumptions: plan.plan.assumptions.clone(),
            steps: plan.steps.iter().map(step).collect(),
            notes: touched.notes,
            links: touched.links,
        });
        Approval {
            tool: self.name.to_owned(),
            purpose: None,
            question: title(change),
            risk: change.risk().into(),
            undo: what_undo_does(change.risk()).to_owned(),
            leaves: None,
            problem: self.problem.take(),
            plan,
            files: Vec::new(),
            folders: Vec::new(),
            notices: change.plan().map(|plan| plan.notices.clone()).unwrap_or_default(),
            parts: Vec::new(),
            items: Vec::new(),
        }
    }
}

fn step(step: &StepPreview) -> ApprovalStep {
    ApprovalStep {
        id: step.id.clone(),
        tool: step.tool.clone(),
        preview: step.preview.clone(),
        risk: step.risk.into(),
        calls: step.calls.len(),
        skipped: match &step.state {
            StepState::Ready => None,
            StepState::Skipped { reason } | StepState::Fails { reason } => Some(reason.clone()),
        },
        notices: step.notices.clone(),
    }
}

/// The progress of a plan's steps in the editor.
struct Progress {
    steps: Vec<String>,
    entries: Vec<PlanEntry>,
}

impl Progress {
    fn of(change: &PreparedChange) -> Self {
        Self::of_steps(change, |_| true)
    }

    fn of_steps(change: &PreparedChange, is_shown: impl Fn(&StepPreview) -> bool) -> Self {
        let steps = change.plan().map_or(&[][..], |plan| &plan.steps);
        let steps: Vec<&StepPreview> = steps.iter().filter(|step| is_shown(step)).collect();
        let entry = |step: &StepPreview| {
            let what = step.preview.as_deref().map(|what| format!(" {}", code(what))).unwrap_or_default();
            PlanEntry::new(format!("{}{what}", step.tool), PlanEntryPriority::Medium, PlanEntryStatus::Pending)
        };
        Self {
            steps: steps.iter().map(|step| step.id.clone()).collect(),
            entries: steps.into_iter().map(entry).collect(),
        }
    }

    fn show(&self, updates: &mut Updates) {
        if !self.entries.is_empty() {
            updates.send(SessionUpdate::Plan(Plan::new(self.entries.clone())));
        }
    }

    fn follow(&mut self, event: &plan::Event, updates: &mut Updates) {
        let (step, status) = match event {
            plan::Event::StepStarted { step, .. } => (step, PlanEntryStatus::InProgress),
            plan::Event::StepFinished { step, .. } | plan::Event::StepSkipped { step, .. } => {
                (step, PlanEntryStatus::Completed)
            }
            _ => return,
        };
        if let Some(at) = self.steps.iter().position(|id| id == step) {
            self.entries[at].status = status;
            self.show(updates);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_whole_words_at_the_beginning() {
        assert_eq!(Command::parse("/plan tidy up"), Some(Command::Plan("tidy up".to_owned())));
        assert_eq!(Command::parse(" /undo "), Some(Command::Undo(String::new())));
        assert_eq!(Command::parse("/macro a b=c"), Some(Command::Macro("a b=c".to_owned())));
        for none in ["plan x", "/planet", "/etc/hosts is a file", "/", "what is /plan?"] {
            assert_eq!(Command::parse(none), None, "{none}");
        }
        for (name, ..) in COMMANDS {
            assert!(Command::parse(&format!("/{name}")).is_some(), "{name}");
        }
    }

    #[test]
    fn values_in_quotes_are_one_word() {
        assert_eq!(words(r#"weekly review  topic="two words" n=1"#), ["weekly", "review", "topic=two words", "n=1"]);
        assert_eq!(words(""), Vec::<String>::new());
    }
}
