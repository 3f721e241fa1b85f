//! Timeouts, parallelism and retries of the driver.

use std::time::Duration;

use super::Retries;

/// Timeouts, parallelism and retries of an [`Agent`](crate::Agent).
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Limits {
    /// How long a tool without its own time limit may run; by default one minute.
    pub tool: Duration,
    /// How long the model may send nothing during a reply; by default two minutes.
    pub silence: Duration,
    /// How long compaction may take, the summary included; by default ten minutes.
    pub compaction: Duration,
    /// How long cancelled tools may take to stop before they are dropped; by default half a second.
    pub cancel: Duration,
    /// How many reads run in parallel; by default 8.
    pub parallel_reads: usize,
    /// When a failed request is retried.
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
