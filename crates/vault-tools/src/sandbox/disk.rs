//! The vault's folder on the disk, read by following paths name by name from one handle.

#![allow(clippy::disallowed_methods)]

use std::io::{ErrorKind as IoKind, Read};
use std::path::{Path, PathBuf};

use cap_fs_ext::{DirExt, FollowSymlinks, OpenOptionsFollowExt};
use cap_std::fs::{Dir, File, Metadata, OpenOptions};
use unicode_normalization::UnicodeNormalization;
use vault_index::VaultPath;
use vault_index::note::ParseOptions;

use crate::content::{Content, ContentHash};
use crate::error::{Error, ErrorKind, Result};
use crate::sandbox::{Entry, EntryKind, SafePath, Stat, View, no_folder};

/// Larger files are not read into memory.
const MAX_BYTES: u64 = 1 << 30;

/// The maximum size of a settings file in bytes. Files that people write are smaller.
const MAX_SETTING: u64 = 1 << 20;

/// The maximum number of links to links.
const MAX_LINKS: usize = 16;

/// The vault's folder. All paths are followed from a handle that is opened once.
#[derive(Debug)]
pub struct Sandbox {
    vault: PathBuf,
    pub(super) root: Dir,
}

/// The open folder that contains a path, and the path's last name as it is on the disk.
pub(super) struct Place {
    pub(super) folder: Dir,
    pub(super) name: String,
}

/// The state of a path, without following a symbolic link.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PathState {
    /// There is nothing at the path.
    Nothing,
    /// A folder.
    Folder,
    /// A file with this content.
    File(ContentHash),
    /// A symbolic link.
    Link,
    /// Something else, for example a pipe or a device.
    Other,
}

impl Sandbox {
    /// Opens the vault's folder.
    ///
    /// # Errors
    /// [`ErrorKind::NotFound`] if there is no such folder.
    pub fn open(vault: &Path) -> Result<Self> {
        let failed = |error: &std::io::Error| match error.kind() {
            IoKind::NotFound | IoKind::NotADirectory => Error::new(ErrorKind::NotFound, "there is no such folder")
                .at(vault.display())
                .with_remedy("name the folder that holds your notes"),
            _ => Error::io(vault.display(), error),
        };
        let canonical = vault.canonicalize().map_err(|error| failed(&error))?;
        let root = Dir::open_ambient_dir(&canonical, cap_std::ambient_authority()).map_err(|error| failed(&error))?;
        Ok(Self { vault: canonical, root })
    }

    /// Returns the canonical path of the vault's folder.
    pub fn vault(&self) -> &Path {
        &self.vault
    }

    /// Opens the folder that contains a path; `None` if that folder does not exist.
    pub(super) fn place(&self, path: &SafePath) -> Result<Option<Place>> {
        let Some(folder) = self.folder(path.parent().as_ref())? else { return Ok(None) };
        let name = name_on_disk(&folder, path.file_name()).map_err(|error| Error::io(path, &error))?;
        Ok(Some(Place { folder, name }))
    }

    /// Opens a folder, name by name; the vault's own for `None`. Returns `None` if there is no such folder.
    pub(super) fn folder(&self, path: Option<&SafePath>) -> Result<Option<Dir>> {
        let path = path.map_or("", SafePath::as_str);
        let failed = |error: std::io::Error| Error::io(path, &error);
        let mut folder = self.root.try_clone().map_err(failed)?;
        let mut end = 0;
        for name in path.split('/').filter(|name| !name.is_empty()) {
            end += name.len();
            let name = name_on_disk(&folder, name).map_err(failed)?;
            folder = match folder.open_dir_nofollow(&name) {
                Ok(below) => below,
                Err(error) => return not_opened(&folder, &name, &path[..end], error).map(|()| None),
            };
            end += 1;
        }
        Ok(Some(folder))
    }

    /// Returns the metadata of the path itself, without following a link.
    pub(super) fn metadata(place: &Place, path: &SafePath) -> Result<Option<Metadata>> {
        match place.folder.symlink_metadata(&place.name) {
            Ok(metadata) => Ok(Some(metadata)),
            Err(error) if is_nothing(&error) => Ok(None),
            Err(error) => Err(Error::io(path, &error)),
        }
    }

    /// Returns the file that a path refers to: itself, or the target of a symbolic link.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidPath`] for a link that leads out of the vault, to a hidden file, or in a circle.
    pub fn real(&self, path: &SafePath) -> Result<SafePath> {
        let mut path = path.clone();
        for _ in 0..MAX_LINKS {
            let Some(place) = self.place(&path)? else { return Ok(path) };
            if !Self::metadata(&place, &path)?.is_some_and(|metadata| metadata.is_symlink()) {
                return Ok(path);
            }
            let target = place.folder.read_link_contents(&place.name).map_err(|error| Error::io(&path, &error))?;
            path = self.link_target(&path, &target).ok_or_else(|| {
                Error::invalid_path(path.as_str(), "is a symbolic link that leads out of it")
                    .with_remedy("name a file of the vault")
            })?;
        }
        Err(Error::invalid_path(path.as_str(), "is a symbolic link that leads in a circle"))
    }

