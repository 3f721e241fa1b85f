//! Completion of `/commands`, `@notes` and `#tags` while you type.

use std::sync::Arc;
use std::time::Duration;

use reedline::{Completer, CompletionResult, Span, Suggestion};
use vault_index::SyncOptions;
use vault_search::sanitize_line;

use super::commands::COMMANDS;
use super::prompts::saved_prompts;
use crate::workspace::Workspace;

/// The maximum number of suggestions shown.
const MOST: usize = 50;

/// How long the key waits for another process that updates the index.
const UPDATE: Duration = Duration::from_secs(2);

/// Completes from the current content of the vaults.
pub(super) struct NoteCompleter {
    workspace: Arc<Workspace>,
}

impl NoteCompleter {
    /// Creates a completer for the notes and tags of these vaults.
    pub fn new(workspace: Arc<Workspace>) -> Self {
        Self { workspace }
    }

    /// Returns the paths of all notes that the policy allows. A vault that cannot be read contributes none.
    fn notes(&self) -> Vec<String> {
        self.workspace.with(|vaults| {
            let names: Vec<String> = vaults.names().map(str::to_owned).collect();
            let mut paths = Vec::new();
            for (vault, name) in names.iter().enumerate() {
                let folder = if names.len() > 1 { format!("{name}/") } else { String::new() };
                let notes = vaults.toolbox(vault).notes().unwrap_or_default();
                paths.extend(notes.iter().map(|note| format!("{folder}{}", note.path)));
            }
            paths
        })
    }

    /// Returns the tags in the index. One without tags may be that of a new vault, so it is updated first.
    fn tags(&self) -> Vec<String> {
        let tags = |open: &crate::workspace::OpenVault| {
            let index = open.vault.index_without_sync().ok()?;
            let tags = index.tags().ok().filter(|tags| !tags.is_empty());
            let updated = || index.sync_with(&SyncOptions::new().without_vectors().wait(UPDATE)).ok();
            tags.or_else(|| updated().and_then(|_| index.tags().ok()))
        };
        let counted = self.workspace.vaults().iter().filter_map(tags).flatten();
        let mut tags: Vec<String> = counted.map(|count| count.tag).collect();
        tags.sort();
        tags.dedup();
        tags
    }
}

impl Completer for NoteCompleter {
    fn complete(&mut self, line: &str, pos: usize) -> CompletionResult {
        let Some(query) = CompletionQuery::at(line, pos) else {
            return CompletionResult::fresh(vec![nothing("", pos)]);
        };
        let values = match query.kind {
            CompletionKind::Command => {
                let prompts = saved_prompts().into_iter().map(|prompt| prompt.name);
                COMMANDS.iter().map(|help| help.name[1..].to_owned()).chain(prompts).collect()
            }
            CompletionKind::Note => self.notes(),
            CompletionKind::Tag => self.tags(),
        };
        let mut suggestions = query.suggestions(values);
        if suggestions.is_empty() {
            suggestions.push(nothing(&line[query.from..pos], query.from));
        }
        CompletionResult::fresh(suggestions)
    }
}

