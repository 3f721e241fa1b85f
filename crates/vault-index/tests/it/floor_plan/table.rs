//! The ten-second table of ARCHITECTURE.md: what it says to open can be opened.

use std::path::{Path, PathBuf};

use super::{no_faults, workspace};

/// All crates, those still to come included.
const CRATES: [&str; 6] = ["minilm", "vault-cli", "vault-index", "vault-tools", "agent-loop", "vault-agent"];

/// Reads the rows from the text: behind the table's head, up to the first line that is no row.
fn rows(text: &str) -> Vec<&str> {
    let head = text.lines().position(|line| line.starts_with("| if you ask "));
    let head = head.expect("ARCHITECTURE.md has the table `| if you ask | open |`");
    text.lines().skip(head + 2).take_while(|line| line.starts_with('|')).collect()
}

/// The paths a row says to open: what stands in backticks in its last column.
fn paths(row: &str) -> Vec<&str> {
    let open = row.trim_end_matches([' ', '|']).rsplit('|').next().unwrap_or_default();
    open.split('`').skip(1).step_by(2).collect()
}

/// What cannot be opened, and how many can.
///
/// A path is written from `crates/`, naming its crate; or from the `src/` of the crate named last; or, as a
/// neighbour to be copied, from the folder named before it; or from the workspace's root.
fn missing(root: &Path, text: &str) -> (Vec<String>, usize) {
    let (mut missing, mut found) = (Vec::new(), 0);
    let mut krate = PathBuf::new();
    for row in rows(text) {
        let mut folder = PathBuf::new();
        for path in paths(row) {
            let top = path.split('/').next().unwrap_or_default();
            if CRATES.contains(&top) {
                krate = root.join("crates").join(top);
            }
            if !krate.exists() && !root.join(top).exists() {
                continue; // Of a crate that is still to come.
            }
            let places =
                [root.join("crates").join(path), krate.join("src").join(path), folder.join(path), root.join(path)];
            match places.iter().find(|place| place.exists()) {
                Some(place) => {
                    found += 1;
                    folder = if place.is_dir() { place.clone() } else { place.parent().unwrap().to_path_buf() };
                }
                None => missing.push(format!("`{path}` of the row {row}")),
            }
        }
    }
    (missing, found)
}

#[test]
fn what_the_table_says_to_open_is_there() {
    let Some(root) = workspace() else { return };
    let text =
        std::fs::read_to_string(root.join("ARCHITECTURE.md")).expect("ARCHITECTURE.md lies in the workspace's root");
    let (missing, found) = missing(&root, &text);
    no_faults(&missing);
    assert!(found >= 10, "only {found} paths in the table");
}

#[test]
fn a_table_with_holes() {
    let root = tempfile::tempdir().unwrap();
    for file in
        ["crates/vault-index/src/links/resolve.rs", "crates/vault-index/src/embed/hashed.rs", "benches/record/a.txt"]
    {
        let file = root.path().join(file);
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        std::fs::write(file, "").unwrap();
    }
    let text = "text\n\n| if you ask | open |\n| --- | --- |\n\
        | resolved? | `vault-index/src/links/resolve.rs`, `links/gone.rs` |\n\
        | a model? | `embed/`, copy `hashed.rs` |\n\
        | `not this` undo? | `vault-tools/src/sandbox.rs`, `change/undo.rs` |\n\
        | fast? | `benches/record/`, `benches/eval` |\n\
        | loop? | `agent-loop/src/run.rs` |\n\nmore | `text.rs` |\n";
    let (missing, found) = missing(root.path(), text);
    assert_eq!(found, 4);
    assert_eq!(missing.len(), 2, "{missing:?}");
    assert!(missing[0].starts_with("`links/gone.rs`") && missing[1].starts_with("`benches/eval`"), "{missing:?}");
}
