//! `-h` is one screen, and `--help` has all of it, with examples.

// The walk of vault-agent's flags is one of its own: it needs models and clients.
#[allow(dead_code)]
#[path = "../../../vault-search/tests/flags/harness.rs"]
mod harness;

use harness::{Program, check_help};

use crate::stdio::PROGRAM;

#[test]
fn help_is_one_screen() {
    check_help(&Program { name: "vault-agent", path: PROGRAM, environment: &[], prepare: |_, _| () });
}