    /// Returns the target of a link in the vault, if the target is in the vault and not hidden.
    fn link_target(&self, link: &SafePath, target: &Path) -> Option<SafePath> {
        let text = if target.is_absolute() {
            target.strip_prefix(&self.vault).ok()?.to_str()?.to_owned()
        } else {
            let folder = link.parent().map_or(String::new(), |parent| format!("{parent}/"));
            format!("{folder}{}", target.to_str()?)
        };
        // `..` is resolved in the text. This is correct because a folder on the way that is a link is refused when it
        // is opened.
        SafePath::found(VaultPath::new(&text)?)
    }

    /// Returns how the links of its notes are parsed.
    pub(crate) fn parse_options(&self) -> ParseOptions {
        ParseOptions::of_vault(&self.vault)
    }

    /// Reads one of Obsidian's settings files, `app.json` or `plugins/ID/data.json`; `None` if it does not exist.
    ///
    /// These are the only hidden files that are ever read, and the only ones that may be behind a link out of the
    /// vault: people share settings between vaults, and no tool returns their contents.
    ///
    /// # Errors
    /// If it exists and cannot be read.
    pub fn obsidian_setting(&self, file: &str) -> Result<Option<String>> {
        let plugin = file.strip_prefix("plugins/").and_then(|rest| rest.strip_suffix("/data.json"));
        let name = plugin.unwrap_or(file);
        if name.starts_with('.') || name.contains(['/', '\\']) {
            return Ok(None);
        }
        let path = format!(".obsidian/{file}");
        let place = self.vault.join(".obsidian").join(file);
        match std::fs::metadata(&place) {
            Ok(metadata) if metadata.is_file() && metadata.len() <= MAX_SETTING => {}
            Ok(_) => return Err(Error::new(ErrorKind::Config, "is not a file, or is too large").at(path)),
            Err(error) if matches!(error.kind(), IoKind::NotFound | IoKind::NotADirectory) => return Ok(None),
            Err(error) => return Err(Error::io(path, &error)),
        }
        let text = std::fs::read_to_string(&place).map_err(|error| Error::io(path, &error))?;
        Ok(Some(text.trim_start_matches('\u{feff}').to_owned()))
    }

    /// Returns the state of a path, without following links; the content of a file is read.
    pub(crate) fn found(&self, path: &SafePath) -> Result<PathState> {
        let Some(place) = self.place(path)? else { return Ok(PathState::Nothing) };
        let Some(metadata) = Self::metadata(&place, path)? else { return Ok(PathState::Nothing) };
        Ok(if metadata.is_symlink() {
            PathState::Link
        } else if metadata.is_dir() {
            PathState::Folder
        } else if metadata.is_file() {
            PathState::File(Self::hash_file(&place, path)?)
        } else {
            PathState::Other
        })
    }

    /// Returns whether there is anything at a path, without following links. Nothing is read.
    pub fn is_there(&self, path: &SafePath) -> Result<bool> {
        let Some(place) = self.place(path)? else { return Ok(false) };
        Ok(Self::metadata(&place, path)?.is_some())
    }

    /// Opens a file without following links; `None` if it is not a file.
    fn open_file(place: &Place) -> std::io::Result<Option<(File, u64)>> {
        let mut options = OpenOptions::new();
        options.read(true).follow(FollowSymlinks::No);
        // Do not wait for a pipe that has replaced a file.
        #[cfg(unix)]
        cap_std::fs::OpenOptionsExt::custom_flags(&mut options, rustix::fs::OFlags::NONBLOCK.bits().cast_signed());
        let file = place.folder.open_with(&place.name, &options)?;
        let metadata = file.metadata()?;
        Ok(metadata.is_file().then_some((file, metadata.len())))
    }

    /// Returns a file's hash, whatever its size.
    fn hash_file(place: &Place, path: &SafePath) -> Result<ContentHash> {
        let hash =
            Self::open_file(place).and_then(|file| file.map(|(file, _)| ContentHash::of_reader(file)).transpose());
        let hash = hash.map_err(|error| Error::io(path, &error))?;
        hash.ok_or_else(|| Error::new(ErrorKind::Unsupported, "is no file").at(path))
    }

    fn read_file(place: &Place, path: &SafePath) -> Result<Content> {
        let read = || -> std::io::Result<Option<Vec<u8>>> {
            let Some((mut file, size)) = Self::open_file(place)?.filter(|(_, size)| *size <= MAX_BYTES) else {
                return Ok(None);
            };
            let mut bytes = Vec::with_capacity(size as usize);
            file.read_to_end(&mut bytes)?;
            Ok(Some(bytes))
        };
        let bytes = read().map_err(|error| Error::io(path, &error))?;
        let too_large = || Error::new(ErrorKind::Unsupported, "is not a file, or is too large to be read").at(path);
        bytes.map(Content::from).ok_or_else(too_large)
    }

