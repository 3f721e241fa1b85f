//! Ctrl-C while a search at a terminal embeds: the first answers with what is there, the second ends the program.

use std::fs::File;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Child, Command};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, SystemTime};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use crate::background::processes;
use crate::commands::{command, run, stderr, stdout};
use crate::terminal::start_at;
use crate::vault::Vault;

/// The texts of a request.
const BATCH: u64 = 64;

/// A request to embed, which waits for its answer.
struct Request {
    stream: TcpStream,
    texts: usize,
}

impl Request {
    fn read(stream: TcpStream) -> Option<Self> {
        let mut reader = BufReader::new(&stream);
        let mut length = 0;
        loop {
            let mut line = String::new();
            reader.read_line(&mut line).ok().filter(|read| *read > 0)?;
            if line == "\r\n" {
                break;
            }
            if let Some(value) = line.to_lowercase().strip_prefix("content-length:") {
                length = value.trim().parse().unwrap();
            }
        }
        let mut body = vec![0; length];
        reader.read_exact(&mut body).ok()?;
        let body: Value = serde_json::from_slice(&body).unwrap();
        Some(Self { texts: body["input"].as_array().unwrap().len(), stream })
    }

    fn answer(mut self) {
        let vectors = (0..self.texts).map(|n| json!({ "index": n, "embedding": [1.0, n] }));
        let body = json!({ "object": "list", "data": vectors.collect::<Vec<_>>() }).to_string();
        let head = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\nconnection: close\r\ncontent-length:";
        // The program may have ended.
        let _ = write!(self.stream, "{head} {}\r\n\r\n{body}", body.len());
    }
}

/// A server of embeddings on this machine, whose requests are answered by the test.
fn server() -> (String, Receiver<Request>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    let (sender, requests) = channel();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let Some(request) = Request::read(stream.unwrap()) else { continue };
            if sender.send(request).is_err() {
                break;
            }
        }
    });
    (address, requests)
}

/// A vault of four batches that are not embedded, and the command that searches it.
fn unembedded(address: &str, requests: &Receiver<Request>) -> (Vault, Command) {
    let vault = Vault::new("");
    // The title is in the passage, so that it is no text of its own. The newest notes, which are embedded first, have
    // most of the words: after them, the rest is expected to be done in five seconds, however slow the machine is.
    for n in 0..4 * BATCH {
        let (path, is_new) = (format!("Note {n}.md"), n < BATCH);
        let words = "a heron waits in water ".repeat(if is_new { 30 } else { 1 });
        vault.write(&path, format!("# Note {n}\n\n{words}\n"));
        if !is_new {
            let file = File::options().write(true).open(vault.root().join(path)).unwrap();
            file.set_modified(SystemTime::UNIX_EPOCH).unwrap();
        }
    }
    let with_model = |program, args: &[&str]| {
        let mut command = command(&vault, program, args);
        command.env("VAULT_MODEL", "openai:m").env("VAULT_BASE_URL", address).env("OPENAI_API_KEY", "sk-test");
        command
    };
    let mut sync = with_model("vault-index", &["sync", "--no-vectors"]);
    std::thread::scope(|scope| {
        let sync = scope.spawn(move || sync.output().unwrap());
        while !sync.is_finished() {
            requests.recv_timeout(Duration::from_millis(10)).into_iter().for_each(Request::answer);
        }
        let output = sync.join().unwrap();
        assert!(output.status.success(), "{}", stderr(&output));
    });
    let search = with_model("vault-search", &["-n", "1", "heron"]);
    (vault, search)
}

/// Waits until the bar is at the second batch, which the server holds.
fn until_the_bar_shows(terminal: &mut File, requests: &Receiver<Request>) -> Request {
    let next = || requests.recv_timeout(Duration::from_secs(60)).expect("the next batch is embedded");
    let first = next();
    // The bar is shown after 300 ms.
    std::thread::sleep(Duration::from_millis(350));
    first.answer();
    let second = next();
    let (mut shown, mut bytes) = (String::new(), [0; 1024]);
    while !shown.contains("embedding passages") {
        // Linux tells the end by an error.
        let read = terminal.read(&mut bytes).unwrap_or_else(|_| panic!("it ended: {shown}"));
        shown += &String::from_utf8_lossy(&bytes[..read]);
    }
    second
}

/// Sends Ctrl-C and waits until the program's thread for signals has noticed it and waits for the next one, or the
/// program has ended. Two that come at once would be one.
fn interrupt(child: &Child) {
    let before = waits_for_signals(child).expect("a thread for signals");
    kill_process(Pid::from_child(child), Signal::INT).unwrap();
    while waits_for_signals(child) == Some(before) {
        std::thread::yield_now();
    }
}

/// How often the program's thread for signals has begun to wait.
fn waits_for_signals(child: &Child) -> Option<u64> {
    let threads = std::fs::read_dir(format!("/proc/{}/task", child.id())).ok()?;
    let mut status = threads.filter_map(|thread| std::fs::read_to_string(thread.ok()?.path().join("status")).ok());
    let status = status.find(|status| status.starts_with("Name:\tctrl-c\n"))?;
    status.lines().find_map(|line| line.strip_prefix("voluntary_ctxt_switches:"))?.trim().parse().ok()
}

fn pending(vault: &Vault) -> u64 {
    let status = run(vault, "vault-index", &["status", "--json"]);
    serde_json::from_str::<Value>(&stdout(&status)).unwrap()["pending"].as_u64().unwrap()
}

#[test]
fn ctrl_c_during_the_bar_answers() {
    let (address, requests) = server();
    let (vault, search) = unembedded(&address, &requests);
    let (mut child, mut terminal) = start_at(&vault, search, [true, true]);
    let second = until_the_bar_shows(&mut terminal, &requests);
    interrupt(&child);
    second.answer();
    let answering = std::thread::spawn(move || requests.into_iter().for_each(Request::answer));
    let mut shown = Vec::new();
    let _ = terminal.read_to_end(&mut shown);
    let shown = String::from_utf8_lossy(&shown);
    assert_eq!(child.wait().unwrap().code(), Some(0), "{shown}");
    assert!(shown.contains("Note") && shown.contains("indexing was stopped"), "{shown}");
    let left = pending(&vault);
    assert!((1..=2 * BATCH).contains(&left), "two of four batches, or the third, too: {left}");
    // A server is asked only while a search waits for it.
    assert!(!shown.contains("in the background") && processes(&vault).is_empty(), "{shown}");
    drop(answering);
}

#[test]
fn a_second_ctrl_c_ends_it_at_once() {
    let (address, requests) = server();
    let (vault, search) = unembedded(&address, &requests);
    let (mut child, mut terminal) = start_at(&vault, search, [true, true]);
    // The batch is never answered.
    let _second = until_the_bar_shows(&mut terminal, &requests);
    interrupt(&child);
    assert!(child.try_wait().unwrap().is_none(), "the first waits for the batch");
    interrupt(&child);
    assert_eq!(child.wait().unwrap().code(), Some(130));
    assert_eq!(pending(&vault), 3 * BATCH, "the first batch is kept");
    let check = run(&vault, "vault-index", &["check"]);
    assert!(check.status.success(), "{}{}", stdout(&check), stderr(&check));
}
