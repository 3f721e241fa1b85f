//! However a reply ends, both sides learn it: failures, silence, clients that go, servers that stop.

use std::time::Duration;

use agent_loop::{BoxFuture, Error, ErrorKind, Model, ReplyStream, Request};
use agent_proxy::{Proxy, ProxyOptions};
use futures_util::stream;
use serde_json::{Value, json};
use tokio::net::TcpStream;

use super::backend::{Backend, Hand};
use super::client::Client;
use super::{CHAT, RESPONSES, RunningProxy, question, within};
use crate::chat::check_chunks;
use crate::responses::accumulate;

const SHORT: Duration = Duration::from_millis(40);

async fn server(options: ProxyOptions) -> (RunningProxy, Hand) {
    let (backend, hand) = Backend::new();
    (RunningProxy::with(options, backend).await, hand)
}

async fn asking(server: &RunningProxy, path: &str, stream: bool) -> Client {
    let mut client = server.client().await;
    client.send("POST", path, &[], &question(path, "hi", stream).to_string()).await;
    client
}

/// The code of the error that a stream ended with; the stream itself is checked.
fn failed(path: &str, events: &[Value]) -> String {
    let error = match path {
        RESPONSES => {
            let last = accumulate(events);
            assert_eq!(last["type"], "response.failed");
            last["response"]["error"].clone()
        }
        _ => check_chunks(events).error,
    };
    error["code"].as_str().unwrap_or_else(|| panic!("no failure in {events:?}")).to_string()
}

fn has_text(event: &Value, text: &str) -> bool {
    event["delta"] == text || event["choices"][0]["delta"]["content"] == text
}

#[tokio::test]
async fn a_failure_before_the_first_byte_is_a_status() {
    let (server, mut hand) = server(ProxyOptions::default()).await;
    let limited = || Error::new(ErrorKind::RateLimit, "slow down").with_retry_after(Duration::from_millis(1500));
    for (error, status, code, retry_after) in [
        (limited(), 429, "rate_limit_exceeded", Some("2")),
        (Error::new(ErrorKind::Authentication, "bad key sk-1").with_status(401), 502, "backend_error", None),
        (Error::new(ErrorKind::ContextTooLong, "x"), 400, "context_length_exceeded", None),
        (Error::new(ErrorKind::BadRequest, "x"), 400, "invalid_prompt", None),
        (Error::new(ErrorKind::Unavailable, "x"), 503, "backend_unavailable", None),
        (Error::new(ErrorKind::TimedOut, "x"), 504, "backend_timeout", None),
        (Error::new(ErrorKind::State, "x"), 500, "server_error", None),
    ] {
        for (path, stream) in [(RESPONSES, true), (RESPONSES, false), (CHAT, true), (CHAT, false)] {
            let again = Error::new(error.kind(), error.message());
            let again = error.retry_after().map_or(again, |_| limited());
            let mut client = asking(&server, path, stream).await;
            hand.asked().await.refuse(again);
            let head = client.head().await;
            let body = client.body(&head).await;
            assert_eq!((head.status, head.header("retry-after")), (status, retry_after), "{body}");
            let body: Value = serde_json::from_str(&body).unwrap();
            assert_eq!(body["error"]["code"], code);
            assert!(!body.to_string().contains("sk-1"), "what the backend says of our key is not for clients");
        }
    }
    hand.live(0).await;
}

#[tokio::test]
async fn a_failure_behind_the_first_byte_is_an_event() {
    let (server, mut hand) = server(ProxyOptions::default()).await;
    for path in [RESPONSES, CHAT] {
        for error in [Some(Error::new(ErrorKind::RateLimit, "slow down")), None] {
            let code = if error.is_some() { "rate_limit_exceeded" } else { "server_error" };
            let mut client = asking(&server, path, true).await;
            let speaking = hand.asked().await.accept();
            assert_eq!(client.head().await.status, 200);
            speaking.say("a");
            match error {
                Some(error) => speaking.fail(error),
                None => drop(speaking),
            }
            assert_eq!(failed(path, &client.events().await), code);
        }
        // Without a stream nothing was sent yet.
        let mut client = asking(&server, path, false).await;
        let speaking = hand.asked().await.accept();
        speaking.say("a");
        speaking.fail(Error::new(ErrorKind::Unavailable, "gone"));
        assert_eq!(client.json().await.0, 503);
        let mut client = asking(&server, path, false).await;
        hand.asked().await.accept().say("a");
        assert_eq!(client.json().await.0, 502, "a cut stream");
    }
    hand.live(0).await;
}

/// Breaks down when it is asked, or in its stream.
struct BrokenModel {
    at_once: bool,
}

impl Model for BrokenModel {
    fn name(&self) -> &str {
        "broken"
    }

