//! `vault-agent ask`: a question to the notes, answered with the places that the answer is from.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use agent_loop::{
    About, Decision, ErrorKind as ModelError, Event, Outcome as RunOutcome, Question, Spent, Status, StopReason,
};
use clap::Args;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;
use vault_search::VaultArgs;
use vault_search::tools::{EditorArgs, Question as Shown, Reply, TerminalPrompt, ask_about, editor, tick};
use vault_search::{CliResult, Failure, Out, Outcome, can_ask, counted, note, sanitize, sanitize_line, say};
use vault_tools::approval::{Answer, Approver, ChangeRequest, Preapproved, PreparedChange, now, settle};
use vault_tools::{Cancel, Editor, Error, ErrorKind, Grants, Result};

use super::call_line::{call_line, item_line, spent_text};
use crate::changes::{carry_out, read_all};
use crate::conversation::{Attachment, CitationCheck, Conversation, Offer, Source, Turn, cited_note, with_attached};
use crate::loop_error::{retrying, said_of_stop};
use crate::model;
use crate::settings::{SettingArgs, Settings};
use crate::workspace::{Granted, Workspace};

/// How many passages are shown where there is no model.
const PASSAGES: usize = 5;

/// How often a signal is looked for.
const TICK: Duration = Duration::from_millis(30);

#[derive(Debug, Args)]
pub(super) struct AskArgs {
    /// The question; `-` reads it from standard input
    #[arg(required = true)]
    pub question: Vec<String>,
    /// The note that you are viewing: "this note" means it
    #[arg(long, value_name = "NOTE", conflicts_with = "active_file")]
    pub note: Option<String>,
    /// Insert the answer into that note, after your approval
    ///
    /// At the cursor that --cursor names, else at the note's end.
    #[arg(long)]
    pub insert: bool,
    /// Insert without asking
    #[arg(long, requires = "insert")]
    pub yes: bool,
    /// Print one JSON document
    #[arg(long, help_heading = "Output")]
    pub json: bool,
    /// Print the JSON schema of that document
    #[arg(long, help_heading = "Output")]
    pub schema: bool,
    #[command(flatten)]
    pub editor: EditorArgs,
    #[command(flatten)]
    pub settings: SettingArgs,
}

/// What `--json` prints.
#[derive(Debug, Serialize, JsonSchema)]
struct Record {
    /// The question.
    question: String,
    /// The answer; `null` where no model is configured.
    answer: Option<String>,
    /// The places that the answer cites.
    sources: Vec<Source>,
    /// Citations and quotes that were taken out because they do not exist, and why.
    removed: Vec<String>,
    /// The searches and other calls that were made.
    calls: Vec<CallRecord>,
    /// The passages that fit best, where no model is configured.
    #[serde(skip_serializing_if = "Option::is_none")]
    passages: Option<Value>,
    /// How many notes there are.
    notes: usize,
    /// How many passages have no vector yet, and are found by words alone.
    pending: usize,
    /// Why the run ended: "answered", or what went wrong.
    stop: String,
    /// Tokens in and out.
    tokens: u64,
    /// What it cost in US dollars, where the provider says so.
    #[serde(skip_serializing_if = "Option::is_none")]
    cost: Option<f64>,
    /// The saved conversation, for `vault-agent resume`.
    #[serde(skip_serializing_if = "Option::is_none")]
    session: Option<String>,
}

#[derive(Debug, Serialize, JsonSchema)]
struct CallRecord {
    /// The tool.
    tool: String,
    /// Its arguments.
    args: Value,
    /// How it ended: ok, error, denied or cancelled.
    #[schemars(with = "String")]
    status: Status,
    /// Whether it returned something.
    has_result: bool,
}

impl Record {
    /// Whether the notes were searched in vain.
    fn found_nothing(&self) -> bool {
        let is_in_vain = |call: &CallRecord| call.status == Status::Ok && !call.has_result;
        !self.calls.is_empty() && self.calls.iter().all(is_in_vain) && self.sources.is_empty()
    }
}

