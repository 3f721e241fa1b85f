//! How to handle a new file whose path already exists.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::error::{Error, ErrorKind, Result};
use crate::overlay::Overlay;
use crate::sandbox::SafePath;

/// What happens if the path exists.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Collision {
    /// It is an error.
    #[default]
    Error,
    /// A number is added to the name: `Note 1.md`.
    CreateUnique,
    /// The existing file is replaced.
    Overwrite,
}

/// Returns the error for an existing path.
pub(in crate::tools) fn taken(path: &SafePath) -> Error {
    Error::new(ErrorKind::Exists, "a file or folder of this name exists")
        .at(path)
        .with_remedy("choose another name, or another collisionStrategy: create-unique or overwrite")
}

/// Returns the first free path: itself, or its name with ` 1`, ` 2` and so on. A path that differs from an existing one
/// only in case is not free.
///
/// # Errors
/// A file system error; a name that becomes too long.
pub(in crate::tools) fn free(path: &SafePath, overlay: &mut Overlay<'_>) -> Result<SafePath> {
    if !overlay.is_taken(path)? {
        return Ok(path.clone());
    }
    let ending = path.extension().map_or_else(String::new, |ending| format!(".{ending}"));
    for number in 1..10_000 {
        let name = format!("{} {number}{ending}", path.stem());
        let candidate = match path.parent() {
            Some(folder) => folder.join(&name)?,
            None => SafePath::new(&name)?,
        };
        if !overlay.is_taken(&candidate)? {
            return Ok(candidate);
        }
    }
    Err(taken(path))
}
