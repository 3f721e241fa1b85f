//! The driver's patience, as plain numbers.

use std::time::Duration;

use super::Retries;

/// How long the driver waits for what.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Limits {
    /// For a tool that has no limit of its own; by default a minute.
    pub tool: Duration,
    /// For the next sign of life in a reply; by default two minutes.
    pub silence: Duration,
    /// For making the conversation shorter, the summary included; by default ten minutes.
    pub compaction: Duration,
    /// For tools that are cancelled; what has not ended then is dropped. By default half a second.
    pub cancel: Duration,
    /// How many reading calls run side by side; by default 8.
    pub parallel_reads: usize,
    /// When a failed request is made again.
    pub retries: Retries,
}

setters!(Limits {
    tool: Duration,
    silence: Duration,
    compaction: Duration,
    cancel: Duration,
    parallel_reads: usize,
    retries: Retries,
});

impl Default for Limits {
    fn default() -> Self {
        Self {
            tool: Duration::from_secs(60),
            silence: Duration::from_secs(120),
            compaction: Duration::from_secs(600),
            cancel: Duration::from_millis(500),
            parallel_reads: 8,
            retries: Retries::default(),
        }
    }
}
