//! A server's address: parses the forms that people write, and tells whether it is this machine.

use std::fmt;
use std::net::IpAddr;

use crate::error::{Error, ErrorKind, Result};

const OPENAI: &str = "https://api.openai.com";
const OLLAMA_PORT: u16 = 11434;

/// A server's address, without the path of a request. Displayed as `https://host:port/path`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Address {
    scheme: &'static str,
    /// In lower case, `[…]` around an IPv6 address.
    host: String,
    port: Option<u16>,
    /// Empty, or a path that begins with `/` and does not end with one.
    path: String,
}

impl Address {
    /// Parses the address of an OpenAI-compatible server, with or without `/v1` or `/v1/embeddings` at the end.
    ///
    /// # Errors
    /// [`ErrorKind::Query`] if the address is invalid.
    pub(super) fn openai(text: Option<&str>) -> Result<Self> {
        let mut address = Self::parse(text.unwrap_or(OPENAI))?;
        address.cut(&["/embeddings", "/v1"]);
        Ok(address)
    }

    /// Parses the address of an Ollama server in the form of `OLLAMA_HOST`: scheme and port may be missing.
    ///
    /// # Errors
    /// [`ErrorKind::Query`] if the address is invalid.
    pub(super) fn ollama(text: Option<&str>) -> Result<Self> {
        let text = text.map(str::trim).filter(|text| !text.is_empty()).unwrap_or("localhost");
        let has_scheme = text.contains("://");
        let mut address = if has_scheme { Self::parse(text)? } else { Self::parse(&format!("http://{text}"))? };
        address.cut(&["/embed", "/api"]);
        if address.port.is_none() && (!has_scheme || address.is_loopback()) {
            address.port = Some(OLLAMA_PORT);
        }
        Ok(address)
    }

    fn parse(text: &str) -> Result<Self> {
        let bad = |why: &str| {
            // The text itself is left out, because it may contain a password.
            Error::new(ErrorKind::Query, format!("the address of the model's server {why}"))
                .with_remedy("write it like http://localhost:8080 or https://host/v1")
        };
        let (scheme, rest) =
            text.trim().split_once("://").ok_or_else(|| bad("does not start with http:// or https://"))?;
        let scheme = match scheme.to_ascii_lowercase().as_str() {
            "http" => "http",
            "https" => "https",
            _ => return Err(bad("does not start with http:// or https://")),
        };
        let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
        if authority.contains('@') {
            return Err(bad("contains a user name or password; keys belong in the environment"));
        }
        if text.contains(['?', '#', ' ']) || text.contains(char::is_control) {
            return Err(bad("contains a `?`, `#` or space"));
        }
        // The port's colon is the one after an IPv6 address's bracket.
        let after_bracket = authority.rfind(']').map_or(0, |at| at + 1);
        let (host, port) = match authority[after_bracket..].find(':') {
            Some(colon) => {
                let (host, port) = authority.split_at(after_bracket + colon);
                (host, Some(port[1..].parse().map_err(|_| bad("has an invalid port"))?))
            }
            None => (authority, None),
        };
        let host = match host.to_ascii_lowercase() {
            // An address to listen on is not one to connect to.
            host if host.is_empty() || host == "0.0.0.0" || host == "[::]" => "localhost".to_owned(),
            host => host,
        };
        Ok(Self { scheme, host, port, path: path.trim_end_matches('/').to_owned() })
    }

    fn cut(&mut self, ends: &[&str]) {
        for end in ends {
            if let Some(path) = self.path.strip_suffix(end) {
                self.path = path.trim_end_matches('/').to_owned();
            }
        }
    }

    /// Whether it is this machine.
    pub(super) fn is_loopback(&self) -> bool {
        let bare = self.host.trim_start_matches('[').trim_end_matches(']');
        let is_name = bare == "localhost" || bare.ends_with(".localhost");
        is_name || bare.parse::<IpAddr>().is_ok_and(|ip| ip.to_canonical().is_loopback())
    }

    /// Whether it is OpenAI's own server.
    pub(super) fn is_openai(&self) -> bool {
        self.host == "api.openai.com"
    }

    /// Whether others can read the traffic: unencrypted, to another machine.
    pub(super) fn is_open_to_listeners(&self) -> bool {
        self.scheme == "http" && !self.is_loopback()
    }

    /// A key that identifies the server: host, port and path; all names of this machine are the same.
    pub(super) fn identity(&self) -> String {
        let host = if self.is_loopback() { "localhost" } else { &self.host };
        let port = self.port.map(|port| format!(":{port}")).unwrap_or_default();
        format!("{host}{port}{}", self.path)
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}://{}", self.scheme, self.host)?;
        if let Some(port) = self.port {
            write!(f, ":{port}")?;
        }
        f.write_str(&self.path)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_of_openai_compatible_servers() {
        let read = |text| Address::openai(Some(text)).unwrap().to_string();
        assert_eq!(Address::openai(None).unwrap().to_string(), OPENAI);
        for text in ["https://api.openai.com/", "https://API.openai.com/v1", "https://api.openai.com/v1/embeddings/"] {
            assert_eq!(read(text), OPENAI, "{text}");
        }
        assert_eq!(read("http://localhost:8080/v1/"), "http://localhost:8080");
        assert_eq!(read("https://host/some/path/v1"), "https://host/some/path");
        assert_eq!(read("http://[::1]:8080"), "http://[::1]:8080");
        for bad in ["", "localhost:8080", "ftp://x", "http://me:secret@host", "http://h:port", "http://h/?key=secret"] {
            let error = Address::openai(Some(bad)).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Query, "{bad}");
            assert!(!error.to_string().contains("secret"));
        }
    }

    #[test]
    fn addresses_of_ollama() {
        let cases = [
            (None, "http://localhost:11434"),
            (Some(""), "http://localhost:11434"),
            (Some("127.0.0.1:9999"), "http://127.0.0.1:9999"),
            (Some("0.0.0.0"), "http://localhost:11434"),
            (Some(":5000"), "http://localhost:5000"),
            (Some("gpu-box"), "http://gpu-box:11434"),
            (Some("http://gpu-box:80/"), "http://gpu-box:80"),
            (Some("https://ollama.example.org"), "https://ollama.example.org"),
            (Some("http://localhost:11434/api/embed"), "http://localhost:11434"),
        ];
        for (text, expected) in cases {
            assert_eq!(Address::ollama(text).unwrap().to_string(), expected, "{text:?}");
        }
    }

    #[test]
    fn this_machine() {
        let is_here = |text: &str| Address::ollama(Some(text)).unwrap().is_loopback();
        for here in
            ["localhost", "127.0.0.1:1", "127.9.9.9", "[::1]:80", "[::ffff:127.0.0.1]", "x.localhost", "LOCALHOST"]
        {
            assert!(is_here(here), "{here}");
        }
        for away in ["localhost.example.org", "10.0.0.1", "127.0.0.1.example.org", "example.org", "[::2]"] {
            assert!(!is_here(away), "{away}");
        }
    }
}
