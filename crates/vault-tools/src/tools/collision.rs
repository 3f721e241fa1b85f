//! What happens when a file is to be where one already is.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::error::{Error, ErrorKind, Result};
use crate::overlay::Overlay;
use crate::sandbox::SafePath;

/// What happens when something is already there.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Collision {
    /// It is an error.
    #[default]
    Error,
    /// A number is put behind the name: `Note 1.md`.
    CreateUnique,
    /// What is there is replaced.
    Overwrite,
}

/// The error of a path that is taken.
pub(super) fn taken(path: &SafePath) -> Error {
    Error::new(ErrorKind::Exists, "there is already a file or folder of this name")
        .at(path)
        .with_remedy("choose another name, or another collisionStrategy: create-unique or overwrite")
}

/// The first path that is free, not even taken in other case: itself, else with ` 1`, ` 2` and so on behind its name.
///
/// # Errors
/// Those of looking; a name that gets too long.
pub(super) fn free(path: &SafePath, overlay: &mut Overlay<'_>) -> Result<SafePath> {
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
