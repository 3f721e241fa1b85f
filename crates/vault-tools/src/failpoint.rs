//! Points at which a test can end the process, between any two steps that change a disk, or make the disk refuse a
//! write of the journal. Outside of tests they do nothing.

/// Called between two steps.
#[cfg(not(test))]
#[inline]
pub(crate) fn step() {}

/// Called between two steps. Ends the process, like a kill, at the step whose number is in `VAULT_TOOLS_DIE_AT`,
/// counted from 1.
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

/// Called before the journal is written.
#[cfg(not(test))]
#[inline]
pub(crate) fn write() -> std::io::Result<()> {
    Ok(())
}

#[cfg(test)]
thread_local! {
    /// Which writes of the journal fail, counted from 0, and the number of writes so far.
    static REFUSED: std::cell::RefCell<(std::ops::Range<usize>, usize)> = const { std::cell::RefCell::new((0..0, 0)) };
}

/// Makes some later writes of the journal by this thread fail. Returns the number of writes since the last call.
#[cfg(test)]
pub(crate) fn refuse_writes(refused: std::ops::Range<usize>) -> usize {
    REFUSED.replace((refused, 0)).1
}

/// Called before the journal is written. Fails if a test requires it.
#[cfg(test)]
pub(crate) fn write() -> std::io::Result<()> {
    REFUSED.with_borrow_mut(|(refused, count)| {
        let number = *count;
        *count += 1;
        if refused.contains(&number) { Err(std::io::ErrorKind::StorageFull.into()) } else { Ok(()) }
    })
}
