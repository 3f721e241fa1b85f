//! The user's own llama-server, started for one conversation. It is private to this process and ends with it.
//!
//! ```text
//! start ──> program --host 127.0.0.1 --port FREE, key in its environment ──> /health ──> Chat Completions
//! drop  ──> killed; if this process is killed, a shell beside the server reads the end of its input, and kills it
//! ```

use std::collections::VecDeque;
use std::ffi::OsString;
use std::fmt;
use std::io::{BufRead, BufReader, ErrorKind as Io, Read};
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use futures_util::StreamExt;

use crate::gguf::Gguf;
use agent_loop::BoxFuture;
use agent_loop::{Error, ErrorKind, error::Result};
use agent_loop::{HostedModel, Http, Provider, Wire};
use agent_loop::{Model, ReplyStream, Request};

/// How many lines of its log are kept for an error.
const LAST_LINES: usize = 8;
/// The longest line of the log that is read as a single line.
const LONGEST_LINE: u64 = 4_096;
/// How long `/health` may take to answer.
const HEALTH_LIMIT: Duration = Duration::from_secs(2);
/// How long a server that broke off its reply may take to exit.
const END_GRACE: Duration = Duration::from_millis(200);
/// How long to wait for the last lines of a server that has exited.
const LOG_GRACE: Duration = Duration::from_secs(1);

/// Starts the server in a process group, and kills the group when the guard's input closes, as it does when this
/// process ends, or when the server exits. The whole group is killed because a server that is a script starts another
/// program.
#[cfg(unix)]
const GUARD: &str = r#"
    exec 3<&0
    "$0" "$@" 3<&- </dev/null &
    server=$!
    { cat <&3 >/dev/null; kill -9 0; } 2>/dev/null &
    exec 3<&- </dev/null
    wait "$server"
    status=$?
    trap '' TERM
    kill -TERM 0
    exit "$status""#;

/// Options of [`LlamaServer::start`].
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct LlamaServerOptions {
    /// The program; by default `llama-server`, searched in `PATH`.
    pub program: PathBuf,
    /// The model file; by default the model that the program serves by itself.
    pub model: Option<PathBuf>,
    /// The model name in requests, if the program serves several; by default that of the file.
    pub name: Option<String>,
    /// The context length in tokens; by default the server's.
    pub context: Option<u32>,
    /// Additional arguments.
    pub arguments: Vec<OsString>,
    /// How long loading may take; by default five minutes.
    pub start_limit: Duration,
}

setters!(LlamaServerOptions {
    program: PathBuf,
    model: Option<PathBuf>,
    name: Option<String>,
    context: Option<u32>,
    arguments: Vec<OsString>,
    start_limit: Duration,
});

impl LlamaServerOptions {
    /// Returns the options for a path from a person: a model file, which `llama-server` serves, or a program.
    ///
    /// # Errors
    /// Those of [`Gguf::read`] for a file whose name ends in `.gguf` but that is not in this format.
    pub fn for_path(path: impl Into<PathBuf>) -> Result<Self> {
        let path = path.into();
        let is_model = path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("gguf"));
        if is_model {
            Gguf::read(&path)?;
            return Ok(Self::default().model(Some(path)));
        }
        Ok(Self::default().program(path))
    }
}

impl Default for LlamaServerOptions {
    fn default() -> Self {
        Self {
            program: "llama-server".into(),
            model: None,
            name: None,
            context: None,
            arguments: Vec::new(),
            start_limit: Duration::from_secs(300),
        }
    }
}

/// A llama-server that serves only this process, over Chat Completions. Dropping it stops the server.
///
/// If this process is killed, the server stops on Unix; on Windows it keeps running.
///
/// ```no_run
/// # async fn main_() -> agent_loop::error::Result<()> {
/// use agent_llama::{LlamaServer, LlamaServerOptions};
/// use agent_loop::{Agent, Http, Tool};
///
/// let options = LlamaServerOptions::for_path("Qwen3-4B-Q4_K_M.gguf")?;
/// let model = LlamaServer::start(options, Http::new()?).await?;
/// let agent = Agent::new(model, Vec::<Tool>::new())?;
/// # Ok(())
/// # }
/// ```
pub struct LlamaServer {
    model: HostedModel<Http>,
    process: Process,
}

