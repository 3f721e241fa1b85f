//! The loop of a conversation: it reads a line, which is a message or a command.

use std::sync::Arc;

use agent_loop::{Decision, Effect, Message, Question, RunUsage, StopReason};
use jiff::tz::TimeZone;
use tokio::runtime::Runtime;
use tokio_util::sync::CancellationToken;
use vault_search::tools::page;
use vault_search::{CliResult, Failure, counted, padded, sanitize, sanitize_line};
use vault_tools::{Editor, Error, ErrorKind, LastingPermission, Result};

use super::changes;
use super::commands::{COMMANDS, Command, parse};
use super::input::{Input, Line, ask};
use super::panel::{ChangeView, Key, PanelAnswer, ask_person, key};
use super::prompts::{folder, message_of, saved_prompts};
use crate::call_line::spent_text;
use crate::cli::answer_sources::source_lines;
use crate::cli::ask::counts;
use crate::cli::first_run::choose_other;
use crate::cli::screen::Screen;
use crate::cli::stop::Stop;
use crate::cli::turn::{AnswerTarget, TurnDisplay, drive};
use crate::conversation::{Conversation, Offer, SessionInfo, Sessions, Turn, attach};
use crate::index_watcher::{IndexWatcher, WatchNotices};
use crate::known_providers::ProviderChoice;
use crate::loop_error::stop_text;
use crate::model::{self, Destination};
use crate::settings::{Settings, remove_permission};
use crate::terminal::{MarkdownStream, plain_lines};
use crate::vault_instructions::{VaultInstructions, vault_instructions};
use crate::workspace::{OpenVault, Workspace};

/// How many saved conversations are listed.
const LISTED: usize = 12;

const KEYS: &str = "  Enter sends; Alt-Enter, Ctrl-J or a \\ at the end of a line begin another one
  Tab completes /commands, @notes and #tags; arrow up and Ctrl-R find what you typed before
  Ctrl-C stops a turn, or drops what you typed; Ctrl-D leaves";

/// A conversation at a terminal.
pub(super) struct ChatLoop {
    pub workspace: Arc<Workspace>,
    pub settings: Settings,
    pub editor: Editor,
    pub conversation: Conversation,
    pub screen: Screen,
    pub input: Input,
    pub stop: Stop,
    /// The usage of all turns since the start.
    pub spent: RunUsage,
    /// The model's reasoning before its last answer.
    pub thoughts: String,
    /// Whether the person leaves while a question is open.
    pub leaves: bool,
}

/// Whether the loop continues after a line.
#[derive(Debug, PartialEq, Eq)]
enum ChatFlow {
    Continue,
    Leave,
}

impl ChatLoop {
    /// Runs until the person leaves. If the input is a pipe, each line is a message.
    ///
    /// # Errors
    /// The input or the session cannot be read or saved; if the input is a pipe, the failure of the last turn.
    pub fn run(&mut self, runtime: &Runtime, is_saved: bool) -> CliResult<()> {
        if self.input.has_person() {
            self.ask_about_instructions()?;
            self.greet();
        }
        // Not before the greeting, which reads the index and would wait for the watcher to open it.
        let _watching = IndexWatcher::start(self.workspace.vaults(), WatchNotices::Off);
        let mut ended = Ok(());
        if is_saved {
            self.show_last();
            ended = self.finish_turn(runtime);
        }
        loop {
            if let Some(failure) = self.screen.failure() {
                return Err(failure);
            }
            // A person can continue after a failure, which has already been reported.
            if self.input.has_person()
                && let Err(failure) = std::mem::replace(&mut ended, Ok(()))
            {
                // Queued lines are edited first, because they were typed before the failure.
                self.screen.typed.reopen();
                self.screen.warn(&failure.to_string());
            }
            if self.stop.is_ending() {
                return Ok(());
            }
            if self.leaves {
                return self.leave();
            }
            let text = match self.screen.typed.next_line() {
                Some(text) => {
                    self.screen.show(&format!("> {}", sanitize(&text)));
                    text
                }
                None => match self.input.read(self.screen.typed.take_open())? {
                    Line::Text(text) => text,
                    Line::Interrupted => continue,
                    Line::End if self.input.has_person() => return self.leave(),
                    Line::End => return ended,
                },
            };
            let is_command = self.input.has_person();
            let prompt = if is_command { message_of(&text) } else { Ok(None) };
            ended = match (prompt, parse(&text).filter(|_| is_command)) {
                _ if text.trim().is_empty() => continue,
                (Err(unreadable), _) => Err(unreadable.into()),
                (Ok(Some(prompt)), _) => self.say(runtime, &prompt),
                (Ok(None), None) => self.say(runtime, &text),
                (Ok(None), Some(Err(fault))) => Err(Failure::Error(fault)),
                (Ok(None), Some(Ok(command))) => match self.command(command, runtime) {
                    Ok(ChatFlow::Leave) => return self.leave(),
                    Ok(ChatFlow::Continue) => Ok(()),
                    Err(failure) => Err(failure),
                },
            };
        }
    }

