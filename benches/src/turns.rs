//! Measurements in turns, A B C A B C …, so that other load of the machine affects all runners alike.

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
    /// The milliseconds per query of each round.
    times: Vec<f64>,
}

impl<'a> Turns<'a> {
    /// Creates a measurement without runners.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a runner, which answers the query with the number that it gets.
    pub fn add(&mut self, name: &str, run: impl FnMut(usize) + 'a) {
        self.runners.push(Runner { name: name.to_owned(), run: Box::new(run), times: Vec::new() });
    }

    /// Runs all runners on the queries below `queries`, in `rounds` rounds after a warm-up round that does not count.
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

    /// Returns the names of the runners, in the order in which they were added.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.runners.iter().map(|runner| runner.name.as_str())
    }

    /// Returns the milliseconds per query of a runner, as the median of the rounds. NaN for an unknown name.
    pub fn ms(&self, name: &str) -> f64 {
        median(self.times(name))
    }

    /// Returns the time of `other` divided by that of `one`, as the median of the ratios within a round.
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
