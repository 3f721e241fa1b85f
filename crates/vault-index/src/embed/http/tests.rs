//! Tests of the whole path against a small real server on this machine.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;

use serde_json::{Value, json};

use super::*;

struct Request {
    head: String,
    json: Value,
}

enum Reply {
    Status(u16, &'static str, String),
    /// Closes the connection without a response.
    Close,
    /// Never responds; the connection stays open.
    Hang,
}

fn ok(json: Value) -> Reply {
    Reply::Status(200, "", json.to_string())
}

/// A server that answers request number i (from 0) with `reply(i, request)`, and records all requests.
struct Server {
    url: String,
    requests: Arc<Mutex<Vec<Request>>>,
}

impl Server {
    fn start(mut reply: impl FnMut(usize, &Request) -> Reply + Send + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let requests = Arc::new(Mutex::new(Vec::new()));
        let log = Arc::clone(&requests);
        thread::spawn(move || {
            let mut open = Vec::new();
            for stream in listener.incoming() {
                let mut stream = stream.unwrap();
                let Some(request) = read(&stream) else { continue };
                let count = log.lock().unwrap().len();
                let reply = reply(count, &request);
                log.lock().unwrap().push(request);
                match reply {
                    Reply::Status(code, headers, body) => {
                        let length = body.len();
                        let _ = write!(
                            stream,
                            "HTTP/1.1 {code} X\r\ncontent-type: application/json\r\ncontent-length: {length}\r\n\
                             connection: close\r\n{headers}\r\n{body}"
                        );
                    }
                    Reply::Close => drop(stream),
                    Reply::Hang => open.push(stream),
                }
            }
        });
        Self { url, requests }
    }

    /// A server that answers correctly: vector i of a request is `[1, length of text i]`.
    fn good() -> Self {
        Self::start(|_, request| ok(answer(request)))
    }

    fn count(&self) -> usize {
        self.requests.lock().unwrap().len()
    }
}

fn read(stream: &TcpStream) -> Option<Request> {
    let mut reader = BufReader::new(stream);
    let mut head = String::new();
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line).ok()? == 0 {
            return None;
        }
        if line == "\r\n" {
            break;
        }
        head += &line.to_lowercase();
    }
    let length = head.lines().find_map(|line| line.strip_prefix("content-length: ")?.parse().ok())?;
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    Some(Request { head, json: serde_json::from_slice(&body).unwrap() })
}

fn answer(request: &Request) -> Value {
    let texts = request.json["input"].as_array().unwrap();
    let vectors = texts.iter().map(|text| json!([1.0, text.as_str().unwrap().len()]));
    if request.head.starts_with("post /api/embed ") {
        return json!({ "model": "m", "embeddings": vectors.collect::<Vec<_>>() });
    }
    let data = vectors.enumerate().map(|(index, embedding)| json!({ "index": index, "embedding": embedding }));
    json!({ "object": "list", "data": data.collect::<Vec<_>>() })
}

fn quick() -> Limits {
    Limits {
        tries: 3,
        first_wait: Duration::from_millis(1),
        longest_wait: Duration::from_secs(5),
        answer: Duration::from_secs(20),
        ..Limits::default()
    }
}

fn connect(server: &Server, wire: Wire, dimensions: Option<usize>, limits: Limits) -> Result<RemoteModel> {
    let address = match wire {
        Wire::OpenAi => Address::openai(Some(&server.url)),
        Wire::Ollama => Address::ollama(Some(&server.url)),
    };
    let key = (wire == Wire::OpenAi).then(|| Key::new("sk-secret").unwrap());
    RemoteModel::new(wire, "m", address.unwrap(), key, dimensions, limits)
}

/// The result of requesting one vector from a server with two dimensions.
fn ask(server: &Server) -> Result<Vec<Vec<f32>>> {
    connect(server, Wire::OpenAi, Some(2), quick())?.embed(&["text"], Role::Passage)
}

/// The error when the server always gives this reply, and the number of requests.
fn fail(code: u16, headers: &'static str, body: &'static str) -> (String, usize) {
    let server = Server::start(move |_, _| Reply::Status(code, headers, body.into()));
    let error = ask(&server).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Model);
    (error.to_string(), server.count())
}

fn direction(length: usize) -> Vec<f32> {
    to_unit(vec![1.0, length as f32], 2).unwrap()
}

