//! Access checks: `Host`, `Origin` and the bearer key.

use axum::http::{HeaderMap, Request, Uri, header, uri::Authority};

use super::refusal::Refusal;

/// Checks whether a request may pass at all, whatever its path: its `Host`, and its `Origin` if it has one, must be
/// among `hosts`.
///
/// # Errors
/// A [`Refusal`] with status 403.
pub fn check_origin<B>(hosts: &[String], request: &Request<B>) -> Result<(), Refusal> {
    let is_ours = |host: &str| hosts.iter().any(|ours| bare(ours).eq_ignore_ascii_case(bare(host)));
    let headers = request.headers();
    let mut given = headers.get_all(header::HOST).iter().map(|host| host.to_str().ok());
    let named = |host: Option<&str>| host.and_then(|host| Some(is_ours(host.parse::<Authority>().ok()?.host())));
    // There must be exactly one, because an intermediary could have checked a different one.
    let is_one_of_ours =
        given.next().flatten().is_some_and(|host| named(Some(host)) == Some(true)) && given.next().is_none();
    if !is_one_of_ours || request.uri().host().is_some_and(|host| !is_ours(host)) {
        let message = "The name in the Host header is not among the server's `hosts`.";
        return Err(Refusal::new(403, "host_not_allowed", message));
    }
    for origin in headers.get_all(header::ORIGIN) {
        let uri = origin.to_str().ok().and_then(|origin| origin.parse::<Uri>().ok());
        if !uri.as_ref().and_then(Uri::host).is_some_and(is_ours) {
            let message = "Pages of this Origin are not allowed, because it is not among the server's `hosts`.";
            return Err(Refusal::new(403, "origin_not_allowed", message));
        }
    }
    Ok(())
}

/// Removes the brackets around an IPv6 address, because only some places use them.
fn bare(host: &str) -> &str {
    host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host)
}

/// Checks whether the client has the key, if one is set.
///
/// # Errors
/// A [`Refusal`] with status 401.
pub fn check_key(key: Option<&str>, headers: &HeaderMap) -> Result<(), Refusal> {
    let Some(key) = key else { return Ok(()) };
    let given = headers.get(header::AUTHORIZATION).map(|value| value.as_bytes());
    let given = given.and_then(|value| {
        let (scheme, key) = value.split_at_checked(7)?;
        scheme.eq_ignore_ascii_case(b"bearer ").then(|| key.trim_ascii())
    });
    // Hashes are compared in constant time, and their length reveals nothing about the key's length.
    match given {
        Some(given) if blake3::hash(given) == blake3::hash(key.as_bytes()) => Ok(()),
        Some(_) => Err(Refusal::new(401, "invalid_api_key", "The API key is wrong.")),
        None => Err(Refusal::new(401, "invalid_api_key", "An API key is required: Authorization: Bearer KEY.")),
    }
}
