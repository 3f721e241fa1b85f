//! `vault-agent ask`: answers a question from the notes and cites the places that the answer is from.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use agent_loop::{
    Decision, ErrorKind as LoopErrorKind, Message, Question, QuestionSubject, RunOutcome, RunUsage, Status, StopReason,
};
use clap::{Args, ValueEnum};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;
use vault_search::VaultArgs;
use vault_search::tools::{EditorArgs, Reply, TerminalQuestion, ask_about, editor};
use vault_search::{CliResult, Failure, Out, Outcome, can_ask, counted, note, sanitize, sanitize_line, say, wrapped};
use vault_tools::{Cancel, Editor, Error, ErrorKind, Result};

use super::answer_sources::source_lines;
use super::first_run::local_models_hint;
use super::insert::insert;
use super::screen::Screen;
use super::servers::add_servers;
use super::stop::terminal_gone;
use super::stream_json::StreamLine;
use super::turn::{AnswerTarget, TurnAnswer, TurnDisplay, drive};
use super::withheld_items::withheld;
use crate::call_line::spent_text;
use crate::changes::read_all;
use crate::conversation::{
    Attachment, ComposedMessage, Conversation, Offer, OpenedQuestion, SessionInfo, Sessions, Source, Turn, attach,
    named_note,
};
use crate::index_watcher::{IndexWatcher, WatchNotices};
use crate::loop_error::stop_text;
use crate::model;
use crate::settings::{SettingArgs, Settings};
use crate::vault_instructions::vault_instructions;
use crate::vectors;
use crate::workspace::{PolicyOverrides, Workspace};

/// How many passages are shown if no model can be used.
const PASSAGES: usize = 5;

/// How often to check for a signal.
const TICK: Duration = Duration::from_millis(30);

#[derive(Debug, Args)]
pub(super) struct AskArgs {
    /// The question; `-` reads it from standard input
    #[arg(required = true)]
    pub question: Vec<String>,
    /// The note that you are viewing, "this note" in questions
    #[arg(long, value_name = "NOTE", conflicts_with = "active_file")]
    pub note: Option<String>,
    /// Continue the last conversation about these vaults
    #[arg(short = 'c', long = "continue")]
    pub goes_on: bool,
    /// Insert the answer into that note, after your approval
    ///
    /// At the cursor that --cursor names, else at the note's end.
    #[arg(long)]
    pub insert: bool,
    /// Insert without asking
    #[arg(long, requires = "insert")]
    pub yes: bool,
    /// Print one JSON document
    #[arg(long, help_heading = "Output", conflicts_with = "output_format")]
    pub json: bool,
    /// Output format: text, json, stream-json
    ///
    /// stream-json prints one JSON object a line, for each event as it happens.
    #[arg(
        long,
        value_name = "FORMAT",
        help_heading = "Output",
        default_value = "text",
        hide_default_value = true,
        hide_possible_values = true
    )]
    pub output_format: OutputFormat,
    /// Print the JSON schema of that document, or of a line
    #[arg(long, help_heading = "Output")]
    pub schema: bool,
    #[command(flatten)]
    pub editor: EditorArgs,
    #[command(flatten)]
    pub settings: SettingArgs,
}

/// The output format.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum OutputFormat {
    Text,
    Json,
    StreamJson,
}

/// The document that `--json` prints.
#[derive(Debug, Serialize, JsonSchema)]
struct Record {
    /// The question.
    question: String,
    /// The answer, which is the last reply; `null` where no model is configured or it cannot be reached.
    answer: Option<String>,
    /// The places that the answer cites.
    sources: Vec<Source>,
    /// Citations, quotes and links that lead to nothing, and why. Citations and quotes are removed from the answer.
    removed: Vec<String>,
    /// The notes that the model was shown.
    read: Vec<String>,
    /// The searches and other calls that were made.
    calls: Vec<CallRecord>,
    /// The passages that fit best, where no model is configured or it cannot be reached.
    #[serde(skip_serializing_if = "Option::is_none")]
    passages: Option<Value>,
    /// How many notes there are.
    notes: usize,
    /// How many passages have no vector yet, and are found by words alone.
    pending: usize,
    /// Why the run ended: "answered", "unreachable" where the model cannot be reached, or what went wrong.
    stop: String,
    /// Tokens in and out.
    tokens: u64,
    /// The cost in US dollars, if the provider reports it.
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
    fn of(question: &str) -> Self {
        Self {
            question: question.to_owned(),
            answer: None,
            sources: Vec::new(),
            removed: Vec::new(),
            read: Vec::new(),
            calls: Vec::new(),
            passages: None,
            notes: 0,
            pending: 0,
            stop: "answered".to_owned(),
            tokens: 0,
            cost: None,
            session: None,
        }
    }

