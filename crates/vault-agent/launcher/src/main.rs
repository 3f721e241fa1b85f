//! Starts `vault-agent` from its own folder under the name of its own file: a copy named `vault-search.exe` is the
//! command `vault-search`. Archives for Windows have such copies, because zip archives keep no links.

use std::env::consts::EXE_SUFFIX;
use std::io::{self, Write};
use std::process::{Command, exit};

fn main() {
    exit(run().unwrap_or_else(|error| {
        let _ = writeln!(io::stderr(), "error: vault-agent{EXE_SUFFIX} beside this program cannot be started: {error}");
        2
    }));
}

/// Waits for the program and returns its exit code.
fn run() -> io::Result<i32> {
    // A console sends Ctrl-C to both. The program decides how to handle it, and the prompt returns when the program
    // ends. Signals must not be ignored, because a child inherits that.
    ctrlc::set_handler(|| ()).map_err(io::Error::other)?;
    let file = std::env::current_exe()?;
    let name = file.file_stem().unwrap_or_default().to_ascii_lowercase();
    let mut program = Command::new(file.with_file_name(format!("vault-agent{EXE_SUFFIX}")));
    let status = program.arg("--started-as").arg(name).args(std::env::args_os().skip(1)).status()?;
    Ok(status.code().unwrap_or(1))
}
