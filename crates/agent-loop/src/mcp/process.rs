//! A server as a child process: its environment, and the last lines that it wrote to its standard error.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use process_wrap::tokio::{CommandWrap, KillOnDrop};
use rmcp::transport::TokioChildProcess;
use tokio::io::AsyncReadExt;
use tokio::process::{ChildStderr, Command};
use tokio::task::JoinHandle;
use tokio::time::timeout;

use crate::error::{Error, ErrorKind, Result};

use super::clean::clean;

/// The environment variables that programs need to run. All others are withheld, because they may contain keys.
const INHERITED: [&str; 31] = [
    "PATH",
    "HOME",
    "USER",
    "LOGNAME",
    "SHELL",
    "TERM",
    "LANG",
    "LANGUAGE",
    "LC_ALL",
    "LC_CTYPE",
    "TZ",
    "TMPDIR",
    "XDG_CACHE_HOME",
    "XDG_CONFIG_HOME",
    "XDG_DATA_HOME",
    "XDG_RUNTIME_DIR",
    "XDG_STATE_HOME",
    // Windows
    "APPDATA",
    "LOCALAPPDATA",
    "HOMEDRIVE",
    "HOMEPATH",
    "PATHEXT",
    "PROGRAMDATA",
    "PROGRAMFILES",
    "COMSPEC",
    "SYSTEMDRIVE",
    "SYSTEMROOT",
    "TEMP",
    "TMP",
    "USERNAME",
    "USERPROFILE",
];
/// How many bytes of its standard error are kept.
const KEPT: usize = 1024;
/// How long to wait for the end of its standard error after it has exited.
const LAST_WORDS: Duration = Duration::from_millis(500);

/// The last output of the server on its standard error.
#[derive(Debug)]
pub(super) struct StderrTail {
    text: Arc<Mutex<Vec<u8>>>,
    reader: tokio::sync::Mutex<JoinHandle<()>>,
}

/// Starts the program.
///
/// # Errors
/// `Unavailable` if it cannot be started.
pub(super) fn start(
    command: &Path,
    args: &[String],
    env: &[(String, String)],
    dir: Option<&PathBuf>,
) -> Result<(TokioChildProcess, Option<StderrTail>)> {
    let mut program = Command::new(command);
    program.args(args).env_clear();
    program.envs(INHERITED.iter().filter_map(|name| Some((name, std::env::var_os(name)?))));
    program.envs(env.iter().map(|(name, value)| (name, value)));
    if let Some(dir) = dir {
        program.current_dir(dir);
    }
    let mut program = CommandWrap::from(program);
    program.wrap(KillOnDrop);
    // Its own child processes end with it, and Ctrl-C in a terminal reaches only this process.
    #[cfg(unix)]
    program.wrap(process_wrap::tokio::ProcessGroup::leader());
    #[cfg(windows)]
    program.wrap(process_wrap::tokio::JobObject);
    let started = TokioChildProcess::builder(program).stderr(Stdio::piped()).spawn();
    let (process, stderr) = started.map_err(|error| {
        // The error of the system names neither the program nor the folder.
        let gone = dir.filter(|dir| !dir.is_dir());
        let (why, remedy) = match gone {
            Some(dir) => (format!(" in {}", dir.display()), "check that this folder exists"),
            None => (String::new(), "check that the program is installed and can be found"),
        };
        Error::new(ErrorKind::Unavailable, format!("{} cannot be started{why}", command.display()))
            .with_source(error)
            .with_remedy(remedy)
    })?;
    Ok((process, stderr.map(StderrTail::read)))
}

impl StderrTail {
    fn read(mut stderr: ChildStderr) -> Self {
        let text = Arc::new(Mutex::new(Vec::new()));
        let kept = Arc::clone(&text);
        let reader = tokio::spawn(async move {
            let mut piece = [0; KEPT];
            while let Ok(read @ 1..) = stderr.read(&mut piece).await {
                let mut kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
                kept.extend_from_slice(&piece[..read]);
                let surplus = kept.len().saturating_sub(KEPT);
                kept.drain(..surplus);
            }
        });
        Self { text, reader: tokio::sync::Mutex::new(reader) }
    }

    /// Returns the text, once the program has exited.
    pub(super) async fn text(&self) -> String {
        let _ = timeout(LAST_WORDS, async { (&mut *self.reader.lock().await).await }).await;
        let text = self.text.lock().unwrap_or_else(PoisonError::into_inner);
        clean(&String::from_utf8_lossy(&text)).trim().to_string()
    }
}

impl Drop for StderrTail {
    fn drop(&mut self) {
        self.reader.get_mut().abort();
    }
}
