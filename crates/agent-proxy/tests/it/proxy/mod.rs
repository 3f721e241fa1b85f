//! The proxy over real sockets, with backends that do what the test tells them, when it tells them.

mod backend;
mod client;
mod ends;
mod auth;
mod many;
mod paths;
mod stored;

use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use agent_loop::Model;
use agent_proxy::{Proxy, ProxyOptions};
use serde_json::{Value, json};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use client::Client;

/// A proxy that runs.
pub struct RunningProxy {
    pub address: SocketAddr,
    stop: Option<oneshot::Sender<()>>,
    pub task: JoinHandle<io::Result<()>>,
}

impl RunningProxy {
    /// Serves one model as `m`.
    pub async fn with(options: ProxyOptions, model: impl Model + 'static) -> Self {
        Self::start(Proxy::new(options).model("m", model)).await
    }

    pub async fn start(proxy: Proxy) -> Self {
        let listener = Proxy::listen(0).await.unwrap();
        let address = listener.local_addr().unwrap();
        let (stop, stopped) = oneshot::channel::<()>();
        let task = tokio::spawn(proxy.serve(listener, async move { drop(stopped.await) }));
        Self { address, stop: Some(stop), task }
    }

    pub fn stop(&mut self) {
        drop(self.stop.take());
    }

    pub async fn ended(mut self) {
        self.stop();
        within(self.task).await.unwrap().unwrap();
    }

    pub async fn client(&self) -> Client {
        Client::open(self.address).await
    }

    pub async fn get(&self, path: &str) -> (u16, Value) {
        let mut client = self.client().await;
        client.send("GET", path, &[], "").await;
        client.json().await
    }

    pub async fn post(&self, path: &str, body: &Value) -> (u16, Value) {
        let mut client = self.client().await;
        client.send("POST", path, &[], &body.to_string()).await;
        client.json().await
    }
}

/// A test that hangs is a test that fails.
pub async fn within<T>(future: impl Future<Output = T>) -> T {
    tokio::time::timeout(Duration::from_secs(30), future).await.expect("this ends in time")
}

pub const RESPONSES: &str = "/v1/responses";
pub const CHAT: &str = "/v1/chat/completions";

/// The same question for either API.
pub fn question(path: &str, text: &str, stream: bool) -> Value {
    match path {
        RESPONSES => json!({"model": "m", "input": text, "stream": stream}),
        _ => json!({"model": "m", "messages": [{"role": "user", "content": text}], "stream": stream}),
    }
}
