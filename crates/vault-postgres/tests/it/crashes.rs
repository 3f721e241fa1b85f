//! Writers that wait, lose their connection, or their server.

use std::time::Duration;

use vault_index::{ErrorKind, Query, SyncOptions, backend};
use vault_postgres::Database;

use crate::server::Server;
use crate::vault::{Vault, answer, model};

fn filled(server: &Server, notes: usize) -> Vault {
    let database = server.database("postgres");
    database.create_schema().unwrap();
    let vault = Vault::new("notes");
    database.create_vault(vault.name).unwrap();
    write(&vault, 0..notes);
    vault
}

fn write(vault: &Vault, numbers: std::ops::Range<usize>) {
    for number in numbers {
        vault.write(
            &format!("n{number}.md"),
            &format!("# Note {number}\n\nThe rose of day {number}. [[n{}]]", number / 2),
        );
    }
}

#[test]
fn one_writer_a_vault_who_is_named_and_readers_never_wait() {
    let Some(server) = Server::new() else { return };
    let (vault, database) = (filled(&server, 3), server.database("postgres"));
    vault.sync(&database).unwrap();
    let first = vault.writer(&database).unwrap();
    let error = vault.writer(&database).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Locked);
    assert!(error.message().contains("postgres vault-index"), "{}", error.message());
    // One who waits gets it.
    std::thread::scope(|scope| {
        let waits = scope.spawn(|| database.writer(vault.name, &*model(), Duration::from_secs(30)).map(drop));
        std::thread::sleep(Duration::from_millis(300));
        assert!(!waits.is_finished());
        drop(first);
        waits.join().unwrap().unwrap();
    });
    let first = vault.writer(&database).unwrap();
    // Another vault is free, and searches go on.
    database.create_vault("other").unwrap();
    drop(database.writer("other", &*model(), Duration::ZERO).unwrap());
    assert!(answer(&vault.searcher(&database).unwrap(), &Query::literal("rose")).contains("n1.md"));
    drop(first);
    drop(vault.writer(&database).unwrap());
}

#[test]
fn a_snapshot_stays_as_it_was() {
    let Some(server) = Server::new() else { return };
    let (vault, database) = (filled(&server, 2), server.database("postgres"));
    vault.sync(&database).unwrap();
    let searcher = vault.searcher(&database).unwrap();
    let before = answer(&searcher, &Query::literal("rose"));
    write(&vault, 2..9);
    assert_eq!(vault.sync(&database).unwrap().added, 7);
    assert_eq!(answer(&searcher, &Query::literal("rose")), before);
    assert_ne!(answer(&vault.searcher(&database).unwrap(), &Query::literal("rose")), before);
}

/// The server is killed at some moments of a sync; each time the next sync goes on, and the last one answers what a
/// file answers.
#[test]
fn a_killed_server_loses_nothing_that_was_committed() {
    let Some(mut server) = Server::new() else { return };
    let vault = filled(&server, 60);
    for moment in 0..6_u64 {
        let database = server.database("postgres");
        let synced = std::thread::scope(|scope| {
            let sync = scope.spawn(|| vault.sync(&database).map(drop));
            std::thread::sleep(Duration::from_millis(5 + 30 * moment));
            server.kill();
            sync.join().unwrap()
        });
        if let Err(error) = synced {
            assert_eq!(error.kind(), ErrorKind::Store, "{}", error.one_line());
        }
        let error = server_is_away(&server.database("postgres"));
        assert!(error.contains("cannot be reached"), "{error}");
        server.start();
        write(&vault, 60 + 10 * moment as usize..70 + 10 * moment as usize);
    }
    let database = server.database("postgres");
    let writer = database.writer(vault.name, &*model(), Duration::from_secs(30)).unwrap();
    let report = backend::sync(&writer, &vault.root(), &*model(), &[], &SyncOptions::new()).unwrap();
    assert_eq!((report.pending, report.unread), (0, 0));
    let (index, searcher) = (vault.index(), vault.searcher(&database).unwrap());
    for text in ["rose", "day 7", "note 33", "n12"] {
        let query = Query::parse(text).unwrap().limit(200);
        // The order in which notes were read differs, so equal scores are in no order that both have.
        let paths = |searcher: &vault_index::Searcher| {
            let mut found: Vec<_> = searcher
                .search(&query)
                .unwrap()
                .results
                .iter()
                .map(|hit| (hit.score.to_bits(), hit.path.to_string()))
                .collect();
            found.sort();
            found
        };
        assert_eq!(paths(&index.searcher().unwrap()), paths(&searcher), "{text}");
    }
}

fn server_is_away(database: &Database) -> String {
    database.vaults().unwrap_err().one_line()
}

#[test]
fn errors_say_what_to_do() {
    let Some(server) = Server::new() else { return };
    let (vault, database) = (filled(&server, 1), server.database("postgres"));
    server.run("ALTER DATABASE postgres SET default_transaction_read_only = on");
    let error = vault.sync(&database).unwrap_err().one_line();
    assert!(error.contains("read-only"), "{error}");
    server.run("SET transaction_read_only = off; ALTER DATABASE postgres RESET default_transaction_read_only");
    server.run("UPDATE vault_search.schema_version SET version = 99");
    let error = database.reader(vault.name).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::OtherFormat);
    assert!(error.one_line().contains("newer version"), "{}", error.one_line());
    assert_eq!(vault.sync(&database).unwrap_err().kind(), ErrorKind::OtherFormat);
    let other = Database::new("postgres://ann:hunter2@/nothing").unwrap();
    assert!(!format!("{other:?}").contains("hunter2"));
    let none = Database::new(&server.address("postgres").replace("dbname=postgres", "dbname=template1")).unwrap();
    assert_eq!(none.vaults().unwrap_err().kind(), ErrorKind::NotFound);
}

/// Sessions of writers are ended at many moments.
#[test]
fn a_writer_that_is_cut_off_is_continued_by_the_next_one() {
    let Some(server) = Server::new() else { return };
    let (vault, database) = (filled(&server, 60), server.database("postgres"));
    let mut cut = 0;
    for moment in 0..25_u64 {
        write(&vault, 60 + 4 * moment as usize..64 + 4 * moment as usize);
        std::thread::scope(|scope| {
            let sync = scope.spawn(|| vault.sync(&database).map(drop));
            std::thread::sleep(Duration::from_millis(3 * moment));
            server.run("SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE application_name LIKE 'vault-index%'");
            cut += usize::from(sync.join().unwrap().is_err());
        });
        // Whatever is there can be searched, and no note is there by half.
        assert!(vault.searcher(&database).unwrap().search(&Query::literal("rose")).is_ok());
        let halves = "SELECT count(*) FROM vault_search.note WHERE NOT EXISTS (
              SELECT 1 FROM vault_search.passage JOIN vault_search.words ON passage = passage.id AND note = note.id
              JOIN vault_search.passage_text ON passage_text.id = passage.id)";
        let halves: i64 = server.client("postgres").query_one(halves, &[]).unwrap().get(0);
        assert_eq!(halves, 0);
    }
    assert!(cut > 5, "{cut} syncs were cut off");
    let report = vault.sync(&database).unwrap();
    assert_eq!((report.pending, report.unread), (0, 0));
    let status = vault.searcher(&database).unwrap().nothing(vault_index::Mode::Lexical);
    assert_eq!(status.pending, 0);
}
