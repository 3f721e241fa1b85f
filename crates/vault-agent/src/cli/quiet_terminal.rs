//! The terminal during a turn: echo is off, because `type_ahead.rs` reads the keys. Ctrl-C still sends a signal.

use super::screen::Screen;

/// Turns echo and line editing of the terminal off until it is dropped.
pub(super) struct QuietTerminal {
    #[cfg(unix)]
    before: Option<rustix::termios::Termios>,
}

impl QuietTerminal {
    #[cfg(unix)]
    pub fn begin(screen: &Screen) -> Self {
        use rustix::termios::{InputModes, LocalModes, OptionalActions, tcgetattr, tcsetattr};
        let before = tcgetattr(std::io::stdin()).ok().filter(|_| screen.is_live());
        if let Some(before) = &before {
            let mut quiet = before.clone();
            quiet.local_modes &= !(LocalModes::ECHO | LocalModes::ICANON);
            // Leave Enter as a carriage return, as the line editor does.
            quiet.input_modes &= !InputModes::ICRNL;
            let _ = tcsetattr(std::io::stdin(), OptionalActions::Now, &quiet);
        }
        Self { before }
    }

    #[cfg(not(unix))]
    pub fn begin(_screen: &Screen) -> Self {
        Self {}
    }
}

#[cfg(unix)]
impl Drop for QuietTerminal {
    fn drop(&mut self) {
        use rustix::termios::{OptionalActions, tcsetattr};
        if let Some(before) = &self.before {
            let _ = tcsetattr(std::io::stdin(), OptionalActions::Now, before);
        }
    }
}
