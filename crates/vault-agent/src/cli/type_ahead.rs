//! Text that a person types during a turn: shown below the status line, and each whole line queued as a message.

use std::collections::VecDeque;
use std::io::{self, IsTerminal};
use std::time::Duration;

use crossterm::event::{Event, KeyCode, KeyEventKind, KeyModifiers, poll, read};
use vault_search::sanitize_line;

/// The text that was typed during a turn.
#[derive(Debug, Default)]
pub(super) struct TypeAhead {
    lines: VecDeque<String>,
    /// The line that is not finished yet.
    open: String,
}

impl TypeAhead {
    /// Reads the pressed keys without waiting. Does nothing if standard input is a pipe, because messages then come
    /// from there.
    pub fn read(&mut self) {
        if !io::stdin().is_terminal() {
            return;
        }
        while poll(Duration::ZERO).unwrap_or(false) {
            match read() {
                Ok(event) => self.press(event),
                Err(_) => return,
            }
        }
    }

    fn press(&mut self, event: Event) {
        let key = match event {
            Event::Paste(text) => return self.open.push_str(&text.replace("\r\n", "\n").replace('\r', "\n")),
            Event::Key(key) if key.kind != KeyEventKind::Release => key,
            _ => return,
        };
        let has = |modifier| key.modifiers.contains(modifier);
        match key.code {
            KeyCode::Enter if has(KeyModifiers::ALT) || has(KeyModifiers::SHIFT) => self.open.push('\n'),
            KeyCode::Char('j') if has(KeyModifiers::CONTROL) => self.open.push('\n'),
            KeyCode::Enter if self.open.ends_with('\\') => {
                self.open.pop();
                self.open.push('\n');
            }
            KeyCode::Enter if self.open.trim().is_empty() => self.open.clear(),
            KeyCode::Enter => self.lines.push_back(std::mem::take(&mut self.open)),
            KeyCode::Backspace => drop(self.open.pop()),
            KeyCode::Char('u') if has(KeyModifiers::CONTROL) => self.open.clear(),
            KeyCode::Char(letter) if !has(KeyModifiers::CONTROL) && !has(KeyModifiers::ALT) => self.open.push(letter),
            _ => {}
        }
    }

    /// Takes the next queued message.
    pub fn next_line(&mut self) -> Option<String> {
        self.lines.pop_front()
    }

    /// Takes the unfinished line, for the prompt.
    pub fn take_open(&mut self) -> String {
        std::mem::take(&mut self.open)
    }

    /// Turns all queued lines back into the unfinished line, so that they can be edited.
    pub fn reopen(&mut self) {
        let lines: Vec<String> = self.lines.drain(..).chain([std::mem::take(&mut self.open)]).collect();
        self.open = lines.join("\n").trim_end_matches('\n').to_owned();
    }

    /// Returns the lines to draw below the status line.
    pub fn shown(&self) -> Vec<String> {
        let queued = self.lines.iter().map(|line| format!("  next: {}", sanitize_line(line)));
        let open = (!self.open.is_empty()).then(|| format!("> {}", sanitize_line(&self.open)));
        queued.chain(open).collect()
    }
}

#[cfg(test)]
mod tests {
    use crossterm::event::KeyEvent;

    use super::*;

    fn typed(keys: &str) -> TypeAhead {
        let mut typed = TypeAhead::default();
        for key in keys.chars() {
            let code = match key {
                '\r' => KeyCode::Enter,
                '\u{8}' => KeyCode::Backspace,
                letter => KeyCode::Char(letter),
            };
            typed.press(Event::Key(KeyEvent::new(code, KeyModifiers::NONE)));
        }
        typed
    }

    #[test]
    fn whole_lines_follow_and_the_rest_is_for_the_prompt() {
        let mut keys = typed("one\r\r  \rtwoo\u{8}\\\rmore\r/quit\rlef");
        assert_eq!(keys.shown(), ["  next: one", "  next: two more", "  next: /quit", "> lef"]);
        assert_eq!((keys.next_line().as_deref(), keys.next_line().as_deref()), (Some("one"), Some("two\nmore")));
        assert_eq!((keys.next_line().as_deref(), keys.next_line()), (Some("/quit"), None));
        assert_eq!(keys.take_open(), "lef");
        let mut keys = typed("one\rtwo\rthr");
        keys.press(Event::Paste("ee\r\nfour".to_owned()));
        keys.reopen();
        assert_eq!((keys.next_line(), keys.take_open()), (None, "one\ntwo\nthree\nfour".to_owned()));
    }
}
