//! The flags of `vault-tools`.

use crate::harness::{Place, Program, Walk, product, walk};
use crate::write_vaults;

pub const PROGRAM: Program = Program {
    name: "vault-tools",
    path: env!("CARGO_BIN_EXE_vault-tools"),
    environment: &[("VAULT_MODEL", "hashed")],
    prepare,
};

const PLAN: &str = r#"{ "version": 1, "name": "p", "summary": "", "riskLevel": "low", "parameters": { "name": { "type": "string", "default": "One" } },
  "steps": [{ "id": "w", "tool": "vault.createFile", "args": { "path": "Made.md", "content": "${name}" } }] }"#;

fn prepare(state: &str, place: &Place) {
    write_vaults(place);
    place.write("plan.json", PLAN);
    place.write("other/.obsidian/app.json", "{}");
    place.write("vault/Templates/T.md", "From a template\n");
    place.done("append Soil 'One.' --yes");
    place.done("append Soil 'Two.' --yes");
    if state == "undone" {
        place.done("undo --yes");
    }
}

#[test]
fn each_flag_has_an_effect() {
    let changes = [
        "rename Soil Earth",
        "move Soil Garden",
        "merge Lost Soil",
        "tag add Soil earth",
        "tag remove Roses garden/pruning",
        "tag rename garden/pruning cut",
        "prop set Soil rating 3",
        "prop remove Roses rating",
        "new Fresh text",
        "append Soil more",
        "daily 2026-01-02",
    ];
    let rows = [product(&changes, &["--yes", "--dry-run"])].concat();
    let shared = &[("--vault", "../other"), ("--index", "../other.db")];
    let plain: Vec<&str> = changes.to_vec();
    walk(PROGRAM, &Walk { rows: &rows, shared, plain: &plain });
}
