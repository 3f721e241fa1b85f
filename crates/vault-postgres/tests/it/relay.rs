//! A relay in front of a server, which counts round trips and bytes.

use std::io::{Read, Write};
use std::net::Shutdown;
use std::os::unix::net::{UnixListener, UnixStream};
use std::sync::{Arc, Mutex};

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
}

impl Relay {
    pub fn new(server: &Server) -> Self {
        let relay = Self { folder: tempfile::tempdir().unwrap(), traffic: Arc::default() };
        let listener = UnixListener::bind(relay.folder.path().join(".s.PGSQL.5432")).unwrap();
        let (socket, traffic) = (server.socket(), Arc::clone(&relay.traffic));
        std::thread::spawn(move || {
            for client in listener.incoming().map_while(Result::ok) {
                traffic.lock().unwrap().connections += 1;
                let server = UnixStream::connect(&socket).unwrap();
                let is_answered = Arc::new(Mutex::new(true));
                let ends = [(client.try_clone().unwrap(), server.try_clone().unwrap(), true), (server, client, false)];
                for (from, to, is_of_client) in ends {
                    let (traffic, is_answered) = (Arc::clone(&traffic), Arc::clone(&is_answered));
                    std::thread::spawn(move || {
                        pass(from, to, |bytes| {
                            let (mut traffic, mut is_answered) = (traffic.lock().unwrap(), is_answered.lock().unwrap());
                            if is_of_client {
                                traffic.round_trips += usize::from(std::mem::replace(&mut *is_answered, false));
                                traffic.sent += bytes;
                            } else {
                                *is_answered = true;
                                traffic.received += bytes;
                            }
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

    /// The traffic since the last call.
    pub fn traffic(&self) -> Traffic {
        std::mem::take(&mut self.traffic.lock().unwrap())
    }
}

/// Passes bytes on, each part after it was counted, until an end is closed.
fn pass(mut from: UnixStream, mut to: UnixStream, count: impl Fn(usize)) {
    let mut buffer = vec![0; 1 << 16];
    while let Ok(bytes @ 1..) = from.read(&mut buffer) {
        count(bytes);
        if to.write_all(&buffer[..bytes]).is_err() {
            break;
        }
    }
    let _ = to.shutdown(Shutdown::Both);
    let _ = from.shutdown(Shutdown::Both);
}
