//! The system's keyring: the desktop's secret service on Linux and the BSDs, the keychain on macOS, the credential
//! manager on Windows.

use std::fmt;
use std::sync::mpsc::channel;
use std::time::Duration;

/// The service name of all keys in the keyring.
const SERVICE: &str = "vault-agent";

/// How long the keyring may take, including the time in which a person unlocks it.
const WITHIN: Duration = Duration::from_secs(120);

/// How long the keyring may take to list its accounts, which delays a list of models.
const LISTED_WITHIN: Duration = Duration::from_secs(2);

/// The reason why no keyring can be used, in words.
#[derive(Debug)]
pub(super) struct KeyringError(String);

impl fmt::Display for KeyringError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Returns the key of an account, if there is one.
///
/// # Errors
/// No keyring; a keyring that stays locked.
pub(super) fn get(account: &str) -> Result<Option<String>, KeyringError> {
    let account = account.to_owned();
    on_a_thread(WITHIN, move || system::get(&account))
}

/// Stores the key of an account, and replaces an older one.
///
/// # Errors
/// Those of [`get`].
pub(super) fn set(account: &str, key: &str) -> Result<(), KeyringError> {
    let (account, key) = (account.to_owned(), key.to_owned());
    on_a_thread(WITHIN, move || system::set(&account, &key))
}

/// Removes the key of an account. Returns whether there was one.
///
/// # Errors
/// Those of [`get`].
pub(super) fn remove(account: &str) -> Result<bool, KeyringError> {
    let account = account.to_owned();
    on_a_thread(WITHIN, move || system::remove(&account))
}

/// Returns those of these accounts that have a key; on macOS none. It asks the person nothing, also if the keyring is
/// locked.
///
/// # Errors
/// No keyring, or one that does not answer soon.
pub(super) fn having_keys(accounts: Vec<String>) -> Result<Vec<String>, KeyringError> {
    on_a_thread(LISTED_WITHIN, move || system::having_keys(accounts))
}

/// Runs the closure on a separate thread, because keyrings block and callers may be within a runtime. After this time
/// it is an error, and the thread goes on alone.
fn on_a_thread<T: Send + 'static>(
    time: Duration,
    act: impl FnOnce() -> Result<T, KeyringError> + Send + 'static,
) -> Result<T, KeyringError> {
    let (send, receive) = channel();
    std::thread::spawn(move || send.send(act()));
    receive.recv_timeout(time).unwrap_or_else(|_| Err(KeyringError("it does not answer".to_owned())))
}

#[cfg(all(unix, not(target_vendor = "apple")))]
mod system {
    use std::collections::HashMap;
    use std::future::Future;

    use secret_service::{EncryptionType, Error, Item, SecretService};

    use super::{KeyringError, SERVICE};

    fn run<T>(work: impl Future<Output = Result<T, Error>>) -> Result<T, KeyringError> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(|error| KeyringError(error.to_string()))?;
        runtime.block_on(work).map_err(|error| {
            KeyringError(match error {
                Error::Unavailable | Error::Zbus(_) | Error::ZbusFdo(_) => "no secret service answers".to_owned(),
                Error::Locked | Error::Prompt | Error::PromptDisconnected => "it stays locked".to_owned(),
                Error::NoResult => "it has no collection to keep keys in".to_owned(),
                other => other.to_string(),
            })
        })
    }

    /// The attributes that the crate `keyring` uses, too.
    fn attributes(account: &str) -> HashMap<&str, &str> {
        HashMap::from([("service", SERVICE), ("username", account)])
    }

    pub fn get(account: &str) -> Result<Option<String>, KeyringError> {
        run(async {
            let service = SecretService::connect(EncryptionType::Dh).await?;
            let found = service.search_items(attributes(account)).await?;
            let Some(item) = found.unlocked.first().or(found.locked.first()) else { return Ok(None) };
            unlock(item).await?;
            Ok(String::from_utf8(item.get_secret().await?).ok())
        })
    }

    pub fn having_keys(accounts: Vec<String>) -> Result<Vec<String>, KeyringError> {
        run(async {
            let service = SecretService::connect(EncryptionType::Plain).await?;
            let found = service.search_items(HashMap::from([("service", SERVICE)])).await?;
            let mut having = Vec::new();
            for item in found.unlocked.iter().chain(&found.locked) {
                having.extend(item.get_attributes().await?.remove("username"));
            }
            Ok(accounts.into_iter().filter(|account| having.contains(account)).collect())
        })
    }

    pub fn set(account: &str, key: &str) -> Result<(), KeyringError> {
        run(async {
            let service = SecretService::connect(EncryptionType::Dh).await?;
            let collection = match service.get_default_collection().await {
                Err(Error::NoResult) => service.get_any_collection().await?,
                collection => collection?,
            };
            if collection.is_locked().await? {
                collection.unlock().await?;
            }
            let label = format!("{SERVICE}: {account}");
            let kind = "text/plain";
            collection.create_item(&label, attributes(account), key.as_bytes(), true, kind).await.map(drop)
        })
    }

    pub fn remove(account: &str) -> Result<bool, KeyringError> {
        run(async {
            let service = SecretService::connect(EncryptionType::Dh).await?;
            let found = service.search_items(attributes(account)).await?;
            let items = || found.unlocked.iter().chain(&found.locked);
            for item in items() {
                unlock(item).await?;
                item.delete().await?;
            }
            Ok(items().next().is_some())
        })
    }

    /// Asks the person for the keyring's password if it is locked.
    async fn unlock(item: &Item<'_>) -> Result<(), Error> {
        if item.is_locked().await? { item.unlock().await } else { Ok(()) }
    }
}

#[cfg(any(target_os = "macos", windows))]
mod system {
    #[cfg(target_os = "macos")]
    use apple_native_keyring_store::keychain::Store;
    use keyring_core::{Entry, Error};
    #[cfg(windows)]
    use windows_native_keyring_store::Store;

    use super::{KeyringError, SERVICE};

    fn entry(account: &str) -> Result<Entry, KeyringError> {
        let store = Store::new().map_err(unusable)?;
        keyring_core::set_default_store(store);
        Entry::new(SERVICE, account).map_err(unusable)
    }

    fn unusable(error: Error) -> KeyringError {
        KeyringError(error.to_string())
    }

    pub fn get(account: &str) -> Result<Option<String>, KeyringError> {
        match entry(account)?.get_password() {
            Err(Error::NoEntry) => Ok(None),
            key => key.map(Some).map_err(unusable),
        }
    }

    pub fn having_keys(mut accounts: Vec<String>) -> Result<Vec<String>, KeyringError> {
        // macOS can ask the person before a program reads a key, so no key is looked for there.
        accounts.retain(|account| cfg!(windows) && matches!(get(account), Ok(Some(_))));
        Ok(accounts)
    }

    pub fn set(account: &str, key: &str) -> Result<(), KeyringError> {
        entry(account)?.set_password(key).map_err(unusable)
    }

    pub fn remove(account: &str) -> Result<bool, KeyringError> {
        match entry(account)?.delete_credential() {
            Err(Error::NoEntry) => Ok(false),
            done => done.map(|()| true).map_err(unusable),
        }
    }
}
