//! The hub that models are read from: what a repository has, and its files.
//!
//! It is any server with the hub's addresses, such as a mirror: `/api/models/NAME/revision/REVISION?blobs=true` gives the
//! commit and each file's length and digest, `/NAME/resolve/COMMIT/FILE` the file, mostly by a redirection. Nothing is
//! sent but these addresses.

use std::time::Duration;

use serde_json::Value;
use ureq::http::{Response, header};
use ureq::{Agent, Body};

use super::{MOST_BYTES, ModelSource, SourceFile};
use crate::error::{Error, ErrorKind, Result};

/// The address of the hub, if none is given.
const HUB: &str = "https://huggingface.co";

/// The longest list of a repository's files, in bytes.
const LONGEST_LISTING: u64 = 8 << 20;

/// The most files of a model.
const MOST_FILES: usize = 64;

/// The longest name of a licence that is shown, in characters.
const LONGEST_LICENCE: usize = 60;

/// The files that a model needs, besides those of the layers after the encoder.
const NEEDED: [&str; 3] = ["config.json", "tokenizer.json", "model.safetensors"];
const USED: [&str; 3] = ["modules.json", "sentence_bert_config.json", "config_sentence_transformers.json"];

/// How long to wait for a server.
#[derive(Debug, Clone, Copy)]
pub(super) struct Waits {
    pub(super) connect: Duration,
    /// For the head of an answer.
    pub(super) head: Duration,
    /// For the next bytes. There is no limit for a whole file: a slow connection is used for as long as it delivers.
    pub(super) read: Duration,
    /// Before the second try; it doubles with each.
    pub(super) first_pause: Duration,
    pub(super) longest_pause: Duration,
    /// Without a byte more.
    pub(super) tries: u32,
}

const WAITS: Waits = Waits {
    connect: Duration::from_secs(20),
    head: Duration::from_secs(60),
    read: Duration::from_secs(60),
    first_pause: Duration::from_millis(500),
    longest_pause: Duration::from_secs(60),
    tries: 5,
};

/// A hub, or a mirror of it.
#[derive(Debug)]
pub struct Hub {
    agent: Agent,
    address: String,
    pub(super) waits: Waits,
}

/// A repository at one commit: the files of it that a model needs.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Listing {
    /// Its name.
    pub repository: String,
    /// The commit.
    pub revision: String,
    /// Address, commit, licence and files, as they are recorded.
    pub source: ModelSource,
}

impl Listing {
    /// The length of all files together.
    pub fn bytes(&self) -> u64 {
        self.source.files.iter().map(|file| file.bytes).sum()
    }
}

/// A failed request, and whether to try again.
pub(super) struct FailedRequest {
    pub(super) error: Error,
    /// `None`: no other try; else after this pause, if the server named one.
    pub(super) again: Option<Option<Duration>>,
    /// Whether the file that the server has ends before the byte that was asked for.
    pub(super) is_outside: bool,
}

impl Hub {
    /// The hub at an address; `None`: the usual one. No connection is made.
    ///
    /// # Errors
    /// [`ErrorKind::Query`] for an invalid address.
    pub fn at(address: Option<&str>) -> Result<Hub> {
        let address = address.map_or(HUB, |address| address.trim().trim_end_matches('/'));
        let is_secure = address.starts_with("https://");
        let is_local = ["http://127.0.0.1", "http://localhost", "http://[::1]"].iter().any(|local| {
            address.strip_prefix(local).is_some_and(|rest| rest.is_empty() || rest.starts_with([':', '/']))
        });
        if !(is_secure || address.starts_with("http://")) || address.contains(['@', '?', '#', ' ']) {
            return Err(Error::new(ErrorKind::Query, "the address of the hub is no address")
                .with_remedy("write it like https://mirror.example.org"));
        }
        Ok(Hub::with(address, is_secure, is_local, WAITS))
    }

    fn with(address: &str, is_secure: bool, is_local: bool, waits: Waits) -> Hub {
        let config = Agent::config_builder()
            .http_status_as_error(false)
            .timeout_connect(Some(waits.connect))
            .timeout_recv_response(Some(waits.head))
            .timeout_per_read(Some(waits.read))
            // A redirection never leads from a secure address to another.
            .https_only(is_secure)
            .user_agent(concat!("vault-index/", env!("CARGO_PKG_VERSION")));
        // A proxy cannot reach servers on this machine.
        let config = if is_local { config.proxy(None) } else { config };
        Hub { agent: config.build().into(), address: address.to_owned(), waits }
    }

    /// A hub on this machine that is waited for up to `read` at each read.
    #[cfg(test)]
    pub(super) fn for_test(address: &str, read: Duration) -> Hub {
        let pause = Duration::from_millis(1);
        Hub::with(address, false, true, Waits { read, first_pause: pause, ..WAITS })
    }

