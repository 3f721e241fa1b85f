//! The folder for data that takes long to make and is the same from run to run.

use std::io;
use std::path::{Path, PathBuf};

/// `bench-data` in the target folder, made if it is not there; the environment's `BENCH_DATA` goes before it.
///
/// # Errors
/// When it cannot be made.
pub fn data_folder() -> io::Result<PathBuf> {
    let folder = match (std::env::var_os("BENCH_DATA"), std::env::var_os("CARGO_TARGET_DIR")) {
        (Some(folder), _) => PathBuf::from(folder),
        (None, Some(target)) => Path::new(&target).join("bench-data"),
        (None, None) => Path::new(env!("CARGO_MANIFEST_DIR")).join("../target/bench-data"),
    };
    std::fs::create_dir_all(&folder)?;
    folder.canonicalize()
}
