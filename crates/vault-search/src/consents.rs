//! The file of consents to send the notes of a vault to a remote model, in the user's state folder.

use std::fs::OpenOptions;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use vault_index::private_file::{private_file, private_folder};
use vault_index::{Error, Result, dirs};

/// The consent to send the notes of a vault to a model, stored as one JSON object per line.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Consent {
    pub vault: String,
    pub model: String,
}

impl Consent {
    pub fn new(vault: &Path, model: impl Into<String>) -> Self {
        Self { vault: vault.to_string_lossy().into_owned(), model: model.into() }
    }
}

/// The file that records consents. `None` if the system has no state folder: then consent is asked for each time.
pub(crate) struct ConsentFile(Option<PathBuf>);

impl ConsentFile {
    /// The file of the user.
    pub fn of_user() -> Self {
        Self(dirs::state_folder().map(|folder| folder.join("sending-agreed.jsonl")))
    }

    /// Returns all consents. Lines that cannot be parsed are skipped, so consent is asked for again.
    pub fn read(&self) -> Vec<Consent> {
        let text = self.0.as_ref().and_then(|file| std::fs::read_to_string(file).ok()).unwrap_or_default();
        text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
    }

    pub fn add(&self, consents: &[Consent]) -> Result<()> {
        let Some(file) = &self.0 else { return Ok(()) };
        if let Some(folder) = file.parent() {
            private_folder(folder)?;
        }
        drop(private_file(file)?);
        // Append, so that two concurrent commands lose nothing.
        let open = OpenOptions::new().append(true).open(file);
        open.and_then(|mut open| open.write_all(&lines(consents)?)).map_err(|error| Error::io(file, error))
    }

    /// Copies the consents of a vault that has moved to its new folder.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn adopt(&self, old: &Path, new: &Path) -> Result<()> {
        let all = self.read();
        let of_old = all.iter().filter(|consent| consent.vault == old.to_string_lossy());
        let moved = of_old.map(|consent| Consent::new(new, consent.model.clone()));
        let missing: Vec<Consent> = moved.filter(|consent| !all.contains(consent)).collect();
        if missing.is_empty() { Ok(()) } else { self.add(&missing) }
    }

    /// Removes the consents for a vault.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn forget(&self, vault: &Path) -> Result<()> {
        let Some(file) = &self.0 else { return Ok(()) };
        let mut consents = self.read();
        let before = consents.len();
        consents.retain(|consent| consent.vault != vault.to_string_lossy());
        if consents.len() == before {
            return Ok(());
        }
        lines(&consents).and_then(|lines| std::fs::write(file, lines)).map_err(|error| Error::io(file, error))
    }
}

fn lines(consents: &[Consent]) -> io::Result<Vec<u8>> {
    let mut lines = Vec::new();
    for consent in consents {
        serde_json::to_writer(&mut lines, consent)?;
        lines.push(b'\n');
    }
    Ok(lines)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_agreed_is_remembered_moved_and_forgotten() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("state/a.jsonl");
        let consent = |vault: &str| Consent::new(Path::new(vault), "openai:m@a");
        let memory = ConsentFile(Some(file));
        assert!(memory.read().is_empty());
        memory.add(&[consent("/a\n\"b")]).unwrap();
        memory.add(&[consent("/c")]).unwrap();
        assert_eq!(memory.read(), [consent("/a\n\"b"), consent("/c")]);

        memory.add(&[consent("/old")]).unwrap();
        for _ in 0..2 {
            memory.adopt(Path::new("/old"), Path::new("/new")).unwrap();
            assert_eq!(memory.read().len(), 4);
        }
        assert!(memory.read().contains(&consent("/new")));
        memory.forget(Path::new("/old")).unwrap();
        memory.forget(Path::new("/c")).unwrap();
        assert_eq!(memory.read(), [consent("/a\n\"b"), consent("/new")]);

        let nowhere = ConsentFile(None);
        nowhere.add(&[consent("/a")]).unwrap();
        assert!(nowhere.read().is_empty());
    }
}
