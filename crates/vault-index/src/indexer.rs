//! Updates the index from the changes on disk, one transaction per batch: text and links first, vectors after.
//!
//! ```text
//! walk      list the vault, compare with the rows of `file`           no lock needed, nothing written
//! files     one transaction: file rows, renames, removals, and the    from here on the graph of what stays
//!           links of other notes that these make lead elsewhere       is right
//! text      per batch: read, parse, chunk in parallel; one            keyword search finds a note as soon as
//!           transaction for some batches: notes, words, links         its transaction is committed
//! vectors   per round, newest notes first: look each text up, embed   semantic search likewise; `pending`
//!           what is new without a lock, one transaction               counts down
//! ```
//!
//! A killed sync is continued by the next one: a file row whose note was not read yet has no hash, so the note is read
//! then; a passage without a vector is pending. Incremental and full indexing share their code: a full one is an update
//! of an empty index.

mod options;
mod stored_vectors;
mod words;
mod prepare;
mod text;
mod pace;
mod embed;

pub(crate) use embed::EmbeddingSchedule;
pub use options::SyncOptions;
pub(crate) use pace::Pace;
pub use stored_vectors::StoredVectors;
pub(crate) use stored_vectors::is_of;

use std::cmp::Reverse;
use std::collections::{BTreeSet, HashMap, HashSet};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use rayon::prelude::*;

use crate::embed::Embedder;
use crate::error::{Error, ErrorKind, Result};
use crate::files::{
    Change, ContentHash, DiskFile, Fingerprint, KnownFile, MAX_NOTE_BYTES, Pair, WalkRules, diff, read_note, settle,
    walk,
};
use crate::indexer::words::{NoteTexts, SentWords, WordReader};
use crate::links::{Names, Resolver, keys_leading_to};
use crate::lock::{self, Lock, LockName};
use crate::note::{ParseOptions, TitleSource};
use crate::path::{FileId, VaultPath};
use crate::report::{Progress, Report, Stage};
use crate::store::{NoteFields, StoredFile, StoredLink, StoredTexts, WriteStore};

/// Up to this number of changed names, only links by these names are resolved again; above it, all links.
const FEW_NAMES: usize = 2000;

/// The time of a sync without changes is recorded at most this often.
const NOTED_EVERY_SECONDS: u64 = 60;

/// The inputs of a sync.
pub(crate) struct Indexer<'a> {
    pub store: &'a dyn WriteStore,
    /// The index file whose locks are taken. `None`: no other process opens the store.
    pub locks: Option<&'a Path>,
    pub vault: &'a Path,
    /// The options of the parser for this vault.
    pub parse: ParseOptions,
    pub embedder: &'a dyn Embedder,
    pub rules: &'a WalkRules,
    pub options: &'a SyncOptions<'a>,
}

/// A file to read, and its id.
struct Job {
    id: FileId,
    file: DiskFile,
    counts_as: ChangeKind,
}

/// The work that is left after the rows of files are written.
#[derive(Default)]
struct FileWork {
    jobs: Vec<Job>,
    /// Names of files that were added or removed: links to them may lead elsewhere.
    names: BTreeSet<String>,
    moved: Vec<FileId>,
}

/// The state of the files after text and links are written.
struct WalkSummary {
    fingerprint: Option<Fingerprint>,
    /// Folders that could not be listed.
    unlisted: Vec<String>,
}

/// How a note that was read is counted in the report.
#[derive(Clone, Copy, PartialEq, Eq)]
enum ChangeKind {
    /// The index has no rows of the note.
    Added,
    Changed,
    Renamed,
}

static NEVER: AtomicBool = AtomicBool::new(false);

