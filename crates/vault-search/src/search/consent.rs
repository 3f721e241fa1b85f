//! Consent to send notes to a remote model: asked for once per vault and model, and remembered.

use std::path::Path;

use vault_index::{Error, ErrorKind, LoadOptions, ModelName, Result};

use crate::consents::{Consent, ConsentFile};
use crate::{CliResult, Failure, can_ask, confirm};

/// Makes sure that the user consented to send the notes to the model, and asks on a terminal. `agreed` is `--yes`;
/// `command` is the command whose `--yes` the error names.
///
/// # Errors
/// [`Failure::Refused`] without consent.
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
        "To embed the notes of {}, their text is sent to {}. Send it, now and in future?",
        wanted.vault, wanted.model
    );
    if !(agreed || can_ask() && confirm(&question)) {
        return Err(Failure::Refused(
            Error::new(ErrorKind::Model, format!("sending the notes to {} needs your consent", wanted.model))
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

/// The model's id, which contains its address, if it sends texts to another machine. Connects to no server.
fn destination(model: &ModelName, base_url: Option<&str>) -> Result<Option<String>> {
    // With dimensions given, loading does not ask the server for them.
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
}
