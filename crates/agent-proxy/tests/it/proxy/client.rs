//! A client that shows every byte: HTTP/1.1 by hand over one connection.

use std::net::SocketAddr;

use serde_json::Value;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;

use super::within;

pub struct Client {
    stream: BufReader<TcpStream>,
    /// Of a body in chunks: what was read and not asked for yet.
    text: String,
}

#[derive(Debug)]
pub struct Head {
    pub status: u16,
    headers: Vec<(String, String)>,
}

impl Head {
    pub fn header(&self, wanted: &str) -> Option<&str> {
        self.headers.iter().find(|(name, _)| name == wanted).map(|(_, value)| value.as_str())
    }
}

impl Client {
    pub async fn open(address: SocketAddr) -> Self {
        let stream = BufReader::new(TcpStream::connect(address).await.unwrap());
        Self { stream, text: String::new() }
    }

    /// `Host` is the loopback name unless the headers have another.
    pub async fn send(&mut self, method: &str, path: &str, headers: &[(&str, &str)], body: &str) {
        let mut request = format!("{method} {path} HTTP/1.1\r\ncontent-length: {}\r\n", body.len());
        if !headers.iter().any(|(name, _)| name.eq_ignore_ascii_case("host")) {
            request.push_str("host: localhost:1234\r\n");
        }
        headers.iter().for_each(|(name, value)| request.push_str(&format!("{name}: {value}\r\n")));
        self.write(&format!("{request}\r\n{body}")).await;
    }

    pub async fn write(&mut self, bytes: &str) {
        self.stream.get_mut().write_all(bytes.as_bytes()).await.unwrap();
    }

    async fn line(&mut self) -> String {
        let mut line = String::new();
        within(self.stream.read_line(&mut line)).await.unwrap();
        assert!(line.ends_with("\r\n"), "the connection ended in {line:?}");
        line.trim_end().to_string()
    }

    pub async fn head(&mut self) -> Head {
        let status = self.line().await;
        let status = status.split(' ').nth(1).unwrap().parse().unwrap();
        let mut headers = Vec::new();
        loop {
            let line = self.line().await;
            let Some((name, value)) = line.split_once(':') else { break };
            headers.push((name.to_ascii_lowercase(), value.trim().to_string()));
        }
        Head { status, headers }
    }

    /// The whole answer, which must be JSON.
    pub async fn json(&mut self) -> (u16, Value) {
        let head = self.head().await;
        let body = self.body(&head).await;
        (head.status, serde_json::from_str(&body).unwrap_or_else(|error| panic!("{error}: {body}")))
    }

    pub async fn body(&mut self, head: &Head) -> String {
        let length = head.header("content-length").expect("a body of known length").parse().unwrap();
        let mut body = vec![0; length];
        within(self.stream.read_exact(&mut body)).await.unwrap();
        String::from_utf8(body).unwrap()
    }

    /// The next block of an event stream, without the empty line; `None` at its proper end.
    pub async fn block(&mut self) -> Option<String> {
        loop {
            if let Some(end) = self.text.find("\n\n") {
                let rest = self.text.split_off(end + 2);
                let block = std::mem::replace(&mut self.text, rest);
                return Some(block.trim_end().to_string());
            }
            let size = usize::from_str_radix(&self.line().await, 16).unwrap();
            let mut chunk = vec![0; size];
            within(self.stream.read_exact(&mut chunk)).await.unwrap();
            assert_eq!(self.line().await, "");
            if size == 0 {
                assert_eq!(self.text, "", "the stream ends behind a whole event");
                return None;
            }
            self.text.push_str(&String::from_utf8(chunk).expect("events are not cut inside a character"));
        }
    }

    /// The next event's JSON, or the text of the mark at the end of chat streams; comments are passed over.
    pub async fn event(&mut self) -> Option<Value> {
        loop {
            let block = self.block().await?;
            if block.starts_with(':') {
                continue;
            }
            let data = block.lines().find_map(|line| line.strip_prefix("data: ")).unwrap();
            let event: Value = serde_json::from_str(data).unwrap_or_else(|_| Value::String(data.into()));
            if let Some(name) = block.lines().find_map(|line| line.strip_prefix("event: ")) {
                assert_eq!(event["type"], name);
            }
            return Some(event);
        }
    }

    /// Events up to the first that says this, with it.
    pub async fn events_until(&mut self, wanted: impl Fn(&Value) -> bool) -> Vec<Value> {
        let mut events = Vec::new();
        loop {
            events.push(self.event().await.expect("an event before the end"));
            if wanted(&events[events.len() - 1]) {
                return events;
            }
        }
    }

    /// All events to the proper end of the stream.
    pub async fn events(&mut self) -> Vec<Value> {
        let mut events = Vec::new();
        while let Some(event) = self.event().await {
            events.push(event);
        }
        events
    }

    /// Waits until the other side has closed the connection; gives what it still said.
    pub async fn closed(&mut self) -> Vec<u8> {
        let mut rest = Vec::new();
        // A reset is a close too.
        let _ = within(self.stream.read_to_end(&mut rest)).await;
        rest
    }
}
