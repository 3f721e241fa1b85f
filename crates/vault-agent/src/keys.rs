//! The keys of providers: from the environment, else from the system's keyring. They are never written as plain text,
//! never logged.

mod keyring;

use std::fmt;

use vault_tools::{Error, ErrorKind, Result};

use crate::providers::ProviderChoice;

/// A key, which no output shows.
#[derive(Clone)]
pub(crate) struct Key {
    text: String,
    source: KeySource,
}

/// Where a key is from.
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
    /// For a header.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Where it is from.
    pub fn source(&self) -> KeySource {
        self.source
    }
}

/// The key of a provider, if there is one. The keyring is asked where no variable has it, and may ask a person for its
/// password; where there is none, there is no key.
pub(crate) fn find(choice: &ProviderChoice) -> Option<Key> {
    of_variables(choice).or_else(|| {
        let text = keyring::get(&choice.account()).ok().flatten()?;
        Some(Key { text, source: KeySource::Keyring })
    })
}

/// The key of a provider from the environment alone. A variable that is set to nothing is not set.
pub(crate) fn of_variables(choice: &ProviderChoice) -> Option<Key> {
    choice.key_variables().iter().find_map(|name| {
        let text = std::env::var(name).ok()?.trim().to_owned();
        (!text.is_empty()).then_some(Key { text, source: KeySource::Variable(name) })
    })
}

/// Keeps a key in the keyring.
///
/// # Errors
/// [`ErrorKind::Unsupported`] where there is no keyring, with the variable that can be set instead.
pub(crate) fn keep(choice: &ProviderChoice, key: &str) -> Result<()> {
    keyring::set(&choice.account(), key).map_err(|why| no_keyring(choice, &why))
}

/// Takes the key of a provider out of the keyring. Whether there was one.
///
/// # Errors
/// [`ErrorKind::Unsupported`] where there is no keyring.
pub(crate) fn forget(choice: &ProviderChoice) -> Result<bool> {
    keyring::remove(&choice.account()).map_err(|why| no_keyring(choice, &why))
}

fn no_keyring(choice: &ProviderChoice, why: &keyring::KeyringError) -> Error {
    let message = format!("the system's keyring cannot be used: {why}");
    Error::new(ErrorKind::Unsupported, message).with_remedy(format!("set {} instead", variable(choice)))
}

/// The error of a provider whose key is missing.
pub(crate) fn missing(choice: &ProviderChoice) -> Error {
    let name = choice.name();
    Error::new(ErrorKind::Config, format!("there is no key for {name}"))
        .with_remedy(format!("vault-agent login {name} keeps one in the system's keyring, or set {}", variable(choice)))
}

fn variable(choice: &ProviderChoice) -> &'static str {
    choice.key_variables().first().copied().unwrap_or_default()
}