    /// Returns the contents of a folder: the entries visible to tools, by path, and the names of the others, which are
    /// hidden, lead out of the vault or are not files. `None` if there is no such folder.
    fn entries(&self, folder: Option<&SafePath>) -> Result<Option<(Vec<Entry>, Vec<String>)>> {
        let Some(dir) = self.folder(folder)? else { return Ok(None) };
        let failed = |error: std::io::Error| Error::io(folder.map_or("", SafePath::as_str), &error);
        let (mut seen, mut unseen) = (Vec::new(), Vec::new());
        for entry in dir.entries().map_err(failed)? {
            let entry = entry.map_err(failed)?;
            let name = entry.file_name();
            // A name that is not Unicode has no path that a tool could give.
            let path = name.to_str().and_then(|name| SafePath::listed(folder, name));
            let stat = match (&path, entry.metadata()) {
                (_, Err(error)) if error.kind() == IoKind::NotFound => continue,
                (None, _) => None,
                (_, Err(error)) => return Err(failed(error)),
                // Folders behind links are skipped, and the existence of a target outside the vault is not revealed.
                (Some(path), Ok(metadata)) if metadata.is_symlink() => {
                    let stat = self.stat(path).ok().flatten().filter(|stat| stat.kind == EntryKind::File);
                    stat.map(|stat| Stat { symlink: true, ..stat })
                }
                (_, Ok(metadata)) => stat_of(&metadata, false),
            };
            match path.zip(stat) {
                Some((path, stat)) => seen.push(Entry { path, stat }),
                None => unseen.push(name.to_string_lossy().into_owned()),
            }
        }
        seen.sort_by(|a, b| a.path.cmp(&b.path));
        // If two names are equal after normalisation, paths lead to the first one.
        seen.dedup_by(|later, first| later.path == first.path);
        unseen.sort();
        Ok(Some((seen, unseen)))
    }

    /// Returns the names in a folder that lists omit; empty if there is no such folder.
    pub(crate) fn unseen(&self, folder: &SafePath) -> Result<Vec<String>> {
        Ok(self.entries(Some(folder))?.map_or_else(Vec::new, |(_, unseen)| unseen))
    }
}

impl View for Sandbox {
    fn read(&self, path: &SafePath) -> Result<Content> {
        let real = self.real(path)?;
        let nothing = || Error::not_found(path, &[]);
        let place = self.place(&real)?.ok_or_else(nothing)?;
        match Self::metadata(&place, &real)? {
            None => Err(nothing()),
            Some(metadata) if metadata.is_dir() => Err(Error::new(ErrorKind::InvalidArguments, "is a folder")
                .at(path)
                .with_remedy("name a file, or list the folder")),
            Some(_) => Self::read_file(&place, &real),
        }
    }

    fn stat(&self, path: &SafePath) -> Result<Option<Stat>> {
        let real = self.real(path)?;
        let Some(place) = self.place(&real)? else { return Ok(None) };
        Ok(Self::metadata(&place, &real)?.and_then(|metadata| stat_of(&metadata, real != *path)))
    }

    fn list(&self, folder: Option<&SafePath>) -> Result<Vec<Entry>> {
        self.entries(folder)?.map(|(seen, _)| seen).ok_or_else(|| no_folder(folder))
    }
}

/// Returns whether there is nothing at a path, or cannot be because its name is longer than the system allows.
fn is_nothing(error: &std::io::Error) -> bool {
    matches!(error.kind(), IoKind::NotFound | IoKind::InvalidFilename)
}

fn stat_of(metadata: &Metadata, symlink: bool) -> Option<Stat> {
    let kind = match () {
        () if metadata.is_file() => EntryKind::File,
        () if metadata.is_dir() => EntryKind::Folder,
        () => return None,
    };
    let size = if kind == EntryKind::File { metadata.len() } else { 0 };
    let [modified, created] = [metadata.modified(), metadata.created()].map(|time| Some(time.ok()?.into_std()));
    Some(Stat { kind, size, modified, created, symlink })
}

/// Returns the name of an entry on the disk, because names that other programs wrote may not be NFC.
fn name_on_disk(folder: &Dir, name: &str) -> std::io::Result<String> {
    if name.is_ascii() {
        return Ok(name.to_string());
    }
    match folder.symlink_metadata(name) {
        Err(error) if error.kind() == IoKind::NotFound => {}
        _ => return Ok(name.to_string()),
    }
    for entry in folder.entries()? {
        if let Ok(other) = entry?.file_name().into_string()
            && other.nfc().eq(name.chars())
        {
            return Ok(other);
        }
    }
    Ok(name.to_string())
}

/// Handles a folder on the way that could not be opened: it is missing, or it is a link, which is refused.
fn not_opened(folder: &Dir, name: &str, path: &str, error: std::io::Error) -> Result<()> {
    match folder.symlink_metadata(name) {
        Ok(metadata) if metadata.is_symlink() => Err(Error::new(
            ErrorKind::InvalidPath,
            format!("Invalid path: must be within vault directory: {path:?} is a symbolic link, which is not followed"),
        )
        .with_remedy("name the note by its real folder")),
        // There is nothing below a file that is in the place of a folder.
        Ok(metadata) if !metadata.is_dir() => Ok(()),
        Err(missing) if is_nothing(&missing) => Ok(()),
        _ => Err(Error::io(path, &error)),
    }
}
