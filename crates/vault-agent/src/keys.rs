//! The keys of providers: from the environment, or the system's keyring. They are never written as plain text, never
//! logged.

use std::fmt;

use vault_tools::{Error, ErrorKind};

use crate::providers::Choice;

/// A key, which no output shows.
#[derive(Clone)]
pub(crate) struct Key(String);

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Key(…)")
    }
}

impl Key {
    /// For a header.
    pub fn text(&self) -> &str {
        &self.0
    }
}

/// The key of a provider, if there is one.
pub(crate) fn find(choice: &Choice) -> Option<Key> {
    let variables = choice.key_variables().iter();
    let set = variables.filter_map(|name| std::env::var(name).ok()).map(|text| text.trim().to_owned());
    set.into_iter().find(|text| !text.is_empty()).map(Key)
}

/// The error of a provider whose key is missing.
pub(crate) fn missing(choice: &Choice) -> Error {
    let name = choice.name();
    let variable = choice.key_variables().first().copied().unwrap_or_default();
    Error::new(ErrorKind::Config, format!("there is no key for {name}"))
        .with_remedy(format!("vault-agent login {name} keeps one in the system's keyring, or set {variable}"))
}
