//! Decodes a response body into deltas: server-sent events or lines as they arrive, or one JSON object.

use futures_util::{Stream, StreamExt, stream};
use serde_json::Value;

use crate::error::{Error, ErrorKind, Result};
use crate::model::Delta;

use super::deltas::Deltas;
use super::lines::Lines;
use super::sse::{MAX_BYTES, SseParser};
use super::{ByteStream, Decode};

pub(super) struct BodyStream {
    /// `None` after the end.
    body: Option<ByteStream>,
    form: BodyFormat,
    decoder: Box<dyn Decode>,
    deltas: Deltas,
    /// An error that is returned after the deltas before it.
    failure: Option<Error>,
}

/// The format of a body.
pub(super) enum BodyFormat {
    Events(SseParser),
    /// One JSON object on each line.
    Lines(Lines),
    /// The part of one JSON object that has arrived. It yields nothing before its end.
    Whole(Vec<u8>),
    /// The content type does not tell the format, so the first byte decides.
    Unknown,
}

impl BodyFormat {
    fn of_first(bytes: &[u8]) -> Self {
        match bytes.trim_ascii_start().first() {
            None => Self::Unknown,
            Some(_) if Self::may_be_events(bytes.trim_ascii_start()) => Self::Events(SseParser::default()),
            // A body that is not JSON either is reported as such, and not as a stream that broke off.
            Some(_) => Self::Whole(Vec::new()),
        }
    }

    fn may_be_events(bytes: &[u8]) -> bool {
        let fields = [":", "data:", "event:", "id:", "retry:"].map(str::as_bytes);
        fields.iter().any(|field| bytes.starts_with(field) || field.starts_with(bytes))
    }
}

impl BodyStream {
    pub(super) fn new(body: ByteStream, form: BodyFormat, decoder: Box<dyn Decode>, deltas: Deltas) -> Self {
        Self { body: Some(body), form, decoder, deltas, failure: None }
    }

    pub(super) fn deltas(self) -> impl Stream<Item = Result<Delta>> + Send {
        stream::unfold(self, |mut reading| async move { Some((reading.next().await?, reading)) })
    }

    /// Returns the next delta; `None` at the end. Bytes that complete no delta yield progress, which shows that the
    /// model is still sending.
    async fn next(&mut self) -> Option<Result<Delta>> {
        if let Some(delta) = self.deltas.ready.pop_front() {
            return Some(Ok(delta));
        }
        if let Some(failure) = self.failure.take() {
            return Some(Err(failure));
        }
        let read = match self.body.as_mut()?.next().await {
            Some(Ok(bytes)) => self.read(&bytes),
            Some(Err(error)) => Err(error),
            None => {
                self.body = None;
                self.end()
            }
        };
        // After the end of the reply no more data is read, so that a later failure cannot break it.
        if read.is_err() || self.deltas.is_over() {
            self.body = None;
        }
        if let Err(error) = read {
            let Some(delta) = self.deltas.ready.pop_front() else { return Some(Err(error)) };
            self.failure = Some(error);
            return Some(Ok(delta));
        }
        self.deltas.ready.pop_front().or(self.body.as_ref().map(|_| Delta::Progress)).map(Ok)
    }

    fn read(&mut self, bytes: &[u8]) -> Result<()> {
        if let BodyFormat::Unknown = self.form {
            self.form = BodyFormat::of_first(bytes);
        }
        match &mut self.form {
            BodyFormat::Unknown => {}
            BodyFormat::Whole(all) if all.len() + bytes.len() > MAX_BYTES => {
                return Err(Error::new(ErrorKind::BadResponse, "the body has no end"));
            }
            BodyFormat::Whole(all) => all.extend_from_slice(bytes),
            BodyFormat::Lines(lines) => {
                lines.push(bytes);
                while !self.deltas.is_over() {
                    let Some(line) = lines.next()?.map(str::trim) else { break };
                    if !line.is_empty() {
                        self.deltas.begin_event();
                        self.decoder.event(&read_json(line.as_bytes(), "a line")?, &mut self.deltas)?;
                    }
                }
                if lines.pending() > MAX_BYTES && !self.deltas.is_over() {
                    return Err(Error::new(ErrorKind::BadResponse, "a line of the stream has no end"));
                }
            }
            BodyFormat::Events(events) => {
                events.push(bytes);
                while !self.deltas.is_over() {
                    let Some(data) = events.next()? else { break };
                    self.deltas.begin_event();
                    match data.trim() {
                        "[DONE]" => self.decoder.done(&mut self.deltas),
                        data => self.decoder.event(&read_json(data.as_bytes(), "an event")?, &mut self.deltas)?,
                    }
                }
            }
        }
        Ok(())
    }

    /// Handles the end of the body.
    fn end(&mut self) -> Result<()> {
        if let BodyFormat::Whole(bytes) = &self.form {
            return self.decoder.whole(&read_json(bytes, "the body")?, &mut self.deltas);
        }
        // Some servers omit the empty line after their last event. An event that cannot be read was cut off.
        self.read(b"\n\n").map_err(|error| match error.kind() {
            ErrorKind::BadResponse => {
                Error::new(ErrorKind::CutStream, "the stream ended inside an event").with_source(error)
            }
            _ => error,
        })?;
        if !self.deltas.is_over() {
            self.decoder.end(&mut self.deltas);
        }
        Ok(())
    }
}

fn read_json(bytes: &[u8], what: &str) -> Result<Value> {
    serde_json::from_slice(bytes).map_err(|error| {
        Error::new(ErrorKind::BadResponse, format!("{what} of the reply is not valid JSON")).with_source(error)
    })
}
