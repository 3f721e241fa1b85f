//! Accepts connections within a limit, serves them, and shuts down within a bound.

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
use super::{Proxy, Shared, routes};

/// How long connections may take to write the final events after their replies were ended.
const FINAL_EVENTS_TIMEOUT: Duration = Duration::from_secs(1);
/// How long nothing is accepted after the system refused, for example for lack of file handles.
const PAUSE: Duration = Duration::from_millis(100);

pub(super) async fn serve(proxy: Proxy, listener: TcpListener, stop: impl Future<Output = ()>) -> io::Result<()> {
    let options = Arc::clone(&proxy.options);
    let permit = Arc::new(Semaphore::new(options.max_connections));
    let shared = Arc::new(Shared {
        replies: Arc::new(Semaphore::new(options.max_replies)),
        stop: CancellationToken::new(),
        started: super::reply::now(),
        proxy,
    });
    let router = routes::router(Arc::clone(&shared));
    let closing = CancellationToken::new();
    // Dropping the set ends its tasks, so that nothing outlives this future.
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
                    let connection = connection(stream, router.clone(), options.client_timeout, closing.clone());
                    connections.spawn(async move {
                        connection.await;
                        drop(permit);
                    });
                }
                Err(error) if of_one_connection(&error) => {}
                // File handles are freed when connections end; without a pause, the same error would follow at once.
                Err(_) => sleep(PAUSE).await,
            },
        }
    }
    drop(listener);
    closing.cancel();
    let all_end = async |connections: &mut JoinSet<()>| while connections.join_next().await.is_some() {};
    if timeout(options.grace, all_end(&mut connections)).await.is_err() {
        shared.stop.cancel();
        let _ = timeout(FINAL_EVENTS_TIMEOUT, all_end(&mut connections)).await;
    }
    connections.shutdown().await;
    Ok(())
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
