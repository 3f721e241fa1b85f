//! Prompts of your own: a Markdown file `prompts/NAME.md` beside the settings, which `/NAME` sends.
//!
//! `$ARGUMENTS` in the file is replaced by the text after the name. Without it, the text is appended.

use std::fs;
use std::path::PathBuf;

use vault_search::sanitize_line;
use vault_tools::{Error, Result};

use super::commands::is_command;
use crate::settings::config_file;

const ARGUMENTS: &str = "$ARGUMENTS";

/// A prompt, named like its file.
pub(super) struct SavedPrompt {
    pub name: String,
    path: PathBuf,
}

impl SavedPrompt {
    /// The first line with words, for a list; empty if the file cannot be read.
    pub fn head(&self) -> String {
        let text = fs::read_to_string(&self.path).unwrap_or_default();
        let line = text.lines().map(|line| line.trim_start_matches(['#', ' '])).find(|line| !line.is_empty());
        sanitize_line(line.unwrap_or_default())
    }

    fn filled(&self, arguments: &str) -> Result<String> {
        let text = fs::read_to_string(&self.path).map_err(|error| Error::io(self.path.display(), &error))?;
        Ok(match text.contains(ARGUMENTS) {
            true => text.replace(ARGUMENTS, arguments),
            false if arguments.is_empty() => text,
            false => format!("{}\n\n{arguments}", text.trim_end()),
        })
    }
}

/// The folder of the prompts, whether or not it exists.
pub(super) fn folder() -> Option<PathBuf> {
    config_file("prompts").ok()
}

/// All prompts, by name. A file with the name of a command is left out, because the command goes first.
pub(super) fn saved_prompts() -> Vec<SavedPrompt> {
    let entries = folder().and_then(|folder| fs::read_dir(folder).ok()).into_iter().flatten().flatten();
    let prompt = |path: PathBuf| {
        let is_text = path.extension().is_some_and(|extension| extension == "md" || extension == "txt");
        let name = path.file_stem().and_then(|stem| stem.to_str()).filter(|_| is_text)?.to_owned();
        let is_prompt = !name.contains(char::is_whitespace) && !is_command(&name);
        is_prompt.then_some(SavedPrompt { name, path })
    };
    let mut prompts: Vec<SavedPrompt> = entries.filter_map(|entry| prompt(entry.path())).collect();
    prompts.sort_by(|a, b| a.name.cmp(&b.name));
    prompts
}

/// The message for a line `/NAME ARGUMENTS`; `None` if the line names no prompt.
///
/// # Errors
/// The file cannot be read.
pub(super) fn message_of(line: &str) -> Result<Option<String>> {
    let Some(line) = line.trim().strip_prefix('/') else { return Ok(None) };
    let (name, arguments) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
    let prompt = saved_prompts().into_iter().find(|prompt| prompt.name == name);
    prompt.map(|prompt| prompt.filled(arguments.trim())).transpose()
}
