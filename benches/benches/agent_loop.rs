//! The overhead of agent-loop: the proxy, the loop around a scripted model, and the parser of calls in text.
//!
//! `cargo bench -p benches --bench agent_loop`; a word after `--` (`proxy`, `loop`, `parser`) selects one.

#![allow(clippy::print_stdout, reason = "a program that reports")]

use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use agent_loop::text_calls::Parser;
use agent_loop::{
    Agent, BoxFuture, Budget, Delta, EndReason, Model, Pause, ReplyStream, Request, Run, RunId, RunOptions,
    ScriptedModel, ScriptedReply, Tool, ToolOutput, error::Result,
};
use agent_proxy::{Proxy, ProxyOptions};
use benches::median;
use futures_util::{StreamExt, stream};
use serde_json::json;
use tokio::sync::mpsc;

/// The number of streams whose first bytes are timed.
const STREAMS: usize = 1_000;
/// The number of calls in a reply of the loop's model.
const PARALLEL: usize = 4;

fn main() {
    let chosen: Vec<String> = std::env::args().skip(1).filter(|word| !word.starts_with('-')).collect();
    let wants = |name: &str| chosen.is_empty() || chosen.iter().any(|word| word == name);
    if wants("proxy") {
        first_byte();
    }
    if wants("loop") {
        overhead();
    }
    if wants("parser") {
        parser();
    }
}

/// A model that sends `x` on a signal, and reports when it did.
struct Told {
    tell: Mutex<mpsc::UnboundedReceiver<()>>,
    said: Arc<Mutex<Instant>>,
}

impl Model for Told {
    fn name(&self) -> &str {
        "told"
    }

    fn reply(&self, _: Request) -> BoxFuture<'_, Result<ReplyStream<'_>>> {
        Box::pin(async {
            let first = stream::poll_fn(|cx| {
                let told = self.tell.lock().expect("nothing panics here").poll_recv(cx);
                told.map(|told| {
                    told?;
                    *self.said.lock().expect("nothing panics here") = Instant::now();
                    Some(Ok(Delta::Text { text: "x".into() }))
                })
            });
            let deltas = first.take(1).chain(stream::iter([Ok(Delta::End(EndReason::Complete))]));
            Ok(Box::pin(deltas) as ReplyStream<'_>)
        })
    }
}

/// Times the way from the backend's first delta to its event at the client, over one reused connection.
fn first_byte() {
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().expect("a runtime");
    let (tell, told) = mpsc::unbounded_channel();
    let said = Arc::new(Mutex::new(Instant::now()));
    let model = Told { tell: Mutex::new(told), said: Arc::clone(&said) };
    let listener = runtime.block_on(Proxy::listen(0)).expect("a port");
    let address = listener.local_addr().expect("its address");
    runtime.spawn(Proxy::new(ProxyOptions::default()).model("m", model).serve(listener, std::future::pending()));
    let mut connection = TcpStream::connect(address).expect("a connection");
    connection.set_nodelay(true).expect("small writes at once");
    connection.set_read_timeout(Some(Duration::from_secs(10))).expect("no waiting for ever");
    for (path, body, opened, text, end) in [
        (
            "/v1/responses",
            r#"{"model":"m","stream":true,"input":"hi"}"#,
            "response.in_progress",
            r#""delta":"x""#,
            "0\r\n\r\n",
        ),
        (
            "/v1/chat/completions",
            r#"{"model":"m","stream":true,"messages":[{"role":"user","content":"hi"}]}"#,
            r#""role":"assistant""#,
            r#""content":"x""#,
            "0\r\n\r\n",
        ),
    ] {
        let request =
            format!("POST {path} HTTP/1.1\r\nhost: localhost\r\ncontent-length: {}\r\n\r\n{body}", body.len());
        let mut waits = Vec::with_capacity(STREAMS);
        for _ in 0..STREAMS {
            connection.write_all(request.as_bytes()).expect("the request is sent");
            let mut seen = String::new();
            read_until(&mut connection, &mut seen, opened);
            tell.send(()).expect("the backend listens");
            read_until(&mut connection, &mut seen, text);
            let got = Instant::now();
            waits.push(got.duration_since(*said.lock().expect("nothing panics here")).as_secs_f64() * 1e6);
            read_until(&mut connection, &mut seen, end);
        }
        waits.sort_by(f64::total_cmp);
        println!(
            "proxy, {path}: backend's first byte to client's, {STREAMS} streams: median {:.0} us, p99 {:.0} us (bar: 1 ms)",
            median(&waits),
            waits[waits.len() * 99 / 100]
        );
    }
    runtime.shutdown_background();
}

fn read_until(connection: &mut TcpStream, seen: &mut String, wanted: &str) {
    let mut bytes = [0; 16 << 10];
    while !seen.contains(wanted) {
        let read = connection.read(&mut bytes).expect("the proxy answers");
        assert!(read > 0, "the proxy closed the connection: {seen}");
        seen.push_str(&String::from_utf8_lossy(&bytes[..read]));
    }
}

/// Times runs with a scripted model, which checks every request, and tools that do nothing, so that only the loop
/// counts.
fn overhead() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let mut per_call = Vec::new();
    for turns in [100, 1_000] {
        let rounds: Vec<f64> = (0..5).map(|_| runtime.block_on(run(turns))).collect();
        let micros = median(&rounds) / (turns * PARALLEL) as f64;
        println!("loop: {turns} turns of {PARALLEL} calls: {micros:.1} us a call (bar: 50 us)");
        per_call.push(micros);
    }
    println!("loop: a call of 1,000 turns takes {:.2} of one of 100 turns (1 is linear)", per_call[1] / per_call[0]);
}

