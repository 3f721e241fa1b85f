//! The client as the host around the vault: an app that answers `_vault/host/…` about its editor and its commands.
//!
//! Its answers are data of another program: paths are checked, sizes limited, and an edit counts only if the file has
//! the new text. Each request has a time limit, so a client that does not answer makes a call fail, and nothing wait.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::runtime::Handle;
use tokio::task::block_in_place;
use tokio_util::sync::CancellationToken;
use vault_search::{sanitize_line, shortened};
use vault_tools::{Editor, Error, ErrorKind, Host, HostCommand, Leaf, OpenEditors, Position, Result, SafePath};
use vault_tools::{Selection, Span};

use super::rpc::Client;
use super::vault_methods::host::{
    self, AppCommand, HOST_VERSION, HostCapability, HostCommands, HostCommandsRequest, HostEditRequest, HostEdited,
    HostFiles, HostFilesRequest, HostOpenRequest, HostOpened, HostPosition, HostRan, HostRunRequest, HostState,
    HostStateRequest,
};
use super::wire::{ClientCapabilities, ErrorCode, host_of};
use crate::workspace::AppHost;

/// How long the client may take to answer.
const ANSWERS_WITHIN: Duration = Duration::from_secs(5);

/// How long a command of the app may take.
const RUNS_WITHIN: Duration = Duration::from_secs(30);

/// How long after a timeout the client is not asked to make edits, because it would delay each of them.
const PAUSE_AFTER_TIMEOUT: Duration = Duration::from_secs(60);

/// The longest selection that is taken, in UTF-16 units.
const LONGEST_SELECTION: usize = 1_000_000;

/// The largest text that is edited through the editor, in bytes; larger files are written by the program.
const LARGEST_EDIT: usize = 4 << 20;

/// The most open files and commands that are taken.
const MOST_FILES: usize = 1_000;
const MOST_COMMANDS: usize = 5_000;

/// The longest id of a command, and the most characters of a name or of an error that are kept.
const LONGEST_ID: usize = 200;
const LONGEST_NAME: usize = 200;
const LONGEST_ERROR: usize = 500;

/// Returns the app of a client that declares itself a live host.
pub(super) fn declared(capabilities: &ClientCapabilities, client: &Client) -> Option<AppHost> {
    let HostCapability { version, vault } = serde_json::from_value(host_of(capabilities)?).ok()?;
    if version != HOST_VERSION {
        return None;
    }
    let (vault, client, runtime) = (PathBuf::from(vault), client.clone(), Handle::try_current().ok()?);
    let host = LiveHost {
        client,
        runtime,
        answers_within: ANSWERS_WITHIN,
        runs_within: RUNS_WITHIN,
        last_timeout: Arc::default(),
    };
    // A path that does not exist is no vault of any workspace.
    let vault = vault.is_absolute().then(|| vault.canonicalize().ok()).flatten()?;
    Some(AppHost { vault, host: Arc::new(move || Box::new(host.clone())) })
}

/// The client as a host. Clones ask the same client.
#[derive(Debug, Clone)]
struct LiveHost {
    client: Client,
    runtime: Handle,
    answers_within: Duration,
    runs_within: Duration,
    /// When the client last did not answer in time, unless it has answered since.
    last_timeout: Arc<Mutex<Option<Instant>>>,
}