    fn reply(&self, _: Request) -> BoxFuture<'_, agent_loop::error::Result<ReplyStream<'_>>> {
        assert!(!self.at_once, "this backend breaks down, which is expected here");
        Box::pin(async { Ok(Box::pin(stream::poll_fn(|_| panic!("expected here"))) as ReplyStream<'_>) })
    }
}

#[tokio::test]
async fn a_backend_that_breaks_down_is_a_failure() {
    let proxy = Proxy::new(ProxyOptions::default());
    let server =
        RunningProxy::start(proxy.model("m", BrokenModel { at_once: false }).model("n", BrokenModel { at_once: true }))
            .await;
    let mut client = asking(&server, RESPONSES, true).await;
    assert_eq!(client.head().await.status, 200);
    assert_eq!(failed(RESPONSES, &client.events().await), "server_error");
    assert_eq!(server.post(RESPONSES, &json!({"model": "n", "input": "hi", "stream": true})).await.0, 502);
    assert_eq!(server.get("/health").await.1["replies"], 0);
}

#[tokio::test]
async fn a_backend_that_says_nothing_is_given_up() {
    // Long enough for what is said at once to be in time on a busy machine.
    let options = ProxyOptions::default().backend_timeout(10 * SHORT);
    let (server, mut hand) = server(options).await;
    for path in [RESPONSES, CHAT] {
        let mut client = asking(&server, path, true).await;
        let _unanswered = hand.asked().await;
        assert_eq!(client.json().await.0, 504);
        let mut client = asking(&server, path, false).await;
        let _speaking = hand.asked().await.accept();
        assert_eq!(client.json().await.0, 504);
        let mut client = asking(&server, path, true).await;
        let speaking = hand.asked().await.accept();
        speaking.say("a");
        client.head().await;
        assert_eq!(failed(path, &client.events().await), "server_error");
        speaking.dropped().await;
    }
    hand.live(0).await;
}

#[tokio::test]
async fn keep_alive_comments_are_sent_while_the_backend_is_silent() {
    let options = ProxyOptions::default().keep_alive(SHORT).headers_within(SHORT);
    let (server, mut hand) = server(options).await;
    for path in [RESPONSES, CHAT] {
        let mut client = asking(&server, path, true).await;
        let asked = hand.asked().await;
        // The headers come although the backend has not answered, then the first events and comments.
        assert_eq!(client.head().await.status, 200);
        let is_comment = |block: &String| block.starts_with(':');
        while !is_comment(&client.block().await.unwrap()) {}
        let speaking = asked.accept();
        while !is_comment(&client.block().await.unwrap()) {}
        speaking.say("a");
        assert!(client.events_until(|event| has_text(event, "a")).await.len() < 9);
        while !is_comment(&client.block().await.unwrap()) {}
        speaking.end();
        client.events().await;

        // Refused that late, it is an event.
        let mut client = asking(&server, path, true).await;
        let asked = hand.asked().await;
        client.head().await;
        asked.refuse(Error::new(ErrorKind::ContextTooLong, "x"));
        assert_eq!(failed(path, &client.events().await), "context_length_exceeded");
    }
    hand.live(0).await;
}

#[tokio::test]
async fn a_client_that_goes_ends_the_backend() {
    let (server, mut hand) = server(ProxyOptions::default()).await;
    for path in [RESPONSES, CHAT] {
        let mut client = asking(&server, path, true).await;
        let speaking = hand.asked().await.accept();
        speaking.say("a");
        client.head().await;
        client.events_until(|event| has_text(event, "a")).await;
        drop(client);
        speaking.dropped().await;
        for stream in [true, false] {
            // While the backend is asked, and while one object is gathered.
            let client = asking(&server, path, stream).await;
            let _unanswered = hand.asked().await;
            drop(client);
            hand.live(0).await;
            let client = asking(&server, path, stream).await;
            let speaking = hand.asked().await.accept();
            drop(client);
            speaking.dropped().await;
        }
    }
    hand.live(0).await;
    assert_eq!(server.get("/health").await.1["replies"], 0);
}

#[tokio::test]
async fn a_client_that_stops_reading_ends_the_backend() {
    let options = ProxyOptions::default().client_timeout(Duration::from_millis(200));
    let (server, mut hand) = server(options).await;
    let _client = asking(&server, RESPONSES, true).await;
    let speaking = hand.asked().await.accept();
    // More than all buffers between hold.
    let text = "x".repeat(1 << 20);
    (0..64).for_each(|_| assert!(speaking.say(&text)));
    speaking.dropped().await;
    hand.live(0).await;
    // And one that sends no more of its request than this.
    let mut slow = server.client().await;
    slow.write("POST /v1/responses HTTP/1.1\r\nhost: localhost\r\ncontent-length: 9\r\n\r\n{").await;
    assert_eq!(slow.json().await.0, 408);
    let mut slower = server.client().await;
    slower.write("POST /v1/resp").await;
    slower.closed().await;
}

#[tokio::test]
async fn more_replies_than_allowed_are_refused_until_one_ends() {
    let (server, mut hand) = server(ProxyOptions::default().max_replies(2)).await;
    let mut first = asking(&server, RESPONSES, true).await;
    let speaking = hand.asked().await.accept();
    let second = asking(&server, CHAT, false).await;
    let _other = hand.asked().await.accept();
    let mut third = asking(&server, CHAT, true).await;
    let head = third.head().await;
    assert_eq!((head.status, head.header("retry-after")), (503, Some("1")));
    assert!(third.body(&head).await.contains("overloaded"));
    speaking.end();
    first.head().await;
    first.events().await;
    // The place is free as soon as the client has read the end.
    let mut third = asking(&server, CHAT, false).await;
    hand.asked().await.accept().end();
    assert_eq!(third.json().await.0, 200);
    drop(second);
    hand.live(0).await;
}

#[tokio::test]
async fn requests_that_are_half_sent_take_no_place() {
    let (server, mut hand) = server(ProxyOptions::default().max_replies(1)).await;
    let mut half = Vec::new();
    for _ in 0..3 {
        let mut client = server.client().await;
        client.write("POST /v1/responses HTTP/1.1\r\nhost: localhost\r\ncontent-length: 9\r\n\r\n{").await;
        half.push(client);
    }
    let mut whole = asking(&server, RESPONSES, false).await;
    hand.asked().await.accept().end();
    assert_eq!(whole.json().await.0, 200);
}

#[tokio::test]
async fn a_declared_length_over_the_limit_is_refused_before_the_body_comes() {
    let (server, _hand) = server(ProxyOptions::default().max_body(1000)).await;
    let mut client = server.client().await;
    client.write("POST /v1/responses HTTP/1.1\r\nhost: localhost\r\ncontent-length: 1001\r\n\r\n").await;
    let (status, error) = client.json().await;
    assert_eq!((status, &error["error"]["code"]), (413, &json!("request_too_large")));
}

#[tokio::test]
async fn a_stop_sequence_ends_the_backend() {
    let (server, mut hand) = server(ProxyOptions::default()).await;
    for (path, stream) in [(RESPONSES, true), (RESPONSES, false), (CHAT, true), (CHAT, false)] {
        let mut body = question(path, "hi", stream);
        body["stop"] = json!("END");
        let mut client = server.client().await;
        client.send("POST", path, &[], &body.to_string()).await;
        let speaking = hand.asked().await.accept();
        speaking.say("a E");
        speaking.say("ND b");
        speaking.dropped().await;
        let said = if stream {
            client.head().await;
            json!(client.events().await)
        } else {
            client.json().await.1
        };
        let said = said.to_string();
        assert!(said.contains("\"a \"") && !said.contains("ND"), "{said}");
    }
}

#[tokio::test]
async fn a_server_that_stops_ends_what_is_under_way() {
    let (mut server, mut hand) = server(ProxyOptions::default().grace(SHORT)).await;
    let mut idle = server.client().await;
    idle.send("GET", "/health", &[], "").await;
    assert_eq!(idle.json().await.0, 200);
    let mut clients = Vec::new();
    let mut speaking = Vec::new();
    for path in [RESPONSES, CHAT] {
        let mut client = asking(&server, path, true).await;
        speaking.push(hand.asked().await.accept());
        client.head().await;
        clients.push((path, client));
    }
    let mut whole = asking(&server, RESPONSES, false).await;
    speaking.push(hand.asked().await.accept());
    server.stop();
    for (path, mut client) in clients {
        assert_eq!(failed(path, &client.events().await), "server_error");
        assert!(client.closed().await.is_empty());
    }
    assert_eq!(whole.json().await.0, 503);
    assert!(idle.closed().await.is_empty());
    hand.live(0).await;
    let address = server.address;
    server.ended().await;
    assert!(TcpStream::connect(address).await.is_err(), "nobody listens any more");
}

#[tokio::test]
async fn a_server_that_stops_lets_replies_end_by_themselves() {
    let (mut server, mut hand) = server(ProxyOptions::default()).await;
    let mut client = asking(&server, RESPONSES, true).await;
    let speaking = hand.asked().await.accept();
    client.head().await;
    server.stop();
    speaking.say("a");
    client.events_until(|event| has_text(event, "a")).await;
    speaking.end();
    assert_eq!(client.events().await.last().unwrap()["type"], "response.completed");
    server.ended().await;
}

#[tokio::test]
async fn a_server_that_is_dropped_leaves_nothing() {
    let (server, mut hand) = server(ProxyOptions::default()).await;
    let mut client = asking(&server, RESPONSES, true).await;
    let speaking = hand.asked().await.accept();
    client.head().await;
    server.task.abort();
    speaking.dropped().await;
    hand.live(0).await;
    within(client.closed()).await;
}
