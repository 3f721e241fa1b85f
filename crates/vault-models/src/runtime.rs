//! Finds ONNX Runtime on this machine, and checks its version before anything uses it.
//!
//! With a runtime that is too old, the crate ort deadlocks if it is used before it has the path of the runtime. So the
//! path is always set first, and then the version is checked.

use std::env::consts::{DLL_PREFIX, DLL_SUFFIX};
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use ort::LoadDynamicError;

use super::error::{ModelError, Result};

/// The variable that names the library, `libonnxruntime.so` or similar.
const VARIABLE: &str = "ORT_DYLIB_PATH";

/// Loads ONNX Runtime into the process, unless it is already loaded. If `ORT_DYLIB_PATH` is set, only that library (or
/// the library in that folder) is tried. Otherwise it takes the first one that is new enough among those that the
/// system finds, in Homebrew's folder, and in Python environments.
///
/// # Errors
/// If no runtime is found, or only older ones.
pub(super) fn find() -> Result<()> {
    load(std::env::var_os(VARIABLE).filter(|value| !value.is_empty()).map(PathBuf::from))
}

/// Implements [`find`], with the value of the variable.
pub(super) fn load(named: Option<PathBuf>) -> Result<()> {
    let candidates = match &named {
        Some(folder) if folder.is_dir() => libraries_in(folder),
        Some(file) => vec![file.clone()],
        None => usual_places(),
    };
    let mut too_old = None;
    let mut reason = None;
    for candidate in candidates {
        match ort::init_from(&candidate) {
            Ok(_) => return Ok(()),
            Err(LoadDynamicError::BadVersion { version_str, path }) => too_old = too_old.or(Some((version_str, path))),
            Err(error) => reason = Some(error.to_string()),
        }
    }
    let needed = ort::MINOR_VERSION;
    let error = match (too_old, named) {
        (Some((version, path)), _) => {
            ModelError::new(format!("ONNX Runtime {version} is too old, 1.{needed} or newer is needed")).at(path)
        }
        (None, Some(path)) => {
            let error = ModelError::new(format!("{VARIABLE} names this file, but it is not ONNX Runtime")).at(path);
            reason.into_iter().fold(error, ModelError::because)
        }
        (None, None) => ModelError::new("this model needs ONNX Runtime, which was not found"),
    };
    Err(error.with_remedy(format!(
        "run `pip install onnxruntime` and set {VARIABLE} to the file {DLL_PREFIX}onnxruntime… inside onnxruntime/capi"
    )).into())
}

/// The usual paths, in the order in which they are tried.
fn usual_places() -> Vec<PathBuf> {
    // Bare names use the search of the operating system.
    let mut places = vec![PathBuf::from(format!("{DLL_PREFIX}onnxruntime{DLL_SUFFIX}"))];
    if cfg!(target_os = "linux") {
        places.push(PathBuf::from("libonnxruntime.so.1"));
    }
    if cfg!(target_os = "macos") {
        places.extend(libraries_in(Path::new("/opt/homebrew/lib")));
    }
    let environments = ["VIRTUAL_ENV", "CONDA_PREFIX"].into_iter().filter_map(std::env::var_os).map(PathBuf::from);
    let user = std::env::home_dir().filter(|home| home.is_absolute()).map(|home| home.join(".local"));
    let system = ["/usr/local", "/usr"].map(PathBuf::from);
    for root in environments.chain(user).chain(system) {
        places.extend(libraries_in(&root.join("lib")));
        // Windows has packages directly in Lib, other systems in lib/python3.x.
        let versions = folders_in(&root.join("lib")).into_iter().filter(|folder| starts_with(folder, "python3"));
        for lib in versions.chain([root.join("Lib")]) {
            for packages in ["site-packages", "dist-packages"] {
                places.extend(libraries_in(&lib.join(packages).join("onnxruntime").join("capi")));
            }
        }
    }
    places
}

/// The runtime's libraries in a folder, the newest name first; empty if the folder cannot be read.
fn libraries_in(folder: &Path) -> Vec<PathBuf> {
    let is_runtime = |path: &PathBuf| {
        let name = path.file_name().and_then(OsStr::to_str).unwrap_or_default();
        // `libonnxruntime_providers_shared.so` is a different library.
        let rest = name.strip_prefix(DLL_PREFIX).and_then(|name| name.strip_prefix("onnxruntime"));
        rest.is_some_and(|rest| rest.starts_with('.') && rest.contains(DLL_SUFFIX))
    };
    let mut found: Vec<PathBuf> = entries(folder).into_iter().filter(is_runtime).collect();
    found.sort_by(|a, b| b.cmp(a));
    found
}

fn folders_in(folder: &Path) -> Vec<PathBuf> {
    let mut found = entries(folder);
    found.sort_by(|a, b| b.cmp(a));
    found
}

fn entries(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).into_iter().flatten();
    entries.filter_map(|entry| entry.ok().map(|entry| entry.path())).collect()
}

fn starts_with(path: &Path, start: &str) -> bool {
    path.file_name().and_then(OsStr::to_str).is_some_and(|name| name.starts_with(start))
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn only_the_runtimes_own_libraries_are_listed() {
        let folder = tempfile::tempdir().unwrap();
        for name in
            ["libonnxruntime.so.1.24.0", "libonnxruntime.so.1.31.1", "libonnxruntime_providers_shared.so", "x.py"]
        {
            std::fs::write(folder.path().join(name), "").unwrap();
        }
        let found = libraries_in(folder.path());
        assert_eq!(
            found,
            ["libonnxruntime.so.1.31.1", "libonnxruntime.so.1.24.0"].map(|name| folder.path().join(name))
        );
        assert!(libraries_in(Path::new("/nowhere")).is_empty());
    }
}
