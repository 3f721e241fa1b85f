//! The same cases, sent by a real server to the HTTP connection of users: each in one of the three ways in which HTTP
//! defines the end of a body.

use std::sync::OnceLock;

use agent_loop::Http;

use super::server::{Exchange, ScriptedReply, Server};
use super::*;

// Their `super::*` finds what stands here before what it hides.
#[path = "failures.rs"]
mod failures;
#[path = "ollama.rs"]
mod ollama;
#[path = "requests.rs"]
mod requests;
#[path = "settings.rs"]
mod settings;
#[path = "cumulative_text.rs"]
mod cumulative_text;
#[path = "whole.rs"]
mod whole;
#[path = "wires.rs"]
mod wires;

/// `network` cuts a shorter stream at each.
fn cuts(end: usize) -> impl Iterator<Item = usize> {
    super::cuts(end).step_by(7)
}

/// Reading the system's certificates once is enough.
pub fn http() -> Http {
    static HTTP: OnceLock<Http> = OnceLock::new();
    HTTP.get_or_init(|| Http::new().unwrap()).clone()
}

pub fn provider_at(server: &Server, wire: Wire) -> Provider {
    ran_over(wire);
    Provider::new("here", wire, format!("http://{}/v1/", server.address), Some(KEY.into()))
}

fn hosted(wire: Wire, answers: impl IntoIterator<Item = Answer>) -> (HostedModel<Http>, Server) {
    provided(wire, answers, |_| {})
}

fn provided(
    wire: Wire,
    answers: impl IntoIterator<Item = Answer>,
    change: impl FnOnce(&mut Provider),
) -> (HostedModel<Http>, Server) {
    let server = Server::start(answers.into_iter().map(exchange));
    let mut provider = provider_at(&server, wire);
    change(&mut provider);
    (HostedModel::new(provider, "m", http()), server)
}

fn sent(server: &Server) -> (HttpRequest, Value) {
    let received = server.received().pop().expect("a request was sent");
    let body = serde_json::from_slice(&received.body).unwrap();
    let url = format!("http://127.0.0.1:1{}", received.target);
    (HttpRequest { url, headers: received.headers, body: received.body }, body)
}

async fn reply(wire: Wire, answer: Answer) -> Result<Reply> {
    deltas(&hosted(wire, [answer]).0, request()).await.1
}

fn exchange(answer: Answer) -> Exchange {
    let Answer { status, headers, body, .. } = answer;
    let is_broken = body.last().is_some_and(Result::is_err);
    let pieces: Vec<Vec<u8>> = body.into_iter().filter_map(Result::ok).collect();
    let length: usize = pieces.iter().map(Vec::len).sum();
    let way = (length + pieces.len()) % 3;
    let headers: String = headers.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
    let framing = match way {
        0 => "transfer-encoding: chunked\r\n".to_string(),
        1 => format!("content-length: {}\r\n", length + usize::from(is_broken)),
        _ => String::new(),
    };
    let mut steps = vec![ScriptedReply::Send(format!("HTTP/1.1 {status} So\r\n{headers}{framing}\r\n").into_bytes())];
    steps.extend(pieces.into_iter().map(|piece| {
        ScriptedReply::Send(if way == 0 {
            [format!("{:x}\r\n", piece.len()).as_bytes(), &piece, b"\r\n"].concat()
        } else {
            piece
        })
    }));
    steps.extend(match (way, is_broken) {
        (0, false) => Some(ScriptedReply::Send(b"0\r\n\r\n".to_vec())),
        (1, false) => None,
        (1, true) | (_, false) => Some(ScriptedReply::Close),
        (_, true) => Some(ScriptedReply::Reset),
    });
    steps
}