#[test]
fn both_wires() {
    for (wire, path) in [(Wire::OpenAi, "post /v1/embeddings "), (Wire::Ollama, "post /api/embed ")] {
        let server = Server::good();
        let remote = connect(&server, wire, None, quick()).unwrap();
        assert_eq!(remote.dimensions(), 2);
        let vectors = remote.embed(&["one", " ", "three"], Role::Query).unwrap();
        assert_eq!(vectors, [direction(3), vec![0.0, 0.0], direction(5)]);
        assert!(!remote.is_remote());
        let port = server.url.rsplit(':').next().unwrap();
        assert_eq!(remote.id(), format!("{}:m@localhost:{port}", wire.name()));

        let requests = server.requests.lock().unwrap();
        assert_eq!(requests.len(), 2, "a probe and a batch");
        assert!(requests[1].head.starts_with(path), "{}", requests[1].head);
        assert_eq!(requests[1].json["model"], "m");
        assert_eq!(requests[1].json["input"], json!(["one", "three"]));
        let has_key = requests[1].head.contains("authorization: bearer sk-secret\r\n");
        assert_eq!(has_key, wire == Wire::OpenAi);
    }
}

#[test]
fn nothing_is_asked_before_it_is_needed() {
    let server = Server::good();
    let remote = connect(&server, Wire::OpenAi, Some(2), quick()).unwrap();
    assert_eq!(remote.count("how to prune"), 4);
    remote.embed(&["", "\n"], Role::Passage).unwrap();
    assert_eq!(server.count(), 0);
}

#[test]
fn batches_by_count_and_by_size() {
    let server = Server::good();
    let limits = Limits { batch_texts: 3, batch_bytes: 10, ..quick() };
    let remote = connect(&server, Wire::Ollama, Some(2), limits).unwrap();
    let texts = ["a", "b", "c", "dddddddd", "ee", "a text that is longer than a batch", "f"];
    let vectors = remote.embed(&texts, Role::Passage).unwrap();
    assert_eq!(vectors, texts.map(|text| direction(text.len())));
    let sizes: Vec<usize> =
        server.requests.lock().unwrap().iter().map(|r| r.json["input"].as_array().unwrap().len()).collect();
    assert_eq!(sizes, [3, 2, 1, 1]);
}

#[test]
fn prompts_go_before_texts_and_into_the_id() {
    let server = Server::good();
    let address = Address::ollama(Some(&server.url)).unwrap();
    let remote = RemoteModel::new(Wire::Ollama, "nomic-embed-text", address, None, Some(2), quick()).unwrap();
    remote.embed(&["x"], Role::Passage).unwrap();
    remote.embed(&["x"], Role::Query).unwrap();
    let requests = server.requests.lock().unwrap();
    assert_eq!(requests[0].json["input"], json!(["search_document: x"]));
    assert_eq!(requests[1].json["input"], json!(["search_query: x"]));
    assert!(remote.id().ends_with("+prompts1"), "{}", remote.id());
}

#[test]
fn vectors_out_of_order_are_put_in_order() {
    let server = Server::start(|_, request| {
        let mut answer = answer(request);
        answer["data"].as_array_mut().unwrap().reverse();
        ok(answer)
    });
    let remote = connect(&server, Wire::OpenAi, Some(2), quick()).unwrap();
    let vectors = remote.embed(&["1", "22", "333"], Role::Passage).unwrap();
    assert_eq!(vectors, [1, 2, 3].map(direction));
}