    /// Whether all calls succeeded but returned nothing, and the answer cites nothing.
    fn found_nothing(&self) -> bool {
        let is_in_vain = |call: &CallRecord| call.status == Status::Ok && !call.has_result;
        !self.calls.is_empty() && self.calls.iter().all(is_in_vain) && self.sources.is_empty()
    }
}

pub(super) fn ask(vault_args: &VaultArgs, args: &AskArgs, out: &mut Out) -> CliResult {
    if args.schema {
        return match args.output_format {
            OutputFormat::StreamJson => out.schema::<StreamLine<'_, Record>>(),
            _ => out.schema::<Record>(),
        };
    }
    let question = question(args)?;
    let settings = Settings::load(&args.settings)?;
    let workspace = Arc::new(Workspace::open(vault_args, PolicyOverrides::default())?);
    let mut editor = args.editor.clone();
    editor.active_file = editor.active_file.or_else(|| args.note.clone());
    let editor = editor_of(&workspace, &editor)?;
    if args.insert && editor.active_file.is_none() {
        let message = "there is no note to insert the answer into";
        return Err(Error::new(ErrorKind::InvalidArguments, message).with_remedy("add --note NOTE").into());
    }
    let command = AskCommand {
        workspace,
        format: if args.json { OutputFormat::Json } else { args.output_format },
        inserts: args.insert,
    };
    let last = args.goes_on.then(|| last_conversation(&command.workspace)).transpose()?;
    for instructions in vault_instructions(&command.workspace) {
        let unasked = format!("{} is not used: vault-agent chat asks about it once", instructions.described());
        instructions.fault().or(instructions.is_used.is_none().then_some(unasked)).iter().for_each(|said| note(said));
    }
    command.workspace.without_notes().iter().for_each(|said| note(said));
    let watching = IndexWatcher::start(command.workspace.vaults(), WatchNotices::Off);
    let mut record = Record::of(&question);
    let ended = match model::open(&settings)? {
        None => {
            command.start(&record, None, out)?;
            command.without_model(&mut record, &settings, out)
        }
        Some(model) => {
            let workspace = Arc::clone(&command.workspace);
            let conversation = match last {
                None => Conversation::begin(workspace, model, settings, editor, Offer::Reading)?,
                Some(last) => Conversation::resume(last, workspace, model, settings, editor, Offer::Reading)?,
            };
            command.with_model(conversation, &mut record, args, out)
        }
    };
    drop(watching);
    ended
}

/// Returns the last conversation about these vaults, if it does not wait for a decision.
fn last_conversation(workspace: &Workspace) -> Result<SessionInfo> {
    let vaults: Vec<&Path> = workspace.vaults().iter().map(|open| open.vault.path()).collect();
    let last = Sessions::of_user()?.list()?.into_iter().find(|info| info.vaults == vaults);
    match last {
        None => Err(Error::new(ErrorKind::NotFound, "there is no conversation about these notes to continue")
            .with_remedy("ask without --continue")),
        Some(info) if info.waits => {
            Err(Error::new(ErrorKind::Conflict, "the last conversation waits for your decision")
                .with_remedy(format!("vault-agent resume {} asks again", info.id)))
        }
        Some(info) => Ok(info),
    }
}

/// A question and its context.
struct AskCommand {
    workspace: Arc<Workspace>,
    format: OutputFormat,
    inserts: bool,
}

impl AskCommand {
    fn is_json(&self) -> bool {
        self.format != OutputFormat::Text
    }

    /// The target of the answer's text.
    fn target(&self) -> AnswerTarget {
        match self.format {
            OutputFormat::StreamJson => AnswerTarget::Events,
            OutputFormat::Text if !self.inserts => AnswerTarget::Output,
            _ => AnswerTarget::Nowhere,
        }
    }

    /// Prints the first event.
    fn start(&self, record: &Record, session: Option<&str>, out: &mut Out) -> CliResult<()> {
        if self.format == OutputFormat::StreamJson {
            out.line(&stream_line(&StreamLine::Start { question: &record.question, session }))?;
            out.flush()?;
        }
        Ok(())
    }

    /// Prints the document, or the last event.
    fn print(&self, record: &Record, out: &mut Out) -> CliResult<()> {
        match self.format {
            OutputFormat::StreamJson => out.line(&stream_line(&StreamLine::End(record)))?,
            _ => out.json(record)?,
        }
        Ok(())
    }

