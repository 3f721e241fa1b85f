//! A model on loopback that speaks Chat Completions and does as a test says.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};

/// What the model replies.
#[derive(Debug, Clone)]
pub enum Reply {
    Text(String),
    /// Calls of tools, side by side.
    Calls(Vec<(String, Value)>),
    /// An error of the provider.
    Error(u16, String),
}

impl Reply {
    pub fn text(text: &str) -> Self {
        Self::Text(text.to_owned())
    }

    pub fn call(tool: &str, args: Value) -> Self {
        Self::Calls(vec![(tool.to_owned(), args)])
    }
}

/// The server. It ends with the process of the test.
pub struct ModelServer {
    pub address: String,
    requests: Arc<Mutex<Vec<Value>>>,
}

impl ModelServer {
    /// Replies one after the other; a request beyond them is an error.
    pub fn with(replies: impl IntoIterator<Item = Reply>) -> Self {
        let mut replies: Vec<Reply> = replies.into_iter().collect();
        replies.reverse();
        Self::that(move |_| replies.pop().unwrap_or(Reply::Error(400, "the script of the test is at its end".into())))
    }

    /// Replies as a function of the request.
    pub fn that(mut replies: impl FnMut(&Value) -> Reply + Send + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = format!("http://{}/v1", listener.local_addr().unwrap());
        let requests = Arc::new(Mutex::new(Vec::new()));
        let seen = Arc::clone(&requests);
        std::thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let Some(request) = read_request(&stream) else { continue };
                let reply = replies(&request);
                seen.lock().unwrap().push(request);
                // A client that has gone needs no answer.
                let _ = answer(stream, &reply);
            }
        });
        Self { address, requests }
    }

    /// The bodies of the requests so far.
    pub fn requests(&self) -> Vec<Value> {
        self.requests.lock().unwrap().clone()
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

fn read_request(stream: &TcpStream) -> Option<Value> {
    let mut reader = BufReader::new(stream);
    let mut length = 0;
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line).ok()? == 0 {
            return None;
        }
        let line = line.trim_end();
        if line.is_empty() {
            break;
        }
        if let Some((name, value)) = line.split_once(':')
            && name.eq_ignore_ascii_case("content-length")
        {
            length = value.trim().parse().ok()?;
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    serde_json::from_slice(&body).ok()
}

fn answer(mut stream: TcpStream, reply: &Reply) -> std::io::Result<()> {
    let chunk = |delta: Value, finish: Value| {
        format!("data: {}\n\n", json!({ "choices": [{ "index": 0, "delta": delta, "finish_reason": finish }] }))
    };
    let usage =
        json!({ "choices": [], "usage": { "prompt_tokens": 100, "completion_tokens": 10, "total_tokens": 110 } });
    let (status, kind, body) = match reply {
        Reply::Error(status, message) => {
            (*status, "application/json", json!({ "error": { "message": message } }).to_string())
        }
        Reply::Text(text) => {
            // In pieces, as models write.
            let letters: Vec<char> = text.chars().collect();
            let pieces = letters
                .chunks(7)
                .map(|piece| chunk(json!({ "content": piece.iter().collect::<String>() }), Value::Null));
            let body: String = pieces.collect();
            (
                200,
                "text/event-stream",
                body + &chunk(json!({}), json!("stop")) + &format!("data: {usage}\n\ndata: [DONE]\n\n"),
            )
        }
        Reply::Calls(calls) => {
            let calls: Vec<Value> = calls
                .iter()
                .enumerate()
                .map(|(index, (name, args))| {
                    json!({ "index": index, "id": format!("call_{}", next_id()), "type": "function",
                        "function": { "name": name, "arguments": args.to_string() } })
                })
                .collect();
            let body = chunk(json!({ "tool_calls": calls }), Value::Null) + &chunk(json!({}), json!("tool_calls"));
            (200, "text/event-stream", body + &format!("data: {usage}\n\ndata: [DONE]\n\n"))
        }
    };
    write!(
        stream,
        "HTTP/1.1 {status} X\r\ncontent-type: {kind}\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{body}",
        body.len()
    )?;
    stream.flush()
}

/// A number that no other call has.
fn next_id() -> usize {
    static NEXT: std::sync::atomic::AtomicUsize = std::sync::atomic::AtomicUsize::new(1);
    NEXT.fetch_add(1, std::sync::atomic::Ordering::Relaxed)
}
