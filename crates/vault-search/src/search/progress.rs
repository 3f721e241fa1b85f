//! Long work that Ctrl-C can interrupt, with a progress bar on standard error if that is a terminal.

use std::fmt::Write;
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressState, ProgressStyle};

use vault_index::{Progress, Stage, SyncOptions};

/// Runs work that shows its progress and can be interrupted. Also returns whether it was interrupted.
pub(super) fn with_progress<T>(options: SyncOptions<'_>, work: impl FnOnce(&SyncOptions<'_>) -> T) -> (T, bool) {
    let listening = crate::listen();
    let bar = Bar::new();
    let show = |now: Progress| bar.show(now.stage, now.done, now.total, now.left);
    let done = work(&options.cancel(listening.flag()).progress(&show));
    (done, listening.is_cancelled())
}

/// A bar on standard error for bytes that are downloaded; hidden without a terminal.
pub(super) fn download_bar(what: &'static str) -> ProgressBar {
    let target = if crate::stderr_is_terminal() { ProgressDrawTarget::stderr() } else { ProgressDrawTarget::hidden() };
    let style = ProgressStyle::with_template(DOWNLOAD).unwrap_or_else(|_| ProgressStyle::default_bar());
    ProgressBar::with_draw_target(None, target).with_style(style).with_message(what)
}

const DOWNLOAD: &str = "{msg:<18} {bar:30} {bytes}/{total_bytes}  {eta} left";

/// The progress bar of a sync, which is cleared when dropped.
struct Bar {
    /// `None` without a terminal.
    bar: Option<ProgressBar>,
    started: Instant,
}

/// The delay before a bar is shown, because a bar for shorter work would only flicker.
const DELAY: Duration = Duration::from_millis(300);

impl Bar {
    /// A bar, if standard error is a terminal.
    fn new() -> Self {
        let bar =
            crate::stderr_is_terminal().then(|| ProgressBar::with_draw_target(None, ProgressDrawTarget::hidden()));
        Self { bar, started: Instant::now() }
    }

    /// Shows a new state.
    fn show(&self, stage: Stage, done: usize, total: usize, left: Option<Duration>) {
        let Some(bar) = &self.bar else { return };
        let what = match stage {
            Stage::Walk => "listing files",
            Stage::Text => "reading notes",
            Stage::Links => "resolving links",
            Stage::Vectors => "embedding passages",
        };
        if bar.message() != what {
            bar.reset();
            bar.set_style(style(stage));
            bar.set_message(what);
        }
        bar.set_length(total.max(done) as u64);
        bar.set_position(done as u64);
        if let Some(left) = left {
            bar.set_prefix(format!("{} left", about(left)));
        }
        if bar.is_hidden() && self.started.elapsed() > DELAY {
            bar.set_draw_target(ProgressDrawTarget::stderr());
            // Draws it now: the next round of embedding may take long.
            bar.tick();
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

/// Formats an estimated time: `8 s`, `4 min`, `1 h 20 min`.
pub(super) fn about(time: Duration) -> String {
    let seconds = time.as_secs_f64().round() as u64;
    match (seconds.max(1), (seconds + 30) / 60) {
        (seconds @ 0..60, _) => format!("{seconds} s"),
        (_, minutes @ 0..60) => format!("{minutes} min"),
        (_, minutes) => format!("{} h {} min", minutes / 60, minutes % 60),
    }
}

fn style(stage: Stage) -> ProgressStyle {
    ProgressStyle::with_template(template(stage)).unwrap_or_else(|_| ProgressStyle::default_bar()).with_key(
        "rate",
        |state: &ProgressState, to: &mut dyn Write| {
            // An error while drawing the bar is ignored.
            let _ = write!(to, "{:.0}/s", state.per_sec());
        },
    )
}

fn template(stage: Stage) -> &'static str {
    match stage {
        Stage::Walk => "{spinner} {msg} {pos}",
        Stage::Text | Stage::Links => "{msg:<18} {bar:30} {human_pos}/{human_len}",
        Stage::Vectors => "{msg:<18} {bar:30} {human_pos}/{human_len}  {rate}  {prefix}",
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
        assert!(ProgressStyle::with_template(DOWNLOAD).is_ok());
        let bar = Bar { bar: Some(ProgressBar::hidden()), started: Instant::now() };
        bar.show(Stage::Vectors, 3, 9, Some(Duration::from_secs(90)));
        assert_eq!(bar.bar.as_ref().map(|bar| bar.prefix()).as_deref(), Some("2 min left"));
    }

    #[test]
    fn times_are_round() {
        for (seconds, expected) in [
            (0.0, "1 s"),
            (7.2, "7 s"),
            (59.0, "59 s"),
            (60.0, "1 min"),
            (89.0, "1 min"),
            (3_569.0, "59 min"),
            (3_571.0, "1 h 0 min"),
            (8_400.0, "2 h 20 min"),
        ] {
            assert_eq!(about(Duration::from_secs_f64(seconds)), expected, "{seconds}");
        }
    }
}
