//! A progress bar on standard error, where that is a terminal; elsewhere nothing.

use indicatif::{ProgressBar, ProgressStyle};

use super::terminal;
use crate::{Progress, Stage};

/// Shows how far a sync has come. Gone without a trace when dropped.
pub(super) struct Bar(Option<ProgressBar>);

impl Bar {
    /// A bar, if somebody sees it.
    pub(super) fn new() -> Self {
        Self(terminal::stderr_is_terminal().then(ProgressBar::new_spinner))
    }

    /// Shows a new state.
    pub(super) fn show(&self, progress: Progress) {
        let Some(bar) = &self.0 else { return };
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
        // What was done before this run says nothing about its speed.
        if bar.position() == 0 && progress.done > 1 {
            bar.set_position(progress.done as u64);
            bar.reset_eta();
        }
        bar.set_length(progress.total as u64);
        bar.set_position(progress.done as u64);
    }
}

impl Drop for Bar {
    fn drop(&mut self) {
        if let Some(bar) = &self.0 {
            bar.finish_and_clear();
        }
    }
}

fn style(stage: Stage) -> ProgressStyle {
    ProgressStyle::with_template(template(stage)).unwrap_or_else(|_| ProgressStyle::default_bar())
}

fn template(stage: Stage) -> &'static str {
    match stage {
        Stage::Walk => "{spinner} {msg} {pos}",
        Stage::Text | Stage::Links => "{msg:<18} {bar:30} {human_pos}/{human_len}",
        Stage::Vectors => "{msg:<18} {bar:30} {human_pos}/{human_len}  {per_sec}  {eta} left",
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
        Bar(Some(ProgressBar::hidden())).show(Progress { stage: Stage::Vectors, done: 3, total: 9 });
    }
}
