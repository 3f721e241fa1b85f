//! A model that only writes text, behind the Responses and the Chat Completions API:
//! `cargo run -p examples --example responses_proxy -- [PORT]`.

use agent_loop::{BoxFuture, Delta, EndReason, Model, ReplyStream, Request, ToolSupport, error::Result};
use agent_proxy::{Proxy, ProxyOptions, UnknownModel};
use futures_util::stream;

/// Asks for the time once, then repeats the result. A real model sends the request to its backend.
struct Clock;

impl Model for Clock {
    fn name(&self) -> &str {
        "clock"
    }

    // So the proxy reads its calls from its text.
    fn tool_support(&self) -> ToolSupport {
        ToolSupport::None
    }

    fn reply(&self, request: Request) -> BoxFuture<'_, Result<ReplyStream<'_>>> {
        let last = request.messages.last().map(|message| message.text()).unwrap_or_default();
        let text = match () {
            () if last.contains("<tool_result") => format!("This is what I was told:\n{last}"),
            () if request.system.is_some_and(|system| system.contains("get_time")) => {
                "I look at the clock.\n<tool_call>{\"name\":\"get_time\",\"arguments\":{}}</tool_call>".into()
            }
            () => "I have no clock: offer me a tool named get_time.".into(),
        };
        let words: Vec<String> = text.split_inclusive(' ').map(str::to_owned).collect();
        let deltas = words.into_iter().map(|text| Delta::Text { text }).chain([Delta::End(EndReason::Complete)]);
        let deltas: ReplyStream<'_> = Box::pin(stream::iter(deltas.map(Ok).collect::<Vec<_>>()));
        Box::pin(async { Ok(deltas) })
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let port = std::env::args().nth(1).map_or(Ok(0), |port| port.parse())?;
    let listener = Proxy::listen(port).await?;
    println!("http://{}/v1", listener.local_addr()?);
    let options = ProxyOptions::default().unknown_model(UnknownModel::First);
    Proxy::new(options).model("clock", Clock).serve(listener, std::future::pending()).await?;
    Ok(())
}
