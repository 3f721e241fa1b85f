//! The questions of link queries and reports, which a search does not ask.

use std::collections::BTreeSet;
use std::path::PathBuf;

use crate::error::Result;
use crate::files::ContentHash;
use crate::path::{FileId, VaultPath};
use crate::report::{NoteWarning, SkippedNote};
use crate::store::links::StoredLink;
use crate::store::names::Name;
use crate::store::notes::{NoteMeta, StoredFile};
use crate::store::{ReadStore, Store};

/// One state of an index with everything in it: what link queries, lists and reports ask.
pub trait ReadContents: ReadStore {
    /// Returns a setting.
    fn meta(&self, key: &str) -> Result<Option<String>>;

    /// Changes whenever something is committed.
    fn version(&self) -> Result<i64>;

    /// Whether it contains anything besides settings.
    fn has_content(&self) -> Result<bool>;

    /// The size on disk.
    fn bytes(&self) -> Result<u64>;

    /// All known files, ordered by path.
    fn files(&self) -> Result<Vec<StoredFile>>;

    /// The path of a file.
    fn path_of(&self, id: FileId) -> Result<Option<VaultPath>>;

    /// A file's path on disk, relative to the vault, if it differs from the text of its path.
    fn disk_path(&self, path: &VaultPath) -> Result<Option<PathBuf>>;

    /// The hash of a file's content, if it was read.
    fn content_hash(&self, path: &VaultPath) -> Result<Option<ContentHash>>;

    /// The displayed data of all notes, ordered by path.
    fn note_metas(&self) -> Result<Vec<NoteMeta>>;

    /// The notes that contain these passages.
    fn notes_of(&self, passages: &[i64]) -> Result<BTreeSet<FileId>>;

    /// The numbers of notes, attachments and tags.
    fn counts(&self) -> Result<(usize, usize, usize)>;

    /// All warnings, ordered by path: (skipped files, warnings about the others).
    fn warnings(&self) -> Result<(Vec<SkippedNote>, Vec<NoteWarning>)>;

    /// The names of all notes, in the order of the notes and of the names in them.
    fn all_names(&self) -> Result<Vec<(FileId, Name)>>;

    /// The links whose resolution depends on a name, and possibly some others.
    fn links_by_name(&self, name_key: &str) -> Result<Vec<StoredLink>>;

    /// The links that name a heading or block, ordered by source and position.
    fn links_with_subpath(&self) -> Result<Vec<StoredLink>>;

    /// (source, target, path as written) of every link, ordered by source and position.
    fn edges(&self) -> Result<Vec<(FileId, Option<FileId>, String)>>;

    /// The display texts of links to a file that occur in at least this number of notes, each once, ordered by file and
    /// text.
    fn link_texts(&self, notes: usize) -> Result<Vec<(FileId, String)>>;

    /// The former paths of files, with the current file of each if that is certain.
    fn former_paths(&self) -> Result<Vec<(VaultPath, Option<FileId>)>>;

    /// The number of links, and of those that lead nowhere.
    fn link_counts(&self) -> Result<(usize, usize)>;

    /// The number of passages.
    fn passage_count(&self) -> Result<usize>;

    /// The text of every `step`-th passage, for statistics.
    fn sample_texts(&self, step: usize) -> Result<Vec<String>>;

    /// The total size of the texts without a vector; linear in their number, which is `texts`.
    fn pending_size(&self, texts: usize) -> Result<u64>;

    /// Whether a text, by [`PendingText::id`](crate::store::PendingText::id), still has no vector.
    fn is_pending(&self, id: i64) -> Result<bool>;

    /// The number of vectors, used or not.
    fn vector_count(&self) -> Result<usize>;
}

impl ReadContents for Store {
    fn meta(&self, key: &str) -> Result<Option<String>> {
        Store::meta(self, key)
    }

    fn version(&self) -> Result<i64> {
        self.data_version()
    }

    fn has_content(&self) -> Result<bool> {
        Store::has_content(self)
    }

    fn bytes(&self) -> Result<u64> {
        Ok(Store::bytes(self))
    }

    fn files(&self) -> Result<Vec<StoredFile>> {
        Store::files(self)
    }

    fn path_of(&self, id: FileId) -> Result<Option<VaultPath>> {
        Store::path_of(self, id)
    }

    fn disk_path(&self, path: &VaultPath) -> Result<Option<PathBuf>> {
        Store::disk_path(self, path)
    }

    fn content_hash(&self, path: &VaultPath) -> Result<Option<ContentHash>> {
        Store::content_hash(self, path)
    }

    fn note_metas(&self) -> Result<Vec<NoteMeta>> {
        Store::note_metas(self)
    }

    fn notes_of(&self, passages: &[i64]) -> Result<BTreeSet<FileId>> {
        Store::notes_of(self, passages)
    }

    fn counts(&self) -> Result<(usize, usize, usize)> {
        Store::counts(self)
    }

    fn warnings(&self) -> Result<(Vec<SkippedNote>, Vec<NoteWarning>)> {
        Store::warnings(self)
    }

    fn all_names(&self) -> Result<Vec<(FileId, Name)>> {
        Store::all_names(self)
    }

    fn links_by_name(&self, name_key: &str) -> Result<Vec<StoredLink>> {
        Store::links_by_name(self, name_key)
    }

    fn links_with_subpath(&self) -> Result<Vec<StoredLink>> {
        Store::links_with_subpath(self)
    }

    fn edges(&self) -> Result<Vec<(FileId, Option<FileId>, String)>> {
        Store::edges(self)
    }

    fn link_texts(&self, notes: usize) -> Result<Vec<(FileId, String)>> {
        Store::link_texts(self, notes)
    }

    fn former_paths(&self) -> Result<Vec<(VaultPath, Option<FileId>)>> {
        Store::former_paths(self)
    }

    fn link_counts(&self) -> Result<(usize, usize)> {
        Store::link_counts(self)
    }

    fn passage_count(&self) -> Result<usize> {
        Store::passage_count(self)
    }

    fn sample_texts(&self, step: usize) -> Result<Vec<String>> {
        Store::sample_texts(self, step)
    }

    fn pending_size(&self, texts: usize) -> Result<u64> {
        Store::pending_size(self, texts)
    }

    fn is_pending(&self, id: i64) -> Result<bool> {
        Store::is_pending(self, id)
    }

    fn vector_count(&self) -> Result<usize> {
        Store::vector_count(self)
    }
}
