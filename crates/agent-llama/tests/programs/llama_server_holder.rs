//! `llama_server_holder PROGRAM` starts a llama-server, says where it listens, and waits to be killed.

use std::io::Write;

use agent_llama::{LlamaServer, LlamaServerOptions};
use agent_loop::Http;

#[tokio::main]
async fn main() {
    let program = std::env::args_os().nth(1).expect("the program of the server");
    let options = LlamaServerOptions::default().program(program.into());
    let server = LlamaServer::start(options, Http::new().unwrap()).await.unwrap();
    let told = format!("listens at {}\n", server.address());
    std::io::stdout().write_all(told.as_bytes()).unwrap();
    std::future::pending::<()>().await;
}
