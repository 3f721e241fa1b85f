//! Changes that are pending until a person approves them outside of the client, with `vault-agent approve CODE`.
//!
//! Each is a private file in the user's state folder. The server writes it, the command marks it as approved, and the
//! server removes it when it makes the change. Nothing is locked meanwhile, and a client may never come back. A code is
//! no secret: it only allows asking the person.

use std::path::PathBuf;

use jiff::{SignedDuration, Timestamp, Zoned};
use serde::{Deserialize, Serialize};
use vault_tools::approval::ChangeRequest;
use vault_tools::{Error, ErrorKind, Result, State};

use crate::state_folder::state_of_user;

/// How long a change stays pending, and how long an approval is valid.
const WAITS: SignedDuration = SignedDuration::from_mins(60);

/// The maximum number of pending changes; the oldest is dropped first.
const MOST: usize = 100;

/// The characters of codes, without letters and digits that look alike.
const LETTERS: &[u8] = b"23456789ABCDEFGHJKMNPQRSTUVWXYZ";
const CODE_LENGTH: usize = 6;

/// A change that waits for approval.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct PendingChange {
    pub code: String,
    /// The folder of the vault.
    pub vault: PathBuf,
    /// The index file in the arguments of the server.
    pub index: Option<PathBuf>,
    pub request: ChangeRequest,
    /// The time used for the preview, and again when the change is made.
    pub now: Zoned,
    /// The digest of the prepared change.
    pub digest: String,
    pub asked: Timestamp,
    pub approved: bool,
}

/// The pending changes.
#[derive(Debug, Clone)]
pub(crate) struct PendingChanges {
    folder: State,
}

impl PendingChanges {
    /// Opens the pending changes of the user.
    ///
    /// # Errors
    /// When the system names no folder for the state of programs.
    pub fn of_user() -> Result<Self> {
        Ok(Self { folder: state_of_user("approvals")? })
    }

    /// Adds a change under a new code, or returns the same change if it is already pending.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn add(&self, change: PendingChange) -> Result<PendingChange> {
        let mut waiting = self.all()?;
        let same = |other: &&PendingChange| {
            other.vault == change.vault && other.request == change.request && other.digest == change.digest
        };
        if let Some(known) = waiting.iter().find(same) {
            return Ok(known.clone());
        }
        waiting.sort_by_key(|other| other.asked);
        for oldest in waiting.iter().take((waiting.len() + 1).saturating_sub(MOST)) {
            self.remove(&oldest.code)?;
        }
        let is_taken = |code: &String| waiting.iter().any(|other| other.code == *code);
        let code = std::iter::repeat_with(new_code).find(|code| !is_taken(code)).unwrap_or_default();
        let change = PendingChange { code, ..change };
        self.write(&change)?;
        Ok(change)
    }

    /// Returns the pending change of the same request. An approved one is preferred, then the newest.
    ///
    /// # Errors
    /// When the folder cannot be read.
    pub fn of_request(&self, vault: &std::path::Path, request: &ChangeRequest) -> Result<Option<PendingChange>> {
        let mut same = self.all()?;
        same.retain(|other| other.vault == vault && other.request == *request);
        same.sort_by_key(|other| (other.approved, other.asked));
        Ok(same.pop())
    }

    /// Returns the change with a code, without regard to case and spaces.
    ///
    /// # Errors
    /// [`ErrorKind::NotFound`] if no change is pending under the code.
    pub fn get(&self, code: &str) -> Result<PendingChange> {
        let code: String = code.chars().filter(|letter| !letter.is_whitespace()).collect();
        self.all()?.into_iter().find(|change| change.code.eq_ignore_ascii_case(&code)).ok_or_else(|| {
            Error::new(ErrorKind::NotFound, format!("no change is pending under the code {code}"))
                .with_remedy("codes hold for an hour and for one change; ask the assistant for the change again")
        })
    }

    /// Records an approval. It is valid as long as a change stays pending, from now on.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn approve(&self, change: &PendingChange) -> Result<()> {
        self.write(&PendingChange { approved: true, asked: Timestamp::now(), ..change.clone() })
    }

    /// Removes a change that was made or declined. Returns whether it was still pending.
    ///
    /// # Errors
    /// When the file cannot be removed.
    pub fn remove(&self, code: &str) -> Result<bool> {
        self.folder.remove(&format!("{code}.json"))
    }

    fn write(&self, change: &PendingChange) -> Result<()> {
        let json = serde_json::to_vec_pretty(change).map_err(|error| Error::io("a change", &error.into()))?;
        self.folder.replace(&format!("{}.json", change.code), json)
    }

    /// Returns all pending changes, and removes expired ones.
    fn all(&self) -> Result<Vec<PendingChange>> {
        let entries = match std::fs::read_dir(self.folder.folder()) {
            Ok(entries) => entries,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(Error::io(self.folder.folder().display(), &error)),
        };
        let mut waiting = Vec::new();
        for entry in entries.flatten() {
            let name = entry.file_name().to_string_lossy().into_owned();
            let Some(code) = name.strip_suffix(".json") else { continue };
            let text = self.folder.read(&name)?.unwrap_or_default();
            let read = serde_json::from_str::<PendingChange>(&text).ok().filter(|change| change.code == code);
            match read.filter(|change| Timestamp::now().duration_since(change.asked) < WAITS) {
                Some(change) => waiting.push(change),
                None => _ = self.folder.remove(&name)?,
            }
        }
        Ok(waiting)
    }
}

fn new_code() -> String {
    (0..CODE_LENGTH).map(|_| char::from(LETTERS[fastrand::usize(..LETTERS.len())])).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn change(folder: &str) -> PendingChange {
        PendingChange {
            code: String::new(),
            vault: folder.into(),
            index: None,
            request: ChangeRequest::Undo { transaction: Some(1) },
            now: Zoned::now(),
            digest: "d".to_owned(),
            asked: Timestamp::now(),
            approved: false,
        }
    }

    #[test]
    fn a_change_waits_under_one_code_until_it_is_removed_or_too_old() {
        let folder = tempfile::tempdir().unwrap();
        let pending = PendingChanges { folder: State::at(folder.path().join("approvals")) };
        let first = pending.add(change("/a")).unwrap();
        assert_eq!(first.code.len(), CODE_LENGTH);
        assert_eq!(pending.add(change("/a")).unwrap().code, first.code);
        assert_ne!(pending.add(change("/b")).unwrap().code, first.code);
        pending.approve(&first).unwrap();
        assert!(pending.get(&format!(" {} ", first.code.to_lowercase())).unwrap().approved);
        let found = pending.of_request("/a".as_ref(), &first.request).unwrap().unwrap();
        assert!(found.approved && found.code == first.code);
        pending.remove(&first.code).unwrap();
        assert!(pending.get(&first.code).unwrap_err().to_string().contains("no change is pending"));

        let old = PendingChange { asked: Timestamp::now() - WAITS, ..change("/c") };
        let old = pending.add(old).unwrap();
        assert!(pending.get(&old.code).is_err());
    }

    #[test]
    fn the_oldest_gives_way() {
        let folder = tempfile::tempdir().unwrap();
        let pending = PendingChanges { folder: State::at(folder.path().join("approvals")) };
        for number in 0..=MOST {
            let asked = Timestamp::now() - SignedDuration::from_secs(200 - i64::try_from(number).unwrap());
            pending.add(PendingChange { asked, ..change(&format!("/{number}")) }).unwrap();
        }
        assert_eq!(pending.all().unwrap().len(), MOST);
        assert!(pending.all().unwrap().iter().all(|change| change.vault.as_os_str() != "/0"));
    }
}
