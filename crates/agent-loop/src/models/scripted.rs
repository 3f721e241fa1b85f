//! A scripted model for tests. It replays given replies and fails on requests that the script does not expect.

use std::collections::VecDeque;
use std::fmt;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use futures_util::stream;
use serde_json::Value;

use crate::error::{Error, ErrorKind, Result};
use crate::message::{MessageChecker, Usage};
use crate::model::{Delta, EndReason, ImageSupport, Model, ReplyStream, Request, ToolSupport};
use crate::tool::BoxFuture;

type Check = Box<dyn Fn(&Request) -> Result<(), String> + Send + Sync>;

/// One expected request and its reply.
pub struct ScriptedReply {
    check: Option<Check>,
    start: Result<()>,
    items: Vec<Item>,
}

impl fmt::Debug for ScriptedReply {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ScriptedReply").field("items", &self.items.len()).finish_non_exhaustive()
    }
}

enum Item {
    Say(Result<Delta>),
    Wait(Duration),
    Silence,
}

impl ScriptedReply {
    /// Creates a reply from any deltas. Without a final [`Delta::End`] the stream counts as broken off.
    pub fn deltas(deltas: impl IntoIterator<Item = Delta>) -> Self {
        Self { check: None, start: Ok(()), items: deltas.into_iter().map(|delta| Item::Say(Ok(delta))).collect() }
    }

    /// Creates a complete answer.
    pub fn text(text: impl Into<String>) -> Self {
        Self::deltas([Delta::Text { text: text.into() }, Delta::End(EndReason::Complete)])
    }

    /// Creates complete tool calls. Their ids are empty, so that the run assigns ids.
    pub fn calls<'a>(calls: impl IntoIterator<Item = (&'a str, Value)>) -> Self {
        let deltas = calls.into_iter().enumerate().flat_map(|(index, (name, arguments))| {
            [
                Delta::CallStart { index, id: String::new(), name: name.into() },
                Delta::CallArguments { index, text: arguments.to_string() },
                Delta::CallEnd { index, opaque: None },
            ]
        });
        Self::deltas(deltas.chain([Delta::End(EndReason::Complete)]))
    }

    /// Creates a request that fails before the first delta.
    pub fn fails(error: Error) -> Self {
        Self { check: None, start: Err(error), items: Vec::new() }
    }

    /// Creates a request that is never answered.
    pub fn silence() -> Self {
        Self::deltas([]).then_silence()
    }

    /// Adds a failure at the end of the deltas.
    #[must_use]
    pub fn then_fails(mut self, error: Error) -> Self {
        self.items.push(Item::Say(Err(error)));
        self
    }

    /// Makes the reply stop without an end after its deltas.
    #[must_use]
    pub fn then_silence(mut self) -> Self {
        self.items.push(Item::Silence);
        self
    }

    /// Adds a wait before the first delta, in the runtime's time.
    #[must_use]
    pub fn after(mut self, delay: Duration) -> Self {
        self.items.insert(0, Item::Wait(delay));
        self
    }

    /// Reports the tokens of the reply, before its end.
    #[must_use]
    pub fn usage(mut self, input: u64, output: u64) -> Self {
        let usage = Delta::Usage(Usage { input, output, ..Usage::default() });
        let at = self.items.len().saturating_sub(1);
        self.items.insert(at, Item::Say(Ok(usage)));
        self
    }

    /// Checks the request. The request fails with the error that `check` returns.
    #[must_use]
    pub fn expecting(mut self, check: impl Fn(&Request) -> Result<(), String> + Send + Sync + 'static) -> Self {
        self.check = Some(Box::new(check));
        self
    }
}

/// A model with a script.
///
/// Every request is checked: calls and results must pair, the step's own check must pass, and there must be a step
/// left. Otherwise the request fails with an error of the kind `Script`. If a conversation continues the last request,
/// only the new messages are checked, so that a run stays linear.
///
/// # Panics
/// If it is dropped with steps left, unless the thread is already panicking, because a test that did not use all
/// replies must not pass.
pub struct ScriptedModel {
    steps: Mutex<VecDeque<ScriptedReply>>,
    checked: Mutex<MessageChecker>,
    tools: ToolSupport,
}

impl ScriptedModel {
    /// Creates a model that plays these steps, one for each request.
    pub fn new(steps: impl IntoIterator<Item = ScriptedReply>) -> Self {
        let (steps, checked) = (Mutex::new(steps.into_iter().collect()), Mutex::default());
        Self { steps, checked, tools: ToolSupport::Native }
    }

    /// Makes the model reject tools: a request with tools fails with `ToolsUnsupported`.
    #[must_use]
    pub fn without_tools(mut self) -> Self {
        self.tools = ToolSupport::None;
        self
    }

    /// Returns how many replies are left.
    pub fn steps_left(&self) -> usize {
        self.steps.lock().unwrap_or_else(PoisonError::into_inner).len()
    }

    fn next_step(&self, request: &Request) -> Result<ScriptedReply> {
        let wrong = |what: String| Error::new(ErrorKind::Script, what).with_path("scripted model");
        let checked = self.checked.lock().unwrap_or_else(PoisonError::into_inner).check(&request.messages);
        checked.map_err(|error| wrong(format!("the request's history is broken: {error}")))?;
        if self.tools == ToolSupport::None && !request.tools.is_empty() {
            return Err(Error::new(ErrorKind::ToolsUnsupported, "this model does not support tools")
                .with_path("scripted model"));
        }
        let step = self.steps.lock().unwrap_or_else(PoisonError::into_inner).pop_front();
        let step = step.ok_or_else(|| wrong("a request that the script does not expect".into()))?;
        if let Some(check) = &step.check {
            check(request).map_err(wrong)?;
        }
        Ok(step)
    }
}

impl fmt::Debug for ScriptedModel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ScriptedModel").field("steps_left", &self.steps_left()).finish()
    }
}

impl Drop for ScriptedModel {
    fn drop(&mut self) {
        let left = self.steps_left();
        assert!(left == 0 || std::thread::panicking(), "{left} replies of the script were never requested");
    }
}

impl Model for ScriptedModel {
    fn name(&self) -> &str {
        "scripted"
    }

    fn tool_support(&self) -> ToolSupport {
        self.tools
    }

    fn image_support(&self) -> ImageSupport {
        ImageSupport::Native
    }

    fn reply(&self, request: Request) -> BoxFuture<'_, Result<ReplyStream<'_>>> {
        Box::pin(async move {
            let step = self.next_step(&request)?;
            step.start?;
            let items = stream::unfold(step.items.into_iter(), |mut items| async move {
                loop {
                    match items.next()? {
                        Item::Say(delta) => return Some((delta, items)),
                        Item::Wait(delay) => tokio::time::sleep(delay).await,
                        Item::Silence => std::future::pending().await,
                    }
                }
            });
            Ok(Box::pin(items) as ReplyStream<'_>)
        })
    }
}
