//! Many texts shared out among threads: equal ones once, long ones first, results in the order asked.

use std::cmp::Reverse;
use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::error::Error;

type Done = Vec<(usize, Vec<f32>)>;

/// The texts of one call, and how far the threads have come.
pub(crate) struct Work<'a> {
    /// Without repetitions, the longest first: whoever is free takes the next,
    /// and at the end only short ones are left to wait for.
    distinct: Vec<&'a str>,
    /// For each text asked, its place in `distinct`.
    place: Vec<usize>,
    next: AtomicUsize,
}

impl<'a> Work<'a> {
    pub(crate) fn new(texts: &[&'a str]) -> Work<'a> {
        let mut distinct = texts.to_vec();
        distinct.sort_unstable_by_key(|text| (Reverse(text.len()), *text));
        distinct.dedup();
        let places: HashMap<&str, usize> = distinct.iter().enumerate().map(|(place, text)| (*text, place)).collect();
        Work { place: texts.iter().map(|text| places[text]).collect(), distinct, next: AtomicUsize::new(0) }
    }

    /// Texts to compute.
    pub(crate) fn len(&self) -> usize {
        self.distinct.len()
    }

    /// One thread's part: takes texts until none is left, or one fails (which stops the others too).
    pub(crate) fn drain(&self, mut embed: impl FnMut(&str) -> Result<Vec<f32>, Error>) -> Result<Done, Error> {
        let mut done = Done::new();
        loop {
            let place = self.next.fetch_add(1, Ordering::Relaxed);
            let Some(text) = self.distinct.get(place) else {
                return Ok(done);
            };
            match embed(text) {
                Ok(vector) => done.push((place, vector)),
                Err(error) => {
                    self.next.store(self.distinct.len(), Ordering::Relaxed);
                    return Err(error);
                }
            }
        }
    }

    /// Runs `worker` on `threads` threads, this one among them, and puts their results in order.
    pub(crate) fn run_on(
        &self,
        threads: usize,
        worker: impl Fn() -> Result<Done, Error> + Sync,
    ) -> Result<Vec<Vec<f32>>, Error> {
        let others = threads.min(self.len()).saturating_sub(1);
        let parts = std::thread::scope(|scope| {
            let started: Vec<_> = (0..others).map(|_| scope.spawn(&worker)).collect();
            let mut parts = vec![worker()];
            parts.extend(
                started
                    .into_iter()
                    .map(|thread| thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))),
            );
            parts
        });
        let mut vectors = vec![Vec::new(); self.len()];
        for part in parts {
            for (place, vector) in part? {
                vectors[place] = vector;
            }
        }
        Ok(self.place.iter().map(|place| vectors[*place].clone()).collect())
    }
}
