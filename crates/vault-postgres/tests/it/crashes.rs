//! Writers that wait, lose their connection, or their server.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use postgres::Client;
use vault_index::{ErrorKind, Query, SyncOptions, backend};
use vault_postgres::Database;

use crate::server::{Server, is_long};
use crate::vault::{Vault, answer, assert_same, model};

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
    let mut kept = 0;
    for moment in 0..if is_long() { 50_u64 } else { 6 } {
        let database = server.database("postgres");
        let mut committed = Vec::new();
        let synced = std::thread::scope(|scope| {
            let sync = scope.spawn(|| vault.sync(&database).map(drop));
            let mut client = server.client("postgres");
            let until = Instant::now() + Duration::from_millis(5 + 30 * moment);
            while (Instant::now() < until || committed.is_empty()) && !sync.is_finished() {
                committed = notes(&mut client);
            }
            server.kill();
            sync.join().unwrap()
        });
        if let Err(error) = synced {
            assert_eq!(error.kind(), ErrorKind::Store, "{}", error.one_line());
        }
        let error = server_is_away(&server.database("postgres"));
        assert!(error.contains("cannot be reached"), "{error}");
        server.start();
        let left = notes(&mut server.client("postgres"));
        let lost: Vec<_> = committed.iter().filter(|note| !left.contains(note)).collect();
        assert!(lost.is_empty(), "{lost:?}");
        kept += committed.len();
        write(&vault, 60 + 10 * moment as usize..70 + 10 * moment as usize);
    }
    assert!(kept > 60, "{kept} notes were committed before the server was killed");
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

/// The notes that other sessions see, with what of them was committed together.
fn notes(client: &mut Client) -> Vec<String> {
    let sql =
        "SELECT concat_ws(' ', file.path, encode(hash, 'hex'), count(DISTINCT passage.id), count(DISTINCT link.id))
         FROM vault_search.file JOIN vault_search.note ON note.id = file.id
         LEFT JOIN vault_search.passage ON passage.note = note.id LEFT JOIN vault_search.link ON source = note.id
         GROUP BY file.path, hash";
    client.query(sql, &[]).unwrap().iter().map(|row| row.get(0)).collect()
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
    let shown = format!("{other:?}");
    assert!(shown.contains("ann@") && !shown.contains("hunter2"), "{shown}");
    let none = Database::new(&server.address("postgres").replace("dbname=postgres", "dbname=template1")).unwrap();
    assert_eq!(none.vaults().unwrap_err().kind(), ErrorKind::NotFound);
}

#[test]
fn a_replica_is_searched_and_not_written() {
    let Some(server) = Server::new() else { return };
    let vault = filled(&server, 3);
    vault.sync(&server.database("postgres")).unwrap();
    let (primary, replica) = (vault.searcher(&server.database("postgres")).unwrap(), server.replica());
    assert_same(&primary, &vault.searcher(&replica.database("postgres")).unwrap(), &Query::literal("rose"));
    let error = vault.sync(&replica.database("postgres")).unwrap_err().one_line();
    assert!(error.contains("read-only, as a replica is"), "{error}");
}

