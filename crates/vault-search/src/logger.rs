//! What a library logs and a person should know goes to standard error: that an index is rebuilt, and why.

use log::{Level, LevelFilter, Log, Metadata, Record};

use crate::exit::note;

/// The module that rebuilds indexes. Other warnings reach a person as errors and notices of the commands.
const TARGET: &str = "vault_index::index::rebuild";

struct Logger;

impl Log for Logger {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.level() == Level::Warn && metadata.target() == TARGET
    }

    fn log(&self, record: &Record<'_>) {
        if self.enabled(record.metadata()) {
            note(&record.args().to_string());
        }
    }

    fn flush(&self) {}
}

/// Sends to standard error what the libraries log for people.
pub fn install_logger() {
    // A program with a logger of its own keeps it.
    if log::set_logger(&Logger).is_ok() {
        log::set_max_level(LevelFilter::Warn);
    }
}
