//! The proxy over a text-only model that says what the user tells it to, for tests with clients written elsewhere. With
//! `--store` it keeps responses and conversations.
//!
//! The last message of the user that begins with a command is the script: its part before the first line `then` is the
//! first reply, the next part the reply to the results of that, and so on.
//!
//! | line | the model |
//! | --- | --- |
//! | `say TEXT` | writes it |
//! | `call NAME JSON` | calls a tool, in text |
//! | `repeat` | writes what it was told last |
//! | `recall` | writes all that was said before |
//! | `cut`, `length`, `fail` | ends its stream too early, at its limit, with an error |
//! | `wait` | says nothing more, and does not end |
//! | `refuse KIND` | is none: the request fails with this kind of error |

// A program may print.
#![allow(clippy::print_stdout)]

use agent_loop::{
    BoxFuture, Delta, EndReason, Error, ErrorKind, Model, ReplyStream, Request, ToolSupport, Usage, error::Result,
};
use agent_proxy::{Proxy, ProxyOptions, StoreLimits};
use futures_util::{StreamExt, stream};
use serde_json::json;

/// Bytes of a delta: nothing is to depend on where they fall.
const PIECE: usize = 7;
const COMMANDS: [&str; 9] = ["say ", "call ", "repeat", "recall", "cut", "length", "fail", "wait", "refuse "];

struct Parrot;

impl Model for Parrot {
    fn name(&self) -> &str {
        "parrot"
    }

    fn tool_support(&self) -> ToolSupport {
        ToolSupport::None
    }

    fn reply(&self, request: Request) -> BoxFuture<'_, Result<ReplyStream<'_>>> {
        Box::pin(async move {
            let (deltas, is_endless) = perform(&request)?;
            let deltas = stream::iter(deltas);
            Ok(if is_endless { deltas.chain(stream::pending()).boxed() } else { deltas.boxed() })
        })
    }
}

/// The deltas of a reply, and whether it goes on in silence.
fn perform(request: &Request) -> Result<(Vec<Result<Delta>>, bool)> {
    let texts: Vec<String> = request.messages.iter().map(|message| message.text()).collect();
    let is_script = |text: &String| COMMANDS.iter().any(|command| text.trim_start().starts_with(command));
    let at = texts.iter().rposition(is_script);
    let at = at.ok_or_else(|| Error::new(ErrorKind::BadRequest, "no message of the user is a script"))?;
    let results = texts[at..].iter().filter(|text| text.contains("<tool_result ")).count();
    let part = texts[at].trim().split("\nthen\n").nth(results);
    let part = part.ok_or_else(|| Error::new(ErrorKind::BadRequest, "the script has no such part"))?;
    let (mut text, mut end, mut is_endless) = (String::new(), Some(Ok(Delta::End(EndReason::Complete))), false);
    for line in part.lines() {
        let (command, rest) = line.trim().split_once(' ').unwrap_or((line.trim(), ""));
        match command {
            "say" => text.push_str(rest),
            "call" => {
                let (name, arguments) = rest.split_once(' ').unwrap_or((rest, "{}"));
                text.push_str(&format!(
                    "<tool_call>{{\"name\":{},\"arguments\":{arguments}}}</tool_call>",
                    json!(name)
                ));
            }
            // Its own calls are not made again.
            "recall" => text.push_str(&texts[..at].join("\n").replace("<tool_", "<")),
            "repeat" => text.push_str(&texts[texts.len() - 1]),
            "cut" => end = None,
            "wait" => (end, is_endless) = (None, true),
            "length" => end = Some(Ok(Delta::End(EndReason::Length))),
            "fail" => end = Some(Err(Error::new(ErrorKind::Unavailable, "it failed, as it was told to"))),
            "refuse" => {
                let kind = serde_json::from_value(json!(rest)).unwrap_or(ErrorKind::BadRequest);
                return Err(Error::new(kind, "refused, as it was told to"));
            }
            _ => return Err(Error::new(ErrorKind::BadRequest, format!("{line:?} is no line of a script"))),
        }
    }
    let mut pieces: Vec<Result<Delta>> = Vec::new();
    let mut rest = text.as_str();
    while !rest.is_empty() {
        let (piece, after) = rest.split_at(rest.ceil_char_boundary(PIECE.min(rest.len())));
        pieces.push(Ok(Delta::Text { text: piece.into() }));
        rest = after;
    }
    pieces.push(Ok(Delta::Usage(Usage::default().input(11).output(7))));
    pieces.extend(end);
    Ok((pieces, is_endless))
}

#[tokio::main]
async fn main() -> std::io::Result<()> {
    let listener = Proxy::listen(0).await?;
    println!("http://{}/v1", listener.local_addr()?);
    // Whoever started it holds its standard input; it ends with that.
    let (gone, stop) = tokio::sync::oneshot::channel::<()>();
    std::thread::spawn(move || {
        let _ = std::io::copy(&mut std::io::stdin(), &mut std::io::sink());
        drop(gone);
    });
    let store = std::env::args().any(|argument| argument == "--store").then(StoreLimits::default);
    let options = ProxyOptions::default().key(Some("a key".into())).store(store);
    let stop = async { drop(stop.await) };
    Proxy::new(options).model("parrot", Parrot).serve(listener, stop).await
}