/// Sessions of writers are ended at many moments.
#[test]
fn a_writer_that_is_cut_off_is_continued_by_the_next_one() {
    let Some(server) = Server::new() else { return };
    let (vault, database) = (filled(&server, 60), server.database("postgres"));
    let (mut cut, mut there) = (0, Vec::new());
    for moment in 0..25_u64 {
        write(&vault, 60 + 4 * moment as usize..64 + 4 * moment as usize);
        std::thread::scope(|scope| {
            let sync = scope.spawn(|| vault.sync(&database).map(drop));
            std::thread::sleep(Duration::from_millis(3 * moment));
            server.run("SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE application_name LIKE 'vault-index%'");
            cut += usize::from(sync.join().unwrap().is_err());
        });
        // Everything that was there is still there and can be searched, and no note is there by half.
        let left = notes(&mut server.client("postgres"));
        let lost: Vec<_> = there.iter().filter(|note| !left.contains(note)).collect();
        assert!(lost.is_empty(), "{lost:?}");
        there = left;
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
    let (index, searcher) = (vault.index(), vault.searcher(&database).unwrap());
    // The notes were read in another order, and equal scores are in that.
    let found = |searcher: &vault_index::Searcher| {
        searcher.matches(&Query::literal("rose")).unwrap().into_iter().collect::<BTreeSet<_>>()
    };
    assert_eq!(found(&searcher), found(&index.searcher().unwrap()));
    assert_eq!(searcher.nothing(vault_index::Mode::Lexical).pending, 0);
}

/// Vaults come and go while sessions use others.
#[test]
fn an_open_reader_of_another_vault_blocks_nothing() {
    let Some(server) = Server::new() else { return };
    let (vault, database) = (filled(&server, 3), server.database("postgres"));
    vault.sync(&database).unwrap();
    let searcher = vault.searcher(&database).unwrap();
    let found = answer(&searcher, &Query::literal("rose"));
    let limited = Database::new(&format!("{} options='-c lock_timeout=3s'", server.address("postgres"))).unwrap();
    limited.create_vault("other").unwrap();
    let other = Vault::new("other");
    other.write("a.md", "A rose.");
    other.sync(&database).unwrap();
    limited.forget_vault("other").unwrap();
    assert_eq!(database.vaults().unwrap(), ["notes"]);
    // Nothing of it is left to read, and a new vault of this name is another one.
    let rows = "SELECT count(*) FROM vault_search.posting WHERE vault <> (SELECT id FROM vault_search.vault)";
    let rows: i64 = server.client("postgres").query_one(rows, &[]).unwrap().get(0);
    assert_eq!(rows, 0);
    limited.create_vault("other").unwrap();
    assert_eq!(answer(&searcher, &Query::literal("rose")), found);
    assert_eq!(answer(&vault.searcher(&database).unwrap(), &Query::literal("rose")), found);
    drop(searcher);
    // Now nothing is in use, and all empty tables go.
    limited.forget_vault("other").unwrap();
    let partitions = "SELECT count(*) FROM pg_class WHERE relispartition AND relkind = 'r'";
    let partitions: i64 = server.client("postgres").query_one(partitions, &[]).unwrap().get(0);
    assert_eq!(partitions, 17);
}

#[test]
fn vaults_are_created_at_once() {
    let Some(server) = Server::new() else { return };
    server.database("postgres").create_schema().unwrap();
    std::thread::scope(|scope| {
        let created: Vec<_> = (0..6)
            .map(|n| {
                let database = server.database("postgres");
                scope.spawn(move || database.create_vault(&format!("vault {n}")))
            })
            .collect();
        for one in created {
            one.join().unwrap().unwrap();
        }
    });
    assert_eq!(server.database("postgres").vaults().unwrap().len(), 6);
}

#[test]
fn the_limit_of_the_user_stays() {
    let Some(server) = Server::new() else { return };
    server.run("ALTER ROLE postgres IN DATABASE template1 SET statement_timeout = '2ms'");
    let address = server.address("postgres");
    let by_role = Database::new(&address.replace("dbname=postgres", "dbname=template1")).unwrap();
    let by_address = Database::new(&format!("{address} options='-c statement_timeout=2ms'")).unwrap();
    for limited in [by_address, by_role] {
        let error = limited.create_schema().unwrap_err().one_line();
        assert!(error.contains("its limit of time"), "{error}");
    }
    server.database("postgres").create_schema().unwrap();
}

#[test]
fn errors_of_connections_say_what_to_do() {
    let Some(mut server) = Server::new() else { return };
    let vault = filled(&server, 1);
    vault.sync(&server.database("postgres")).unwrap();
    server.run("CREATE ROLE few LOGIN CONNECTION LIMIT 0; CREATE ROLE far LOGIN");
    server.run("CREATE DATABASE old ENCODING LATIN1 TEMPLATE template0");
    let says = |database: &Database, text: &str| {
        let error = database.vaults().unwrap_err().one_line();
        assert!(error.contains(text), "{error}");
    };
    says(&server.database("few"), "raise max_connections or the limit of your role");
    let old = Database::new(&server.address("postgres").replace("dbname=postgres", "dbname=old")).unwrap();
    let error = old.create_schema().unwrap_err().one_line();
    assert!(error.contains("LATIN1") && error.contains("createdb --encoding=UTF8"), "{error}");
    let none = Database::new(&server.address("postgres").replace("dbname=postgres", "dbname=none")).unwrap();
    says(&none, "createdb");
    let idle = "options='-c idle_in_transaction_session_timeout=20ms'";
    let idle = Database::new(&format!("{} {idle}", server.address("postgres"))).unwrap();
    let reader = idle.reader(vault.name).unwrap();
    while server
        .client("postgres")
        .query_one("SELECT count(*) FROM pg_stat_activity WHERE state LIKE 'idle in%'", &[])
        .unwrap()
        .get::<_, i64>(0)
        > 0
    {
        std::thread::sleep(Duration::from_millis(5));
    }
    let error = vault_index::backend::ReadNotes::note_count(&reader).unwrap_err().one_line();
    assert!(error.contains("because it was idle"), "{error}");
    server.admit("local all postgres trust\nhostssl all far all trust\n");
    says(&server.database("far"), "accepts no such connection from this address");
    server.kill();
    says(&server.database("postgres"), "cannot be reached");
}

/// The system accepts connections for a server that hangs.
#[test]
fn a_server_that_hangs_gets_one_connection_and_a_clear_error() {
    use std::net::TcpListener;

    let hangs = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = hangs.local_addr().unwrap().port();
    let database = Database::new(&format!("postgres://ann@127.0.0.1:{port}/notes?connect_timeout=1")).unwrap();
    let says = |text: &str| {
        let error = database.reader("notes").unwrap_err();
        assert!(error.kind() == ErrorKind::Store && error.one_line().contains(text), "{}", error.one_line());
    };
    says("does not answer");
    says("does not answer");
    let (first, _) = hangs.accept().unwrap();
    hangs.set_nonblocking(true).unwrap();
    assert!(hangs.accept().is_err());
    // Once it has ended that one, another is made.
    drop(first);
    says("does not answer");
    assert!(hangs.accept().is_ok());
    drop(hangs);
    says("cannot be reached");
}

/// Keys and paths that are longer than a row of an index.
#[test]
fn a_restored_backup_answers_the_same_and_keeps_the_rights() {
    let Some(server) = Server::new() else { return };
    let vault = filled(&server, 30);
    let database = server.database("postgres");
    vault.sync(&database).unwrap();
    server.run("CREATE ROLE ann LOGIN; CREATE ROLE eve LOGIN");
    server.run("DO $$ BEGIN EXECUTE format('GRANT %I TO ann', (SELECT reader FROM vault_search.vault)); END $$");
    // The roles are of the server, and lie in no backup of a database.
    let roles = server.output("pg_dumpall", &["--roles-only", "--no-role-passwords"]);
    // Every server has this one.
    let is_new = |line: &&str| !line.contains("ROLE postgres");
    let roles: Vec<&str> = std::str::from_utf8(&roles).unwrap().lines().filter(is_new).collect();
    let dump = server.output("pg_dump", &["--format=custom"]);
    let Some(other) = Server::new() else { return };
    other.script(roles.join("\n").as_bytes());
    other.restore(&dump);
    let restored = vault.searcher(&other.database("ann")).unwrap();
    let before = vault.searcher(&database).unwrap();
    for text in ["rose", "day 7", "note 12"] {
        assert_same(&before, &restored, &Query::parse(text).unwrap());
    }
    assert_eq!(other.database("eve").reader(vault.name).unwrap_err().kind(), ErrorKind::Store);
    vault.write("after.md", "written after the backup\n");
    vault.sync(&other.database("postgres")).unwrap();
}

#[test]
fn long_keys_and_paths_are_found() {
    let Some(server) = Server::new() else { return };
    let (vault, database) = (filled(&server, 0), server.database("postgres"));
    // Not compressible.
    let random = |seed: u64, length: usize| -> String {
        let digit = |n: u64| char::from(b'a' + (n.wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29) % 23) as u8);
        (0..length as u64).map(|n| digit((seed + 1) * 1_000_003 + n * n)).collect()
    };
    let long = random(1, 6000);
    vault.write("a.md", &format!("---\n{long}: 7\nok: 1\ntags: [\"{long}/x\", {long}y]\n---\nA rose."));
    vault.write("b.md", &format!("---\n{long}z: 7\n---\nA rose. #{long}"));
    let folder = (0..14).map(|n| random(n, 240)).collect::<Vec<_>>().join("/");
    vault.write(&format!("{folder}/c.md"), "A rose. [[d]]");
    vault.write(&format!("{folder}/d.md"), "A rose.");
    assert_eq!(vault.sync(&database).unwrap().pending, 0);
    std::fs::remove_file(vault.root().join(format!("{folder}/d.md"))).unwrap();
    vault.sync(&database).unwrap();
    let (index, searcher) = (vault.index(), vault.searcher(&database).unwrap());
    for text in [format!("tag:{long}"), format!("tag:{long}/x"), format!("[{long}:7]"), "rose".to_owned()] {
        let query = Query::parse(&text).unwrap();
        let found = searcher.matches(&query).unwrap();
        assert_eq!(found, index.searcher().unwrap().matches(&query).unwrap());
        assert!(!found.is_empty(), "{}", &text[..20]);
    }
}
