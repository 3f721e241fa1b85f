//! Files say what they are in their first line, are small, are named after a question, and are safe.

use super::{no_faults, packages};

/// Lines a file may have without its tests.
const LONGEST: usize = 600;

/// Names that say nothing about what is inside.
const EMPTY_NAMES: [&str; 8] = ["util", "utils", "common", "helper", "helpers", "manager", "types", "misc"];

/// Where `unsafe` may stand: package, beginning of the path, and how many blocks, if they are counted.
const UNSAFE: &[(&str, &str, Option<usize>)] = &[
    ("vault-index", "src/vectors/kernel/", None),
    ("vault-index", "src/store/vectors.rs", Some(1)),
    ("minilm", "src/kernel/", None),
    ("benches", "src/peers/sqlite_vec.rs", Some(1)),
];

#[test]
fn the_first_line_says_what_a_file_is() {
    let mut faults = Vec::new();
    for package in packages() {
        for source in &package.sources {
            if source.text.lines().next().is_none_or(|line| !line.starts_with("//! ")) {
                faults.push(format!("{} {}: the first line is no //! sentence", package.name, source.path));
            }
        }
    }
    no_faults(&faults);
}

#[test]
fn files_are_small() {
    let mut faults = Vec::new();
    for package in packages() {
        for source in package.sources.iter().filter(|source| source.length() > LONGEST) {
            faults.push(format!("{} {}: {} lines, {LONGEST} at most", package.name, source.path, source.length()));
        }
    }
    no_faults(&faults);
}

#[test]
fn names_say_something() {
    let mut faults = Vec::new();
    for package in packages() {
        for source in &package.sources {
            let mut parts = source.path.trim_end_matches(".rs").split('/');
            if let Some(part) = parts.find(|part| EMPTY_NAMES.contains(part)) {
                faults.push(format!("{} {}: {part} says nothing about what is inside", package.name, source.path));
            }
        }
    }
    no_faults(&faults);
}

#[test]
fn unsafe_stands_in_its_places_only() {
    let mut faults = Vec::new();
    for package in packages() {
        // The rules themselves, which name what they forbid, are in tests/.
        for source in package.sources.iter().filter(|source| !source.path.starts_with("tests/")) {
            let blocks = source.code.matches("unsafe {").count();
            let items = ["unsafe fn", "unsafe impl", "unsafe trait"];
            let is_unsafe = blocks > 0 || items.iter().any(|item| source.code.contains(item));
            let place = UNSAFE.iter().find(|(name, start, _)| *name == package.name && source.path.starts_with(start));
            match place {
                None if is_unsafe => faults.push(format!("{} {}: unsafe", package.name, source.path)),
                Some((_, _, Some(allowed))) if blocks > *allowed => {
                    faults.push(format!("{} {}: {blocks} unsafe blocks, {allowed} allowed", package.name, source.path));
                }
                _ => {}
            }
        }
    }
    no_faults(&faults);
}