    /// Its address.
    pub fn address(&self) -> &str {
        &self.address
    }

    /// Asks what the newest commit of a repository has.
    ///
    /// # Errors
    /// [`ErrorKind::Model`] when the hub cannot be reached or has no such repository, or when a file that a model
    /// needs is missing.
    pub fn listing(&self, repository: &str) -> Result<Listing> {
        let url = format!("{}/api/models/{repository}/revision/main?blobs=true", self.address);
        let text = self.retried(|| {
            let mut response = self.get(&url, 0)?;
            let read = response.body_mut().with_config().limit(LONGEST_LISTING).read_to_vec();
            read.map_err(|error| self.cut(&error))
        })?;
        let damaged = |what: &str| {
            Error::new(ErrorKind::Model, format!("{} does not list {repository} as the hub does: {what}", self.address))
                .with_remedy("check the address that --hub names")
        };
        let json: Value = serde_json::from_slice(&text).map_err(|_| damaged("this is not JSON"))?;
        let revision = json["sha"].as_str().filter(|sha| is_digest(sha, 40)).ok_or_else(|| damaged("no commit"))?;
        let siblings = json["siblings"].as_array().ok_or_else(|| damaged("no files"))?;
        let mut files = Vec::new();
        for sibling in siblings {
            let Some(path) = sibling["rfilename"].as_str().filter(|path| is_of_the_model(path)) else { continue };
            let lfs = &sibling["lfs"];
            let sha256 = lfs["sha256"].as_str().or(lfs["oid"].as_str()).filter(|digest| is_digest(digest, 64));
            let blob = sibling["blobId"].as_str().filter(|digest| is_digest(digest, 40));
            let digest = match (lfs.is_null(), sha256, blob) {
                (false, Some(sha256), _) => format!("sha256:{sha256}"),
                (true, _, Some(blob)) => format!("git:{blob}"),
                _ => return Err(damaged("a file without a digest")),
            };
            let bytes = lfs["size"].as_u64().or(sibling["size"].as_u64());
            let bytes = bytes.ok_or_else(|| damaged("a file without a length"))?;
            files.push(SourceFile { path: path.to_owned(), bytes, digest });
        }
        let sum = files.iter().fold(0_u64, |sum, file| sum.saturating_add(file.bytes));
        if files.len() > MOST_FILES || sum > MOST_BYTES {
            return Err(damaged(&format!("{} files of {sum} bytes are more than a model has", files.len())));
        }
        if let Some(missing) = NEEDED.iter().find(|needed| !files.iter().any(|file| file.path == **needed)) {
            return Err(Error::new(ErrorKind::Model, format!("{repository} has no {missing}"))
                .with_remedy("choose another model: vault-index models lists them"));
        }
        files.sort_by(|a, b| a.path.cmp(&b.path));
        if let Some(twice) = files.windows(2).find(|two| two[0].path == two[1].path) {
            return Err(damaged(&format!("{} is there twice", twice[0].path)));
        }
        let licence = json["cardData"]["license"].as_str().map(licence_name);
        let source = ModelSource {
            from: format!("{}/{repository}", self.address),
            revision: Some(revision.to_owned()),
            licence,
            files,
        };
        Ok(Listing { repository: repository.to_owned(), revision: revision.to_owned(), source })
    }

    /// A file from some byte on.
    pub(super) fn file(&self, listing: &Listing, path: &str, from: u64) -> Result<Response<Body>, FailedRequest> {
        self.get(&format!("{}/{}/resolve/{}/{path}", self.address, listing.repository, listing.revision), from)
    }

    fn get(&self, url: &str, from: u64) -> Result<Response<Body>, FailedRequest> {
        let mut request = self.agent.get(url);
        if from > 0 {
            request = request.header(header::RANGE, format!("bytes={from}-"));
        }
        let response = request.call().map_err(|error| self.cut(&error))?;
        let code = response.status().as_u16();
        if matches!(code, 200 | 206) {
            return Ok(response);
        }
        let pause = || {
            let value = response.headers().get(header::RETRY_AFTER)?.to_str().ok()?;
            value.trim().parse().ok().map(Duration::from_secs)
        };
        let (what, again) = match code {
            401 | 403 => ("it wants a login, or forbids it".to_owned(), None),
            404 => ("there is nothing of this name".to_owned(), None),
            416 => ("it has fewer bytes of a file than were asked for".to_owned(), Some(None)),
            429 => ("it was asked too often".to_owned(), Some(pause())),
            500..=599 => (format!("it failed ({code})"), Some(pause())),
            _ => (format!("it answered {code}"), None),
        };
        let remedy = match code {
            401 | 403 | 404 => "choose another model, or a mirror with --hub URL",
            _ => "run the command again later: it goes on where it stopped",
        };
        Err(FailedRequest { error: self.error(&what).with_remedy(remedy), again, is_outside: code == 416 })
    }

