//! A llama-server that is started and ended: with a program that answers as one, and with a real one and a real model,
//! which `AGENT_LOOP_LLAMA_SERVER` and `AGENT_LOOP_LOCAL_MODEL` name.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use agent_llama::{LlamaServer, LlamaServerOptions};
use agent_loop::{EndReason, ErrorKind, Http, Message, Model, Reply, Request, error::Result};
use tokio::sync::Mutex;

use crate::programs::program;

/// Ports are given again soon: what one test waits for must not be another one's server.
static ALONE: Mutex<()> = Mutex::const_new(());

/// A shell script.
fn script(folder: &Path, lines: &str) -> PathBuf {
    let path = folder.join("llama-server");
    std::fs::write(&path, format!("#!/bin/sh\n{lines}\n")).unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
    path
}

fn fake() -> PathBuf {
    program("fake_llama_server")
}

fn request(text: &str) -> Request {
    Request::default().messages([Message::user(text)].into_iter().collect())
}

async fn reply(server: &LlamaServer, text: &str) -> Result<Reply> {
    Reply::collect(server.reply(request(text)).await?).await
}

/// Waits until nothing listens there any more.
fn ends(address: SocketAddr) {
    let begun = Instant::now();
    while TcpStream::connect_timeout(&address, Duration::from_secs(1)).is_ok() {
        assert!(begun.elapsed() < Duration::from_secs(20), "the server at {address} lives on");
        std::thread::yield_now();
    }
}

async fn start(options: LlamaServerOptions) -> Result<LlamaServer> {
    LlamaServer::start(options, Http::new().unwrap()).await
}

#[tokio::test]
async fn a_server_is_started_asked_and_ended() {
    let _alone = ALONE.lock().await;
    let options = LlamaServerOptions::for_path(fake()).unwrap().context(Some(512));
    let server = start(options).await.unwrap();
    let answer = reply(&server, "hi").await.unwrap();
    assert_eq!((answer.visible_text().as_str(), answer.end), ("hello", EndReason::Complete));
    assert_eq!(server.name(), "fake_llama_server");
    let address = server.address();
    assert!(address.ip().is_loopback());
    let mut stream = TcpStream::connect(address).unwrap();
    write!(stream, "POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\n{{}}").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 401"), "others have no key: {answer}");
    drop(server);
    ends(address);
}

/// A script that adds options starts the server as a process of its own.
#[tokio::test]
async fn a_server_behind_a_script_ends_too() {
    let _alone = ALONE.lock().await;
    let folder = tempfile::tempdir().unwrap();
    let wrapper = script(folder.path(), &format!("{:?} \"$@\"\nexit $?", fake()));
    let server = start(LlamaServerOptions::default().program(wrapper).name(Some("qwen".into()))).await.unwrap();
    assert_eq!((reply(&server, "hi").await.unwrap().visible_text().as_str(), server.name()), ("hello", "qwen"));
    let address = server.address();
    drop(server);
    ends(address);
}

#[tokio::test]
async fn a_server_that_dies_says_why() {
    let _alone = ALONE.lock().await;
    let folder = tempfile::tempdir().unwrap();
    let server = start(LlamaServerOptions::default().program(fake())).await.unwrap();
    let error = reply(&server, "please die").await.unwrap_err();
    let mut error = error;
    let begun = Instant::now();
    // The connection may be seen to break before the end of the process is.
    while !error.to_string().contains("has ended") && begun.elapsed() < Duration::from_secs(20) {
        error = reply(&server, "still there?").await.unwrap_err();
    }
    assert_eq!(error.kind(), ErrorKind::State, "{error}");
    assert!(error.remedy().unwrap().contains("out of memory, alas"), "{error}");
    ends(server.address());

    let broken = script(folder.path(), "echo 'error: unable to load model' >&2; exit 3");
    let error = start(LlamaServerOptions::default().program(broken)).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::State, "{error}");
    assert!(
        error.to_string().contains("exit status: 3") && error.to_string().contains("unable to load model"),
        "{error}"
    );
}

#[tokio::test]
async fn what_cannot_be_started_is_named() {
    let _alone = ALONE.lock().await;
    let folder = tempfile::tempdir().unwrap();
    let error = start(LlamaServerOptions::default().program(folder.path().join("none"))).await.unwrap_err();
    assert!(error.kind() == ErrorKind::Io && error.path().unwrap().ends_with("none"), "{error}");
    let error = start(LlamaServerOptions::default().program("no-such-program-anywhere".into())).await.unwrap_err();
    assert!(error.remedy().unwrap().contains("llama-server"), "{error}");
    let model = folder.path().join("model.gguf");
    std::fs::write(&model, "no model").unwrap();
    assert_eq!(LlamaServerOptions::for_path(&model).unwrap_err().kind(), ErrorKind::Damaged);
    let silent = script(folder.path(), "exec sleep 600");
    let options = LlamaServerOptions::default().program(silent).start_limit(Duration::from_millis(300));
    assert_eq!(start(options).await.unwrap_err().kind(), ErrorKind::TimedOut);
}

#[test]
fn a_server_ends_with_a_program_that_is_killed() {
    let _alone = ALONE.blocking_lock();
    let mut holder = Command::new(program("llama_server_holder")).arg(fake()).stdout(Stdio::piped()).spawn().unwrap();
    let lines = BufReader::new(holder.stdout.take().unwrap()).lines();
    let address = lines.map_while(std::io::Result::ok).find_map(|line| line.strip_prefix("listens at ")?.parse().ok());
    let address: SocketAddr = address.expect("the holder says where its server listens");
    assert!(TcpStream::connect(address).is_ok());
    holder.kill().unwrap();
    holder.wait().unwrap();
    ends(address);
}

/// The features that build a llama.cpp bring the variables too.
#[cfg(feature = "local")]
#[tokio::test]
async fn a_real_server_answers() {
    let _alone = ALONE.lock().await;
    let file = crate::real_model::named_by;
    let (Some(program), Some(model)) = (file("AGENT_LOOP_LLAMA_SERVER"), file("AGENT_LOOP_LOCAL_MODEL")) else {
        return;
    };
    // On a busy machine two threads wait for each other longer than one computes.
    let one_thread = ["--threads", "1"].map(Into::into).to_vec();
    let options = LlamaServerOptions::for_path(model).unwrap().program(program).context(Some(2_048));
    let server = start(options.arguments(one_thread)).await.unwrap();
    let request = request("Say hello.").max_output_tokens(Some(24));
    let answer = Reply::collect(server.reply(request).await.unwrap()).await.unwrap();
    assert!(!answer.visible_text().is_empty(), "{answer:?}");
    let address = server.address();
    drop(server);
    ends(address);
}
