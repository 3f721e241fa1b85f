//! Long work: with a progress bar on standard error, where that is a terminal, and until Ctrl-C.

use std::fmt::Write;
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressState, ProgressStyle};

use crate::{Progress, Stage, SyncOptions};

/// Does work that shows its progress and can be interrupted; also says whether it was.
pub(super) fn with_progress<T>(options: SyncOptions<'_>, work: impl FnOnce(&SyncOptions<'_>) -> T) -> (T, bool) {
    let listening = vault_cli::listen();
    let bar = Bar::new();
    let show = |progress| bar.show(progress);
    let done = work(&SyncOptions { cancel: Some(listening.flag()), progress: Some(&show), ..options });
    (done, listening.is_cancelled())
}

/// Shows the progress of a sync; cleared when dropped.
struct Bar {
    /// `None` without a terminal.
    bar: Option<ProgressBar>,
    started: Instant,
}

/// A bar for less than this would only flicker.
const DELAY: Duration = Duration::from_millis(300);

impl Bar {
    /// A bar, if standard error is a terminal.
    fn new() -> Self {
        let bar =
            vault_cli::stderr_is_terminal().then(|| ProgressBar::with_draw_target(None, ProgressDrawTarget::hidden()));
        Self { bar, started: Instant::now() }
    }

    /// Shows a new state.
    fn show(&self, progress: Progress) {
        let Some(bar) = &self.bar else { return };
        let what = match progress.stage {
            Stage::Walk => "listing files",
            Stage::Text => "reading notes",
            Stage::Links => "resolving links",
            Stage::Vectors => "embedding passages",
        };
        if bar.message() != what {
            bar.reset();
            bar.set_style(style(progress.stage));
            bar.set_message(what);
        }
        bar.set_length(progress.total.max(progress.done) as u64);
        bar.set_position(progress.done as u64);
        if bar.is_hidden() && self.started.elapsed() > DELAY {
            bar.set_draw_target(ProgressDrawTarget::stderr());
        }
    }
}

impl Drop for Bar {
    fn drop(&mut self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}

fn style(stage: Stage) -> ProgressStyle {
    ProgressStyle::with_template(template(stage)).unwrap_or_else(|_| ProgressStyle::default_bar()).with_key(
        "rate",
        |state: &ProgressState, to: &mut dyn Write| {
            // A bar that cannot be drawn is no failure.
            let _ = write!(to, "{:.0}/s", state.per_sec());
        },
    )
}

fn template(stage: Stage) -> &'static str {
    match stage {
        Stage::Walk => "{spinner} {msg} {pos}",
        Stage::Text | Stage::Links => "{msg:<18} {bar:30} {human_pos}/{human_len}",
        Stage::Vectors => "{msg:<18} {bar:30} {human_pos}/{human_len}  {rate}  {eta} left",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_templates_are_understood() {
        for stage in [Stage::Walk, Stage::Text, Stage::Links, Stage::Vectors] {
            assert!(ProgressStyle::with_template(template(stage)).is_ok());
        }
        let bar = Bar { bar: Some(ProgressBar::hidden()), started: Instant::now() };
        bar.show(Progress { stage: Stage::Vectors, done: 3, total: 9 });
    }
}