    fn say(&mut self, runtime: &Runtime, message: &str) -> CliResult<()> {
        self.finish_turn(runtime)?;
        match self.is_under_way() {
            true => Err(Failure::Refused("your message was not sent: the previous question is still open".to_owned())),
            false => self.turn(runtime, Some(message)),
        }
    }

    /// Continues a turn that was interrupted, at a question or in the middle.
    fn finish_turn(&mut self, runtime: &Runtime) -> CliResult<()> {
        if self.is_under_way() { self.turn(runtime, None) } else { Ok(()) }
    }

    fn is_under_way(&self) -> bool {
        self.conversation.run().is_some_and(|run| !run.is_done())
    }

    /// Asks about instructions in a vault that the person has not decided about yet.
    fn ask_about_instructions(&mut self) -> Result<()> {
        let all = vault_instructions(&self.workspace);
        all.iter().filter_map(VaultInstructions::fault).for_each(|fault| self.screen.warn(&fault));
        for instructions in all.iter().filter(|one| one.is_used.is_none()) {
            let described = sanitize_line(&instructions.described());
            let text = sanitize(&instructions.text).into_owned();
            let mut view = ChangeView::new(&text, text.clone());
            self.screen.show(&format!(
                "{described} holds instructions for assistants:\n\n{}\n\nUse them as your own?",
                view.part
            ));
            loop {
                let yes = if view.is_whole() { "yes, as long as the file stays as it is" } else { view.yes() };
                let keys = [Some(('y', yes.to_owned())), Some(('n', "no (Esc)".to_owned())), view.key()];
                match key(&keys.into_iter().flatten().collect::<Vec<_>>(), &mut self.screen)? {
                    Key::Letter('w') => view.show_whole(self.screen.paint),
                    Key::Letter('y') if !view.is_whole() => view.show_whole(self.screen.paint),
                    Key::Letter(letter) => {
                        instructions.answer(&self.workspace, letter == 'y')?;
                        self.screen.quiet(if letter == 'y' { "  yes" } else { "  no" });
                        break;
                    }
                    // Without an answer they are not used, and the next conversation asks again.
                    Key::Interrupt | Key::End => break,
                }
            }
        }
        Ok(())
    }

    fn greet(&mut self) {
        let names: Vec<String> = self.workspace.vaults().iter().map(|open| sanitize_line(&open.name)).collect();
        let model = self.conversation.model();
        let model = format!("{} {}", sanitize_line(&model.name), place(&model.destination));
        let agreed = vault_instructions(&self.workspace).iter().any(|one| one.is_used == Some(true));
        let instructions = if agreed { " · AGENTS.md" } else { "" };
        self.screen.quiet(&format!("{} · {model}{instructions} · /help", names.join(", ")));
        self.workspace.without_notes().iter().for_each(|said| self.screen.warn(said));
        match self.permissions().len() {
            0 => {}
            count => {
                self.screen.quiet(&format!("{} without asking · /permissions", counted(count, "lasting permission")))
            }
        }
    }

    /// Shows the last answer of a saved conversation.
    fn show_last(&mut self) {
        let title = sanitize_line(&self.conversation.info().title);
        self.screen.quiet(&format!("resumed: {title}"));
        let last = self.conversation.run().and_then(|run| {
            let answers =
                run.history().messages().iter().rev().filter(|message| matches!(***message, Message::Assistant { .. }));
            answers.map(|message| message.text()).find(|text| !text.trim().is_empty())
        });
        let mut markdown = MarkdownStream::new(self.screen.answer_paint);
        if let Some(last) = last.filter(|_| self.input.has_person()) {
            let text = markdown.push(&last) + &markdown.finish() + "\n";
            self.screen.answer(&text);
        }
    }

    fn leave(&mut self) -> CliResult<()> {
        let info = self.conversation.info();
        if !info.title.is_empty() {
            let line = format!("saved; vault-agent resume {} continues it", info.id);
            self.screen.quiet(&line);
        }
        Ok(())
    }

