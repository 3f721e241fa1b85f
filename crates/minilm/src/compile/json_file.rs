//! The JSON files of a model's folder.

use std::io;
use std::path::Path;

use serde_json::Value;

use crate::error::ModelError;

/// Reads a file; null if it does not exist.
pub(super) fn read_if_there(path: &Path) -> Result<Value, ModelError> {
    match std::fs::read(path) {
        Ok(bytes) => serde_json::from_slice(&bytes)
            .map_err(|error| ModelError::damaged(path, format!("this is not JSON: {error}"))),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Value::Null),
        Err(error) => Err(ModelError::Io(path.to_owned(), error)),
    }
}

/// Reads a file that a model must have.
pub(super) fn read(path: &Path) -> Result<Value, ModelError> {
    match read_if_there(path)? {
        Value::Null => Err(ModelError::Io(path.to_owned(), io::ErrorKind::NotFound.into())),
        value => Ok(value),
    }
}