pub(super) fn ask(vault_args: &VaultArgs, args: &AskArgs, out: &mut Out) -> CliResult {
    if args.schema {
        return out.schema::<Record>();
    }
    let question = question(args)?;
    let settings = Settings::load(&args.settings)?;
    let workspace = Arc::new(Workspace::open(vault_args, Granted::default())?);
    let mut editor = args.editor.clone();
    editor.active_file = editor.active_file.or_else(|| args.note.clone());
    let editor = editor_of(&workspace, &editor)?;
    if args.insert && editor.active_file.is_none() {
        let message = "there is no note to insert the answer into";
        return Err(Error::new(ErrorKind::InvalidArguments, message).with_remedy("add --note NOTE").into());
    }
    let (notes, pending) = counts(&workspace);
    let mut record = Record {
        question: question.clone(),
        answer: None,
        sources: Vec::new(),
        removed: Vec::new(),
        calls: Vec::new(),
        passages: None,
        notes,
        pending,
        stop: "answered".to_owned(),
        tokens: 0,
        cost: None,
        session: None,
    };
    let Some(model) = model::open(&settings)? else {
        return passages(&workspace, record, args.json, out);
    };
    let mut conversation = Conversation::begin(Arc::clone(&workspace), model, settings, editor, Offer::Reading)?;
    let runtime = super::runtime::runtime()?;
    let answered = runtime.block_on(answer(&mut conversation, &mut record, args.json || args.insert, out));
    runtime.shutdown_background();
    let outcome = answered?;
    record.session = Some(conversation.info().id.clone());
    record.tokens = outcome.spent.tokens;
    record.cost = outcome.spent.cost.map(|millionths| millionths as f64 / 1e6);
    record.stop = outcome.stop.to_string();
    // A sync beside the answer may have gone on.
    (record.notes, record.pending) = counts(&workspace);
    if !args.json && !args.insert && !record.sources.is_empty() {
        out.line("\nSources")?;
        for Source { path, line } in &record.sources {
            out.line(&format!("  {}:{line}", out.paint.path(&sanitize_line(path))))?;
        }
    }
    // What standard error says about it comes after it.
    out.flush()?;
    record.removed.iter().for_each(|removed| say("taken out", removed));
    let answer = record.answer.as_deref().unwrap_or_default();
    let ended = match ended(&outcome.stop) {
        // Whatever the answer says then, no note holds it.
        Ok(Outcome::Done) if record.found_nothing() && !args.insert => Ok(Outcome::Nothing),
        Ok(Outcome::Done) if args.insert => insert(&workspace, &conversation, answer, args.yes).map(|()| Outcome::Done),
        ended => ended,
    };
    if args.json {
        out.json(&record)?;
    } else {
        // An answer that is in no note is not lost.
        if args.insert && ended.is_err() && !answer.is_empty() {
            out.line(&sanitize(answer))?;
            out.flush()?;
        }
        note(&summary(&record, &outcome.spent));
    }
    ended
}

/// How a command ends whose model has stopped.
fn ended(stop: &StopReason) -> CliResult {
    match stop {
        StopReason::Answered => Ok(Outcome::Done),
        StopReason::Empty => Ok(Outcome::Nothing),
        StopReason::Limit { .. } | StopReason::Length => Err(Failure::Refused(said_of_stop(stop))),
        StopReason::Cancelled => Err(Failure::Interrupted("the conversation is saved")),
        stop => Err(Failure::Error(stop.to_string())),
    }
}

fn question(args: &AskArgs) -> Result<String> {
    let text = match args.question.as_slice() {
        [dash] if dash == "-" => {
            std::io::read_to_string(std::io::stdin()).map_err(|error| Error::io("standard input", &error))?
        }
        words => words.join(" "),
    };
    match text.trim() {
        "" => Err(Error::new(ErrorKind::InvalidArguments, "the question is empty")),
        text => Ok(text.to_owned()),
    }
}

/// The editor that the command line describes, around the first vault.
pub(super) fn editor_of(workspace: &Workspace, args: &EditorArgs) -> Result<Editor> {
    let [first, others @ ..] = workspace.vaults() else { return Ok(Editor::default()) };
    let names_a_note = args.active_file.is_some() || args.selection_from.is_some();
    if names_a_note && !others.is_empty() {
        let message = "a note that is viewed and a selection are of one vault, and several are open";
        return Err(Error::new(ErrorKind::InvalidArguments, message).with_remedy("name one vault"));
    }
    editor(&first.vault, &first.policy, args)
}

/// How many notes there are, and how many passages have no vector.
pub(super) fn counts(workspace: &Workspace) -> (usize, usize) {
    let status = |open: &crate::workspace::OpenVault| open.vault.index().ok()?.status().ok();
    workspace
        .vaults()
        .iter()
        .filter_map(status)
        .fold((0, 0), |(notes, pending), status| (notes + status.notes, pending + status.pending))
}

