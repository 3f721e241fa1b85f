//! The speed of embedding, and the time that other texts take at this speed.
//!
//! The time of a text grows with its length, so the speed is in tokens per second, not in texts: notes that are
//! embedded later may be longer than earlier ones.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

/// Older rounds say little about the speed of a machine that also runs other programs.
const WINDOW: Duration = Duration::from_secs(30);

/// The number of texts for an estimate: with fewer, the start-up of the model dominates the time.
const ENOUGH_TEXTS: usize = 16;

/// The speed of the last rounds, or the stored speed of earlier ones.
#[derive(Debug)]
pub(crate) struct Pace {
    stored: Option<f64>,
    last: Instant,
    /// The duration of each round, and its number of tokens; oldest first.
    rounds: VecDeque<(Duration, u64)>,
    texts: usize,
}

impl Pace {
    /// Starts to measure. Until there is a measurement, the value stored from [`Self::to_store`] is used.
    pub(crate) fn new(stored: Option<&str>) -> Self {
        let stored = stored.and_then(|text| text.parse().ok()).filter(|pace: &f64| pace.is_finite() && *pace > 0.0);
        Self { stored, last: Instant::now(), rounds: VecDeque::new(), texts: 0 }
    }

    /// Adds a round that ends now and started when the previous one ended.
    pub(super) fn add(&mut self, texts: usize, size: u64) {
        let now = Instant::now();
        self.add_round(texts, size, now - self.last);
        self.last = now;
    }

    fn add_round(&mut self, texts: usize, size: u64, took: Duration) {
        self.texts += texts;
        self.rounds.push_back((took, size));
        while self.rounds.iter().skip(1).map(|(took, _)| *took).sum::<Duration>() >= WINDOW {
            self.rounds.pop_front();
        }
    }

    /// The speed in tokens per second.
    fn per_second(&self) -> Option<f64> {
        if self.texts < ENOUGH_TEXTS {
            return self.stored;
        }
        let seconds: f64 = self.rounds.iter().map(|(took, _)| took.as_secs_f64()).sum();
        let tokens: u64 = self.rounds.iter().map(|(_, size)| *size).sum();
        Some(tokens.max(1) as f64 / seconds.max(1e-6))
    }

    /// The value to store, once something was measured.
    pub(super) fn to_store(&self) -> Option<String> {
        self.per_second().filter(|_| self.texts >= ENOUGH_TEXTS).map(|pace| format!("{pace:.1}"))
    }

    /// Estimates the time for texts of this total size; `None` if the speed is unknown.
    pub(crate) fn time(&self, size: u64) -> Option<Duration> {
        let seconds = size as f64 / self.per_second()?;
        Duration::try_from_secs_f64(seconds).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn seconds(pace: &Pace, size: u64) -> Option<f64> {
        pace.time(size).map(|time| time.as_secs_f64())
    }

    #[test]
    fn what_was_stored_counts_until_enough_was_measured() {
        let mut pace = Pace::new(Some("100.0"));
        assert_eq!(seconds(&pace, 500), Some(5.0));
        pace.add_round(ENOUGH_TEXTS - 1, 10, SECOND);
        assert_eq!((seconds(&pace, 500), pace.to_store()), (Some(5.0), None));
        pace.add_round(1, 10, SECOND);
        assert_eq!((seconds(&pace, 500), pace.to_store()), (Some(50.0), Some("10.0".into())));
        for nothing in [None, Some("fast"), Some("0"), Some("-1"), Some("inf")] {
            assert_eq!(Pace::new(nothing).time(1), None);
        }
    }

    /// Passages of 10 tokens, then of 200: an estimate in texts per second would be twenty times too short.
    #[test]
    fn texts_that_grow_longer_take_as_long_as_was_said() {
        let mut pace = Pace::new(None);
        (0..40).for_each(|_| pace.add_round(100, 1_000, SECOND));
        assert_eq!(seconds(&pace, 200_000), Some(200.0));
        (0..10).for_each(|_| pace.add_round(5, 1_000, SECOND));
        assert_eq!(seconds(&pace, 190_000), Some(190.0));
    }

    #[test]
    fn half_a_minute_counts() {
        let mut pace = Pace::new(None);
        (0..60).for_each(|_| pace.add_round(100, 1_000, SECOND));
        (0..30).for_each(|_| pace.add_round(100, 250, SECOND));
        assert_eq!(seconds(&pace, 1_000), Some(4.0));
    }
}
