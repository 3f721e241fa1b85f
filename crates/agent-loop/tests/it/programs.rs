//! Programs and files that tests need: those of `tests/programs`, and real models, which only some machines have.

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

/// A file that only some machines have, by the variable that names it.
///
/// A test that needs it fails where the variable is not set, and is left out where it is set to nothing.
pub fn named_by(variable: &str) -> Option<PathBuf> {
    let file = std::env::var_os(variable);
    let file = file.unwrap_or_else(|| panic!("{variable} names the file for this test, or nothing: `{variable}=`"));
    (!file.is_empty()).then(|| file.into())
}
