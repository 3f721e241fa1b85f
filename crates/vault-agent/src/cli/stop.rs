//! Signals to a conversation. Ctrl-C stops a turn; the end of the terminal or of the process ends the program, with
//! everything saved that was said.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tokio::runtime::Handle;
use tokio_util::sync::CancellationToken;
use vault_tools::{Error, Result};

/// How long a turn may take to stop before the process ends all the same.
const ENDS_WITHIN: Duration = Duration::from_secs(10);

/// How often it is looked whether the terminal is there.
#[cfg(unix)]
const LOOKS_EVERY: Duration = Duration::from_millis(500);

/// Whether the process is to end.
#[derive(Debug, Clone, Default)]
pub(super) struct Stop {
    ending: CancellationToken,
    /// Something is under way that has to come to its end first.
    is_busy: Arc<AtomicBool>,
}

/// While it lives, the process does not end in the middle of what is under way.
pub(super) struct BusyGuard(Arc<AtomicBool>);

impl Drop for BusyGuard {
    fn drop(&mut self) {
        self.0.store(false, Ordering::SeqCst);
    }
}

impl Stop {
    /// Takes over the signals.
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
            // From now on Ctrl-C ends no process: it is for the program that has the terminal, or for the turn.
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
        // Whoever waits for a key or a line does not learn of it.
        let _ = crossterm::terminal::disable_raw_mode();
        let _ = crossterm::execute!(std::io::stderr(), crossterm::event::DisableBracketedPaste);
        std::process::exit(code);
    }

    /// Marks that something is under way, which looks at [`Self::ending`] itself.
    pub fn busy(&self) -> BusyGuard {
        self.is_busy.store(true, Ordering::SeqCst);
        BusyGuard(Arc::clone(&self.is_busy))
    }

    /// Whether the process is to end.
    pub fn is_ending(&self) -> bool {
        self.ending.is_cancelled()
    }

    /// Ready when the process is to end.
    pub async fn ending(&self) {
        self.ending.cancelled().await;
    }
}

/// Ready when the terminal that standard input is has gone. A process that does not lead its session, or that was started by
/// one that ignores the signal, is not told otherwise.
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

/// Ctrl-C from now on: none is missed between two waits.
pub(super) struct Interrupts {
    #[cfg(unix)]
    signals: Option<tokio::signal::unix::Signal>,
}

impl Interrupts {
    /// Begins to listen, within a runtime.
    pub fn listen() -> Self {
        Self {
            #[cfg(unix)]
            signals: tokio::signal::unix::signal(tokio::signal::unix::SignalKind::interrupt()).ok(),
        }
    }

    /// Ready at the next one.
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
