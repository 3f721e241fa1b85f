//! What the crates pull in, as cargo tells it: no async runtime, no HTTP stack.

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

fn check(root: &Path, arguments: &[&str]) {
    let crates = tree(root, arguments);
    assert_eq!(crates.first().map(String::as_str), Some(arguments[1]));
    let unwanted: Vec<_> = crates
        .iter()
        .filter(|name| ASYNC_RUNTIMES.iter().chain(&HTTP_STACKS).any(|unwanted| unwanted == name))
        .collect();
    assert!(unwanted.is_empty(), "cargo tree {arguments:?} has {unwanted:?}");
}

#[test]
fn neither_async_nor_http() {
    let Some(root) = workspace() else { return };
    check(&root, &["-p", "minilm"]);
    check(&root, &["-p", "vault-index"]);
    check(&root, &["-p", "vault-index", "--no-default-features", "--features", "minilm"]);
    check(&root, &["-p", "vault-index", "--no-default-features"]);
    check(&root, &["-p", "vault-tools"]);
    check(&root, &["-p", "vault-tools", "--all-features"]);
}

/// The check above would see an HTTP stack if there were one.
#[test]
fn http_is_there_when_asked_for() {
    let Some(root) = workspace() else { return };
    let crates = tree(&root, &["-p", "vault-index", "--features", "http"]);
    assert!(HTTP_STACKS.iter().any(|name| crates.iter().any(|found| found == name)), "{crates:?}");
}
