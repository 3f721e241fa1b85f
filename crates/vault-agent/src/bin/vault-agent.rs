//! The binary `vault-agent`.

fn main() -> std::process::ExitCode {
    vault_agent::main()
}