impl LiveHost {
    fn last_timeout(&self) -> MutexGuard<'_, Option<Instant>> {
        self.last_timeout.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sends a request and waits for the answer. It may be called on any thread of the runtime: another one carries
    /// the request.
    ///
    /// # Errors
    /// [`ErrorKind::TimedOut`]; [`ErrorKind::Refused`] with the client's error.
    fn ask<T>(&self, method: &'static str, params: &impl Serialize, within: Duration) -> Result<T>
    where
        T: DeserializeOwned + Send + 'static,
    {
        let params = serde_json::to_value(params).map_err(|fault| failed(&fault.to_string()))?;
        let (sender, answer) = std::sync::mpsc::sync_channel(1);
        let client = self.client.clone();
        self.runtime.spawn(async move {
            let never = CancellationToken::new();
            let asked = client.request::<T>(method, &params, &never);
            let _ = sender.send(tokio::time::timeout(within, asked).await);
        });
        let answer = block_in_place(|| answer.recv());
        *self.last_timeout() = matches!(answer, Ok(Err(_))).then(Instant::now);
        match answer {
            Ok(Ok(Ok(answer))) => Ok(answer),
            Ok(Ok(Err(fault))) if fault.code == ErrorCode::MethodNotFound => {
                Err(Error::new(ErrorKind::Unsupported, "the app around the vault cannot do this"))
            }
            Ok(Ok(Err(fault))) => Err(failed(&fault.message)),
            Ok(Err(_)) => {
                let message = format!("the app around the vault did not answer within {} seconds", within.as_secs());
                Err(Error::new(ErrorKind::TimedOut, message)
                    .with_remedy("look whether the app is busy or shows a question, then try again"))
            }
            // The program is ending.
            Err(_) => Err(failed("the connection to it is closed")),
        }
    }

    fn open_files(&self) -> Result<Vec<SafePath>> {
        let request = HostFilesRequest { most_files: MOST_FILES };
        let HostFiles { files } = self.ask(host::OPEN_FILES, &request, self.answers_within)?;
        Ok(safe_paths(files))
    }
}

/// Returns an error of the app, of which no more than a line is kept.
fn failed(message: &str) -> Error {
    Error::new(ErrorKind::Refused, format!("the app around the vault failed: {}", shortened(message, LONGEST_ERROR)))
}

/// Returns the paths that can be files of the vault. Whether the settings permit them is decided where they are used.
fn safe_paths(paths: Vec<String>) -> Vec<SafePath> {
    paths.iter().take(MOST_FILES).filter_map(|path| safe_path(path)).collect()
}

fn safe_path(path: &str) -> Option<SafePath> {
    SafePath::new_or_existing(path, |_| true).ok()
}

fn position(HostPosition { line, ch }: HostPosition) -> Position {
    Position { line, ch }
}

/// Returns the state of the editor as the tools know it.
///
/// # Errors
/// A selection that is too long, or that ends before it begins.
fn editor_in(state: HostState) -> Result<Editor> {
    let open = safe_paths(state.open_files);
    // Positions without their file mean nothing.
    let Some(active) = state.active_file.as_deref().and_then(safe_path) else {
        return Ok(Editor { open, ..Editor::default() });
    };
    let selection = match state.selection.filter(|selection| !selection.text.is_empty()) {
        Some(selection) if selection.text.encode_utf16().count() > LONGEST_SELECTION => {
            let message = format!("the selection has more than {LONGEST_SELECTION} characters");
            return Err(Error::new(ErrorKind::Unsupported, message).with_remedy("select less"));
        }
        Some(selection) => {
            let span = Span { from: position(selection.from), to: position(selection.to) };
            if span.to < span.from {
                return Err(failed("its selection ends before it begins"));
            }
            Some(Selection { text: selection.text, span: Some(span) })
        }
        None => None,
    };
    Ok(Editor { active_file: Some(active), selection, cursor: state.cursor.map(position), open })
}

/// Returns a command with a name of one line, or `None` for an id that could not be shown as it is.
fn command(AppCommand { id, name }: AppCommand) -> Option<HostCommand> {
    let is_usable = !id.is_empty() && id.chars().count() <= LONGEST_ID && sanitize_line(&id) == id;
    is_usable.then(|| HostCommand { id, name: shortened(&name, LONGEST_NAME) })
}

impl Host for LiveHost {
    fn name(&self) -> &str {
        "live"
    }

    fn is_live(&self) -> bool {
        true
    }

    fn editor(&self) -> Result<Editor> {
        let request = HostStateRequest { longest_selection: LONGEST_SELECTION, most_files: MOST_FILES };
        editor_in(self.ask(host::STATE, &request, self.answers_within)?)
    }

    fn open(&mut self, path: &SafePath, leaf: Leaf, line: Option<u32>) -> Result<bool> {
        let request = HostOpenRequest { path: path.to_string(), line, in_new_tab: leaf == Leaf::New };
        let HostOpened { opened } = self.ask(host::OPEN, &request, self.answers_within)?;
        Ok(opened)
    }

    fn commands(&self) -> Result<Vec<HostCommand>> {
        let request = HostCommandsRequest { most_commands: MOST_COMMANDS };
        let HostCommands { commands } = self.ask(host::COMMANDS, &request, self.answers_within)?;
        Ok(commands.into_iter().take(MOST_COMMANDS).filter_map(command).collect())
    }

    fn run_command(&mut self, id: &str) -> Result<()> {
        let request = HostRunRequest { id: id.to_owned() };
        let answer = self.ask(host::RUN_COMMAND, &request, self.runs_within).map_err(|error| match error.kind() {
            ErrorKind::TimedOut => error.within(format!("it is not known whether {id} ran")),
            _ => error,
        });
        let HostRan { ran } = answer?;
        match ran {
            true => Ok(()),
            false => Err(Error::new(ErrorKind::Refused, format!("the app cannot run the command {id} at the moment"))
                .with_remedy("some commands need a note that is open for editing")),
        }
    }

