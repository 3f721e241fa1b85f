//! Consent to send notes to a remote model: asked for once per vault and model, and remembered.

use std::fs::OpenOptions;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use vault_index::private_file::{private_file, private_folder};
use vault_index::{Error, ErrorKind, LoadOptions, ModelName, Result, dirs};

use crate::{CliResult, Failure, can_ask, confirm};

/// What somebody agreed to; one JSON object per line.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Consent {
    vault: String,
    model: String,
}

impl Consent {
    fn new(vault: &Path, model: impl Into<String>) -> Self {
        Self { vault: vault.to_string_lossy().into_owned(), model: model.into() }
    }
}

/// Makes sure that somebody agreed, asking on a terminal. `command` is the one that takes `--yes`.
///
/// # Errors
/// [`Failure::Refused`] when nobody agreed.
pub(super) fn obtain(
    vault: &Path,
    (model, base_url): &(ModelName, Option<String>),
    agreed: bool,
    command: &str,
) -> CliResult<()> {
    let base_url = base_url.as_deref();
    let Some(id) = destination(model, base_url)? else { return Ok(()) };
    let wanted = Consent::new(vault, id);
    let memory = ConsentFile::of_user();
    if memory.read().contains(&wanted) {
        return Ok(());
    }
    let question = format!(
        "The notes of {} would leave this machine, to be embedded by {}. Send them, now and in future?",
        wanted.vault, wanted.model
    );
    if !(agreed || can_ask() && confirm(&question)) {
        return Err(Failure::Refused(
            Error::new(ErrorKind::Model, format!("the notes would be sent to {}, and nobody agreed", wanted.model))
                .at(vault)
                .with_remedy(format!(
                    "agree once with `vault-index {command} --model {model}{} --yes`",
                    at_address(base_url)
                ))
                .one_line(),
        ));
    }
    Ok(memory.add(&[wanted])?)
}

/// The model's id, which names its address, if it sends texts elsewhere. No server is asked anything.
fn destination(model: &ModelName, base_url: Option<&str>) -> Result<Option<String>> {
    // Dimensions are given only so that the server is not asked for them.
    let mut options = LoadOptions::default();
    (options.base_url, options.dimensions) = (base_url.map(str::to_string), Some(1));
    match model {
        ModelName::OpenAi(_) | ModelName::Ollama(_) => {
            let model = model.load(&options)?;
            Ok(model.is_remote().then(|| model.id().to_string()))
        }
        _ => Ok(None),
    }
}

fn at_address(base_url: Option<&str>) -> String {
    base_url.map_or_else(String::new, |url| format!(" --base-url {url}"))
}

/// The file that records consent. Where the system names no folder there is none, and consent is asked for each time.
pub(super) struct ConsentFile(Option<PathBuf>);

impl ConsentFile {
    /// That of the user.
    pub(super) fn of_user() -> Self {
        Self(dirs::state_folder().map(|folder| folder.join("sending-agreed.jsonl")))
    }

    /// A line that cannot be read counts for nothing, so it is asked again.
    fn read(&self) -> Vec<Consent> {
        let text = self.0.as_ref().and_then(|file| std::fs::read_to_string(file).ok()).unwrap_or_default();
        text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
    }

    fn add(&self, consents: &[Consent]) -> Result<()> {
        let Some(file) = &self.0 else { return Ok(()) };
        if let Some(folder) = file.parent() {
            private_folder(folder)?;
        }
        drop(private_file(file)?);
        // Appended, so that two commands at once lose nothing.
        let open = OpenOptions::new().append(true).open(file);
        open.and_then(|mut open| open.write_all(&lines(consents)?)).map_err(|error| Error::io(file, error))
    }

    /// Carries consent over to the new folder of a vault that has moved.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub(super) fn adopt(&self, old: &Path, new: &Path) -> Result<()> {
        let all = self.read();
        let of_old = all.iter().filter(|consent| consent.vault == old.to_string_lossy());
        let moved = of_old.map(|consent| Consent::new(new, consent.model.clone()));
        let missing: Vec<Consent> = moved.filter(|consent| !all.contains(consent)).collect();
        if missing.is_empty() { Ok(()) } else { self.add(&missing) }
    }

    /// Forgets what was agreed to for a vault.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub(super) fn forget(&self, vault: &Path) -> Result<()> {
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
    fn models_on_this_machine_need_no_consent() {
        for model in [ModelName::MiniLm, ModelName::FastEmbed("x".into()), ModelName::Onnx("x".into())] {
            assert_eq!(destination(&model, Some("https://example.org")).unwrap(), None);
        }
    }

    #[cfg(feature = "http")]
    #[test]
    fn where_a_remote_embedder_sends() {
        let model = ModelName::OpenAi("m".into());
        assert_eq!(destination(&model, Some("http://127.0.0.1:8080/v1")).unwrap(), None);
        let away = destination(&model, Some("https://localhost.example.org")).unwrap();
        assert!(away.as_deref().is_some_and(|id| id.contains("localhost.example.org")), "{away:?}");
    }

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
