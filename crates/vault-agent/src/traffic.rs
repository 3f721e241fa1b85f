//! `--show-traffic`: prints every request and response of a model exactly, on standard error, but without keys.

use std::io::{IsTerminal, Write, stderr};

use agent_loop::{BoxFuture, ByteStream, Http, HttpReply, HttpRequest, Transport, error::Result};
use futures_util::StreamExt;
use vault_search::sanitize;

/// The headers whose values are shown. Any other may contain a key.
const SHOWN: [&str; 6] =
    ["accept", "anthropic-version", "content-type", "retry-after", "x-request-id", "transfer-encoding"];

/// The replacement of a key.
const REDACTED: &str = "[key]";

/// A connection that prints its traffic if requested.
#[derive(Debug)]
pub(crate) struct Traffic {
    connection: Http,
    printer: Printer,
    is_shown: bool,
}

impl Traffic {
    pub fn new(connection: Http, key: Option<String>, is_shown: bool) -> Self {
        let key = key.filter(|key| !key.is_empty());
        Self { connection, printer: Printer { key, is_terminal: stderr().is_terminal() }, is_shown }
    }
}

impl Transport for Traffic {
    fn post(&self, request: HttpRequest) -> BoxFuture<'_, Result<HttpReply>> {
        if !self.is_shown {
            return self.connection.post(request);
        }
        Box::pin(async move {
            // The URL may contain a name and a password.
            let url = without_user(&request.url);
            self.printer.print(format!("> POST {url}").as_bytes());
            self.printer.headers('>', &request.headers);
            self.printer.print(b">");
            self.printer.print(&request.body);
            let reply = self.connection.post(request).await?;
            self.printer.print(format!("< {}", reply.status).as_bytes());
            self.printer.headers('<', &reply.headers);
            self.printer.print(b"<");
            let HttpReply { status, headers, body } = reply;
            Ok(HttpReply { status, headers, body: self.printer.clone().watch(body) })
        })
    }
}

fn without_user(url: &str) -> String {
    let Some((scheme, rest)) = url.split_once("://") else { return url.to_owned() };
    let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
    let host = authority.rsplit_once('@').map_or(authority, |(_, host)| host);
    format!("{scheme}://{host}{path}")
}

#[derive(Debug, Clone)]
struct Printer {
    key: Option<String>,
    is_terminal: bool,
}

impl Printer {
    fn headers(&self, mark: char, headers: &[(String, String)]) {
        for (name, value) in headers {
            let value = if SHOWN.contains(&&*name.to_lowercase()) { value } else { "…" };
            self.print(format!("{mark} {name}: {value}").as_bytes());
        }
    }

    /// Prints a line. Control characters are removed for a terminal; a file or a pipe gets every byte.
    fn print(&self, line: &[u8]) {
        let line = self.without_key(line);
        let mut error = stderr().lock();
        // A closed standard error must not stop the program.
        let _ = match self.is_terminal {
            true => error.write_all(sanitize(&String::from_utf8_lossy(&line)).as_bytes()),
            false => error.write_all(&line),
        };
        let _ = error.write_all(b"\n");
    }

    fn without_key(&self, line: &[u8]) -> Vec<u8> {
        let Some(key) = &self.key else { return line.to_owned() };
        let (mut clean, mut rest) = (Vec::with_capacity(line.len()), line);
        while let Some(at) = rest.windows(key.len()).position(|window| window == key.as_bytes()) {
            clean.extend_from_slice(&rest[..at]);
            clean.extend_from_slice(REDACTED.as_bytes());
            rest = &rest[at + key.len()..];
        }
        clean.extend_from_slice(rest);
        clean
    }

    /// Prints a body line by line as it passes.
    fn watch(self, body: ByteStream) -> ByteStream {
        let mut unfinished = PartialLine { printer: self, bytes: Vec::new() };
        Box::pin(body.inspect(move |bytes| {
            if let Ok(bytes) = bytes {
                unfinished.push(bytes);
            }
        }))
    }
}

/// The beginning of an unfinished line, which is printed when the body ends or is dropped.
struct PartialLine {
    printer: Printer,
    bytes: Vec<u8>,
}

impl PartialLine {
    fn push(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
        while let Some(end) = self.bytes.iter().position(|byte| *byte == b'\n') {
            let line: Vec<u8> = self.bytes.drain(..=end).collect();
            self.printer.print(&line[..end]);
        }
    }
}

impl Drop for PartialLine {
    fn drop(&mut self) {
        if !self.bytes.is_empty() {
            self.printer.print(&self.bytes);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_and_passwords_are_left_out() {
        let printer = Printer { key: Some("sk-1".into()), is_terminal: false };
        assert_eq!(printer.without_key(b"a sk-1 b sk-1"), b"a [key] b [key]");
        assert_eq!(without_user("https://u:p@host/v1/x"), "https://host/v1/x");
        assert_eq!(without_user("https://host/v1/@x"), "https://host/v1/@x");
    }
}