    pub(super) fn error(&self, what: &str) -> Error {
        Error::new(ErrorKind::Model, format!("{}: {what}", self.address))
    }

    /// A connection that failed or was cut. Without the library's text, which may quote a proxy's password.
    fn cut(&self, error: &ureq::Error) -> FailedRequest {
        let (what, may_change) = match error {
            ureq::Error::HostNotFound => ("there is no such server, or no network", false),
            ureq::Error::Timeout(_) => ("it does not answer", true),
            ureq::Error::Io(error) if error.kind() == std::io::ErrorKind::ConnectionRefused => {
                ("it refuses connections", false)
            }
            ureq::Error::InvalidProxyUrl => ("HTTPS_PROXY, HTTP_PROXY or ALL_PROXY is no address", false),
            ureq::Error::Tls(_) | ureq::Error::Rustls(_) => ("its certificate was not accepted", false),
            ureq::Error::RequireHttpsOnly(_) => ("it leads to an address that is not secure", false),
            ureq::Error::TooManyRedirects => ("it leads in a circle", false),
            ureq::Error::BodyExceedsLimit(_) => ("its answer is too long", false),
            _ => ("the connection was cut", true),
        };
        let remedy = "check the network, or name a mirror with --hub URL; what was downloaded is kept";
        FailedRequest {
            error: self.error(what).with_remedy(remedy),
            again: may_change.then_some(None),
            is_outside: false,
        }
    }

    /// Tries again where that may help.
    fn retried<T>(&self, mut once: impl FnMut() -> Result<T, FailedRequest>) -> Result<T> {
        let mut tries = 0;
        loop {
            let failed = match once() {
                Ok(done) => return Ok(done),
                Err(failed) => failed,
            };
            tries += 1;
            match self.pause(&failed, tries) {
                Some(pause) => std::thread::sleep(pause),
                None => return Err(failed.error),
            }
        }
    }

    /// How long to wait before the next try; `None`: no more tries.
    pub(super) fn pause(&self, failed: &FailedRequest, tries: u32) -> Option<Duration> {
        let named = failed.again?;
        let usual = self.waits.first_pause * 2u32.saturating_pow(tries.saturating_sub(1));
        let pause = named.unwrap_or(usual.min(self.waits.longest_pause));
        (tries < self.waits.tries && pause <= self.waits.longest_pause).then_some(pause)
    }
}

/// The name of a licence as a hub sends it, on one line and of a bounded length.
fn licence_name(text: &str) -> String {
    let plain: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    match plain.char_indices().nth(LONGEST_LICENCE) {
        Some((at, _)) => format!("{}…", &plain[..at]),
        None => plain,
    }
}

fn is_digest(text: &str, digits: usize) -> bool {
    text.len() == digits && text.bytes().all(|byte| byte.is_ascii_hexdigit() && !byte.is_ascii_uppercase())
}

/// Whether a repository's file is one of a model's: never a path that leads elsewhere.
fn is_of_the_model(path: &str) -> bool {
    if NEEDED.contains(&path) || USED.contains(&path) {
        return true;
    }
    let Some((folder, file)) = path.split_once('/') else { return false };
    let Some((number, kind)) = folder.split_once('_') else { return false };
    let is_layer =
        number.bytes().all(|byte| byte.is_ascii_digit()) && ["Pooling", "Dense", "Normalize"].contains(&kind);
    is_layer && !number.is_empty() && ["config.json", "model.safetensors"].contains(&file)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_files_of_the_model_are_taken() {
        for path in ["config.json", "1_Pooling/config.json", "2_Dense/model.safetensors"] {
            assert!(is_of_the_model(path), "{path}");
        }
        for path in [
            "onnx/model.onnx",
            "../config.json",
            "1_Pooling/../x",
            "_Dense/config.json",
            "README.md",
            "a_Dense/config.json",
        ] {
            assert!(!is_of_the_model(path), "{path}");
        }
    }

    #[test]
    fn addresses() {
        assert_eq!(Hub::at(None).unwrap().address(), HUB);
        assert_eq!(Hub::at(Some("http://localhost:8080/hub/")).unwrap().address(), "http://localhost:8080/hub");
        for bad in ["", "mirror", "ftp://x", "https://user:secret@x", "http://x?y"] {
            let error = Hub::at(Some(bad)).unwrap_err().to_string();
            assert!(!error.contains("secret"), "{error}");
        }
    }
}
