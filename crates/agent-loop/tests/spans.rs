//! Spans have the names and attributes of OpenTelemetry's semantic conventions for generative AI, and no contents.
//!
//! A test program of its own: while another thread meets a span for the first time, `tracing` may remember that nobody wants it.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::sync::{Arc, Mutex};

use agent_loop::{
    Agent, Effect, Error, ErrorKind, ModelSettings, RunOptions, ScriptedModel, ScriptedReply, Tool, ToolOutput,
    ToolSpec,
};
use serde_json::json;
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Metadata, Subscriber};

/// Spans of this crate in the order in which they began: name, parent and attributes.
#[derive(Clone, Default)]
struct Spans(Arc<Mutex<Inner>>);

#[derive(Default)]
struct Inner {
    all: Vec<(&'static str, Option<usize>, BTreeMap<&'static str, String>)>,
    entered: Vec<usize>,
}

struct Fields<'a>(&'a mut BTreeMap<&'static str, String>);

impl Visit for Fields<'_> {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        self.0.insert(field.name(), format!("{value:?}").trim_matches('"').to_string());
    }
}

impl Subscriber for Spans {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.is_span() && metadata.target().starts_with("agent_loop")
    }

    fn new_span(&self, span: &Attributes<'_>) -> Id {
        let mut inner = self.0.lock().unwrap();
        let (parent, mut fields) = (inner.entered.last().copied(), BTreeMap::new());
        span.record(&mut Fields(&mut fields));
        inner.all.push((span.metadata().name(), parent, fields));
        Id::from_u64(inner.all.len() as u64)
    }

    fn record(&self, span: &Id, values: &Record<'_>) {
        values.record(&mut Fields(&mut self.0.lock().unwrap().all[span.into_u64() as usize - 1].2));
    }

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, _: &Event<'_>) {}

    fn enter(&self, span: &Id) {
        self.0.lock().unwrap().entered.push(span.into_u64() as usize - 1);
    }

    fn exit(&self, _: &Id) {
        self.0.lock().unwrap().entered.pop();
    }
}

#[tokio::test(start_paused = true)]
async fn a_run_its_requests_and_its_tools_are_spans_of_the_conventions() {
    let spans = Spans::default();
    let _guard = tracing::subscriber::set_default(spans.clone());
    let model = ScriptedModel::new([
        ScriptedReply::fails(Error::new(ErrorKind::Unavailable, "overloaded")),
        ScriptedReply::calls([("look", json!({"at": "secret"}))]).usage(10, 5),
        ScriptedReply::text("a secret, too"),
    ]);
    let options = RunOptions::default().settings(ModelSettings::default().top_p(Some(0.5)).seed(Some(7)));
    let look = ToolSpec {
        name: "look".into(),
        description: "Looks.".into(),
        parameters: json!({"type": "object"}),
        effect: Effect::Read,
        time_limit: None,
    };
    let look = Tool::dynamic(look, |call, _| async move { Ok(ToolOutput::text(call.arguments.to_string())) });
    let agent = Agent::new(model, vec![look]).unwrap().options(options);
    assert_eq!(agent.ask("Tell me the secret.").await.unwrap().text, "a secret, too");
    let all = &spans.0.lock().unwrap().all;
    let names: Vec<_> = all.iter().map(|(name, parent, _)| (*name, *parent)).collect();
    let expected = [("chat", Some(0)), ("chat", Some(0)), ("execute_tool", Some(0)), ("chat", Some(0))];
    assert_eq!(names, [&[("invoke_agent", None)][..], &expected].concat());
    let attributes = |span: usize, names: &[&str]| -> Vec<String> {
        names.iter().map(|name| all[span].2.get(name).cloned().unwrap_or_default()).collect()
    };
    assert_eq!(attributes(0, &["gen_ai.operation.name"]), ["invoke_agent"]);
    assert!(all[0].2["gen_ai.conversation.id"].starts_with("run_"));
    let of_request = ["otel.name", "otel.kind", "gen_ai.operation.name", "gen_ai.request.model"];
    assert_eq!(attributes(1, &of_request), ["chat scripted", "client", "chat", "scripted"]);
    assert_eq!(attributes(1, &["gen_ai.request.top_p", "gen_ai.request.seed"]), ["0.5", "7"]);
    assert_eq!(attributes(1, &["error.type", "otel.status_code"]), ["Unavailable", "ERROR"]);
    let of_reply = ["gen_ai.usage.input_tokens", "gen_ai.usage.output_tokens", "gen_ai.response.finish_reasons"];
    assert_eq!(attributes(2, &of_reply), ["10", "5", "[\"tool_calls\"]"]);
    let of_tool = ["otel.name", "gen_ai.tool.name", "gen_ai.tool.type", "error.type"];
    assert_eq!(attributes(3, &of_tool), ["execute_tool look", "look", "function", ""]);
    assert!(!all[3].2["gen_ai.tool.call.id"].is_empty());
    assert!(!format!("{all:?}").contains("secret"));
}
