//! Batches worked on ahead of the one who takes them, in order; who takes them lends a hand where none is ready.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

/// So many items are taken at a time: few enough that nobody waits long for another's.
const SHARE: usize = 8;

/// Calls `each` with every batch in its order, each item beside what `work` makes of it. At most `window` batches are
/// begun and not taken.
///
/// `each` runs on the calling thread, after `first`, and `threads` others work. Where the next batch is not ready, the
/// calling thread works too: with one thread less than the machine has cores all of them are busy, and `each` waits
/// for none.
///
/// # Errors
/// The first of `first` and `each`; nothing is begun after it.
pub(super) fn work_ahead<T: Send + Sync, R: Send, E>(
    batches: impl Iterator<Item = Vec<T>> + Send,
    threads: usize,
    window: usize,
    work: impl Fn(&T) -> R + Sync,
    first: impl FnOnce() -> Result<(), E>,
    mut each: impl FnMut(Vec<(T, R)>) -> Result<(), E>,
) -> Result<(), E> {
    let ahead = Ahead::new(batches, window.max(1));
    std::thread::scope(|scope| {
        let _stop = StopOnDrop(&ahead);
        for _ in 0..threads {
            scope.spawn(|| {
                let stop = StopOnDrop(&ahead);
                while let Some(share) = ahead.wait_for_share() {
                    ahead.give(share.work(&work));
                }
                // Only a panic stops the others.
                std::mem::forget(stop);
            });
        }
        first()?;
        loop {
            match ahead.next() {
                Next::Batch(batch) => each(batch)?,
                Next::Share(share) => ahead.give(share.work(&work)),
                Next::End => return Ok(()),
            }
        }
    })
}

struct Ahead<I, T, R> {
    state: Mutex<State<I, T, R>>,
    /// The first batch is ready, or all is over.
    ready: Condvar,
    /// There may be something to work on, or all is over.
    room: Condvar,
    window: usize,
}

struct State<I, T, R> {
    batches: I,
    /// Batches begun and not taken, in order.
    begun: VecDeque<Begun<T, R>>,
    /// How many were taken before the first of them.
    taken: usize,
    /// All batches were begun.
    is_last: bool,
    is_stopped: bool,
}

struct Begun<T, R> {
    items: Arc<Vec<T>>,
    /// Items from here on are nobody's yet.
    next: usize,
    /// What was made of each.
    made: Vec<Option<R>>,
    /// Items of which nothing was made yet.
    left: usize,
}

/// Some items of a batch.
struct Share<T> {
    /// The batch's number, from the first one on.
    batch: usize,
    items: Arc<Vec<T>>,
    range: Range<usize>,
}

/// What was made of a share.
struct Made<R> {
    batch: usize,
    range: Range<usize>,
    made: Vec<R>,
}

enum Next<T, R> {
    Batch(Vec<(T, R)>),
    Share(Share<T>),
    End,
}

struct StopOnDrop<'a, I: Iterator<Item = Vec<T>>, T, R>(&'a Ahead<I, T, R>);

impl<I: Iterator<Item = Vec<T>>, T, R> Drop for StopOnDrop<'_, I, T, R> {
    fn drop(&mut self) {
        self.0.lock().is_stopped = true;
        self.0.ready.notify_all();
        self.0.room.notify_all();
    }
}

impl<T> Share<T> {
    /// The items are let go of: a batch of which all was made is its taker's alone.
    fn work<R>(self, work: impl Fn(&T) -> R) -> Made<R> {
        let made = self.items[self.range.clone()].iter().map(work).collect();
        Made { batch: self.batch, range: self.range, made }
    }
}

impl<I: Iterator<Item = Vec<T>>, T, R> Ahead<I, T, R> {
    fn new(batches: I, window: usize) -> Self {
        let state = State { batches, begun: VecDeque::new(), taken: 0, is_last: false, is_stopped: false };
        Self { state: Mutex::new(state), ready: Condvar::new(), room: Condvar::new(), window }
    }

    /// The first batch if it is ready, else something to work on.
    fn next(&self) -> Next<T, R> {
        let mut state = self.lock();
        while !state.is_stopped {
            if let Some(batch) = state.begun.pop_front_if(|first| first.left == 0) {
                state.taken += 1;
                drop(state);
                self.room.notify_all();
                return Next::Batch(batch.finished());
            }
            if let Some(share) = state.share(self.window) {
                return Next::Share(share);
            }
            if state.begun.is_empty() {
                break;
            }
            state = wait(&self.ready, state);
        }
        Next::End
    }

