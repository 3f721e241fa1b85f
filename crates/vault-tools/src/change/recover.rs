//! A run that a crash cut is rolled back, so that the vault is as it was before it.
//!
//! How far the run had come is read off the disk: at one point of it, all paths it touches are as that point
//! expects. The journal says where to look first. Rolling back goes through points of the same run, so it may be
//! cut itself and begun again.

use std::path::PathBuf;
use std::sync::atomic::Ordering;

use serde::Serialize;

use crate::change::Vault;
use crate::change::apply::temporary;
use crate::change::expected::{Expected, Step, expected};
use crate::change::put_back::{Inverse, PutBack};
use crate::error::{Error, ErrorKind, Result};
use crate::journal::{self, Ending, Logged, RunId, Writer};
use crate::sandbox::Found;

/// What a recovery did.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Recovered {
    /// The run that was rolled back.
    pub run: RunId,
    /// What it was called.
    pub label: String,
    /// How many of its actions were taken back.
    pub taken_back: usize,
    /// Files that were left as they are, each with the reason: somebody changed it after the crash, or the journal is
    /// damaged.
    pub left: Vec<String>,
}

/// What was found when the journal was not at rest.
#[derive(Debug, Default)]
pub(super) struct Recovery {
    pub rolled_back: Option<Recovered>,
    /// Where bytes of the journal are kept that could not be read.
    pub kept_aside: Option<PathBuf>,
}

impl Vault {
    /// Rolls back the run that was cut, if there is one. The lock is held.
    pub(super) fn recover(&self) -> Result<Recovery> {
        let (cut, kept_aside) = journal::mend(self.state())?;
        let Some(run) = cut else { return Ok(Recovery { rolled_back: None, kept_aside }) };
        let rolled_back = self.roll_back(&run).map_err(|error| {
            let what = format!("the run {} ({}) was cut, and could not be rolled back", run.id, run.label);
            Error::new(ErrorKind::Journal, what).because(&error).remedy(
                "see to it that the vault and the journal beside it can be written, and try again; \
                 until then nothing is changed",
            )
        })?;
        Ok(Recovery { rolled_back: Some(rolled_back), kept_aside })
    }

    fn roll_back(&self, run: &Logged) -> Result<Recovered> {
        let mut writer = Writer::resume(self.state(), run)?;
        self.is_stale.store(true, Ordering::SeqCst);
        let told = |done: PutBack| {
            let PutBack { taken_back, left } = done;
            Recovered { run: run.id, label: run.label.clone(), taken_back, left }
        };
        let Some(inverses) = self.inverses(run)? else {
            // What it had done cannot be known from what is left of its record.
            let all = format!("whatever it changed: the record of the run is damaged, of which {} actions", run.done);
            let known = run.actions.iter().map(|action| format!("{}: perhaps one of them", action.path));
            let left = std::iter::once(format!("{all} were done")).chain(known).collect();
            writer.end(Ending::Done(run.done))?;
            return Ok(told(PutBack { taken_back: 0, left }));
        };
        self.remove_temporaries(run)?;
        let steps: Vec<Step> = inverses.iter().map(|inverse| inverse.step.clone()).collect();
        let done = self.progress(run, &steps)?;
        let put_back = self.put_back(run.id, &inverses, 0..done)?;
        writer.end(Ending::RolledBack)?;
        Ok(told(put_back))
    }

    /// What takes each action back; `None` for a run whose record is not whole.
    fn inverses(&self, run: &Logged) -> Result<Option<Vec<Inverse>>> {
        if !run.is_ready {
            return Ok(None);
        }
        let mut inverses = Vec::with_capacity(run.actions.len());
        for action in &run.actions {
            let Some(step) = Step::logged(action) else { return Ok(None) };
            let content = match step {
                Step::Edit(..) | Step::Delete(..) => match journal::content_of(self.state(), action) {
                    // It may not be needed; if it is, that is told.
                    Err(error) if error.kind() == ErrorKind::Journal => None,
                    content => Some(content?),
                },
                _ => None,
            };
            inverses.push(Inverse { step, content, kept: action.kept.clone() });
        }
        Ok(Some(inverses))
    }

    fn remove_temporaries(&self, run: &Logged) -> Result<()> {
        for (index, action) in run.actions.iter().enumerate() {
            // Beside where the file is, wherever a move had brought its folder.
            let mut places = vec![action.path.clone()];
            places.extend(run.actions.iter().filter_map(|other| action.path.moved(&other.path, other.to.as_ref()?)));
            for place in places {
                self.sandbox().remove_temporary(&place, &temporary(run.id, index))?;
            }
        }
        Ok(())
    }

    /// How many actions were done when the run was cut.
    fn progress(&self, run: &Logged, steps: &[Step]) -> Result<usize> {
        let known = run.done.min(steps.len());
        // A rollback that was cut has come from there downwards.
        let near = [known + 1, known].into_iter().filter(|done| *done <= steps.len());
        let mut best = (usize::MAX, known);
        for done in near.chain((0..known).rev()).chain(known + 2..=steps.len()) {
            let mut wrong = 0;
            for (path, expected) in expected(steps, done) {
                let found = self.sandbox().found(&path)?;
                let is_file = matches!((expected, found), (Expected::File(_), Found::File(_)));
                let is_as_expected = expected.is_met_by(found) || (is_file && self.is_torn(&path)?);
                wrong += usize::from(!is_as_expected);
            }
            if wrong == 0 {
                return Ok(done);
            }
            best = best.min((wrong, done));
        }
        // Somebody changed files since. Where most is as expected, the rest is left alone.
        Ok(best.1)
    }
}
