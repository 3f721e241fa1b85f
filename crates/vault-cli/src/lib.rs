//! What the command lines of a vault share: output, a terminal filter, signals, manuals, exit codes, and which
//! folder is meant. It knows nothing of notes, indexes or tools, and promises no public API.
//!
//! Data goes to standard output ([`Out`]), everything else to standard error ([`say`]). Text that comes from outside
//! the program goes through [`sanitize`] before a terminal gets it.
//!
//! ```
//! use vault_cli::{CliResult, Out, Outcome, sanitize_line};
//!
//! fn run(out: &mut Out) -> CliResult {
//!     out.line(&sanitize_line("a title\u{1b}[2J from a note"))?;
//!     Ok(Outcome::Done)
//! }
//!
//! run(&mut Out::to(std::io::sink())).unwrap();
//! ```

mod program;
mod sanitize;
mod terminal;

mod exit;
mod output;
mod signals;

mod forget;
mod manual;
mod vault_folders;

pub use exit::{CliResult, Failure, Outcome, note, say};
pub use forget::{AdoptArgs, ForgetArgs, forget};
pub use manual::{CompletionsArgs, completions, pages};
pub use output::{Captured, Format, JsonArgs, ListArgs, Out, counted};
pub use program::{arguments, command_line, program};
pub use sanitize::{char_columns, columns, escape_json, most_columns, padded, sanitize, sanitize_line, shortened};
pub use signals::{Ignoring, Listening, Writing, ignore_signals, install_handler, listen, write_section};
pub use terminal::{
    Paint, ask, ask_for_lines, can_ask, confirm, stderr_is_terminal, terminal_input, url_path, url_text,
};
pub use vault_folders::{FolderList, NamedVaults, VaultSources, find_vaults};
