//! Clients of a test's server.

use postgres::{Client, NoTls};
use vault_postgres::Database;

use crate::server::Server;

impl Server {
    /// The database as a user sees it.
    pub fn database(&self, user: &str) -> Database {
        Database::new(&self.address(user)).unwrap()
    }

    pub fn client(&self, user: &str) -> Client {
        Client::connect(&self.address(user), NoTls).unwrap()
    }
}
