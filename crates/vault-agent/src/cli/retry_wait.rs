//! The wait before a failed request is sent again.

use std::time::{Duration, Instant};

use agent_loop::{ErrorKind, Failure};
use vault_search::sanitize_line;

use crate::loop_error::retry_text;

/// A wait that is counted down on the status line.
pub(super) struct RetryWait {
    why: String,
    until: Instant,
}

impl RetryWait {
    pub fn new(failure: &Failure, delay: Duration) -> Self {
        Self { why: sanitize_line(&failure.message), until: Instant::now() + delay }
    }

    /// The status line; `None` once the wait is over. The seconds come first, because the end of a long line is cut.
    pub fn line(&self) -> Option<String> {
        let left = self.until.checked_duration_since(Instant::now())?;
        Some(format!("trying again in {} s · Ctrl-C stops · {}", left.as_secs_f32().ceil(), self.why))
    }
}

/// The notice of a wait, for an output whose lines cannot be redrawn. `None` where the model cannot be reached: the
/// waits are short, and the error after the last one says it.
pub(super) fn retry_notice(failure: &Failure, delay: Duration) -> Option<String> {
    let is_unreachable = matches!(failure.kind, ErrorKind::Unavailable | ErrorKind::Io);
    (!is_unreachable).then(|| retry_text(failure, delay))
}
