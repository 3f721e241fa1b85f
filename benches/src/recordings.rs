//! Recorded replies of providers, parsed by the wires of agent-loop and compared with a plain reading.
//!
//! ```text
//! file ──> recordings ──┬─> wire of agent-loop ──> Reply ──┐
//!          (cassette,   └─> expected ──> text, calls, end ─┴─> right, or the difference
//!           SSE, JSON)
//! ```

mod expected;

use std::fs;
use std::path::Path;
use std::sync::Mutex;

use agent_loop::error::Result as LoopResult;
use agent_loop::{
    BoxFuture, HostedModel, HttpReply, HttpRequest, Message, Model, Part, Provider, Reply, ReplyBuilder, Request,
    Transport, Wire,
};
use futures_util::{StreamExt, TryStreamExt, stream};
use serde::Deserialize;
use serde_json::Value;

use expected::{Expected, events_of, wire_of};

/// One response of a server.
#[derive(Debug)]
pub struct Recording {
    /// The path of the request; empty if it was not recorded.
    pub path: String,
    /// The status.
    pub status: u16,
    /// The body: events, lines or one object.
    pub body: String,
}

/// Reads the recordings of a file: a cassette of vcrpy (`interactions`) or httpmock (`when` and `then`) in YAML or
/// JSON, otherwise the body of one response.
///
/// # Errors
/// If the file cannot be read, or is not UTF-8.
pub fn recordings_in(path: &Path) -> std::io::Result<Vec<Recording>> {
    let text = fs::read_to_string(path)?;
    let documents = serde_yaml::Deserializer::from_str(&text).map(Value::deserialize);
    let documents: Vec<Value> = documents.collect::<Result<_, _>>().unwrap_or_default();
    let recorded: Vec<Recording> = documents.iter().flat_map(exchanges).collect();
    if recorded.is_empty() && !documents.iter().any(|document| document["interactions"].is_array()) {
        return Ok(vec![Recording { path: String::new(), status: 200, body: text }]);
    }
    Ok(recorded)
}

fn exchanges(document: &Value) -> Vec<Recording> {
    let status = |status: &Value| status.as_u64().and_then(|status| u16::try_from(status).ok()).unwrap_or(200);
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    if document["then"].is_object() {
        let (when, then) = (&document["when"], &document["then"]);
        return vec![Recording {
            path: text(&when["path"]),
            status: status(&then["status"]),
            body: text(&then["body"]),
        }];
    }
    let exchange = |exchange: &Value| {
        let response = &exchange["response"];
        let parsed = &response["parsed_body"];
        let body = if parsed.is_null() { text(&response["body"]["string"]) } else { parsed.to_string() };
        Recording { path: text(&exchange["request"]["uri"]), status: status(&response["status"]["code"]), body }
    };
    document["interactions"].as_array().into_iter().flatten().map(exchange).collect()
}

/// The verdict on how a wire parsed a recording.
#[derive(Debug, PartialEq)]
pub enum Verdict {
    /// Text, calls, end and tokens match the recording; or an error was parsed as an error.
    Right,
    /// The difference.
    Wrong(String),
    /// The body is not a reply of a known format; for example, a list of models.
    NoReply,
}

/// Parses a recording with the wire of its body or, for an error, of the path of its request.
pub async fn replay(recording: &Recording) -> (Option<Wire>, Verdict) {
    let events = events_of(&recording.body);
    let is_error = !(200..300).contains(&recording.status);
    let wire = if is_error { wire_of_path(&recording.path) } else { wire_of(&events) };
    let Some(wire) = wire else { return (None, Verdict::NoReply) };
    let expected = if is_error { None } else { Expected::new(wire, &events) };
    let verdict = match (read(wire, recording).await, expected) {
        (Err(_), None) => Verdict::Right,
        (Err(error), Some(_)) => Verdict::Wrong(error.text_with_source()),
        // Groq's error about a call that it could not parse is sent to the model.
        (Ok(reply), None) if is_fault(&reply) => Verdict::Right,
        (Ok(_), None) => Verdict::Wrong("an error was read as a reply".into()),
        (Ok(reply), Some(expected)) => expected.compare(&reply),
    };
    (Some(wire), verdict)
}

fn is_fault(reply: &Reply) -> bool {
    reply.parts.iter().any(|part| matches!(part, Part::Call(call) if call.fault.is_some()))
}

