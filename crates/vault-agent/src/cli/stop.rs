//! Signals during a conversation. Ctrl-C stops a turn. A hangup, a termination signal or the loss of the terminal ends
//! the program, with all messages saved.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tokio::runtime::Handle;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use vault_tools::{Error, Result};

/// How long a turn may take to stop before the process exits anyway.
const ENDS_WITHIN: Duration = Duration::from_secs(10);

/// How often to check that the terminal still exists.
#[cfg(unix)]
const LOOKS_EVERY: Duration = Duration::from_millis(500);

/// The request to end the process.
#[derive(Debug, Clone, Default)]
pub(super) struct Stop {
    ending: CancellationToken,
    /// Whether work is in progress that must finish first.
    is_busy: Arc<AtomicBool>,
}

/// Delays the end of the process until it is dropped.
pub(super) struct BusyGuard(Arc<AtomicBool>);

impl Drop for BusyGuard {
    fn drop(&mut self) {
        self.0.store(false, Ordering::SeqCst);
    }
}

impl Stop {
    /// Installs the signal handlers.
    ///
    /// # Errors
    /// When the system refuses.
    pub fn install(runtime: &Handle) -> Result<Self> {
        let stop = Self::default();
        #[cfg(unix)]
        {
            use tokio::signal::unix::{SignalKind, signal};
            let _runtime = runtime.enter();
            let of = |kind| signal(kind).map_err(|error| Error::io("the signals of the process", &error));
            // From here on Ctrl-C does not end the process: it goes to the turn, or to the program that has the
            // terminal.
            drop(of(SignalKind::interrupt())?);
            for (kind, number) in [(SignalKind::hangup(), 1), (SignalKind::terminate(), 15)] {
                let (mut signals, stop) = (of(kind)?, stop.clone());
                runtime.spawn(async move {
                    if signals.recv().await.is_some() {
                        stop.end(128 + number).await;
                    }
                });
            }
            let stop = stop.clone();
            runtime.spawn(async move {
                terminal_gone().await;
                stop.end(128 + 1).await;
            });
        }
        #[cfg(not(unix))]
        let _ = runtime;
        Ok(stop)
    }

    #[cfg_attr(not(unix), expect(dead_code))]
    async fn end(&self, code: i32) {
        self.ending.cancel();
        if self.is_busy.load(Ordering::SeqCst) {
            tokio::time::sleep(ENDS_WITHIN).await;
        }
        // Restore the terminal here, because a pending read of a key or a line cannot be interrupted.
        let _ = crossterm::terminal::disable_raw_mode();
        let _ = crossterm::execute!(std::io::stderr(), crossterm::event::DisableBracketedPaste);
        std::process::exit(code);
    }

    /// Marks that work is in progress; the work itself must check [`Self::ending`].
    pub fn busy(&self) -> BusyGuard {
        self.is_busy.store(true, Ordering::SeqCst);
        BusyGuard(Arc::clone(&self.is_busy))
    }

    /// Whether the process has been asked to end.
    pub fn is_ending(&self) -> bool {
        self.ending.is_cancelled()
    }

    /// Completes when the process is asked to end.
    pub async fn ending(&self) {
        self.ending.cancelled().await;
    }
}

/// Completes when the terminal on standard input has gone. The signal alone is not enough: a process that does not lead
/// its session, or whose parent ignored the signal, does not receive it.
pub(super) async fn terminal_gone() {
    #[cfg(unix)]
    if std::io::IsTerminal::is_terminal(&std::io::stdin()) {
        use rustix::event::{PollFd, PollFlags, Timespec, poll};
        loop {
            tokio::time::sleep(LOOKS_EVERY).await;
            let stdin = std::io::stdin();
            let mut asked = [PollFd::new(&stdin, PollFlags::empty())];
            let is_gone = PollFlags::HUP | PollFlags::ERR | PollFlags::NVAL;
            if poll(&mut asked, Some(&Timespec::default())).is_ok() && asked[0].revents().intersects(is_gone) {
                return;
            }
        }
    }
    std::future::pending::<()>().await;
}

/// Listens for Ctrl-C continuously, so that none is missed between two waits.
pub(super) struct Interrupts {
    #[cfg(unix)]
    signals: Option<tokio::signal::unix::Signal>,
}

impl Interrupts {
    /// Starts listening; must be called within a runtime.
    pub fn listen() -> Self {
        Self {
            #[cfg(unix)]
            signals: tokio::signal::unix::signal(tokio::signal::unix::SignalKind::interrupt()).ok(),
        }
    }

    /// Has Ctrl-C interrupt what vault-search runs or asks, until the guard is dropped.
    pub fn pass_on(runtime: &Handle) -> PassedInterrupts {
        let _runtime = runtime.enter();
        let mut interrupts = Self::listen();
        PassedInterrupts(runtime.spawn(async move {
            loop {
                interrupts.next().await;
                vault_search::interrupt();
            }
        }))
    }

    /// Completes at the next Ctrl-C.
    pub async fn next(&mut self) {
        #[cfg(unix)]
        let came = match &mut self.signals {
            Some(signals) => signals.recv().await.is_some(),
            None => false,
        };
        #[cfg(not(unix))]
        let came = tokio::signal::ctrl_c().await.is_ok();
        if !came {
            std::future::pending::<()>().await;
        }
    }
}

/// While it lives, Ctrl-C interrupts what vault-search runs or asks.
pub(super) struct PassedInterrupts(JoinHandle<()>);

impl Drop for PassedInterrupts {
    fn drop(&mut self) {
        self.0.abort();
        vault_search::clear_interrupt();
    }
}
