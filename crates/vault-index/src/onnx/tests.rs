//! Whether tests have a real ONNX Runtime; and what is said where there is none.

use std::path::PathBuf;
use std::sync::OnceLock;

use super::*;

/// A folder of models made for tests.
pub(crate) fn testdata(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata").join(name)
}

/// Whether `ORT_DYLIB_PATH` names a runtime to test models on; says so where it does not.
///
/// A process loads one runtime and keeps it, so what is no runtime is refused only before: every test that
/// loads one asks here first.
#[allow(clippy::print_stderr)]
pub(crate) fn has_runtime() -> bool {
    static HAS: OnceLock<bool> = OnceLock::new();
    *HAS.get_or_init(|| {
        let error = runtime::load(Some(testdata("tiny-onnx/config.json"))).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Model);
        assert!(error.to_string().contains("pip install onnxruntime"), "{error}");
        let error = runtime::load(Some(testdata("tiny-onnx"))).unwrap_err().to_string();
        assert!(error.contains("names it"), "{error}");
        let has = std::env::var_os("ORT_DYLIB_PATH").is_some();
        if !has {
            eprintln!("skipped: set ORT_DYLIB_PATH to an ONNX Runtime to test models on it");
        }
        has
    })
}

#[test]
fn what_is_no_runtime_is_refused() {
    has_runtime();
}

#[test]
fn downloads_go_where_they_are_asked_to() {
    assert_eq!(download_folder(Some(Path::new("here"))).unwrap(), Path::new("here"));
}
