//! The sources of input lines: an editor with history and completion, a plain terminal, or a pipe.

use std::borrow::Cow;
use std::io::{self, BufRead, IsTerminal, Write};
use std::path::PathBuf;
use std::sync::Arc;

use reedline::{
    ColumnarMenu, EditCommand, Emacs, FileBackedHistory, KeyCode, KeyModifiers, MenuBuilder, Prompt, PromptEditMode,
    PromptHistorySearch, Reedline, ReedlineEvent, ReedlineMenu, Signal, ValidationResult, Validator,
    default_emacs_keybindings,
};
use vault_tools::{Error, Result, State};

use super::completion::NoteCompleter;
use crate::cli::screen::Screen;
use crate::workspace::Workspace;

/// The maximum number of lines in the history.
const REMEMBERED: usize = 1_000;

/// The history file in the state folder of the first vault, so that forgetting the vault deletes it too.
const HISTORY: &str = "chat-history.txt";

const MENU: &str = "completions";

/// A line of input, or its end.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Line {
    Text(String),
    /// Ctrl-C, which discards the typed text.
    Interrupted,
    /// The end of the input, Ctrl-D.
    End,
}

/// The source of the lines.
pub(super) enum Input {
    Editor(Box<Reedline>),
    /// A terminal without cursor control.
    Plain,
    Pipe,
}

impl Input {
    /// Opens the input of this process.
    ///
    /// # Errors
    /// A history that cannot be read or written.
    pub fn open(workspace: &Arc<Workspace>, screen: &Screen) -> Result<Self> {
        if !io::stdin().is_terminal() || !io::stderr().is_terminal() {
            return Ok(Self::Pipe);
        }
        if !screen.is_live() {
            return Ok(Self::Plain);
        }
        let mut editor = editor(screen)
            .with_completer(Box::new(NoteCompleter::new(Arc::clone(workspace))))
            .with_menu(ReedlineMenu::EngineCompleter(Box::new(ColumnarMenu::default().with_name(MENU))));
        if let Some(file) = history_file(workspace)? {
            let history = FileBackedHistory::with_file(REMEMBERED, file.clone())
                .map_err(|error| Error::io(file.display(), &io::Error::other(error.to_string())))?;
            editor = editor.with_history(Box::new(history));
        }
        Ok(Self::Editor(Box::new(editor)))
    }

    /// Whether a person types the lines.
    pub fn has_person(&self) -> bool {
        !matches!(self, Self::Pipe)
    }

    /// Reads the next line. In the editor, it starts with the text `typed`.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn read(&mut self, typed: String) -> Result<Line> {
        match self {
            Self::Editor(editor) => {
                if !typed.is_empty() {
                    editor.run_edit_commands(&[EditCommand::InsertString(typed)]);
                }
                let line = read(editor, "> ")?;
                // A history that cannot be written must not end the conversation.
                let _ = editor.sync_history();
                Ok(line)
            }
            Self::Plain => plain("> "),
            Self::Pipe => plain(""),
        }
    }
}

/// Asks for a line in a panel, without history. Returns `None` on Ctrl-C and at the end of the input.
///
/// The editor reads arrow keys, which the terminal itself would show as `^[[A`.
pub(super) fn ask(question: &str, screen: &Screen) -> Option<String> {
    if !screen.is_live() {
        return vault_search::ask(question);
    }
    match read(&mut editor(screen), &format!("{question} ")) {
        Ok(Line::Text(text)) => Some(text.trim().to_owned()),
        _ => None,
    }
}

fn history_file(workspace: &Workspace) -> Result<Option<PathBuf>> {
    let Some(open) = workspace.vaults().first() else { return Ok(None) };
    let state: &State = open.vault.state();
    if state.read(HISTORY)?.is_none() {
        state.replace(HISTORY, "")?;
    }
    Ok(Some(state.folder().join(HISTORY)))
}