impl LlamaServer {
    /// Starts the server and waits until it has loaded its model.
    ///
    /// # Errors
    /// `Io` if the program cannot be started, `State` if it exits instead, with the last lines of its log; `TimedOut`
    /// if it takes too long.
    pub async fn start(options: LlamaServerOptions, http: Http) -> Result<Self> {
        let key = random_key()?;
        let stem = options.model.as_deref().unwrap_or(&options.program).file_stem().unwrap_or_default();
        let name = options.name.clone().unwrap_or_else(|| stem.to_string_lossy().into_owned());
        let start_limit = options.start_limit;
        let process = Process::start(&options, &key)?;
        let health = format!("http://{}/health", process.address);
        let begun = Instant::now();
        loop {
            // While it loads the model, the server answers with 503.
            let asked = tokio::time::timeout(HEALTH_LIMIT, http.get(&health, Vec::new())).await;
            if matches!(asked, Ok(Ok(reply)) if reply.status == 200) {
                break;
            }
            if let Some(error) = process.ended() {
                return Err(error);
            }
            if begun.elapsed() > start_limit {
                let message = format!("the server was not ready within {} s", start_limit.as_secs());
                return Err(Error::new(ErrorKind::TimedOut, message)
                    .with_path(process.program())
                    .with_remedy(process.log()));
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        let base_url = format!("http://{}/v1", process.address);
        let provider = Provider::new("llama-server", Wire::Chat, base_url, Some(key));
        Ok(Self { model: HostedModel::new(provider, name, http), process })
    }

    /// Returns the address on which the server listens.
    pub fn address(&self) -> SocketAddr {
        self.process.address
    }

    /// Replaces an error by the server's exit status and log, if the server has exited.
    async fn explained(&self, error: Error) -> Error {
        if !matches!(error.kind(), ErrorKind::Unavailable | ErrorKind::CutStream) {
            return error;
        }
        // The connection closes before the process exits.
        let begun = Instant::now();
        loop {
            match self.process.ended() {
                Some(ended) => return ended,
                None if begun.elapsed() > END_GRACE => return error,
                None => tokio::time::sleep(Duration::from_millis(5)).await,
            }
        }
    }
}

impl Model for LlamaServer {
    fn name(&self) -> &str {
        self.model.name()
    }

    fn provider(&self) -> Option<&str> {
        Some("llama.cpp")
    }

    fn reply(&self, request: Request) -> BoxFuture<'_, Result<ReplyStream<'_>>> {
        Box::pin(async move {
            let stream = match self.model.reply(request).await {
                Ok(stream) => stream,
                Err(error) => return Err(self.explained(error).await),
            };
            let explained = stream.then(move |delta| async move {
                match delta {
                    Ok(delta) => Ok(delta),
                    Err(error) => Err(self.explained(error).await),
                }
            });
            Ok(Box::pin(explained) as ReplyStream<'_>)
        })
    }
}

impl fmt::Debug for LlamaServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LlamaServer").field("address", &self.process.address).finish_non_exhaustive()
    }
}

/// A running server. Dropping it stops the server.
struct Process {
    child: Mutex<Child>,
    program: PathBuf,
    address: SocketAddr,
    log: Arc<Mutex<VecDeque<String>>>,
    reader: Option<JoinHandle<()>>,
}

impl Process {
    fn start(options: &LlamaServerOptions, key: &str) -> Result<Self> {
        let program = options.program.clone();
        let failed = |error: std::io::Error| {
            let remedy = match error.kind() {
                Io::NotFound => "install llama.cpp, whose program is called llama-server, or give its path",
                Io::PermissionDenied => "make the file executable",
                _ => "check the system's error message",
            };
            let error = Error::new(ErrorKind::Io, "the server cannot be started").with_source(error);
            error.with_path(program.display().to_string()).with_remedy(remedy)
        };
        let found = found(&program).map_err(failed)?;
        // Another program could take the port before the server does. The server then exits, and that is reported.
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).map_err(failed)?;
        let address = listener.local_addr().map_err(failed)?;
        drop(listener);

