//! 200 streams at once, some cut, some slow, some cancelled: each ends with one terminal event or a closed client, and
//! nothing is left.

use std::collections::HashMap;

use agent_loop::{Delta, Error, ErrorKind};
use agent_proxy::ProxyOptions;
use futures_util::future::join_all;
use serde_json::Value;

use super::backend::{Backend, BackendReply};
use super::client::Client;
use super::{CHAT, RESPONSES, RunningProxy, question, within};
use crate::chat::check_chunks;
use crate::responses::accumulate;

const STREAMS: usize = 200;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_hundred_streams_all_end() {
    let (backend, mut hand) = Backend::new();
    let server = RunningProxy::with(ProxyOptions::default(), backend.of_text_alone()).await;
    let mut clients = Vec::new();
    for number in 0..STREAMS {
        let path = if number / 5 % 2 == 0 { RESPONSES } else { CHAT };
        let mut client = server.client().await;
        let mut body = question(path, &number.to_string(), true);
        body["tools"] = serde_json::json!([{"type": "function", "function": {"name": "look"}}]);
        client.send("POST", path, &[], &body.to_string()).await;
        clients.push((number, path, client));
    }
    let mut backends: HashMap<usize, BackendReply> = HashMap::new();
    while backends.len() < STREAMS {
        let asked = hand.asked().await;
        backends.insert(asked.text().parse().unwrap(), asked.accept());
    }
    // All of them are alive side by side.
    hand.live(STREAMS).await;
    assert_eq!(server.get("/health").await.1["replies"], STREAMS);
    let streams = clients.into_iter().map(|(number, path, client)| {
        let speaking = backends.remove(&number).unwrap();
        tokio::spawn(one(number, path, client, speaking))
    });
    for ended in join_all(streams.collect::<Vec<_>>()).await {
        ended.unwrap();
    }
    hand.live(0).await;
    assert_eq!(server.get("/health").await.1["replies"], 0);
    within(server.ended()).await;
}

async fn one(number: usize, path: &'static str, mut client: Client, speaking: BackendReply) {
    assert_eq!(client.head().await.status, 200);
    let text = |event: &Value| match path {
        RESPONSES => event["delta"].as_str().map(str::to_owned),
        _ => event["choices"][0]["delta"]["content"].as_str().map(str::to_owned),
    };
    let (mut before, expected) = match number % 5 {
        // Plain, with two calls.
        0 => {
            speaking.say("I look.<tool_call>{\"name\":\"look\"}</tool");
            speaking.say("_call><tool_call>{\"name\":\"look\",\"arguments\":{\"n\":");
            speaking.say(&format!("{number}}}}}</tool_call>"));
            speaking.end();
            (Vec::new(), "completed")
        }
        // Cut, and inside a call.
        1 => {
            speaking.say("I look.<tool_call>{\"name\":\"lo");
            drop(speaking);
            (Vec::new(), "failed")
        }
        2 => {
            speaking.say("I loo");
            speaking.fail(Error::new(ErrorKind::Unavailable, "gone"));
            (Vec::new(), "failed")
        }
        // Slow: each piece is said when the one before was read.
        3 => {
            let mut events = Vec::new();
            for round in 0..20 {
                let piece = format!("{number}:{round} ");
                speaking.say(&piece);
                events.extend(client.events_until(|event| text(event).as_ref() == Some(&piece)).await);
            }
            speaking.delta(Delta::Text { text: "at last".into() });
            speaking.end();
            (events, "completed")
        }
        // Cancelled.
        _ => {
            speaking.say("a");
            client.events_until(|event| text(event).as_deref() == Some("a")).await;
            drop(client);
            return speaking.dropped().await;
        }
    };
    before.extend(client.events().await);
    match path {
        RESPONSES => assert_eq!(accumulate(&before)["response"]["status"], expected, "stream {number}"),
        _ => assert_eq!(check_chunks(&before).error.is_null(), expected == "completed", "stream {number}"),
    }
    if number.is_multiple_of(5) {
        assert!(before.iter().any(|event| event.to_string().contains(&format!("{number}}}"))), "its own arguments");
    }
}
