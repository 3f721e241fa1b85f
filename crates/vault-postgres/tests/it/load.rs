//! Writers and readers of many vaults at once, and the times that their searches take.

use std::io::Write;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use vault_index::Query;

use crate::server::{Server, is_long};
use crate::vault::Vault;

const NAMES: [&str; 8] = ["one", "two", "three", "four", "five", "six", "seven", "eight"];

/// Prints the times if it is long.
#[test]
fn many_write_and_search_at_once() {
    let Some(server) = Server::new() else { return };
    let (writers, readers, seconds, notes) = if is_long() { (8, 32, 60, 400) } else { (2, 6, 1, 30) };
    let database = server.database("postgres");
    database.create_schema().unwrap();
    let vaults: Vec<Vault> = NAMES[..writers].iter().map(|name| Vault::new(name)).collect();
    let write = |vault: &Vault, number: usize, version: usize| {
        let text = format!("# Bed {number}\n\nThe roses of {} were pruned, version {version}.\n", vault.name);
        vault.write(&format!("n{number}.md"), &text);
    };
    for vault in &vaults {
        (0..notes).for_each(|number| write(vault, number, 0));
        database.create_vault(vault.name).unwrap();
        vault.sync(&database).unwrap();
    }
    let (is_over, syncs) = (AtomicBool::new(false), AtomicUsize::new(0));
    let (first, again): (Mutex<Vec<Duration>>, Mutex<Vec<Duration>>) = Default::default();
    std::thread::scope(|scope| {
        let mut threads = Vec::new();
        for vault in &vaults {
            threads.push(scope.spawn(|| {
                for version in 1.. {
                    (0..3).for_each(|n| write(vault, (3 * version + n) % notes, version));
                    assert_eq!(vault.sync(&database).unwrap().pending, 0);
                    syncs.fetch_add(1, Ordering::Relaxed);
                    if is_over.load(Ordering::Relaxed) {
                        break;
                    }
                }
            }));
        }
        for reader in 0..readers {
            let (database, is_over, first, again, vaults) = (&database, &is_over, &first, &again, &vaults);
            threads.push(scope.spawn(move || {
                for turn in reader.. {
                    let vault = &vaults[turn % vaults.len()];
                    // As a program that searches once does, then as one that stays.
                    let started = Instant::now();
                    let searcher = vault.searcher(database).unwrap();
                    for (times, text) in [(first, "pruned roses"), (again, "roses of the bed")] {
                        let started = if std::ptr::eq(times, first) { started } else { Instant::now() };
                        let hits = searcher.search(&Query::literal(text)).unwrap();
                        times.lock().unwrap().push(started.elapsed());
                        assert_eq!((hits.results.len(), hits.indexed), (10, notes));
                        // A sync commits its three notes before it embeds them.
                        assert!(hits.pending <= 3, "{}", hits.pending);
                    }
                    if is_over.load(Ordering::Relaxed) {
                        break;
                    }
                }
            }));
        }
        std::thread::sleep(Duration::from_secs(seconds));
        is_over.store(true, Ordering::Relaxed);
        threads.into_iter().for_each(|thread| thread.join().unwrap());
    });
    let mut lines = format!(
        "{writers} writers, {readers} readers, {notes} notes each: {} syncs in {seconds} s",
        syncs.into_inner()
    );
    for (name, times) in [("opened and searched", first), ("searched again", again)] {
        let mut times = times.into_inner().unwrap();
        times.sort();
        let part = |percent: usize| times[(times.len() * percent / 100).min(times.len() - 1)].as_secs_f64() * 1e3;
        lines += &format!("\n{name}: {} times, p50 {:.1} ms, p99 {:.1} ms", times.len(), part(50), part(99));
    }
    if is_long() {
        writeln!(std::io::stderr(), "{lines}").unwrap();
    }
    for vault in &vaults {
        let query = Query::literal("roses").limit(usize::MAX);
        let (index, searcher) = (vault.index(), vault.searcher(&database).unwrap());
        let mut found = [index.searcher().unwrap().matches(&query).unwrap(), searcher.matches(&query).unwrap()];
        found.iter_mut().for_each(|paths| paths.sort());
        assert!(found[0] == found[1] && found[0].len() == notes, "{}", vault.name);
    }
}
