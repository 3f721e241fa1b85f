//! From the disk and the index to changes, in two pure steps around the reading of the few files that need it.
//!
//! 1. [`diff`] compares paths and stats. Files that look the same are done. This leaves files whose content may have
//!    changed (`suspect`), new paths (`added`) and removed paths (`removed`).
//! 2. The caller hashes the files of [`Diff::to_hash`]: the suspects, and the new files that have the size of a removed
//!    one, because they may be renamed. A first run has neither.
//! 3. [`settle`] turns the hashes into changes.
//!
//! A file that keeps its path keeps its identity, whatever its content: a rename leads from a path that was removed to
//! a path that is new. So two files that swap their names are two changed files, and of `a -> b, b -> c` the first is a
//! change of `b`. Changes can be applied in any order without two files ever holding one path.
//!
//! When is a file with the same stat the same? Clocks are coarse: an edit right after a check can leave the stat as it
//! was. So a file that was less than two seconds old when it was last checked is hashed once more (git calls such an
//! entry racy).

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};
use std::hash::Hash;

use super::stat::FileStat;
use super::walk::DiskFile;
use crate::path::{FileId, VaultPath, is_within};

/// To be trusted, a file's time must be at least this long before the check. The coarsest clock in use (FAT's) ticks
/// every two seconds.
pub(super) const TRUST_NS: i64 = 2_000_000_000;

/// The least size of a content that identifies a file. Shorter ones, such as a single heading, occur again and again.
const IDENTIFYING_BYTES: u64 = 64;

/// A BLAKE3 hash of a file's bytes.
pub type ContentHash = [u8; 32];

/// A file as the index knows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KnownFile {
    /// The number of the file.
    pub id: FileId,
    /// The path that it had.
    pub path: VaultPath,
    /// Its stat, which belongs to the content of `hash` if there is one.
    pub stat: FileStat,
    /// Whether it belonged to the index.
    pub indexed: bool,
    /// The hash of its content. `None` for files that are never read (attachments and files that are not indexed), and
    /// for a note that could not be read, which is tried again each time.
    pub hash: Option<ContentHash>,
    /// When it was last checked, in nanoseconds since 1970. The time is taken before the walk or the reading that
    /// `stat` is from, not after.
    pub checked_at_ns: i64,
}

/// A known file and its counterpart on disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pair<'a> {
    /// As the index knows it.
    pub known: &'a KnownFile,
    /// As it is on disk.
    pub file: &'a DiskFile,
}

/// The result of [`diff`]; every list is ordered by path (on disk, where there is one).
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Diff<'a> {
    /// The number of files that are unchanged.
    pub unchanged: usize,
    /// Indexed notes whose content may have changed.
    pub suspect: Vec<Pair<'a>>,
    /// Indexed notes that have not been read yet, whatever their content; see [`Self::without_hash_is_unread`].
    pub unread: Vec<Pair<'a>>,
    /// Files that are never read, with another stat.
    pub touched: Vec<Pair<'a>>,
    /// Files that now belong to the index, or no longer do.
    pub flipped: Vec<Pair<'a>>,
    /// New paths.
    pub added: Vec<&'a DiskFile>,
    /// Removed paths.
    pub removed: Vec<&'a KnownFile>,
    /// Contents that a removed file shares with another known file.
    repeated: HashSet<ContentHash>,
    /// The time before the walk started.
    now_ns: i64,
}

impl<'a> Diff<'a> {
    /// Keeps the known files under the paths in `unlisted`, which are folders that could not be listed and files that
    /// could not be checked, because those files may still exist.
    pub fn keep(&mut self, unlisted: &[String]) {
        let before = self.removed.len();
        self.removed.retain(|known| !unlisted.iter().any(|place| is_within(known.path.as_str(), place)));
        self.unchanged += before - self.removed.len();
    }

    /// Treats notes without a hash as unread, not as unreadable, so that they need not be hashed: for an index that has
    /// notes which have not been read yet.
    pub fn without_hash_is_unread(&mut self) {
        let suspect = std::mem::take(&mut self.suspect);
        (self.unread, self.suspect) = suspect.into_iter().partition(|pair| pair.known.hash.is_none());
    }

