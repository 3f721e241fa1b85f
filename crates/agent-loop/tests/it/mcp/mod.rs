//! MCP servers as tools: real servers in separate processes, and over HTTP on loopback.

mod test_server;
mod server;
mod calls;
mod ends;
mod questions;
mod hostile;

use std::future::Future;
use std::time::Duration;

use agent_loop::mcp::{Hints, McpOptions, McpServer, McpTools};
use agent_loop::{Effect, ToolCall, ToolError, ToolOutput, ToolSpec, Tools};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use server::{at, http, stdio};
use test_server::Revisions;

/// A test that hangs is a test that fails.
async fn within<T>(future: impl Future<Output = T>) -> T {
    tokio::time::timeout(Duration::from_secs(60), future).await.expect("this ends in time")
}

/// The test's server in each of its forms, as `t`.
async fn all_forms() -> Vec<(String, McpServer)> {
    let mut forms = Vec::new();
    for speaks in [Revisions::All, Revisions::OldOnes, Revisions::OldOnesDiscovered] {
        forms.push((format!("stdio {speaks:?}"), stdio("t", speaks)));
        let over_http = at("t", http(speaks).await).bearer("a long key").header("x-extra", "1");
        forms.push((format!("http {speaks:?}"), over_http));
    }
    forms
}

/// Connects to servers, of whose tools one is to be left out each.
async fn connected(servers: impl IntoIterator<Item = McpServer>, options: McpOptions) -> McpTools {
    let (tools, failures) = within(McpTools::connect(servers, options)).await.unwrap();
    for failure in &failures {
        let text = failure.to_string();
        assert!(text.contains("\"bad\" is left out: its schema is of the type \"array\""), "{text}");
    }
    tools
}

async fn one(server: McpServer) -> McpTools {
    connected([server], McpOptions::default()).await
}

async fn call(tools: &McpTools, name: &str, arguments: Value) -> Result<ToolOutput, ToolError> {
    let call = ToolCall::new("c1", name, arguments);
    within(tools.call(&call, &CancellationToken::new())).await
}

async fn text(tools: &McpTools, name: &str) -> String {
    call(tools, name, json!({})).await.unwrap().items.join("\n")
}

fn spec(tools: &McpTools, name: &str) -> ToolSpec {
    tools.specs().into_iter().find(|spec| spec.name == name).unwrap_or_else(|| panic!("there is no {name}"))
}

/// Waits until a process has ended.
async fn ended(pid: &str) {
    let is_there = || std::process::Command::new("kill").args(["-0", pid]).output().unwrap().status.success();
    within(async {
        while is_there() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    })
    .await;
}

#[tokio::test]
async fn tools_are_listed_with_portable_schemas_and_effects() {
    for (form, server) in all_forms().await {
        let tools = one(server.clone().hints(Hints::Trusted)).await;
        let names: Vec<String> = tools.specs().into_iter().map(|spec| spec.name).collect();
        let expected = [
            "add",
            "write",
            "destroy",
            "two_minds",
            "hostile",
            "fail",
            "reject",
            "ask",
            "slow",
            "hang",
            "exit",
            "pid",
            "more",
            "parts",
        ];
        assert_eq!(names, expected.map(|name| format!("t__{name}")), "{form}");
        let add = spec(&tools, "t__add");
        let number = json!({"type": "integer"});
        let schema = json!({"type": "object", "properties": {"a": number, "b": number}, "required": ["a", "b"]});
        assert_eq!((&add.description[..], &add.parameters, add.effect), ("Adds two numbers.", &schema, Effect::Read));
        // Saying both, or nothing, is not to only read.
        for writes in ["t__write", "t__destroy", "t__two_minds"] {
            assert_eq!(spec(&tools, writes).effect, Effect::Write, "{form} {writes}");
        }
        // Nobody vouches for it.
        assert!(one(server).await.specs().iter().all(|spec| spec.effect == Effect::Write));
    }
}

#[tokio::test]
async fn the_list_is_read_again_when_asked_for() {
    for (form, server) in all_forms().await {
        let tools = one(server).await;
        assert!(!tools.has("t__added"));
        text(&tools, "t__more").await;
        assert_eq!(within(tools.refresh()).await.len(), 1, "the one that is left out");
        assert!(tools.has("t__added"), "{form}");
        assert_eq!(text(&tools, "t__added").await, "added");
    }
}

#[tokio::test]
async fn two_servers_are_kept_apart() {
    let (a, b) = (stdio("a", Revisions::All), stdio("b", Revisions::All));
    let tools = connected([a, b.clone(), b], McpOptions::default()).await;
    let pids = [text(&tools, "a__pid").await, text(&tools, "b__pid").await, text(&tools, "b__pid_2").await];
    assert!(pids[0] != pids[1] && pids[1] != pids[2] && pids[2] != pids[0], "{pids:?}");
    within(tools.close()).await;
    for pid in pids {
        ended(&pid).await;
    }
}