impl Indexer<'_> {
    /// Updates the index. Also returns the files that the walk found, if the index has all of them.
    pub(crate) fn sync(&self) -> Result<(Report, Option<Fingerprint>)> {
        let started = Instant::now();
        let mut report = Report::default();
        let mut stage = Instant::now();
        let (walked, before) = {
            let _lock = self.lock(LockName::Write)?;
            let before = self.store.warnings()?;
            (self.sync_text(&mut report, &mut stage)?, before)
        };
        if self.options.vectors && !self.options.is_over() {
            self.sync_vectors(&mut report)?;
        }
        end_stage(&mut report, "vectors", &mut stage);
        (report.pending, report.unread) = (self.store.pending()?, self.store.unread()?);
        let findings = self.store.warnings()?;
        report.has_new_findings = findings != before;
        (report.skipped, report.warnings) = findings;
        if !report.skipped.is_empty() {
            // Skipped files are not notes, whether they changed or not.
            let rest = self.store.note_count()?.saturating_sub(report.added + report.changed + report.renamed);
            report.unchanged = report.unchanged.min(rest);
        }
        self.note_time(&report)?;
        if !report.is_unchanged() {
            self.store.checkpoint();
        }
        report.took_ms = milliseconds(started);
        let Report { added, changed, renamed, removed, embedded, pending, .. } = report;
        log::debug!(
            "{}: {added} added, {changed} changed, {renamed} renamed, {removed} removed, {embedded} embedded, {pending} \
             pending, {:?} ms",
            self.vault.display(),
            report.stages_ms
        );
        let fingerprint = walked.fingerprint.filter(|_| report.unread == 0);
        Ok((report, fingerprint))
    }

    /// Embeds pending texts without reading files.
    #[cfg(feature = "watch")]
    pub(crate) fn embed(&self) -> Result<Report> {
        let started = Instant::now();
        let mut report = Report { unchanged: self.store.note_count()?, ..Report::default() };
        self.sync_vectors(&mut report)?;
        (report.pending, report.unread) = (self.store.pending()?, self.store.unread()?);
        report.took_ms = milliseconds(started);
        Ok(report)
    }

    /// Writes text, links and words of all notes, without vectors. Returns the folders that could not be listed.
    ///
    /// # Errors
    /// The errors of a sync; [`ErrorKind::Cancelled`] also when the deadline has passed.
    pub(crate) fn write_text(&self) -> Result<Vec<String>> {
        let walked = self.sync_text(&mut Report::default(), &mut Instant::now())?;
        if self.options.is_over() { Err(cancelled()) } else { Ok(walked.unlisted) }
    }

    pub(crate) fn lock(&self, name: LockName) -> Result<Option<Lock>> {
        self.locks.map(|index| self.options.lock(index, name)).transpose()
    }

    /// All known files.
    fn known(&self) -> Result<Vec<KnownFile>> {
        let version = self.version();
        let known = |stored: StoredFile| {
            let mut file = stored.known;
            if stored.version != Some(version) {
                // Rows that another version wrote do not count.
                file.hash = None;
            }
            if self.options.read_all {
                // The earliest possible time makes the comparison hash the file.
                file.checked_at_ns = 0;
            }
            file
        };
        Ok(self.store.files()?.into_iter().map(known).collect())
    }

    fn sync_text(&self, report: &mut Report, stage: &mut Instant) -> Result<WalkSummary> {
        let now = prepare::now_ns();
        // The rows are read while the disk is walked, because on an unchanged vault these two steps take all the time.
        let (walked, known) = std::thread::scope(|scope| {
            let (vault, rules, cancel) = (self.vault, self.rules, self.cancel());
            let walked = scope.spawn(move || walk(vault, rules, cancel));
            let known = self.known();
            (walked.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)), known)
        });
        let (walked, known) = (walked?, known?);
        end_stage(report, "walk", stage);
        self.progress(Stage::Walk, walked.files.len(), walked.files.len());
        let mut difference = diff(&known, &walked.files, now);
        difference.keep(&walked.unlisted);
        let has_unread = self.store.unread()? > 0;
        if has_unread {
            difference.without_hash_is_unread();
        }
        let changes = settle(&difference, &self.hash(&difference.to_hash())?);
        end_stage(report, "read", stage);
        let has_other_warnings = self.store.walk_warnings()? != walked.warnings;
        if changes.is_empty() && !has_other_warnings && !has_unread {
            report.unchanged = known.iter().filter(|k| k.indexed && k.path.kind().is_note()).count();
            return Ok(WalkSummary { fingerprint: Fingerprint::of(&walked, now), unlisted: walked.unlisted });
        }

        // One transaction with the new file rows, and the links of other notes that now lead elsewhere.
        let batch = self.store.begin()?;
        if has_other_warnings {
            self.store.put_walk_warnings(&walked.warnings)?;
        }
        let FileWork { jobs, names, moved } = self.write_files(changes, now, report)?;
        let notes = walked.files.iter().filter(|f| f.is_read()).count();
        report.unchanged = notes.saturating_sub(jobs.len() + report.renamed);
        let paths = match jobs.is_empty() && names.is_empty() && moved.is_empty() {
            true => Vec::new(),
            false => self.store.paths()?,
        };
        let paths: HashMap<FileId, VaultPath> = paths.into_iter().collect();
        let table: Names = paths.iter().map(|(id, path)| (*id, path)).collect();
        self.resolve_again(&names, &moved, &jobs, &paths, &table)?;
        batch.commit_notes(jobs.len())?;
        end_stage(report, "links", stage);

        self.write_notes(jobs, &table, report)?;
        end_stage(report, "text", stage);
        Ok(WalkSummary { fingerprint: Fingerprint::of(&walked, now), unlisted: walked.unlisted })
    }

    /// Records that the index is up to date with the notes: after each sync with changes, otherwise once a minute, so
    /// that a sync of an unchanged vault writes nothing. A sync that stopped before it had read everything is not
    /// recorded. The passages without a vector are counted separately.
    fn note_time(&self, report: &Report) -> Result<()> {
        if report.unread > 0 {
            return Ok(());
        }
        let now = jiff::Timestamp::now();
        let last: Option<jiff::Timestamp> = self.store.meta("last_sync")?.and_then(|text| text.parse().ok());
        let is_recent = last.is_some_and(|last| now.as_second().abs_diff(last.as_second()) < NOTED_EVERY_SECONDS);
        if report.is_unchanged() && is_recent {
            return Ok(());
        }
        let wait = if report.is_unchanged() { Duration::ZERO } else { Duration::from_secs(1) };
        let lock = self.locks.map(|index| lock::lock(index, LockName::Write, Some(wait), None));
        // Another writer records its own time, and a failure to write only this does not fail the sync.
        if !matches!(lock, Some(Err(_))) {
            let _ = self.store.set_meta("last_sync", &now.to_string());
        }
        Ok(())
    }

    /// Writes the rows of files, and removes the rows of deleted notes.
    fn write_files(&self, mut changes: Vec<Change<'_>>, now: i64, report: &mut Report) -> Result<FileWork> {
        let store = self.store;
        let put = |id, file, hash| self.put_file(id, file, hash, now);
        let mut next_id = store.next_file_id()?;
        let mut written = FileWork::default();
        let FileWork { jobs, names, moved } = &mut written;
        let mut in_other_folders = Vec::new();
        let mut read = |id, file: &DiskFile, counts_as| jobs.push(Job { id, file: file.clone(), counts_as });
        let elsewhere: HashSet<u64> = changes
            .iter()
            .filter_map(|change| match change {
                Change::Added(file) | Change::Changed(Pair { file, .. }) => Some(file.stat.inode),
                Change::Renamed { pair, .. } => Some(pair.file.stat.inode),
                _ => None,
            })
            .collect();
        // New files get ids in the order in which they are read, so that rows are appended.
        changes.sort_by_key(|change| if let Change::Added(file) = change { Some(newest_first(file)) } else { None });
        for change in changes {
            match change {
                Change::Removed(known) => {
                    names.extend(keys_leading_to(&known.path));
                    if known.indexed && known.path.kind().is_note() {
                        report.removed += 1;
                        store.remove_note(known.id)?;
                    }
                    store.put_warnings(known.path.as_str(), &[], false)?;
                    store.remove_file(known.id, &known.path)?;
                }
                Change::Renamed { pair: Pair { known, file }, is_certain } => {
                    // A link to the old path that is written later means another file.
                    let is_certain = is_certain && !store.links_to(known.id)?.is_empty();
                    store.put_former_path(&known.path, Some(known.id).filter(|_| is_certain))?;
                    names.extend(keys_leading_to(&known.path).chain(keys_leading_to(&file.path)));
                    store.move_warnings(known.path.as_str(), file.path.as_str())?;
                    moved.push(known.id);
                    // The words of the file's name are searched, and it may be the title. So the note is read again if
                    // the name changed.
                    let is_read_again = file.is_read() && known.path.stem() != file.path.stem();
                    put(known.id, file, known.hash.filter(|_| !is_read_again))?;
                    match is_read_again {
                        true => read(known.id, file, ChangeKind::Renamed),
                        false if file.is_read() => {
                            report.renamed += 1;
                            in_other_folders.push((known.id, &file.path));
                        }
                        false => {}
                    }
                }
                Change::Flipped(Pair { known, file }) => {
                    put(known.id, file, None)?;
                    if file.is_read() {
                        read(known.id, file, ChangeKind::Added);
                    } else if known.path.kind().is_note() {
                        report.removed += 1;
                        store.put_warnings(known.path.as_str(), &[], false)?;
                        store.remove_note(known.id)?;
                    }
                }
                // The old rows can be found until the new ones are written. Without a hash the note is read again if
                // this sync is interrupted before that.
                Change::Changed(Pair { known, file }) => {
                    // The file that had this path is elsewhere now, so later the path is no certain evidence.
                    if known.stat.inode != file.stat.inode && elsewhere.contains(&known.stat.inode) {
                        store.put_former_path(&known.path, None)?;
                    }
                    put(known.id, file, None)?;
                    read(known.id, file, ChangeKind::Changed);
                }
                Change::Touched(Pair { known, file }) => put(known.id, file, known.hash)?,
                Change::Added(file) => {
                    names.extend(keys_leading_to(&file.path));
                    let id = FileId(next_id);
                    next_id += 1;
                    put(id, file, None)?;
                    if file.is_read() {
                        read(id, file, ChangeKind::Added);
                    }
                }
            }
        }
        self.write_note_words(&in_other_folders)?;
        jobs.sort_by(|a, b| newest_first(&a.file).cmp(&newest_first(&b.file)));
        Ok(written)
    }

    /// Writes the words of notes' own fields again, from their rows, because the names of their folders are among them.
    fn write_note_words(&self, notes: &[(FileId, &VaultPath)]) -> Result<()> {
        let sent = SentWords::new();
        let mut reader = WordReader::new(&sent);
        let mut written: Vec<(FileId, NoteFields)> = Vec::with_capacity(notes.len());
        for (id, path) in notes {
            if let Some(StoredTexts { title, title_source, aliases, tags, properties }) = self.store.note_texts(*id)? {
                let named_by_file = title_source == TitleSource::FileName as i64;
                let texts = NoteTexts {
                    title: &title,
                    named_by_file,
                    aliases: &aliases,
                    tags: &tags,
                    properties: &properties,
                    path,
                };
                written.push((*id, reader.note_fields(&texts)));
            }
        }
        self.store.replace_note_words(written, &reader.into_new())
    }

    fn put_file(&self, id: FileId, file: &DiskFile, hash: Option<ContentHash>, checked_at_ns: i64) -> Result<()> {
        let version = file.is_read().then(|| self.version());
        let DiskFile { path, disk, stat, indexed, .. } = file.clone();
        let known = KnownFile { id, path, stat, indexed, hash, checked_at_ns };
        self.store.put_file(&StoredFile { known, disk, version })
    }

    /// Resolves links again whose name was added or removed, and the links of notes that moved; not those of notes that
    /// are read again.
    fn resolve_again(
        &self,
        changed: &BTreeSet<String>,
        moved: &[FileId],
        jobs: &[Job],
        paths: &HashMap<FileId, VaultPath>,
        names: &Names,
    ) -> Result<()> {
        let read_again: HashSet<FileId> = jobs.iter().map(|job| job.id).collect();
        let resolver = Resolver::new(names);
        let settle = |links: Vec<StoredLink>| -> Result<()> {
            for link in links {
                let Some(source) = paths.get(&link.source).filter(|_| !read_again.contains(&link.source)) else {
                    continue;
                };
                let now = resolver.resolve(&link.path, source).target;
                if now != link.target {
                    self.store.set_target(link.id, now)?;
                }
            }
            Ok(())
        };
        if changed.len() > FEW_NAMES {
            let mut after = 0;
            loop {
                let links = self.store.links_after(after, 10_000)?;
                let Some(last) = links.last() else { return Ok(()) };
                after = last.id;
                settle(links)?;
            }
        }
        changed.iter().try_for_each(|name| settle(self.store.links_by_name(name)?))?;
        moved.iter().try_for_each(|source| settle(self.store.links_from(*source)?))
    }

    /// The hashes of files, computed in parallel, without files that cannot be read.
    fn hash(&self, files: &[&DiskFile]) -> Result<HashMap<VaultPath, ContentHash>> {
        let (vault, cancel) = (self.vault, self.cancel());
        let hash = |file: &&DiskFile| Some((file.path.clone(), read_note(vault, file, MAX_NOTE_BYTES).ok()?.hash));
        let hashes = files.par_iter().filter(|_| !cancel.load(Ordering::Relaxed)).filter_map(hash).collect();
        // If some hashes were missing, readable files would be taken for unreadable ones.
        if cancel.load(Ordering::Relaxed) { Err(cancelled()) } else { Ok(hashes) }
    }

    /// The version of everything that determines a note's rows. If it changes, they are written again.
    fn version(&self) -> i64 {
        prepare::version(self.embedder, &self.parse)
    }

    fn cancel(&self) -> &AtomicBool {
        self.options.cancel.unwrap_or(&NEVER)
    }

    fn progress(&self, stage: Stage, done: usize, total: usize) {
        if let Some(report) = self.options.progress {
            report(Progress { stage, done, total, left: None });
        }
    }
}

/// The notes that a person works on can be found first.
fn newest_first(file: &DiskFile) -> impl Ord + use<'_> {
    (Reverse(file.stat.mtime_ns), &file.path)
}

fn cancelled() -> Error {
    Error::new(ErrorKind::Cancelled, "cancelled; completed work is kept")
}

fn end_stage(report: &mut Report, name: &str, since: &mut Instant) {
    *report.stages_ms.entry(name.to_string()).or_default() += milliseconds(*since);
    *since = Instant::now();
}

fn milliseconds(since: Instant) -> u64 {
    since.elapsed().as_millis() as u64
}
