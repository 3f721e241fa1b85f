//! Remote models: OpenAI-compatible servers and Ollama, in batches, with retries.
//!
//! The flow of a call: texts → batches (here) → JSON (`wire.rs`) → one POST, retried while that can help (`send.rs`) →
//! vectors in the order of the texts, checked and scaled (here). Requests go only to the one address, redirects are not
//! followed, and no message contains the key.

mod address;
#[cfg(test)]
mod tests;
mod wire;
mod send;

use std::time::Duration;

use self::address::Address;
use self::send::{Failure, Key, Sender};
use self::wire::Wire;
use super::prompts::Prompts;
use super::{Embedder, LoadOptions, Role, to_unit, token_estimate};
use crate::chunk::TokenCount;
use crate::error::{Error, ErrorKind, Result};

/// The number of tokens of a text, by our upper estimate ([`estimate`]). This is about 380 tokens of a model, which is
/// within the window of all common models and a good length for a passage.
const MAX_TOKENS: usize = 512;

/// Retries, timeouts and the size of batches.
#[derive(Debug, Clone)]
struct Limits {
    /// The most attempts to send a request.
    tries: u32,
    /// The wait before the second attempt, which doubles with each further one. There is no jitter, because a process
    /// sends one request at a time.
    first_wait: Duration,
    /// If a server requests a longer wait than this, the request fails.
    longest_wait: Duration,
    /// Timeout for connecting.
    connect: Duration,
    /// Timeout from the end of the request to the start of the response. It is long, because a local server may have to
    /// load the model first.
    answer: Duration,
    /// The most texts and bytes of text in a request; a longer text is sent alone.
    batch_texts: usize,
    batch_bytes: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            tries: 6,
            first_wait: Duration::from_millis(500),
            longest_wait: Duration::from_secs(60),
            connect: Duration::from_secs(10),
            answer: Duration::from_secs(120),
            batch_texts: 64,
            batch_bytes: 256 * 1024,
        }
    }
}

/// A model on a server.
#[derive(Debug)]
pub(super) struct RemoteModel {
    id: String,
    model: String,
    wire: Wire,
    address: Address,
    sender: Sender,
    limits: Limits,
    prompts: Prompts,
    dimensions: usize,
}

/// Creates a model of an OpenAI-compatible server, with the key in `OPENAI_API_KEY`.
pub(super) fn openai(model: &str, options: &LoadOptions) -> Result<RemoteModel> {
    let address = Address::openai(options.base_url.as_deref())?;
    let key = Key::from_environment("OPENAI_API_KEY");
    let known = if address.is_openai() { wire::openai_dimensions(model) } else { None };
    RemoteModel::new(Wire::OpenAi, model, address, key, options.dimensions.or(known), Limits::default())
}

/// Creates a model of an Ollama server.
pub(super) fn ollama(model: &str, options: &LoadOptions) -> Result<RemoteModel> {
    let host = std::env::var("OLLAMA_HOST").ok();
    let address = Address::ollama(options.base_url.as_deref().or(host.as_deref()))?;
    RemoteModel::new(Wire::Ollama, model, address, None, options.dimensions, Limits::default())
}

impl RemoteModel {
    /// Requests one vector from the server if the dimensions are not known.
    fn new(
        wire: Wire,
        model: &str,
        address: Address,
        key: Option<Key>,
        dimensions: Option<usize>,
        limits: Limits,
    ) -> Result<Self> {
        if address.is_openai() && key.is_none() {
            return Err(Error::new(ErrorKind::Model, format!("there is no key for {address}"))
                .with_remedy("set OPENAI_API_KEY, or name another server with --base-url"));
        }
        if key.is_some() && address.is_open_to_listeners() {
            return Err(Error::new(ErrorKind::Model, format!("the key would go to {address} unencrypted"))
                .with_remedy("use an https address; if the server needs no key, unset OPENAI_API_KEY"));
        }
        let prompts = Prompts::of(model);
        let sender = Sender::new(&address, wire.path(), key, &limits);
        let id = format!("{}:{model}@{}{}", wire.name(), address.identity(), prompts.id_suffix());
        let model = model.to_owned();
        let mut remote =
            Self { id, model, wire, address, sender, limits, prompts, dimensions: dimensions.unwrap_or(0) };
        if dimensions.is_none() {
            let probe = remote.ask(&["dimensions".to_owned()])?;
            remote.dimensions = probe[0].len();
        }
        Ok(remote)
    }

