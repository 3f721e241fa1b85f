//! `vault-tools`: calls tools, runs plans and undoes what was done.

fn main() -> std::process::ExitCode {
    vault_search::tools::main()
}
