//! A body on its way to deltas: events as they come, or one JSON object; every byte of either is a sign of life.

use futures_util::{Stream, StreamExt, stream};
use serde_json::Value;

use crate::error::{Error, ErrorKind, Result};
use crate::model::Delta;

use super::lines::{Events, MOST};
use super::restored::Restored;
use super::{ByteStream, Decode, TextPieces};

pub(super) struct Reading {
    /// `None` behind its end.
    body: Option<ByteStream>,
    form: Form,
    decoder: Box<dyn Decode>,
    text_pieces: TextPieces,
    restored: Restored,
}

/// What a body is.
pub(super) enum Form {
    Events(Events),
    /// One JSON object, as far as it has come. It says nothing before its end.
    Whole(Vec<u8>),
    /// Its type does not tell; its first byte will.
    Unknown,
}

impl Form {
    pub(super) fn events() -> Self {
        Self::Events(Events::default())
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

impl Reading {
    pub(super) fn new(
        body: ByteStream,
        form: Form,
        decoder: Box<dyn Decode>,
        text_pieces: TextPieces,
        restored: Restored,
    ) -> Self {
        Self { body: Some(body), form, decoder, text_pieces, restored }
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

    /// The next deltas; `None` at the end. Bytes that complete none of them are progress: whoever waits is told that
    /// the model is not silent.
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
        if let Form::Unknown = self.form {
            self.form = Form::of_first(bytes);
        }
        let mut complete = Vec::new();
        let fault = match &mut self.form {
            Form::Events(events) => events.push(bytes, &mut complete).err(),
            Form::Whole(all) if all.len() + bytes.len() > MOST => {
                Some(Error::new(ErrorKind::BadResponse, "the body has no end"))
            }
            Form::Whole(all) => {
                all.extend_from_slice(bytes);
                None
            }
            Form::Unknown => None,
        };
        let mut deltas = Vec::new();
        for (name, data) in complete {
            let mut told = match data.trim() {
                "[DONE]" => self.decoder.done(),
                _ => self.decoder.event(&name, &data)?,
            };
            if self.text_pieces == TextPieces::SoFar {
                tell_so_far(&mut told);
            }
            deltas.extend(self.restored.apply(told));
            if is_over(&deltas) {
                return Ok(deltas);
            }
        }
        fault.map_or(Ok(deltas), Err)
    }

    /// The body is over.
    fn end(&mut self) -> Result<Vec<Delta>> {
        if let Form::Whole(bytes) = &self.form {
            let body: Value = serde_json::from_slice(bytes)
                .map_err(|error| Error::new(ErrorKind::BadResponse, "the body is no JSON").because(error))?;
            let deltas = self.decoder.whole(&body)?;
            return Ok(self.restored.apply(deltas));
        }
        // Some servers do not end their last event with the empty line it should have. One that cannot be read was cut.
        let mut deltas = self.take(b"\n\n").map_err(|error| match error.kind() {
            ErrorKind::BadResponse => {
                Error::new(ErrorKind::CutStream, "the stream ended inside an event").because(error)
            }
            _ => error,
        })?;
        if !is_over(&deltas) {
            let end = self.decoder.end();
            deltas.extend(self.restored.apply(end));
        }
        Ok(deltas)
    }
}

fn is_over(deltas: &[Delta]) -> bool {
    matches!(deltas.last(), Some(Delta::End(_)))
}

/// The texts of one event are the whole text of the reply so far.
fn tell_so_far(deltas: &mut [Delta]) {
    let mut begin = 0;
    for delta in deltas {
        if let Delta::Text { text } = delta {
            let text = std::mem::take(text);
            begin += text.len();
            *delta = Delta::TextSoFar { begin: begin - text.len(), text };
        }
    }
}
