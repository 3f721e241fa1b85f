//! The programs of `tests/programs`, which tests start.

use std::path::{Path, PathBuf};

/// A program of `tests/programs`. It is an example of the package, so that cargo builds it with the tests and installs it
/// nowhere.
pub fn program(name: &str) -> PathBuf {
    let test = std::env::current_exe().unwrap();
    let folder = test.parent().and_then(Path::parent).unwrap().join("examples");
    let program = folder.join(format!("{name}{}", std::env::consts::EXE_SUFFIX));
    assert!(is_built(&program), "{program:?} is missing or old: `cargo test` builds it, if not told `--test it`");
    program
}

/// Whether the program is there and as new as all of its sources, which cargo lists beside it.
fn is_built(program: &Path) -> bool {
    let changed = |file: &Path| file.metadata().and_then(|metadata| metadata.modified()).ok();
    let Ok(list) = std::fs::read_to_string(program.with_extension("d")) else { return false };
    let (_, sources) = list.split_once(": ").expect("the program, then what it is made from");
    // A space in a path is escaped.
    let sources = sources.trim_end().replace("\\ ", "\0");
    let sources = sources.split(' ').map(|path| path.replace('\0', " "));
    sources.map(|path| changed(Path::new(&path))).all(|time| time.is_some() && time <= changed(program))
}