    fn open_editors(&self) -> Option<Box<dyn OpenEditors>> {
        let is_paused = self.last_timeout().is_some_and(|since| since.elapsed() < PAUSE_AFTER_TIMEOUT);
        (!is_paused).then(|| Box::new(LiveEditors { host: self.clone(), files: None }) as Box<dyn OpenEditors>)
    }
}

/// The editors of the app, for one change.
struct LiveEditors {
    host: LiveHost,
    /// The files that are open, once they were asked for. Empty after a failure, so that a client which does not answer
    /// delays a change once and not for each file.
    files: Option<Vec<SafePath>>,
}

impl OpenEditors for LiveEditors {
    fn replace(&mut self, path: &SafePath, before: &str, after: &str) {
        if before.len().max(after.len()) > LARGEST_EDIT {
            return;
        }
        let asked = match &self.files {
            Some(files) => Ok(files.contains(path)),
            None => self.host.open_files().map(|files| self.files.insert(files).contains(path)),
        };
        let edited = asked.and_then(|is_open| match is_open {
            false => Ok(()),
            true => {
                let (path, before, after) = (path.to_string(), before.to_owned(), after.to_owned());
                let request = HostEditRequest { path, before, after };
                self.host.ask::<HostEdited>(host::EDIT, &request, self.host.answers_within).map(drop)
            }
        });
        if edited.is_err() {
            self.files = Some(Vec::new());
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn host_of(client: Client) -> LiveHost {
        let within = Duration::from_millis(20);
        let (runtime, last_timeout) = (Handle::current(), Arc::default());
        LiveHost { client, runtime, answers_within: within, runs_within: within, last_timeout }
    }

    fn state(value: Value) -> Result<Editor> {
        editor_in(serde_json::from_value(value).unwrap())
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 1)]
    async fn a_client_that_does_not_answer_makes_a_call_fail_on_the_only_thread() {
        let (client, mut lines) = Client::new();
        let mut host = host_of(client);
        let error = host.editor().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::TimedOut, "{error}");
        let asked: Value = serde_json::from_str(&lines.recv().await.unwrap()).unwrap();
        assert_eq!(asked["method"], "_vault/host/state");
        let withdrawn: Value = serde_json::from_str(&lines.recv().await.unwrap()).unwrap();
        assert_eq!(
            (&withdrawn["method"], &withdrawn["params"]["requestId"]),
            (&json!("$/cancel_request"), &asked["id"])
        );
        let error = host.run_command("app:x").unwrap_err().to_string();
        assert!(error.contains("it is not known whether app:x ran"), "{error}");
        // Changes do not wait for it, until it has answered or some time has passed.
        assert!(host.open_editors().is_none());
        *host.last_timeout() = Instant::now().checked_sub(PAUSE_AFTER_TIMEOUT);
        // The editors are asked once.
        let mut editors = host.open_editors().unwrap();
        let path = SafePath::new("a.md").unwrap();
        editors.replace(&path, "a", "b");
        editors.replace(&path, "a", "b");
        assert!(host.open_editors().is_none());
        drop((host, editors));
        let mut methods = Vec::new();
        while let Some(line) = lines.recv().await {
            let message: Value = serde_json::from_str(&line).unwrap();
            methods.extend(message["method"].as_str().filter(|method| method.starts_with("_vault")).map(str::to_owned));
        }
        assert_eq!(methods, ["_vault/host/run_command", "_vault/host/open_files"]);
    }

    #[test]
    fn the_state_of_an_app_is_checked() {
        let at = |line, ch| json!({ "line": line, "ch": ch });
        let editor = state(json!({
            "activeFile": "a.md",
            "selection": { "text": "one", "from": at(0, 0), "to": at(0, 3) },
            "cursor": at(0, 3),
            "openFiles": ["a.md", "../b.md", "/etc/passwd", "c.md"],
        }));
        let editor = editor.unwrap();
        assert_eq!(editor.open, ["a.md", "c.md"].map(|path| SafePath::new(path).unwrap()));
        assert_eq!(editor.selection.unwrap().span.unwrap().to, Position { line: 0, ch: 3 });
        let outside = state(json!({ "activeFile": "../b.md", "cursor": at(0, 3), "openFiles": [] })).unwrap();
        assert_eq!(outside, Editor::default());
        let long = "x".repeat(LONGEST_SELECTION + 1);
        for (text, to, said) in [("one", at(0, 0), "ends before it begins"), (&*long, at(9, 0), "more than 1000000")] {
            let selection = json!({ "text": text, "from": at(0, 3), "to": to });
            let error = state(json!({ "activeFile": "a.md", "selection": selection, "openFiles": [] })).unwrap_err();
            assert!(error.to_string().contains(said), "{error}");
        }
    }

    #[test]
    fn ids_of_commands_are_shown_as_they_are() {
        let of = |id: &str, name: &str| command(AppCommand { id: id.to_owned(), name: name.to_owned() });
        assert_eq!(of("app:x", "X\u{1b}[31m\nY").map(|command| command.name.contains(['\n', '\u{1b}'])), Some(false));
        for id in ["", "app:\u{202e}x", "a\nb", &"x".repeat(201)] {
            assert_eq!(of(id, "X"), None, "{id:?}");
        }
    }
}
