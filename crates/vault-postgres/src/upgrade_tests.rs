//! Two versions of the program with one database in a real server. The newer one differs by its upgrades.

#[expect(dead_code, reason = "the tests of the store use the rest")]
#[path = "../tests/it/server.rs"]
mod server;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use tempfile::TempDir;
use vault_index::backend::{self, WriteStore};
use vault_index::{ErrorKind, HashedEmbedder, Index, Options, Query, Result, SyncOptions};

use crate::Database;
use server::Server;

/// The tables as other sessions see them, before and after an upgrade.
const OLD: (i64, i64) = (1, 0);
const NEW: (i64, i64) = (3, 1);

struct Team {
    server: Server,
    folder: TempDir,
}

impl Team {
    /// A vault in a database of the older version, which `ann` may read.
    fn new() -> Option<Self> {
        let team = Self { server: Server::new()?, folder: tempfile::tempdir().unwrap() };
        std::fs::create_dir(team.vault()).unwrap();
        std::fs::write(team.vault().join("Roses.md"), "Prune the roses in late winter.").unwrap();
        let old = team.old("postgres");
        old.create_schema().unwrap();
        let (reader, _) = old.create_vault("garden").unwrap();
        team.server.run(&format!("CREATE ROLE ann LOGIN; GRANT {reader} TO ann"));
        team.sync(&old).unwrap();
        Some(team)
    }

    fn vault(&self) -> PathBuf {
        self.folder.path().join("garden")
    }

    fn old(&self, user: &str) -> Database {
        Database::new(&self.server.address(user)).unwrap()
    }

    /// Two versions newer.
    fn new_with(&self, user: &str, upgrades: &'static [&'static str]) -> Database {
        let mut database = self.old(user);
        database.upgrades = upgrades;
        database
    }

    fn new_version(&self, user: &str) -> Database {
        self.new_with(
            user,
            &[
                "ALTER TABLE vault ADD COLUMN mood text; UPDATE vault SET mood = 'fair'",
                "ALTER TABLE vault RENAME mood TO colour",
            ],
        )
    }

    fn sync(&self, database: &Database) -> Result<()> {
        let store = database.writer("garden", &HashedEmbedder::new(), Duration::ZERO)?;
        backend::sync(&store, &self.vault(), &HashedEmbedder::new(), &[], &SyncOptions::new()).map(drop)
    }

    fn index(&self, database: Database) -> Index {
        let options = Options::new().database(Arc::new(database)).embedder(Arc::new(HashedEmbedder::new()));
        Index::open(self.vault(), options).unwrap()
    }

    /// The version of the tables, and the number of columns that the upgrades add.
    fn tables(&self) -> (i64, i64) {
        let mut client = postgres::Client::connect(&self.server.address("postgres"), postgres::NoTls).unwrap();
        let sql = "SELECT version, (SELECT count(*) FROM information_schema.columns
             WHERE table_name = 'vault' AND column_name IN ('mood', 'colour')) FROM vault_search.schema_version";
        let row = client.query_one(sql, &[]).unwrap();
        (row.get(0), row.get(1))
    }
}

fn refused<T>(result: Result<T>, kind: ErrorKind, says: &str) {
    let error = result.err().expect("an error");
    assert!(error.kind() == kind && error.one_line().contains(says), "{}", error.one_line());
}

fn find(database: &Database) -> Result<String> {
    let searcher = backend::searcher(database.reader("garden")?, Arc::new(HashedEmbedder::new()))?;
    Ok(format!("{:?}", searcher.search(&Query::literal("roses"))?))
}

