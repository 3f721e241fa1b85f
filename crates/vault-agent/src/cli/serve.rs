//! `vault-agent mcp`: opens the vaults, keeps their indexes up to date, and serves clients until they end.

use std::net::SocketAddr;

use vault_search::VaultArgs;
use vault_search::{CliResult, Outcome, note};
use vault_tools::{Error, Result, Toolset};

use super::args::{HttpArgs, McpArgs};
use super::server_setup::{key_in, stop_signal};
use crate::index_watcher::{IndexWatcher, WatchNotices};
use crate::mcp::{Access, CatalogOptions, PATH, Server, listen};
use crate::workspace::{AT_ONCE, PolicyOverrides, Workspace};

pub(super) fn serve(vault_args: &VaultArgs, args: &McpArgs) -> CliResult {
    let (offer, http) = (&args.offer, &args.http);
    let workspace =
        Workspace::open(vault_args, PolicyOverrides { writes: offer.allow_write, deletes: offer.allow_delete })?;
    let mut toolsets: Vec<Toolset> = Vec::new();
    offer.toolset.iter().for_each(|toolset| {
        if !toolsets.contains(toolset) {
            toolsets.push(*toolset);
        }
    });
    let options = CatalogOptions {
        toolsets,
        read_only: offer.read_only,
        trust_client: offer.trust_client,
        approval_page: offer.approval_page,
        ask_outside: offer.ask_outside,
        require_expect: offer.require_expect,
    };
    let server = Server::new(workspace, options)?;
    let watching = IndexWatcher::start(server.workspace().vaults(), WatchNotices::Log);
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .max_blocking_threads(AT_ONCE)
        .build()
        .map_err(|error| Error::io("the threads of the server", &error))?;
    let ended = match http.http {
        None => runtime.block_on(server.on_stdio()),
        Some(address) => runtime.block_on(on_http(server, address, http)),
    };
    // A pending read of standard input cannot be cancelled, and the process ends anyway.
    runtime.shutdown_background();
    drop(watching);
    ended?;
    Ok(Outcome::Done)
}

async fn on_http(server: Server, address: SocketAddr, args: &HttpArgs) -> Result<()> {
    let key = args.key_file.as_deref().map(key_in).transpose()?;
    let access = Access::new(key, &args.host);
    let listener = listen(address, &access).await?;
    // Listen for signals before the address is printed, because its reader may send one immediately.
    let stop = stop_signal();
    let address = listener.local_addr().map_err(|error| Error::io(address, &error))?;
    note(&format!("listening on http://{address}{PATH}"));
    server.on_http(listener, access, stop).await;
    Ok(())
}
