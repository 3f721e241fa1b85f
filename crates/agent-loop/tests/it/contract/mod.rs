//! The contract of every wire: the same cases for each, with bytes as providers send them, split anywhere. They run
//! over a connection in memory, and with the feature `hosted` once more over sockets.

/// Names the tests of a file as rows of the README's table.
macro_rules! cases {
    ($($title:literal $run:ident,)*) => {
        #[allow(dead_code, reason = "those that run over sockets are in the table already")]
        pub const CASES: &[Case] = &[$(Case { title: $title, name: stringify!($run), run: $run },)*];
    };
}

mod failures;
#[cfg(feature = "hosted")]
mod network;
mod ollama;
mod timeouts;
mod requests;
#[cfg(feature = "hosted")]
mod served;
#[cfg(feature = "hosted")]
mod server;
mod recorded;
mod settings;
mod table;
mod answer_tool;
mod unrequested;
pub mod cumulative_text;
mod whole;
mod wires;

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use agent_loop::{
    BoxFuture, Delta, Effect, Error, ErrorKind, HostedModel, HttpReply, HttpRequest, Model, Part, Provider, Reply,
    ReplyBuilder, Request, ToolSpec, Transport, Usage, Wire, error::Result,
};
use futures_util::{StreamExt, stream};
use serde_json::{Value, json};

/// A test as a row of a table.
#[derive(Clone, Copy)]
pub struct Case {
    pub title: &'static str,
    pub name: &'static str,
    pub run: fn(),
}

thread_local! {
    /// The wires that were asked on this thread, on which a whole case runs.
    static RAN: RefCell<Vec<Wire>> = const { RefCell::new(Vec::new()) };
    static FOR_TABLE: Cell<bool> = const { Cell::new(false) };
}

fn ran_over(wire: Wire) {
    RAN.with_borrow_mut(|wires| wires.push(wire));
}

fn ran() -> Vec<Wire> {
    RAN.take()
}

/// The bytes at which a stream is cut: each; a few where only the table is made.
pub fn cuts(end: usize) -> impl Iterator<Item = usize> {
    (0..end).step_by(if FOR_TABLE.get() { 97 } else { 1 })
}

pub const KEY: &str = "sk-secret-1234";

/// A connection that gives what a test wrote down.
#[derive(Clone, Default)]
pub struct CannedTransport(Arc<Mutex<Inner>>);

#[derive(Default)]
struct Inner {
    replies: VecDeque<Answer>,
    seen: Vec<HttpRequest>,
}

pub struct Answer {
    status: u16,
    headers: Vec<(String, String)>,
    body: Vec<Result<Vec<u8>>>,
    pause: Duration,
}

impl Answer {
    pub fn new(status: u16, kind: &str, body: impl AsRef<[u8]>, size: usize) -> Self {
        let body = body.as_ref().chunks(size.max(1)).map(|bytes| Ok(bytes.to_vec())).collect();
        let headers = vec![("Content-Type".into(), kind.into())];
        Self { status, headers, body, pause: Duration::ZERO }
    }

    pub fn events(body: impl AsRef<[u8]>, size: usize) -> Self {
        Self::new(200, "text/event-stream; charset=utf-8", body, size)
    }

    pub fn json(status: u16, body: &Value) -> Self {
        Self::new(status, "application/json", body.to_string(), 7)
    }

    pub fn header(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.into(), value.into()));
        self
    }

    /// This long before every piece of the body.
    pub fn slowly(mut self, pause: Duration) -> Self {
        self.pause = pause;
        self
    }

    /// The connection breaks at the end of what is there.
    pub fn broken(mut self) -> Self {
        self.body.push(Err(Error::new(ErrorKind::CutStream, "connection reset")));
        self
    }
}

