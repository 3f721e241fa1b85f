//! The flags of `vault-index`.

use crate::harness::{Place, Program, Walk, walk};
use crate::write_vaults;

pub const PROGRAM: Program = Program {
    name: "vault-index",
    path: env!("CARGO_BIN_EXE_vault-index"),
    environment: &[("VAULT_MODEL", "hashed")],
    prepare,
};

fn prepare(state: &str, place: &Place) {
    write_vaults(place);
    if state == "moved" {
        place.done("sync --vault ../other");
        std::fs::rename(place.root().join("other"), place.root().join("moved")).unwrap();
        return;
    }
    place.done("sync");
    place
        .write("vault/New.md", "---\ntags: [new]\n---\nUnseen words about [[Soil]] and [[Nothing]]. The apple tree.\n");
    place.write("vault/Deadend.md", "No links.\n");
}

#[test]
fn each_flag_has_an_effect() {
    let rows = &[("sync", "--no-vectors"), ("sync", "--json")];
    let shared = &[
        ("--vault", "../other"),
        ("--index", "../other.db"),
        ("--model", "minilm"),
        ("--base-url", "http://127.0.0.1:1/v1"),
        ("--exclude", "Garden"),
    ];
    let plain = &[
        "sync",
        "%until=watching watch",
        "status",
        "list",
        "links Roses",
        "backlinks Soil",
        "mentions Soil",
        "unresolved",
        "orphans",
        "deadends",
        "tags",
        "graph",
        "resolve Soil",
        "models",
        "check",
        "rebuild",
        "forget --yes",
        "@moved adopt ../other --vault ../moved",
        "completions bash",
        "man",
    ];
    walk(PROGRAM, &Walk { rows, shared, plain });
}
