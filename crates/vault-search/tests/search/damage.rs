//! Damage inside the file, one statement at a time: a check finds each, and a repair makes the index sound again.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use rusqlite::Connection;
use vault_index::chunk::TokenCount;
use vault_index::{Embedder, HashedEmbedder, Index, Role, SyncOptions};

use crate::commands::{run, stderr, stdout};
use crate::vault::Vault;

/// Each is found, and repaired without embedding any text again.
const TAMPERED: &[&str] = &[
    // The layout.
    "DROP INDEX tag_note",
    "DROP INDEX embedding_key",
    "DROP VIEW links",
    "DROP VIEW chunks",
    "DROP VIEW documents; CREATE VIEW documents AS SELECT 1 AS id",
    "CREATE TRIGGER odd AFTER DELETE ON tag BEGIN DELETE FROM note; END",
    // Rows that are gone.
    "DELETE FROM link WHERE id % 2 = 0",
    "DELETE FROM link",
    "DELETE FROM property",
    "DELETE FROM tag",
    "DELETE FROM passage WHERE id = 1; DELETE FROM passage_text WHERE id = 1; DELETE FROM words WHERE rowid = 1",
    "DELETE FROM words WHERE rowid = 1",
    // Rows that say something else.
    "UPDATE tag SET key = 'other' || key, shown = 'other'",
    "UPDATE property SET text = 'other', number = NULL",
    "UPDATE note SET title = 'other'",
    "UPDATE note SET aliases = '[\"other\"]'",
    "UPDATE note SET tags = '[\"other\"]'",
    "UPDATE note SET frontmatter = '{}', anchors = '{}', words = 3",
    "UPDATE note SET anchors = 'no JSON'",
    "UPDATE passage_text SET text = 'tampered'",
    "UPDATE passage_text SET text = 17",
    "UPDATE passage_text SET line = 9, end_line = 9",
    "UPDATE passage_text SET headings = '[\"other\"]'",
    "UPDATE link SET line = 7",
    "UPDATE link SET raw = 'other'",
    "UPDATE link SET path = 'other'",
    "UPDATE link SET target = NULL, name = 4",
    "UPDATE file SET kind = 1 WHERE path = 'pic.png'",
    // What is said beside the rows of notes.
    "INSERT INTO warning VALUES('gone.md', 1, '\"binary\"', NULL, 'holds NUL bytes')",
    "INSERT INTO warning VALUES('gone.md', 0, '\"name-clash\"', NULL, 'two files')",
    "UPDATE meta SET value = '7' WHERE key = 'unread'",
    "UPDATE file SET modified_ns = 5",
    "UPDATE words SET headings = '', body = 'other' WHERE rowid = 1",
    "DELETE FROM posting WHERE term = (SELECT min(term) FROM posting)",
    "UPDATE posting SET entries = x'1122'",
    "UPDATE posting SET entries = substr(entries, 1, 1)",
    "UPDATE posting SET segment = segment + 1",
    "UPDATE note_words SET title = 'x', aliases = '', tags = '', properties = '', path = '' WHERE rowid = (SELECT min(id) FROM note)",
    "DELETE FROM note_words",
    "DELETE FROM vocabulary WHERE word > 'l'",
    "UPDATE vocabulary SET stem = 'other'",
    // What is said once more.
    "DELETE FROM passage_block",
    "UPDATE passage_block SET bytes = zeroblob(length(bytes))",
    "UPDATE passage_block SET bytes = substr(bytes, 1, 20)",
    "UPDATE passage_block SET bytes = x'00'",
    "UPDATE passage_block SET bytes = 'text'",
    "INSERT INTO passage_block VALUES(77, zeroblob(20), 0)",
    "UPDATE passage SET length = length + 1",
    "UPDATE passage_block SET sum = sum + 1",
    "UPDATE passage_text SET sum = sum + 1",
    "UPDATE codes_sum SET sum = sum + 1",
    "DELETE FROM codes_sum",
    // Tables that are gone, and values that no sync writes.
    "DROP TABLE tag",
    "DROP TABLE meta",
    "DROP TABLE passage_text",
    "DROP TABLE passage_block",
    "DROP TABLE words",
    "DROP TABLE posting",
    "ALTER TABLE note DROP COLUMN anchors",
    "CREATE TABLE foreign_rows(x)",
    "DELETE FROM meta",
    "DELETE FROM meta WHERE key = 'vault'",
    "DELETE FROM meta WHERE key = 'dimensions'",
    "UPDATE passage_text SET text = CAST(x'ff41' AS TEXT)",
    "UPDATE link SET raw = CAST(x'ff41' AS TEXT)",
    "UPDATE note SET title = CAST(x'ff41' AS TEXT)",
    "UPDATE file SET path = '../..' WHERE id = 1",
    "UPDATE file SET path = CAST(x'ff41' AS TEXT) WHERE id = 1",
    "UPDATE passage SET vector = 'text' WHERE id = 1",
    "UPDATE link SET target = 'text'",
    "INSERT INTO link(id, source, line, start, end, kind, raw, path, name) VALUES(5, 1, 1, 0, 1, 0, '', '', 0)",
    "INSERT INTO tag VALUES('x', 99, 'x')",
];