    /// Runs one turn with all its questions.
    fn turn(&mut self, runtime: &Runtime, message: Option<&str>) -> CliResult<()> {
        let Self { conversation, screen, input, stop, leaves, .. } = self;
        let mut attached = message.map(|message| attach(message, Vec::new(), conversation));
        attached.iter().flat_map(|attached| &attached.notices).for_each(|line| screen.quiet(&format!("  {line}")));
        let mut display = TurnDisplay::new(screen, conversation, message.unwrap_or_default(), AnswerTarget::Output);
        let mut cancel = CancellationToken::new();
        // Among the questions of one reply: how many were answered, and how many remained after that.
        let (mut answered, mut left) = (0, 0);
        let outcome = loop {
            let turn = runtime.block_on(drive(
                conversation,
                &mut display,
                attached.take().map(|it| it.message),
                &cancel,
                Some(stop),
            ))?;
            let questions = match turn {
                Turn::Done(outcome) => break outcome,
                Turn::Waiting(_) if stop.is_ending() => return Ok(()),
                Turn::Waiting(questions) => questions,
            };
            if !input.has_person() {
                deny(conversation, &questions, "no one is there to approve it")?;
                continue;
            }
            if questions.len() != left {
                answered = 0;
            }
            // One after the other, because each question builds on the changes made before it.
            let place = (answered + 1, answered + questions.len());
            (answered, left) = (answered + 1, questions.len() - 1);
            match ask_person(conversation, &questions[0], place, display.screen())? {
                PanelAnswer::Decided(decision) => conversation.decide(&questions[0], decision)?,
                PanelAnswer::Stop => {
                    display.screen().quiet(&format!("  stopped; {} denied", counted(questions.len(), "call")));
                    deny(conversation, &questions, "the person stopped this turn")?;
                    // Denied calls have their results, so the turn can end here.
                    cancel = CancellationToken::new();
                    cancel.cancel();
                }
                PanelAnswer::Leave => {
                    display.screen().quiet("  the question stays open");
                    *leaves = true;
                    return Ok(());
                }
            }
        };
        let answer = display.finish(&outcome, conversation);
        let why_empty = display.why_empty(&outcome.stop);
        drop(display);
        self.conversation.add_sources(&answer.sources, &answer.removed)?;
        let lines = source_lines(&answer, &self.conversation, self.screen.paint);
        match answer.sources.is_empty() {
            true => lines.iter().for_each(|line| self.screen.quiet(line)),
            false => self.screen.show(&lines.join("\n")),
        }
        answer.removed.iter().for_each(|removed| self.screen.warn(&format!("not found: {removed}")));
        self.spent += outcome.spent;
        self.thoughts = answer.thoughts;
        // A request that was not answered took nothing.
        if self.input.has_person() && (outcome.spent.calls > 0 || outcome.spent.tokens > 0) {
            let calls = match outcome.spent.calls {
                0 => String::new(),
                calls => format!("{} · ", counted(calls as usize, "call")),
            };
            let context = self.conversation.model().context_length.zip(answer.context);
            let context =
                context.map(|(length, used)| format!(" · {} % of the context", (100 * used).div_ceil(length.max(1))));
            self.screen.quiet(&format!("{calls}{}{}", spent_text(&outcome.spent), context.unwrap_or_default()));
        }
        match why_empty {
            Some(why) => Err(Failure::Error(why)),
            None => ended(&outcome.stop),
        }
    }

    fn command(&mut self, command: Command, runtime: &Runtime) -> CliResult<ChatFlow> {
        match command {
            Command::Model(None) => {
                let model = self.conversation.model();
                let line = format!("{} {}. Others:", sanitize_line(&model.name), place(&model.destination));
                self.screen.show(&line);
                match choose_other(self.settings.clone(), &mut |question| ask(question, &self.screen))? {
                    Some(settings) => self.change_model(settings)?,
                    None => self.screen.quiet("it stays as it is"),
                }
            }
            Command::Model(Some(name)) => {
                let mut settings = self.settings.clone();
                match name.split_once(' ').filter(|(provider, _)| ProviderChoice::parse(provider).is_ok()) {
                    Some((provider, model)) => settings.set_model(Some(provider.to_owned()), model.trim().to_owned()),
                    None => settings.set_model(None, name),
                }
                self.change_model(settings)?;
            }
            Command::Tools => self.tools(),
            Command::Plan(instruction) => {
                let handle = runtime.handle();
                let (conversation, spent) = (&self.conversation, &mut self.spent);
                changes::plan(conversation, &self.settings, &instruction, &mut self.screen, handle, spent)?;
            }
            Command::Undo(transaction) => changes::undo(&self.workspace, transaction, &mut self.screen, &self.stop)?,
            Command::Save(note) => changes::save(&self.conversation, &note, &mut self.screen, &self.stop)?,
            Command::New => {
                let (model, settings) = (self.conversation.model().clone(), self.settings.clone());
                let workspace = Arc::clone(&self.workspace);
                self.conversation = Conversation::begin(workspace, model, settings, self.editor.clone(), Offer::All)?;
                self.screen.quiet("a new conversation");
            }
            Command::Resume(name) => return self.resume(name.as_deref(), runtime),
            Command::Compact => {
                self.conversation.compact_next();
                self.screen.quiet("it is made shorter before your next message is answered");
            }
            Command::Permissions(None) => self.list_permissions(),
            Command::Permissions(Some(number)) => self.revoke(number)?,
            Command::Thoughts if self.thoughts.trim().is_empty() => {
                self.screen.quiet("the last answer has no thoughts");
            }
            Command::Thoughts => {
                let lines = plain_lines(self.thoughts.trim(), self.screen.paint.columns());
                page(&lines.join("\n"));
            }
            Command::Status => self.status(),
            Command::Help => self.help(),
            Command::Quit => return Ok(ChatFlow::Leave),
        }
        Ok(ChatFlow::Continue)
    }

