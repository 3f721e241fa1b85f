//! `vault-agent`: serves a folder of notes to assistants.

fn main() -> std::process::ExitCode {
    vault_agent::main()
}