/// The question with the selection that the command line names.
fn with_selection(question: &str, editor: &Editor) -> String {
    let attached = editor.selection.as_ref().map(|selection| Attachment {
        path: selection.span.and(editor.active_file.as_ref()).map(|path| path.as_str().to_owned()),
        source: None,
        lines: selection.span.map(|span| format!("{}-{}", span.from.line + 1, span.to.line + 1)),
        text: Some(selection.text.clone()),
    });
    with_attached(question, attached.as_slice())
}

/// Drives the conversation to its end; the answer is printed as it comes, unless it is collected.
async fn answer(
    conversation: &mut Conversation,
    record: &mut Record,
    is_collected: bool,
    out: &mut Out,
) -> Result<RunOutcome> {
    let cancel = CancellationToken::new();
    let watching = tokio::spawn(cancel_on_signal(cancel.clone()));
    // Notes are read once more for this alone, so that what the model was told plays no part.
    let workspace = Arc::clone(conversation.tools().workspace());
    let question = record.question.clone();
    let message = with_selection(&question, &conversation.tools().editor());
    let mut check = CitationCheck::new(&question, move |path: &str| cited_note(&workspace, path));
    let mut text = String::new();
    let mut turn = None;
    let mut started = BTreeMap::new();
    loop {
        let calls = &mut record.calls;
        let mut show = |shown: String| {
            text.push_str(&shown);
            if !is_collected && !shown.is_empty() {
                let _ = out.text(&sanitize(&shown)).and_then(|()| out.flush());
            }
        };
        let mut on_event = |event: Event| match event {
            Event::Text(more) => show(check.push(&more)),
            Event::ToolStarted { index, call } => _ = started.insert(index, call),
            Event::ToolFinished { index, result } => {
                let call = started.remove(&index);
                say("tool", &call_line(call.as_ref(), &result));
                let args = call.map(|call| call.arguments).unwrap_or_default();
                let has_result = result.status == Status::Ok && result.text() != "[]";
                calls.push(CallRecord { tool: result.name, args, status: result.status, has_result });
            }
            Event::Warning(warning) => say("warning", &warning),
            Event::Retry { delay, failure, .. } => {
                note(&retrying(&failure, delay));
            }
            Event::Compacted { .. } => note("the conversation was made shorter for the model"),
            Event::NotCompacted { failure } if failure.kind != ModelError::ContextTooLong => {
                note(&format!("the conversation could not be made shorter: {failure}"))
            }
            _ => {}
        };
        let next = match turn.take() {
            None => conversation.say(&message, &mut on_event, &cancel).await?,
            Some(()) => conversation.go_on(&mut on_event, &cancel).await?,
        };
        match next {
            Turn::Done(outcome) => {
                show(check.finish());
                watching.abort();
                if !is_collected && !text.ends_with('\n') && !text.is_empty() {
                    let _ = out.text("\n");
                }
                record.sources = check.sources().to_vec();
                record.removed = check.removed().to_vec();
                record.answer = Some(text.trim().to_owned());
                conversation.add_sources(&record.sources, &record.removed)?;
                return Ok(outcome);
            }
            Turn::Waiting(questions) => {
                for question in questions {
                    let decision = tokio::task::block_in_place(|| decision(conversation, &question))?;
                    conversation.decide(&question, decision)?;
                }
                turn = Some(());
            }
        }
    }
}

/// A person's decision at the terminal; nobody there is a no.
fn decision(conversation: &Conversation, question: &Question) -> Result<Decision> {
    let denied = |reason: &str| Decision::Deny { reason: Some(reason.to_owned()) };
    if !can_ask() {
        return Ok(denied("no one is there to approve it"));
    }
    let panel = match conversation.panel(question) {
        Ok(Some(panel)) => panel,
        Ok(None) => return Ok(Decision::Allow),
        Err(error) => return Ok(denied(&error.to_string())),
    };
    if let (Some(items), About::Sharing { .. }) = (&panel.items, &question.about) {
        let lines: Vec<String> = items.iter().map(|item| item_line(item)).collect();
        let ticked = tick(&format!("{} {}", panel.title, panel.leaves), &lines, |at| items[at].clone());
        let withheld = ticked.iter().enumerate().filter(|(_, is)| !**is).map(|(at, _)| at).collect();
        return Ok(Decision::Share { withheld });
    }
    let head = format!("{}\n{}\n", panel.what_undo_does, panel.leaves);
    let (short, whole) = (head.clone() + &panel.short, head + &panel.whole);
    let about = Shown { question: &panel.title, short: &short, whole: &whole, ..Shown::default() };
    Ok(if ask_about(&about)? == Reply::Yes { Decision::Allow } else { denied("the person said no") })
}

