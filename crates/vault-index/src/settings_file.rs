//! A small settings file in TOML: read as a whole, or rejected with the invalid line and the valid settings.

use std::fs;
use std::io::{ErrorKind as Io, Read};
use std::path::Path;

use serde::de::DeserializeOwned;

use crate::error::{Error, ErrorKind, Result};

/// The size limit. A larger file is not a settings file.
const MAX_BYTES: u64 = 64 * 1024;

fn bad(file: &Path, remedy: &str, message: String) -> Error {
    Error::new(ErrorKind::Query, message).at(file).with_remedy(remedy)
}

/// Reads the text of a settings file; `None` if it does not exist. `remedy` says what it may contain.
///
/// # Errors
/// [`ErrorKind::Query`] for anything that is not a settings file; [`ErrorKind::Io`] when it cannot be read.
pub fn read_settings_file(file: &Path, remedy: &str) -> Result<Option<String>> {
    // Checked before it is opened, because opening a pipe would wait for a writer.
    match fs::metadata(file) {
        Ok(metadata) if metadata.is_file() => {}
        Ok(_) => return Err(bad(file, remedy, "is not a file".to_owned())),
        Err(error) if error.kind() == Io::NotFound => return Ok(None),
        Err(error) => return Err(Error::io(file, error)),
    }
    let mut text = String::new();
    fs::File::open(file)
        .and_then(|open| open.take(MAX_BYTES + 1).read_to_string(&mut text))
        .map_err(|error| Error::io(file, error))?;
    if text.len() as u64 > MAX_BYTES {
        return Err(bad(file, remedy, "is too large for a configuration file".to_owned()));
    }
    Ok(Some(text))
}

/// Parses a settings file; `None` if it does not exist. `remedy` says what it may contain.
///
/// # Errors
/// [`ErrorKind::Query`], with the line, when it has an invalid setting; [`ErrorKind::Io`] when it cannot be read.
pub fn read_toml<T: DeserializeOwned>(file: &Path, remedy: &str) -> Result<Option<T>> {
    let Some(text) = read_settings_file(file, remedy)? else { return Ok(None) };
    toml::from_str(&text).map(Some).map_err(|error| {
        let line = error.span().map(|span| 1 + text[..span.start.min(text.len())].matches('\n').count());
        let message = match line {
            Some(line) => format!("line {line}: {}", error.message()),
            None => error.message().to_owned(),
        };
        bad(file, remedy, message)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_settings_file() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("a.toml");
        let read = || read_toml::<std::collections::BTreeMap<String, u32>>(&file, "write numbers");
        assert!(read().unwrap().is_none());
        fs::write(&file, "a = 1\n").unwrap();
        assert_eq!(read().unwrap().unwrap()["a"], 1);
        fs::write(&file, "a = 1\nb = 'x'\n").unwrap();
        let error = read().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Query);
        let text = error.to_string();
        assert!(text.contains("a.toml: line 2: ") && text.ends_with("(write numbers)"), "{text}");
        fs::write(&file, "#".repeat(70_000)).unwrap();
        assert!(read().unwrap_err().to_string().contains("too large"));
        fs::remove_file(&file).unwrap();
        fs::create_dir(&file).unwrap();
        assert!(read().unwrap_err().to_string().contains("is not a file"));
    }
}
