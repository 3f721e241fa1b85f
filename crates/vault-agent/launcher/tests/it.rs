//! The launcher passes on its name, its arguments and the exit code. This file is also the program that it starts.

use std::env::consts::EXE_SUFFIX;
use std::io::{self, Write};
use std::path::Path;
use std::process::{Command, exit};

fn main() {
    let own = std::env::current_exe().unwrap();
    if own.file_stem().unwrap() == "vault-agent" {
        let arguments: Vec<String> = std::env::args().skip(1).collect();
        let _ = write!(io::stdout(), "{arguments:?}");
        exit(7);
    }

    let folder = tempfile::tempdir().unwrap();
    let place = |file: &Path, name: &str| {
        let copy = folder.path().join(format!("{name}{EXE_SUFFIX}"));
        std::fs::copy(file, &copy).unwrap();
        copy
    };
    let launcher = place(Path::new(env!("CARGO_BIN_EXE_vault-launcher")), "vault-search");
    let start = || Command::new(&launcher).args(["two words", "\"", "--help"]).output().unwrap();

    let missing = start();
    assert_eq!(missing.status.code(), Some(2));
    assert!(String::from_utf8(missing.stderr).unwrap().contains("vault-agent"));

    place(&own, "vault-agent");
    let started = start();
    assert_eq!(started.status.code(), Some(7));
    let expected = r#"["--started-as", "vault-search", "two words", "\"", "--help"]"#;
    assert_eq!(String::from_utf8(started.stdout).unwrap(), expected);
}