impl Transport for CannedTransport {
    fn post(&self, request: HttpRequest) -> BoxFuture<'_, Result<HttpReply>> {
        Box::pin(async move {
            let mut inner = self.0.lock().unwrap();
            inner.seen.push(request);
            let answer = inner.replies.pop_front().expect("a reply for each request");
            let Answer { status, headers, body, pause } = answer;
            let body = stream::iter(body).then(move |piece| async move {
                if !pause.is_zero() {
                    tokio::time::sleep(pause).await;
                }
                piece
            });
            Ok(HttpReply { status, headers, body: Box::pin(body) })
        })
    }
}

pub const WIRES: [Wire; 6] =
    [Wire::OpenAiChat, Wire::Chat, Wire::OpenAiResponses, Wire::Anthropic, Wire::Gemini, Wire::Ollama];

pub fn hosted(
    wire: Wire,
    answers: impl IntoIterator<Item = Answer>,
) -> (HostedModel<CannedTransport>, CannedTransport) {
    provided(wire, answers, |_| {})
}

/// With a provider that differs from the usual one.
pub fn provided(
    wire: Wire,
    answers: impl IntoIterator<Item = Answer>,
    change: impl FnOnce(&mut Provider),
) -> (HostedModel<CannedTransport>, CannedTransport) {
    ran_over(wire);
    let canned = CannedTransport::default();
    canned.0.lock().unwrap().replies.extend(answers);
    let mut provider = Provider::new("here", wire, "http://127.0.0.1:1/v1/", Some(KEY.into()));
    change(&mut provider);
    (HostedModel::new(provider, "m", canned.clone()), canned)
}

pub fn sent(canned: &CannedTransport) -> (HttpRequest, Value) {
    let request = canned.0.lock().unwrap().seen.last().expect("a request was sent").clone();
    let body = serde_json::from_slice(&request.body).unwrap();
    (request, body)
}

pub fn tools() -> Vec<ToolSpec> {
    let spec = |name: &str, parameters: Value| ToolSpec {
        name: name.into(),
        description: "A tool.".into(),
        parameters,
        effect: Effect::Read,
        time_limit: None,
    };
    vec![
        spec(
            "notes.read",
            json!({"type": "object", "required": ["x"],
            "properties": {"x": {"type": "integer"}, "y": {"type": "string"}}}),
        ),
        spec("now", json!({"type": "object", "properties": {}})),
        spec("free", json!({"type": "object", "properties": {"any": {"type": "object"}}})),
    ]
}

pub fn request() -> Request {
    Request::default()
        .system(Some("Be brief.".into()))
        .messages([agent_loop::Message::user("hi")].into_iter().collect())
        .tools(tools().into())
}

/// All deltas of one reply, and how it ended.
pub async fn deltas(model: &impl Model, request: Request) -> (Vec<Delta>, Result<Reply>) {
    let mut stream = match model.reply(request).await {
        Ok(stream) => stream,
        Err(error) => return (Vec::new(), Err(error)),
    };
    let (mut all, mut builder) = (Vec::new(), ReplyBuilder::new());
    while let Some(delta) = stream.next().await {
        match delta.and_then(|delta| builder.push(&delta).map(|()| delta)) {
            Ok(Delta::Progress) => {}
            Ok(delta) => all.push(delta),
            Err(error) => return (all, Err(error)),
        }
    }
    (all, builder.finish())
}

pub async fn reply(wire: Wire, answer: Answer) -> Result<Reply> {
    deltas(&hosted(wire, [answer]).0, request()).await.1
}

/// A reply in one line: `text|name {arguments}|…|end`, `!` before the name of a call that must not run.
pub fn show(reply: &Reply) -> String {
    let part = |part: &Part| match part {
        Part::Text { text, .. } => text.clone(),
        Part::Reasoning { text, opaque } => format!("({text}{})", if opaque.is_some() { " signed" } else { "" }),
        Part::Call(call) => {
            let fault = if call.fault.is_some() { "!" } else { "" };
            format!("{fault}{} {}", call.name, call.arguments)
        }
    };
    let mut parts: Vec<String> = reply.parts.iter().map(part).collect();
    parts.push(format!("{:?}", reply.end));
    parts.join("|")
}

pub fn usage(input: u64, output: u64) -> Option<Usage> {
    Some(Usage::default().input(input).output(output))
}
