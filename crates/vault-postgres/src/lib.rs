//! The index of `vault-index` in PostgreSQL with pgvector: one database for the vaults of a team.
//!
//! A [`Database`] holds many vaults, each in partitions of its own. [`Database::writer`] is a store that
//! [`backend::sync`](vault_index::backend::sync) brings up to date from a folder, [`Database::reader`] one that
//! [`backend::searcher`](vault_index::backend::searcher) searches. Filters, ranking and chunking are those of
//! `vault-index`, and this crate only answers their questions, so the results are those of an index file.
//!
//! ```no_run
//! use std::path::Path;
//! use std::sync::Arc;
//! use std::time::Duration;
//!
//! use vault_index::{HashedEmbedder, Query, SyncOptions, backend};
//! use vault_postgres::Database;
//!
//! let database = Database::new("postgres://ann@db.example/notes")?;
//! database.create_schema()?;                     // once, by the owner
//! database.create_vault("garden")?;              // by the owner, with a role for readers and one for writers
//! let model = Arc::new(HashedEmbedder::new());
//! let writer = database.writer("garden", &*model, Duration::from_secs(10))?;
//! backend::sync(&writer, Path::new("/home/ann/garden"), &*model, &[], &SyncOptions::new())?;
//! let searcher = backend::searcher(database.reader("garden")?, model)?;
//! for hit in searcher.search(&Query::parse("when to prune")?)?.results {
//!     println!("{} {:.2}", hit.path, hit.score);
//! }
//! # Ok::<(), vault_index::Error>(())
//! ```
//!
//! [`Database`] is also a [`backend::Database`](vault_index::backend::Database), so an
//! [`Index`](vault_index::Index) can be of one.
//!
//! # Rights
//! The server enforces them, not this program. Each vault has a role that may read it and one that may write it; the
//! owner of the database grants them to people. Row-level security on the partitioned tables shows a role its vaults
//! only, and the partitions themselves are closed to all but the owner. What a role can still learn of other vaults is
//! their number and sizes, because `pg_class` has these for all tables: only a database of its own hides that.
//!
//! # Exactness
//! Vectors are f32 and there is no approximate index. pgvector computes every score in f32 in an order of its own, so
//! the store gives an interval that contains ours too, and the few passages in question are scored again from their
//! vectors; see `vectors`.
//!
//! # TLS
//! As in libpq: a connection is encrypted if the server can, and the server is checked only if `sslmode` says so. Over
//! a network that others use, write `sslmode=verify-full`.

#![deny(missing_docs)]

mod error;
mod nul;
mod schema;
mod row;
mod prefetch;
mod copy;
mod connection;
mod tls;
mod address;
mod database;
mod notes;
mod names;
mod links;
mod words;
mod passages;
mod vectors;
mod contents;
mod batch;
mod index;
#[cfg(test)]
mod upgrade_tests;

pub use connection::VaultStore;
pub use database::Database;

/// The example of the README, as a test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
