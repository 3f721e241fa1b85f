//! Decodes a response body into deltas: server-sent events as they arrive, or one JSON object.

use futures_util::{Stream, StreamExt, stream};
use serde_json::Value;

use crate::error::{Error, ErrorKind, Result};
use crate::model::Delta;

use super::sse::{MAX_BYTES, SseParser};
use super::tool_names::ToolNameRestorer;
use super::{ByteStream, Decode, TextDeltas};

pub(super) struct BodyStream {
    /// `None` behind its end.
    body: Option<ByteStream>,
    form: BodyFormat,
    decoder: Box<dyn Decode>,
    text_deltas: TextDeltas,
    restorer: ToolNameRestorer,
}

/// What a body is.
pub(super) enum BodyFormat {
    SseParser(SseParser),
    /// One JSON object, as far as it has come. It says nothing before its end.
    Whole(Vec<u8>),
    /// Its type does not tell; its first byte will.
    Unknown,
}

impl BodyFormat {
    pub(super) fn events() -> Self {
        Self::SseParser(SseParser::default())
    }

    pub(super) fn whole() -> Self {
        Self::Whole(Vec::new())
    }

    fn of_first(bytes: &[u8]) -> Self {
        match bytes.trim_ascii_start().first() {
            None => Self::Unknown,
            Some(b'{' | b'[') => Self::whole(),
            Some(_) => Self::events(),
        }
    }
}

impl BodyStream {
    pub(super) fn new(
        body: ByteStream,
        form: BodyFormat,
        decoder: Box<dyn Decode>,
        text_deltas: TextDeltas,
        restorer: ToolNameRestorer,
    ) -> Self {
        Self { body: Some(body), form, decoder, text_deltas, restorer }
    }

    pub(super) fn deltas(self) -> impl Stream<Item = Result<Delta>> + Send {
        let batches = stream::unfold(self, |mut reading| async move { Some((reading.next().await?, reading)) });
        batches.flat_map(|batch: Result<Vec<Delta>>| {
            let items: Vec<Result<Delta>> = match batch {
                Ok(deltas) => deltas.into_iter().map(Ok).collect(),
                Err(error) => vec![Err(error)],
            };
            stream::iter(items)
        })
    }

    /// The next deltas; `None` at the end. Bytes that complete none of them yield progress,
    /// which shows that the model is not silent.
    async fn next(&mut self) -> Option<Result<Vec<Delta>>> {
        let deltas = match self.body.as_mut()?.next().await {
            Some(Ok(bytes)) => self.take(&bytes),
            Some(Err(error)) => Err(error),
            None => {
                self.body = None;
                self.end()
            }
        };
        let Ok(mut deltas) = deltas else {
            self.body = None;
            return Some(deltas);
        };
        // Behind the end of the reply nothing is waited for, and nothing can break it any more.
        if is_over(&deltas) {
            self.body = None;
        } else if deltas.is_empty() && self.body.is_some() {
            deltas.push(Delta::Progress);
        }
        Some(Ok(deltas))
    }

    fn take(&mut self, bytes: &[u8]) -> Result<Vec<Delta>> {
        if let BodyFormat::Unknown = self.form {
            self.form = BodyFormat::of_first(bytes);
        }
        let mut complete = Vec::new();
        let fault = match &mut self.form {
            BodyFormat::SseParser(events) => events.push(bytes, &mut complete).err(),
            BodyFormat::Whole(all) if all.len() + bytes.len() > MAX_BYTES => {
                Some(Error::new(ErrorKind::BadResponse, "the body has no end"))
            }
            BodyFormat::Whole(all) => {
                all.extend_from_slice(bytes);
                None
            }
            BodyFormat::Unknown => None,
        };
        let mut deltas = Vec::new();
        for (name, data) in complete {
            let mut decoded = match data.trim() {
                "[DONE]" => self.decoder.done(),
                _ => self.decoder.event(&name, &data)?,
            };
            if self.text_deltas == TextDeltas::Cumulative {
                make_cumulative(&mut decoded);
            }
            deltas.extend(self.restorer.apply(decoded));
            if is_over(&deltas) {
                return Ok(deltas);
            }
        }
        fault.map_or(Ok(deltas), Err)
    }

    /// The body is over.
    fn end(&mut self) -> Result<Vec<Delta>> {
        if let BodyFormat::Whole(bytes) = &self.form {
            let body: Value = serde_json::from_slice(bytes)
                .map_err(|error| Error::new(ErrorKind::BadResponse, "the body is not valid JSON").with_source(error))?;
            let deltas = self.decoder.whole(&body)?;
            return Ok(self.restorer.apply(deltas));
        }
        // Some servers do not end their last event with the empty line it should have. One that cannot be read was cut.
        let mut deltas = self.take(b"\n\n").map_err(|error| match error.kind() {
            ErrorKind::BadResponse => {
                Error::new(ErrorKind::CutStream, "the stream ended inside an event").with_source(error)
            }
            _ => error,
        })?;
        if !is_over(&deltas) {
            let end = self.decoder.end();
            deltas.extend(self.restorer.apply(end));
        }
        Ok(deltas)
    }
}

fn is_over(deltas: &[Delta]) -> bool {
    matches!(deltas.last(), Some(Delta::End(_)))
}

/// Turns the text deltas of one event into cumulative ones.
fn make_cumulative(deltas: &mut [Delta]) {
    let mut begin = 0;
    for delta in deltas {
        if let Delta::Text { text } = delta {
            let text = std::mem::take(text);
            begin += text.len();
            *delta = Delta::CumulativeText { begin: begin - text.len(), text };
        }
    }
}
