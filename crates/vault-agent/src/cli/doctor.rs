//! `vault-agent mcp doctor`: starts the server as an assistant would, and reports problems.

use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::{Duration, Instant};

use clap::Parser;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Value, json};
use vault_index::dirs::home;
use vault_index::{Index, SyncOptions};
use vault_search::VaultArgs;
use vault_search::tools::{OpenedVault, open_with_settings};
use vault_search::{CliResult, Failure, Out, Outcome, counted};

use super::args::{AgentArgs, DoctorArgs, OfferArgs};
use super::install::start;
use crate::clients::{Client, NAME, ServerEntry, StartCommand};

/// How long a server may take to answer.
const ANSWER_WITHIN: Duration = Duration::from_secs(20);

/// How long another process may hold the index for writing, which is longer than one batch takes.
const WRITE_WITHIN: Duration = Duration::from_secs(3);

/// One checked item, and the result.
#[derive(Debug, Serialize, JsonSchema)]
struct Check {
    /// The assistant, vault or server.
    subject: String,
    is_ok: bool,
    message: String,
}

/// The results of all checks.
#[derive(Debug, Default)]
struct Checks(Vec<Check>);

impl Checks {
    fn add(&mut self, subject: &str, found: Result<String, String>) {
        let is_ok = found.is_ok();
        let message = found.unwrap_or_else(|fault| fault);
        self.0.push(Check { subject: subject.to_owned(), is_ok, message });
    }
}

pub(super) fn doctor(vault_args: &VaultArgs, args: &DoctorArgs, out: &mut Out) -> CliResult {
    if args.list.schema {
        return out.list_schema::<Check>(&args.list);
    }
    if args.client.is_some() && (!vault_args.vault.is_empty() || vault_args.index.is_some()) {
        let message =
            "--vault and --index have no effect with an assistant, whose configuration names them (leave them out)";
        return Err(Failure::Error(message.to_owned()));
    }
    let mut checks = Checks::default();
    let mut has_client = false;
    let clients = args.client.as_ref().map_or(Client::all(), std::slice::from_ref);
    // --vault or --http without an assistant asks for a check of that server only.
    let is_own = args.client.is_none() && (args.http.is_some() || !vault_args.vault.is_empty());
    for client in clients.iter().filter(|_| !is_own) {
        match (client.installed(), args.client) {
            (Ok(Some(installed)), _) => {
                has_client = true;
                check_client(*client, &installed, &mut checks);
            }
            (Ok(None), None) => {}
            (Ok(None), Some(_)) => {
                let file = client.config_file()?;
                let missing = format!("there is no server `{NAME}` in {}", file.display());
                checks.add(client.title(), Err(format!("{missing} (vault-agent mcp install {})", client.id())));
            }
            (Err(error), _) => checks.add(client.title(), Err(error.one_line())),
        }
    }
    if args.client.is_none() && !has_client {
        check_own(vault_args, args, &mut checks);
    }
    let is_ok = checks.0.iter().all(|check| check.is_ok);
    out.list(args.list.format(), &checks.0, |out, checks| {
        checks.iter().try_for_each(|check| {
            let kind = if check.is_ok { "ok" } else { "fault" };
            out.line(&format!("{kind}: {}: {}", check.subject, check.message))
        })
    })?;
    Ok(if is_ok { Outcome::Done } else { Outcome::Nothing })
}

/// Checks the server in an assistant's configuration.
fn check_client(client: Client, installed: &ServerEntry, checks: &mut Checks) {
    let Some(start) = &installed.start else {
        let foreign =
            format!("the server `{NAME}` in its configuration is not started by this client, so it was not checked");
        return checks.add(client.title(), Ok(foreign));
    };
    if installed.is_off {
        let off = format!("the server `{NAME}` is turned off in its configuration");
        checks.add(client.title(), Err(off));
    }
    let parsed = AgentArgs::try_parse_from(std::iter::once("vault-agent").chain(start.args.iter().map(String::as_str)));
    // If the arguments are invalid, the server itself reports that.
    if let Ok(args) = parsed.map(|args| args.vault_args)
        && !args.vault.is_empty()
    {
        check_vaults(&args, checks);
    }
    checks.add(client.title(), answer_on_stdio(start));
}

/// Checks a server for the vault of the command line.
fn check_own(vault_args: &VaultArgs, args: &DoctorArgs, checks: &mut Checks) {
    if !check_vaults(vault_args, checks) {
        return;
    }
    let server = start(vault_args, &OfferArgs::default()).map_err(|failure| failure.to_string()).and_then(
        |mut start| match args.http {
            None => answer_on_stdio(&start),
            Some(address) => {
                start.args.extend(["--http".to_owned(), address.to_string()]);
                listening(&start)
            }
        },
    );
    checks.add("the server", server);
    if args.http.is_none() && vault_args.vault.is_empty() {
        let none = "no known assistant has the server in its configuration (vault-agent mcp install CLIENT)";
        checks.add("assistants", Ok(none.to_owned()));
    }
}

/// Checks that the vaults can be opened, and their indexes. Returns whether they could be opened.
fn check_vaults(vault_args: &VaultArgs, checks: &mut Checks) -> bool {
    match open_with_settings(vault_args) {
        Ok(opened) => {
            for vault in &opened {
                let subject = vault.vault.path().display().to_string();
                // Several assistants often have the same vault.
                if !checks.0.iter().any(|check| check.subject == subject) {
                    checks.add(&subject, check_index(vault));
                }
            }
            true
        }
        Err(failure) => {
            checks.add("the vault", Err(failure.to_string()));
            false
        }
    }
}