    /// Sends one request. Returns the vectors of the server, unchanged, in the order of `texts`.
    fn ask(&self, texts: &[String]) -> Result<Vec<Vec<f32>>> {
        let answer = self.sender.post(&self.wire.request(&self.model, texts)).map_err(|failure| self.error(failure))?;
        self.wire.vectors(&answer, texts.len()).map_err(|what| self.error(Failure::Answer(what)))
    }

    fn error(&self, failure: Failure) -> Error {
        let (address, model) = (&self.address, &self.model);
        let (what, remedy) = match failure {
            Failure::Refused => (
                format!("nothing answers at {address}"),
                "is the server running? `--base-url` sets another address".to_owned(),
            ),
            Failure::NoHost => (format!("{address} cannot be found"), "check the address and the network".to_owned()),
            Failure::TimedOut => {
                (format!("{address} did not answer in time"), "try again later, or another server".to_owned())
            }
            Failure::Status { code: 401 | 403, message } => {
                (format!("{address} refused the key: {message}"), self.wire.key_remedy().to_owned())
            }
            Failure::Status { code: 404, message } => {
                (format!("{address} has no model `{model}` there: {message}"), self.wire.model_remedy(model))
            }
            Failure::Status { code: code @ 300..=399, .. } => {
                (format!("{address} answered with status {code}"), "use the address that it redirects to".to_owned())
            }
            Failure::Status { code: 429, message } => (
                format!("{address} limits the rate of requests: {message}"),
                "wait, or check the rate limits of your account; finished embeddings are kept".to_owned(),
            ),
            Failure::Status { code, message } => {
                (format!("{address} answered with status {code}: {message}"), "try again later".to_owned())
            }
            Failure::Connection(what) => {
                (format!("the connection to {address} failed: {what}"), "try again later".to_owned())
            }
            Failure::Answer(what) => (
                format!("{address} sent an invalid response: {what}"),
                format!("is it a server with the {} API?", self.wire.name()),
            ),
        };
        Error::new(ErrorKind::Model, what).with_remedy(remedy)
    }

    /// Splits the texts into requests.
    fn batches<'t>(&self, texts: &'t [String]) -> impl Iterator<Item = &'t [String]> + use<'t> {
        let (most_texts, most_bytes) = (self.limits.batch_texts, self.limits.batch_bytes);
        let mut rest = texts;
        std::iter::from_fn(move || {
            let mut bytes = 0;
            let fits = |text: &&String| {
                bytes += text.len();
                bytes <= most_bytes
            };
            let count = rest.iter().take(most_texts).take_while(fits).count().max(1).min(rest.len());
            let (batch, after) = rest.split_at(count);
            rest = after;
            (!batch.is_empty()).then_some(batch)
        })
    }
}

impl TokenCount for RemoteModel {
    /// An upper estimate, because the server does not expose its tokenizer.
    fn count(&self, text: &str) -> usize {
        token_estimate::tokens(text)
    }
}

impl Embedder for RemoteModel {
    /// Kind, model and server, because two servers may have different models of the same name.
    fn id(&self) -> &str {
        &self.id
    }

    fn dimensions(&self) -> usize {
        self.dimensions
    }

    fn max_tokens(&self) -> usize {
        MAX_TOKENS - token_estimate::tokens(self.prompts.before(Role::Passage))
    }

    /// Blank texts get zeros and are not sent, because servers reject them.
    fn embed(&self, texts: &[&str], role: Role) -> Result<Vec<Vec<f32>>> {
        let is_sent = |text: &&&str| !text.trim().is_empty();
        let sent: Vec<String> = texts.iter().filter(is_sent).map(|text| self.prompts.apply(role, text)).collect();
        let mut answers = Vec::with_capacity(sent.len());
        for batch in self.batches(&sent) {
            for vector in self.ask(batch)? {
                answers.push(to_unit(vector, self.dimensions)?);
            }
        }
        let mut answers = answers.into_iter();
        let zeros = || vec![0.0; self.dimensions];
        Ok(texts
            .iter()
            .map(|text| if is_sent(&text) { answers.next().unwrap_or_else(zeros) } else { zeros() })
            .collect())
    }

    fn is_remote(&self) -> bool {
        !self.address.is_loopback() || self.wire.passes_on(&self.model)
    }

    fn batch_size(&self) -> usize {
        self.limits.batch_texts
    }
}
