//! What the crates pull in, as cargo tells it: no async runtime and no HTTP stack where nobody asked for one, and
//! of our own crates only those below.

use std::path::Path;
use std::process::Command;

use super::workspace;

const ASYNC_RUNTIMES: [&str; 6] = ["tokio", "async-std", "async-executor", "smol", "futures-executor", "compio"];
const HTTP_STACKS: [&str; 12] = [
    "hyper",
    "reqwest",
    "ureq",
    "h2",
    "isahc",
    "curl",
    "rustls",
    "openssl",
    "openssl-sys",
    "native-tls",
    "ring",
    "aws-lc-rs",
];

/// Our own crates.
const OURS: [&str; 10] = [
    "minilm",
    "vault-index",
    "vault-models",
    "vault-postgres",
    "vault-tools",
    "agent-loop",
    "agent-llama",
    "agent-proxy",
    "vault-agent",
    "vault-search",
];

/// The names of all crates in a tree, the package itself first. On a fresh machine cargo fetches what was not built yet.
fn tree(root: &Path, arguments: &[&str]) -> Vec<String> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let output = Command::new(cargo)
        .args(["tree", "--locked", "-e", "normal", "--prefix", "none", "--format", "{p}"])
        .args(arguments)
        .current_dir(root)
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).unwrap();
    text.lines().filter_map(|line| line.split_whitespace().next()).map(str::to_owned).collect()
}

/// Asserts that a package's tree has none of the unwanted crates.
fn has_none(root: &Path, arguments: &[&str], unwanted: &[&str]) {
    let crates = tree(root, arguments);
    let (package, below) = crates.split_first().expect("a tree has a root");
    assert_eq!(package, arguments[1]);
    let found: Vec<_> = below.iter().filter(|name| unwanted.contains(&name.as_str())).collect();
    assert!(found.is_empty(), "cargo tree {arguments:?} has {found:?}");
}

#[test]
fn vault_crates_have_neither_async_nor_http() {
    let root = workspace();
    let unwanted = [&ASYNC_RUNTIMES[..], &HTTP_STACKS[..]].concat();
    has_none(&root, &["-p", "minilm"], &unwanted);
    has_none(&root, &["-p", "vault-index"], &unwanted);
    has_none(&root, &["-p", "vault-index", "--no-default-features", "--features", "minilm"], &unwanted);
    has_none(&root, &["-p", "vault-index", "--no-default-features"], &unwanted);
    has_none(&root, &["-p", "vault-tools"], &unwanted);
    has_none(&root, &["-p", "vault-tools", "--all-features"], &unwanted);
}

/// The check above would see an HTTP stack if there were one.
#[test]
fn http_is_there_when_asked_for() {
    let root = workspace();
    let crates = tree(&root, &["-p", "vault-index", "--features", "http"]);
    assert!(HTTP_STACKS.iter().any(|name| crates.iter().any(|found| found == name)), "{crates:?}");
}

/// The proxy brings a server, and nothing that asks others; a llama-server is asked, and nothing is served.
#[test]
fn crates_beside_the_loop_bring_one_half_of_http() {
    let root = workspace();
    has_none(
        &root,
        &["-p", "agent-proxy"],
        &["reqwest", "ureq", "rustls", "native-tls", "openssl", "ring", "h2", "hyper-rustls"],
    );
    let proxy = tree(&root, &["-p", "agent-proxy"]);
    assert!(proxy.iter().any(|name| name == "axum"), "{proxy:?}");
    has_none(&root, &["-p", "agent-llama"], &["axum", "llama-cpp-2", "llguidance"]);
    let local = tree(&root, &["-p", "agent-llama", "--features", "local"]);
    assert!(["llama-cpp-2", "llguidance"].iter().all(|wanted| local.iter().any(|name| name == wanted)), "{local:?}");
}

#[test]
fn crates_use_only_those_below_them() {
    let root = workspace();
    has_none(&root, &["-p", "agent-loop", "--all-features"], &OURS);
    for beside in ["agent-llama", "agent-proxy"] {
        let others: Vec<&str> = OURS.into_iter().filter(|name| ![beside, "agent-loop"].contains(name)).collect();
        has_none(&root, &["-p", beside, "--all-features"], &others);
    }
    let others: Vec<&str> = OURS.into_iter().filter(|name| *name != "vault-models").collect();
    has_none(&root, &["-p", "vault-models", "--all-features"], &others);
    has_none(
        &root,
        &["-p", "vault-index"],
        &["vault-models", "vault-postgres", "vault-tools", "agent-loop", "vault-agent"],
    );
    has_none(&root, &["-p", "vault-postgres"], &["vault-tools", "vault-search", "agent-loop", "vault-agent"]);
    has_none(&root, &["-p", "vault-tools", "--all-features"], &["agent-loop", "vault-agent"]);
    has_none(&root, &["-p", "vault-search", "--all-features"], &["agent-loop", "vault-agent"]);
}

/// Libraries contain no command line, and little else that a program which uses them would have to build.
#[test]
fn libraries_have_no_command_line() {
    let root = workspace();
    let command_line = ["clap", "clap_builder", "terminal_size", "ctrlc"];
    for library in ["vault-index", "vault-tools", "agent-loop"] {
        has_none(&root, &["-p", library, "--all-features"], &command_line);
    }
    let crates: std::collections::BTreeSet<String> = tree(&root, &["-p", "vault-index"]).into_iter().collect();
    assert!(crates.len() <= 80, "vault-index brings {} crates: {crates:?}", crates.len());
}
