//! Measurements in turns, A B C A B C …, so that whatever else the machine does falls on all alike.

use std::time::Instant;

use crate::median::median;

/// Runners that answer the same queries in turn.
#[derive(Default)]
pub struct Turns<'a> {
    runners: Vec<Runner<'a>>,
}

struct Runner<'a> {
    name: String,
    run: Box<dyn FnMut(usize) + 'a>,
    /// Milliseconds a query, one a round.
    times: Vec<f64>,
}

impl<'a> Turns<'a> {
    /// Without runners.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a runner; it answers the query whose number it is given.
    pub fn add(&mut self, name: &str, run: impl FnMut(usize) + 'a) {
        self.runners.push(Runner { name: name.to_owned(), run: Box::new(run), times: Vec::new() });
    }

    /// Lets all of them answer queries 0 to `queries`, `rounds` times, after one round that does not count.
    pub fn run(&mut self, queries: usize, rounds: usize) {
        for round in 0..=rounds {
            for runner in &mut self.runners {
                let start = Instant::now();
                (0..queries).for_each(&mut runner.run);
                let ms = start.elapsed().as_secs_f64() * 1000.0 / queries.max(1) as f64;
                if round > 0 {
                    runner.times.push(ms);
                }
            }
        }
    }

    /// Their names, in the order they were added.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.runners.iter().map(|runner| runner.name.as_str())
    }

    /// Milliseconds a query: the median of the rounds. NaN for a name that is not there.
    pub fn ms(&self, name: &str) -> f64 {
        median(self.times(name))
    }

    /// How many times the time of `one` the `other` takes: the median of the ratios within a round.
    pub fn ratio(&self, one: &str, other: &str) -> f64 {
        let pairs = self.times(one).iter().zip(self.times(other));
        median(&pairs.map(|(one, other)| other / one).collect::<Vec<f64>>())
    }

    fn times(&self, name: &str) -> &[f64] {
        self.runners.iter().find(|runner| runner.name == name).map_or(&[], |runner| &runner.times)
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use super::*;

    #[test]
    fn all_take_turns() {
        let called = RefCell::new(String::new());
        let (mut turns, order) = (Turns::new(), &called);
        for name in ["a", "b"] {
            turns.add(name, move |query| order.borrow_mut().push_str(&format!("{name}{query} ")));
        }
        turns.run(2, 1);
        assert_eq!(*called.borrow(), "a0 a1 b0 b1 a0 a1 b0 b1 ");
        assert_eq!(turns.names().collect::<Vec<_>>(), ["a", "b"]);
        assert!(turns.ms("a") >= 0.0 && turns.ms("c").is_nan());
    }

    #[test]
    fn ratios_are_those_within_a_round() {
        let runner =
            |name: &str, times: &[f64]| Runner { name: name.into(), run: Box::new(|_| ()), times: times.into() };
        let turns = Turns { runners: vec![runner("a", &[1.0, 2.0, 4.0]), runner("b", &[3.0, 8.0, 8.0])] };
        assert_eq!((turns.ms("a"), turns.ratio("a", "b")), (2.0, 3.0));
    }
}