    /// Starts computing missing vectors in the background if a person reads the output at a terminal. Returns a clause
    /// about the pending vectors for the summary.
    fn go_on(&self, record: &mut Record, out: &Out) -> String {
        (record.notes, record.pending) = counts(&self.workspace);
        let is_seen = !self.is_json() && out.paint.is_terminal();
        let goes_on = record.pending > 0 && is_seen && vectors::go_on(self.workspace.vaults());
        let how = if goes_on { "which are computed in the background" } else { "which vault-agent sync computes" };
        match record.pending {
            0 => String::new(),
            1 => format!("; 1 passage was ranked by its words alone until it has a vector, {how}"),
            pending => format!("; {pending} passages were ranked by their words alone until they have vectors, {how}"),
        }
    }

    fn with_model(
        &self,
        mut conversation: Conversation,
        record: &mut Record,
        args: &AskArgs,
        out: &mut Out,
    ) -> CliResult {
        let runtime = super::runtime::runtime()?;
        let mut screen = Screen::new();
        add_servers(&mut conversation, &runtime, &mut screen)?;
        self.start(record, Some(&conversation.info().id), out)?;
        let answer = runtime.block_on(answer(&mut conversation, &record.question, &mut screen, self.target()));
        runtime.shutdown_background();
        let (outcome, answer, why_empty) = answer?;
        record.session = Some(conversation.info().id.clone());
        record.tokens = outcome.spent.tokens;
        record.cost = outcome.spent.cost.map(|millionths| millionths as f64 / 1e6);
        record.stop = outcome.stop.to_string();
        record.calls = calls_of(&conversation);
        record.read = conversation.notes_of_turn();
        record.sources.clone_from(&answer.sources);
        record.removed.clone_from(&answer.removed);
        if is_unreachable(&outcome) && answer.text.is_empty() && record.calls.is_empty() {
            record.stop = "unreachable".to_owned();
            if !args.insert {
                self.passages(record, "The model cannot be reached. The best matching passages:", out)?;
            } else if self.is_json() {
                self.print(record, out)?;
            }
            out.flush()?;
            return Err(Failure::Error(outcome.stop.to_string()));
        }
        record.answer = Some(answer.text.clone());
        if self.target() == AnswerTarget::Output {
            let lines = source_lines(&answer, &conversation, out.paint);
            match answer.sources.is_empty() {
                true => lines.iter().for_each(|line| note(line)),
                // On a terminal the answer already ends with an empty line.
                false if out.paint.is_terminal() => out.line(&lines.join("\n"))?,
                false => out.line(&format!("\n{}", lines.join("\n")))?,
            }
        }
        // Messages about the answer on standard error come after it.
        out.flush()?;
        record.removed.iter().for_each(|removed| say("not found", removed));
        let ended = match (ended(&outcome.stop, &answer.text), why_empty) {
            (_, Some(why)) => Err(Failure::Error(why)),
            // The searches found nothing, so no note supports the answer.
            (Ok(Outcome::Done), _) if record.found_nothing() && !args.insert => Ok(Outcome::Nothing),
            (Ok(Outcome::Done), _) if args.insert => {
                insert(&self.workspace, &conversation, &answer.text, args.yes).map(|()| Outcome::Done)
            }
            (ended, _) => ended,
        };
        let pending = self.go_on(record, out);
        if self.is_json() {
            self.print(record, out)?;
            return ended;
        }
        // Print an answer that could not be inserted, so that it is not lost.
        if args.insert && ended.is_err() && !answer.text.is_empty() {
            out.line(&sanitize(&answer.text))?;
            out.flush()?;
        }
        if !matches!(outcome.stop, StopReason::Failed { .. }) || !record.calls.is_empty() {
            note(&summary(record, &outcome.spent, &pending));
        }
        ended
    }

    /// Prints the best matching passages instead of an answer, and says how to configure a model.
    fn without_model(&self, record: &mut Record, settings: &Settings, out: &mut Out) -> CliResult {
        record.stop = "no model is configured".to_owned();
        let outcome = self.passages(record, "", out)?;
        let pending = if record.pending > 0 { self.go_on(record, out) } else { String::new() };
        let here = local_models_hint(settings);
        note(&format!(
            "no model is configured, so nothing is answered{pending}{here}. To have questions answered: `vault-agent config set \
             provider ollama` and `vault-agent config set model NAME` for a model on this machine, or `vault-agent login \
             PROVIDER` for a hosted one; `vault-agent models` lists what there is"
        ));
        Ok(outcome)
    }

