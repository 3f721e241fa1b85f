//! Waits for vectors while a person waits for an answer. Another thread or process computes them; the rest is computed
//! in the background afterwards.

use std::time::{Duration, Instant};

use vault_search::search::embed_in_background;
use vault_search::{UserConfig, stderr_is_terminal};

use crate::workspace::OpenVault;

/// How long the first search waits for vectors.
pub(crate) const FIRST_SEARCH: Duration = Duration::from_secs(5);

/// Without progress for this long, no process seems to compute vectors.
const NO_PROGRESS: Duration = Duration::from_millis(1_500);

const TICK: Duration = Duration::from_millis(100);

/// Waits until all passages have vectors, at most `most`. Ends early if no process computes any. `on_share` gets the
/// percentage of passages that have vectors. It does not wait for vectors in a database.
pub(crate) fn wait(vaults: &[OpenVault], most: Duration, is_cancelled: &dyn Fn() -> bool, on_share: &dyn Fn(usize)) {
    let vaults: Vec<&OpenVault> = vaults.iter().filter(|open| !open.vault.has_database()).collect();
    let (started, mut progress) = (Instant::now(), Instant::now());
    let mut last = usize::MAX;
    loop {
        let (pending, all) = counts(&vaults);
        if pending < last {
            (last, progress) = (pending, Instant::now());
        }
        if pending == 0 || started.elapsed() >= most || progress.elapsed() >= NO_PROGRESS || is_cancelled() {
            return;
        }
        on_share(100 * all.saturating_sub(pending) / all.max(1));
        std::thread::sleep(TICK);
    }
}

/// Returns the number of passages without vectors, and of all passages.
fn counts(vaults: &[&OpenVault]) -> (usize, usize) {
    let status = |open: &OpenVault| open.vault.index().ok()?.status().ok();
    // A vault that is not indexed yet counts as pending.
    let count =
        |open: &&OpenVault| status(open).map_or((1, 1), |status| (status.pending, status.chunks.max(status.pending)));
    vaults.iter().map(count).fold((0, 0), |(pending, all), (more, of)| (pending + more, all + of))
}

/// Starts a process that computes the pending vectors, if a person is at the terminal, and the user's settings and the
/// machine allow it. Returns whether one runs. A script must find nothing still running when its command has ended.
pub(crate) fn go_on(vaults: &[OpenVault]) -> bool {
    if !stderr_is_terminal() {
        return false;
    }
    let Ok(config) = UserConfig::load() else { return false };
    let start = |open: &OpenVault| open.vault.index().is_ok_and(|index| embed_in_background(index, &config));
    vaults.iter().filter(|open| !open.vault.has_database() && start(open)).count() > 0
}
