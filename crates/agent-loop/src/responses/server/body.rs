//! Reads a request body within its limits, and drains a refused one.

use std::time::Duration;

use axum::body::{Body, Bytes};
use futures_util::{Stream, StreamExt};
use tokio::time::timeout;

use super::ProxyOptions;
use super::refusal::Refusal;

/// How long the rest of a refused body is read: a client that is still writing does not read the answer.
const REST: Duration = Duration::from_secs(2);

pub(super) async fn read(options: &ProxyOptions, body: Body) -> Result<Vec<u8>, Refusal> {
    let mut stream = body.into_data_stream();
    let mut bytes = Vec::new();
    let reading = async {
        while let Some(part) = stream.next().await {
            let part = part.map_err(|_| Refusal::new(400, "invalid_body", "The body could not be read to its end."))?;
            if bytes.len() + part.len() > options.max_body {
                return Err(too_long(options));
            }
            bytes.extend_from_slice(&part);
        }
        Ok(())
    };
    let read = timeout(options.client_timeout, reading).await;
    match read {
        Ok(Ok(())) => Ok(bytes),
        Ok(Err(refusal)) => {
            drop(bytes);
            drain(options, stream).await;
            Err(refusal)
        }
        Err(_) => Err(Refusal::new(408, "request_timeout", "The body did not come in time.")),
    }
}

fn too_long(options: &ProxyOptions) -> Refusal {
    Refusal::new(413, "request_too_large", format!("The body is longer than {} bytes.", options.max_body))
}

/// Reads what is left of a body, as much and as long as it is reasonable to.
pub(super) async fn drain(options: &ProxyOptions, mut rest: impl Stream<Item = Result<Bytes, axum::Error>> + Unpin) {
    let mut left = options.max_body;
    let reading = async {
        while let Some(Ok(part)) = rest.next().await {
            match left.checked_sub(part.len()) {
                Some(less) => left = less,
                None => return,
            }
        }
    };
    let _ = timeout(REST, reading).await;
}
