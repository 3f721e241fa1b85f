//! Rules for each file: it says what it is, is small, is named after something, and is safe; none of its tests is ignored.

use std::path::Path;

use super::tokens::tokens;
use super::{entries, no_problems, packages};

/// Lines a file may have, inline tests not counted.
const LONGEST: usize = 600;

/// Names that say nothing about what is inside.
const EMPTY_NAMES: [&str; 8] = ["util", "utils", "common", "helper", "helpers", "manager", "types", "misc"];

/// Where `unsafe` may stand: package and beginning of the path.
const UNSAFE: [(&str, &str); 5] = [
    ("vault-index", "src/vectors/kernel/"),
    ("vault-index", "src/store/vectors.rs"),
    ("minilm", "src/kernel/"),
    ("minilm", "src/mapped.rs"),
    ("benches", "src/peers/sqlite_vec.rs"),
];

/// The Rust files of a package as path and text; those of packages inside it are theirs.
fn sources(package: &Path, folder: &Path, found: &mut Vec<(String, String)>) {
    for entry in entries(folder) {
        if entry.is_dir() {
            if !entry.join("Cargo.toml").is_file() && !entry.ends_with("target") {
                sources(package, &entry, found);
            }
        } else if entry.extension().is_some_and(|extension| extension == "rs") {
            let path = entry.strip_prefix(package).unwrap().to_str().unwrap().replace('\\', "/");
            found.push((path, std::fs::read_to_string(&entry).unwrap()));
        }
    }
}

/// The lines of a file up to its inline tests, which stand at its end; none of files that are tests.
fn length(path: &str, text: &str) -> usize {
    let is_test = path.ends_with("tests.rs") || path.split('/').any(|part| part == "tests");
    let end = text.find("\n#[cfg(test)]\nmod tests {").unwrap_or(text.len());
    if is_test { 0 } else { text[..end].lines().count() }
}

#[test]
fn files_are_described_small_named_safe_and_tested() {
    let mut problems = Vec::new();
    for (package, folder) in packages() {
        let mut found = Vec::new();
        sources(&folder, &folder, &mut found);
        for (path, text) in found {
            let mut problem = |what: String| problems.push(format!("{package} {path}: {what}"));
            if !text.starts_with("//! ") {
                problem("the first line is no //! sentence".to_string());
            }
            if length(&path, &text) > LONGEST {
                problem(format!("{} lines, {LONGEST} at most", length(&path, &text)));
            }
            if let Some(part) = path.trim_end_matches(".rs").split('/').find(|part| EMPTY_NAMES.contains(part)) {
                problem(format!("{part} says nothing about what is inside"));
            }
            // `_tests.rs` is how the tests of a module end.
            if path.ends_with("_test.rs") {
                problem("product code is named like a test".to_string());
            }
            if text.lines().any(|line| line.trim_start().starts_with("#[ignore")) {
                problem("a test is ignored".to_string());
            }
            let may_be_unsafe = UNSAFE.iter().any(|(name, start)| *name == package && path.starts_with(start));
            if !may_be_unsafe && tokens(&text).contains(&"unsafe") {
                problem("unsafe".to_string());
            }
        }
    }
    no_problems(&problems);
}
