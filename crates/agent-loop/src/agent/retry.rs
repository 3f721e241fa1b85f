//! Retries: exponential backoff with jitter. The code is pure: the random number is an argument.

use std::time::Duration;

use crate::error::Error;

/// Exponential backoff with jitter.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Retries {
    /// All attempts, including the first; by default 4. With 1 nothing is retried.
    pub attempts: u32,
    /// The wait after the first failure, before jitter. It doubles after each further failure. By default half a
    /// second.
    pub first: Duration,
    /// The longest wait of the backoff; by default 30 seconds.
    pub longest: Duration,
    /// The longest wait that a provider may request; by default two minutes. If it requests more, the run ends with its
    /// error, which contains the delay.
    pub longest_asked: Duration,
}

setters!(Retries { attempts: u32, first: Duration, longest: Duration, longest_asked: Duration });

impl Default for Retries {
    fn default() -> Self {
        Self {
            attempts: 4,
            first: Duration::from_millis(500),
            longest: Duration::from_secs(30),
            longest_asked: Duration::from_secs(120),
        }
    }
}

impl Retries {
    /// Returns how long to wait after attempt number `attempt` (from 1) failed, or `None` to give up. `random` is in
    /// 0..1 and spreads the wait over half to all of `first · 2^(attempt - 1)`, so that clients that failed together do
    /// not retry together. A provider's own delay is respected, with up to a tenth on top.
    pub fn delay(&self, attempt: u32, error: &Error, random: f64) -> Option<Duration> {
        if attempt >= self.attempts || !error.kind().is_retryable() {
            return None;
        }
        if let Some(asked) = error.retry_after() {
            return (asked <= self.longest_asked).then(|| asked.saturating_add((asked / 10).mul_f64(random)));
        }
        let doubled = self.first.saturating_mul(2_u32.saturating_pow(attempt - 1)).min(self.longest);
        Some(doubled / 2 + (doubled / 2).mul_f64(random))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::ErrorKind;

    #[test]
    fn delays_double_and_stay_bounded() {
        let retries = Retries { attempts: 100, ..Retries::default() };
        let error = Error::new(ErrorKind::Unavailable, "x");
        let ms = |attempt, random| retries.delay(attempt, &error, random).unwrap().as_millis();
        assert_eq!([ms(1, 0.0), ms(1, 1.0), ms(2, 0.0), ms(2, 1.0)], [250, 500, 500, 1000]);
        assert_eq!([ms(99, 0.0), ms(99, 1.0)], [15_000, 30_000]);
        assert_eq!(Retries::default().delay(4, &error, 0.0), None);
        assert_eq!(retries.delay(1, &Error::new(ErrorKind::Authentication, "x"), 0.0), None);
    }

    #[test]
    fn the_providers_delay_is_respected() {
        let error = |seconds| Error::new(ErrorKind::RateLimit, "x").with_retry_after(Duration::from_secs(seconds));
        let retries = Retries::default();
        assert_eq!(retries.delay(1, &error(20), 0.0), Some(Duration::from_secs(20)));
        assert_eq!(retries.delay(1, &error(20), 1.0), Some(Duration::from_secs(22)));
        assert_eq!(retries.delay(1, &error(121), 0.0), None);
    }
}
