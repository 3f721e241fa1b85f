//! The keys of providers, from the environment or the system's keyring. They are never written as plain text and never
//! logged.

mod keyring;

use std::fmt;

use vault_tools::{Error, ErrorKind, Result};

use crate::known_providers::ProviderChoice;

/// A key, which no output shows.
#[derive(Clone)]
pub(crate) struct Key {
    text: String,
    source: KeySource,
}

/// The source of a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum KeySource {
    Variable(&'static str),
    Keyring,
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Key").field("source", &self.source).finish_non_exhaustive()
    }
}

impl fmt::Display for KeySource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Variable(name) => f.write_str(name),
            Self::Keyring => f.write_str("the system's keyring"),
        }
    }
}

impl Key {
    /// The key, for a header.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The source of the key.
    pub fn source(&self) -> KeySource {
        self.source
    }
}

/// Finds the key of a provider. The keyring is only used if no variable has the key, because it may ask the person for
/// its password. Without a keyring there is no key.
pub(crate) fn find(choice: &ProviderChoice) -> Option<Key> {
    of_variables(choice).or_else(|| {
        let text = keyring::get(&choice.account()).ok().flatten()?;
        Some(Key { text, source: KeySource::Keyring })
    })
}

/// Finds the key of a provider in the environment only. A variable with an empty value counts as unset.
pub(crate) fn of_variables(choice: &ProviderChoice) -> Option<Key> {
    choice.key_variables().iter().find_map(|name| {
        let text = std::env::var(name).ok()?.trim().to_owned();
        (!text.is_empty()).then_some(Key { text, source: KeySource::Variable(name) })
    })
}

/// Returns the sources of the keys of these providers, in their order; `None` for a provider without a key. The keyring
/// stays locked.
pub(crate) fn sources(choices: &[ProviderChoice]) -> Vec<Option<KeySource>> {
    let accounts = choices.iter().map(ProviderChoice::account).collect();
    let in_keyring = keyring::having_keys(accounts).unwrap_or_default();
    let in_keyring = |choice: &ProviderChoice| in_keyring.contains(&choice.account()).then_some(KeySource::Keyring);
    choices.iter().map(|choice| of_variables(choice).map(|key| key.source()).or_else(|| in_keyring(choice))).collect()
}

/// Returns the key in a person's input: its first line.
///
/// # Errors
/// A message that says what is wrong with it.
pub(crate) fn read(text: &str) -> std::result::Result<&str, &'static str> {
    let key = text.lines().next().unwrap_or_default().trim();
    if key.is_empty() {
        return Err("no key was given");
    }
    if key.contains(|letter: char| letter.is_control() || letter.is_whitespace()) {
        return Err("a key has no spaces (enter only the key, on one line)");
    }
    Ok(key)
}

/// Stores a key in the keyring.
///
/// # Errors
/// [`ErrorKind::Unsupported`] if no keyring can be used; it names the variable to set instead.
pub(crate) fn keep(choice: &ProviderChoice, key: &str) -> Result<()> {
    keyring::set(&choice.account(), key).map_err(|why| no_keyring(choice, &why))
}

/// Removes the key of a provider from the keyring. Returns whether there was one.
///
/// # Errors
/// [`ErrorKind::Unsupported`] if no keyring can be used.
pub(crate) fn forget(choice: &ProviderChoice) -> Result<bool> {
    keyring::remove(&choice.account()).map_err(|why| no_keyring(choice, &why))
}

fn no_keyring(choice: &ProviderChoice, why: &keyring::KeyringError) -> Error {
    let message = format!("the system's keyring cannot be used: {why}");
    Error::new(ErrorKind::Unsupported, message).with_remedy(format!("set {} instead", variable(choice)))
}

/// Returns the error for a missing key.
pub(crate) fn missing(choice: &ProviderChoice) -> Error {
    let name = choice.name();
    Error::new(ErrorKind::Config, format!("there is no key for {name}")).with_remedy(format!(
        "vault-agent login {name} stores one in the system's keyring, or set {}",
        variable(choice)
    ))
}

fn variable(choice: &ProviderChoice) -> &'static str {
    choice.key_variables().first().copied().unwrap_or_default()
}
