//! The host: the editor around the vault, with its selection, open files and commands. Never writes a file.
//!
//! Editor tools edit the open file, and move the cursor in a plain [`Editor`] value, so that a preview and a run do the
//! same. A live host makes the edit in its editor if it has the file open ([`Host::open_editors`]); otherwise it sees the
//! file change like a change by any other program.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::error::{Error, ErrorKind, Result};
use crate::sandbox::SafePath;

/// A position in a text: line and column from 0, columns in UTF-16 units.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
pub struct Position {
    /// The line, from 0.
    pub line: u32,
    /// The column, from 0, in UTF-16 units as editors count.
    pub ch: u32,
}

/// A range of positions, the end excluded.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Span {
    /// The start.
    pub from: Position,
    /// The end.
    pub to: Position,
}

/// A selected text.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Selection {
    /// The text.
    pub text: String,
    /// Its range in the active file; `None` for a text that is not from a file, such as standard input.
    pub span: Option<Span>,
}

/// The state of an editor.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Editor {
    /// The note with the focus.
    pub active_file: Option<SafePath>,
    /// The selection.
    pub selection: Option<Selection>,
    /// The cursor.
    pub cursor: Option<Position>,
    /// The open notes, including the active one.
    pub open: Vec<SafePath>,
}

/// Where to open a note.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Leaf {
    /// In place of the note with the focus.
    #[default]
    Current,
    /// In a new tab.
    New,
}

/// A command.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct HostCommand {
    /// Its id.
    pub id: String,
    /// Its name for people.
    pub name: String,
}

/// The program around the vault: an editor, or [`Headless`].
pub trait Host: Send {
    /// Returns its name for messages.
    fn name(&self) -> &str;

    /// Returns whether it is a running editor, whose commands cannot be previewed or undone.
    fn is_live(&self) -> bool;

    /// Returns the state of its editor.
    ///
    /// # Errors
    /// If the host does not respond.
    fn editor(&self) -> Result<Editor>;

    /// Shows a note, at a line (from 1) if there is one; returns `false` if it cannot show notes.
    ///
    /// # Errors
    /// If the host does not respond.
    fn open(&mut self, path: &SafePath, leaf: Leaf, line: Option<u32>) -> Result<bool>;

    /// Returns the commands it can run, by id.
    ///
    /// # Errors
    /// If the host does not respond.
    fn commands(&self) -> Result<Vec<HostCommand>>;

    /// Runs a command.
    ///
    /// # Errors
    /// [`ErrorKind::Unsupported`] if it has no commands, [`ErrorKind::NotFound`] for an unknown one.
    fn run_command(&mut self, id: &str) -> Result<()>;

    /// Returns the editors in which it has files open, for one change. `None` if it edits no files.
    fn open_editors(&self) -> Option<Box<dyn OpenEditors>> {
        None
    }
}

/// The editors in which a host has files open. An edit that is made in one of them is a step of the editor's own undo,
/// and keeps its cursor and folds.
pub trait OpenEditors {
    /// Replaces the text of a file in its editor, and saves it. Makes no edit if no editor has the file open with exactly
    /// the text `before`; an editor with another text may save that. The caller compares the file with `after`, and
    /// writes it itself if the editor did not.
    fn replace(&mut self, path: &SafePath, before: &str, after: &str);
}

/// A host without an editor: the caller provides the selection and the open notes.
#[derive(Debug, Clone, Default)]
pub struct Headless {
    /// The editor state that the caller provides.
    pub editor: Editor,
}

impl Host for Headless {
    fn name(&self) -> &str {
        "headless"
    }

    fn is_live(&self) -> bool {
        false
    }

    fn editor(&self) -> Result<Editor> {
        Ok(self.editor.clone())
    }

    /// Does nothing, because the toolbox keeps the state of the editor after the calls.
    fn open(&mut self, _: &SafePath, _: Leaf, _: Option<u32>) -> Result<bool> {
        Ok(false)
    }

    fn commands(&self) -> Result<Vec<HostCommand>> {
        Ok(Vec::new())
    }

    fn run_command(&mut self, id: &str) -> Result<()> {
        Err(Error::new(ErrorKind::Unsupported, format!("there is no editor here that could run the command {id:?}"))
            .with_remedy("commands are run by a live host, such as Obsidian with a plugin that connects it"))
    }
}

impl Editor {
    /// Gives a note the focus, and clears selection and cursor.
    pub fn show(&mut self, path: &SafePath, leaf: Leaf) {
        if self.active_file.as_ref() == Some(path) {
            return;
        }
        if leaf == Leaf::Current
            && let Some(active) = self.active_file.take()
        {
            self.open.retain(|open| *open != active);
        }
        if !self.open.contains(path) {
            self.open.push(path.clone());
        }
        self.active_file = Some(path.clone());
        self.selection = None;
        self.cursor = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_headless_host_has_the_stated_editor() {
        let (a, b) = (SafePath::new("a.md").unwrap(), SafePath::new("b.md").unwrap());
        let mut editor = Editor::default();
        editor.show(&a, Leaf::Current);
        editor.show(&b, Leaf::New);
        assert_eq!((editor.active_file.as_ref(), &editor.open), (Some(&b), &vec![a.clone(), b.clone()]));
        let mut host = Headless { editor: editor.clone() };
        assert!(!host.open(&a, Leaf::Current, None).unwrap());
        assert_eq!(host.editor().unwrap(), editor);
        editor.show(&a, Leaf::Current);
        assert_eq!(editor.open, [a]);
        let refused = host.run_command("app:reload").unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::Unsupported);
        assert!(refused.to_string().contains("Obsidian"));
    }
}