#[test]
fn the_owner_upgrades_and_each_version_knows_whose_turn_it_is() {
    let Some(team) = Team::new() else { return };
    let (old, new) = (team.old("postgres"), team.new_version("postgres"));
    let found = find(&old).unwrap();
    // Readers of the newer program wait for the owner, and so do writers and those who add vaults.
    refused(find(&team.new_version("ann")), ErrorKind::OtherFormat, "wait until the owner of the tables has upgraded");
    refused(
        team.index(team.new_version("ann")).search(&Query::literal("roses")),
        ErrorKind::OtherFormat,
        "vault-index sync",
    );
    refused(team.index(team.new_version("ann")).sync(), ErrorKind::OtherFormat, "wait until the owner");
    refused(team.sync(&new), ErrorKind::OtherFormat, "wait until the owner");
    refused(new.create_vault("other"), ErrorKind::OtherFormat, "wait until the owner");
    refused(new.forget_vault("garden"), ErrorKind::OtherFormat, "wait until the owner");
    // A session of the older program that reads is waited for; one that writes is refused its next change.
    let reader = old.reader("garden").unwrap();
    refused(team.index(team.new_version("postgres")).sync(), ErrorKind::Locked, "used by postgres vault-index");
    assert_eq!((team.tables(), find(&old).unwrap()), (OLD, found.clone()));
    drop(reader);
    let writer = old.writer("garden", &HashedEmbedder::new(), Duration::ZERO).unwrap();
    new.create_schema().unwrap();
    assert_eq!(team.tables(), NEW);
    refused(writer.begin().map(drop), ErrorKind::OtherFormat, "use a newer version of this program");
    drop(writer);
    // Now the newer program answers as before, and the older one says why it does not.
    new.create_schema().unwrap();
    assert_eq!((team.tables(), find(&new).unwrap()), (NEW, found));
    team.sync(&new).unwrap();
    let newer = "use a newer version of this program";
    refused(find(&team.old("ann")), ErrorKind::OtherFormat, newer);
    refused(team.sync(&old), ErrorKind::OtherFormat, newer);
    refused(team.index(old.clone()).sync(), ErrorKind::OtherFormat, newer);
    refused(old.create_schema(), ErrorKind::OtherFormat, newer);
    refused(old.create_vault("other"), ErrorKind::OtherFormat, newer);
    refused(old.forget_vault("garden"), ErrorKind::OtherFormat, newer);
    assert_eq!((team.tables(), new.vaults().unwrap()), (NEW, vec!["garden".to_owned()]));
}

#[test]
fn the_next_sync_of_the_owner_upgrades() {
    let Some(team) = Team::new() else { return };
    let index = team.index(team.new_version("postgres"));
    std::fs::write(team.vault().join("Quince.md"), "Make jelly of the quince.").unwrap();
    // A program asks for the model first, to ask a person for consent.
    assert!(index.model_of_sync().unwrap().is_none());
    assert_eq!(team.tables(), NEW);
    assert_eq!(index.sync().unwrap().added, 1);
    assert!(find(&team.new_version("ann")).unwrap().contains("Roses.md"));
    let Some(other) = Team::new() else { return };
    assert_eq!(other.index(other.new_version("postgres")).sync().unwrap().added, 0);
    assert_eq!(other.tables(), NEW);
}

#[test]
fn an_upgrade_that_fails_changes_nothing() {
    let Some(team) = Team::new() else { return };
    let found = find(&team.old("ann")).unwrap();
    let fails = team.new_with("postgres", &["ALTER TABLE vault ADD COLUMN mood text", "SELECT 1 / 0"]);
    refused(fails.create_schema(), ErrorKind::Store, "division by zero");
    assert_eq!((team.tables(), find(&team.old("ann")).unwrap()), (OLD, found));
    team.sync(&team.old("postgres")).unwrap();
}

/// An upgrade may rewrite a table, which is empty for a state from before.
#[test]
fn a_reader_that_comes_during_an_upgrade_sees_its_version() {
    let Some(team) = Team::new() else { return };
    let mut upgrade = postgres::Client::connect(&team.server.address("postgres"), postgres::NoTls).unwrap();
    upgrade.batch_execute(&format!("BEGIN; {}", crate::schema::LOCK_OUT)).unwrap();
    std::thread::scope(|scope| {
        let old = team.old("ann");
        let comes = scope.spawn(move || old.reader("garden").map(drop));
        let waits = "SELECT count(*) FROM pg_stat_activity WHERE usename = 'ann' AND wait_event_type = 'Lock'";
        let mut client = postgres::Client::connect(&team.server.address("postgres"), postgres::NoTls).unwrap();
        while client.query_one(waits, &[]).unwrap().get::<_, i64>(0) == 0 {
            assert!(!comes.is_finished());
        }
        upgrade.batch_execute("UPDATE vault_search.schema_version SET version = 3; COMMIT").unwrap();
        refused(comes.join().unwrap(), ErrorKind::OtherFormat, "use a newer version of this program");
    });
}

#[test]
fn a_version_that_no_program_had_is_refused() {
    let Some(team) = Team::new() else { return };
    for (version, says) in [(0, "wait until"), (4, "newer version")] {
        team.server.run(&format!("UPDATE vault_search.schema_version SET version = {version}"));
        refused(team.index(team.new_version("postgres")).sync(), ErrorKind::OtherFormat, says);
        assert_eq!(team.tables(), (version, 0));
    }
}
