//! Where models are installed: each is one file in the user's cache, which also says where it came from.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use minilm::{CompileOptions, Model, ModelFolder, ModelPrompts, Pooling};
use serde::{Deserialize, Serialize};

use super::KnownModel;
use crate::dirs::models_folder;
use crate::error::{Error, ErrorKind, Result};
use crate::lock::{Lock, lock_file};
use crate::private_file::{private_file, private_folder};

/// Where a model's files came from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
pub struct ModelSource {
    /// The address of the repository, or the folder.
    pub from: String,
    /// The commit of the repository; `None` for a folder.
    pub revision: Option<String>,
    /// The licence, as the repository names it.
    pub licence: Option<String>,
    /// The original files.
    pub files: Vec<SourceFile>,
}

/// One of a model's original files.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
pub struct SourceFile {
    /// Its path in the repository.
    pub path: String,
    /// Its length in bytes.
    pub bytes: u64,
    /// `sha256:…` of a large file, `git:…` (the id of the blob) of a small one, `blake3:…` of a file of the user's.
    pub digest: String,
}

/// A model that is installed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct InstalledModel {
    /// Which vectors are its: stored with them.
    pub id: String,
    /// The file that is mapped.
    pub file: PathBuf,
    /// Its length in bytes.
    pub bytes: u64,
    /// Where it came from.
    pub source: ModelSource,
}

/// The file of an installed model, or the one that it would have.
pub(crate) fn model_file(name: &str) -> Result<PathBuf> {
    Ok(models_folder()?.join(format!("{name}.model")))
}

/// The model of this name, if it is installed.
///
/// # Errors
/// When its file cannot be read or is damaged.
pub fn installed(name: &str) -> Result<Option<InstalledModel>> {
    let file = model_file(name)?;
    let bytes = match fs::metadata(&file) {
        Ok(metadata) => metadata.len(),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(Error::io(file, error)),
    };
    let model = open(&file)?;
    let source = ModelSource::deserialize(&model.description().record).map_err(|error| {
        Error::new(ErrorKind::Model, "the file does not say where the model came from").at(&file).because(error)
    })?;
    Ok(Some(InstalledModel { id: model.id().to_owned(), file, bytes, source }))
}

impl InstalledModel {
    /// Reads the whole file and compares it with its digests: some 50 ms for 100 MB.
    ///
    /// # Errors
    /// [`ErrorKind::Model`] when the file is damaged.
    pub fn verify(&self) -> Result<()> {
        open(&self.file)?.verify().map_err(of_model)
    }
}

/// Held by the one process that adds a model of some name.
#[derive(Debug)]
pub struct AddingLock {
    name: String,
    _lock: Lock,
}

impl AddingLock {
    /// Takes the lock, and waits for at most `wait` (`None`: without limit).
    ///
    /// # Errors
    /// [`ErrorKind::Locked`] when another process holds it.
    pub fn take(name: &str, wait: Option<Duration>) -> Result<AddingLock> {
        let models = models_folder()?;
        private_folder(&models)?;
        let lock = lock_file(&models.join(format!("{name}.lock")), wait, None)?;
        let lock = lock.map_err(|_| Error::new(ErrorKind::Locked, format!("another process is adding {name}")))?;
        Ok(AddingLock { name: name.to_owned(), _lock: lock })
    }

    /// The name of the model.
    pub fn name(&self) -> &str {
        &self.name
    }
}

/// Compiles the original files in `folder`, and installs the result, in place of one that was there. `progress` gets the share that is done, from 0 to 1.
///
/// # Errors
/// [`ErrorKind::Model`] when the files are damaged or of a kind that is not supported; [`ErrorKind::Cancelled`] when
/// `cancel` is set; when the disk is full. The model that was there is kept then.
pub fn install(
    lock: &AddingLock,
    known: Option<&KnownModel>,
    folder: &Path,
    source: &ModelSource,
    cancel: &AtomicBool,
    progress: &dyn Fn(f32),
) -> Result<InstalledModel> {
    let name = lock.name();
    let to = model_file(name)?;
    // The lock is held: what is there was left by a process that was killed.
    let new = to.with_extension("new");
    let made = make(name, known, folder, source, &new, cancel, progress);
    if let Err(error) = made.and_then(|()| fs::rename(&new, &to).map_err(|error| Error::io(&to, error))) {
        // The first error counts.
        let _ = fs::remove_file(&new);
        return Err(error);
    }
    installed(name)?.ok_or_else(|| Error::new(ErrorKind::Model, "the model has gone").at(to))
}

fn make(
    name: &str,
    known: Option<&KnownModel>,
    folder: &Path,
    source: &ModelSource,
    new: &Path,
    cancel: &AtomicBool,
    progress: &dyn Fn(f32),
) -> Result<()> {
    let original = ModelFolder::open(folder).map_err(of_model)?;
    let silent = original.prompts() == &ModelPrompts::default();
    let prompts = known
        .filter(|_| silent)
        .map(|known| ModelPrompts { passage: known.passage_prompt.to_owned(), query: known.query_prompt.to_owned() });
    let first_token = known.is_some_and(|known| known.first_token && original.pooling().is_none());
    let options = CompileOptions {
        name: name.to_owned(),
        prompts,
        pooling: first_token.then_some(Pooling::First),
        dimensions: known.filter(|known| known.is_truncated).map(|known| known.dimensions),
        record: serde_json::to_value(source).unwrap_or_default(),
    };
    let dimensions = options.dimensions.unwrap_or(original.dimensions());
    if let Some(known) = known.filter(|known| known.dimensions != dimensions) {
        let message = format!("the files give vectors of {dimensions}, but {name} has {}", known.dimensions);
        return Err(Error::new(ErrorKind::Model, message)
            .at(folder)
            .with_remedy("these are the files of another model"));
    }
    // Created private here, because compiling writes into what is there.
    drop(private_file(new)?);
    original.compile(new, &options, cancel, progress).map_err(of_model).map(drop)
}