/// A model that calls tools in every reply, and then ends with a text.
fn script(turns: usize) -> ScriptedModel {
    let calls = |turn| (0..PARALLEL).map(move |index| ("look", json!({"number": turn * PARALLEL + index})));
    ScriptedModel::new((0..turns).map(|turn| ScriptedReply::calls(calls(turn))).chain([ScriptedReply::text("done")]))
}

/// Returns the duration of one run in microseconds.
async fn run(turns: usize) -> f64 {
    #[derive(serde::Deserialize, schemars::JsonSchema)]
    struct Number {
        number: u64,
    }
    let look = Tool::read("look", |Number { number }| async move { Ok(ToolOutput::text(number.to_string())) });
    let agent = Agent::new(script(turns), vec![look]).expect("one tool");
    let budget = Budget::default().turns(None).calls(None);
    let mut run = Run::new(RunId::random(), RunOptions::default().budget(budget), "go");
    let start = Instant::now();
    let pause = agent.drive(&mut run, &mut (), &Default::default()).await.expect("nothing fails");
    let time = start.elapsed();
    assert!(matches!(pause, Pause::Done(outcome) if outcome.text == "done"));
    time.as_secs_f64() * 1e6
}

/// Parses text with a call every two thousand bytes, in deltas as models send them and in large ones.
fn parser() {
    let call = r#"<tool_call>{"name":"search","arguments":{"query":"pruning \"roses\" in <b>spring</b>"}}</tool_call>"#;
    let text =
        format!("{}{call}", "When the buds swell, cut above one that looks outward; a < b is no call. ".repeat(27))
            .repeat(2_000);
    for piece in [16, 4 << 10] {
        let round = || {
            let start = Instant::now();
            let mut parser = Parser::new();
            let mut pieces = 0;
            for bytes in text.as_bytes().chunks(piece) {
                pieces += parser.push(bytes).count();
            }
            pieces += parser.finish().count();
            assert!(pieces > 4_000, "{pieces}");
            text.len() as f64 / 1e6 / start.elapsed().as_secs_f64()
        };
        let rounds: Vec<f64> = (0..9).map(|_| round()).collect();
        println!("parser: deltas of {piece} bytes: {:.0} MB/s (bar: 200 MB/s)", median(&rounds));
    }
}
