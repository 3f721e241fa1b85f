//! The attention cache as a file, so that another process continues without evaluating the conversation again.
//!
//! llama.cpp's own format, with a trailer: the hash of all bytes before it, the model's fingerprint, a mark. Without
//! the trailer, a file that is damaged or belongs to another model would be read as numbers.

use std::fs::{File, OpenOptions};
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::Path;

use crate::gguf::Gguf;
use agent_loop::{Error, ErrorKind, error::Result};

use super::cache::Cache;

const MARK: &[u8; 8] = b"agentkv1";
const TRAILER: u64 = 32 + 32 + MARK.len() as u64;

/// Writes the state to a file that only its owner can read, and returns its size in bytes.
///
/// # Errors
/// `State` if there is nothing to save, `Io` if the file cannot be written.
pub(super) fn save(cache: &Cache<'_>, header: &Gguf, path: &Path) -> Result<u64> {
    if cache.tokens.is_empty() {
        return Err(Error::new(ErrorKind::State, "nothing has been evaluated yet"));
    }
    let io = |error: std::io::Error| {
        Error::new(ErrorKind::Io, "the state cannot be written")
            .with_source(error)
            .with_path(path.display().to_string())
    };
    let part = path.with_extension("part");
    private(&part).map_err(io)?;
    let written = cache.context.state_seq_save_file(&part, 0, &cache.tokens);
    written.map_err(|error| io(std::io::Error::other(error)))?;
    let hash = hash_of(&part, None).map_err(io)?;
    let mut file = OpenOptions::new().append(true).open(&part).map_err(io)?;
    file.write_all(&[&hash[..], &fingerprint(header), MARK].concat()).map_err(io)?;
    file.sync_all().map_err(io)?;
    std::fs::rename(&part, path).map_err(io)?;
    Ok(std::fs::metadata(path).map_err(io)?.len())
}

/// Reads a state, and returns its number of tokens. If this fails, the cache is empty and everything is evaluated
/// again.
///
/// # Errors
/// `Io` if the file cannot be read, `Damaged` if it is damaged, `State` if it belongs to another model or is too long.
pub(super) fn restore(cache: &mut Cache<'_>, header: &Gguf, path: &Path) -> Result<usize> {
    let named = |error: Error| error.with_path(path.display().to_string());
    let io = |error| named(Error::new(ErrorKind::Io, "the state cannot be read").with_source(error));
    let damaged = || named(Error::new(ErrorKind::Damaged, "the state is damaged").with_remedy("it can be deleted"));
    cache.truncate(0);
    let mut file = File::open(path).map_err(io)?;
    let length = file.metadata().map_err(io)?.len();
    let body = length.checked_sub(TRAILER).ok_or_else(damaged)?;
    let mut trailer = [0; TRAILER as usize];
    file.seek(SeekFrom::Start(body)).and_then(|_| file.read_exact(&mut trailer)).map_err(io)?;
    if trailer[64..] != *MARK || trailer[..32] != hash_of(path, Some(body)).map_err(io)? {
        return Err(damaged());
    }
    if trailer[32..64] != fingerprint(header) {
        return Err(named(Error::new(ErrorKind::State, "the state belongs to another model")));
    }
    let room = cache.context.n_ctx() as usize;
    match cache.context.state_seq_load_file(path, 0, room) {
        Ok((tokens, _)) => {
            cache.tokens = tokens;
            Ok(cache.tokens.len())
        }
        Err(error) => {
            cache.context.clear_kv_cache();
            let message = format!("the state does not fit a context of {room} tokens");
            Err(named(Error::new(ErrorKind::State, message).with_source(error)))
        }
    }
}

fn private(path: &Path) -> std::io::Result<File> {
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path)
}

fn hash_of(path: &Path, length: Option<u64>) -> std::io::Result<[u8; 32]> {
    let mut file = File::open(path)?.take(length.unwrap_or(u64::MAX));
    let mut hasher = blake3::Hasher::new();
    let mut buffer = vec![0; 1 << 16];
    loop {
        match file.read(&mut buffer)? {
            0 => return Ok(*hasher.finalize().as_bytes()),
            read => drop(hasher.update(&buffer[..read])),
        }
    }
}

/// Returns a fingerprint of the header. A model with the same one has the same shape and, unless a file is malicious,
/// the same weights.
fn fingerprint(header: &Gguf) -> [u8; 32] {
    *blake3::hash(format!("{header:?}").as_bytes()).as_bytes()
}
