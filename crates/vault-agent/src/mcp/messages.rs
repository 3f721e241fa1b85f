//! Reads messages, and answers the invalid ones. The library drops invalid messages, and its client would wait forever.

use std::sync::Arc;

use rmcp::RoleServer;
use rmcp::model::{ClientJsonRpcMessage, ErrorCode};
use rmcp::service::{RxJsonRpcMessage, TxJsonRpcMessage};
use rmcp::transport::Transport;
use serde::Serialize;
use serde_json::{Value, json};
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt, BufReader};
use tokio::sync::{Mutex, mpsc};

use crate::message_lines::{Head, Line, is_json, next_line};

/// The maximum bytes of a message on standard input.
const LONGEST_LINE: u64 = 16 << 20;

/// A message that cannot be parsed.
#[derive(Debug)]
pub(super) struct InvalidMessage {
    /// The id of the response that the sender waits for, if it waits.
    awaited: Option<Value>,
    code: ErrorCode,
    message: String,
}

impl InvalidMessage {
    fn of(line: &[u8], error: &serde_json::Error) -> Self {
        if !is_json(line) {
            let message = format!("this is not JSON: {error}");
            return Self { awaited: Some(Value::Null), code: ErrorCode::PARSE_ERROR, message };
        }
        let head = Head::of(line);
        let message = head.too_deep().unwrap_or_else(|| format!("this is not a message of JSON-RPC 2.0: {error}"));
        Self { awaited: head.awaited(), code: ErrorCode::INVALID_REQUEST, message }
    }

    /// The error for a message above the maximum length.
    pub fn too_long(head: &Head, longest: u64) -> Self {
        let message = format!("a message is longer than {} MiB", longest >> 20);
        Self { awaited: head.awaited(), code: ErrorCode::INVALID_REQUEST, message }
    }

    /// The error response.
    pub fn answer(&self) -> Value {
        json!({ "jsonrpc": "2.0", "id": self.awaited, "error": { "code": self.code, "message": self.message } })
    }
}

/// Parses a message.
///
/// # Errors
/// The error response, if the sender waits for one.
pub(super) fn read(line: &[u8]) -> Result<ClientJsonRpcMessage, InvalidMessage> {
    let line = line.strip_prefix(b"\xef\xbb\xbf").unwrap_or(line);
    serde_json::from_slice(line).map_err(|error| InvalidMessage::of(line, &error))
}

/// A client that writes and reads lines.
pub(super) struct Lines<W> {
    messages: mpsc::Receiver<ClientJsonRpcMessage>,
    output: Arc<Mutex<W>>,
}

impl<W: AsyncWrite + Send + Unpin + 'static> Lines<W> {
    pub fn new(input: impl AsyncRead + Send + Unpin + 'static, output: W) -> Self {
        let output = Arc::new(Mutex::new(output));
        // The library may drop a read that has started, so a separate task reads. It is one message ahead.
        let (sender, messages) = mpsc::channel(1);
        tokio::spawn(read_all(input, Arc::clone(&output), sender));
        Self { messages, output }
    }
}

/// Reads until the input ends or the client disconnects.
async fn read_all(
    input: impl AsyncRead + Unpin,
    output: Arc<Mutex<impl AsyncWrite + Unpin>>,
    messages: mpsc::Sender<ClientJsonRpcMessage>,
) {
    let mut input = BufReader::new(input);
    while let Ok(Some(line)) = next_line(&mut input, LONGEST_LINE).await {
        let message = match line {
            Line::Whole(line) if line.trim_ascii().is_empty() => continue,
            Line::Whole(line) => read(&line),
            Line::TooLong(head) => Err(InvalidMessage::too_long(&head, LONGEST_LINE)),
        };
        let is_taken = match message {
            Ok(message) => messages.send(message).await.is_ok(),
            Err(unread) if unread.awaited.is_none() => true,
            Err(unread) => write(&output, &unread.answer()).await.is_ok(),
        };
        if !is_taken {
            return;
        }
    }
}

async fn write(output: &Mutex<impl AsyncWrite + Unpin>, message: &impl Serialize) -> std::io::Result<()> {
    let mut line = serde_json::to_vec(message)?;
    line.push(b'\n');
    let mut output = output.lock().await;
    output.write_all(&line).await?;
    output.flush().await
}

impl<W: AsyncWrite + Send + Unpin + 'static> Transport<RoleServer> for Lines<W> {
    type Error = std::io::Error;

    fn send(
        &mut self,
        message: TxJsonRpcMessage<RoleServer>,
    ) -> impl Future<Output = Result<(), Self::Error>> + Send + 'static {
        let output = Arc::clone(&self.output);
        async move { write(&output, &message).await }
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleServer>> {
        self.messages.recv().await
    }

    async fn close(&mut self) -> Result<(), Self::Error> {
        self.messages.close();
        Ok(())
    }
}
