//! The terminal while a turn runs: it echoes nothing of what is typed, which `type_ahead.rs` reads. Ctrl-C works.

use super::screen::Screen;

/// While it lives, the terminal shows nothing of what is typed and changes nothing in it.
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
            // Enter stays what it is to the editor of lines.
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
