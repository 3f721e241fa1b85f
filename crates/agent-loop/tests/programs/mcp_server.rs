//! The server of the tests of MCP as a program: `mcp_test_server All`, or another name of [`Revisions`].

#[path = "../it/mcp/test_server.rs"]
mod test_server;

use std::io::Write;

use rmcp::ServiceExt;
use test_server::{Revisions, TestServer};

#[tokio::main]
async fn main() {
    let speaks = match std::env::args().nth(1).as_deref() {
        Some("All") => Revisions::All,
        Some("OldOnes") => Revisions::OldOnes,
        Some("OldOnesDiscovered") => Revisions::OldOnesDiscovered,
        other => panic!("{other:?}: which revisions are to be spoken?"),
    };
    assert!(std::env::var_os("CARGO_MANIFEST_DIR").is_none(), "the environment is not handed on");
    // A client has to pass over what is no message.
    std::io::stdout().write_all(b"starting the server\n").unwrap();
    let running = TestServer::new(speaks).serve(rmcp::transport::stdio()).await.unwrap();
    running.waiting().await.unwrap();
    // A read of standard input cannot be given up.
    std::process::exit(0);
}
