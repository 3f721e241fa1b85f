//! Converts errors of agent-loop to errors of this program.

use std::time::Duration;

use agent_loop::{Failure, Limit, StopReason};
use vault_tools::{Error, ErrorKind};

/// Describes why a run has stopped. For a limit, it names the setting.
pub(crate) fn stop_text(stop: &StopReason) -> String {
    let setting = match stop {
        StopReason::Limit { limit: Limit::Repeats } => {
            return format!("{stop} (the model repeats itself: ask in other words, or use another model)");
        }
        StopReason::Limit { limit: Limit::Calls } => "max_calls",
        StopReason::Limit { limit: Limit::Tokens } => "max_total_tokens",
        StopReason::Limit { limit: Limit::Time } => "max_seconds",
        StopReason::Limit { limit: Limit::Turns } => "max_turns",
        StopReason::Length => "max_tokens, where it is not the model's own limit",
        _ => return stop.to_string(),
    };
    format!("{stop} (the setting is {setting})")
}

/// Describes a failed request that is retried.
pub(crate) fn retry_text(failure: &Failure, delay: Duration) -> String {
    format!("{}; trying again in {} s", failure.message, delay.as_secs_f32().ceil())
}

/// Converts an error of agent-loop to one of this program.
pub(crate) fn of_loop(error: agent_loop::Error) -> Error {
    use agent_loop::ErrorKind as Kind;
    let kind = match error.kind() {
        Kind::Authentication | Kind::Damaged | Kind::Newer | Kind::BadRequest => ErrorKind::Config,
        Kind::Io => ErrorKind::Io,
        _ => ErrorKind::Unsupported,
    };
    let cause = std::error::Error::source(&error).map_or_else(String::new, |cause| format!(": {cause}"));
    let mut new = Error::new(kind, format!("{}{cause}", error.message()));
    if let Some(path) = error.path() {
        new = new.at(path);
    }
    match error.remedy() {
        Some(remedy) => new.with_remedy(remedy),
        None => new,
    }
}
