//! The display of one turn: the answer as it streams, a quiet line for each call, and a status line below them.
//!
//! The answer is the last reply. Text before calls is shown quietly on standard error. While it is not clear yet which
//! of the two a reply is, its first lines are drawn but not printed.

use std::collections::BTreeMap;
use std::pin::pin;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use agent_loop::{CallId, ErrorKind, Event, RunOutcome, StopReason, ToolCall, UserMessage};
use tokio_util::sync::CancellationToken;
use vault_search::tools::{cut, texts_of};
use vault_search::{Paint, sanitize, sanitize_line};
use vault_tools::Result;

use super::quiet_terminal::QuietTerminal;
use super::retry_wait::RetryWait;
use super::screen::Screen;
use super::stop::{Interrupts, Stop};
use super::stream_json::line_of;
use crate::call_line::call_line;
use crate::conversation::{CitationCheck, Conversation, NoteTools, ON_SCREEN, Source, Turn, citation_check};
use crate::terminal::{MarkdownStream, plain_lines};

/// The interval at which the status line is redrawn.
const FRAME: Duration = Duration::from_millis(50);

/// The frames of the spinner, each of which is shown for two intervals.
const FRAMES: [char; 10] = ['⠋', '⠙', '⠹', '⠸', '⠼', '⠴', '⠦', '⠧', '⠇', '⠏'];

/// How many lines of a reply may turn out to be text before calls.
const OPENING_LINES: usize = 3;

/// How many unprinted lines are drawn: the opening, and the lines behind it that wait for the end of their markup.
const DRAWN_LINES: usize = OPENING_LINES + 4;

/// How many characters of the reasoning are shown if the model gave no other text.
const LONGEST_THOUGHTS: usize = 600;

/// The target of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum AnswerTarget {
    /// Standard output: streamed to a terminal, otherwise printed as a whole at the end.
    Output,
    /// Only the caller, which gets it from [`TurnDisplay::finish`].
    Nowhere,
    /// Standard output as events, one JSON object a line.
    Events,
}

/// The display of a turn.
pub(super) struct TurnDisplay<'a> {
    screen: &'a mut Screen,
    tools: NoteTools,
    target: AnswerTarget,
    markdown: MarkdownStream,
    check: CitationCheck<'static>,
    /// The calls that have started or wait for approval, until they have results.
    calls: BTreeMap<CallId, ToolCall>,
    /// The text of the current reply, as the model wrote it.
    said: String,
    /// Whether the provider marked the text as commentary, which is not an answer.
    is_commentary: bool,
    /// The reasoning of the current reply, and when it began.
    thoughts: String,
    thinks_since: Option<Instant>,
    /// The reasoning of all replies of the turn.
    all_thoughts: String,
    /// The tokens of the last request and its reply.
    context: Option<u64>,
    /// The lines of the reply that are drawn but not printed; `None` once they are printed.
    opening: Option<String>,
    /// Whether a part of the reply has been printed.
    has_printed: bool,
    doing: String,
    /// The wait before the request is sent again.
    wait: Option<RetryWait>,
    since: Instant,
    drawn: Option<Instant>,
    frame: usize,
}

/// The result of a turn.
#[derive(Debug, Default)]
pub(super) struct TurnAnswer {
    /// The answer, without citations and quotes that do not exist.
    pub text: String,
    /// The places that it cites.
    pub sources: Vec<Source>,
    /// The citations, quotes and links that lead to nothing, with the reasons. Only links stay in the text.
    pub removed: Vec<String>,
    /// The model's reasoning in this turn.
    pub thoughts: String,
    /// The tokens of the last request and its reply, if the provider counts them.
    pub context: Option<u64>,
}

impl<'a> TurnDisplay<'a> {
    /// Creates the display of a turn that has no output yet.
    pub fn new(screen: &'a mut Screen, conversation: &Conversation, message: &str, target: AnswerTarget) -> Self {
        let streams = target == AnswerTarget::Output && screen.answer_paint.is_terminal();
        Self {
            markdown: MarkdownStream::new(screen.answer_paint),
            check: citation_check(conversation.tools(), message, streams.then_some(ON_SCREEN)),
            tools: conversation.tools().clone(),
            screen,
            target,
            calls: BTreeMap::new(),
            said: String::new(),
            is_commentary: false,
            thoughts: String::new(),
            thinks_since: None,
            all_thoughts: String::new(),
            context: None,
            opening: Some(String::new()),
            has_printed: false,
            doing: String::new(),
            wait: None,
            since: Instant::now(),
            drawn: None,
            frame: 0,
        }
    }

    /// The screen, for the panels of the turn.
    pub fn screen(&mut self) -> &mut Screen {
        self.screen
    }

    fn streams(&self) -> bool {
        self.target == AnswerTarget::Output && self.screen.answer_paint.is_terminal()
    }

