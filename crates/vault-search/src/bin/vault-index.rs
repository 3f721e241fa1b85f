//! `vault-index`: keeps the index of a vault and answers questions about its links.

fn main() -> std::process::ExitCode {
    vault_search::search::index_main()
}