/// Removes an installed model, and what a download or a compilation of it that was interrupted has left; false if there
/// was nothing.
///
/// # Errors
/// When its files cannot be removed.
pub fn remove(name: &str) -> Result<bool> {
    let file = model_file(name)?;
    let lock = AddingLock::take(name, Some(Duration::ZERO))?;
    let (new, part, unpacked) = (file.with_extension("new"), part_folder(&lock)?, unpacked_folder(&lock)?);
    let was_new = removed(fs::remove_file(&new), &new)?;
    let was_part = removed(fs::remove_dir_all(&part), &part)?;
    let was_unpacked = removed(fs::remove_dir_all(&unpacked), &unpacked)?;
    Ok(removed(fs::remove_file(&file), &file)? || was_new || was_part || was_unpacked)
}

/// Whether there was something to remove.
fn removed(result: std::io::Result<()>, path: &Path) -> Result<bool> {
    match result {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(Error::io(path, error)),
    }
}

/// Deletes the original files of a model that were downloaded or unpacked, once it is installed.
///
/// # Errors
/// When they cannot be deleted.
pub fn delete_part(lock: &AddingLock) -> Result<()> {
    let part = part_folder(lock)?;
    removed(fs::remove_dir_all(&part), &part)?;
    delete_unpacked(lock)
}

/// Deletes the files that were unpacked from an archive, and keeps those of a download.
///
/// # Errors
/// When they cannot be deleted.
pub fn delete_unpacked(lock: &AddingLock) -> Result<()> {
    let unpacked = unpacked_folder(lock)?;
    removed(fs::remove_dir_all(&unpacked), &unpacked).map(drop)
}

/// The folder of original files that are being downloaded.
pub(crate) fn part_folder(lock: &AddingLock) -> Result<PathBuf> {
    Ok(models_folder()?.join(format!("{}.part", lock.name())))
}

/// The folder of original files that are being unpacked: another one, because a download is kept for its next try.
pub(crate) fn unpacked_folder(lock: &AddingLock) -> Result<PathBuf> {
    Ok(models_folder()?.join(format!("{}.unpacked", lock.name())))
}

/// Opens a model's file.
pub(crate) fn open(file: &Path) -> Result<Model> {
    Model::open(file).map_err(of_model)
}

/// An error of the engine, which names file and reason.
pub(crate) fn of_model(error: minilm::ModelError) -> Error {
    let path = error.path().to_owned();
    match error {
        minilm::ModelError::Io(path, error) => Error::io(path, error),
        minilm::ModelError::Cancelled(_) => Error::new(ErrorKind::Cancelled, "interrupted"),
        minilm::ModelError::Damaged(_, what) => Error::new(ErrorKind::Model, what)
            .at(path)
            .with_remedy("add the model again: vault-index models add NAME, with its name from vault-index models"),
        other => {
            let text = other.to_string();
            let what = text.strip_prefix(&format!("{}: ", path.display())).unwrap_or(&text);
            Error::new(ErrorKind::Model, what).at(path).with_remedy("choose another: vault-index models lists them")
        }
    }
}

/// A folder of original files as a source: with a digest of each file that a model may need.
///
/// # Errors
/// When the folder or a file cannot be read.
pub fn source_of_folder(folder: &Path) -> Result<ModelSource> {
    let folder = fs::canonicalize(folder).map_err(|error| Error::io(folder, error))?;
    let files = files_of(&folder)?.into_iter().map(|path| {
        let file = folder.join(&path);
        let mut hash = blake3::Hasher::new();
        let read = fs::File::open(&file).and_then(|mut open| std::io::copy(&mut open, &mut hash));
        let bytes = read.map_err(|error| Error::io(&file, error))?;
        Ok(SourceFile { path, bytes, digest: format!("blake3:{}", hash.finalize().to_hex()) })
    });
    let files = files.collect::<Result<Vec<_>>>()?;
    Ok(ModelSource { from: folder.to_string_lossy().into_owned(), revision: None, licence: None, files })
}

/// The JSON and safetensors files of a folder and of the folders in it, sorted by path. What is deeper is not read.
pub(crate) fn files_of(folder: &Path) -> Result<Vec<String>> {
    let mut files = Vec::new();
    let mut open = vec![(folder.to_owned(), String::new())];
    while let Some((dir, prefix)) = open.pop() {
        for entry in fs::read_dir(&dir).map_err(|error| Error::io(&dir, error))? {
            let entry = entry.map_err(|error| Error::io(&dir, error))?;
            let path = format!("{prefix}{}", entry.file_name().to_string_lossy());
            if entry.path().is_dir() {
                if prefix.is_empty() && !path.starts_with('.') {
                    open.push((entry.path(), format!("{path}/")));
                }
            } else if path.ends_with(".json") || path.ends_with(".safetensors") {
                files.push(path);
            }
        }
    }
    files.sort();
    Ok(files)
}
