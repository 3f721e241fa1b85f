//! Searches of several threads at the same time: each with a connection of its own, all of one state.

use std::sync::Arc;
use std::time::{Duration, Instant};

use vault_index::{ErrorKind, Index, Options, Query, Searcher, backend};
use vault_postgres::Database;

use crate::relay::Relay;
use crate::server::Server;
use crate::vault::{Vault, answer, model};

/// As many connections as one searcher uses.
const MOST: usize = 4;

fn vault_in(server: &Server) -> (Vault, Database) {
    let (vault, database) = (Vault::new("garden"), server.database("postgres"));
    for n in 0..60 {
        let text = format!("# Plot {n}\n\nThe apple trees and the roses are pruned in winter, tree {n}.\n");
        vault.write(&format!("n{n}.md"), &text);
    }
    database.create_schema().unwrap();
    database.create_vault(vault.name).unwrap();
    vault.sync(&database).unwrap();
    (vault, database)
}

/// Queries that nothing is known of yet, so that each must ask.
fn queries(from: usize, number: usize) -> Vec<Query> {
    (from..from + number).map(|n| Query::literal(format!("pruned tree {n}")).limit(7 + n)).collect()
}

/// The answers to queries that are asked by a thread each.
fn at_once(queries: &[Query], ask: impl Fn(&Query) -> String + Sync) -> Vec<String> {
    std::thread::scope(|scope| {
        let ask = &ask;
        let threads: Vec<_> = queries.iter().map(|query| scope.spawn(move || ask(query))).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    })
}

fn one_by_one(searcher: &Searcher, queries: &[Query]) -> Vec<String> {
    queries.iter().map(|query| answer(searcher, query)).collect()
}

/// Answers are long.
fn assert_same(found: &[String], expected: &[String]) {
    for (n, (found, expected)) in found.iter().zip(expected).enumerate() {
        assert!(found == expected, "{n}: {found:.300}\n--- instead of\n{expected:.300}");
    }
    assert_eq!(found.len(), expected.len());
}

fn end_all_sessions(server: &Server) {
    server
        .run("SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE application_name LIKE 'vault-index%'");
}

#[test]
fn searches_at_the_same_time_have_connections_of_their_own_and_one_state() {
    let Some(server) = Server::new() else { return };
    let (vault, database) = vault_in(&server);
    let relay = Relay::new(&server);
    let searcher = backend::searcher(relay.database("postgres").reader(vault.name).unwrap(), model()).unwrap();
    let file = vault.index().searcher().unwrap();
    // The first time, connections are opened; the second time, all of them have asked before one is answered.
    for from in [0, MOST] {
        let queries = queries(from, MOST);
        relay.hold_until(MOST);
        assert_same(&at_once(&queries, |query| answer(&searcher, query)), &one_by_one(&file, &queries));
    }
    assert_eq!(relay.traffic().connections, MOST);
    // More wait. Later states are not seen, on none of the connections.
    vault.write("new.md", "# Pruned tree\n\nPruned tree, pruned tree.\n");
    vault.sync(&database).unwrap();
    let many = queries(2 * MOST, 3 * MOST);
    let found = at_once(&many, |query| answer(&searcher, query));
    assert_same(&found, &one_by_one(&file, &many));
    assert!(found.iter().all(|found| !found.contains("new.md")));
    let last = queries(5 * MOST, MOST);
    relay.hold_until(MOST);
    assert_same(&at_once(&last, |query| answer(&searcher, query)), &one_by_one(&file, &last));
    assert_eq!(relay.traffic().connections, 0);
}

#[test]
fn a_state_that_is_no_longer_the_newest_is_read_by_the_connections_that_it_has() {
    let Some(server) = Server::new() else { return };
    let (vault, database) = vault_in(&server);
    let relay = Relay::new(&server);
    let searcher = backend::searcher(relay.database("postgres").reader(vault.name).unwrap(), model()).unwrap();
    let file = vault.index().searcher().unwrap();
    vault.write("new.md", "# Pruned tree\n\nPruned tree, pruned tree.\n");
    vault.sync(&database).unwrap();
    // One waits for its answer, so that another one tries to connect.
    relay.hold_until(2);
    let queries = queries(0, 3 * MOST);
    assert_same(&at_once(&queries, |query| answer(&searcher, query)), &one_by_one(&file, &queries));
    let connections = relay.traffic().connections;
    assert!(connections > 1, "{connections}");
    // None of the others has stayed.
    let open = "SELECT count(*) FROM pg_stat_activity WHERE application_name LIKE 'vault-index%' AND state <> 'active'";
    let (mut client, until) = (server.client("postgres"), Instant::now() + Duration::from_secs(60));
    while client.query_one(open, &[]).unwrap().get::<_, i64>(0) > 1 {
        assert!(Instant::now() < until);
        std::thread::yield_now();
    }
}

