//! A server on loopback that answers as a test says, and remembers what it was asked.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

use serde_json::Value;

/// A request: its target as it stands in the first line, its headers with names in lower case, its body.
#[derive(Debug, Clone, Default)]
pub struct ReceivedRequest {
    pub target: String,
    pub headers: Vec<(String, String)>,
    pub body: String,
}

impl ReceivedRequest {
    /// A header's value.
    pub fn header(&self, wanted: &str) -> Option<&str> {
        self.headers.iter().find(|(name, _)| name == wanted).map(|(_, value)| value.as_str())
    }
}

/// The server. It ends with the process of the test.
pub struct WebServer {
    /// `127.0.0.1:PORT`.
    pub address: String,
    asked: Arc<Mutex<Vec<ReceivedRequest>>>,
}

impl WebServer {
    /// Answers with a status and JSON.
    pub fn that(mut answers: impl FnMut(&ReceivedRequest) -> (u16, Value) + Send + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let asked: Arc<Mutex<Vec<ReceivedRequest>>> = Arc::default();
        let seen = Arc::clone(&asked);
        std::thread::spawn(move || {
            for mut stream in listener.incoming().map_while(Result::ok) {
                let Some(request) = read_request(&stream) else { continue };
                let (status, body) = answers(&request);
                seen.lock().unwrap().push(request);
                let body = body.to_string();
                let head = format!("HTTP/1.1 {status} X\r\ncontent-type: application/json\r\nconnection: close\r\n");
                // A client that has gone needs no answer.
                let _ = write!(stream, "{head}content-length: {}\r\n\r\n{body}", body.len());
            }
        });
        Self { address, asked }
    }

    /// What it was asked so far.
    pub fn asked(&self) -> Vec<ReceivedRequest> {
        self.asked.lock().unwrap().clone()
    }
}

/// The request that a client sends.
pub fn read_request(stream: &TcpStream) -> Option<ReceivedRequest> {
    let mut reader = BufReader::new(stream);
    let mut asked = ReceivedRequest::default();
    let mut first = String::new();
    reader.read_line(&mut first).ok()?;
    asked.target = first.split(' ').nth(1)?.to_owned();
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line).ok()? == 0 {
            return None;
        }
        let Some((name, value)) = line.trim_end().split_once(':') else { break };
        asked.headers.push((name.to_lowercase(), value.trim().to_owned()));
    }
    let length = asked.header("content-length").map_or(Some(0), |length| length.parse().ok())?;
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    asked.body = String::from_utf8(body).ok()?;
    Some(asked)
}
