//! The architecture, checked: the order of modules, what crates pull in, what a file may be.
//!
//! The order of `mod` lines is the order of dependencies, in `lib.rs` and in every `mod.rs` or `x.rs` that has
//! modules of its own. The rules, for names in code (a method call names no file):
//!
//! 1. Of modules in one list, a file in one of them names only items of those listed before it.
//! 2. A parent may use its children, and children the types, traits and constants that their parent's file defines.
//!    They call a function of that file only if it uses nothing of theirs; what both need belongs in a file listed
//!    first.
//! 3. No files use each other in a circle. (Types of a parent do not count, by rule 2.)
//! 4. An item belongs to the file that defines it, through whatever re-export it is named. `mod` lines and
//!    re-exports of what stands below (`pub use child::Item`) are not uses.
//!
//! All packages of the workspace are checked.

mod dependencies;
mod files;
mod modules;
mod order;
mod tokens;

use std::path::{Path, PathBuf};

use modules::Crate;

/// The workspace's root.
fn workspace() -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap();
    let manifest = std::fs::read_to_string(root.join("Cargo.toml")).unwrap();
    assert!(manifest.contains("[workspace]"), "{} is no workspace", root.display());
    root
}

/// The folders of all packages of the workspace, with their names.
fn packages() -> Vec<(String, PathBuf)> {
    let (root, mut folders) = (workspace(), Vec::new());
    ["crates", "benches", "examples"].iter().for_each(|name| find_packages(&root.join(name), &mut folders));
    let name_of = |folder: &PathBuf| {
        let manifest = std::fs::read_to_string(folder.join("Cargo.toml")).unwrap();
        let name = manifest.lines().find_map(|line| line.strip_prefix("name = ")).expect("a package has a name");
        name.trim_matches('"').to_string()
    };
    let packages: Vec<_> = folders.into_iter().map(|folder| (name_of(&folder), folder)).collect();
    assert!(packages.iter().any(|(name, _)| name == "vault-index"));
    packages
}

fn find_packages(folder: &Path, found: &mut Vec<PathBuf>) {
    if folder.join("Cargo.toml").is_file() {
        found.push(folder.to_path_buf());
    }
    for entry in entries(folder).into_iter().filter(|entry| entry.is_dir() && !entry.ends_with("target")) {
        find_packages(&entry, found);
    }
}

/// The libraries among the packages, by name.
fn crates() -> Vec<(String, Crate)> {
    let crates: Vec<_> =
        packages().into_iter().filter_map(|(name, folder)| Some((name, Crate::read(&folder.join("src"))?))).collect();
    assert!(crates.iter().any(|(_, crate_)| crate_.modules.len() > 20), "the modules are read");
    crates
}

fn entries(folder: &Path) -> Vec<PathBuf> {
    let mut entries: Vec<PathBuf> = std::fs::read_dir(folder)
        .unwrap_or_else(|error| panic!("{}: {error}", folder.display()))
        .map(|entry| entry.unwrap().path())
        .filter(|path| !path.file_name().unwrap().to_string_lossy().starts_with('.'))
        .collect();
    entries.sort();
    entries
}

/// Reports all problems at once.
fn no_problems(problems: &[String]) {
    assert!(problems.is_empty(), "\n  {}\n", problems.join("\n  "));
}