    fn event(&mut self, event: Event) {
        if self.target == AnswerTarget::Events {
            line_of(&event).into_iter().for_each(|line| self.screen.answer(&(line + "\n")));
        }
        if !matches!(event, Event::Reasoning(_) | Event::Usage(_)) {
            self.fold_thoughts();
        }
        match event {
            Event::Text(text) => {
                if std::mem::take(&mut self.is_commentary) {
                    self.said_before_calls();
                }
                self.doing.clear();
                self.said.push_str(&text);
                if self.streams() {
                    let lines = self.markdown.push(&self.check.push(&text));
                    self.print(lines);
                }
            }
            Event::Commentary(text) => {
                self.doing.clear();
                self.is_commentary = true;
                self.said.push_str(&text);
            }
            Event::Reasoning(text) => {
                self.doing = "thinking".to_owned();
                self.thinks_since.get_or_insert_with(Instant::now);
                self.thoughts.push_str(&text);
                self.all_thoughts.push_str(&text);
            }
            Event::CallStarted { name, .. } => {
                self.said_before_calls();
                self.doing = format!("{} …", sanitize_line(&name));
            }
            Event::ToolStarted { call, .. } => {
                self.said_before_calls();
                self.doing = sanitize_line(&call.name);
                self.show_unasked(&call);
                self.calls.insert(call.id.clone(), call);
            }
            Event::ToolFinished { result, .. } => {
                self.said_before_calls();
                let call = self.calls.remove(&result.call);
                self.screen.quiet(&format!("  {}", call_line(call.as_ref(), &result)));
                self.doing.clear();
            }
            Event::ApprovalNeeded(question) => {
                self.said_before_calls();
                self.calls.insert(question.call.id.clone(), question.call);
            }
            Event::Usage(usage) => self.context = Some(usage.total()),
            Event::Warning(warning) => self.screen.warn(&warning),
            Event::Retry { delay, failure, .. } => self.wait = RetryWait::announce(self.screen, &failure, delay),
            Event::Compacted { .. } => self.screen.quiet("the conversation was made shorter for the model"),
            // If nothing can be left out, the model's own error says whether that is a problem.
            Event::NotCompacted { failure } if failure.kind != ErrorKind::ContextTooLong => {
                self.screen.warn(&format!("the conversation could not be made shorter: {failure}"));
            }
            _ => {}
        }
        // Draw the first word immediately.
        if self.drawn.is_none_or(|drawn| drawn.elapsed() >= FRAME) {
            self.draw();
        }
    }

    /// Replaces the reasoning by one quiet line; `/thoughts` shows it in a conversation.
    fn fold_thoughts(&mut self) {
        let Some(since) = self.thinks_since.take() else { return };
        self.all_thoughts.push_str("\n\n");
        match since.elapsed().as_secs() {
            0 => {}
            seconds => self.screen.quiet(&format!("  thought for {seconds} s")),
        }
    }

    /// Shows the change of a call that needs no approval; that of another call was in its panel.
    fn show_unasked(&mut self, call: &ToolCall) {
        let was_asked = self.calls.contains_key(&call.id);
        if let Some((_, preview)) = (!was_asked).then(|| self.tools.preview(call)).flatten() {
            let (short, whole) = texts_of(&preview);
            let change = self.screen.paint.diff(&cut(&short, &whole).0);
            self.screen.show(&change);
        }
    }

    /// Prints lines of the reply once they are known to be an answer.
    fn print(&mut self, lines: String) {
        match &mut self.opening {
            Some(opening) => {
                opening.push_str(&lines);
                if opening.lines().count() > OPENING_LINES {
                    self.print_opening();
                }
            }
            None => self.screen.answer(&lines),
        }
    }

    fn print_opening(&mut self) {
        if let Some(opening) = self.opening.take() {
            self.has_printed |= !opening.is_empty();
            self.screen.answer(&opening);
        }
    }

    /// Handles a reply that turns out to call tools, so that its text so far is not an answer.
    fn said_before_calls(&mut self) {
        let said = std::mem::take(&mut self.said);
        if self.has_printed {
            // Part of it has been printed as an answer, so the rest follows there.
            let rest = self.check.finish();
            let lines = self.markdown.push(&rest) + &self.markdown.finish() + "\n";
            self.screen.answer(&lines);
        } else if !said.trim().is_empty() {
            self.screen.quiet(&plain_lines(said.trim(), Paint::stderr().columns()).join("\n"));
        }
        self.check.restart();
        self.markdown = MarkdownStream::new(self.screen.answer_paint);
        (self.opening, self.has_printed) = (Some(String::new()), false);
        self.thoughts.clear();
        self.is_commentary = false;
    }

