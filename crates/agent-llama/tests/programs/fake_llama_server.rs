//! Answers as a llama-server does: 503 while it loads, then the key is asked for. It dies when it is asked to.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let after = |name: &str| arguments.iter().skip_while(|argument| *argument != name).nth(1).map(String::as_str);
    assert_eq!(after("--host"), Some("127.0.0.1"));
    let port: u16 = after("--port").unwrap().parse().unwrap();
    let key = format!("authorization: bearer {}", std::env::var("LLAMA_API_KEY").unwrap()).to_lowercase();
    assert!(!arguments.iter().any(|argument| key.ends_with(&argument.to_lowercase())), "the key is no argument");
    let listener = TcpListener::bind(("127.0.0.1", port)).unwrap();
    let mut loading = 2;
    for stream in listener.incoming() {
        // Who only looks whether somebody listens says nothing.
        let _ = answer(stream.unwrap(), &key, &mut loading);
    }
}

fn answer(mut stream: TcpStream, key: &str, loading: &mut i32) -> std::io::Result<()> {
    let mut reader = BufReader::new(stream.try_clone()?);
    let (mut head, mut line) = (String::new(), String::new());
    while reader.read_line(&mut line)? > 2 {
        head += &std::mem::take(&mut line);
    }
    let head = head.to_lowercase();
    let length = head.lines().find_map(|line| line.strip_prefix("content-length: ")?.parse().ok()).unwrap_or(0);
    let mut body = vec![0; length];
    reader.read_exact(&mut body)?;
    let body = String::from_utf8(body).unwrap();
    let (status, text) = if head.starts_with("get /health") {
        *loading -= 1;
        if *loading >= 0 { ("503 Loading", String::new()) } else { ("200 OK", "{}".into()) }
    } else if !head.contains(key) {
        ("401 Unauthorized", "{}".into())
    } else if body.contains("please die") {
        std::io::stderr().write_all(b"out of memory, alas\n").unwrap();
        std::process::exit(9);
    } else {
        let delta = |delta: &str, end: &str| {
            format!("data: {{\"choices\":[{{\"delta\":{delta},\"finish_reason\":{end}}}]}}\n\n")
        };
        let text = delta("{\"content\":\"hello\"}", "null") + &delta("{}", "\"stop\"") + "data: [DONE]\n\n";
        ("200 OK", text)
    };
    let kind = if text.starts_with("data") { "text/event-stream" } else { "application/json" };
    let head = format!("HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {}\r\n", text.len());
    write!(stream, "{head}Connection: close\r\n\r\n{text}")
}