    /// Whether the content alone proves that two paths are of one file. It does not if other files have the same
    /// content, if it is short, or if the names differ in their numbers, because the notes of two days can have the
    /// same template.
    fn is_proof(&self, known: &KnownFile, file: &DiskFile) -> bool {
        let digits = |path: &VaultPath| path.stem().chars().filter(char::is_ascii_digit).collect::<String>();
        let is_own = known.hash.is_some_and(|hash| !self.repeated.contains(&hash));
        is_own && known.stat.size >= IDENTIFYING_BYTES && digits(&known.path) == digits(&file.path)
    }

    /// The files whose hashes [`settle`] needs, ordered by path. Equal content has equal size, so a new file is hashed
    /// only if a removed one had its size.
    pub fn to_hash(&self) -> Vec<&'a DiskFile> {
        let mut gone: Vec<u64> = self.removed.iter().filter(|k| k.hash.is_some()).map(|k| k.stat.size).collect();
        gone.sort_unstable();
        let may_be_renamed = |f: &&DiskFile| f.is_read() && gone.binary_search(&f.stat.size).is_ok();
        let mut files: Vec<&DiskFile> = self.suspect.iter().map(|pair| pair.file).collect();
        files.extend(self.added.iter().copied().filter(may_be_renamed));
        files.sort_unstable_by(|a, b| a.path.cmp(&b.path));
        files
    }
}

