//! `vault-agent mcp`: opens the vaults, keeps their indexes up to date, and serves clients until they end.

use vault_cli::{CliResult, Outcome};
use vault_tools::cli::VaultArgs;
use vault_tools::{Error, Toolset};

use super::args::ServeArgs;
use crate::mcp::{Offered, Server};
use crate::watching::Watching;
use crate::workspace::{Granted, Workspace};

pub(super) fn serve(vault_args: &VaultArgs, args: &ServeArgs) -> CliResult {
    let workspace = Workspace::open(vault_args, Granted { writes: args.allow_write })?;
    let mut toolsets: Vec<Toolset> = Vec::new();
    args.toolset.iter().for_each(|toolset| {
        if !toolsets.contains(toolset) {
            toolsets.push(*toolset);
        }
    });
    let offered = Offered { toolsets, read_only: args.read_only, trust_client: args.trust_client };
    let server = Server::new(workspace, offered)?;
    let watching = Watching::start(server.workspace().vaults());
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(|error| Error::io("the threads of the server", &error))?;
    let ended = runtime.block_on(server.on_stdio());
    // A read of standard input that is under way cannot be cancelled, and the process ends anyway.
    runtime.shutdown_background();
    drop(watching);
    ended?;
    Ok(Outcome::Done)
}
