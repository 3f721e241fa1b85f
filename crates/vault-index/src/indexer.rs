//! The writing half: what changed on disk -> rows, one transaction a batch; text and links first, vectors after.
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
//! Killed anywhere, the next sync goes on: a file row whose note was not read yet has no hash, so it is read
//! then; a passage without a vector is pending. Incremental and full indexing are the same code: a full one is
//! an update from empty.

mod options;
mod prepare;
mod text;
mod embed;

pub use options::SyncOptions;

use std::collections::{BTreeSet, HashMap, HashSet};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use rayon::prelude::*;

use crate::embed::Embedder;
use crate::error::{Error, ErrorKind, Result, Warning};
use crate::files::{
    Change, ContentHash, DiskFile, KnownFile, MAX_NOTE_BYTES, WalkRules, diff, read_note, settle, walk,
};
use crate::links::{Names, Resolver, keys_leading_to};
use crate::lock::{self, Lock, LockName};
use crate::path::{FileId, VaultPath};
use crate::report::{Progress, Report, Stage};
use crate::store::{LinkTarget, Store, StoredFile};

/// Up to this many changed names, only links by these names are resolved again; above, all links.
const FEW_NAMES: usize = 2000;

/// The time of a sync that found nothing to do is recorded at most this often.
const NOTED_EVERY_SECONDS: u64 = 60;

/// Everything a sync works with.
pub(crate) struct Indexer<'a> {
    pub store: &'a Store,
    /// The index file whose locks are taken. `None`: nobody else opens the store.
    pub locks: Option<&'a Path>,
    pub vault: &'a Path,
    pub embedder: &'a dyn Embedder,
    pub rules: &'a WalkRules,
    pub options: &'a SyncOptions<'a>,
}

/// A file to read, and its id.
struct Job {
    id: FileId,
    file: DiskFile,
    /// There are no rows of it, so that there is nothing to delete first.
    is_new: bool,
    counts_as: CountsAs,
}

/// What a note that was read counts as in the report.
#[derive(Clone, Copy)]
enum CountsAs {
    Added,
    Changed,
    Renamed,
}

impl Job {
    fn first(id: FileId, file: &DiskFile) -> Self {
        Self { id, file: file.clone(), is_new: true, counts_as: CountsAs::Added }
    }

    fn again(id: FileId, file: &DiskFile, counts_as: CountsAs) -> Self {
        Self { id, file: file.clone(), is_new: false, counts_as }
    }
}

static NEVER: AtomicBool = AtomicBool::new(false);

