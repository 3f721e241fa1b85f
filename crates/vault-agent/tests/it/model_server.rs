//! A model on loopback that does as a test says. It speaks Chat Completions, Responses, Anthropic's Messages, Gemini's
//! generateContent and Ollama's chat: whichever is asked for.

use std::io::Write;
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};

use crate::web_server::{ReceivedRequest, read_request};
#[cfg(unix)]
use crate::wire_rules::Rules;

/// What the model replies.
#[derive(Debug, Clone)]
pub enum Reply {
    Text(String),
    /// A text that the limit on its length has cut; on Chat Completions.
    Cut(String),
    /// A text, and how many tokens the request had; on Chat Completions.
    Counted(String, u32),
    /// Calls of tools, side by side.
    Calls(Vec<(String, Value)>),
    /// A text, and the calls behind it; on Chat Completions.
    Before(String, Vec<(String, Value)>),
    /// Thoughts and nothing else; on Chat Completions.
    Thoughts(String),
    /// A text of which a piece comes after so many milliseconds each; on Chat Completions.
    Slowly(String, u64),
    /// An error of the provider.
    Error(u16, String),
    /// Too many requests; try again after as many seconds.
    Busy(u32),
    /// Overloaded; try again after as many seconds.
    Overloaded(u32),
}

impl Reply {
    pub fn text(text: &str) -> Self {
        Self::Text(text.to_owned())
    }

    fn said(&self) -> &str {
        match self {
            Self::Text(text) | Self::Cut(text) | Self::Counted(text, _) | Self::Slowly(text, _) => text,
            _ => "",
        }
    }

    pub fn call(tool: &str, args: Value) -> Self {
        Self::Calls(vec![(tool.to_owned(), args)])
    }
}

/// The server. It ends with the process of the test.
pub struct ModelServer {
    pub address: String,
    asked: Arc<Mutex<Vec<ReceivedRequest>>>,
}

impl ModelServer {
    /// Replies one after the other; a request beyond them is an error.
    pub fn with(replies: impl IntoIterator<Item = Reply>) -> Self {
        let mut replies: Vec<Reply> = replies.into_iter().collect();
        replies.reverse();
        Self::that(move |_| replies.pop().unwrap_or(Reply::Error(400, "the script of the test is at its end".into())))
    }

    /// The same, for requests that keep the rules of a provider; the others are refused.
    #[cfg(unix)]
    pub fn with_rules(rules: Rules, replies: impl IntoIterator<Item = Reply>) -> Self {
        let mut replies: Vec<Reply> = replies.into_iter().collect();
        replies.reverse();
        Self::answering(move |asked, _| match rules.check(asked) {
            Ok(()) => replies.pop().unwrap_or(Reply::Error(400, "the script of the test is at its end".into())),
            Err(rule) => Reply::Error(400, format!("{:?} requires otherwise: {rule}", rules.wire)),
        })
    }

    /// Replies as a function of the request.
    pub fn that(mut replies: impl FnMut(&Value) -> Reply + Send + 'static) -> Self {
        Self::answering(move |_, body| replies(body))
    }

    fn answering(mut replies: impl FnMut(&ReceivedRequest, &Value) -> Reply + Send + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = format!("http://{}/v1", listener.local_addr().unwrap());
        let asked: Arc<Mutex<Vec<ReceivedRequest>>> = Arc::default();
        let seen = Arc::clone(&asked);
        std::thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let Some(request) = read_request(&stream) else { continue };
                if request.target.ends_with("/models") {
                    let mut models = vec![json!({ "id": "other" }), json!({ "id": "scripted" })];
                    models.extend(request.header("authorization").map(|_| json!({ "id": "keyed" })));
                    let models = json!({ "data": models }).to_string();
                    let head =
                        format!("HTTP/1.1 200 X\r\ncontent-type: application/json\r\ncontent-length: {}", models.len());
                    let _ = write!(&stream, "{head}\r\nconnection: close\r\n\r\n{models}");
                    continue;
                }
                let Ok(body) = serde_json::from_str(&request.body) else { continue };
                let (reply, path) = (replies(&request, &body), request.target.clone());
                seen.lock().unwrap().push(request);
                // A client that has gone needs no answer.
                let _ = answer(stream, &path, &reply);
            }
        });
        Self { address, asked }
    }

    /// The requests so far, with their headers.
    #[cfg(unix)]
    pub fn asked(&self) -> Vec<ReceivedRequest> {
        self.asked.lock().unwrap().clone()
    }

    /// The bodies of the requests so far.
    pub fn requests(&self) -> Vec<Value> {
        self.asked.lock().unwrap().iter().map(|asked| serde_json::from_str(&asked.body).unwrap()).collect()
    }

    /// The texts of all messages of a role in the last request.
    pub fn told(&self, role: &str) -> Vec<String> {
        let last = self.requests().pop().unwrap_or_default();
        let messages = last["messages"].as_array().cloned().unwrap_or_default();
        let of_role = messages.iter().filter(|message| message["role"] == role);
        of_role.map(|message| text_of(&message["content"])).collect()
    }
}

