//! The file list of a vault as one hash, so that a later look can be compared with it without the rows of the index.

use super::diff::{ContentHash, TRUST_NS};
use super::walk::{DiskFile, Walk};

/// The files of a vault as one walk found them: names, stats, and what is indexed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fingerprint(ContentHash);

impl Fingerprint {
    /// `None` where some folder could not be listed, so that it is not known what is there. One hash over some 70 bytes
    /// a file.
    pub fn of(walked: &Walk) -> Option<Self> {
        let mut bytes = Vec::with_capacity(96 * walked.files.len());
        for file in &walked.files {
            let (path, stat) = (file.disk_path().as_os_str().as_encoded_bytes(), &file.stat);
            bytes.extend((path.len() as u64).to_le_bytes());
            bytes.extend(path);
            bytes.extend(stat.size.to_le_bytes());
            bytes.extend(stat.mtime_ns.to_le_bytes());
            bytes.extend(stat.ctime_ns.to_le_bytes());
            bytes.extend(stat.inode.to_le_bytes());
            bytes.extend([u8::from(file.indexed), u8::from(file.symlink)]);
        }
        walked.unlisted.is_empty().then(|| Self(*blake3::hash(&bytes).as_bytes()))
    }
}

/// The notes that were so young at `now_ns`, the time before the walk began, that an edit since may not show in their
/// stats.
pub fn young_notes(walked: &Walk, now_ns: i64) -> Vec<&DiskFile> {
    let is_young = |file: &&DiskFile| file.is_read() && file.stat.latest_ns() > now_ns.saturating_sub(TRUST_NS);
    walked.files.iter().filter(is_young).collect()
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;
    use std::sync::atomic::AtomicBool;

    use super::*;
    use crate::files::{WalkRules, walk};

    fn look(root: &Path) -> Fingerprint {
        Fingerprint::of(&walk(root, &WalkRules::default(), &AtomicBool::new(false)).unwrap()).unwrap()
    }

    #[test]
    fn every_change_of_a_file_shows() {
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
            let before = look(root);
            assert_eq!(look(root), before, "{number}");
            change(root);
            assert_ne!(look(root), before, "{number}");
        }
    }
}
