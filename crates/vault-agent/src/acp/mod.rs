//! An agent for editors: the Agent Client Protocol, version 1, on standard input and output.
//!
//! ```text
//! line ──rpc──> method ──agent──> session ──prompt──> conversation ── events ──updates──> session/update
//!                                                          └─ question ──questions──> session/request_permission
//! ```
//!
//! A client can also be a live host: `live_host` asks it for the state of its editor and for commands.
//!
//! Only the protocol is written to standard output; messages for the person go to standard error. A client's answer
//! counts at most as its person's approval: calls that the settings deny stay denied, whatever the client answers.

mod wire;
mod rpc;
mod vault_methods;
mod live_host;
mod folder;
mod display;
mod prompt;
mod forms;
mod options;
mod mcp_servers;
mod updates;
mod permission_requests;
mod turn_state;
mod commands;
mod session;
mod agent;

use std::sync::Arc;

use tokio::io::{AsyncBufRead, AsyncWrite};
use tokio::task::JoinHandle;
use vault_search::VaultArgs;
use vault_tools::{Error, Result};

use crate::message_lines::{Line, next_line};
use crate::settings::SettingArgs;

use agent::AcpAgent;
pub(crate) use vault_methods::schema;

use rpc::{Client, LONGEST_LINE, Message, parse, too_long, write_lines};

/// Serves one client until its input ends, its output is closed or `stop` completes.
///
/// # Errors
/// Errors of input and output.
pub(crate) async fn serve(
    mut input: impl AsyncBufRead + Unpin,
    output: impl AsyncWrite + Unpin + Send + 'static,
    vault_args: VaultArgs,
    setting_args: SettingArgs,
    stop: impl Future<Output = ()>,
) -> Result<()> {
    let (client, lines) = Client::new();
    let mut writing = tokio::spawn(write_lines(lines, output));
    let agent = Arc::new(AcpAgent::new(client.clone(), vault_args, setting_args));
    let ended = tokio::select! {
        ended = listen(&mut input, &mut writing, &agent, &client) => ended,
        () = stop => Ok(()),
    };
    agent.end().await;
    ended
}

async fn listen(
    mut input: &mut (impl AsyncBufRead + Unpin),
    mut writing: &mut JoinHandle<std::io::Result<()>>,
    agent: &Arc<AcpAgent>,
    client: &Client,
) -> Result<()> {
    loop {
        let line = tokio::select! {
            line = next_line(&mut input, LONGEST_LINE) => line.map_err(|error| Error::io("standard input", &error))?,
            // A client that closes its side has gone.
            _ = &mut writing => return Ok(()),
        };
        let message = match line {
            None => return Ok(()),
            Some(Line::Whole(line)) if line.trim_ascii().is_empty() => continue,
            Some(Line::Whole(line)) => parse(&line),
            Some(Line::TooLong(head)) => Err(too_long(&head)),
        };
        match message {
            Ok(Message::Request { id, method, params }) => agent.requested(id, method, params),
            Ok(Message::Notification { method, params }) => agent.notified(&method, params),
            Ok(Message::Answer { id, result }) => client.answered(&id, result),
            Err(fault) => client.answer(&fault.id, Err(fault.error)),
        }
    }
}
