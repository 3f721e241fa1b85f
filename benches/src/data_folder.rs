//! The folder for data that is slow to create and the same in each run.

use std::io;
use std::path::{Path, PathBuf};

/// Returns the folder, which is `BENCH_DATA` from the environment, else `bench-data` in the target folder. Creates it
/// if it does not exist.
///
/// # Errors
/// If it cannot be created.
pub fn data_folder() -> io::Result<PathBuf> {
    let folder = match (std::env::var_os("BENCH_DATA"), std::env::var_os("CARGO_TARGET_DIR")) {
        (Some(folder), _) => PathBuf::from(folder),
        (None, Some(target)) => Path::new(&target).join("bench-data"),
        (None, None) => Path::new(env!("CARGO_MANIFEST_DIR")).join("../target/bench-data"),
    };
    std::fs::create_dir_all(&folder)?;
    folder.canonicalize()
}