    fn change_model(&mut self, settings: Settings) -> Result<()> {
        let model = model::required(&settings)?;
        let line = format!("from now on: {} {}", sanitize_line(&model.name), place(&model.destination));
        self.conversation.set_model(model)?;
        self.settings = settings;
        self.screen.quiet(&line);
        Ok(())
    }

    fn tools(&mut self) {
        let specs = self.conversation.tool_specs();
        let width = specs.iter().map(|spec| spec.name.len()).max().unwrap_or(0);
        let columns = self.screen.paint.columns();
        let lines: Vec<String> = specs
            .iter()
            .map(|spec| {
                let writes = if spec.effect == Effect::Write { "changes notes: " } else { "" };
                let does = spec.description.split(". ").next().unwrap_or_default().trim_end_matches('.');
                let name = padded(&sanitize_line(&spec.name), width);
                let does = plain_lines(&sanitize_line(&format!("{writes}{does}")), columns.saturating_sub(width + 4));
                format!("  {name}  {}", does.join(&format!("\n  {}  ", " ".repeat(width))))
            })
            .collect();
        match lines.is_empty() {
            true => self.screen.quiet("no tools are offered, because the setting tools is off"),
            false => self.screen.show(&lines.join("\n")),
        }
    }

    fn resume(&mut self, name: Option<&str>, runtime: &Runtime) -> CliResult<ChatFlow> {
        let sessions = Sessions::of_user()?;
        let current = self.conversation.info().clone();
        let saved = match name {
            Some(name) => sessions.find(Some(name))?,
            None => match self.choose(sessions.list()?, &current) {
                Some(saved) => saved,
                None => return Ok(ChatFlow::Continue),
            },
        };
        if saved.id == current.id {
            self.screen.quiet("this is that conversation");
            return Ok(ChatFlow::Continue);
        }
        if saved.vaults != current.vaults {
            return Err(Error::new(ErrorKind::InvalidArguments, "that conversation is about other vaults")
                .with_remedy(format!("vault-agent resume {} continues it", saved.id))
                .into());
        }
        let (model, settings) = (self.conversation.model().clone(), self.settings.clone());
        let workspace = Arc::clone(&self.workspace);
        self.conversation = Conversation::resume(saved, workspace, model, settings, self.editor.clone(), Offer::All)?;
        self.show_last();
        self.finish_turn(runtime)?;
        Ok(ChatFlow::Continue)
    }

    /// Lists the conversations about these vaults, and asks for one.
    fn choose(&mut self, mut all: Vec<SessionInfo>, current: &SessionInfo) -> Option<SessionInfo> {
        all.retain(|info| info.vaults == current.vaults && info.id != current.id);
        all.truncate(LISTED);
        if all.is_empty() {
            self.screen.quiet("there is no other saved conversation about these vaults");
            return None;
        }
        let line = |(number, info): (usize, &SessionInfo)| {
            let waits = if info.waits { "  (waits for your decision)" } else { "" };
            let updated = info.updated.to_zoned(TimeZone::system()).strftime("%Y-%m-%d %H:%M").to_string();
            format!("  {:2}  {updated}  {}{waits}", number + 1, sanitize_line(&info.title))
        };
        let lines: Vec<String> = all.iter().enumerate().map(line).collect();
        self.screen.show(&lines.join("\n"));
        let number: usize = ask("  its number (Enter: none)", &self.screen)?.parse().ok()?;
        number.checked_sub(1).filter(|at| *at < all.len()).map(|at| all.swap_remove(at))
    }