/// A suggestion that leaves the typed text, which begins at `from`, as it is.
///
/// The menu reports an empty result as "NO RECORDS FOUND". It accepts a lone suggestion at once when it opens, so that
/// nothing is shown then. A menu that is open replaces the suggestions that no longer fit.
fn nothing(typed: &str, from: usize) -> Suggestion {
    Suggestion {
        value: typed.to_owned(),
        display_override: Some("nothing fits".to_owned()),
        span: Span::new(from, from + typed.len()),
        ..Suggestion::default()
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum CompletionKind {
    Command,
    Note,
    Tag,
}

/// The word before the cursor, which is completed.
#[derive(Debug, PartialEq, Eq)]
struct CompletionQuery<'l> {
    kind: CompletionKind,
    typed: &'l str,
    from: usize,
    to: usize,
}

impl<'l> CompletionQuery<'l> {
    /// Finds the word before the cursor, if it begins with a mark. A command must be the first word of the line. A link
    /// that is not closed is one word, because names contain spaces.
    fn at(line: &'l str, pos: usize) -> Option<Self> {
        let before = line.get(..pos)?;
        if let Some(from) = before.rfind("@[[")
            && !before[from..].contains(['\n', ']'])
        {
            return Some(Self { kind: CompletionKind::Note, typed: &before[from + 3..], from, to: pos });
        }
        let from = before
            .rfind(char::is_whitespace)
            .map_or(0, |space| space + before[space..].chars().next().map_or(1, char::len_utf8));
        let word = &before[from..];
        let kind = match word.chars().next()? {
            '/' if before[..from].trim().is_empty() => CompletionKind::Command,
            '@' => CompletionKind::Note,
            '#' => CompletionKind::Tag,
            _ => return None,
        };
        Some(Self { kind, typed: &word[1..], from, to: pos })
    }

    /// Ranks values that begin with the typed text before those that contain it. For paths, matches of the note's name
    /// come first.
    fn suggestions(&self, values: Vec<String>) -> Vec<Suggestion> {
        let typed = self.typed.to_lowercase();
        let rank = |value: &String| {
            let folded = value.to_lowercase();
            let name = folded.rsplit('/').next().unwrap_or(&folded);
            match () {
                () if name.starts_with(&typed) => Some(0),
                () if folded.starts_with(&typed) => Some(1),
                () if folded.contains(&typed) && self.kind != CompletionKind::Command => Some(2),
                () => None,
            }
        };
        let mut ranked: Vec<(i32, String)> =
            values.into_iter().filter_map(|value| Some((rank(&value)?, value))).collect();
        ranked.sort_by_key(|(rank, _)| *rank);
        ranked.into_iter().take(MOST).map(|(_, value)| self.suggestion(value)).collect()
    }

    fn suggestion(&self, value: String) -> Suggestion {
        let does = COMMANDS.iter().find(|help| self.kind == CompletionKind::Command && help.name[1..] == value);
        let text = match self.kind {
            CompletionKind::Command => format!("/{value}"),
            // As a wikilink, so that a path with spaces stays one word.
            CompletionKind::Note => format!("@[[{value}]]"),
            CompletionKind::Tag => format!("#{value}"),
        };
        Suggestion {
            display_override: Some(sanitize_line(&value)),
            value: sanitize_line(&text),
            description: does.map(|help| help.does.to_owned()),
            span: Span::new(self.from, self.to),
            append_whitespace: true,
            ..Suggestion::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(line: &str) -> Option<(CompletionKind, &str)> {
        CompletionQuery::at(line, line.len()).map(|query| (query.kind, query.typed))
    }

    #[test]
    fn a_word_with_a_mark_is_completed() {
        assert_eq!(of("/mo"), Some((CompletionKind::Command, "mo")));
        assert_eq!(of("say /mo"), None);
        assert_eq!(of("what of @Gar"), Some((CompletionKind::Note, "Gar")));
        assert_eq!(of("what of\u{3000}#gar"), Some((CompletionKind::Tag, "gar")));
        assert_eq!(of("what of @[[Compost h"), Some((CompletionKind::Note, "Compost h")));
        assert_eq!(of("what of @[[Compost heap]] and #gar"), Some((CompletionKind::Tag, "gar")));
        assert_eq!(of("me@example"), None);
        assert_eq!(of(""), None);
        assert_eq!(CompletionQuery::at("@ä", 2), None, "within a character");
    }

    #[test]
    fn notes_become_links_and_names_come_before_folders() {
        let query = CompletionQuery::at("see @com", 8).unwrap();
        let notes = ["Compost heap/Log.md", "Garden/Compost.md", "Welcome.md", "Other.md"].map(str::to_owned).into();
        let suggestions = query.suggestions(notes);
        let values: Vec<&str> = suggestions.iter().map(|suggestion| suggestion.value.as_str()).collect();
        assert_eq!(values, ["@[[Garden/Compost.md]]", "@[[Compost heap/Log.md]]", "@[[Welcome.md]]"]);
        assert_eq!((suggestions[0].span.start, suggestions[0].span.end), (4, 8));
        let hostile = CompletionQuery::at("@", 1).unwrap().suggestions(vec!["a\u{1b}[2J.md".to_owned()]);
        assert!(!hostile[0].value.contains('\u{1b}'));
    }

    #[test]
    fn commands_say_what_they_do() {
        let names = COMMANDS.iter().map(|help| help.name[1..].to_owned()).collect();
        let suggestions = CompletionQuery::at("/s", 2).unwrap().suggestions(names);
        let values: Vec<&str> = suggestions.iter().map(|suggestion| suggestion.value.as_str()).collect();
        assert_eq!(values, ["/save", "/status"]);
        assert!(suggestions[0].description.as_deref().unwrap().contains("note"));
    }
}
