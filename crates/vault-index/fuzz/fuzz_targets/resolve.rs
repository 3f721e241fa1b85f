//! In any small vault any link resolves or not, and the invariants of ranking and of link keys hold.
//!
//! An input is a text in a small alphabet, so that names collide: the link, its source note, and the vault's
//! files, one per line.

#![no_main]

use libfuzzer_sys::fuzz_target;
use vault_index::links::{Names, Rule, keys_leading_to, link_key, ranked, resolve, unresolved_key};
use vault_index::{FileId, VaultPath};

/// The meaning of the bytes, by their last four bits: `a/bc` is `a/b.md`.
const SIGNS: [&str; 16] =
    [" ", "a", "b", ".md", "..", "\u{e9}", "e\u{301}", "Σ", "ς", ".png", "\n", "\u{a0}", "A", "B.", ".", "/"];

fuzz_target!(|bytes: &[u8]| {
    let text: String = bytes.iter().map(|byte| SIGNS[usize::from(byte % 16)]).collect();
    let mut lines = text.split('\n');
    let link = lines.next().unwrap_or_default();
    let Some(source) = lines.next().and_then(VaultPath::new) else { return };
    let files = lines.filter_map(VaultPath::new).zip(0..).map(|(path, id)| (FileId(id), path));
    let mut names: Names = files.collect();

    let found = resolve(&names, link, &source);
    let order = ranked(&names, link, &source);
    assert_eq!(order.first().copied(), found.target, "{text:?}");
    unresolved_key(link);

    let Some(target) = found.target else { return };
    let path = names.remove(target).expect("links lead to files of the vault");
    if found.rule != Rule::SelfNote {
        // Removing a file affects only links under its own keys.
        assert!(keys_leading_to(&path).any(|key| key == link_key(link)), "{text:?}");
    }
    if let Some(second) = order.get(1) {
        assert_eq!(resolve(&names, link, &source).target, Some(*second), "{text:?}");
    }
    // Adding a file again changes nothing else.
    names.insert(target, &path);
    assert_eq!(resolve(&names, link, &source), found, "{text:?}");
});
