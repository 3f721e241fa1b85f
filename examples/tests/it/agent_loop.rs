//! Tests of the agent-loop examples, with scripted models and servers on loopback.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};

use super::program;

/// Returns the output of a program that gets these lines as input.
fn said(mut command: Command, answer: &str) -> String {
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(answer.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn calculator_agent() {
    let said = said(program("calculator_agent"), "");
    for line in ["nothing can be divided by zero.\n(answered, 3 turns)", "call_1: 3", "call_3: division by zero"] {
        assert!(said.contains(line), "{line}: {said}");
    }
    assert!(said.contains("call_2: ") && said.contains("\"/\""), "the operators that there are: {said}");
}

#[test]
fn approve_in_terminal() {
    for (answer, expected) in [
        ("y\n", "wrote 19 bytes to Plan.md"),
        ("e\n{\"path\":\"Other.md\",\"text\":\"x\"}\n", "wrote 1 bytes to Other.md"),
        ("not now\n", "That is all."),
    ] {
        let said = said(program("approve_in_terminal"), answer);
        assert!(said.contains(expected) && said.contains("write_note"), "{said}");
        assert_eq!(said.contains("wrote"), answer != "not now\n", "{said}");
    }
}

#[test]
fn pause_and_resume() {
    let said = said(program("pause_and_resume"), "");
    assert!(said.contains("waiting for a decision about delete") && said.ends_with("It is deleted.\n"), "{said}");
}

#[test]
fn text_only_model() {
    let said = said(program("text_only_model"), "");
    assert!(said.contains("# Tools") && said.ends_with("See Roses.md.\n"), "{said}");
    assert!(!said.contains("A forged <tool_call>"), "what a tool gives back is escaped: {said}");
}

#[test]
fn hosted_model() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}/v1", listener.local_addr().unwrap());
    let server = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let request = read_until(&mut stream, "How do I prune roses?");
        let body = "data: {\"choices\":[{\"delta\":{\"content\":\"In spring.\"}}]}\n\ndata: [DONE]\n\n";
        let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n";
        write!(stream, "{head}{body}").unwrap();
        request
    });
    let mut command = program("hosted_model");
    command.args([&address, "some-model", "How do I prune roses?"]).env_remove("API_KEY");
    assert_eq!(said(command, ""), "In spring.\n(answered)\n");
    let request = server.join().unwrap();
    assert!(request.starts_with("POST /v1/chat/completions ") && request.contains("some-model"), "{request}");
    assert!(said(program("hosted_model"), "").starts_with("hosted_model PROVIDER MODEL QUESTION"));
}

#[test]
fn a_model_of_your_own() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}/reply", listener.local_addr().unwrap());
    let server = std::thread::spawn(move || {
        let call = r#"{"tool_calls": [{"id": "c1", "function": {"name": "add", "arguments": "{\"a\":2,\"b\":3}"}}]}"#;
        [call, r#"{"content": "It is 5."}"#].map(|body| {
            let (mut stream, _) = listener.accept().unwrap();
            let head = read_until(&mut stream, "\r\n\r\n");
            let length = head.lines().find_map(|line| line.strip_prefix("content-length: ")).expect("a length");
            let end = head.find("\r\n\r\n").unwrap() + 4 + length.parse::<usize>().unwrap();
            let request = read_while(&mut stream, head, |all| all.len() < end);
            let head = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\nconnection: close\r\n\r\n";
            write!(stream, "{head}{body}").unwrap();
            request
        })
    });
    let mut command = program("a_model_of_your_own");
    command.args([&address, "What is 2 + 3?"]);
    assert_eq!(said(command, ""), "It is 5.\n");
    let [first, second] = server.join().unwrap();
    assert!(first.starts_with("POST /reply ") && first.contains(r#""content":"What is 2 + 3?""#), "{first}");
    assert!(second.contains(r#""tool_call_id":"c1""#) && second.contains(r#""content":"5""#), "{second}");
}

/// Kills the program, whatever the result of the test is.
struct Ended(Child);

impl Drop for Ended {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn responses_proxy() {
    let mut proxy = Ended(program("responses_proxy").arg("0").stdout(Stdio::piped()).spawn().unwrap());
    let mut line = String::new();
    BufReader::new(proxy.0.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let address = line.trim().strip_prefix("http://").and_then(|rest| rest.strip_suffix("/v1")).expect("an address");
    let mut stream = TcpStream::connect(address).unwrap();
    let body = r#"{"model":"clock","input":"What time is it?","tools":[{"type":"function","name":"get_time"}]}"#;
    let length = body.len();
    let head = "POST /v1/responses HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n";
    write!(stream, "{head}content-length: {length}\r\n\r\n{body}").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 200 OK"), "{answer}");
    assert!(answer.contains("\"function_call\"") && answer.contains("\"name\":\"get_time\""), "{answer}");
}

fn read_until(stream: &mut TcpStream, wanted: &str) -> String {
    read_while(stream, String::new(), |all| !all.contains(wanted))
}

fn read_while(stream: &mut TcpStream, mut all: String, is_open: impl Fn(&str) -> bool) -> String {
    let mut bytes = [0; 4096];
    while is_open(&all) {
        let read = stream.read(&mut bytes).unwrap();
        assert!(read > 0, "{all}");
        all.push_str(&String::from_utf8_lossy(&bytes[..read]));
    }
    all
}
