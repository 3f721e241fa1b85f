//! The floor plan of ARCHITECTURE.md is kept: by the crates, their rooms, their files.
//!
//! Inside the workspace all of its packages are checked; from a published crate, which stands alone,
//! only itself.

mod arrows;
mod files;
mod source;
mod table;
mod tree;

use std::path::{Path, PathBuf};

use source::Source;

/// The workspace's root; `None`, said aloud, in a published crate.
#[allow(clippy::print_stderr)]
fn workspace() -> Option<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let is_workspace = std::fs::read_to_string(root.join("Cargo.toml")).is_ok_and(|text| text.contains("[workspace]"));
    if !is_workspace {
        eprintln!("this crate stands outside its workspace: what concerns the workspace is not checked");
        return None;
    }
    Some(root.canonicalize().expect("it was just read"))
}

/// A package: its folder and all Rust files in it.
struct Package {
    name: String,
    sources: Vec<Source>,
}

/// All packages of the workspace, or this one alone.
fn packages() -> Vec<Package> {
    let mut manifests = Vec::new();
    match workspace() {
        None => manifests.push(PathBuf::from(env!("CARGO_MANIFEST_DIR"))),
        Some(root) => {
            for folder in ["crates", "benches", "examples"] {
                find_packages(&root.join(folder), &mut manifests);
            }
        }
    }
    let packages: Vec<Package> = manifests.iter().map(|folder| Package::read(folder)).collect();
    assert!(packages.iter().any(|package| package.name == "vault-index"));
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

impl Package {
    fn read(folder: &Path) -> Self {
        let manifest = std::fs::read_to_string(folder.join("Cargo.toml")).unwrap();
        let name = manifest.lines().find_map(|line| line.strip_prefix("name = ")).expect("a package has a name");
        let mut sources = Vec::new();
        read_sources(folder, folder, &mut sources);
        source::mark_tests(&mut sources);
        Self { name: name.trim_matches('"').to_string(), sources }
    }

    /// The file at a path, if there is one.
    fn source(&self, path: &str) -> Option<&Source> {
        self.sources.iter().find(|source| source.path == path)
    }
}

/// The Rust files of one package: those of packages inside it are theirs.
fn read_sources(package: &Path, folder: &Path, sources: &mut Vec<Source>) {
    for entry in entries(folder) {
        if entry.is_dir() {
            if !entry.join("Cargo.toml").is_file() && !entry.ends_with("target") {
                read_sources(package, &entry, sources);
            }
        } else if entry.extension().is_some_and(|extension| extension == "rs") {
            let path = entry.strip_prefix(package).unwrap().to_str().unwrap().replace('\\', "/");
            sources.push(Source::new(path, &std::fs::read_to_string(&entry).unwrap()));
        }
    }
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

/// All faults at once: whoever broke three rules wants to know of three.
fn no_faults(faults: &[String]) {
    assert!(faults.is_empty(), "\n  {}\n", faults.join("\n  "));
}
