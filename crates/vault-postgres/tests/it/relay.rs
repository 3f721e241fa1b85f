//! A relay in front of a server, which counts round trips and bytes, and can hold answers back.

use std::io::{Read, Write};
use std::net::Shutdown;
use std::os::unix::net::{UnixListener, UnixStream};
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

use vault_postgres::Database;

use crate::server::Server;

/// Everything that passed.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Traffic {
    pub connections: usize,
    /// How often clients sent something after the server had answered, or first.
    pub round_trips: usize,
    pub sent: usize,
    pub received: usize,
}

pub struct Relay {
    folder: tempfile::TempDir,
    traffic: Arc<Mutex<Traffic>>,
    gate: Arc<Gate>,
}

/// Holds answers back until enough connections wait for one.
#[derive(Default)]
struct Gate {
    state: Mutex<Waiting>,
    opened: Condvar,
}

#[derive(Default)]
struct Waiting {
    connections: usize,
    /// The gate is shut until as many wait.
    until: usize,
}

impl Gate {
    fn asked(&self) {
        let mut state = self.state.lock().unwrap();
        state.connections += 1;
        if state.connections >= state.until {
            state.until = 0;
            self.opened.notify_all();
        }
    }

    /// Returns whether the gate was opened in time.
    fn answered(&self) -> bool {
        let shut = |state: &mut Waiting| state.until > 0;
        let state = self.state.lock().unwrap();
        let (mut state, waited) = self.opened.wait_timeout_while(state, Duration::from_secs(60), shut).unwrap();
        state.connections -= 1;
        !waited.timed_out()
    }
}

impl Relay {
    pub fn new(server: &Server) -> Self {
        let relay = Self { folder: tempfile::tempdir().unwrap(), traffic: Arc::default(), gate: Arc::default() };
        let listener = UnixListener::bind(relay.folder.path().join(".s.PGSQL.5432")).unwrap();
        let (socket, traffic, gate) = (server.socket(), Arc::clone(&relay.traffic), Arc::clone(&relay.gate));
        std::thread::spawn(move || {
            for client in listener.incoming().map_while(Result::ok) {
                traffic.lock().unwrap().connections += 1;
                // While there is no server, clients are refused.
                let Ok(server) = UnixStream::connect(&socket) else { continue };
                let is_answered = Arc::new(Mutex::new(true));
                let ends = [(client.try_clone().unwrap(), server.try_clone().unwrap(), true), (server, client, false)];
                for (from, to, is_of_client) in ends {
                    let (traffic, is_answered, gate) =
                        (Arc::clone(&traffic), Arc::clone(&is_answered), Arc::clone(&gate));
                    std::thread::spawn(move || {
                        pass(from, to, |bytes| {
                            if is_of_client {
                                let is_new = std::mem::replace(&mut *is_answered.lock().unwrap(), false);
                                let mut traffic = traffic.lock().unwrap();
                                traffic.round_trips += usize::from(is_new);
                                traffic.sent += bytes;
                                drop(traffic);
                                if is_new {
                                    gate.asked();
                                }
                                return true;
                            }
                            let is_first = !std::mem::replace(&mut *is_answered.lock().unwrap(), true);
                            traffic.lock().unwrap().received += bytes;
                            !is_first || gate.answered()
                        })
                    });
                }
            }
        });
        relay
    }

    pub fn address(&self, user: &str) -> String {
        format!("host={} user={user} dbname=postgres", self.folder.path().display())
    }

    pub fn database(&self, user: &str) -> Database {
        Database::new(&self.address(user)).unwrap()
    }

    /// Holds all answers back until this many connections wait for one at the same time, for a minute at most.
    pub fn hold_until(&self, connections: usize) {
        self.gate.state.lock().unwrap().until = connections;
    }

    /// The traffic since the last call.
    pub fn traffic(&self) -> Traffic {
        std::mem::take(&mut self.traffic.lock().unwrap())
    }
}

/// Passes bytes on, each part after `passes` has allowed it, until an end is closed.
fn pass(mut from: UnixStream, mut to: UnixStream, passes: impl Fn(usize) -> bool) {
    let mut buffer = vec![0; 1 << 16];
    while let Ok(bytes @ 1..) = from.read(&mut buffer) {
        if !passes(bytes) || to.write_all(&buffer[..bytes]).is_err() {
            break;
        }
    }
    let _ = to.shutdown(Shutdown::Both);
    let _ = from.shutdown(Shutdown::Both);
}
