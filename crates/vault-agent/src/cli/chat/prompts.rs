//! Prompts of the person's own: Markdown files in the folder `prompts` beside their settings, which `/NAME` sends.
//!
//! `$ARGUMENTS` in one is what follows the name; without it, that is added at the end.

use std::fs;
use std::path::PathBuf;

use vault_search::sanitize_line;
use vault_tools::{Error, Result};

use super::commands::is_command;
use crate::settings::config_file;

const ARGUMENTS: &str = "$ARGUMENTS";

/// A prompt, by the name of its file.
pub(super) struct SavedPrompt {
    pub name: String,
    text: String,
}

impl SavedPrompt {
    /// Its first line with words, for lists.
    pub fn head(&self) -> String {
        let line = self.text.lines().map(|line| line.trim_start_matches(['#', ' '])).find(|line| !line.is_empty());
        sanitize_line(line.unwrap_or_default())
    }

    fn filled(&self, arguments: &str) -> String {
        match self.text.contains(ARGUMENTS) {
            true => self.text.replace(ARGUMENTS, arguments),
            false if arguments.is_empty() => self.text.clone(),
            false => format!("{}\n\n{arguments}", self.text.trim_end()),
        }
    }
}

/// The folder, whether or not it is there.
pub(super) fn folder() -> Option<PathBuf> {
    config_file("prompts").ok()
}

/// All of them, by name. One whose name is a command's is never sent, and left out.
///
/// # Errors
/// A file that cannot be read.
pub(super) fn saved_prompts() -> Result<Vec<SavedPrompt>> {
    let entries = folder().and_then(|folder| fs::read_dir(folder).ok()).into_iter().flatten().flatten();
    let mut prompts = Vec::new();
    for path in entries.map(|entry| entry.path()) {
        let is_text = path.extension().is_some_and(|extension| extension == "md" || extension == "txt");
        let Some(name) = path.file_stem().and_then(|stem| stem.to_str()).filter(|_| is_text) else { continue };
        if !name.contains(char::is_whitespace) && !is_command(name) {
            let text = fs::read_to_string(&path).map_err(|error| Error::io(path.display(), &error))?;
            prompts.push(SavedPrompt { name: name.to_owned(), text });
        }
    }
    prompts.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(prompts)
}

/// The message of a line `/NAME what else`; `None` where the line names no prompt.
///
/// # Errors
/// As [`saved_prompts`].
pub(super) fn message_of(line: &str) -> Result<Option<String>> {
    let Some(line) = line.trim().strip_prefix('/') else { return Ok(None) };
    let (name, arguments) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
    let prompt = saved_prompts()?.into_iter().find(|prompt| prompt.name == name);
    Ok(prompt.map(|prompt| prompt.filled(arguments.trim())))
}