        let mut command = guarded(&found);
        command.args(["--host", "127.0.0.1", "--port"]).arg(address.port().to_string());
        if let Some(model) = &options.model {
            command.arg("--model").arg(model);
        }
        if let Some(context) = options.context {
            command.arg("--ctx-size").arg(context.to_string());
        }
        // Other users could read the key in the server's arguments.
        command.args(&options.arguments).env("LLAMA_API_KEY", key);
        command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::piped());
        let mut child = command.spawn().map_err(failed)?;
        let log = Arc::default();
        let reader = child.stderr.take().map(|stderr| {
            let lines = Arc::clone(&log);
            std::thread::spawn(move || keep_last_lines(stderr, &lines))
        });
        Ok(Self { child: Mutex::new(child), program, address, log, reader })
    }

    fn program(&self) -> String {
        self.program.display().to_string()
    }

    fn log(&self) -> String {
        let lines = self.log.lock().unwrap_or_else(PoisonError::into_inner);
        let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
        match lines.is_empty() {
            true => "its log is empty".into(),
            false => format!("the last lines of its log: {}", lines.join(" | ")),
        }
    }

    /// Returns an error if the server has exited.
    fn ended(&self) -> Option<Error> {
        let status = self.child.lock().unwrap_or_else(PoisonError::into_inner).try_wait().ok()??;
        // The last output may still arrive; a child process of the server may keep the pipe open.
        let begun = Instant::now();
        while self.reader.as_ref().is_some_and(|reader| !reader.is_finished()) && begun.elapsed() < LOG_GRACE {
            std::thread::sleep(Duration::from_millis(5));
        }
        let message = format!("the server has ended ({status})");
        // Another attempt would not help.
        let error = Error::new(ErrorKind::State, message).with_path(self.program());
        Some(
            error.with_remedy(format!(
                "start it again, with a new conversation or by resuming this one; {}",
                self.log()
            )),
        )
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let child = self.child.get_mut().unwrap_or_else(PoisonError::into_inner);
        // The guard kills the server, and exits with it.
        drop(child.stdin.take());
        #[cfg(not(unix))]
        let _ = child.kill();
        let _ = child.wait();
    }
}

/// Finds the program as the system would, so that a missing one is reported immediately.
fn found(program: &Path) -> std::io::Result<PathBuf> {
    if program.components().count() > 1 {
        return std::fs::metadata(program).and_then(|file| match file.is_file() {
            true => std::path::absolute(program),
            false => Err(Io::NotFound.into()),
        });
    }
    let named = |folder: PathBuf| {
        let file = folder.join(program);
        if file.extension().is_some() { file } else { file.with_extension(std::env::consts::EXE_EXTENSION) }
    };
    let folders = std::env::var_os("PATH").unwrap_or_default();
    let found = std::env::split_paths(&folders).map(named).find(|file| file.is_file());
    found.ok_or_else(|| Io::NotFound.into())
}

#[cfg(unix)]
fn guarded(program: &Path) -> Command {
    let mut command = Command::new("/bin/sh");
    command.args(["-c", GUARD]).arg(program);
    // Ctrl-C in a terminal is meant for this program, which may only cancel a reply.
    std::os::unix::process::CommandExt::process_group(&mut command, 0);
    command
}

#[cfg(not(unix))]
fn guarded(program: &Path) -> Command {
    Command::new(program)
}

fn keep_last_lines(stderr: impl Read, lines: &Mutex<VecDeque<String>>) {
    let mut reader = BufReader::new(stderr);
    let mut line = Vec::new();
    while matches!(reader.by_ref().take(LONGEST_LINE).read_until(b'\n', &mut line), Ok(1..)) {
        let text = String::from_utf8_lossy(&line).trim().to_string();
        line.clear();
        if !text.is_empty() {
            let mut lines = lines.lock().unwrap_or_else(PoisonError::into_inner);
            if lines.len() == LAST_LINES {
                lines.pop_front();
            }
            lines.push_back(text);
        }
    }
}

fn random_key() -> Result<String> {
    let mut bytes = [0; 32];
    getrandom::fill(&mut bytes).map_err(|error| {
        Error::new(ErrorKind::State, "the system gives no random numbers").with_source(error.to_string())
    })?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}
