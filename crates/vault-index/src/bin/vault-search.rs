//! `vault-search`: searches a vault by meaning and by words.

fn main() -> std::process::ExitCode {
    vault_index::cli::search_main()
}
