//! Calls: results, errors, and a whole run with your own tools beside those of a server.

use agent_loop::mcp::{AskBeforeDestroying, Hints, McpOptions};
use agent_loop::{
    Agent, AllowAll, AskBeforeWriting, Decision, Event, Pause, Run, RunId, RunOptions, ScriptedModel, ScriptedReply,
    Tool, ToolSpec,
};
use serde_json::json;

use super::server::{at, http, stdio};
use super::test_server::Revisions;
use super::{all_forms, call, one, within};

#[tokio::test]
async fn results_and_errors_come_back() {
    for (form, server) in all_forms().await {
        let tools = one(server).await;
        // What is structured is said once, though the server says it as text too.
        assert_eq!(call(&tools, "t__add", json!({"a": 2, "b": 3})).await.unwrap().items, ["{\"sum\":5}"], "{form}");
        let parts = call(&tools, "t__parts", json!({})).await.unwrap().items;
        assert_eq!(parts, ["Look:", "[an image, image/png, 3 bytes, which is not shown]"]);
        let failed = call(&tools, "t__fail", json!({})).await.unwrap_err().0;
        assert_eq!(failed, "There is no such note.");
        let rejected = call(&tools, "t__reject", json!({})).await.unwrap_err().0;
        assert!(rejected.contains("is odd[2J (error -32602)"), "{rejected}");
        // A server may repeat a key.
        assert!(form.starts_with("stdio") || !rejected.contains("a long key"), "{rejected}");
        assert!(call(&tools, "t__gone", json!({})).await.unwrap_err().0.contains("no tool"));
    }
}

#[tokio::test]
async fn a_server_that_wants_a_key_says_so() {
    let address = http(Revisions::All).await;
    let servers = [at("none", address), at("wrong", address).bearer("another key\n"), stdio("t", Revisions::All)];
    let (tools, failures) = within(agent_loop::mcp::McpTools::connect(servers, McpOptions::default())).await.unwrap();
    assert_eq!(failures.len(), 3);
    assert_eq!((failures[0].path(), failures[0].kind()), (Some("none"), agent_loop::ErrorKind::Authentication));
    assert_eq!(failures[1].kind(), agent_loop::ErrorKind::BadRequest);
    assert!(!failures[1].to_string().contains("another key"), "{}", failures[1]);
    assert_eq!(call(&tools, "t__add", json!({"a": 2, "b": 3})).await.unwrap().items, ["{\"sum\":5}"]);
}

/// A run of one's own tool and a server's, with what it asked about.
#[tokio::test]
async fn an_agent_has_its_own_tools_beside_those_of_a_server() {
    let own = vec![Tool::dynamic(
        ToolSpec { name: "own".into(), ..super::spec(&one(stdio("t", Revisions::All)).await, "t__write") },
        |_, _| async { Ok(agent_loop::ToolOutput::text("mine")) },
    )];
    let tools = one(stdio("t", Revisions::All).hints(Hints::Trusted)).await;
    let destroy = || ("t__destroy", json!({}));
    let model = ScriptedModel::new([
        ScriptedReply::calls([("own", json!({})), ("t__add", json!({"a": 1, "b": 2})), destroy()]),
        ScriptedReply::calls([destroy(), ("own", json!({})), ("t__write", json!({}))]),
        ScriptedReply::text("Done."),
    ]);
    let policy = AskBeforeDestroying::new(tools.clone(), AskBeforeWriting);
    let agent = Agent::new(model, (own, tools.clone())).unwrap().policy(policy);
    let mut run = Run::new(RunId("r".into()), RunOptions::default(), "go");
    let (mut asked, mut started) = (Vec::new(), Vec::new());
    let outcome = loop {
        let mut watch = |event| {
            if let Event::ToolStarted { call, .. } = event {
                started.push(call.name);
            }
        };
        match within(agent.drive(&mut run, &mut watch, &Default::default())).await.unwrap() {
            Pause::Done(outcome) => break outcome,
            Pause::Waiting(questions) => {
                asked.extend(questions.iter().map(|question| question.call.name.clone()));
                let decisions = questions.iter().map(|question| question.decide(Decision::AllowForSession));
                run.decide(agent.context(), decisions).unwrap();
            }
        }
    };
    assert_eq!(outcome.text, "Done.");
    // Allowed for the session was `own`; what destroys is asked about each time.
    assert_eq!(asked, ["own", "t__destroy", "t__destroy", "t__write"]);
    assert_eq!(started.len(), 6);
    let results: Vec<String> = run.results().map(|result| result.text()).collect();
    assert_eq!(results, ["mine", "{\"sum\":3}", "destroy", "destroy", "mine", "write"]);

    // Even where everything is allowed.
    let model =
        ScriptedModel::new([ScriptedReply::calls([destroy(), ("t__write", json!({}))]), ScriptedReply::text("Done.")]);
    let agent = Agent::new(model, tools.clone()).unwrap().policy(AskBeforeDestroying::new(tools, AllowAll));
    let outcome = within(agent.ask("go")).await.unwrap();
    assert_eq!(outcome.text, "Done.");
}
