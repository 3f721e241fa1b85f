//! `vault-tools`: calls tools, runs plans and takes runs back.

fn main() -> std::process::ExitCode {
    vault_tools::cli::main()
}
