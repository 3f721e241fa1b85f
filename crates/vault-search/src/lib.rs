//! The commands `vault-search`, `vault-index` and `vault-tools`, and the parts of a command line that they share with
//! `vault-agent`: settings, output, sanitizing, signals, manual pages, exit codes, and approval in a terminal.
//!
//! Data goes to standard output ([`Out`]), everything else to standard error ([`say`]). Text from outside the program
//! goes through [`sanitize`] before it reaches a terminal. This library exists for `vault-agent`; other programs should
//! use the crates `vault-index` and `vault-tools`.
//!
//! ```
//! use vault_search::{CliResult, Out, Outcome, sanitize_line};
//!
//! fn run(out: &mut Out) -> CliResult {
//!     out.line(&sanitize_line("a title\u{1b}[2J from a note"))?;
//!     Ok(Outcome::Done)
//! }
//!
//! run(&mut Out::to(std::io::sink())).unwrap();
//! ```

#![deny(missing_docs)]

// In order of dependencies: a module uses only those above it. A test checks this.
mod program;
mod sanitize;
mod interrupt;
mod terminal;
mod exit;
mod logger;
mod output;
mod signals;
mod manual;
mod vault_folders;
mod hyperlink;
mod database;
mod settings;
mod consents;
mod agent_files;
mod forget;
#[cfg(feature = "search")]
pub mod search;
#[cfg(feature = "tools")]
pub mod tools;

pub use agent_files::agent_folder;
pub use exit::{CliResult, ENDED_BY_SIGNAL, Failure, Outcome, note, say};
pub use forget::{AdoptArgs, ForgetArgs, adopt, forget};
pub use hyperlink::{Hyperlink, Target};
pub use interrupt::{clear_interrupt, interrupt};
pub use logger::install_logger;
pub use manual::{CompletionsArgs, completions, pages};
#[cfg(feature = "search")]
pub(crate) use output::bytes;
pub use output::{CapturedOutput, Format, JsonArgs, ListArgs, Out, counted, counted_as};
pub use program::{arguments, command_line, command_named, program};
pub use sanitize::{
    char_columns, columns, cut_to, escape_json, most_columns, padded, sanitize, sanitize_line, shortened, wrapped,
};
pub use settings::{Settings, UserConfig, VaultArgs, vaults_from};
pub use signals::{
    IgnoreSignalsGuard, SignalGuard, WriteGuard, ignore_signals, install_handler, listen, write_section,
};
pub use terminal::{
    Paint, ask, ask_for_lines, can_ask, confirm, shell_command, stderr_is_terminal, terminal_input, url_path, url_text,
};
pub use vault_folders::{FolderList, NamedVaults, VaultSources, find_vaults};