#[test]
fn too_many_requests_are_repeated_when_the_server_says() {
    let busy = r#"{"error":{"message":"slow down","code":"rate_limit_exceeded"}}"#;
    let server = Server::start(move |i, request| match i {
        0 => Reply::Status(429, "retry-after: 0\r\n", busy.into()),
        _ => ok(answer(request)),
    });
    assert_eq!(ask(&server).unwrap(), [direction(4)]);
    assert_eq!(server.count(), 2);

    let (error, tries) = fail(429, "retry-after: 3600\r\n", busy);
    assert!(error.contains("slow down"), "{error}");
    assert_eq!(tries, 1, "an hour is not waited for");

    let (error, tries) = fail(429, "", r#"{"error":{"message":"You are out of money","code":"insufficient_quota"}}"#);
    assert!(error.contains("out of money"), "{error}");
    assert_eq!(tries, 1, "waiting does not fill an account");
}

#[test]
fn faults_of_the_server_are_repeated_then_reported() {
    let (error, tries) = fail(500, "", "<html>oops</html>");
    assert!(error.contains("status 500: <html>oops</html>"), "{error}");
    assert_eq!(tries, 3);

    let server = Server::start(|i, request| match i {
        0 => Reply::Status(503, "", "loading".into()),
        1 => Reply::Close,
        _ => ok(answer(request)),
    });
    assert_eq!(ask(&server).unwrap(), [direction(4)]);

    let server = Server::start(|_, _| Reply::Close);
    let error = ask(&server).unwrap_err().to_string();
    assert!(error.contains("closed before the response"), "{error}");
    assert_eq!(server.count(), 3);
}

#[test]
fn faults_of_the_request_are_reported_at_once() {
    let (error, tries) = fail(401, "", r#"{"error":{"message":"Incorrect API key provided: sk-secret"}}"#);
    assert!(error.contains("OPENAI_API_KEY") && error.contains("provided: ***"), "{error}");
    assert_eq!(tries, 1);

    let (error, _) = fail(404, "", r#"{"error":{"message":"The model `m` does not exist"}}"#);
    assert!(error.contains("no model `m`") && error.contains("check the model's name"), "{error}");

    let (error, tries) = fail(307, "location: http://127.0.0.1:9/v1/embeddings\r\n", "");
    assert!(error.contains("307") && error.contains("redirects"), "{error}");
    assert_eq!(tries, 1);

    let server = Server::start(|_, _| Reply::Status(404, "", r#"{"error":"model \"m\" not found"}"#.into()));
    let error = connect(&server, Wire::Ollama, None, quick()).unwrap_err().to_string();
    assert!(error.contains("`ollama pull m`") && error.contains("not found"), "{error}");
}

#[test]
fn answers_that_are_none() {
    let cases = [
        ("{\"data\":", "cannot be read"),
        ("{}", "cannot be read"),
        (r#"{"data":[{"index":0,"embedding":"AAAA"}]}"#, "cannot be read"),
        (r#"{"data":[]}"#, "0 vectors for 1 texts"),
        (r#"{"data":[{"index":0,"embedding":[1,2]},{"index":1,"embedding":[1,2]}]}"#, "2 vectors for 1 texts"),
        (r#"{"data":[{"index":5,"embedding":[1,2]}]}"#, "wrong indices"),
        (r#"{"data":[{"index":0,"embedding":[]}]}"#, "empty vector"),
        (r#"{"data":[{"index":0,"embedding":[1,2,3]}]}"#, "3 dimensions instead of 2"),
        (r#"{"data":[{"index":0,"embedding":[1e39,2]}]}"#, "out of range"),
    ];
    for (body, expected) in cases {
        let (error, tries) = fail(200, "", body);
        assert!(error.contains(expected), "{error}");
        assert_eq!(tries, 1);
    }
}

#[test]
fn a_server_that_hangs_is_given_up() {
    let server = Server::start(|_, _| Reply::Hang);
    let limits = Limits { answer: Duration::from_millis(50), ..quick() };
    let error = connect(&server, Wire::OpenAi, None, limits).unwrap_err().to_string();
    assert!(error.contains("did not answer in time"), "{error}");
}

#[test]
fn a_server_that_is_not_there_is_asked_for() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = listener.local_addr().unwrap().to_string();
    drop(listener);
    let address = Address::ollama(Some(&url)).unwrap();
    let error = RemoteModel::new(Wire::Ollama, "m", address, None, None, quick()).unwrap_err().to_string();
    assert!(error.contains("nothing answers") && error.contains("is the server running?"), "{error}");
}

#[test]
fn keys_stay_secret() {
    let server = Server::start(|_, _| Reply::Status(400, "", "you sent sk-secret, sk-secret".into()));
    let remote = connect(&server, Wire::OpenAi, Some(2), quick()).unwrap();
    let error = remote.embed(&["x"], Role::Query).unwrap_err();
    for text in [format!("{remote:?}"), error.to_string(), format!("{error:?}"), remote.id().to_owned()] {
        assert!(!text.contains("secret"), "{text}");
    }
    let away = Address::openai(Some("http://example.org")).unwrap();
    let error =
        RemoteModel::new(Wire::OpenAi, "m", away, Key::new("sk-secret"), Some(2), quick()).unwrap_err().to_string();
    assert!(error.contains("unencrypted") && !error.contains("secret"), "{error}");
    let openai = Address::openai(None).unwrap();
    let error = RemoteModel::new(Wire::OpenAi, "m", openai, None, Some(2), quick()).unwrap_err().to_string();
    assert!(error.contains("OPENAI_API_KEY"), "{error}");
    let unsendable = Key::new("sk-\u{7}secret");
    let address = Address::openai(Some(&server.url)).unwrap();
    let remote = RemoteModel::new(Wire::OpenAi, "m", address, unsendable, Some(2), quick()).unwrap();
    let error = remote.embed(&["x"], Role::Query).unwrap_err();
    assert!(!format!("{error} {error:?}").contains("secret"), "{error}");
}

#[test]
fn texts_leave_the_machine_when_the_server_is_elsewhere() {
    let at = |wire, url: &str, model: &str| {
        let address = Address::ollama(Some(url)).unwrap();
        RemoteModel::new(wire, model, address, None, Some(2), quick()).unwrap().is_remote()
    };
    assert!(at(Wire::OpenAi, "https://example.org", "m"));
    assert!(at(Wire::Ollama, "192.168.1.2", "m"));
    assert!(!at(Wire::Ollama, "127.0.0.1", "m"));
    assert!(at(Wire::Ollama, "127.0.0.1", "big:120b-cloud"));
}
