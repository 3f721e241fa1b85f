//! A model in this process, from a GGUF file, computed by llama.cpp on its own thread (feature `local`).
//!
//! ```text
//! Request ──> prompt: the file's template ──> cache: only what is new is evaluated ──> generate ──> deltas
//!                                              text is free until a call begins; then the grammar of the tools holds
//! ```
//!
//! The form of a call is derived from the template of the file. A call is complete and fits its tool's schema, whatever
//! the weights are; one that is truncated by a length limit never runs.

mod options;
mod memory;
mod template;
mod form;
mod vocabulary;
mod prompt;
mod grammar;
mod sampler;
mod cache;
mod stop_filter;
mod state;
mod engine;
mod generate;
mod worker;

use std::fmt;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

use futures_util::stream;
use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::CancellationToken;

use agent_loop::BoxFuture;
use agent_loop::{Error, ErrorKind, error::Result};
use agent_loop::{Model, ReplyStream, Request};

pub use cache::CacheUse;
pub use options::LocalOptions;

use worker::{Command, EngineInfo};

/// The stack size in bytes, because a chat template of thousands of nested expressions is rendered recursively. Only
/// the used part is allocated.
const STACK: usize = 64 << 20;

/// A model in this process.
///
/// It generates one reply at a time; a second request waits for the first one. Dropping the stream of a reply stops it
/// at the next token, or, within a prompt, at the next few hundred tokens. Dropping the model waits for that, and frees
/// its memory.
///
/// ```no_run
/// # async fn main_() -> agent_loop::error::Result<()> {
/// use agent_llama::{LocalModel, LocalOptions};
/// use agent_loop::{Agent, Tool};
///
/// let options = LocalOptions::new("Qwen3-4B-Q4_K_M.gguf").context(Some(16_384));
/// let show = |part| eprint!("\rloading: {:.0} %", part * 100.0);
/// let model = LocalModel::load(options, show, &Default::default()).await?;
/// for warning in model.warnings() {
///     eprintln!("{warning}");
/// }
/// let agent = Agent::new(model, Vec::<Tool>::new())?;
/// # Ok(())
/// # }
/// ```
pub struct LocalModel {
    name: String,
    context: u32,
    warnings: Vec<String>,
    /// `None` only while it is dropped.
    commands: Option<std::sync::mpsc::Sender<Command>>,
    thread: Option<JoinHandle<()>>,
    usage: Arc<Mutex<CacheUse>>,
}

/// Waits for the thread, because a process that exits while llama.cpp computes can crash.
impl Drop for LocalModel {
    fn drop(&mut self) {
        self.commands = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

impl LocalModel {
    /// Loads a model. `progress` gets the loaded fraction, from 0 to 1, on another thread.
    ///
    /// # Errors
    /// `Io` if the file cannot be read; `Damaged` if it is not a GGUF file or is truncated; `Newer` for a newer version
    /// of the format; `Memory` if the model does not fit, before anything is loaded; `BadRequest` for a model that
    /// llama.cpp does not support; `State` if `cancel` was cancelled.
    pub async fn load(
        options: LocalOptions,
        mut progress: impl FnMut(f32) + Send + 'static,
        cancel: &CancellationToken,
    ) -> Result<Self> {
        let (commands, inbox) = std::sync::mpsc::channel();
        let (done, loaded) = oneshot::channel();
        let usage = Arc::new(Mutex::new(CacheUse::default()));
        let (cancel, counted) = (cancel.child_token(), Arc::clone(&usage));
        // Dropping the future cancels too.
        let guard = cancel.clone().drop_guard();
        let goes_on = move |part| {
            progress(part);
            !cancel.is_cancelled()
        };
        let thread = std::thread::Builder::new().name("local model".into()).stack_size(STACK);
        let spawned = thread.spawn(move || worker::run(options, goes_on, done, &inbox, counted));
        let thread =
            spawned.map_err(|error| Error::new(ErrorKind::State, "no thread can be started").with_source(error))?;
        let EngineInfo { name, context, warnings } = loaded.await.map_err(|_| gone())??;
        guard.disarm();
        Ok(Self { name, context, warnings, commands: Some(commands), thread: Some(thread), usage })
    }

    /// Returns the context length in tokens.
    pub fn context(&self) -> u32 {
        self.context
    }

    /// Returns warnings for a person about this model and its file. The first reply reports them, too.
    pub fn warnings(&self) -> &[String] {
        &self.warnings
    }

    /// Returns how many tokens the model has processed.
    pub fn cache_use(&self) -> CacheUse {
        *self.usage.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Saves the evaluated tokens, to be stored beside a saved run, and returns how many bytes that are: some 10 to 150
    /// kB per token. The file contains the conversation, and only its owner can read it.
    ///
    /// # Errors
    /// `State` if nothing was evaluated yet, `Io` if the file cannot be written.
    pub async fn save_cache(&self, path: impl AsRef<Path>) -> Result<u64> {
        let (done, saved) = oneshot::channel();
        self.command(Command::Save { path: path.as_ref().into(), done })?;
        saved.await.map_err(|_| gone())?
    }

    /// Restores what [`save_cache`](Self::save_cache) has saved, and returns the number of tokens. A conversation that
    /// begins with them continues from there. Without it, or if it fails, the conversation is evaluated again.
    ///
    /// # Errors
    /// `Io` if the file cannot be read, `Damaged` if it is damaged, `State` if it belongs to another model or does not
    /// fit.
    pub async fn restore_cache(&self, path: impl AsRef<Path>) -> Result<usize> {
        let (done, restored) = oneshot::channel();
        self.command(Command::Restore { path: path.as_ref().into(), done })?;
        restored.await.map_err(|_| gone())?
    }

    fn command(&self, command: Command) -> Result<()> {
        let commands = self.commands.as_ref().ok_or_else(gone)?;
        commands.send(command).map_err(|_| gone())
    }
}

/// Returns the error for a thread that has ended, which only a bug can cause.
fn gone() -> Error {
    Error::new(ErrorKind::State, "the model's thread has ended").with_remedy("load the model again")
}

impl Model for LocalModel {
    fn name(&self) -> &str {
        &self.name
    }

    fn provider(&self) -> Option<&str> {
        Some("llama.cpp")
    }

    fn reply(&self, request: Request) -> BoxFuture<'_, Result<ReplyStream<'_>>> {
        Box::pin(async move {
            let (out, deltas) = mpsc::unbounded_channel();
            let (begun, has_begun) = oneshot::channel();
            self.command(Command::Reply { request: Box::new(request), out, begun })?;
            has_begun.await.map_err(|_| gone())??;
            let deltas = stream::unfold(deltas, |mut deltas| async move { Some((deltas.recv().await?, deltas)) });
            Ok(Box::pin(deltas) as ReplyStream<'_>)
        })
    }
}

impl fmt::Debug for LocalModel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LocalModel").field("name", &self.name).field("context", &self.context).finish_non_exhaustive()
    }
}
