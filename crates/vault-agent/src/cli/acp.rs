//! `vault-agent acp`: serves an editor until the input ends or a signal stops it.

use std::time::Duration;

use clap::Args;
use tokio::io::{BufReader, stdin, stdout};
use vault_search::VaultArgs;
use vault_search::{CliResult, Out, Outcome};

use super::first_run::choose_default;
use super::server_setup::stop_signal;
use crate::acp::{schema, serve};
use crate::settings::{SettingArgs, Settings};

/// How long a change that is being written may take to finish after the client has left.
const LAST_CHANGE: Duration = Duration::from_secs(10);

#[derive(Debug, Args)]
pub(super) struct AcpArgs {
    #[command(flatten)]
    pub settings: SettingArgs,
    /// Print the JSON schema of the methods beyond those of the protocol, and exit
    #[arg(long)]
    pub schema: bool,
    /// Choose the default model in this terminal, and exit
    ///
    /// Editors start this as a way to log in.
    #[arg(long, conflicts_with = "schema")]
    pub choose_model: bool,
}

pub(super) fn acp(vault_args: &VaultArgs, args: &AcpArgs, out: &mut Out) -> CliResult {
    if args.schema {
        out.json(&schema())?;
        return Ok(Outcome::Done);
    }
    if args.choose_model {
        choose_default(Settings::load(&args.settings)?, &mut |question| vault_search::ask(question))?;
        return Ok(Outcome::Done);
    }
    let runtime = super::runtime::runtime()?;
    let (vault_args, settings) = (vault_args.clone(), args.settings.clone());
    // Read standard input on a thread of its own, because a read cannot be cancelled and the runtime would wait for it
    // when it shuts down.
    let (input, mut fed) = tokio::io::duplex(1 << 16);
    std::thread::spawn(move || {
        let Ok(own) = tokio::runtime::Builder::new_current_thread().build() else { return };
        let _ = own.block_on(tokio::io::copy(&mut stdin(), &mut fed));
    });
    let ended =
        runtime.block_on(async { serve(BufReader::new(input), stdout(), vault_args, settings, stop_signal()).await });
    // Turns stop where they are and can be continued later. A change that has started is completed.
    runtime.shutdown_timeout(LAST_CHANGE);
    ended?;
    Ok(Outcome::Done)
}
