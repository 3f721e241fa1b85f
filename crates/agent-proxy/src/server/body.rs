//! Reads a request body within its limits, and drains a rejected one.

use std::time::Duration;

use axum::body::{Body, BodyDataStream, HttpBody};
use futures_util::StreamExt;
use tokio::time::timeout;

use super::ProxyOptions;
use super::refusal::Refusal;

/// How long the rest of a rejected body is read, because a client that is still writing does not read the response.
const REST: Duration = Duration::from_secs(2);

pub(super) async fn read(options: &ProxyOptions, body: Body) -> Result<Vec<u8>, Refusal> {
    let declared = body.size_hint().lower();
    let mut stream = body.into_data_stream();
    if declared > options.max_body as u64 {
        drain(options.max_body, stream);
        return Err(too_long(options));
    }
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
            drain(options.max_body, stream);
            Err(refusal)
        }
        Err(_) => Err(Refusal::new(408, "request_timeout", "The body did not arrive in time.")),
    }
}

fn too_long(options: &ProxyOptions) -> Refusal {
    Refusal::new(413, "request_too_large", format!("The body is longer than {} bytes.", options.max_body))
}

/// Reads the rest of a body in parallel with its response, up to limits of size and time.
pub(super) fn drain(mut left: usize, mut rest: BodyDataStream) {
    let reading = async move {
        while let Some(Ok(part)) = rest.next().await {
            match left.checked_sub(part.len()) {
                Some(less) => left = less,
                None => return,
            }
        }
    };
    tokio::spawn(timeout(REST, reading));
}
