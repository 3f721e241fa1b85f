//! A logger that prints some messages of libraries on standard error: that an index is rebuilt, and why.

use log::{Level, LevelFilter, Log, Metadata, Record};

use crate::exit::note;

/// The module that rebuilds indexes, and those of an index in a database. Other warnings are not printed, because the
/// commands report them as errors and notices.
const TARGETS: [&str; 2] = ["vault_index::index::rebuild", "vault_postgres"];

struct Logger;

impl Log for Logger {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.level() == Level::Warn && TARGETS.iter().any(|target| metadata.target().starts_with(target))
    }

    fn log(&self, record: &Record<'_>) {
        if self.enabled(record.metadata()) {
            note(&record.args().to_string());
        }
    }

    fn flush(&self) {}
}

/// Installs a logger that prints the messages of the libraries for people on standard error.
pub fn install_logger() {
    // A program that has already set a logger keeps it.
    if log::set_logger(&Logger).is_ok() {
        log::set_max_level(LevelFilter::Warn);
    }
}
