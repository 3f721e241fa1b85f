//! The file list of a vault as one hash, so that a later walk can be compared with it without the rows of the index.

use super::diff::{ContentHash, is_young};
use super::walk::{DiskFile, Walk};

/// The files of a vault as one walk found them: names, stats, and which files are indexed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fingerprint {
    files: ContentHash,
    /// The time before the walk started.
    walked_at_ns: i64,
}

impl Fingerprint {
    /// The fingerprint of a walk that started after `now_ns`. `None` if a folder could not be listed, because its
    /// content is not known.
    pub fn of(walked: &Walk, now_ns: i64) -> Option<Self> {
        walked.unlisted.is_empty().then(|| Self { files: hash_of(walked), walked_at_ns: now_ns })
    }

    /// Compares a later walk. `None` if it found other files; otherwise the notes that were so young at the first walk
    /// that a later edit may not show in their stats.
    pub fn same_but<'w>(&self, later: &'w Walk) -> Option<Vec<&'w DiskFile>> {
        let is_young = |file: &&DiskFile| file.is_read() && is_young(&file.stat, self.walked_at_ns);
        let is_same = later.unlisted.is_empty() && hash_of(later) == self.files;
        is_same.then(|| later.files.iter().filter(is_young).collect())
    }
}

/// One hash over some 70 bytes per file, and over whether Obsidian's rules apply.
fn hash_of(walk: &Walk) -> ContentHash {
    let mut bytes = Vec::with_capacity(96 * walk.files.len());
    bytes.push(u8::from(walk.is_obsidian));
    for file in &walk.files {
        let (path, stat) = (file.disk_path().as_os_str().as_encoded_bytes(), &file.stat);
        bytes.extend((path.len() as u64).to_le_bytes());
        bytes.extend(path);
        bytes.extend(stat.size.to_le_bytes());
        bytes.extend(stat.mtime_ns.to_le_bytes());
        bytes.extend(stat.ctime_ns.to_le_bytes());
        bytes.extend(stat.inode.to_le_bytes());
        bytes.extend([u8::from(file.indexed), u8::from(file.symlink)]);
    }
    *blake3::hash(&bytes).as_bytes()
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;
    use std::sync::atomic::AtomicBool;

    use super::*;
    use crate::files::diff::TRUST_NS;
    use crate::files::{WalkRules, walk};

    fn walked(root: &Path) -> Walk {
        walk(root, &WalkRules::default(), &AtomicBool::new(false)).unwrap()
    }

    #[test]
    fn every_change_of_a_file_shows_or_is_named() {
        let changes: [fn(&Path); 6] = [
            |root| fs::write(root.join("new.md"), "x").unwrap(),
            |root| fs::write(root.join("new.png"), "x").unwrap(),
            |root| fs::remove_file(root.join("p.png")).unwrap(),
            |root| fs::rename(root.join("a.md"), root.join("A.md")).unwrap(),
            |root| fs::write(root.join("d/b.md"), "longer").unwrap(),
            // It is no longer indexed.
            |root| fs::write(root.join(".vaultignore"), "d/").unwrap(),
        ];
        for (number, change) in changes.into_iter().enumerate() {
            let folder = tempfile::tempdir().unwrap();
            let root = folder.path();
            fs::create_dir(root.join("d")).unwrap();
            for (name, text) in [("a.md", "one"), ("d/b.md", "two"), ("p.png", "picture")] {
                fs::write(root.join(name), text).unwrap();
            }
            let first = walked(root);
            let newest_ns = first.files.iter().map(|file| file.stat.latest_ns()).max().unwrap();
            let young_at = |now_ns| {
                let young = Fingerprint::of(&first, now_ns).unwrap().same_but(&first).unwrap();
                young.iter().map(|file| file.path.as_str()).collect::<Vec<_>>()
            };
            assert_eq!(young_at(newest_ns), ["a.md", "d/b.md"]);
            assert!(young_at(newest_ns + 10 * TRUST_NS).is_empty());
            let before = Fingerprint::of(&first, newest_ns).unwrap();
            assert!(before.same_but(&walked(root)).is_some(), "{number}");
            change(root);
            assert_eq!(before.same_but(&walked(root)), None, "{number}");
        }
    }
}
