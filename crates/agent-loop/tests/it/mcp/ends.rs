//! Servers that exit, hang or cannot be started; cancelled calls; no process is left behind.

use std::sync::Arc;
use std::time::{Duration, Instant};

use agent_loop::mcp::{Hints, McpOptions, McpProgress, McpServer, McpTools};
use agent_loop::{Agent, ErrorKind, ScriptedModel, ScriptedReply, ToolCall, Tools};
use serde_json::json;
use tokio_util::sync::CancellationToken;

use super::server::stdio;
use super::test_server::Revisions;
use super::{all_forms, call, connected, ended, one, text, within};
use crate::programs::program;

#[tokio::test]
async fn a_server_that_ends_in_a_call_is_an_error_and_is_started_again() {
    for speaks in [Revisions::All, Revisions::OldOnes] {
        let tools = one(stdio("t", speaks)).await;
        let pid = text(&tools, "t__pid").await;
        let gone = call(&tools, "t__exit", json!({})).await.unwrap_err().0;
        assert!(gone.contains("The server t ended while the call ran; its last output was:"), "{gone}");
        assert!(gone.contains("out of cheese[2J") && gone.ends_with("check before repeating it."), "{gone}");
        ended(&pid).await;
        // The next call has a new one.
        let again = text(&tools, "t__pid").await;
        assert_ne!(again, pid);
    }
}

#[tokio::test]
async fn an_agent_goes_on_after_its_server_ended() {
    let tools = one(stdio("t", Revisions::All).hints(Hints::Trusted)).await;
    let sees = |wanted: &'static str| {
        move |request: &agent_loop::Request| {
            let text = serde_json::to_string(&request.messages).unwrap().replace('\\', "");
            text.contains(wanted).then_some(()).ok_or(text)
        }
    };
    let model = ScriptedModel::new([
        ScriptedReply::calls([("t__exit", json!({}))]),
        ScriptedReply::calls([("t__add", json!({"a": 1, "b": 1}))]).expecting(sees("ended while the call ran")),
        ScriptedReply::text("Two.").expecting(sees("{\"sum\":2}")),
    ]);
    let agent = Agent::new(model, tools).unwrap().policy(agent_loop::AllowAll);
    let outcome = within(agent.ask("go")).await.unwrap();
    assert_eq!(outcome.text, "Two.", "{outcome:?}");
}

#[tokio::test]
async fn a_server_that_never_answers_is_given_up() {
    for (form, server) in all_forms().await {
        let tools = one(server.time_limit(Duration::from_millis(300))).await;
        let pid = text(&tools, "t__pid").await;
        let hung = call(&tools, "t__hang", json!({})).await.unwrap_err().0;
        assert!(hung.contains("sent nothing for 300ms") && hung.contains("may or may not"), "{form}: {hung}");
        // It shows that it is alive, and is kept.
        assert_eq!(text(&tools, "t__pid").await, pid, "{form}");
    }
}

#[tokio::test]
async fn a_server_that_hangs_altogether_is_replaced() {
    let tools = one(stdio("t", Revisions::All).time_limit(Duration::from_millis(300))).await;
    let pid = text(&tools, "t__pid").await;
    let signal = |name: &str| std::process::Command::new("kill").args([name, &pid]).status().unwrap();
    assert!(signal("-STOP").success());
    // Each thread stops when its turn comes; where there is no /proc, it is taken to have stopped.
    let is_running = |thread: std::fs::DirEntry| {
        std::fs::read_to_string(thread.path().join("stat")).is_ok_and(|stat| !stat.contains(") T "))
    };
    while std::fs::read_dir(format!("/proc/{pid}/task")).is_ok_and(|threads| threads.flatten().any(is_running)) {
        tokio::task::yield_now().await;
    }
    assert!(call(&tools, "t__write", json!({})).await.unwrap_err().0.contains("sent nothing"));
    assert_ne!(text(&tools, "t__pid").await, pid);
    // It takes no notice of anything but this, and is gone all the same.
    ended(&pid).await;
}

#[tokio::test]
async fn cancelling_reaches_the_server_after_progress_was_passed_on() {
    for (form, server) in all_forms().await {
        let dir = tempfile::tempdir().unwrap();
        for how in ["cancelled", "dropped"] {
            let (heard, mut hears) = tokio::sync::mpsc::unbounded_channel::<McpProgress>();
            let on_progress = move |progress| heard.send(progress).unwrap();
            let options = McpOptions::default().on_progress(Some(Arc::new(on_progress)));
            let tools = connected([server.clone()], options).await;
            let mark = dir.path().join(how);
            let slow = ToolCall::new("c7", "t__slow", json!({"mark": mark}));
            let cancel = CancellationToken::new();
            let calling = tools.call(&slow, &cancel);
            let last_step = async {
                loop {
                    let progress = hears.recv().await.unwrap();
                    assert_eq!((&progress.call.0[..], progress.total), ("c7", Some(3.0)), "{form}");
                    assert_eq!(progress.message, Some(format!("step {}", progress.done)));
                    if progress.done == 3.0 {
                        return;
                    }
                }
            };
            if how == "cancelled" {
                let stop = async {
                    last_step.await;
                    cancel.cancel();
                };
                let (error, ()) = within(async { tokio::join!(calling, stop) }).await;
                assert_eq!(error.unwrap_err().0, "The call was cancelled.");
            } else {
                within(async {
                    tokio::select! {
                        ended = calling => panic!("{ended:?}"),
                        () = last_step => {}
                    }
                })
                .await;
            }
            within(async {
                while !mark.exists() {
                    tokio::time::sleep(Duration::from_millis(20)).await;
                }
            })
            .await;
            assert_eq!(text(&tools, "t__parts").await.lines().next(), Some("Look:"), "{form}: the connection goes on");
        }
    }
}