fn editor(screen: &Screen) -> Reedline {
    let mut keys = default_emacs_keybindings();
    let complete = vec![ReedlineEvent::Menu(MENU.to_owned()), ReedlineEvent::MenuNext];
    keys.add_binding(KeyModifiers::NONE, KeyCode::Tab, ReedlineEvent::UntilFound(complete));
    keys.add_binding(KeyModifiers::SHIFT, KeyCode::BackTab, ReedlineEvent::MenuPrevious);
    let newline = || ReedlineEvent::Edit(vec![EditCommand::InsertNewline]);
    keys.add_binding(KeyModifiers::ALT, KeyCode::Enter, newline());
    keys.add_binding(KeyModifiers::SHIFT, KeyCode::Enter, newline());
    keys.add_binding(KeyModifiers::CONTROL, KeyCode::Char('j'), newline());
    Reedline::create()
        .with_edit_mode(Box::new(Emacs::new(keys)))
        .with_validator(Box::new(ContinuationValidator))
        .with_quick_completions(true)
        .with_partial_completions(true)
        .with_ansi_colors(screen.paint.has_colors())
        .with_highlighter(Box::new(PlainHighlighter))
        .use_bracketed_paste(true)
}

fn read(editor: &mut Reedline, prompt: &str) -> Result<Line> {
    match editor.read_line(&PromptMarker(prompt.to_owned())) {
        Ok(Signal::Success(text)) => Ok(Line::Text(text.replace("\\\n", "\n"))),
        Ok(Signal::CtrlC) => Ok(Line::Interrupted),
        Ok(_) => Ok(Line::End),
        Err(error) => Err(Error::io("the terminal", &io::Error::other(error.to_string()))),
    }
}

/// Reads a line. A backslash at the end of a line continues it on the next one.
fn plain(prompt: &str) -> Result<Line> {
    let mut text = String::new();
    loop {
        if !prompt.is_empty() {
            let mut err = io::stderr().lock();
            let _ = write!(err, "{prompt}").and_then(|()| err.flush());
        }
        let read = io::stdin().lock().read_line(&mut text).map_err(|error| Error::io("standard input", &error))?;
        if read == 0 {
            return Ok(if text.is_empty() { Line::End } else { Line::Text(text) });
        }
        if text.ends_with('\n') {
            text.pop();
        }
        if prompt.is_empty() || !text.ends_with('\\') {
            return Ok(Line::Text(text));
        }
        text.pop();
        text.push('\n');
    }
}

/// Treats a line that ends with a backslash as incomplete.
struct ContinuationValidator;

impl Validator for ContinuationValidator {
    fn validate(&self, line: &str) -> ValidationResult {
        if line.ends_with('\\') { ValidationResult::Incomplete } else { ValidationResult::Complete }
    }
}

/// Shows the typed text without colors.
struct PlainHighlighter;

impl reedline::Highlighter for PlainHighlighter {
    fn highlight(&self, line: &str, _: usize) -> reedline::StyledText {
        let mut text = reedline::StyledText::new();
        text.push((Default::default(), line.to_owned()));
        text
    }
}

struct PromptMarker(String);

impl Prompt for PromptMarker {
    fn render_prompt_left(&self) -> Cow<'_, str> {
        Cow::Borrowed("")
    }

    fn render_prompt_right(&self) -> Cow<'_, str> {
        Cow::Borrowed("")
    }

    fn render_prompt_indicator(&self, _: PromptEditMode) -> Cow<'_, str> {
        Cow::Borrowed(&self.0)
    }

    fn render_prompt_multiline_indicator(&self) -> Cow<'_, str> {
        Cow::Borrowed("  ")
    }

    fn render_prompt_history_search_indicator(&self, search: PromptHistorySearch) -> Cow<'_, str> {
        Cow::Owned(format!("(in history: {}) ", search.term))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_backslash_at_its_end_makes_a_line_go_on() {
        let is_complete = |line: &str| matches!(ContinuationValidator.validate(line), ValidationResult::Complete);
        assert!(is_complete("one") && !is_complete("one\\") && is_complete("one\\\ntwo"));
    }
}