    /// Prints the best matching passages.
    fn passages(&self, record: &mut Record, head: &str, out: &mut Out) -> CliResult {
        let mut screen = Screen::new();
        let listening = vault_search::listen();
        let screen_of = std::cell::RefCell::new(&mut screen);
        vectors::wait(self.workspace.vaults(), vectors::FIRST_SEARCH, &|| listening.is_cancelled(), &|share| {
            screen_of.borrow_mut().draw(&[format!("reading your notes, {share} %")]);
        });
        screen.erase();
        let args = json!({ "query": record.question, "top_k": PASSAGES });
        let found = self.workspace.with(|vaults| -> Result<Value> {
            let route = vaults.route("search_notes", args)?;
            Ok(read_all(vaults, "search_notes", &route, Cancel::default())?.value)
        })?;
        let found = found.as_array().cloned().unwrap_or_default();
        (record.notes, record.pending) = counts(&self.workspace);
        let is_weak = |passage: &Value| passage["weak"] == true;
        let is_all_weak = found.iter().all(is_weak);
        if self.is_json() {
            record.passages = Some(Value::Array(found.clone()));
            self.print(record, out)?;
        } else {
            if !head.is_empty() {
                out.line(&format!("{head}\n"))?;
            }
            let paint = out.paint;
            let fitted = |line: &str| paint.width().map_or_else(|| line.to_owned(), |width| wrapped(line, width));
            // Weak matches are shown only if there are no others.
            for passage in found.iter().filter(|passage| is_all_weak || !is_weak(passage)) {
                let text = |name: &str| sanitize_line(passage[name].as_str().unwrap_or_default());
                let place = format!("{}:{}", text("path"), passage["line"]);
                let (title, heading) = (text("title"), text("heading"));
                let within =
                    if heading.is_empty() || heading == title { String::new() } else { format!(" › {heading}") };
                let head = fitted(&format!("{place}  {title}{within}"));
                out.line(&head.replacen(&place, &paint.path(&place), 1))?;
                for line in sanitize(passage["chunk"].as_str().unwrap_or_default().trim_end()).lines() {
                    out.line(&fitted(&format!("  {line}")))?;
                }
                out.line("")?;
            }
        }
        out.flush()?;
        let (outcome, what) = match (found.is_empty(), record.notes) {
            // Said before the search.
            (true, 0) => return Ok(Outcome::Nothing),
            (true, _) => (Outcome::Nothing, "no passage matches"),
            (false, _) if is_all_weak => (Outcome::Nothing, "nothing matches well; these are the nearest passages"),
            (false, _) => return Ok(Outcome::Done),
        };
        note(what);
        Ok(outcome)
    }
}

fn stream_line(line: &StreamLine<'_, &Record>) -> String {
    serde_json::to_string(line).unwrap_or_default()
}

/// Whether the model could not be reached at all.
fn is_unreachable(outcome: &RunOutcome) -> bool {
    let StopReason::Failed { failure } = &outcome.stop else { return false };
    matches!(failure.kind, LoopErrorKind::Unavailable | LoopErrorKind::TimedOut | LoopErrorKind::Io)
}

/// Returns the calls since the question, with their arguments.
fn calls_of(conversation: &Conversation) -> Vec<CallRecord> {
    let Some(run) = conversation.run() else { return Vec::new() };
    let messages = run.history().messages().iter();
    let calls =
        messages.filter(|message| matches!(***message, Message::Assistant { .. })).flat_map(|message| message.calls());
    let args: BTreeMap<_, _> = calls.map(|call| (&call.id, &call.arguments)).collect();
    let record = |result: &agent_loop::ToolResult| CallRecord {
        tool: result.name.clone(),
        args: args.get(&result.call).map(|args| (*args).clone()).unwrap_or_default(),
        status: result.status,
        has_result: result.status == Status::Ok && result.text() != "[]",
    };
    run.results().map(record).collect()
}