fn wire_of_path(path: &str) -> Option<Wire> {
    let path = path.split('?').next().unwrap_or_default();
    let ends = [
        ("/chat/completions", Wire::Chat),
        ("/responses", Wire::OpenAiResponses),
        ("/messages", Wire::Anthropic),
        ("enerateContent", Wire::Gemini),
        ("/api/chat", Wire::Ollama),
    ];
    ends.into_iter().find(|(end, _)| path.ends_with(end)).map(|(_, wire)| wire)
}

/// A transport that returns one reply in pieces with arbitrary borders.
struct Recorded(Mutex<Option<HttpReply>>);

impl Transport for Recorded {
    fn post(&self, _: HttpRequest) -> BoxFuture<'_, LoopResult<HttpReply>> {
        Box::pin(async { Ok(self.0.lock().expect("nothing panics").take().expect("one request is made")) })
    }
}

async fn read(wire: Wire, recording: &Recording) -> LoopResult<Reply> {
    let kind = match recording.body.trim_start().as_bytes() {
        [b'{' | b'[', ..] if wire == Wire::Ollama => "application/x-ndjson",
        [b'{' | b'[', ..] => "application/json",
        _ => "text/event-stream",
    };
    let pieces: Vec<_> = recording.body.as_bytes().chunks(1021).map(|piece| Ok(piece.to_vec())).collect();
    let headers = vec![("content-type".to_owned(), kind.to_owned())];
    let reply = HttpReply { status: recording.status, headers, body: stream::iter(pieces).boxed() };
    let provider = Provider::new("recorded", wire, "http://recorded", None);
    let model = HostedModel::new(provider, "m", Recorded(Mutex::new(Some(reply))));
    let request = Request::default().messages([Message::user("hi")].into_iter().collect());
    let mut builder = ReplyBuilder::new();
    let mut deltas = model.reply(request).await?;
    while let Some(delta) = deltas.try_next().await? {
        builder.push(&delta)?;
    }
    builder.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    const CASSETTE: &str = r#"
interactions:
- request: {uri: "https://api.openai.com/v1/chat/completions?x=1"}
  response:
    status: {code: 200}
    body:
      string: |+
        data: {"choices":[{"index":0,"delta":{"content":"Hel"}}]}

        data: {"choices":[{"index":0,"delta":{"content":"lo","tool_calls":[{"index":0,"id":"c","function":{"name":"f","arguments":"{}"}}]},"finish_reason":"tool_calls"}]}

        data: {"choices":[],"usage":{"prompt_tokens":3,"completion_tokens":7}}

        data: [DONE]

- request: {uri: "https://api.openai.com/v1/responses"}
  response: {status: {code: 401}, parsed_body: {error: {message: "no"}}}
- request: {uri: "https://api.openai.com/v1/models"}
  response: {status: {code: 200}, parsed_body: {object: list, data: []}}
"#;

    async fn verdicts(text: &str) -> Vec<(Option<Wire>, Verdict)> {
        let file = tempfile::NamedTempFile::new().unwrap();
        fs::write(&file, text).unwrap();
        let mut all = Vec::new();
        for recording in recordings_in(file.path()).unwrap() {
            all.push(replay(&recording).await);
        }
        all
    }

    #[tokio::test]
    async fn replies_of_a_cassette_and_of_a_body_are_read() {
        let expected = [
            (Some(Wire::Chat), Verdict::Right),
            (Some(Wire::OpenAiResponses), Verdict::Right),
            (None, Verdict::NoReply),
        ];
        assert_eq!(verdicts(CASSETTE).await, expected);
        let body = r#"{"type":"message","role":"assistant","content":[{"type":"text","text":"a"}],"stop_reason":"max_tokens","usage":{"input_tokens":1,"output_tokens":2}}"#;
        assert_eq!(verdicts(body).await, [(Some(Wire::Anthropic), Verdict::Right)]);
        let mock = format!(
            "when: {{path: /api/chat}}\nthen: {{status: 200, body: '{}'}}\n",
            r#"{"message":{"role":"assistant","content":"a"},"done":true,"done_reason":"stop","eval_count":1}"#
        );
        assert_eq!(verdicts(&mock).await, [(Some(Wire::Ollama), Verdict::Right)]);
    }

    #[tokio::test]
    async fn a_cut_stream_and_a_difference_are_told() {
        let cut = CASSETTE.replace("data: [DONE]", "").replace(",\"finish_reason\":\"tool_calls\"", "");
        assert!(matches!(&verdicts(&cut).await[0].1, Verdict::Wrong(why) if why.contains("end")));
        let expected = Expected::new(Wire::Chat, &events_of(r#"{"choices":[{"message":{"content":"a"}}]}"#)).unwrap();
        assert!(matches!(expected.compare(&Reply::text("b")), Verdict::Wrong(why) if why.contains("text")));
    }
}