fn check_index(opened: &OpenedVault) -> Result<String, String> {
    let folder = opened.vault.path();
    let check = || {
        let index = Index::open(folder, opened.index.clone())?;
        if opened.index.database.is_some() {
            return index.status();
        }
        let deadline = Instant::now().checked_add(WRITE_WITHIN);
        let mut options = SyncOptions::default();
        (options.vectors, options.wait, options.deadline) = (false, Some(WRITE_WITHIN), deadline);
        index.sync_with(&options)?;
        index.status()
    };
    let status = check().map_err(|error: vault_index::Error| error.one_line())?;
    match status.notes + status.unread {
        0 => Err("this folder holds no notes (name the folder of your notes with --vault DIR)".to_owned()),
        notes => {
            let pending = match status.pending {
                0 => String::new(),
                pending => {
                    format!("; {} are searched by words alone until they have vectors", counted(pending, "passage"))
                }
            };
            let watcher = status.watcher.map(|holder| format!("; kept up to date by {holder}")).unwrap_or_default();
            Ok(format!("{}{pending}{watcher}", counted(notes, "note")))
        }
    }
}

/// A line that a server wrote.
enum Line {
    Out(String),
    Error(String),
}

/// A running server and its output.
struct Server {
    child: Child,
    lines: Receiver<Line>,
    started: Instant,
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Server {
    /// Starts the server outside of the vault, as a client might.
    fn start(start: &StartCommand) -> Result<Self, String> {
        let started = Instant::now();
        let mut command = Command::new(&start.program);
        command.args(&start.args).envs(&start.env).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        if let Some(home) = home().filter(|home| home.is_dir()) {
            command.current_dir(home);
        }
        let mut child = command.spawn().map_err(|error| {
            format!(
                "{} cannot be started: {error} (vault-agent mcp install CLIENT writes the entry again)",
                start.program.display()
            )
        })?;
        let (send, lines) = channel();
        read_lines(child.stdout.take(), send.clone(), Line::Out);
        read_lines(child.stderr.take(), send, Line::Error);
        Ok(Self { child, lines, started })
    }

    /// Waits for the first line that `wanted` accepts.
    fn wait_for<T>(&self, wanted: impl Fn(&Line) -> Option<T>) -> Result<T, String> {
        let mut errors = Vec::new();
        loop {
            let left = ANSWER_WITHIN.saturating_sub(self.started.elapsed());
            match self.lines.recv_timeout(left) {
                Ok(line) => match (wanted(&line), line) {
                    (Some(found), _) => return Ok(found),
                    (None, Line::Error(text)) => errors.push(text),
                    (None, Line::Out(_)) => {}
                },
                Err(_) => {
                    let what = match left.is_zero() {
                        true => format!("it did not answer within {} s", ANSWER_WITHIN.as_secs()),
                        false => "it ended".to_owned(),
                    };
                    return Err(if errors.is_empty() { what } else { format!("{what}: {}", errors.join("; ")) });
                }
            }
        }
    }

    fn request(&mut self, id: u32, method: &str) -> Result<Value, String> {
        let meta = json!({
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientCapabilities": {},
            "io.modelcontextprotocol/clientInfo": { "name": "doctor", "version": env!("CARGO_PKG_VERSION") },
        });
        let request = json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": { "_meta": meta } });
        // If the server has ended, its earlier output says why.
        let _ = self.child.stdin.as_mut().map(|input| writeln!(input, "{request}"));
        self.wait_for(|line| match line {
            Line::Out(text) => serde_json::from_str::<Value>(text).ok().filter(|message| message["id"] == id),
            Line::Error(_) => None,
        })
    }
}

fn read_lines(stream: Option<impl Read + Send + 'static>, send: Sender<Line>, line: fn(String) -> Line) {
    let Some(stream) = stream else { return };
    std::thread::spawn(move || {
        for text in BufReader::new(stream).lines().map_while(Result::ok) {
            if send.send(line(text)).is_err() {
                return;
            }
        }
    });
}

fn answer_on_stdio(start: &StartCommand) -> Result<String, String> {
    let mut server = Server::start(start)?;
    let found = server.request(1, "server/discover")?;
    let took = server.started.elapsed();
    let listed = server.request(2, "tools/list")?;
    let Some(tools) = listed["result"]["tools"].as_array() else {
        return Err(format!("its response to tools/list is invalid: {listed}"));
    };
    let program = &found["result"]["_meta"]["io.modelcontextprotocol/serverInfo"];
    let version = program["version"].as_str().map(|version| format!(" {version}")).unwrap_or_default();
    let name = program["name"].as_str().unwrap_or("the server");
    Ok(format!("{name}{version} answers in {} ms, with {}", took.as_millis(), counted(tools.len(), "tool")))
}

fn listening(start: &StartCommand) -> Result<String, String> {
    Server::start(start)?.wait_for(|line| match line {
        Line::Error(text) => text.contains("listening on").then(|| text.trim_start_matches("note: ").to_owned()),
        Line::Out(_) => None,
    })
}
