//! Where a test can end the process, between any two steps that change a disk, or have the disk refuse a write of the
//! journal. Outside of tests it does nothing.

/// One step is done, the next not begun.
#[cfg(not(test))]
#[inline]
pub(crate) fn step() {}

/// One step is done, the next not begun. Ends the process, as a kill would, at the step that `VAULT_TOOLS_DIE_AT`
/// counts from 1.
#[cfg(test)]
pub(crate) fn step() {
    use std::sync::LazyLock;
    use std::sync::atomic::{AtomicUsize, Ordering};

    static DIE_AT: LazyLock<Option<usize>> = LazyLock::new(|| std::env::var("VAULT_TOOLS_DIE_AT").ok()?.parse().ok());
    static STEPS: AtomicUsize = AtomicUsize::new(0);
    if let Some(die_at) = *DIE_AT
        && STEPS.fetch_add(1, Ordering::SeqCst) + 1 == die_at
    {
        std::process::abort();
    }
}

/// The journal is about to be written.
#[cfg(not(test))]
#[inline]
pub(crate) fn write() -> std::io::Result<()> {
    Ok(())
}

#[cfg(test)]
thread_local! {
    /// Which writes of the journal fail, counted from 0, and how many there were.
    static REFUSED: std::cell::RefCell<(std::ops::Range<usize>, usize)> = const { std::cell::RefCell::new((0..0, 0)) };
}

/// From now on some writes of the journal by this thread fail. Returns how many there were since the last time.
#[cfg(test)]
pub(crate) fn refuse_writes(refused: std::ops::Range<usize>) -> usize {
    REFUSED.replace((refused, 0)).1
}

/// The journal is about to be written. Fails if a test wants it to.
#[cfg(test)]
pub(crate) fn write() -> std::io::Result<()> {
    REFUSED.with_borrow_mut(|(refused, count)| {
        let number = *count;
        *count += 1;
        if refused.contains(&number) { Err(std::io::ErrorKind::StorageFull.into()) } else { Ok(()) }
    })
}