/// The text of a message's content, in either form.
pub fn text_of(content: &Value) -> String {
    match content {
        Value::Array(parts) => parts.iter().filter_map(|part| part["text"].as_str()).collect(),
        other => other.as_str().unwrap_or_default().to_owned(),
    }
}

fn answer(mut stream: TcpStream, path: &str, reply: &Reply) -> std::io::Result<()> {
    let mut more = String::new();
    if let Reply::Slowly(_, pause) = reply {
        write!(stream, "HTTP/1.1 200 X\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n")?;
        for event in events(path, reply).split_inclusive("\n\n") {
            std::thread::sleep(std::time::Duration::from_millis(*pause));
            stream.write_all(event.as_bytes())?;
            stream.flush()?;
        }
        return Ok(());
    }
    let (status, kind, body) = match reply {
        Reply::Error(status, message) => {
            (*status, "application/json", json!({ "error": { "message": message } }).to_string())
        }
        Reply::Busy(seconds) => {
            more = format!("retry-after: {seconds}\r\n");
            (429, "application/json", json!({ "error": { "message": "Rate limit reached" } }).to_string())
        }
        Reply::Overloaded(seconds) => {
            more = format!("retry-after: {seconds}\r\n");
            (503, "application/json", json!({ "error": { "message": "Overloaded" } }).to_string())
        }
        reply if path.ends_with("/api/chat") => (200, "application/x-ndjson", ollama(reply)),
        reply => (200, "text/event-stream", events(path, reply)),
    };
    write!(
        stream,
        "HTTP/1.1 {status} X\r\ncontent-type: {kind}\r\ncontent-length: {}\r\n{more}connection: close\r\n\r\n{body}",
        body.len()
    )?;
    stream.flush()
}

fn events(path: &str, reply: &Reply) -> String {
    let named = |events: Vec<Value>| -> String {
        let line = |event: Value| format!("event: {}\ndata: {event}\n\n", event["type"].as_str().unwrap());
        events.into_iter().map(line).collect()
    };
    let unnamed = |events: Vec<Value>| -> String { events.iter().map(|event| format!("data: {event}\n\n")).collect() };
    match path {
        path if path.ends_with("/responses") => named(responses(reply)),
        path if path.ends_with("/messages") => named(anthropic(reply)),
        path if path.contains(":streamGenerateContent") => unnamed(gemini(reply)),
        _ => unnamed(chat(reply)) + "data: [DONE]\n\n",
    }
}

/// A text in pieces, as models write.
fn pieces(text: &str) -> Vec<String> {
    let letters: Vec<char> = text.chars().collect();
    letters.chunks(7).map(|piece| piece.iter().collect()).collect()
}

fn chat(reply: &Reply) -> Vec<Value> {
    let chunk =
        |delta: Value, finish: Value| json!({ "choices": [{ "index": 0, "delta": delta, "finish_reason": finish }] });
    let (mut chunks, finish) = match reply {
        Reply::Thoughts(thoughts) => (vec![chunk(json!({ "reasoning_content": thoughts }), Value::Null)], "stop"),
        Reply::Before(text, calls) => {
            let mut all = chat(&Reply::Calls(calls.clone()));
            all.insert(0, chunk(json!({ "content": text }), Value::Null));
            return all;
        }
        Reply::Calls(calls) => {
            let call = |(index, (name, args)): (usize, &(String, Value))| {
                json!({ "index": index, "id": format!("call_{}", next_id()), "type": "function",
                    "function": { "name": name, "arguments": args.to_string() } })
            };
            let calls: Vec<Value> = calls.iter().enumerate().map(call).collect();
            (vec![chunk(json!({ "tool_calls": calls }), Value::Null)], "tool_calls")
        }
        reply => {
            let finish = if matches!(reply, Reply::Cut(_)) { "length" } else { "stop" };
            (pieces(reply.said()).iter().map(|piece| chunk(json!({ "content": piece }), Value::Null)).collect(), finish)
        }
    };
    chunks.push(chunk(json!({}), json!(finish)));
    let tokens = if let Reply::Counted(_, tokens) = reply { *tokens } else { 100 };
    let usage =
        json!({ "prompt_tokens": tokens, "completion_tokens": 10, "total_tokens": tokens + 10, "cost": 0.0021 });
    chunks.push(json!({ "choices": [], "usage": usage }));
    chunks
}