    /// Something to work on, once there is any. `None`: there will be nothing any more.
    fn wait_for_share(&self) -> Option<Share<T>> {
        let mut state = self.lock();
        while !state.is_stopped {
            if let Some(share) = state.share(self.window) {
                return Some(share);
            }
            if state.is_last {
                break;
            }
            state = wait(&self.room, state);
        }
        None
    }

    fn give(&self, Made { batch, range, made }: Made<R>) {
        let mut state = self.lock();
        let n = batch - state.taken;
        let begun = &mut state.begun[n];
        begun.left -= made.len();
        for (slot, made) in begun.made[range].iter_mut().zip(made) {
            *slot = Some(made);
        }
        if n == 0 && begun.left == 0 {
            drop(state);
            self.ready.notify_one();
        }
    }

    fn lock(&self) -> MutexGuard<'_, State<I, T, R>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn wait<'a, S>(condition: &Condvar, state: MutexGuard<'a, S>) -> MutexGuard<'a, S> {
    condition.wait(state).unwrap_or_else(PoisonError::into_inner)
}

impl<I: Iterator<Item = Vec<T>>, T, R> State<I, T, R> {
    /// Items that nobody has, the earliest first; a batch is begun where there is room for one.
    fn share(&mut self, window: usize) -> Option<Share<T>> {
        loop {
            if let Some(n) = self.begun.iter().position(|batch| batch.next < batch.items.len()) {
                let batch = &mut self.begun[n];
                let range = batch.next..batch.items.len().min(batch.next + SHARE);
                batch.next = range.end;
                return Some(Share { batch: self.taken + n, items: Arc::clone(&batch.items), range });
            }
            if self.is_last || self.begun.len() >= window {
                return None;
            }
            match self.batches.next() {
                Some(items) => self.begun.push_back(Begun::new(items)),
                None => self.is_last = true,
            }
        }
    }
}

impl<T, R> Begun<T, R> {
    fn new(items: Vec<T>) -> Self {
        let left = items.len();
        Self { next: 0, made: std::iter::repeat_with(|| None).take(left).collect(), left, items: Arc::new(items) }
    }

    /// The items, each beside what was made of it.
    fn finished(self) -> Vec<(T, R)> {
        // Shares let go of their items before what was made of them is given.
        let items = Arc::into_inner(self.items).expect("nobody works on them any more");
        items.into_iter().zip(self.made.into_iter().flatten()).collect()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use proptest::prelude::*;

    use super::*;

    /// The numbers below `total`, some at a time; how many batches were begun.
    fn numbers(total: usize, size: usize, begun: &AtomicUsize) -> impl Iterator<Item = Vec<usize>> + Send + '_ {
        (0..total).step_by(size).map(move |first| {
            begun.fetch_add(1, Ordering::SeqCst);
            (first..total.min(first + size)).collect()
        })
    }

    proptest! {
        #[test]
        fn every_item_comes_once_in_order_and_the_window_holds(
            total in 0_usize..400, size in 1_usize..50, threads in 0_usize..5, window in 0_usize..6,
        ) {
            let begun = AtomicUsize::new(0);
            let (mut seen, mut taken) = (Vec::new(), 0);
            let batches = numbers(total, size, &begun);
            let done = work_ahead(batches, threads, window, |n| n * 3, || Ok(()), |batch| {
                taken += 1;
                seen.extend(batch);
                if begun.load(Ordering::SeqCst) <= taken + window.max(1) { Ok(()) } else { Err(()) }
            });
            prop_assert_eq!(done, Ok(()), "more batches were begun than the window takes");
            prop_assert_eq!(seen, (0..total).map(|n| (n, n * 3)).collect::<Vec<_>>());
        }
    }

    #[test]
    fn an_error_ends_it_and_nothing_is_begun_after_it() {
        for threads in 0..3 {
            let begun = AtomicUsize::new(0);
            let done = work_ahead(
                numbers(1000, 10, &begun),
                threads,
                4,
                |n| *n,
                || Ok(()),
                |batch| match batch[0].0 {
                    50 => Err("no"),
                    _ => Ok(()),
                },
            );
            assert_eq!(done, Err("no"));
            assert!(begun.load(Ordering::SeqCst) <= 6 + 4, "{begun:?} batches");
        }
    }

    #[test]
    fn a_panic_of_any_thread_is_the_callers() {
        for threads in 0..3 {
            let begun = AtomicUsize::new(0);
            let ended = std::panic::catch_unwind(|| {
                let work = |n: &usize| assert_ne!(*n, 77, "cannot work on it");
                work_ahead(numbers(1000, 10, &begun), threads, 4, work, || Ok(()), |_| Ok::<(), ()>(()))
            });
            assert!(ended.is_err());
        }
    }
}
