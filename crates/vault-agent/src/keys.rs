//! The keys of providers: from the environment, else from the system's keyring. They are never written as plain text,
//! never logged.

mod keyring;

use std::fmt;

use vault_tools::{Error, ErrorKind, Result};

use crate::providers::Choice;

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
pub(crate) fn find(choice: &Choice) -> Option<Key> {
    of_variables(choice).or_else(|| {
        let text = keyring::get(&choice.account()).ok().flatten()?;
        Some(Key { text, source: KeySource::Keyring })
    })
}

/// The key of a provider from the environment alone. A variable that is set to nothing is not set.
pub(crate) fn of_variables(choice: &Choice) -> Option<Key> {
    choice.key_variables().iter().find_map(|name| {
        let text = std::env::var(name).ok()?.trim().to_owned();
        (!text.is_empty()).then_some(Key { text, source: KeySource::Variable(name) })
    })
}

/// A key as a person gave it: its first line.
///
/// # Errors
/// What is wrong with it, in words.
pub(crate) fn read(text: &str) -> std::result::Result<&str, &'static str> {
    let key = text.lines().next().unwrap_or_default().trim();
    if key.is_empty() {
        return Err("no key was given");
    }
    if key.contains(|letter: char| letter.is_control() || letter.is_whitespace()) {
        return Err("a key holds no spaces (give the key alone, on one line)");
    }
    Ok(key)
}

/// Keeps a key in the keyring.
///
/// # Errors
/// [`ErrorKind::Unsupported`] where there is no keyring, with the variable that can be set instead.
pub(crate) fn keep(choice: &Choice, key: &str) -> Result<()> {
    keyring::set(&choice.account(), key).map_err(|why| no_keyring(choice, &why))
}

/// Takes the key of a provider out of the keyring. Whether there was one.
///
/// # Errors
/// [`ErrorKind::Unsupported`] where there is no keyring.
pub(crate) fn forget(choice: &Choice) -> Result<bool> {
    keyring::remove(&choice.account()).map_err(|why| no_keyring(choice, &why))
}

fn no_keyring(choice: &Choice, why: &keyring::Unusable) -> Error {
    let message = format!("the system's keyring cannot be used: {why}");
    Error::new(ErrorKind::Unsupported, message).with_remedy(format!("set {} instead", variable(choice)))
}

/// The error of a provider whose key is missing.
pub(crate) fn missing(choice: &Choice) -> Error {
    let name = choice.name();
    Error::new(ErrorKind::Config, format!("there is no key for {name}"))
        .with_remedy(format!("vault-agent login {name} keeps one in the system's keyring, or set {}", variable(choice)))
}

fn variable(choice: &Choice) -> &'static str {
    choice.key_variables().first().copied().unwrap_or_default()
}
