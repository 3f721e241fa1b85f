//! The flags of `vault-search`.

use crate::harness::{Place, Program, Walk, walk};
use crate::write_vaults;

pub const PROGRAM: Program = Program {
    name: "vault-search",
    path: env!("CARGO_BIN_EXE_vault-search"),
    // Nothing answers there.
    environment: &[("VAULT_MODEL", "hashed"), ("VAULT_BASE_URL", "http://127.0.0.1:1/v1")],
    prepare,
};

fn prepare(state: &str, place: &Place) {
    write_vaults(place);
    place.write("questions.txt", "pruning\nlime\n");
    place.done("pruning");
    place.write("vault/New.md", "---\ntags: [new]\n---\nUnseen words about pruning.\n");
    set_times(place);
    if state == "slow" {
        set_pace(place);
    }
}

/// Makes the model so slow that no vectors are made unasked.
fn set_pace(place: &Place) {
    let folder = std::fs::read_dir(place.root().join("home/cache/vault-index")).unwrap().next().unwrap().unwrap();
    let db = rusqlite::Connection::open(folder.path().join("index.db")).unwrap();
    db.execute("INSERT OR REPLACE INTO meta(key, value) VALUES('embedding_pace', '1')", []).unwrap();
}

/// An old note, so that dates tell notes apart.
fn set_times(place: &Place) {
    let old = std::time::SystemTime::UNIX_EPOCH + std::time::Duration::from_secs(1_500_000_000);
    let file = std::fs::File::options().write(true).open(place.vault().join("Soil.md")).unwrap();
    file.set_modified(old).unwrap();
}

#[test]
fn each_flag_has_an_effect() {
    let rows = &[
        ("roses", "--limit 1"),
        ("roses", "--mode lexical"),
        ("pruning", "--chunks"),
        ("roses", "--min-score 1"),
        ("--json pruning", "--like Soil"),
        ("roses", "--tag garden"),
        ("roses", "--path Garden"),
        ("roses", "--after 2020"),
        ("roses", "--before 2020"),
        ("roses", "--date 2023-01"),
        ("roses", "--prop rating=5"),
        ("roses", "--json"),
        ("roses", "--jsonl"),
        ("roses", "--schema"),
        ("roses", "--files"),
        ("roses", "--compact"),
        ("--files roses", "--absolute"),
        ("roses", "--print0"),
        ("roses", "--grep"),
        ("%tty roses", "--open"),
        ("roses", "--count"),
        ("roses", "--sort path"),
        ("roses", "--group folder"),
        ("%tty roses", "--best-last"),
        ("roses", "--explain"),
        ("--mode lexical", "--queries ../questions.txt"),
        ("unseen", "--no-sync"),
        ("@slow roses", "--wait 0"),
        ("--index ../new.db --model openai:x roses", "--base-url http://127.0.0.1:2/v1"),
        ("roses", "--model minilm"),
        ("roses", "--exclude Garden"),
    ];
    let shared = &[("--vault", "../other"), ("--index", "../other.db")];
    walk(PROGRAM, &Walk { rows, shared, plain: &["pruning"] });
}