    /// Ends the turn: prints the part of the answer that was held back, and returns the result.
    pub fn finish(&mut self, outcome: &RunOutcome, conversation: &Conversation) -> TurnAnswer {
        // The outcome does not include the text of a reply that failed.
        let text = if outcome.text.is_empty() { std::mem::take(&mut self.said) } else { outcome.text.clone() };
        let shown = if self.streams() {
            let rest = self.check.finish();
            let mut lines = self.markdown.push(&rest) + &self.markdown.finish();
            if self.is_commentary {
                lines = self.markdown.push(&self.check.whole(&text)) + &self.markdown.finish();
            }
            self.print(lines);
            self.print_opening();
            if self.has_printed {
                self.screen.answer("\n");
            }
            text
        } else {
            self.check.restart();
            let shown = self.check.whole(&text);
            if self.target == AnswerTarget::Output && !shown.trim().is_empty() {
                self.screen.answer(&format!("{}\n", shown.trim_end()));
            }
            shown
        };
        self.screen.erase();
        TurnAnswer {
            text: shown.trim().to_owned(),
            sources: conversation.marked(self.check.sources()),
            removed: self.check.removed().to_vec(),
            thoughts: std::mem::take(&mut self.all_thoughts),
            context: self.context,
        }
    }

    /// Explains a missing answer, with the end of the model's reasoning.
    pub fn why_empty(&self, stop: &StopReason) -> Option<String> {
        let is_empty = *stop == StopReason::Empty;
        is_empty.then(|| match self.thoughts.trim() {
            "" => "the model gave no answer".to_owned(),
            thoughts => {
                let skipped = thoughts.chars().count().saturating_sub(LONGEST_THOUGHTS);
                let end: String = thoughts.chars().skip(skipped).collect();
                format!("the model gave no answer; its reasoning ends with: {}", sanitize(&end))
            }
        })
    }

    /// Reads the keys that a person types during a turn of a conversation.
    fn read_keys(&mut self, is_conversation: bool) {
        if is_conversation && self.screen.is_live() {
            self.screen.typed.read();
        }
    }

    fn tick(&mut self) {
        self.frame += 1;
        self.draw();
    }

    fn draw(&mut self) {
        self.drawn = Some(Instant::now());
        let mark = FRAMES[(self.frame / 2) % FRAMES.len()];
        let unfinished = self.unfinished();
        let what = match (self.tools.reading(), self.doing.as_str()) {
            (Some(percent), _) => format!("reading your notes, {percent} %"),
            (None, "") if unfinished.is_empty() => "thinking".to_owned(),
            (None, doing) => doing.to_owned(),
        };
        let since = self.since.elapsed().as_secs();
        let since = if since < 2 { String::new() } else { format!("{since} s · Ctrl-C stops") };
        let said = [what, since].into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(" · ");
        let said = self.wait.as_ref().and_then(RetryWait::line).unwrap_or(said);
        let mut lines = unfinished;
        lines.push(format!("{mark} {said}").trim_end().to_owned());
        lines.extend(self.screen.typed.shown());
        self.screen.draw(&lines);
    }

    /// Returns the last unprinted lines.
    fn unfinished(&self) -> Vec<String> {
        let text = match &self.opening {
            _ if !self.streams() => String::new(),
            Some(_) => self.said.clone(),
            None => self.markdown.unfinished() + self.check.held(),
        };
        let columns = Paint::stderr().columns().saturating_sub(1);
        let lines = if text.trim().is_empty() { Vec::new() } else { plain_lines(text.trim(), columns) };
        lines[lines.len().saturating_sub(DRAWN_LINES)..].to_vec()
    }
}

/// Sends a message, or continues after decisions, until the turn ends or a decision is needed. If the conversation
/// handles signals (`stop`), Ctrl-C cancels the turn.
///
/// # Errors
/// The session cannot be saved.
pub(super) async fn drive(
    conversation: &mut Conversation,
    display: &mut TurnDisplay<'_>,
    message: Option<UserMessage>,
    cancel: &CancellationToken,
    stop: Option<&Stop>,
) -> Result<Turn> {
    let _busy = stop.map(|stop| (stop.busy(), QuietTerminal::begin(display.screen)));
    display.since = Instant::now();
    let display = Mutex::new(display);
    let ended = {
        let mut on_event = |event| lock(&display).event(event);
        let mut turn = pin!(async {
            match message {
                Some(message) => conversation.say(message, &mut on_event, cancel).await,
                None => conversation.go_on(&mut on_event, cancel).await,
            }
        });
        let mut frames = tokio::time::interval(FRAME);
        let mut interrupts = stop.map(|_| Interrupts::listen());
        loop {
            tokio::select! {
                ended = &mut turn => break ended,
                _ = frames.tick() => {
                    let mut display = lock(&display);
                    display.read_keys(stop.is_some());
                    display.tick();
                }
                () = interrupted(&mut interrupts, stop), if !cancel.is_cancelled() => cancel.cancel(),
            }
        }
    };
    let mut display = lock(&display);
    display.read_keys(stop.is_some());
    display.screen.erase();
    ended
}

/// Completes on Ctrl-C, or when the process is asked to end.
async fn interrupted(interrupts: &mut Option<Interrupts>, stop: Option<&Stop>) {
    match (interrupts, stop) {
        (Some(interrupts), Some(stop)) => tokio::select! {
            () = interrupts.next() => {}
            () = stop.ending() => {}
        },
        _ => std::future::pending().await,
    }
}

fn lock<'m, T>(mutex: &'m Mutex<T>) -> MutexGuard<'m, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
