//! What stands around the vault: an editor with a selection, a workspace, commands. Never writes a file.
//!
//! Editor tools edit the file that is open and move the cursor in a plain [`Editor`] value, so that a preview and
//! a run do the same; a live host sees the file change, as it does when any other program edits it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::error::{Error, ErrorKind, Result};
use crate::sandbox::SafePath;

/// A place in a text: line and column from 0, columns in UTF-16 units.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
pub struct Position {
    /// The line, from 0.
    pub line: u32,
    /// The column, from 0, in UTF-16 units as editors count.
    pub ch: u32,
}

/// From one place to another, the end not included.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Span {
    /// Where it begins.
    pub from: Position,
    /// Where it ends.
    pub to: Position,
}

/// Text that a person selected.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Selection {
    /// The text.
    pub text: String,
    /// Where it lies in the active file; `None` for text that lies in no file, as from standard input.
    pub span: Option<Span>,
}

/// What an editor shows now.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Editor {
    /// The note that has the focus.
    pub active_file: Option<SafePath>,
    /// What is selected.
    pub selection: Option<Selection>,
    /// Where the cursor is.
    pub cursor: Option<Position>,
    /// Open notes, the active one among them.
    pub open: Vec<SafePath>,
}

/// Where a note is opened.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Leaf {
    /// In place of the note that has the focus.
    #[default]
    Current,
    /// In a tab of its own.
    New,
}

/// A command.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct HostCommand {
    /// By which it is run.
    pub id: String,
    /// As people see it.
    pub name: String,
}

/// The program around the vault.
pub trait Host: Send {
    /// What it is called in messages.
    fn name(&self) -> &str;

    /// Whether a program with windows and commands is there; what it does cannot be previewed or undone.
    fn is_live(&self) -> bool;

    /// What its editor shows now.
    ///
    /// # Errors
    /// When it cannot be asked.
    fn editor(&self) -> Result<Editor>;

    /// Shows a note; `false` where there is nothing to show it in.
    ///
    /// # Errors
    /// When it cannot be asked.
    fn open(&mut self, path: &SafePath, leaf: Leaf) -> Result<bool>;

    /// The commands it can run, by id.
    ///
    /// # Errors
    /// When it cannot be asked.
    fn commands(&self) -> Result<Vec<HostCommand>>;

    /// Runs a command.
    ///
    /// # Errors
    /// [`ErrorKind::Unsupported`] where there are no commands, [`ErrorKind::NotFound`] for an unknown one.
    fn run_command(&mut self, id: &str) -> Result<()>;
}

/// No program around the vault: the caller states what is selected and open.
#[derive(Debug, Clone, Default)]
pub struct Headless {
    /// What the caller stated.
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

    /// What was stated stays as it is: what a call opened is in the toolbox's editor, as is what it typed.
    fn open(&mut self, _: &SafePath, _: Leaf) -> Result<bool> {
        Ok(false)
    }

    fn commands(&self) -> Result<Vec<HostCommand>> {
        Ok(Vec::new())
    }

    fn run_command(&mut self, id: &str) -> Result<()> {
        Err(Error::new(ErrorKind::Unsupported, format!("there is no program here that could run the command {id:?}"))
            .remedy("commands are run by a live host, such as Obsidian with a plugin that connects it"))
    }
}

impl Editor {
    /// Gives a note the focus; selection and cursor of the one before are gone.
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
    fn a_headless_host_knows_what_it_was_told() {
        let (a, b) = (SafePath::new("a.md").unwrap(), SafePath::new("b.md").unwrap());
        let mut editor = Editor::default();
        editor.show(&a, Leaf::Current);
        editor.show(&b, Leaf::New);
        assert_eq!((editor.active_file.as_ref(), &editor.open), (Some(&b), &vec![a.clone(), b.clone()]));
        let mut host = Headless { editor: editor.clone() };
        assert!(!host.open(&a, Leaf::Current).unwrap());
        assert_eq!(host.editor().unwrap(), editor);
        editor.show(&a, Leaf::Current);
        assert_eq!(editor.open, [a]);
        let refused = host.run_command("app:reload").unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::Unsupported);
        assert!(refused.to_string().contains("Obsidian"));
    }
}
