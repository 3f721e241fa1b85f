//! One turn on the screen: the answer as it streams, each call on a quiet line, and below them what is under way.

use std::collections::BTreeMap;
use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use agent_loop::{CallId, ErrorKind, Event, ToolCall};
use tokio_util::sync::CancellationToken;
use vault_search::sanitize_line;
use vault_tools::Result;

use super::keyboard::Quiet;
use super::screen::Screen;
use super::stop::{Interrupts, Stop};
use crate::cli::call_line::call_line;
use crate::conversation::{CitationCheck, Conversation, Source, Turn, cited_note};
use crate::loop_error::retrying;
use crate::terminal::MarkdownStream;

/// How often what is under way is drawn anew.
const FRAME: Duration = Duration::from_millis(100);

const FRAMES: [char; 10] = ['⠋', '⠙', '⠹', '⠸', '⠼', '⠴', '⠦', '⠧', '⠇', '⠏'];

/// A turn as it is shown.
pub(super) struct ShownTurn<'a> {
    screen: &'a mut Screen,
    markdown: MarkdownStream,
    check: CitationCheck<'static>,
    /// The calls of which something was told, until they have their results.
    calls: BTreeMap<CallId, ToolCall>,
    doing: String,
    since: Instant,
    frame: usize,
    /// Something of an answer was shown, and no empty line after it.
    has_text: bool,
}

impl<'a> ShownTurn<'a> {
    /// Nothing of it yet.
    pub fn new(screen: &'a mut Screen, conversation: &Conversation, message: &str) -> Self {
        // Notes are read once more for citations alone, so that what the model was told plays no part.
        let workspace = Arc::clone(conversation.tools().workspace());
        Self {
            markdown: MarkdownStream::new(screen.answer_paint),
            check: CitationCheck::new(message, move |path: &str| cited_note(&workspace, path)),
            screen,
            calls: BTreeMap::new(),
            doing: String::new(),
            since: Instant::now(),
            frame: 0,
            has_text: false,
        }
    }

    /// The places that the answer cites, and what was taken out of it.
    pub fn cited(&self) -> (&[Source], &[String]) {
        (self.check.sources(), self.check.removed())
    }

    /// Where the panels of the turn are shown.
    pub fn screen(&mut self) -> &mut Screen {
        self.screen
    }

    fn event(&mut self, event: Event) {
        match event {
            Event::Text(text) | Event::Commentary(text) => {
                let text = self.check.push(&text);
                self.answer(&text);
            }
            Event::Reasoning(_) => self.doing = "thinking".to_owned(),
            Event::CallStarted { name, .. } => self.doing = format!("{} …", sanitize_line(&name)),
            Event::ToolStarted { call, .. } => {
                self.doing = sanitize_line(&call.name);
                self.calls.insert(call.id.clone(), call);
            }
            Event::ToolFinished { result, .. } => {
                self.end_of_text();
                let call = self.calls.remove(&result.call);
                self.screen.quiet(&format!("  {}", call_line(call.as_ref(), &result)));
                self.doing.clear();
            }
            Event::ApprovalNeeded(question) => {
                self.end_of_text();
                self.calls.insert(question.call.id.clone(), question.call);
            }
            Event::Warning(warning) => self.screen.warn(&warning),
            Event::Retry { delay, failure, .. } => {
                self.screen.warn(&retrying(&failure, delay));
            }
            Event::Compacted { .. } => {
                self.screen.quiet("the conversation was made shorter for the model");
            }
            // Where nothing can be left out, the model says whether that is a problem.
            Event::NotCompacted { failure } if failure.kind != ErrorKind::ContextTooLong => {
                self.screen.warn(&format!("the conversation could not be made shorter: {failure}"));
            }
            _ => {}
        }
    }

    fn answer(&mut self, text: &str) {
        let shown = match self.screen.answer_paint.is_terminal() {
            true => self.markdown.push(text),
            // A pipe gets what the model wrote, as it comes.
            false => text.to_owned(),
        };
        self.has_text |= !shown.is_empty();
        self.screen.answer(&shown);
        self.doing.clear();
    }

    /// What of the text was held back until now.
    fn end_of_text(&mut self) {
        let rest = self.check.finish();
        self.answer(&rest);
        let shown = self.markdown.finish();
        self.has_text |= !shown.is_empty();
        self.screen.answer(&shown);
        if std::mem::take(&mut self.has_text) {
            self.markdown = MarkdownStream::new(self.screen.answer_paint);
            // Only on a terminal: in a pipe, a line that is not ended yet ends here.
            self.screen.answer("\n");
        }
    }

    /// The turn is over, or waits for a person.
    pub fn finish(&mut self) {
        self.end_of_text();
        self.screen.erase();
    }

    fn tick(&mut self) {
        self.frame += 1;
        let mark = FRAMES[self.frame % FRAMES.len()];
        let unfinished = self.markdown.unfinished();
        let what = match (self.doing.as_str(), unfinished.as_str()) {
            ("", "") => "thinking",
            ("", text) => text,
            (doing, _) => doing,
        };
        let since = self.since.elapsed().as_secs();
        let since = if since < 2 { String::new() } else { format!(" {since} s · Ctrl-C stops") };
        self.screen.draw(&[format!("{mark}{since} {what}")]);
    }
}

/// Says something, or goes on after decisions, until the turn is over or a person has to decide. Ctrl-C ends it.
///
/// # Errors
/// What could not be saved.
pub(super) async fn drive(
    conversation: &mut Conversation,
    shown: &mut ShownTurn<'_>,
    message: Option<&str>,
    stop: &Stop,
    cancel: &CancellationToken,
) -> Result<Turn> {
    let (_busy, _quiet) = (stop.busy(), Quiet::begin(shown.screen));
    shown.since = Instant::now();
    let shown = Mutex::new(shown);
    let ended = {
        let mut on_event = |event| lock(&shown).event(event);
        let mut turn = pin!(async {
            match message {
                Some(message) => conversation.say(message, &mut on_event, cancel).await,
                None => conversation.go_on(&mut on_event, cancel).await,
            }
        });
        let (mut frames, mut interrupts) = (tokio::time::interval(FRAME), Interrupts::listen());
        loop {
            tokio::select! {
                ended = &mut turn => break ended,
                _ = frames.tick() => lock(&shown).tick(),
                () = interrupts.next(), if !cancel.is_cancelled() => cancel.cancel(),
                () = stop.ending(), if !cancel.is_cancelled() => cancel.cancel(),
            }
        }
    };
    lock(&shown).finish();
    ended
}

fn lock<'m, T>(shown: &'m Mutex<T>) -> MutexGuard<'m, T> {
    shown.lock().unwrap_or_else(PoisonError::into_inner)
}
