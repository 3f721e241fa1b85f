//! The store in real servers: the answers of an index file, rights that the server keeps, crashes.

mod clients;
mod relay;
mod server;
mod vault;

mod answers;
mod concurrency;
mod crashes;
mod load;
mod rights;
mod tls;
mod traffic;
