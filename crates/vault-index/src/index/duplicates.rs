//! Notes with the same text.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use crate::error::Result;
use crate::index::Index;
use crate::path::{FileId, VaultPath};
use crate::report::DuplicateNotes;

/// A passage of more notes than this is a form or a template, not a sign of a copy.
const MAX_SHARED: usize = 20;

impl Index {
    /// Pairs of notes with at least the share `least` of their text in common, in equal passages. Titles, case and
    /// white space are ignored. The most similar pairs come first.
    ///
    /// The share is the Jaccard index of the passages, weighted by their number of terms. Linear in the number of
    /// passages and of pairs that have one in common.
    ///
    /// # Errors
    /// If the index cannot be read.
    pub fn duplicates(&self, least: f32) -> Result<Vec<DuplicateNotes>> {
        self.read(|store| {
            let mut passages: HashMap<FileId, BTreeMap<u32, u32>> = HashMap::new();
            let mut holders: HashMap<u32, BTreeSet<FileId>> = HashMap::new();
            for passage in store.passages()?.into_iter().filter(|passage| passage.said != 0) {
                *passages.entry(passage.note).or_default().entry(passage.said).or_default() += passage.length.max(1);
                holders.entry(passage.said).or_default().insert(passage.note);
            }
            let mut shared: HashMap<(FileId, FileId), u32> = HashMap::new();
            for (said, notes) in holders.iter().filter(|(_, notes)| (2..=MAX_SHARED).contains(&notes.len())) {
                let notes: Vec<FileId> = notes.iter().copied().collect();
                for (at, a) in notes.iter().enumerate() {
                    for b in &notes[at + 1..] {
                        *shared.entry((*a, *b)).or_default() += passages[a][said].min(passages[b][said]);
                    }
                }
            }
            let paths: HashMap<FileId, VaultPath> = store.paths()?.into_iter().collect();
            let length = |note: &FileId| passages[note].values().sum::<u32>();
            let mut found = Vec::new();
            for ((a, b), common) in shared {
                let share = common as f32 / (length(&a) + length(&b) - common).max(1) as f32;
                if let (true, Some(a), Some(b)) = (share >= least, paths.get(&a), paths.get(&b)) {
                    let (first, second) = if a < b { (a, b) } else { (b, a) };
                    found.push(DuplicateNotes { first: first.clone(), second: second.clone(), share });
                }
            }
            found.sort_by(|a, b| {
                b.share.total_cmp(&a.share).then_with(|| (&a.first, &a.second).cmp(&(&b.first, &b.second)))
            });
            Ok(found)
        })
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use crate::embed::HashedEmbedder;
    use crate::index::{Index, Options};

    #[test]
    fn copies_are_found_and_forms_are_not() {
        let folder = tempfile::tempdir().unwrap();
        let vault = folder.path().join("vault");
        std::fs::create_dir(&vault).unwrap();
        let text = "# Pruning\n\nCut the stems back in late winter, above a bud that looks outward.\n";
        let write = |name: String, text: &str| std::fs::write(vault.join(name), text).unwrap();
        write("a.md".into(), text);
        write("b copy.md".into(), text);
        write(
            "c.md".into(),
            &format!("{text}\n## More\n\nMuch more is said here, of bees and frames and of the smoke.\n"),
        );
        (0..30).for_each(|n| write(format!("form {n}.md"), "Weather:\n\nMood:\n\nWhat went well today, and why?\n"));
        let options =
            Options::new().index_file(folder.path().join("index.db")).embedder(Arc::new(HashedEmbedder::new()));
        let index = Index::open(&vault, options).unwrap();
        index.sync().unwrap();
        let found = |least| -> Vec<String> {
            let pairs = index.duplicates(least).unwrap().into_iter();
            pairs.map(|pair| format!("{} {}", pair.first, pair.second)).collect()
        };
        assert_eq!(found(0.9), ["a.md b copy.md"]);
        // A passage with additional text is a different passage.
        assert_eq!(found(0.2), ["a.md b copy.md"]);
    }
}