#[test]
fn lost_connections_are_replaced_if_the_state_is_still_the_newest() {
    let Some(server) = Server::new() else { return };
    let (vault, database) = vault_in(&server);
    server.run("CREATE ROLE ann LOGIN");
    let with_role = |sql: &str| {
        server.run(&format!("DO $$ BEGIN EXECUTE format('{sql}', (SELECT reader FROM vault_search.vault)); END $$"));
    };
    with_role("GRANT %I TO ann");
    let searcher = vault.searcher(&server.database("ann")).unwrap();
    let file = vault.index().searcher().unwrap();
    let queries = queries(0, 6);
    let fails = |query: &Query| searcher.search(query).unwrap_err();
    let answers = || assert_same(&one_by_one(&searcher, &queries), &one_by_one(&file, &queries));
    end_all_sessions(&server);
    assert_eq!(fails(&queries[1]).kind(), ErrorKind::Store);
    answers();
    // A statement that fails, after which its transaction answers nothing more.
    with_role("REVOKE SELECT ON vault_search.posting FROM %I");
    let error = fails(&Query::literal("roses"));
    assert!(error.message().contains("lacks the right"), "{}", error.one_line());
    with_role("GRANT SELECT ON vault_search.posting TO %I");
    assert!(searcher.search(&Query::literal("roses")).is_ok());
    answers();
    end_all_sessions(&server);
    vault.write("new.md", "# Pruned tree\n\nPruned tree, pruned tree.\n");
    vault.sync(&database).unwrap();
    fails(&Query::literal("in winter"));
    let error = fails(&Query::literal("in winter"));
    assert!(error.kind() == ErrorKind::Store && error.message().contains("is gone"), "{}", error.one_line());
}

/// As a server for several people uses it.
#[test]
fn an_index_is_searched_by_several_threads_and_outlives_the_server() {
    let Some(mut server) = Server::new() else { return };
    let (vault, owner) = vault_in(&server);
    let relay = Relay::new(&server);
    let named = vault.root().with_file_name(vault.name);
    std::os::unix::fs::symlink(vault.root(), &named).unwrap();
    let address = format!("{}#garden", url(&relay.address("postgres")));
    let options = Options::new().database(Arc::new(Database::new(&address).unwrap())).embedder(model());
    let index = Index::open(&named, options).unwrap();
    let file = vault.index();
    let search = |query: &Query| index.search(query).map_or_else(|error| error.one_line(), |hits| format!("{hits:#?}"));
    for from in [0, MOST] {
        let queries = queries(from, MOST);
        relay.hold_until(MOST);
        assert_same(&at_once(&queries, search), &one_by_one(&file.searcher().unwrap(), &queries));
    }
    let many = queries(2 * MOST, 6 * MOST);
    assert_same(&at_once(&many, search), &one_by_one(&file.searcher().unwrap(), &many));
    // Those that look for changes, and those of the searcher.
    let connections = relay.traffic().connections;
    assert!(connections <= 2 * MOST, "{connections}");
    let open = "SELECT count(*) FROM pg_stat_activity WHERE application_name LIKE 'vault-index%'";
    let open: i64 = server.client("postgres").query_one(open, &[]).unwrap().get(0);
    assert!((MOST as i64..=2 * MOST as i64).contains(&open), "{open}");
    // Each sees the newest state.
    vault.write("new.md", "# Pruned tree\n\nPruned tree, pruned tree.\n");
    vault.sync(&owner).unwrap();
    file.sync().unwrap();
    let newest = queries(50, 3 * MOST);
    let found = at_once(&newest, search);
    assert_same(&found, &one_by_one(&file.searcher().unwrap(), &newest));
    assert!(found.iter().all(|found| found.contains("new.md")));
    server.kill();
    assert!(index.search(&newest[0]).is_err());
    server.start();
    assert_same(&at_once(&newest, search), &found);
}

/// An address as a URL, which can name a vault.
fn url(address: &str) -> String {
    let folder = address.split_once("host=").unwrap().1.split(' ').next().unwrap();
    format!("postgres://postgres@{}/postgres", folder.replace('/', "%2F"))
}

/// A server of assistants drops its index where its runtime ends.
#[test]
fn a_store_can_be_dropped_in_an_async_runtime() {
    let Some(server) = Server::new() else { return };
    let (vault, database) = vault_in(&server);
    let (searcher, writer) = (vault.searcher(&database).unwrap(), vault.writer(&database).unwrap());
    searcher.search(&Query::literal("roses")).unwrap();
    tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async { drop((searcher, writer)) });
    // The lock is free.
    vault.sync(&database).unwrap();
}
