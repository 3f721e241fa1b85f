//! The readers that threads share: each is used by one thread at a time.

use std::collections::VecDeque;
use std::ops::Deref;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use crate::error::{Error, ErrorKind, Result};
use crate::store::ReadStore;

/// How many readers are open at most. Each is a connection to a server, which has 100 by default for all of its users and
/// lets one of its processors scan for it, so one program should not take many.
const MOST: usize = 4;

/// Opens a further reader of the same state. `None`: that is no longer possible, because a newer state has replaced it.
pub type OpenReader = Box<dyn Fn() -> Result<Option<Box<dyn ReadStore>>> + Send + Sync>;

/// How threads share one state. By default they wait for each other.
pub trait Share {
    /// How further readers of this state are opened, for reads at the same time.
    fn sharing(&self) -> Result<Option<OpenReader>> {
        Ok(None)
    }

    /// Whether this reader answers no longer, for example because its connection was lost.
    fn is_broken(&self) -> bool {
        false
    }
}

/// Readers that are kept for the next read.
pub(crate) struct Readers<R: ?Sized> {
    pool: Mutex<Pool<R>>,
    changed: Condvar,
}

struct Pool<R: ?Sized> {
    idle: VecDeque<Box<R>>,
    /// How many there are, with those in use.
    open: usize,
    most: usize,
}

/// A reader in use, which goes back when dropped, unless it is broken.
pub(crate) struct InUse<'a, R: ?Sized + Share> {
    readers: &'a Readers<R>,
    /// `None`: it is being opened, or was taken out.
    reader: Option<Box<R>>,
}

impl<R: ?Sized + Share> Readers<R> {
    pub(crate) fn new(idle: Option<Box<R>>) -> Self {
        let idle: VecDeque<Box<R>> = idle.into_iter().collect();
        Self { pool: Mutex::new(Pool { open: idle.len(), idle, most: MOST }), changed: Condvar::new() }
    }

    /// The reader that has been idle for the longest, so that all are renewed in turn; or a new one; or, if as many as
    /// possible are in use, the next one that is free.
    ///
    /// # Errors
    /// Those of `open`, and [`ErrorKind::Store`] if it opens none, while no other reader is open.
    pub(crate) fn take(&self, open: impl Fn() -> Result<Option<Box<R>>>) -> Result<InUse<'_, R>> {
        let mut pool = self.pool();
        let mut most = pool.most;
        loop {
            if let Some(reader) = pool.idle.pop_front() {
                return Ok(InUse { readers: self, reader: Some(reader) });
            }
            if pool.open >= most {
                pool = self.changed.wait(pool).unwrap_or_else(PoisonError::into_inner);
                continue;
            }
            pool.open += 1;
            drop(pool);
            let mut new = InUse { readers: self, reader: None };
            let opened = open();
            if let Ok(Some(reader)) = opened {
                new.reader = Some(reader);
                return Ok(new);
            }
            drop(new);
            pool = self.pool();
            if pool.open == 0 && pool.idle.is_empty() {
                return Err(opened.err().unwrap_or_else(gone));
            }
            // The others do as well: this call waits for one of them.
            most = pool.open;
            if opened.is_ok() {
                pool.most = most;
            }
        }
    }

    /// Closes those that are not in use.
    pub(crate) fn close_idle(&self) {
        let mut pool = self.pool();
        let closed = std::mem::take(&mut pool.idle);
        pool.open -= closed.len();
        drop(pool);
        self.changed.notify_all();
    }

    /// A panic of another thread leaves it consistent.
    fn pool(&self) -> MutexGuard<'_, Pool<R>> {
        self.pool.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn gone() -> Error {
    Error::new(ErrorKind::Store, "the state of the index that this search reads is gone with its connections")
        .with_remedy("search again: the index has changed since")
}

impl<R: ?Sized + Share> InUse<'_, R> {
    /// Takes it out for good.
    pub(crate) fn into_inner(mut self) -> Box<R> {
        self.reader.take().expect(OPEN)
    }
}