/// Likewise, but of vectors, so that some of them are made again.
const TAMPERED_VECTORS: &[&str] = &[
    // Vectors of other texts.
    "UPDATE passage SET vector = (SELECT max(vector) FROM passage)",
    "UPDATE note SET title_vector = 1 WHERE title_vector IS NOT NULL",
    "UPDATE embedding SET key = randomblob(16)",
    "UPDATE embedding SET key = randomblob(16) WHERE id = 1; UPDATE embedding SET key = 'text' WHERE id = 2",
    // Two vectors that change places.
    "CREATE TEMP TABLE two AS SELECT id, key FROM embedding WHERE id < 3;
     UPDATE embedding SET key = randomblob(16) WHERE id < 3;
     UPDATE embedding SET key = (SELECT key FROM two WHERE two.id = 3 - embedding.id) WHERE id < 3",
];

fn vault() -> Vault {
    Vault::new(
        "//- Garden/Roses.md
        ---
        aliases: [Rosa]
        tags: [garden/pruning]
        rating: 5
        ---
        # Roses

        Prune the roses in late winter. See [[Apple]], [[Missing]] and [soil](../Soil.md#pH). #thorn
        //- Garden/Apple.md
        Pruning the apple tree. ![[pic.png|100]] [[Roses]]
        //- Soil.md
        Lime makes it sweet.

        ## pH

        Seven is neutral. ^seven
        //- broken.md
        ---
        title: [
        ---
        body
        //- pic.png
        not really",
    )
}

/// As SQLite's own shell would: without the checks that this crate has SQLite make.
fn tamper(vault: &Vault, sql: &str) {
    let db = Connection::open(vault.index_file()).unwrap();
    db.pragma_update(None, "foreign_keys", false).unwrap();
    db.execute_batch(sql).unwrap_or_else(|error| panic!("{sql}: {error}"));
}

/// With the model named, which an index that lost its settings does not know any more.
fn command(vault: &Vault, arguments: &[&str]) -> std::process::Output {
    run(vault, "vault-index", &[arguments, &["--model", "hashed"]].concat())
}

/// The embedder `hashed`, and how many texts it was given.
#[derive(Default)]
struct CountingModel(AtomicUsize);

impl TokenCount for CountingModel {
    fn count(&self, text: &str) -> usize {
        HashedEmbedder::new().count(text)
    }
}

impl Embedder for CountingModel {
    fn id(&self) -> &str {
        "hashed-64-v1"
    }

    fn dimensions(&self) -> usize {
        HashedEmbedder::new().dimensions()
    }

    fn max_tokens(&self) -> usize {
        HashedEmbedder::new().max_tokens()
    }

    fn embed(&self, texts: &[&str], role: Role) -> vault_index::Result<Vec<Vec<f32>>> {
        self.0.fetch_add(texts.len(), Ordering::Relaxed);
        HashedEmbedder::new().embed(texts, role)
    }
}

#[test]
fn damage_is_found_and_repaired() {
    let options = SyncOptions::default();
    for sql in TAMPERED.iter().chain(TAMPERED_VECTORS) {
        let vault = vault();
        let embedder = Arc::new(CountingModel::default());
        let index = || Index::open(vault.root(), vault.options().embedder(embedder.clone())).unwrap();
        index().sync().unwrap();
        let embedded = embedder.0.load(Ordering::Relaxed);
        assert_eq!(index().check(&options).unwrap().faults, [""; 0], "before {sql}");
        tamper(&vault, sql);

        let faults = index().check(&options).unwrap().faults;
        assert!(!faults.is_empty(), "{sql}");
        assert!(faults.iter().all(|fault| !fault.contains("SELECT") && !fault.contains("INSERT")), "{sql}: {faults:?}");
        // Whatever comes of it, it does not panic.
        let _ = index().sync();

        let repaired = index().repair(&options).unwrap();
        assert!(repaired.is_sound(), "{sql}: {repaired:?}");
        let again = index().check(&options).unwrap();
        assert!(again.is_sound() && again.faults.is_empty(), "after {sql}: {again:?}");
        let more = embedder.0.load(Ordering::Relaxed) - embedded;
        assert!(more == 0 || TAMPERED_VECTORS.contains(sql), "{sql}: {more} texts were embedded again");
        assert_eq!(vault.dump(), vault.dump_of_rebuild(), "{sql}");
    }
}

#[test]
fn the_command_says_what_it_found_and_repaired() {
    let vault = vault();
    assert!(command(&vault, &["sync"]).status.success());
    tamper(&vault, "DELETE FROM link; DELETE FROM property");
    let found = command(&vault, &["check"]);
    let said = stdout(&found);
    assert_eq!(found.status.code(), Some(1), "{said}");
    assert!(said.contains("rows of Garden/Roses.md differ: properties, links"), "{said}");
    assert!(said.contains("rows of Garden/Apple.md differ: links"), "{said}");
    assert!(!said.contains("rows of broken.md"), "{said}");
    assert!(said.contains("2 faults"), "{said}");
    let repaired = command(&vault, &["check", "--repair"]);
    assert_eq!(repaired.status.code(), Some(0), "{}", stdout(&repaired) + &stderr(&repaired));
    assert_eq!(command(&vault, &["check"]).status.code(), Some(0));
}

#[test]
fn an_index_without_vectors_is_sound() {
    let vault = vault();
    assert!(command(&vault, &["sync", "--no-vectors"]).status.success());
    let checked = command(&vault, &["check"]);
    let said = stdout(&checked);
    assert_eq!(checked.status.code(), Some(0), "{said}");
    assert!(said.starts_with("sound: 4 notes read and compared; "), "{said}");
    assert!(said.contains(" texts have no vector yet: vault-index sync makes them"), "{said}");
    let record: serde_json::Value = serde_json::from_slice(&command(&vault, &["check", "--json"]).stdout).unwrap();
    assert_eq!((&record["sound"], &record["faults"]), (&true.into(), &serde_json::json!([])), "{record}");
    assert!(record["pending"].as_u64().unwrap() > 3, "{record}");
    // A repair leaves nothing to be made.
    let repaired = command(&vault, &["check", "--repair"]);
    assert!(stdout(&repaired).starts_with("sound: 4 notes read and compared ("), "{}", stdout(&repaired));
    assert_eq!(vault.dump(), vault.dump_of_rebuild());
}

#[test]
fn an_index_that_lost_its_settings_says_so() {
    let vault = vault();
    assert!(command(&vault, &["sync"]).status.success());
    tamper(&vault, "DELETE FROM meta");
    let output = run(&vault, "vault-index", &["sync"]);
    let said = stderr(&output);
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.contains("vault-index check --repair") && !said.contains("CREATE"), "{said}");
}

/// The index without its log, and where its pages may be written to.
fn pages(vault: &Vault) -> Vec<u8> {
    let db = Connection::open(vault.index_file()).unwrap();
    db.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(())).unwrap();
    drop(db);
    std::fs::read(vault.index_file()).unwrap()
}

