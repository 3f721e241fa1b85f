//! Round trips of searches, counted by a relay in front of the server.

use std::sync::Arc;

use vault_index::{Index, Mode, Options, Query, backend};

use crate::relay::Relay;
use crate::server::Server;
use crate::vault::{Vault, model};

fn vault_of(notes: usize) -> Vault {
    let vault = Vault::new("garden");
    for n in 0..notes {
        let text = format!(
            "# Plot {n}\n\nThe apple trees and the roses are pruned in late winter, tree {n}.\n\n## Tools\n\nA saw for \
             branch {n}, see [[n{}]].\n",
            n + 1
        );
        vault.write(&format!("n{n}.md"), &text);
    }
    vault
}

/// More notes and more results take as many.
#[test]
fn searches_take_few_round_trips() {
    let Some(server) = Server::new() else { return };
    let owner = server.database("postgres");
    owner.create_schema().unwrap();
    let relay = Relay::new(&server);
    let vault = vault_of(120);
    owner.create_vault(vault.name).unwrap();
    vault.sync(&owner).unwrap();
    let searcher = backend::searcher(relay.database("postgres").reader(vault.name).unwrap(), model()).unwrap();
    let opened = relay.traffic();
    assert_eq!((opened.connections, opened.round_trips), (1, 3), "{opened:?}");
    // First everything about words that are in notes as they are written here, and about vectors; then the best passages.
    let queries = [
        ("apple trees", 2),
        ("Plot 7", 2),
        ("roses pruned", 2),
        ("saw", 2),
        // Only another form of the word is in a note, so that the phrase to look for is another.
        ("prune roses", 3),
        // The vocabulary, the frequencies of the near words, and the words with the stem of the nearest.
        ("wintr roses", 6),
        // The note that is named, in two, and the notes with links to it.
        ("link:n7 apple", 5),
    ];
    for (text, most) in queries {
        for limit in [10, 60] {
            for mode in [Mode::Hybrid, Mode::Lexical, Mode::Semantic] {
                let query = Query::parse(text).unwrap().mode(mode).limit(limit);
                let hits = searcher.search(&query).unwrap();
                let traffic = relay.traffic();
                // The meaning of a single word is near to no note.
                assert!(mode == Mode::Semantic || !hits.results.is_empty(), "{query:?}");
                assert!(traffic.round_trips <= most, "{query:?}: {traffic:?}");
            }
        }
    }
    // A program that searches once.
    let database = Arc::new(relay.database("postgres"));
    let named = vault.root().with_file_name(vault.name);
    std::fs::rename(vault.root(), &named).unwrap();
    let index = Index::open(&named, Options::new().database(database).embedder(model())).unwrap();
    relay.traffic();
    assert_eq!(index.search(&Query::literal("apple trees")).unwrap().results.len(), 10);
    let cold = relay.traffic();
    assert!(cold.connections == 1 && cold.round_trips <= 6, "{cold:?}");
    // With nothing changed, the searcher stays; the connection that looks for changes is another one.
    index.search(&Query::literal("apple")).unwrap();
    relay.traffic();
    index.search(&Query::literal("saw")).unwrap();
    let again = relay.traffic();
    assert!(again.connections == 0 && again.round_trips <= 4, "{again:?}");
}