/// One change that brings the index in line with the disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Change<'a> {
    /// The file was removed.
    Removed(&'a KnownFile),
    /// The same file, or one of the same content, has a new path. `is_certain` if its inode or its content proves that
    /// it is the same file, because no other removed or new file matches.
    Renamed { pair: Pair<'a>, is_certain: bool },
    /// The file is now indexed and must be read, or is no longer indexed (`file.indexed` says which).
    Flipped(Pair<'a>),
    /// The file has other content under the same path, or is no longer readable.
    Changed(Pair<'a>),
    /// The file has the same content with another stat, or was checked once more: only stat and time are stored.
    Touched(Pair<'a>),
    /// The file is new.
    Added(&'a DiskFile),
}

/// Compares the `known` files with those on `disk`, both in any order; `now_ns` is the time before the walk started.
/// `O(n log n)`, or `O(n)` if both are ordered by path.
pub fn diff<'a>(known: &'a [KnownFile], disk: &'a [DiskFile], now_ns: i64) -> Diff<'a> {
    let all = known;
    let mut known: Vec<&KnownFile> = known.iter().collect();
    let mut disk: Vec<&DiskFile> = disk.iter().collect();
    known.sort_by(|a, b| a.path.cmp(&b.path));
    disk.sort_by(|a, b| a.path.cmp(&b.path));

    let mut diff = Diff { now_ns, ..Diff::default() };
    let mut known = known.into_iter().peekable();
    for file in disk {
        while let Some(gone) = known.next_if(|known| known.path < file.path) {
            diff.removed.push(gone);
        }
        match known.next_if(|known| known.path == file.path) {
            Some(known) => diff.same_path(Pair { known, file }),
            None => diff.added.push(file),
        }
    }
    diff.removed.extend(known);
    diff.repeated = repeated(&diff.removed, all);
    diff
}

/// The contents of some files that other files of `all` have, too.
fn repeated(some: &[&KnownFile], all: &[KnownFile]) -> HashSet<ContentHash> {
    let mut counts: HashMap<ContentHash, usize> = some.iter().filter_map(|known| Some((known.hash?, 0))).collect();
    if !counts.is_empty() {
        for hash in all.iter().filter_map(|known| known.hash) {
            counts.entry(hash).and_modify(|count| *count += 1);
        }
    }
    counts.into_iter().filter(|(_, count)| *count > 1).map(|(hash, _)| hash).collect()
}

impl<'a> Diff<'a> {
    fn same_path(&mut self, pair: Pair<'a>) {
        let Pair { known, file } = pair;
        if known.indexed != file.indexed {
            self.flipped.push(pair);
        } else if file.is_read() && (known.hash.is_none() || known.stat != file.stat || is_fresh(known, self.now_ns)) {
            self.suspect.push(pair);
        } else if known.stat != file.stat {
            self.touched.push(pair);
        } else {
            self.unchanged += 1;
        }
    }
}

/// Whether the file was so young at the last check that a later edit may not show in its stat. A check in the future,
/// which a clock that was set back leaves, proves nothing about later times.
fn is_fresh(known: &KnownFile, now_ns: i64) -> bool {
    is_young(&known.stat, known.checked_at_ns.min(now_ns))
}

/// Whether a file was changed so shortly before it was checked that another edit may not show in its stat.
pub(super) fn is_young(stat: &FileStat, checked_at_ns: i64) -> bool {
    stat.latest_ns() > checked_at_ns.saturating_sub(TRUST_NS)
}

/// Turns a [`Diff`] and the hashes of its [`Diff::to_hash`] into changes. A file without a hash could not be read.
///
/// A rename is detected, in this order, by the same inode, size, time and content; the same content and file name; the
/// same content. Empty files all have the same content, so only the first rule applies to them. If several files match,
/// the first in order of path is taken.
///
/// A file with the same stat and content is touched once it is old enough to be trusted from then on. Before that, it
/// would have to be hashed again the next time, so nothing is written.
///
/// The order of the result is: removed, renamed, flipped, changed, touched, added; each by path.
pub fn settle<'a>(diff: &Diff<'a>, hashes: &HashMap<VaultPath, ContentHash>) -> Vec<Change<'a>> {
    let (renamed, used) = renames(diff, hashes);
    let (mut changed, mut touched) = (diff.unread.clone(), diff.touched.clone());
    for pair in &diff.suspect {
        let hash = hashes.get(&pair.file.path);
        if hash != pair.known.hash.as_ref() {
            changed.push(*pair);
        } else if pair.known.stat != pair.file.stat || (hash.is_some() && !is_young(&pair.file.stat, diff.now_ns)) {
            touched.push(*pair);
        }
    }
    for pairs in [&mut changed, &mut touched] {
        pairs.sort_by(|a, b| a.file.path.cmp(&b.file.path));
    }

    let removed = diff.removed.iter().filter(|known| !used.contains(&known.id));
    let added = diff.added.iter().filter(|file| !renamed.contains_key(&file.path));
    let mut changes: Vec<Change> = removed.map(|known| Change::Removed(known)).collect();
    changes.extend(renamed.values().map(|&(pair, is_certain)| Change::Renamed { pair, is_certain }));
    changes.extend(diff.flipped.iter().copied().map(Change::Flipped));
    changes.extend(changed.into_iter().map(Change::Changed));
    changes.extend(touched.into_iter().map(Change::Touched));
    changes.extend(added.map(|file| Change::Added(file)));
    changes
}

/// The evidence that a removed file and a new one are the same.
#[derive(Clone, Copy)]
enum MatchKey {
    /// Inode, size and time; for files that are read, also the content.
    Inode,
    ContentAndName,
    Content,
}

impl MatchKey {
    /// A key that is equal for the same file. `None` if this evidence is not available.
    fn key<'a>(
        self,
        path: &'a VaultPath,
        stat: &FileStat,
        indexed: bool,
        hash: Option<ContentHash>,
    ) -> Option<impl Hash + Eq + use<'a>> {
        let kind = path.kind();
        let (can_tell, inode, name) = match self {
            Self::Inode => {
                let is_read = indexed && kind.is_note();
                (stat.inode != 0 && is_read == hash.is_some(), Some((stat.inode, stat.size, stat.mtime_ns)), None)
            }
            Self::ContentAndName => (hash.is_some() && stat.size > 0, None, Some(path.file_name())),
            Self::Content => (hash.is_some() && stat.size > 0, None, None),
        };
        can_tell.then_some((kind, indexed, hash, inode, name))
    }
}

/// The renames by new path, and the numbers of the files that were renamed.
fn renames<'a>(
    diff: &Diff<'a>,
    hashes: &HashMap<VaultPath, ContentHash>,
) -> (BTreeMap<&'a VaultPath, (Pair<'a>, bool)>, HashSet<FileId>) {
    let mut renamed: BTreeMap<&VaultPath, (Pair, bool)> = BTreeMap::new();
    let mut used: HashSet<FileId> = HashSet::new();
    for same_by in [MatchKey::Inode, MatchKey::ContentAndName, MatchKey::Content] {
        let mut gone: HashMap<_, VecDeque<&KnownFile>> = HashMap::new();
        for &known in diff.removed.iter().filter(|known| !used.contains(&known.id)) {
            if let Some(key) = same_by.key(&known.path, &known.stat, known.indexed, known.hash) {
                gone.entry(key).or_default().push_back(known);
            }
        }
        let key =
            |file: &'a DiskFile| same_by.key(&file.path, &file.stat, file.indexed, hashes.get(&file.path).copied());
        let mut new: HashMap<_, usize> = HashMap::new();
        for file in diff.added.iter().filter(|file| !renamed.contains_key(&file.path)) {
            key(file).into_iter().for_each(|key| *new.entry(key).or_default() += 1);
        }
        new.retain(|key, count| *count == 1 && gone.get(key).is_some_and(|gone| gone.len() == 1));
        for &file in &diff.added {
            if let Entry::Vacant(slot) = renamed.entry(&file.path)
                && let Some(key) = key(file)
                && let Some(known) = gone.get_mut(&key).and_then(VecDeque::pop_front)
            {
                let is_own = matches!(same_by, MatchKey::Inode) || diff.is_proof(known, file);
                used.insert(known.id);
                slot.insert((Pair { known, file }, is_own && new.contains_key(&key)));
            }
        }
    }
    (renamed, used)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    /// Long after every time in these tests.
    const NOW: i64 = 1_000 * 1_000_000_000;

    fn hash(content: u8) -> ContentHash {
        [content; 32]
    }

    fn stat(inode: u64, content: u8, seconds: i64) -> FileStat {
        let ns = seconds * 1_000_000_000;
        FileStat { size: [0, 100, 10][usize::from(content % 3)], mtime_ns: ns, ctime_ns: ns, inode }
    }

    fn known(id: u32, path: &str, content: u8, stat: FileStat) -> KnownFile {
        let path = VaultPath::new(path).unwrap();
        let hash = path.kind().is_note().then(|| hash(content));
        KnownFile { id: FileId(id), path, stat, indexed: true, hash, checked_at_ns: NOW }
    }

    fn on_disk(path: &str, stat: FileStat) -> DiskFile {
        let path = VaultPath::new(path).unwrap();
        DiskFile { path, disk: None, stat, indexed: true, symlink: false }
    }

    /// A file as `path inode content second`, the second being when it was last written.
    fn parse(line: &str) -> (&str, u64, u8, i64) {
        let parts: Vec<&str> = line.split(' ').collect();
        (parts[0], parts[1].parse().unwrap(), parts[2].parse().unwrap(), parts[3].parse().unwrap())
    }

    fn text(change: &Change) -> String {
        match change {
            Change::Removed(known) => format!("- {}", known.path),
            Change::Renamed { pair, is_certain } => {
                format!("{} {} {}", pair.known.path, if *is_certain { ">" } else { "?" }, pair.file.path)
            }
            Change::Flipped(pair) => format!("% {}", pair.file.path),
            Change::Changed(pair) => format!("* {}", pair.file.path),
            Change::Touched(pair) => format!(". {}", pair.file.path),
            Change::Added(file) => format!("+ {}", file.path),
        }
    }

    fn check(before: &[&str], after: &[&str], expected: &[&str]) {
        let before: Vec<KnownFile> = before
            .iter()
            .zip(0..)
            .map(|(line, id)| {
                let (path, inode, content, second) = parse(line);
                known(id, path, content, stat(inode, content, second))
            })
            .collect();
        let mut contents = HashMap::new();
        let after: Vec<DiskFile> = after
            .iter()
            .map(|line| {
                let (path, inode, content, second) = parse(line);
                let file = on_disk(path, stat(inode, content, second));
                contents.insert(file.path.clone(), hash(content));
                file
            })
            .collect();
        let diff = diff(&before, &after, NOW);
        let hashes = diff.to_hash().iter().map(|file| (file.path.clone(), contents[&file.path])).collect();
        let changes: Vec<String> = settle(&diff, &hashes).iter().map(text).collect();
        assert_eq!(changes, expected, "{before:?} -> {after:?}");
    }

    #[test]
    fn what_is_unread_is_not_hashed() {
        let mut before = [known(0, "a.md", 1, stat(1, 1, 1)), known(1, "b.md", 2, stat(2, 2, 1))];
        before[0].hash = None;
        let after = [on_disk("a.md", stat(1, 1, 1)), on_disk("b.md", stat(2, 2, 9))];
        let mut diff = diff(&before, &after, NOW);
        // Without a hash, it may be a file that cannot be read.
        assert_eq!((diff.to_hash().len(), settle(&diff, &[(after[1].path.clone(), hash(2))].into()).len()), (2, 1));
        diff.without_hash_is_unread();
        assert_eq!(diff.to_hash(), [&after[1]]);
        let changes = settle(&diff, &[(after[1].path.clone(), hash(3))].into());
        assert_eq!(changes.iter().map(text).collect::<Vec<_>>(), ["* a.md", "* b.md"]);
    }

    #[test]
    fn edits_additions_and_removals_are_told_apart() {
        check(&[], &[], &[]);
        check(&["a.md 1 1 5"], &["a.md 1 1 5"], &[]);
        check(&[], &["b.md 1 1 5", "a.md 2 1 5"], &["+ a.md", "+ b.md"]);
        check(&["a.md 1 1 5"], &[], &["- a.md"]);
        // Edited in place, and by an editor that writes a new file.
        check(&["a.md 1 1 5"], &["a.md 1 4 6"], &["* a.md"]);
        check(&["a.md 1 1 5"], &["a.md 9 4 6"], &["* a.md"]);
        check(&["a.md 1 1 5"], &["a.md 1 1 6"], &[". a.md"]);
        // An attachment is never read.
        check(&["a.png 1 1 5"], &["a.png 1 1 6"], &[". a.png"]);
    }

    #[test]
    fn what_could_not_be_listed_is_not_gone() {
        let known: Vec<KnownFile> = ["a.md", "f.md", "f/a.md", "f/g/b.md", "fg/c.md"]
            .iter()
            .zip(0..)
            .map(|(path, id)| known(id, path, 1, stat(u64::from(id) + 1, 1, 5)))
            .collect();
        let disk = [on_disk("new.md", stat(3, 1, 5))];
        let mut diff = diff(&known, &disk, NOW);
        diff.keep(&["f".to_string(), "a.md".to_string()]);
        let removed: Vec<&str> = diff.removed.iter().map(|known| known.path.as_str()).collect();
        assert_eq!((removed, diff.unchanged), (vec!["f.md", "fg/c.md"], 3));
    }

    #[test]
    fn a_file_with_the_same_content_or_inode_is_renamed() {
        check(&["a.md 1 1 5"], &["b.md 1 1 5"], &["a.md > b.md"]);
        // Moved to another disk and back: other inode and time, same content.
        check(&["a.md 1 1 5"], &["x/a.md 9 1 7"], &["a.md > x/a.md"]);
        check(&["note.md 1 1 5"], &["Note.md 1 1 5"], &["note.md > Note.md"]);
        check(&["a.png 1 1 5"], &["b.png 1 1 5"], &["a.png > b.png"]);
        check(&["a.png 1 1 5"], &["b.png 2 1 5"], &["- a.png", "+ b.png"]);
        // The inode was reused for another file.
        check(&["a.md 1 1 5"], &["b.md 1 4 5"], &["- a.md", "+ b.md"]);
        // Renamed and edited.
        check(&["a.md 1 1 5"], &["b.md 1 4 6"], &["- a.md", "+ b.md"]);
        // The same file name takes precedence over the order of paths, the inode over both.
        check(
            &["a/x.md 1 1 5", "b/y.md 2 1 5"],
            &["c/y.md 8 1 9", "d/x.md 9 1 9"],
            &["b/y.md ? c/y.md", "a/x.md ? d/x.md"],
        );
        check(
            &["a/x.md 1 1 5", "b/y.md 2 1 5"],
            &["c/y.md 1 1 5", "d/x.md 2 1 5"],
            &["a/x.md > c/y.md", "b/y.md > d/x.md"],
        );
        // A swap, and a chain.
        check(&["a.md 1 1 5", "b.md 2 2 5"], &["a.md 2 2 5", "b.md 1 1 5"], &["* a.md", "* b.md"]);
        check(&["a.md 1 1 5", "b.md 2 2 5"], &["b.md 1 1 5", "c.md 2 2 5"], &["- a.md", "* b.md", "+ c.md"]);
        // A folder takes the name of a file.
        check(&["a.md 1 1 5"], &["a.md/b.md 2 2 6"], &["- a.md", "+ a.md/b.md"]);
        check(&["a.md 1 1 5"], &["a.md/b.md 1 1 5"], &["a.md > a.md/b.md"]);
        // Another kind is another file; empty files are all alike.
        check(&["a.md 1 1 5"], &["a.canvas 1 1 5"], &["- a.md", "+ a.canvas"]);
        check(&["a.md 1 0 5"], &["b.md 2 0 6"], &["- a.md", "+ b.md"]);
        check(&["a.md 1 0 5"], &["b.md 1 0 5"], &["a.md > b.md"]);
        // One file was copied: the rename is the one with its inode.
        check(&["a.md 1 1 5"], &["b.md 7 1 5", "c.md 1 1 5"], &["a.md > c.md", "+ b.md"]);
        // Without it, either may be the rename. Two files became one; and a new file may be a copy of one that still
        // exists.
        check(&["a.md 1 1 5"], &["b.md 7 1 9", "c.md 8 1 9"], &["a.md ? b.md", "+ c.md"]);
        check(&["a.md 1 1 5", "b.md 2 1 5"], &["c.md 7 1 9"], &["- b.md", "a.md ? c.md"]);
        check(&["a.md 1 1 5", "b.md 2 1 5"], &["b.md 2 1 5", "c.md 7 1 9"], &["a.md ? c.md"]);
        // A short content, and names that differ in numbers.
        check(&["a.md 1 2 5"], &["b.md 7 2 9"], &["a.md ? b.md"]);
        check(&["day-1.md 1 1 5"], &["day-2.md 7 1 9"], &["day-1.md ? day-2.md"]);
        check(&["day-1.md 1 1 5"], &["on-day-1.md 7 1 9"], &["day-1.md > on-day-1.md"]);
    }

    #[test]
    fn a_file_that_was_young_when_seen_is_looked_into_again() {
        let file = on_disk("a.md", stat(1, 1, 100));
        for (seen, now, is_hashed, is_written) in [
            (100, 900, true, true),
            (101, 900, true, true),
            (103, 900, false, false),
            // Written after the check, as far as clocks show.
            (99, 900, true, true),
            // It would have to be checked the next time, too.
            (100, 101, true, false),
            // The clock was set back after the check.
            (900, 101, true, false),
            (900, 200, false, false),
        ] {
            let mut known = known(0, "a.md", 1, file.stat);
            known.checked_at_ns = seen * 1_000_000_000;
            let (known, disk) = ([known], [file.clone()]);
            let diff = diff(&known, &disk, now * 1_000_000_000);
            let hashes = diff.to_hash().iter().map(|file| (file.path.clone(), hash(1))).collect();
            let outcome = (diff.suspect.len() == 1, settle(&diff, &hashes).len() == 1);
            assert_eq!(outcome, (is_hashed, is_written), "seen {seen} now {now}");
        }
    }

    #[test]
    fn what_cannot_be_read_is_tried_again_and_loses_its_content_once() {
        let file = on_disk("a.md", stat(1, 1, 5));
        let moved_on = on_disk("a.md", stat(1, 1, 6));
        let readable = known(0, "a.md", 1, file.stat);
        let unreadable = KnownFile { hash: None, ..readable.clone() };
        let read: HashMap<_, _> = [(file.path.clone(), hash(1))].into();
        for (known, disk, hashes, expected) in [
            (&unreadable, &file, HashMap::new(), vec![]),
            (&unreadable, &moved_on, HashMap::new(), vec![". a.md"]),
            (&unreadable, &file, read.clone(), vec!["* a.md"]),
            (&readable, &moved_on, HashMap::new(), vec!["* a.md"]),
        ] {
            let (known, disk) = ([known.clone()], [disk.clone()]);
            let diff = diff(&known, &disk, NOW);
            let changes: Vec<String> = settle(&diff, &hashes).iter().map(text).collect();
            assert_eq!(changes, expected);
        }
    }

    #[test]
    fn what_is_excluded_or_no_longer_so_is_flipped_and_not_read_here() {
        let before = [known(0, "a.md", 1, stat(1, 1, 5))];
        let mut after = [on_disk("a.md", stat(1, 1, 6))];
        after[0].indexed = false;
        let diff = diff(&before, &after, NOW);
        assert!(diff.to_hash().is_empty());
        assert_eq!(settle(&diff, &HashMap::new()).iter().map(text).collect::<Vec<_>>(), ["% a.md"]);
    }

    #[derive(Debug, Clone)]
    struct Model {
        content: u8,
        inode: u64,
        second: i64,
        indexed: bool,
    }

    /// Few names, contents, inodes and times, so that all of them collide.
    fn files() -> impl Strategy<Value = BTreeMap<&'static str, Model>> {
        let names =
            prop::sample::select(vec!["a.md", "b.md", "A.md", "d/a.md", "d/b.md", "a.md/c.md", "c.canvas", "p.png"]);
        let model = (0u8..5, 1u64..6, 1i64..4, prop::bool::weighted(0.8));
        let model = model.prop_map(|(content, inode, second, indexed)| Model { content, inode, second, indexed });
        prop::collection::btree_map(names, model, 0..8)
    }

    fn model_known((path, model): (&&str, &Model), id: u32) -> KnownFile {
        let mut file = known(id, path, model.content, stat(model.inode, model.content, model.second));
        file.indexed = model.indexed;
        file.hash = file.hash.filter(|_| model.indexed);
        file
    }

    fn model_disk((path, model): (&&str, &Model)) -> DiskFile {
        DiskFile { indexed: model.indexed, ..on_disk(path, stat(model.inode, model.content, model.second)) }
    }

    /// An assumption of the walk: other content under a path comes with another stat.
    fn stamps_tell(before: &BTreeMap<&str, Model>, after: &mut BTreeMap<&'static str, Model>) {
        for (path, model) in after {
            if before.get(path).is_some_and(|old| old.content != model.content) {
                model.second += 10;
            }
        }
    }

    proptest! {
        #[test]
        fn nothing_changes_by_itself(files in files()) {
            let before: Vec<KnownFile> = files.iter().zip(0..).map(|(file, id)| model_known(file, id)).collect();
            let after: Vec<DiskFile> = files.iter().map(model_disk).collect();
            let diff = diff(&before, &after, NOW);
            prop_assert!(diff.to_hash().is_empty());
            prop_assert_eq!(diff.unchanged, files.len());
            prop_assert!(settle(&diff, &HashMap::new()).is_empty());
        }

        #[test]
        fn the_changes_make_what_is_known_what_is_on_disk(
            before in files(),
            (mut after, shuffle) in files().prop_flat_map(|f| { let n = f.len(); (Just(f), Just((0..n).collect::<Vec<_>>()).prop_shuffle()) }),
        ) {
            stamps_tell(&before, &mut after);
            let known: Vec<KnownFile> = before.iter().zip(0..).map(|(file, id)| model_known(file, id)).collect();
            let in_order: Vec<DiskFile> = after.iter().map(model_disk).collect();
            let disk: Vec<DiskFile> = shuffle.iter().map(|&i| in_order[i].clone()).collect();
            let content = |path: &VaultPath| hash(after[path.as_str()].content);

            let difference = diff(&known, &disk, NOW);
            let hashes = difference.to_hash().iter().map(|f| (f.path.clone(), content(&f.path))).collect();
            let changes = settle(&difference, &hashes);
            let sorted = diff(&known, &in_order, NOW);
            prop_assert_eq!(&changes, &settle(&sorted, &hashes), "in any order");

            // If they are applied one by one, no path ever has two files.
            let mut index: BTreeMap<VaultPath, KnownFile> = known.iter().map(|k| (k.path.clone(), k.clone())).collect();
            let mut next_id = 100;
            for change in &changes {
                let (old, file) = match change {
                    Change::Removed(known) => {
                        prop_assert!(index.remove(&known.path).is_some());
                        continue;
                    }
                    Change::Added(file) => (None, *file),
                    Change::Renamed { pair, .. } | Change::Flipped(pair) | Change::Changed(pair) | Change::Touched(pair) => {
                        (index.remove(&pair.known.path), pair.file)
                    }
                };
                let id = old.as_ref().map_or(FileId(next_id), |old| old.id);
                next_id += 1;
                // The files that a caller would read again; the others keep their content.
                let reads = matches!(change, Change::Added(_) | Change::Flipped(_) | Change::Changed(_));
                let hash = if reads { file.is_read().then(|| content(&file.path)) } else { old.and_then(|old| old.hash) };
                let new = KnownFile { id, path: file.path.clone(), stat: file.stat, indexed: file.indexed, hash, checked_at_ns: NOW };
                prop_assert!(index.insert(file.path.clone(), new).is_none());
            }
            let ids: BTreeSet<FileId> = index.values().map(|known| known.id).collect();
            prop_assert_eq!(ids.len(), index.len());
            let rebuilt: Vec<_> = in_order.iter().map(|f| (&f.path, f.stat, f.indexed, f.is_read().then(|| content(&f.path)))).collect();
            let updated: Vec<_> = index.values().map(|k| (&k.path, k.stat, k.indexed, k.hash)).collect();
            prop_assert_eq!(updated, rebuilt);
        }
    }
}
