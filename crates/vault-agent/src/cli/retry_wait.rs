//! The wait before a failed request is sent again.

use std::time::{Duration, Instant};

use agent_loop::{ErrorKind, Failure};
use vault_search::sanitize_line;

use super::screen::Screen;
use crate::loop_error::retry_text;

/// A wait that is counted down on the status line.
pub(super) struct RetryWait {
    why: String,
    until: Instant,
}

impl RetryWait {
    /// Starts a wait. Where lines cannot be redrawn, it prints a notice and returns `None`.
    pub fn announce(screen: &mut Screen, failure: &Failure, delay: Duration) -> Option<Self> {
        if screen.is_live() {
            return Some(Self { why: sanitize_line(&failure.message), until: Instant::now() + delay });
        }
        // Without a delay that the server asked for, the waits are short, and the error after the last one says it.
        if failure.kind != ErrorKind::Unavailable || failure.retry_after.is_some() {
            screen.warn(&retry_text(failure, delay));
        }
        None
    }

    /// The status line; `None` once the wait is over. The seconds come first, because the end of a long line is cut.
    pub fn line(&self) -> Option<String> {
        let left = self.until.checked_duration_since(Instant::now())?;
        Some(format!("trying again in {} s · Ctrl-C stops · {}", left.as_secs_f32().ceil(), self.why))
    }
}
