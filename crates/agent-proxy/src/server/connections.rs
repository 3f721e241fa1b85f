//! Accepts connections within a limit, serves them, and shuts down within a time limit. It does not depend on what is
//! served.

use std::future::Future;
use std::io;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;

use super::write_timeout::WriteTimeout;

/// How long connections may take to write the final events after their replies were ended.
const FINAL_EVENTS_TIMEOUT: Duration = Duration::from_secs(1);
/// The pause after the system refused a connection, for example because of too few file handles.
const PAUSE: Duration = Duration::from_millis(100);

/// Limits of a server, for [`serve_router`].
#[derive(Debug, Clone, Copy)]
pub struct ConnectionLimits {
    /// The most connections at once; others wait to be accepted.
    pub connections: usize,
    /// How long a client may take to send its headers, and to read some of a reply.
    pub client_timeout: Duration,
    /// How long replies may continue after shutdown was requested.
    pub grace: Duration,
}

/// Serves a router over HTTP/1.1 like the proxy, for a server with other paths: connections are limited, a client that
/// stops reading or writing is disconnected, and shutdown takes a limited time.
///
/// It serves until `stop` is ready. `out_of_time` is called when the time for the replies in progress is over.
pub async fn serve_router(
    router: axum::Router,
    listener: TcpListener,
    limits: ConnectionLimits,
    stop: impl Future<Output = ()>,
    out_of_time: impl FnOnce(),
) {
    let permit = Arc::new(Semaphore::new(limits.connections));
    let closing = CancellationToken::new();
    // Dropping the set ends its tasks, so that none outlives this future.
    let mut connections = JoinSet::new();
    let mut stop = pin!(stop);
    loop {
        let accepted = async {
            let permit = Arc::clone(&permit).acquire_owned().await;
            (permit, listener.accept().await)
        };
        tokio::select! {
            biased;
            () = &mut stop => break,
            Some(_) = connections.join_next() => {}
            (permit, accepted) = accepted => match accepted {
                Ok((stream, _)) => {
                    let connection = connection(stream, router.clone(), limits.client_timeout, closing.clone());
                    connections.spawn(async move {
                        connection.await;
                        drop(permit);
                    });
                }
                Err(error) if of_one_connection(&error) => {}
                // File handles are freed when connections close; without a pause, the same error would follow
                // immediately.
                Err(_) => sleep(PAUSE).await,
            },
        }
    }
    drop(listener);
    closing.cancel();
    let all_end = async |connections: &mut JoinSet<()>| while connections.join_next().await.is_some() {};
    if timeout(limits.grace, all_end(&mut connections)).await.is_err() {
        out_of_time();
        let _ = timeout(FINAL_EVENTS_TIMEOUT, all_end(&mut connections)).await;
    }
    connections.shutdown().await;
}

fn of_one_connection(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset};
    matches!(error.kind(), ConnectionAborted | ConnectionRefused | ConnectionReset)
}

async fn connection(stream: TcpStream, router: axum::Router, patience: Duration, closing: CancellationToken) {
    // Events are small, and none may wait for the next.
    let _ = stream.set_nodelay(true);
    let io = TokioIo::new(WriteTimeout::new(stream, patience));
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new()).header_read_timeout(patience);
    let mut connection = pin!(http.serve_connection(io, TowerToHyperService::new(router)));
    tokio::select! {
        // A client that disconnects is not an error of the server.
        _ = connection.as_mut() => return,
        () = closing.cancelled() => {}
    }
    connection.as_mut().graceful_shutdown();
    let _ = connection.await;
}