fn put_back(vault: &Vault, bytes: &[u8]) {
    let folder = vault.index_file().parent().unwrap().to_path_buf();
    std::fs::remove_dir_all(&folder).unwrap();
    std::fs::create_dir(&folder).unwrap();
    std::fs::write(vault.index_file(), bytes).unwrap();
}

#[test]
fn whatever_page_is_zeroed_a_repair_mends_the_index() {
    const PAGE: usize = 4096;
    let vault = vault();
    vault.sync();
    let sound = pages(&vault);
    let expected = vault.dump_of_rebuild();
    let options = SyncOptions::default();
    let mut found = 0;
    // Without the first page it is not known to be an index.
    for page in 1..sound.len() / PAGE {
        let mut bytes = sound.clone();
        bytes[page * PAGE..(page + 1) * PAGE].fill(0);
        put_back(&vault, &bytes);
        let checked = vault.index().check(&options).unwrap();
        found += usize::from(!checked.is_sound());
        // A page that is not in use may hold anything.
        let repaired = vault.index().repair(&options).unwrap_or_else(|error| panic!("page {page}: {error}"));
        assert!(repaired.is_sound(), "page {page}: {repaired:?}");
        assert_eq!(vault.dump(), expected, "page {page}");
    }
    assert!(found + 4 > sound.len() / PAGE, "{found} of {}", sound.len() / PAGE);
}