fn responses(reply: &Reply) -> Vec<Value> {
    let mut events = vec![json!({ "type": "response.created", "response": { "id": "resp_1" } })];
    match reply {
        Reply::Calls(calls) => {
            for (place, (name, args)) in calls.iter().enumerate() {
                let (number, args) = (next_id(), args.to_string());
                let item = |arguments: &str, status: &str| {
                    json!({ "type": "function_call", "id": format!("fc_{number}"), "call_id": format!("call_{number}"),
                        "name": name, "arguments": arguments, "status": status })
                };
                let added = item("", "in_progress");
                events.push(json!({ "type": "response.output_item.added", "output_index": place, "item": added }));
                events
                    .push(json!({ "type": "response.function_call_arguments.delta", "item_id": format!("fc_{number}"),
                    "output_index": place, "delta": args }));
                let done = item(&args, "completed");
                events.push(json!({ "type": "response.output_item.done", "output_index": place, "item": done }));
            }
        }
        reply => {
            let delta = |piece| json!({ "type": "response.output_text.delta", "output_index": 0, "delta": piece });
            events.extend(pieces(reply.said()).into_iter().map(delta));
        }
    }
    let usage = json!({ "input_tokens": 100, "output_tokens": 10, "total_tokens": 110 });
    let response = json!({ "id": "resp_1", "status": "completed", "output": [], "usage": usage });
    events.push(json!({ "type": "response.completed", "response": response }));
    events
}

fn anthropic(reply: &Reply) -> Vec<Value> {
    let usage = json!({ "input_tokens": 100, "output_tokens": 10 });
    let mut events =
        vec![json!({ "type": "message_start", "message": { "id": "msg_1", "role": "assistant", "content": [],
        "usage": usage } })];
    let mut block = |index: usize, block: Value, deltas: Vec<Value>| {
        events.push(json!({ "type": "content_block_start", "index": index, "content_block": block }));
        let delta = |delta| json!({ "type": "content_block_delta", "index": index, "delta": delta });
        events.extend(deltas.into_iter().map(delta));
        events.push(json!({ "type": "content_block_stop", "index": index }));
    };
    let stop = match reply {
        Reply::Calls(calls) => {
            for (index, (name, args)) in calls.iter().enumerate() {
                let call =
                    json!({ "type": "tool_use", "id": format!("toolu_{}", next_id()), "name": name, "input": {} });
                block(index, call, vec![json!({ "type": "input_json_delta", "partial_json": args.to_string() })]);
            }
            "tool_use"
        }
        reply => {
            let delta = |piece| json!({ "type": "text_delta", "text": piece });
            block(0, json!({ "type": "text", "text": "" }), pieces(reply.said()).into_iter().map(delta).collect());
            "end_turn"
        }
    };
    events.push(json!({ "type": "message_delta", "delta": { "stop_reason": stop }, "usage": usage }));
    events.push(json!({ "type": "message_stop" }));
    events
}

fn gemini(reply: &Reply) -> Vec<Value> {
    let chunk = |part: Value| json!({ "candidates": [{ "content": { "role": "model", "parts": [part] } }] });
    let mut chunks: Vec<Value> = match reply {
        Reply::Calls(calls) => {
            calls.iter().map(|(name, args)| chunk(json!({ "functionCall": { "name": name, "args": args } }))).collect()
        }
        reply => pieces(reply.said()).into_iter().map(|piece| chunk(json!({ "text": piece }))).collect(),
    };
    chunks.push(json!({ "candidates": [{ "content": { "role": "model", "parts": [] }, "finishReason": "STOP" }],
        "usageMetadata": { "promptTokenCount": 100, "candidatesTokenCount": 10 } }));
    chunks
}

fn ollama(reply: &Reply) -> String {
    let line = |message: Value| json!({ "model": "m", "message": message, "done": false });
    let mut lines: Vec<Value> = match reply {
        Reply::Calls(calls) => {
            let call = |(name, args): &(String, Value)| json!({ "function": { "name": name, "arguments": args } });
            let calls: Vec<Value> = calls.iter().map(call).collect();
            vec![line(json!({ "role": "assistant", "content": "", "tool_calls": calls }))]
        }
        reply => {
            let said = |piece| line(json!({ "role": "assistant", "content": piece }));
            pieces(reply.said()).into_iter().map(said).collect()
        }
    };
    lines.push(json!({ "model": "m", "message": { "role": "assistant", "content": "" }, "done": true,
        "done_reason": "stop", "prompt_eval_count": 100, "eval_count": 10 }));
    lines.iter().map(|line| format!("{line}\n")).collect()
}

/// A number that no other call has.
fn next_id() -> usize {
    static NEXT: std::sync::atomic::AtomicUsize = std::sync::atomic::AtomicUsize::new(1);
    NEXT.fetch_add(1, std::sync::atomic::Ordering::Relaxed)
}