    fn status(&mut self) {
        let (notes, pending) = counts(&self.workspace);
        let vaults = self.workspace.vaults().iter().map(|open| open.vault.path().display().to_string());
        let vaults: Vec<String> = vaults.map(|path| sanitize_line(&path)).collect();
        let pending = match pending {
            0 => "all passages have vectors".to_owned(),
            pending => format!("{} without vectors yet", counted(pending, "passage")),
        };
        let (model, info) = (self.conversation.model(), self.conversation.info());
        let session = match info.title.is_empty() {
            true => "no messages yet".to_owned(),
            false => format!("{}  {}", info.id, sanitize_line(&info.title)),
        };
        let length = model
            .context_length
            .map(|length| format!(", reads {}", counted(length as usize, "token")))
            .unwrap_or_default();
        let lines = [
            format!("  vaults   {}", vaults.join(", ")),
            format!("  notes    {}; {pending}", counted(notes, "note")),
            format!("  model    {} {}{length}", sanitize_line(&model.name), place(&model.destination)),
            format!("  session  {session}"),
            format!("  tokens   {} since the start", spent_text(&self.spent)),
        ];
        self.screen.show(&lines.join("\n"));
    }

    /// Returns the lasting permissions, each with the name of its vault.
    fn permissions(&self) -> Vec<(String, LastingPermission)> {
        let of =
            |open: &OpenVault| open.policy().permissions().iter().map(|one| (open.name.clone(), one.clone())).collect();
        self.workspace.vaults().iter().flat_map::<Vec<_>, _>(of).collect()
    }

    fn list_permissions(&mut self) {
        let line = |(number, (vault, permission)): (usize, &(String, LastingPermission))| {
            format!("  {:2}  {}: {}", number + 1, sanitize_line(vault), sanitize_line(&permission.to_string()))
        };
        let lines: Vec<String> = self.permissions().iter().enumerate().map(line).collect();
        match lines.is_empty() {
            true => self.screen.quiet("no lasting permissions: every change asks"),
            false => self.screen.show(&format!("{}\n  /permissions revoke N revokes one", lines.join("\n"))),
        }
    }

    fn revoke(&mut self, number: usize) -> Result<()> {
        let all = self.permissions();
        let Some((vault, permission)) = number.checked_sub(1).and_then(|at| all.get(at)) else {
            let message = format!("there is no permission {number}");
            return Err(Error::new(ErrorKind::InvalidArguments, message).with_remedy("/permissions lists them"));
        };
        remove_permission(vault, permission)?;
        self.workspace.reload_policies()?;
        self.screen.quiet(&format!("revoked: {}", sanitize_line(&permission.to_string())));
        Ok(())
    }

    fn help(&mut self) {
        let usage = |listed: &super::commands::CommandHelp| format!("{} {}", listed.name, listed.argument);
        let width = COMMANDS.iter().map(|listed| usage(listed).len()).max().unwrap_or(0);
        let lines: Vec<String> =
            COMMANDS.iter().map(|listed| format!("  {}  {}", padded(&usage(listed), width), listed.does)).collect();
        let mut text = lines.join("\n");
        for prompt in saved_prompts() {
            text.push_str(&format!(
                "\n  {}  {}",
                padded(&format!("/{}", sanitize_line(&prompt.name)), width),
                prompt.head()
            ));
        }
        let prompts = folder().map(|folder| format!("\n  A file NAME.md in {} is /NAME", folder.display()));
        self.screen.show(&format!("{text}\n\n{KEYS}{}", prompts.unwrap_or_default()));
    }
}

fn deny(conversation: &mut Conversation, questions: &[Question], reason: &str) -> Result<()> {
    let no = || Decision::Deny { reason: Some(reason.to_owned()) };
    questions.iter().try_for_each(|question| conversation.decide(question, no()))
}

/// Maps the reason for which a turn stopped to a failure, if it is one.
fn ended(stop: &StopReason) -> CliResult<()> {
    match stop {
        StopReason::Answered => Ok(()),
        StopReason::Cancelled => Err(Failure::Interrupted("stopped; the conversation is kept".into())),
        StopReason::Limit { .. } | StopReason::Length => {
            Err(Failure::Refused(format!("{}; type \"go on\" to continue", stop_text(stop))))
        }
        stop @ StopReason::Failed { .. } => Err(Failure::Error(format!("{stop}; the conversation is kept"))),
        stop => Err(Failure::Error(stop.to_string())),
    }
}

fn place(destination: &Destination) -> String {
    match destination {
        Destination::ThisMachine => "on this machine".to_owned(),
        Destination::Host(host) => format!("at {}", sanitize_line(host)),
    }
}