impl Indexer<'_> {
    /// Brings the index up to date.
    pub(crate) fn sync(&self) -> Result<Report> {
        let started = Instant::now();
        let mut report = Report::default();
        let mut stage = Instant::now();
        {
            let _lock = self.lock(LockName::Write)?;
            self.sync_text(&mut report, &mut stage)?;
        }
        if self.options.vectors && !self.options.is_over() {
            self.sync_vectors(&mut report)?;
        }
        end_stage(&mut report, "vectors", &mut stage);
        (report.pending, report.unread) = (self.store.pending()?, self.store.unread()?);
        (report.skipped, report.warnings) = self.store.warnings()?;
        if !report.skipped.is_empty() {
            // Files that are skipped are no notes, changed or not.
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
        Ok(report)
    }

    /// Writes text, links and words of all notes, without vectors. Returns the folders that could not be listed.
    ///
    /// # Errors
    /// As those of a sync; [`ErrorKind::Cancelled`] also when the time is over.
    pub(crate) fn write_text(&self) -> Result<Vec<String>> {
        let unlisted = self.sync_text(&mut Report::default(), &mut Instant::now())?;
        if self.options.is_over() { Err(cancelled()) } else { Ok(unlisted) }
    }

    fn lock(&self, name: LockName) -> Result<Option<Lock>> {
        self.locks.map(|index| self.options.lock(index, name)).transpose()
    }

    /// All files known, and the notes among them whose rows another version made.
    fn known(&self) -> Result<(Vec<KnownFile>, HashSet<FileId>)> {
        let version = self.version();
        let mut outdated = HashSet::new();
        let mut known = Vec::new();
        for stored in self.store.files()? {
            let mut file = stored.known;
            if file.indexed && file.kind.is_note() && stored.version != Some(version) {
                outdated.insert(file.id);
            }
            if self.options.read_all {
                // A file that was last looked at before it existed is looked into.
                file.checked_at_ns = 0;
            }
            known.push(file);
        }
        Ok((known, outdated))
    }

    /// Returns the folders that could not be listed.
    fn sync_text(&self, report: &mut Report, stage: &mut Instant) -> Result<Vec<String>> {
        let now = now_ns();
        // The rows are read while the disk is walked: on an unchanged vault these two are all the time there is.
        let (walked, known) = std::thread::scope(|scope| {
            let (vault, rules, cancel) = (self.vault, self.rules, self.cancel());
            let walked = scope.spawn(move || walk(vault, rules, cancel));
            let known = self.known();
            (walked.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)), known)
        });
        let (walked, (known, outdated)) = (walked?, known?);
        end_stage(report, "walk", stage);
        self.progress(Stage::Walk, walked.files.len(), walked.files.len());
        let mut difference = diff(&known, &walked.files, now);
        difference.keep(&walked.unlisted);
        let walk_warnings = self.walk_warnings_differ(&walked.warnings)?;
        if difference.is_empty() && outdated.is_empty() && !walk_warnings {
            report.unchanged = known.iter().filter(|k| k.indexed && k.kind.is_note()).count();
            return Ok(walked.unlisted);
        }
        let hashes = self.hash(&difference.to_hash())?;
        let changes = settle(&difference, &hashes);
        end_stage(report, "read", stage);

        let is_first = known.is_empty();
        let jobs = match is_first {
            true => Vec::new(),
            false => self.write_files(&known, &walked.files, &changes, &outdated, now, report)?,
        };
        if walk_warnings {
            self.write_walk_warnings(&walked.warnings)?;
        }
        end_stage(report, "links", stage);
        if is_first {
            self.write_first(&walked.files, now, report)?;
        } else if !jobs.is_empty() {
            let names = self.store.paths()?.into_iter().collect();
            self.write_notes(jobs, &names, || Ok(()), report)?;
        }
        end_stage(report, "text", stage);
        Ok(walked.unlisted)
    }

    /// Notes that the index is up to date: always when something was done, else once a minute, so that looking at an
    /// unchanged vault costs no write. A sync that was stopped early is not recorded.
    fn note_time(&self, report: &Report) -> Result<()> {
        let is_complete = report.unread == 0 && (!self.options.vectors || report.pending == 0);
        if !is_complete {
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
        // Whoever writes now notes its own time; and that this alone cannot be written makes no sync fail.
        if !matches!(lock, Some(Err(_))) {
            let _ = self.store.set_meta("last_sync", &now.to_string());
        }
        Ok(())
    }

    /// All of a vault of which the index has no file: notes are read while the rows of files are written.
    fn write_first(&self, disk: &[DiskFile], now: i64, report: &mut Report) -> Result<()> {
        // Numbered in the order in which they are read, so that rows are appended.
        let mut files: Vec<&DiskFile> = disk.iter().collect();
        files.sort_by(|a, b| newest_first(a, b));
        let files: Vec<(FileId, &DiskFile)> = (self.store.next_file_id()?..).map(FileId).zip(files).collect();
        let notes = files.iter().filter(|(_, file)| file.is_read());
        let jobs: Vec<Job> = notes.map(|(id, file)| Job::first(*id, file)).collect();
        let names = files.iter().map(|(id, file)| (*id, &file.path)).collect();
        let (unread, version) = (jobs.len(), self.version());
        let first = || {
            let batch = self.store.begin()?;
            files.iter().try_for_each(|(id, file)| self.put_file(*id, file, None, now, version))?;
            self.store.set_unread(unread)?;
            batch.commit()
        };
        self.write_notes(jobs, &names, first, report)
    }

    /// One transaction: all file rows as they will be, and links of other notes that now lead elsewhere.
    fn write_files(
        &self,
        known: &[KnownFile],
        disk: &[DiskFile],
        changes: &[Change<'_>],
        outdated: &HashSet<FileId>,
        now: i64,
        report: &mut Report,
    ) -> Result<Vec<Job>> {
        let (store, version) = (self.store, self.version());
        let put = |id, file, hash| self.put_file(id, file, hash, now, version);
        let batch = store.begin()?;
        let mut next_id = store.next_file_id()?;
        let mut jobs: Vec<Job> = Vec::new();
        let mut handled: HashSet<FileId> = HashSet::new();
        // Names that files come or go by: links to them may lead elsewhere.
        let mut names_touched: BTreeSet<String> = BTreeSet::new();
        let mut moved: Vec<FileId> = Vec::new();
        // New files get their ids in the order in which they are read, so that rows are appended.
        let mut changes: Vec<&Change<'_>> = changes.iter().collect();
        changes.sort_by(|a, b| match (a, b) {
            (Change::Added(a), Change::Added(b)) => newest_first(a, b),
            (a, b) => matches!(a, Change::Added(_)).cmp(&matches!(b, Change::Added(_))),
        });
        for change in changes {
            match *change {
                Change::Removed(known) => {
                    names_touched.extend(keys_leading_to(&known.path));
                    if known.indexed && known.kind.is_note() {
                        report.removed += 1;
                        self.remove_note(known.id)?;
                    }
                    store.put_warnings(known.path.as_str(), &[], false)?;
                    store.remove_file(known.id)?;
                    handled.insert(known.id);
                }
                Change::Renamed(pair) => {
                    names_touched.extend(keys_leading_to(&pair.known.path));
                    names_touched.extend(keys_leading_to(&pair.file.path));
                    store.move_warnings(pair.known.path.as_str(), pair.file.path.as_str())?;
                    moved.push(pair.known.id);
                    let is_note = pair.file.is_read();
                    handled.insert(pair.known.id);
                    // The words of the file's name are searched, and may be the title: then it is read again.
                    if is_note && (pair.known.path.stem() != pair.file.path.stem() || outdated.contains(&pair.known.id))
                    {
                        put(pair.known.id, pair.file, None)?;
                        jobs.push(Job::again(pair.known.id, pair.file, CountsAs::Renamed));
                    } else {
                        report.renamed += usize::from(is_note);
                        put(pair.known.id, pair.file, pair.known.hash)?;
                    }
                }
                Change::Flipped(pair) => {
                    handled.insert(pair.known.id);
                    put(pair.known.id, pair.file, None)?;
                    if pair.file.is_read() {
                        jobs.push(Job::again(pair.known.id, pair.file, CountsAs::Added));
                    } else if pair.known.kind.is_note() {
                        report.removed += 1;
                        store.put_warnings(pair.known.path.as_str(), &[], false)?;
                        self.remove_note(pair.known.id)?;
                    }
                }
                Change::Changed(pair) => {
                    handled.insert(pair.known.id);
                    // Its old rows can be found until the new ones are there; without a hash it is read again
                    // should we not come so far.
                    put(pair.known.id, pair.file, None)?;
                    jobs.push(Job::again(pair.known.id, pair.file, CountsAs::Changed));
                }
                Change::Touched(pair) => {
                    if !outdated.contains(&pair.known.id) {
                        put(pair.known.id, pair.file, pair.known.hash)?;
                        handled.insert(pair.known.id);
                    }
                }
                Change::Added(file) => {
                    names_touched.extend(keys_leading_to(&file.path));
                    let id = FileId(next_id);
                    next_id += 1;
                    put(id, file, None)?;
                    if file.is_read() {
                        jobs.push(Job::first(id, file));
                    }
                }
            }
        }
        let by_path: HashMap<&VaultPath, &DiskFile> = match outdated.is_empty() {
            true => HashMap::new(),
            false => disk.iter().map(|f| (&f.path, f)).collect(),
        };
        for known in known.iter().filter(|k| outdated.contains(&k.id) && !handled.contains(&k.id)) {
            let Some(file) = by_path.get(&known.path) else { continue };
            put(known.id, file, None)?;
            // A file that is not read has no rows but this one.
            if file.is_read() {
                jobs.push(Job::again(known.id, file, CountsAs::Changed));
            }
        }
        let notes = disk.iter().filter(|f| f.is_read()).count();
        report.unchanged = notes.saturating_sub(jobs.len() + report.renamed);

        let rereads: HashSet<FileId> = jobs.iter().map(|job| job.id).collect();
        if !names_touched.is_empty() || !moved.is_empty() {
            self.resolve_again(&names_touched, &moved, &rereads)?;
        }
        store.set_unread(jobs.len())?;
        batch.commit()?;
        jobs.sort_by(|a, b| newest_first(&a.file, &b.file));
        Ok(jobs)
    }

    fn put_file(&self, id: FileId, file: &DiskFile, hash: Option<ContentHash>, now: i64, version: i64) -> Result<()> {
        let known = KnownFile {
            id,
            path: file.path.clone(),
            stat: file.stat,
            indexed: file.indexed,
            kind: file.kind,
            hash,
            checked_at_ns: now,
        };
        let version = file.is_read().then_some(version);
        self.store.put_file(&StoredFile { known, disk: file.disk.clone(), version })
    }

    /// Whether there was anything of it.
    fn remove_note(&self, id: FileId) -> Result<bool> {
        self.store.remove_passages(id)?;
        self.store.remove_links(id)?;
        self.store.remove_note(id)
    }

    /// Links whose resolution depends on a name that came or went, and those of notes that moved.
    fn resolve_again(&self, names: &BTreeSet<String>, moved: &[FileId], rereads: &HashSet<FileId>) -> Result<()> {
        let paths: HashMap<FileId, VaultPath> = self.store.paths()?.into_iter().collect();
        let mut table = Names::new();
        paths.iter().for_each(|(id, path)| table.insert(*id, path));
        let resolver = Resolver::new(&table);
        let settle = |links: Vec<LinkTarget>| -> Result<()> {
            for (link, source, path, target) in links {
                let Some(source_path) = paths.get(&source).filter(|_| !rereads.contains(&source)) else { continue };
                let now = resolver.resolve(&path, source_path).target;
                if now != target {
                    self.store.set_target(link, now)?;
                }
            }
            Ok(())
        };
        if names.len() > FEW_NAMES {
            let mut after = 0;
            loop {
                let links = self.store.targets_after(after, 10_000)?;
                let Some(last) = links.last() else { return Ok(()) };
                after = last.0;
                settle(links)?;
            }
        }
        for name in names {
            settle(self.store.targets_by_name(name)?)?;
        }
        for source in moved {
            settle(self.store.targets_of(*source)?)?;
        }
        Ok(())
    }

    /// Hashes of files, in parallel; none of those that cannot be read.
    fn hash(&self, files: &[&DiskFile]) -> Result<HashMap<VaultPath, ContentHash>> {
        let (vault, cancel) = (self.vault, self.cancel());
        let hash = |file: &&DiskFile| Some((file.path.clone(), read_note(vault, file, MAX_NOTE_BYTES).ok()?.hash));
        let hashes = files.par_iter().filter(|_| !cancel.load(Ordering::Relaxed)).filter_map(hash).collect();
        // With some hashes missing, readable files would pass for unreadable ones.
        if cancel.load(Ordering::Relaxed) { Err(cancelled()) } else { Ok(hashes) }
    }

    /// Whether the walk's warnings differ from those that are stored.
    fn walk_warnings_differ(&self, now: &[(String, Warning)]) -> Result<bool> {
        let stored = self.store.meta("walk_warnings")?.unwrap_or_default();
        Ok(stored != walk_warnings_text(now))
    }

    fn stored_walk_warnings(&self) -> Result<Vec<(String, Warning)>> {
        Ok(serde_json::from_str(&self.store.meta("walk_warnings")?.unwrap_or_default()).unwrap_or_default())
    }

    fn write_walk_warnings(&self, now: &[(String, Warning)]) -> Result<()> {
        let batch = self.store.begin()?;
        let before = self.stored_walk_warnings()?;
        before.iter().try_for_each(|(path, warning)| self.store.remove_warning(path, warning))?;
        now.iter().try_for_each(|(path, warning)| self.store.add_warning(path, warning, true))?;
        self.store.set_meta("walk_warnings", &walk_warnings_text(now))?;
        batch.commit()
    }

    /// What makes a note's rows: if it changes, they are made again.
    fn version(&self) -> i64 {
        prepare::version(self.embedder)
    }

    fn cancel(&self) -> &AtomicBool {
        self.options.cancel.unwrap_or(&NEVER)
    }

    fn progress(&self, stage: Stage, done: usize, total: usize) {
        if let Some(report) = self.options.progress {
            report(Progress { stage, done, total });
        }
    }
}

fn walk_warnings_text(warnings: &[(String, Warning)]) -> String {
    if warnings.is_empty() { String::new() } else { serde_json::to_string(warnings).unwrap_or_default() }
}

/// What a person works on can be found first.
fn newest_first(a: &DiskFile, b: &DiskFile) -> std::cmp::Ordering {
    b.stat.mtime_ns.cmp(&a.stat.mtime_ns).then_with(|| a.path.cmp(&b.path))
}

fn cancelled() -> Error {
    Error::new(ErrorKind::Cancelled, "cancelled; what was done so far is kept")
}

fn end_stage(report: &mut Report, name: &str, since: &mut Instant) {
    *report.stages_ms.entry(name.to_string()).or_default() += milliseconds(*since);
    *since = Instant::now();
}

fn milliseconds(since: Instant) -> u64 {
    since.elapsed().as_millis() as u64
}

fn now_ns() -> i64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |d| i64::try_from(d.as_nanos()).unwrap_or(i64::MAX))
}
