//! `vault-agent acp`: an agent for editors, until its input ends or it is asked to.

use std::time::Duration;

use clap::Args;
use tokio::io::{BufReader, stdin, stdout};
use vault_search::VaultArgs;
use vault_search::{CliResult, Out, Outcome};

use super::server_setup::stop_signal;
use crate::acp::{schema, serve};
use crate::settings::SettingArgs;

/// How long a change that is being made when the client leaves may take to be whole.
const LAST_CHANGE: Duration = Duration::from_secs(10);

#[derive(Debug, Args)]
pub(super) struct AcpArgs {
    #[command(flatten)]
    pub settings: SettingArgs,
    /// Print the JSON schema of the methods beside those of the protocol, and exit
    #[arg(long)]
    pub schema: bool,
}

pub(super) fn acp(vault_args: &VaultArgs, args: &AcpArgs, out: &mut Out) -> CliResult {
    if args.schema {
        out.json(&schema())?;
        return Ok(Outcome::Done);
    }
    let runtime = super::runtime::runtime()?;
    let (vault_args, settings) = (vault_args.clone(), args.settings.clone());
    // A read of standard input cannot be cancelled, and the runtime would wait for it at its end.
    let (input, mut fed) = tokio::io::duplex(1 << 16);
    std::thread::spawn(move || {
        let Ok(own) = tokio::runtime::Builder::new_current_thread().build() else { return };
        let _ = own.block_on(tokio::io::copy(&mut stdin(), &mut fed));
    });
    let ended =
        runtime.block_on(async { serve(BufReader::new(input), stdout(), vault_args, settings, stop_signal()).await });
    // Turns stop where they are, and can be gone on with; a change that has begun is made.
    runtime.shutdown_timeout(LAST_CHANGE);
    ended?;
    Ok(Outcome::Done)
}
