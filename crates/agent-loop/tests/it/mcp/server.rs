//! The test server in the ways that clients reach it: as a process over standard input and output, and over HTTP.

use std::net::SocketAddr;
use std::sync::Arc;

use agent_loop::mcp::McpServer;
use axum::Router;
use axum::extract::Request;
use axum::http::StatusCode;
use axum::middleware::{Next, from_fn};
use axum::response::{IntoResponse, Response};
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::{StreamableHttpServerConfig, StreamableHttpService};
use tokio::net::TcpListener;

use super::test_server::{KEY, Revisions, TestServer};
use crate::programs::program;

/// A server that speaks on its standard output.
pub fn stdio(name: &str, speaks: Revisions) -> McpServer {
    McpServer::stdio(name, program("mcp_test_server")).args([format!("{speaks:?}")])
}

/// A server over HTTP, for those who have the key, until the runtime ends.
pub async fn http(speaks: Revisions) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let server = TestServer::new(speaks);
    let sessions = Arc::new(LocalSessionManager::default());
    let service =
        StreamableHttpService::new(move || Ok(server.clone()), sessions, StreamableHttpServerConfig::default());
    let router = Router::new().route_service("/mcp", service).layer(from_fn(check));
    tokio::spawn(async move { axum::serve(listener, router).await });
    address
}

pub fn at(name: &str, address: SocketAddr) -> McpServer {
    McpServer::http(name, format!("http://{address}/mcp"))
}

async fn check(request: Request, next: Next) -> Response {
    let wanted = [("authorization", KEY), ("x-extra", "1")];
    let may_ask = wanted.iter().all(|(name, wanted)| request.headers().get(*name).is_some_and(|value| value == wanted));
    if !may_ask {
        return (StatusCode::UNAUTHORIZED, [("www-authenticate", "Bearer")]).into_response();
    }
    next.run(request).await
}
