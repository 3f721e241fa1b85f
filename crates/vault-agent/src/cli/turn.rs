//! One turn as a person sees it: the answer as it streams, each call on a quiet line, and below them what is under way.
//!
//! The answer is the last reply. What the model says before its calls is told quietly, on standard error: where that is not
//! plain yet, the first lines of a reply are drawn and not printed.

use std::collections::BTreeMap;
use std::pin::pin;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use agent_loop::{CallId, ErrorKind, Event, RunOutcome, StopReason, ToolCall, UserMessage};
use tokio_util::sync::CancellationToken;
use vault_search::{Paint, sanitize, sanitize_line};
use vault_tools::Result;

use super::quiet_terminal::QuietTerminal;
use super::screen::Screen;
use super::stop::{Interrupts, Stop};
use super::stream_json::line_of;
use crate::call_line::call_line;
use crate::conversation::{CitationCheck, Conversation, NoteTools, ON_SCREEN, Source, Turn, citation_check};
use crate::loop_error::retry_text;
use crate::terminal::{MarkdownStream, plain_lines};

/// How often what is under way is drawn anew.
const FRAME: Duration = Duration::from_millis(50);

/// Every second frame has another one.
const FRAMES: [char; 10] = ['⠋', '⠙', '⠹', '⠸', '⠼', '⠴', '⠦', '⠧', '⠇', '⠏'];

/// Lines of a reply that may still be what is said before calls.
const OPENING_LINES: usize = 3;

/// Lines that are drawn of what is not printed yet: the opening, and what may wait behind it for the end of a mark.
const DRAWN_LINES: usize = OPENING_LINES + 4;

/// Characters of thoughts that are shown where nothing else was said.
const LONGEST_THOUGHTS: usize = 600;

/// Where an answer goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum AnswerTarget {
    /// To standard output: in a terminal as it comes, else when it is whole.
    Output,
    /// To whoever asked for it, in [`TurnDisplay::finish`].
    Nowhere,
    /// To standard output as what happens, a JSON object a line.
    Events,
}

/// A turn as it is shown.
pub(super) struct TurnDisplay<'a> {
    screen: &'a mut Screen,
    tools: NoteTools,
    target: AnswerTarget,
    markdown: MarkdownStream,
    check: CitationCheck<'static>,
    /// The calls of which something was told, until they have their results.
    calls: BTreeMap<CallId, ToolCall>,
    /// What the reply under way says, as the model writes it.
    said: String,
    /// The provider says that this is no answer.
    is_commentary: bool,
    /// The thoughts of the reply under way, and since when they come.
    thoughts: String,
    thinks_since: Option<Instant>,
    /// The thoughts of all replies of the turn.
    all_thoughts: String,
    /// Tokens of the last request and its reply.
    context: Option<u64>,
    /// Lines of the reply that are drawn only; `None` once they are printed.
    opening: Option<String>,
    /// Something of the reply was printed.
    has_printed: bool,
    doing: String,
    since: Instant,
    drawn: Option<Instant>,
    frame: usize,
}

/// What a turn has come to.
#[derive(Debug, Default)]
pub(super) struct TurnAnswer {
    /// The answer, without what does not exist.
    pub text: String,
    /// The places that it cites.
    pub sources: Vec<Source>,
    /// What was taken out of it, and why.
    pub removed: Vec<String>,
    /// What the model thought on the way.
    pub thoughts: String,
    /// Tokens of the last request and its reply, where the provider counts them.
    pub context: Option<u64>,
}

impl<'a> TurnDisplay<'a> {
    /// Nothing of it yet.
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
            since: Instant::now(),
            drawn: None,
            frame: 0,
        }
    }

    /// Where the panels of the turn are shown.
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
            Event::Retry { delay, failure, .. } => self.screen.warn(&retry_text(&failure, delay)),
            Event::Compacted { .. } => self.screen.quiet("the conversation was made shorter for the model"),
            // Where nothing can be left out, the model says whether that is a problem.
            Event::NotCompacted { failure } if failure.kind != ErrorKind::ContextTooLong => {
                self.screen.warn(&format!("the conversation could not be made shorter: {failure}"));
            }
            _ => {}
        }
        // The first word is on the screen at once.
        if self.drawn.is_none_or(|drawn| drawn.elapsed() >= FRAME) {
            self.draw();
        }
    }

    /// Thoughts are one quiet line; a conversation shows them when asked.
    fn fold_thoughts(&mut self) {
        let Some(since) = self.thinks_since.take() else { return };
        self.all_thoughts.push_str("\n\n");
        match since.elapsed().as_secs() {
            0 => {}
            seconds => self.screen.quiet(&format!("  thought for {seconds} s")),
        }
    }

    /// Prints lines of the answer once it is plain that it is one.
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

    /// The reply calls tools, so that its text so far is no answer.
    fn said_before_calls(&mut self) {
        let said = std::mem::take(&mut self.said);
        if self.has_printed {
            // The rest of what stands in the answer's place already.
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

    /// The turn is over: shows what of the answer was held back, and gives what it came to.
    pub fn finish(&mut self, outcome: &RunOutcome, conversation: &Conversation) -> TurnAnswer {
        // What a reply said before it failed is not part of the outcome.
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

    /// Why there is no answer, with what the model thought.
    pub fn why_empty(&self, stop: &StopReason) -> Option<String> {
        let is_empty = *stop == StopReason::Empty;
        is_empty.then(|| match self.thoughts.trim() {
            "" => "the model answered nothing".to_owned(),
            thoughts => {
                let skipped = thoughts.chars().count().saturating_sub(LONGEST_THOUGHTS);
                let end: String = thoughts.chars().skip(skipped).collect();
                format!("the model answered nothing; its thoughts end with: {}", sanitize(&end))
            }
        })
    }

    /// Reads what a person types meanwhile, in a conversation.
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
        let since = if since < 2 { String::new() } else { format!(" {since} s · Ctrl-C stops") };
        let mut lines = unfinished;
        lines.push(format!("{mark}{since} {what}").trim_end().to_owned());
        lines.extend(self.screen.typed.shown());
        self.screen.draw(&lines);
    }

    /// The last lines of what is not printed yet.
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

/// Says something, or goes on after decisions, until the turn is over or a person has to decide. Ctrl-C ends it where the
/// signals are the conversation's own (`stop`).
///
/// # Errors
/// What could not be saved.
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

/// Ready when Ctrl-C comes or the process is to end.
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
