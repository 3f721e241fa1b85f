//! `vault-agent login` and `logout`: the key of a provider in the system's keyring.

use std::io::{IsTerminal, Read, stdin};

use clap::Args;
use vault_search::{CliResult, Failure, Outcome, note};

use crate::keys;
use crate::known_providers::ProviderChoice;
use crate::model::chosen_provider;
use crate::settings::{SettingArgs, Settings};

/// The maximum length of a key in bytes.
const LONGEST: u64 = 16 * 1024;

#[derive(Debug, Args)]
pub(super) struct LoginArgs {
    /// The provider, or the address of one without a name here
    pub provider: String,
}

#[derive(Debug, Args)]
pub(super) struct LogoutArgs {
    /// The provider, or its address
    pub provider: String,
}

pub(super) fn login(args: &LoginArgs) -> CliResult {
    let choice = provider(&args.provider)?;
    let name = choice.name();
    let key = match stdin().is_terminal() {
        true => rpassword::prompt_password(format!("Key for {name} (it is not shown): ")),
        false => {
            let mut text = String::new();
            stdin().take(LONGEST).read_to_string(&mut text).map(|_| text)
        }
    };
    let key = key.map_err(|error| Failure::Error(format!("the key cannot be read: {error}")))?;
    let key = keys::read(&key).map_err(|why| match key.trim().is_empty() {
        true => Failure::Error(format!("{why} (type it, or pipe it into this command)")),
        false => Failure::Error(why.to_owned()),
    })?;
    keys::keep(&choice, key)?;
    note(&format!("the key for {name} is in the system's keyring; vault-agent logout {name} removes it"));
    if let Some(found) = keys::of_variables(&choice) {
        note(&format!("{} is set, and overrides it", found.source()));
    }
    next_step(&name, &Settings::load(&SettingArgs::default())?).iter().for_each(|step| note(step));
    Ok(Outcome::Done)
}

pub(super) fn logout(args: &LogoutArgs) -> CliResult {
    let choice = provider(&args.provider)?;
    let name = choice.name();
    match keys::forget(&choice)? {
        true => note(&format!("the key for {name} is no longer in the system's keyring")),
        false => note(&format!("there was no key for {name} in the system's keyring")),
    }
    if let Some(found) = keys::of_variables(&choice) {
        note(&format!("{} is still set", found.source()));
    }
    Ok(Outcome::Done)
}

/// Returns what makes use of the key, if no provider is configured yet.
fn next_step(name: &str, settings: &Settings) -> Option<String> {
    matches!(chosen_provider(settings), Ok(None))
        .then(|| format!("next: `vault-agent config set provider {name}`; then `vault-agent chat` lists its models"))
}

fn provider(text: &str) -> CliResult<ProviderChoice> {
    let choice = ProviderChoice::parse(text).map_err(Failure::Error)?;
    match choice.key_variables() {
        [] => Err(Failure::Error(format!("{} takes no key", choice.name()))),
        _ => Ok(choice),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_a_provider_the_next_step_is_named() {
        let mut settings = Settings::default();
        let step = next_step("anthropic", &settings).unwrap();
        assert!(step.contains("vault-agent config set provider anthropic"), "{step}");
        settings.provider = Some("ollama".to_owned());
        assert_eq!(next_step("anthropic", &settings), None);
    }
}