const OPEN: &str = "a reader is open until it is dropped";

impl<R: ?Sized + Share> Deref for InUse<'_, R> {
    type Target = R;

    fn deref(&self) -> &R {
        self.reader.as_deref().expect(OPEN)
    }
}

impl<R: ?Sized + Share> Drop for InUse<'_, R> {
    fn drop(&mut self) {
        let mut pool = self.readers.pool();
        match self.reader.take() {
            Some(reader) if !reader.is_broken() => {
                pool.idle.push_back(reader);
                drop(pool);
                self.readers.changed.notify_one();
            }
            reader => {
                pool.open -= 1;
                drop(pool);
                if reader.is_some() {
                    // Those of the same server have probably been lost, too.
                    self.readers.close_idle();
                }
                self.readers.changed.notify_all();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::sync::Barrier;
    use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

    use super::*;

    struct Reader {
        number: usize,
        is_broken: Cell<bool>,
    }

    impl Share for Reader {
        fn is_broken(&self) -> bool {
            self.is_broken.get()
        }
    }

    /// Opens readers with ascending numbers.
    struct Opener(AtomicUsize);

    impl Opener {
        fn open(&self) -> Result<Option<Box<Reader>>> {
            let number = self.0.fetch_add(1, Ordering::SeqCst);
            Ok(Some(Box::new(Reader { number, is_broken: Cell::new(false) })))
        }
    }

    #[test]
    fn as_many_as_possible_are_in_use_at_once_and_more_wait() {
        let (readers, opener, all) = (Readers::new(None), Opener(AtomicUsize::new(0)), Barrier::new(MOST));
        let in_use = AtomicUsize::new(0);
        std::thread::scope(|scope| {
            for _ in 0..3 * MOST {
                scope.spawn(|| {
                    let _reader = readers.take(|| opener.open()).unwrap();
                    assert!(in_use.fetch_add(1, Ordering::SeqCst) < MOST);
                    // Each waits for others that have a reader at the same time.
                    all.wait();
                    in_use.fetch_sub(1, Ordering::SeqCst);
                });
            }
        });
        assert_eq!(opener.0.into_inner(), MOST);
    }

    #[test]
    fn readers_take_turns_and_a_broken_one_is_replaced_with_those_that_are_idle() {
        let (readers, opener) = (Readers::new(None), Opener(AtomicUsize::new(0)));
        let take = || readers.take(|| opener.open()).unwrap();
        drop([take(), take()]);
        let numbers = || take().number;
        assert_eq!([numbers(), numbers(), numbers()], [0, 1, 0]);
        let (first, second) = (take(), take());
        first.is_broken.set(true);
        drop((second, first));
        assert_eq!(numbers(), 2);
        drop(take().into_inner());
        assert_eq!(numbers(), 3);
        readers.close_idle();
        assert_eq!(numbers(), 4);
    }

    #[test]
    fn where_no_more_can_be_opened_one_is_waited_for() {
        let refuse = || Err(Error::new(ErrorKind::Store, "no connection left"));
        let (readers, opener) = (Readers::new(None), Opener(AtomicUsize::new(0)));
        assert!(readers.take(refuse).is_err_and(|error| error.message() == "no connection left"));
        for refuse in [&refuse as &(dyn Fn() -> Result<Option<Box<Reader>>> + Sync), &|| Ok(None)] {
            let was_refused = AtomicBool::new(false);
            let first = readers.take(|| opener.open()).unwrap();
            std::thread::scope(|scope| {
                let waits = scope.spawn(|| {
                    let refuse = || {
                        was_refused.store(true, Ordering::SeqCst);
                        refuse()
                    };
                    readers.take(refuse).unwrap().number
                });
                while !was_refused.load(Ordering::SeqCst) {
                    std::thread::yield_now();
                }
                drop(first);
                assert_eq!(waits.join().unwrap(), 0);
            });
        }
        readers.close_idle();
        assert!(readers.take(|| Ok(None)).is_err_and(|error| error.message().contains("is gone")));
    }
}
