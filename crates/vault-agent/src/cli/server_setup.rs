//! The key file and the stop signal, which all servers of this command share.

use std::future::Future;
use std::path::Path;

use vault_tools::{Error, ErrorKind, Result};

/// Reads the key from the first line of a file.
pub(super) fn key_in(file: &Path) -> Result<String> {
    let text = std::fs::read_to_string(file).map_err(|error| Error::io(file.display(), &error))?;
    match text.lines().next().map(str::trim).filter(|key| !key.is_empty()) {
        Some(key) => Ok(key.to_owned()),
        None => Err(Error::new(ErrorKind::Config, "the file with the key is empty")
            .at(file.display())
            .with_remedy("write a long random text into its first line")),
    }
}

/// Returns a future that completes when the process is asked to end; it listens from this call on.
pub(super) fn stop_signal() -> impl Future<Output = ()> {
    #[cfg(unix)]
    {
        use tokio::signal::unix::{SignalKind, signal};
        let signals = [SignalKind::terminate(), SignalKind::interrupt()].map(signal);
        async move {
            let [Ok(mut terminate), Ok(mut interrupt)] = signals else { return std::future::pending().await };
            tokio::select! {
                _ = terminate.recv() => {}
                _ = interrupt.recv() => {}
            }
        }
    }
    #[cfg(not(unix))]
    async {
        let _ = tokio::signal::ctrl_c().await;
    }
}
