//! The dependencies of the crate, as cargo reports them: no HTTP stack by default, and never a crate for notes.

use std::path::Path;
use std::process::Command;

/// The names of all crates in the tree of agent-loop with these features.
fn tree(features: &[&str]) -> Vec<String> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let output = Command::new(cargo)
        .args(["tree", "-p", "agent-loop", "-e", "normal", "--prefix", "none", "--format", "{p}"])
        .args(features)
        .current_dir(Path::new(env!("CARGO_MANIFEST_DIR")))
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).unwrap();
    text.lines().filter_map(|line| line.split_whitespace().next()).map(str::to_owned).collect()
}

fn has_none(crates: &[String], unwanted: &[&str]) {
    let found: Vec<_> = crates.iter().filter(|name| unwanted.contains(&name.as_str())).collect();
    assert!(found.is_empty(), "{found:?}");
}

const VAULT: [&str; 4] = ["vault-index", "vault-tools", "vault-agent", "minilm"];
const HTTP: [&str; 9] = ["hyper", "reqwest", "ureq", "h2", "axum", "rustls", "openssl", "ring", "mio"];

#[test]
fn the_core_has_no_http_stack_and_knows_no_notes() {
    let crates = tree(&[]);
    assert_eq!(crates.first().map(String::as_str), Some("agent-loop"));
    assert!(crates.iter().any(|name| name == "tokio"), "the tree is read");
    has_none(&crates, &VAULT);
    has_none(&crates, &HTTP);
    // Spans are said, never exported.
    has_none(&crates, &["tracing-subscriber", "tracing-opentelemetry", "opentelemetry"]);
}

#[test]
fn a_connection_is_reqwest_on_ring_and_no_more() {
    let crates = tree(&["--features", "hosted"]);
    let wanted = ["reqwest", "hyper", "h2", "rustls", "ring"];
    assert!(wanted.iter().all(|wanted| crates.iter().any(|name| name == wanted)), "{crates:?}");
    has_none(&crates, &["axum", "openssl", "openssl-sys", "native-tls", "aws-lc-rs", "aws-lc-sys", "ureq", "tonic"]);
    has_none(&crates, &["encoding_rs", "cookie", "async-compression", "hickory-resolver", "quinn"]);
    // Servers and local models are crates beside it.
    let all = tree(&["--all-features"]);
    has_none(&all, &VAULT);
    has_none(&all, &["axum", "llama-cpp-2", "llama-cpp-sys-2", "llguidance", "minijinja"]);
}

#[test]
fn mcp_servers_bring_the_client_half_alone() {
    let crates = tree(&["--features", "mcp"]);
    let wanted = ["rmcp", "process-wrap", "reqwest", "ring"];
    assert!(wanted.iter().all(|wanted| crates.iter().any(|name| name == wanted)), "{crates:?}");
    has_none(&crates, &VAULT);
    has_none(&crates, &["axum", "rmcp-macros", "oauth2", "openssl", "native-tls", "aws-lc-rs", "aws-lc-sys", "rand"]);
    has_none(&tree(&[]), &["rmcp", "process-wrap"]);
}
