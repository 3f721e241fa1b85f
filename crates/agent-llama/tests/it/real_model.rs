//! Real models and servers, which only some machines have.

use std::path::PathBuf;

/// A file that only some machines have, by the variable that names it.
///
/// A test that needs it fails where the variable is not set, and is left out where it is set to nothing.
pub fn named_by(variable: &str) -> Option<PathBuf> {
    let file = std::env::var_os(variable);
    let file = file.unwrap_or_else(|| panic!("{variable} names the file for this test, or nothing: `{variable}=`"));
    (!file.is_empty()).then(|| file.into())
}