/// Maps the reason for which the model stopped to the outcome of the command.
fn ended(stop: &StopReason, answer: &str) -> CliResult {
    match stop {
        StopReason::Answered => Ok(Outcome::Done),
        StopReason::Limit { .. } if !answer.is_empty() => {
            Err(Failure::Refused(format!("{}; the answer summarizes what was found so far", stop_text(stop))))
        }
        StopReason::Limit { .. } | StopReason::Length => Err(Failure::Refused(stop_text(stop))),
        StopReason::Cancelled => Err(Failure::Interrupted("the conversation is saved".into())),
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

/// Returns the state of the editor that the command line describes, in the first vault.
pub(super) fn editor_of(workspace: &Workspace, args: &EditorArgs) -> Result<Editor> {
    let [first, others @ ..] = workspace.vaults() else { return Ok(Editor::default()) };
    let names_a_note = args.active_file.is_some() || args.selection_from.is_some();
    if names_a_note && !others.is_empty() {
        let message = "--note and a selection need exactly one vault, but several are open";
        return Err(Error::new(ErrorKind::InvalidArguments, message).with_remedy("name one vault"));
    }
    let mut args = args.clone();
    args.active_file = args.active_file.map(|name| named_note(workspace, &name).unwrap_or(name));
    editor(&first.vault, &first.policy(), &args)
}

/// Counts the notes, and the passages without a vector.
pub(super) fn counts(workspace: &Workspace) -> (usize, usize) {
    let status = |open: &crate::workspace::OpenVault| open.vault.index_for_ranking().ok()?.0.status().ok();
    workspace
        .vaults()
        .iter()
        .filter_map(status)
        .fold((0, 0), |(notes, pending), status| (notes + status.notes, pending + status.pending))
}

/// Returns the selection that the command line names.
fn selection_of(editor: &Editor) -> Vec<Attachment> {
    let attached = editor.selection.as_ref().map(|selection| Attachment {
        path: selection.span.and(editor.active_file.as_ref()).map(|path| path.as_str().to_owned()),
        source: None,
        lines: selection.span.map(|span| format!("{}-{}", span.from.line + 1, span.to.line + 1)),
        text: Some(selection.text.clone()),
    });
    attached.into_iter().collect()
}

/// Drives the conversation to its end. Returns the answer, or the reason why the model gave no answer.
async fn answer(
    conversation: &mut Conversation,
    question: &str,
    screen: &mut Screen,
    target: AnswerTarget,
) -> Result<(RunOutcome, TurnAnswer, Option<String>)> {
    let cancel = CancellationToken::new();
    let watching = tokio::spawn(cancel_on_signal(cancel.clone()));
    let selected = selection_of(&conversation.tools().editor());
    let ComposedMessage { message, notices } = attach(question, selected, conversation);
    notices.iter().for_each(|line| note(line));
    let mut message = Some(message);
    let mut display = TurnDisplay::new(screen, conversation, question, target);
    let outcome = loop {
        match drive(conversation, &mut display, message.take(), &cancel, None).await? {
            Turn::Done(outcome) => break outcome,
            Turn::Waiting(questions) => {
                for question in questions {
                    let decision = tokio::task::block_in_place(|| decision(conversation, &question))?;
                    conversation.decide(&question, decision)?;
                }
            }
        }
    };
    watching.abort();
    let answer = display.finish(&outcome, conversation);
    conversation.add_sources(&answer.sources, &answer.removed)?;
    let why_empty = display.why_empty(&outcome.stop);
    Ok((outcome, answer, why_empty))
}

/// Asks for a decision at the terminal; without a terminal the call is denied.
fn decision(conversation: &Conversation, question: &Question) -> Result<Decision> {
    let denied = |reason: &str| Decision::Deny { reason: Some(reason.to_owned()) };
    if !can_ask() {
        return Ok(denied("no one is there to approve it"));
    }
    let panel = match conversation.open_question(question) {
        OpenedQuestion::Panel(panel) => panel,
        OpenedQuestion::Decided(decision) => return Ok(decision),
    };
    if let (Some(items), QuestionSubject::Sharing { .. }) = (&panel.items, &question.about) {
        let (withheld, _) = withheld(&format!("{} {}", panel.title, panel.leaves), items, &mut vault_search::ask);
        return Ok(Decision::Share { withheld });
    }
    let head = format!("{}\n{}\n", panel.what_undo_does, panel.leaves);
    let (short, whole) = (head.clone() + &panel.short, head + &panel.whole);
    let about =
        TerminalQuestion { question: &panel.title, short: &short, whole: &whole, ..TerminalQuestion::default() };
    Ok(if ask_about(&about)? == Reply::Yes { Decision::Allow } else { denied("the person said no") })
}

/// Cancels when the process receives a signal, or its terminal has gone.
pub(super) async fn cancel_on_signal(cancel: CancellationToken) {
    let listening = vault_search::listen();
    let asked_to_stop = async {
        while !listening.is_cancelled() {
            tokio::time::sleep(TICK).await;
        }
    };
    tokio::select! {
        () = asked_to_stop => {}
        () = terminal_gone() => {}
    }
    cancel.cancel();
}

/// Summarizes the searches in one sentence.
fn summary(record: &Record, spent: &RunUsage, pending: &str) -> String {
    let calls = match record.calls.len() {
        0 => "nothing was searched".to_owned(),
        calls => counted(calls, "call"),
    };
    let pending = if record.calls.is_empty() { "" } else { pending };
    format!("{calls} in {}{pending}; {}", counted(record.notes, "note"), spent_text(spent))
}
