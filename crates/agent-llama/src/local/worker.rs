//! The thread of a model: it loads the model, then generates one reply after the other.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::mpsc::Receiver;
use std::sync::{Arc, Mutex};

use tokio::sync::{mpsc, oneshot};

use crate::gguf::Gguf;
use agent_loop::{Delta, Request};
use agent_loop::{Error, ErrorKind, error::Result};

use super::cache::CacheUse;
use super::engine::{Engine, load};
use super::options::LocalOptions;
use super::state;

/// A command for the thread.
pub(super) enum Command {
    Reply { request: Box<Request>, out: mpsc::UnboundedSender<Result<Delta>>, begun: oneshot::Sender<Result<()>> },
    Save { path: PathBuf, done: oneshot::Sender<Result<u64>> },
    Restore { path: PathBuf, done: oneshot::Sender<Result<usize>> },
}

/// Data about a model that was loaded.
pub(super) struct EngineInfo {
    pub(super) name: String,
    pub(super) context: u32,
    pub(super) warnings: Vec<String>,
}

/// Loads a model, reports the result, and serves it until all senders of commands are dropped.
pub(super) fn run(
    options: LocalOptions,
    progress: impl FnMut(f32) -> bool + 'static,
    loaded: oneshot::Sender<Result<EngineInfo>>,
    inbox: &Receiver<Command>,
    usage: Arc<Mutex<CacheUse>>,
) {
    let path = options.path.clone();
    let named = |error: Error| error.with_path(path.display().to_string());
    let (backend, header, model, context) = match load(&options, progress) {
        Ok(ready) => ready,
        Err(error) => return drop(loaded.send(Err(named(error)))),
    };
    // Reading some invalid vocabularies panics.
    let engine = AssertUnwindSafe(|| Engine::new(backend, &model, &header, context, options, usage));
    let damaged = || Error::new(ErrorKind::Damaged, "the vocabulary of this model cannot be read");
    let mut engine = match catch_unwind(engine).unwrap_or_else(|_| Err(damaged())) {
        Ok(engine) => engine,
        Err(error) => return drop(loaded.send(Err(named(error)))),
    };
    let stem = || path.file_stem().map_or_else(String::new, |stem| stem.to_string_lossy().into_owned());
    let name = header.name.clone().unwrap_or_else(stem);
    let context = engine.cache.context.n_ctx();
    if loaded.send(Ok(EngineInfo { name, context, warnings: engine.pending_warnings.clone() })).is_err() {
        return;
    }
    while let Ok(command) = inbox.recv() {
        handle(&mut engine, command, &header);
    }
}

fn handle(engine: &mut Engine<'_>, command: Command, header: &Gguf) {
    match command {
        Command::Reply { request, out, begun } => {
            let mut begun = Some(begun);
            let is_begun = || {
                if let Some(begun) = begun.take() {
                    let _ = begun.send(Ok(()));
                }
            };
            if out.is_closed() {
                return;
            }
            // A bug must end only one reply and not all of them.
            let written = catch_unwind(AssertUnwindSafe(|| engine.reply(&request, &out, is_begun)));
            let written = written.unwrap_or_else(|_| {
                engine.cache.truncate(0);
                Err(Error::new(ErrorKind::BadResponse, "the reply failed because of a bug in this program"))
            });
            if let Err(error) = written {
                // If neither channel accepts the error, the caller is gone.
                let _ = match begun {
                    Some(begun) => begun.send(Err(error)).is_ok(),
                    None => out.send(Err(error)).is_ok(),
                };
            }
        }
        Command::Save { path, done } => drop(done.send(state::save(&engine.cache, header, &path))),
        Command::Restore { path, done } => drop(done.send(state::restore(&mut engine.cache, header, &path))),
    }
}
