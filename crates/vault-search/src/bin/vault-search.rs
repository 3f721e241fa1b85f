//! `vault-search`: searches a vault by meaning and by words.

fn main() -> std::process::ExitCode {
    vault_search::search::search_main()
}