#[tokio::test]
async fn no_process_is_left_behind() {
    // Closed.
    let tools = one(stdio("t", Revisions::All)).await;
    let pid = text(&tools, "t__pid").await;
    within(tools.close()).await;
    ended(&pid).await;
    // Dropped, and one that is in the middle of a call.
    let tools = one(stdio("t", Revisions::All)).await;
    let pid = text(&tools, "t__pid").await;
    let hang = ToolCall::new("c1", "t__hang", json!({}));
    let cancel = CancellationToken::new();
    tokio::select! {
        ended = tools.call(&hang, &cancel) => panic!("{ended:?}"),
        () = tokio::time::sleep(Duration::from_millis(100)) => {}
    }
    drop(tools);
    ended(&pid).await;
    // With what it has started itself: a shell around the server.
    let server = sh("t", "\"$@\"; true", &stdio_command());
    let tools = one(server).await;
    let pid = text(&tools, "t__pid").await;
    drop(tools);
    ended(&pid).await;
}

#[test]
fn no_process_outlives_its_runtime() {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let (tools, pid) = runtime.block_on(async {
        let tools = one(stdio("t", Revisions::All)).await;
        let pid = text(&tools, "t__pid").await;
        (tools, pid)
    });
    drop(runtime);
    drop(tools);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(ended(&pid));
}

/// A shell with this script, whose arguments are a command.
fn sh(name: &str, script: &str, command: &[String]) -> McpServer {
    McpServer::stdio(name, "/bin/sh").args(["-c", script, "sh"]).args(command)
}

/// The test's server as a command.
fn stdio_command() -> Vec<String> {
    vec![program("mcp_test_server").to_str().unwrap().to_string(), "OldOnes".to_owned()]
}

#[tokio::test]
async fn a_server_that_ends_at_an_unknown_first_message_is_spoken_to_as_an_old_one() {
    let script = "read -r first; case $first in *server/discover*) exit 1;; esac; \
        { printf '%s\\n' \"$first\"; exec cat; } | \"$@\"";
    let tools = one(sh("t", script, &stdio_command())).await;
    assert_eq!(call(&tools, "t__add", json!({"a": 1, "b": 1})).await.unwrap().items, ["{\"sum\":2}"]);
}

#[tokio::test]
async fn what_cannot_be_started_is_said_and_the_others_work() {
    let nobody = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let servers = [
        McpServer::stdio("none", "/no/such/program"),
        McpServer::stdio("quits", "/bin/sh").args(["-c", "echo 'no licence \u{1b}[2J' >&2; exit 1"]),
        McpServer::stdio("mute", "/bin/sleep").args(["60"]).start_limit(Duration::from_millis(300)),
        McpServer::http("nobody", format!("http://{nobody}/mcp?secret=sesame")),
        McpServer::http("odd", "no address"),
        McpServer::stdio("noise", "/bin/sh")
            .args(["-c", "while read -r x; do echo '{\"jsonrpc\":\"2.0\",\"id\":0,\"result\":7}'; done"]),
        stdio("t", Revisions::All),
    ];
    let started = Instant::now();
    let (tools, failures) = within(McpTools::connect(servers, McpOptions::default())).await.unwrap();
    let failures: Vec<(String, ErrorKind, String)> = failures
        .iter()
        .map(|error| (error.path().unwrap().to_string(), error.kind(), agent_loop::Failure::from(error).message))
        .collect();
    let of =
        |name: &str| failures.iter().find(|(path, ..)| path == name).unwrap_or_else(|| panic!("{name}: {failures:?}"));
    for (name, kind, said) in [
        ("none", ErrorKind::Unavailable, "cannot be started"),
        ("quits", ErrorKind::Unavailable, "its last output was: no licence [2J"),
        ("mute", ErrorKind::TimedOut, "did not answer within 300ms"),
        ("nobody", ErrorKind::Unavailable, "the connection with it failed"),
        ("odd", ErrorKind::BadRequest, "not a URL"),
        ("noise", ErrorKind::BadResponse, ""),
    ] {
        let (_, got, text) = of(name);
        assert!(*got == kind && text.contains(said), "{name}: {got:?} {text}");
        assert!(!text.contains("sesame"), "{text}");
    }
    assert!(started.elapsed() < Duration::from_secs(40), "all at the same time");
    assert_eq!(call(&tools, "t__add", json!({"a": 1, "b": 1})).await.unwrap().items, ["{\"sum\":2}"]);
    assert!(tools.specs().iter().all(|spec| spec.name.starts_with("t__")));
}
