//! The program in a terminal of its own: what is typed, and what is on the screen.

use std::fs::File;
use std::io::{ErrorKind, Read, Write};
use std::process::{Child, Command};
use std::sync::{Arc, Condvar, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rustix::fs::{Mode, OFlags};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};

/// Rows that hold all that a test shows, so that nothing leaves the screen.
const ROWS: u16 = 400;

/// How long a test waits for what is to come.
const PATIENCE: Duration = Duration::from_secs(120);

/// What an editor of lines sends when it begins to read one.
const PROMPT: &str = "\x1b[?2004h";

/// A terminal with a program in it. The terminal is closed when it is dropped.
pub struct Terminal {
    child: Child,
    side: File,
    shown: Arc<SharedScreen>,
    reader: Option<JoinHandle<()>>,
    /// How much of what was written has been waited for.
    at: usize,
}

struct SharedScreen {
    state: Mutex<State>,
    changed: Condvar,
}

struct State {
    written: String,
    parser: vt100::Parser,
    /// The program has closed its side.
    is_closed: bool,
    /// The test closes its own.
    is_closing: bool,
}

impl Terminal {
    /// Starts a command as the leader of a session whose terminal this is.
    pub fn start(command: &Command, columns: u16) -> Self {
        Self::begin(command, columns, ROWS, true)
    }

    /// Starts a command that is told that the terminal has these rows. What leaves them can still be read.
    pub fn start_with_rows(command: &Command, columns: u16, rows: u16) -> Self {
        Self::begin(command, columns, rows, true)
    }

    /// Starts a command that has the terminal and is not told when it goes: it leads no session.
    pub fn start_beside(command: &Command, columns: u16) -> Self {
        Self::begin(command, columns, ROWS, false)
    }

    fn begin(command: &Command, columns: u16, rows: u16, leads: bool) -> Self {
        let side = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
        // So that the reader can be told to end.
        rustix::fs::fcntl_setfl(&side, OFlags::NONBLOCK).unwrap();
        rustix::io::fcntl_setfd(&side, rustix::io::FdFlags::CLOEXEC).unwrap();
        grantpt(&side).unwrap();
        unlockpt(&side).unwrap();
        let name = ptsname(&side, Vec::new()).unwrap();
        let other = rustix::fs::open(name, OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC, Mode::empty()).unwrap();
        let size = rustix::termios::Winsize { ws_row: rows, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 };
        rustix::termios::tcsetwinsize(&other, size).unwrap();
        let other = File::from(other);
        let mut session = if leads { Command::new("setsid") } else { Command::new(command.get_program()) };
        if leads {
            session.arg("-c").arg("-w").arg(command.get_program());
        }
        session.args(command.get_args()).env_clear();
        session.envs(command.get_envs().filter_map(|(name, value)| Some((name, value?))));
        if let Some(folder) = command.get_current_dir() {
            session.current_dir(folder);
        }
        session.stdin(other.try_clone().unwrap()).stdout(other.try_clone().unwrap()).stderr(other);
        let child = session.spawn().unwrap();
        // The command holds the terminal's other side open until it is dropped.
        drop(session);
        let side = File::from(side);
        let parser = vt100::Parser::new(ROWS, columns, 0);
        let state = State { written: String::new(), parser, is_closed: false, is_closing: false };
        let shown = Arc::new(SharedScreen { state: Mutex::new(state), changed: Condvar::new() });
        let (reading, writing) = (Arc::clone(&shown), side.try_clone().unwrap());
        let reader = Some(std::thread::spawn(move || reading.read(writing)));
        Self { child, side, shown, reader, at: 0 }
    }

    /// Types keys as they are.
    pub fn press(&mut self, keys: &str) {
        self.side.write_all(keys.as_bytes()).unwrap();
    }

    /// Types a line at the prompt that comes next.
    pub fn say(&mut self, line: &str) {
        self.until(PROMPT);
        self.press(line);
        self.press("\r");
    }

    /// Waits for a text behind what was waited for last.
    pub fn until(&mut self, text: &str) {
        let mut state = self.shown.state.lock().unwrap();
        let deadline = Instant::now() + PATIENCE;
        loop {
            if let Some(found) = state.written[self.at..].find(text) {
                self.at += found + text.len();
                return;
            }
            let left = deadline.saturating_duration_since(Instant::now());
            let is_over = left.is_zero() || state.is_closed;
            assert!(
                !is_over,
                "{text:?} never came:\n{}\n{:?}",
                state.parser.screen().contents(),
                &state.written[self.at..]
            );
            state = self.shown.changed.wait_timeout(state, left.min(Duration::from_secs(1))).unwrap().0;
        }
    }

    /// What is on the screen.
    pub fn screen(&self) -> String {
        self.shown.state.lock().unwrap().parser.screen().contents()
    }

    /// All that was written to the terminal.
    pub fn written(&self) -> String {
        self.shown.state.lock().unwrap().written.clone()
    }

    /// Waits for the end of the program: what is on the screen, and the exit code.
    pub fn end(mut self) -> (String, i32) {
        let code = self.child.wait().unwrap().code().unwrap_or(-1);
        let mut state = self.shown.state.lock().unwrap();
        while !state.is_closed {
            state = self.shown.changed.wait_timeout(state, Duration::from_secs(1)).unwrap().0;
        }
        (state.parser.screen().contents(), code)
    }

    /// Closes the terminal, and waits for the end of the program.
    pub fn close(mut self) -> i32 {
        self.shown.state.lock().unwrap().is_closing = true;
        self.reader.take().unwrap().join().unwrap();
        let Self { mut child, side, .. } = self;
        drop(side);
        child.wait().unwrap().code().unwrap_or(-1)
    }
}

impl SharedScreen {
    /// Reads what is written, and answers as a terminal does when it is asked where the cursor is.
    fn read(&self, mut side: File) {
        let mut bytes = [0; 4096];
        let mut partial = Vec::new();
        loop {
            let read = match side.read(&mut bytes) {
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    if self.state.lock().unwrap().is_closing {
                        return;
                    }
                    std::thread::sleep(Duration::from_millis(2));
                    continue;
                }
                // How the end of a terminal's other side is told differs between systems.
                other => other.unwrap_or(0),
            };
            let mut state = self.state.lock().unwrap();
            if read == 0 {
                state.is_closed = true;
                self.changed.notify_all();
                return;
            }
            partial.extend_from_slice(&bytes[..read]);
            let whole = match std::str::from_utf8(&partial) {
                Ok(_) => partial.len(),
                Err(error) => error.valid_up_to(),
            };
            let text = String::from_utf8_lossy(&partial[..whole]).into_owned();
            for piece in text.split_inclusive("\x1b[6n") {
                state.parser.process(piece.as_bytes());
                if piece.ends_with("\x1b[6n") {
                    let (row, column) = state.parser.screen().cursor_position();
                    let _ = side.write_all(format!("\x1b[{};{}R", row + 1, column + 1).as_bytes());
                }
            }
            state.written.push_str(&text);
            partial.drain(..whole);
            self.changed.notify_all();
        }
    }
}
