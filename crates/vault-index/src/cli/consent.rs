//! Whether notes may leave this machine: asked once for each vault and model, and remembered.

use std::io::Write;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::settings::Sending;
use super::{Failure, terminal};
use crate::embed::{LoadOptions, load_with};
use crate::{Error, ErrorKind, ModelName, Result, place};

/// What somebody agreed to; one JSON object a line.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct Consent {
    vault: String,
    model: String,
}

/// The model's id, which names its address, if it sends texts elsewhere. No server is asked anything.
fn destination(model: &ModelName, base_url: Option<&str>) -> Result<Option<String>> {
    // The length of its vectors is not of interest here, and given so that nobody asks the server for it.
    let options = LoadOptions { base_url: base_url.map(str::to_string), dimensions: Some(1), ..LoadOptions::default() };
    match model {
        ModelName::OpenAi(_) | ModelName::Ollama(_) => {
            let model = load_with(model, &options)?;
            Ok(model.is_remote().then(|| model.id().to_string()))
        }
        _ => Ok(None),
    }
}

/// Makes sure that somebody agreed, asking on a terminal.
///
/// # Errors
/// [`Failure::Refused`] when nobody agreed.
pub(super) fn obtain(vault: &Path, model: &ModelName, base_url: Option<&str>, sending: Sending) -> Result<(), Failure> {
    let Some(id) = destination(model, base_url)? else { return Ok(()) };
    let wanted = Consent { vault: vault.to_string_lossy().into_owned(), model: id };
    let file = place::config_folder().map(|folder| folder.join("sending-agreed.jsonl"));
    if file.as_deref().is_some_and(|file| given(file).contains(&wanted)) {
        return Ok(());
    }
    let question = format!(
        "The notes of {} would leave this machine to be embedded by {}. Send them, now and from now on?",
        wanted.vault, wanted.model
    );
    if sending != Sending::Agreed && !(terminal::can_ask() && terminal::ask(&question)) {
        return Err(Failure::Refused(
            Error::new(ErrorKind::Model, format!("the notes would be sent to {}, and nobody agreed", wanted.model))
                .at(vault)
                .remedy(format!("agree once with `vault-index rebuild --model {model}{} --yes`", at_address(base_url))),
        ));
    }
    match file {
        Some(file) => Ok(remember(&file, &wanted)?),
        None => Ok(()),
    }
}

fn at_address(base_url: Option<&str>) -> String {
    base_url.map_or_else(String::new, |url| format!(" --base-url {url}"))
}

/// What was agreed to before. A line that cannot be read counts for nothing, so it is asked again.
fn given(file: &Path) -> Vec<Consent> {
    let text = std::fs::read_to_string(file).unwrap_or_default();
    text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
}

fn remember(file: &PathBuf, consent: &Consent) -> Result<()> {
    if let Some(folder) = file.parent() {
        place::private_folder(folder)?;
    }
    drop(place::private_file(file)?);
    let mut line = serde_json::to_string(consent).map_err(|error| Error::io(file, error.into()))?;
    line.push('\n');
    let appended = std::fs::OpenOptions::new().append(true).open(file);
    appended.and_then(|mut open| open.write_all(line.as_bytes())).map_err(|error| Error::io(file, error))
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
    fn what_leaves_the_machine() {
        let model = ModelName::OpenAi("m".into());
        assert_eq!(destination(&model, Some("http://127.0.0.1:8080/v1")).unwrap(), None);
        let away = destination(&model, Some("https://localhost.example.org")).unwrap();
        assert!(away.as_deref().is_some_and(|id| id.contains("localhost.example.org")), "{away:?}");
    }

    #[test]
    fn what_was_agreed_is_remembered() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("config/sending.jsonl");
        let consent = |vault: &str| Consent { vault: vault.into(), model: "openai:m@a".into() };
        assert!(given(&file).is_empty());
        remember(&file, &consent("/a\n\"b")).unwrap();
        remember(&file, &consent("/c")).unwrap();
        assert_eq!(given(&file), [consent("/a\n\"b"), consent("/c")]);
    }
}
