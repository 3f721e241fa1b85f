//! The flags of `vault-tools`.

use crate::harness::{Place, Program, Walk, walk};
use crate::write_vaults;

pub const PROGRAM: Program = Program {
    name: "vault-tools",
    path: env!("CARGO_BIN_EXE_vault-tools"),
    environment: &[("VAULT_MODEL", "hashed")],
    prepare,
};

fn prepare(_: &str, place: &Place) {
    write_vaults(place);
}

#[test]
fn each_flag_has_an_effect() {
    let rows = &[("rename Soil Earth", "--yes")];
    let shared = &[("--vault", "../other"), ("--index", "../other.db")];
    walk(PROGRAM, &Walk { rows, shared, plain: &[] });
}