/// As a search shows it: an error, or the hits of all queries.
fn answers(vault: &Vault) -> Result<String, String> {
    let queries = ["winter soil", "\"sharp knife\" stem", "tag:t1 compost", "prune apple trees", "note 17"];
    let index = vault.index();
    let mut text = String::new();
    for query in queries.map(|query| vault_index::Query::parse(query).unwrap()) {
        let hits = index.search(&query).map_err(|error| error.one_line())?;
        let hits = hits.results.iter().map(|hit| format!("{} {:?} {} {}\n", hit.path, hit.score, hit.title, hit.text));
        text.extend(hits);
    }
    Ok(text)
}

/// Bytes that change on the disk lead to the same answers or to an error, which names the remedy; or else a check finds
/// them, which reads everything.
#[test]
fn flipped_bytes_do_not_change_answers_unnoticed() {
    const WORDS: [&str; 12] =
        ["winter", "soil", "sharp", "knife", "stem", "compost", "prune", "apple", "trees", "lime", "slug", "seed"];
    // Xorshift: the same trials each time.
    let mut state = 0x2545_f491_4f6c_dd1d_u64;
    let mut random = |below: usize| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state % below as u64) as usize
    };
    let vault = vault();
    for note in 0..100 {
        let words: Vec<&str> = (0..60).map(|_| WORDS[random(WORDS.len())]).collect();
        vault.write(&format!("n/Note {note}.md"), format!("---\ntags: t{}\n---\n{}\n", note % 3, words.join(" ")));
    }
    vault.sync();
    let sound = pages(&vault);
    let expected = answers(&vault).unwrap();
    let (mut same, mut refused, mut wrong) = (0, 0, 0);
    for trial in 0..100 {
        let length = if trial % 5 == 0 { 40 } else { 1 };
        let mut bytes = sound.clone();
        // The first hundred bytes say what kind of file it is.
        let at = 100 + random(bytes.len() - 100 - length);
        bytes[at..at + length].iter_mut().for_each(|byte| *byte ^= 1 + random(255) as u8);
        put_back(&vault, &bytes);
        match answers(&vault) {
            Ok(answers) if answers == expected => same += 1,
            Ok(_) => {
                wrong += 1;
                let checked = vault.index().check(&SyncOptions::default()).unwrap();
                assert!(!checked.is_sound(), "trial {trial}: {length} bytes at {at} changed an answer");
            }
            Err(error) => {
                refused += 1;
                assert!(error.contains("vault-index check --repair"), "trial {trial}: {error}");
            }
        }
    }
    assert!(same > 20 && refused > 20 && wrong <= 5, "{same} answers stayed, {refused} were refused, {wrong} changed");
}
