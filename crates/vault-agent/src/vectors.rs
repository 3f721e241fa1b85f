//! Vectors of the vaults while a person waits for an answer: somebody makes them meanwhile, and what is missing in the end
//! is made in the background.

use std::time::{Duration, Instant};

use vault_search::UserConfig;
use vault_search::search::embed_in_background;

use crate::workspace::OpenVault;

/// How long the first search waits for vectors.
pub(crate) const FIRST_SEARCH: Duration = Duration::from_secs(5);

/// Nobody makes vectors where none was made for so long.
const NO_PROGRESS: Duration = Duration::from_millis(1_500);

const TICK: Duration = Duration::from_millis(100);

/// Waits until all passages have vectors, at most so long, and not where nobody makes any. `on_share` is told how many
/// per cent have one.
pub(crate) fn wait(vaults: &[OpenVault], most: Duration, is_cancelled: &dyn Fn() -> bool, on_share: &dyn Fn(usize)) {
    let (started, mut progress) = (Instant::now(), Instant::now());
    let mut last = usize::MAX;
    loop {
        let (pending, all) = counts(vaults);
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

/// Passages without vectors, and all.
fn counts(vaults: &[OpenVault]) -> (usize, usize) {
    let status = |open: &OpenVault| open.vault.index().ok()?.status().ok();
    // A vault that is not indexed yet has something pending.
    let count =
        |open: &OpenVault| status(open).map_or((1, 1), |status| (status.pending, status.chunks.max(status.pending)));
    vaults.iter().map(count).fold((0, 0), |(pending, all), (more, of)| (pending + more, all + of))
}

/// Has what is pending embedded by a process of its own, where the person's settings and the machine allow it. Whether there
/// is one.
pub(crate) fn go_on(vaults: &[OpenVault]) -> bool {
    let Ok(config) = UserConfig::load() else { return false };
    let start = |open: &OpenVault| open.vault.index().is_ok_and(|index| embed_in_background(index, &config));
    vaults.iter().filter(|open| start(open)).count() > 0
}