/// Cancels when the process is asked to stop.
pub(super) async fn cancel_on_signal(cancel: CancellationToken) {
    let listening = vault_search::listen();
    while !listening.is_cancelled() {
        tokio::time::sleep(TICK).await;
    }
    cancel.cancel();
}

/// What was searched, in one sentence.
fn summary(record: &Record, spent: &Spent) -> String {
    let calls = match record.calls.len() {
        0 => "nothing was searched".to_owned(),
        calls => counted(calls, "call"),
    };
    let pending = match record.pending {
        0 => String::new(),
        1 => "; 1 passage is found by words alone until it has a vector".to_owned(),
        pending => format!("; {pending} passages are found by words alone until they have vectors"),
    };
    format!("{calls} in {}{pending}; {}", counted(record.notes, "note"), spent_text(spent))
}

/// What helps without a model: the passages that fit best, and how to set a model up.
fn passages(workspace: &Workspace, mut record: Record, is_json: bool, out: &mut Out) -> CliResult {
    let args = json!({ "query": record.question, "top_k": PASSAGES });
    let found = workspace.with(|vaults| -> Result<Value> {
        let route = vaults.route("search_notes", args)?;
        Ok(read_all(vaults, "search_notes", &route, Cancel::default())?.value)
    })?;
    let found = found.as_array().cloned().unwrap_or_default();
    (record.notes, record.pending) = counts(workspace);
    let (outcome, what) = match (found.is_empty(), record.notes) {
        (true, 0) => (Outcome::Nothing, "this folder holds no notes"),
        (true, _) => (Outcome::Nothing, "no passage fits"),
        (false, _) => (Outcome::Done, "these are the passages that fit best"),
    };
    if is_json {
        record.stop = "no model is configured".to_owned();
        record.passages = Some(Value::Array(found));
        out.json(&record)?;
    } else {
        for passage in &found {
            let text = |name: &str| sanitize_line(passage[name].as_str().unwrap_or_default());
            let place = format!("{}:{}", text("path"), passage["line"]);
            let heading = text("heading");
            let heading = if heading.is_empty() { String::new() } else { format!(" › {heading}") };
            out.line(&format!("{}  {}{heading}", out.paint.path(&place), text("title")))?;
            for line in sanitize(passage["chunk"].as_str().unwrap_or_default().trim_end()).lines() {
                out.line(&format!("  {line}"))?;
            }
            out.line("")?;
        }
    }
    out.flush()?;
    note(&format!(
        "no model is configured, so nothing is answered; {what}. To have questions answered: `vault-agent config set \
         provider ollama` and `vault-agent config set model NAME` for a model on this machine, or `vault-agent login \
         PROVIDER` for a hosted one; `vault-agent models` lists what there is"
    ));
    Ok(outcome)
}

/// The prompt for inserting an answer.
struct InsertPrompt<'a>(TerminalPrompt<'a>);

impl Approver for InsertPrompt<'_> {
    fn ask(&mut self, change: &PreparedChange) -> Answer {
        match can_ask() {
            true => self.0.ask(change),
            false => Answer::No(
                Error::new(ErrorKind::Denied, "inserting the answer needs your approval")
                    .with_remedy("run it in a terminal, or add --yes"),
            ),
        }
    }
}

/// Inserts the answer at the cursor, or at the end of the note, as a change that can be undone.
fn insert(workspace: &Workspace, conversation: &Conversation, answer: &str, yes: bool) -> CliResult<()> {
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
        let approver: &mut dyn Approver = if yes { &mut Preapproved } else { &mut prompt };
        let approved = settle(prepared, &Grants::default(), approver);
        let approved = approved.map_err(|refused| refused.log(vaults.toolbox(0)))?;
        let done = carry_out(approved, vaults, 0, Cancel::default(), &mut |_| {})?;
        let undo = done.transaction.map(|id| format!("; transaction {id}, vault-agent undo reverts it"));
        note(&format!("inserted into {}{}", sanitize_line(path.as_str()), undo.unwrap_or_default()));
        Ok(())
    })
}
