//! Tests with a real ONNX Runtime; and the errors without one.

use std::path::{Path, PathBuf};
use std::sync::Once;

use super::runtime;

/// A folder of models made for tests.
pub(crate) fn testdata(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata").join(name)
}

/// Whether `ORT_DYLIB_PATH` names a runtime to test models on. A test that needs one fails if the variable is not set,
/// and is skipped if it is empty.
pub(crate) fn has_runtime() -> bool {
    refuse_what_is_no_runtime();
    let named = std::env::var_os("ORT_DYLIB_PATH").expect("ORT_DYLIB_PATH names an ONNX Runtime, or nothing");
    !named.is_empty()
}

/// A process loads one runtime and keeps it, so a file that is not a runtime is rejected only before that.
fn refuse_what_is_no_runtime() {
    static DONE: Once = Once::new();
    DONE.call_once(|| {
        let error = runtime::load(Some(testdata("tiny-onnx/config.json"))).unwrap_err();
        assert!(error.to_string().contains("pip install onnxruntime"), "{error}");
        let error = runtime::load(Some(testdata("tiny-onnx"))).unwrap_err().to_string();
        assert!(error.contains("names this file"), "{error}");
    });
}

#[test]
fn what_is_no_runtime_is_refused() {
    refuse_what_is_no_runtime();
}
