//! The files of `vault-agent` that belong to a vault: saved conversations and changes that wait for approval.
//!
//! ```text
//! STATE/vault-agent/sessions/ID.json     {"vaults": [FOLDER, …], …}, beside ID.jsonl and ID.lock
//! STATE/vault-agent/approvals/CODE.json  {"vault": FOLDER, …}
//! ```

use std::fs::{self, File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};

use serde_json::Value;
use vault_index::private_file::private;
use vault_index::{Error, ErrorKind, Result, dirs};

/// The folders of `vault-agent` whose files name vaults.
const FOLDERS: [&str; 2] = ["sessions", "approvals"];

/// Returns a folder of `vault-agent` in the user's state folder, or `None` if the system has no state folder.
pub fn agent_folder(name: &str) -> Option<PathBuf> {
    Some(dirs::state_folder()?.parent()?.join("vault-agent").join(name))
}

/// A file that names vaults.
struct AgentFile {
    path: PathBuf,
    content: Value,
}

/// Returns the files that name a vault. Skips files that cannot be read, because `vault-agent` does not list them
/// either.
fn files_about(vault: &Path) -> Vec<AgentFile> {
    let folders = FOLDERS.iter().filter_map(|name| agent_folder(name));
    let paths = folders.filter_map(|folder| fs::read_dir(folder).ok()).flatten().flatten().map(|entry| entry.path());
    let json = paths.filter(|path| path.extension().is_some_and(|end| end == "json"));
    let read = |path: PathBuf| {
        let content = serde_json::from_slice(&fs::read(&path).ok()?).ok()?;
        Some(AgentFile { path, content })
    };
    let mut files: Vec<AgentFile> = json.filter_map(read).filter(|file| file.names(vault)).collect();
    files.sort_by(|a, b| a.path.cmp(&b.path));
    files
}

impl AgentFile {
    fn names(&self, vault: &Path) -> bool {
        let is_vault = |value: &Value| value.as_str().is_some_and(|folder| Path::new(folder) == vault);
        is_vault(&self.content["vault"])
            || self.content["vaults"].as_array().is_some_and(|all| all.iter().any(is_vault))
    }

    /// Locks a conversation, so that no other program writes it meanwhile. Returns `None` for a file without a lock
    /// file.
    fn lock(&self) -> Result<Option<File>> {
        let path = self.path.with_extension("lock");
        let file = match File::open(&path) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(Error::io(path, error)),
        };
        match file.try_lock() {
            Ok(()) => Ok(Some(file)),
            Err(TryLockError::Error(error)) => Err(Error::io(path, error)),
            Err(TryLockError::WouldBlock) => {
                let message = "this conversation about the vault is open in another program";
                Err(Error::new(ErrorKind::Locked, message).at(&self.path).with_remedy("end that program first"))
            }
        }
    }

    /// Replaces the folder of a vault by another one. Writes a new file and renames it over this one.
    fn rename_vault(mut self, old: &Path, new: &Path) -> Result<()> {
        let folders = self.content.as_object_mut().into_iter().flat_map(|object| {
            let is_folder = |(name, _): &(&String, &mut Value)| matches!(name.as_str(), "vault" | "vaults");
            object.iter_mut().filter(is_folder).map(|(_, value)| value)
        });
        for value in folders.flat_map(|value| match value {
            Value::Array(values) => values.iter_mut().collect::<Vec<_>>(),
            value => vec![value],
        }) {
            if value.as_str().is_some_and(|folder| Path::new(folder) == old) {
                *value = new.to_string_lossy().into();
            }
        }
        let replacement = self.path.with_extension("json.new");
        let written = private(fs::OpenOptions::new().write(true).create(true).truncate(true))
            .open(&replacement)
            .and_then(|file| Ok(serde_json::to_writer_pretty(file, &self.content)?))
            .and_then(|()| fs::rename(&replacement, &self.path));
        written.map_err(|error| Error::io(&self.path, error))
    }
}

/// Whether a file names the vault.
pub(crate) fn is_any(vault: &Path) -> bool {
    !files_about(vault).is_empty()
}

/// Deletes the conversations about a vault, including those about several vaults, and its changes that wait for
/// approval. Returns the deleted files.
///
/// # Errors
/// [`ErrorKind::Locked`] while another program has one of the conversations open: then nothing is deleted.
pub(crate) fn forget(vault: &Path) -> Result<Vec<PathBuf>> {
    let files = files_about(vault);
    let locks = files.iter().map(AgentFile::lock).collect::<Result<Vec<_>>>()?;
    let mut deleted = Vec::new();
    for (file, lock) in files.iter().zip(locks) {
        // Windows cannot delete a file that is open.
        drop(lock);
        for path in ["json", "jsonl", "lock"].map(|end| file.path.with_extension(end)) {
            match fs::remove_file(&path) {
                Ok(()) => deleted.push(path),
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => return Err(Error::io(path, error)),
            }
        }
    }
    Ok(deleted)
}

/// Changes the vault from `old` to `new` in the files that name it. Returns the number of files.
///
/// # Errors
/// As [`forget`].
pub(crate) fn adopt(old: &Path, new: &Path) -> Result<usize> {
    let files = files_about(old);
    let _locks = files.iter().map(AgentFile::lock).collect::<Result<Vec<_>>>()?;
    let count = files.len();
    files.into_iter().try_for_each(|file| file.rename_vault(old, new))?;
    Ok(count)
}
