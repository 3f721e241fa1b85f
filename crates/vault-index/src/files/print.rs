//! What a look at the vault's files saw, in so few bytes that it can be kept and compared with a later look.
//!
//! Two looks with the same print saw the same files with the same content: where a stamp cannot tell that, since the
//! file was young, its bytes are compared. So whoever asks pays for a walk, not for the rows of the index.

use std::path::Path;
use std::sync::atomic::AtomicBool;

use super::diff::{ContentHash, TRUST_NS};
use super::read::{MAX_NOTE_BYTES, read_note};
use super::walk::{DiskFile, Walk, WalkRules, walk};
use crate::error::Result;
use crate::path::VaultPath;

/// With more young files than this, reading them all again costs more than it saves.
const MOST_YOUNG: usize = 1000;

/// What a sync saw of the vault's files. Equal prints: the same files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VaultPrint {
    /// Of names, stamps, and what is indexed.
    files: ContentHash,
    /// Notes that an edit may have changed since without a trace in their stamps, with the hash of what was read.
    young: Vec<(VaultPath, ContentHash)>,
}

impl VaultPrint {
    /// Of a walk that began at `now_ns`. `hash_of` is what was read of a note. `None` where it is not certain what is
    /// there.
    pub fn of(
        walked: &Walk,
        now_ns: i64,
        hash_of: &dyn Fn(&VaultPath) -> Result<Option<ContentHash>>,
    ) -> Result<Option<Self>> {
        if !walked.unlisted.is_empty() {
            return Ok(None);
        }
        let is_young = |file: &&DiskFile| file.is_read() && file.stamp.latest_ns() > now_ns.saturating_sub(TRUST_NS);
        let mut young = Vec::new();
        for file in walked.files.iter().filter(is_young) {
            match hash_of(&file.path)? {
                Some(hash) if young.len() < MOST_YOUNG => young.push((file.path.clone(), hash)),
                _ => return Ok(None),
            }
        }
        Ok(Some(Self { files: files_of(walked), young }))
    }

    /// Whether the vault is as it was seen.
    ///
    /// # Errors
    /// When the vault cannot be listed, or a glob of `rules` cannot be understood.
    pub fn is_of(&self, root: &Path, rules: &WalkRules) -> Result<bool> {
        let now = walk(root, rules, &AtomicBool::new(false))?;
        if !now.unlisted.is_empty() || files_of(&now) != self.files {
            return Ok(false);
        }
        let reads = |(path, hash): &(VaultPath, ContentHash)| {
            let at = now.files.binary_search_by(|file| file.path.cmp(path));
            let read = at.ok().and_then(|at| read_note(root, &now.files[at], MAX_NOTE_BYTES).ok());
            read.is_some_and(|content| content.hash == *hash)
        };
        Ok(self.young.iter().all(reads))
    }
}

fn files_of(walked: &Walk) -> ContentHash {
    let mut hasher = blake3::Hasher::new();
    let mut bytes = Vec::with_capacity(256);
    for file in &walked.files {
        bytes.clear();
        let (path, stamp) = (file.disk_path().as_os_str().as_encoded_bytes(), &file.stamp);
        bytes.extend((path.len() as u64).to_le_bytes());
        bytes.extend(path);
        bytes.extend(stamp.size.to_le_bytes());
        bytes.extend(stamp.modified_ns.to_le_bytes());
        bytes.extend(stamp.changed_ns.to_le_bytes());
        bytes.extend(stamp.inode.to_le_bytes());
        bytes.extend([u8::from(file.indexed), u8::from(file.symlink)]);
        hasher.update(&bytes);
    }
    *hasher.finalize().as_bytes()
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::error::ErrorKind;

    struct Folder(tempfile::TempDir);

    impl Folder {
        fn new() -> Self {
            let folder = Self(tempfile::tempdir().unwrap());
            fs::create_dir(folder.0.path().join("d")).unwrap();
            for (name, text) in [("a.md", "one"), ("d/b.md", "two"), ("p.png", "picture")] {
                fs::write(folder.0.path().join(name), text).unwrap();
            }
            folder
        }

        /// A print of it as it is; `later_ns` after now.
        fn print(&self, later_ns: i64) -> Option<VaultPrint> {
            let walked = walk(self.0.path(), &WalkRules::default(), &AtomicBool::new(false)).unwrap();
            let now_ns = walked.files.iter().map(|file| file.stamp.latest_ns()).max().unwrap() + later_ns;
            let read = |path: &VaultPath| fs::read(self.0.path().join(path.as_str())).unwrap();
            VaultPrint::of(&walked, now_ns, &|path| Ok(Some(*blake3::hash(&read(path)).as_bytes()))).unwrap()
        }

        fn shows(&self, print: &VaultPrint) -> bool {
            print.is_of(self.0.path(), &WalkRules::default()).unwrap()
        }
    }

    #[test]
    fn every_change_of_a_file_shows() {
        let changes: [fn(&Path); 6] = [
            |root| fs::write(root.join("new.md"), "x").unwrap(),
            |root| fs::write(root.join("new.png"), "x").unwrap(),
            |root| fs::remove_file(root.join("p.png")).unwrap(),
            |root| fs::rename(root.join("a.md"), root.join("A.md")).unwrap(),
            |root| fs::write(root.join("d/b.md"), "longer").unwrap(),
            // What was indexed is so no more.
            |root| fs::write(root.join(".vaultignore"), "d/").unwrap(),
        ];
        for (number, change) in changes.into_iter().enumerate() {
            let folder = Folder::new();
            let print = folder.print(10 * TRUST_NS).unwrap();
            assert!(print.young.is_empty() && folder.shows(&print), "{number}");
            change(folder.0.path());
            assert!(!folder.shows(&print), "{number}");
        }
        let gone = Folder::new();
        let print = gone.print(0).unwrap();
        fs::remove_dir_all(gone.0.path()).unwrap();
        let error = print.is_of(gone.0.path(), &WalkRules::default()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Vault);
    }

    /// A clock may tick too seldom to tell of the second of two edits.
    #[test]
    fn the_bytes_of_a_young_file_count() {
        let folder = Folder::new();
        let print = folder.print(0).unwrap();
        assert_eq!(print.young.len(), 2);
        assert!(folder.shows(&print));
        // As if another content had been there at the same stamp.
        let mut other = print.clone();
        other.young[1].1 = [7; 32];
        assert!(!folder.shows(&other));
        // What was not read, is not known.
        let walked = walk(folder.0.path(), &WalkRules::default(), &AtomicBool::new(false)).unwrap();
        let now_ns = walked.files[0].stamp.latest_ns();
        assert_eq!(VaultPrint::of(&walked, now_ns, &|_| Ok(None)).unwrap(), None);
    }
}
