//! A model over a server of your own, which accepts messages as OpenAI does:
//! `cargo run -p examples --example a_model_of_your_own -- http://127.0.0.1:8000/reply "What is 2 + 3?"`.

use agent_loop::{
    Agent, BoxFuture, Delta, EndReason, Error, ErrorKind, Http, HttpRequest, Json, Model, ReplyStream, Request,
    ToolError, Transport, tool,
};
use futures_util::{StreamExt, TryStreamExt, stream};
use serde_json::{Value, json};

/// A server of my own: it accepts messages and tools as OpenAI does, and replies with one JSON object.
struct MyServer {
    http: Http,
    url: String,
}

impl MyServer {
    async fn post(&self, body: Value) -> Result<Value, Error> {
        let headers = vec![("content-type".to_owned(), "application/json".to_owned())];
        let request = HttpRequest { url: self.url.clone(), headers, body: body.to_string().into_bytes() };
        let reply = self.http.post(request).await?;
        if reply.status != 200 {
            // The agent retries errors of a kind that may be temporary.
            let kind = if reply.status >= 500 { ErrorKind::Unavailable } else { ErrorKind::BadRequest };
            return Err(Error::new(kind, "my server failed").with_status(reply.status));
        }
        let bytes: Vec<Vec<u8>> = reply.body.try_collect().await?;
        serde_json::from_slice(&bytes.concat())
            .map_err(|error| Error::new(ErrorKind::BadResponse, "my server sent invalid JSON").with_source(error))
    }
}

impl Model for MyServer {
    fn name(&self) -> &str {
        "my-server"
    }

    fn reply(&self, request: Request) -> BoxFuture<'_, Result<ReplyStream<'_>, Error>> {
        Box::pin(async move {
            let body = json!({"messages": request.to_openai_messages(), "tools": request.to_openai_tools()});
            let message = self.post(body).await?;
            let mut deltas = Vec::new();
            if let Some(text) = message["content"].as_str().filter(|text| !text.is_empty()) {
                deltas.push(Delta::Text { text: text.into() });
            }
            for (index, call) in message["tool_calls"].as_array().into_iter().flatten().enumerate() {
                let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
                let (name, arguments) = (text(&call["function"]["name"]), text(&call["function"]["arguments"]));
                deltas.push(Delta::CallStart { index, id: text(&call["id"]), name });
                deltas.push(Delta::CallArguments { index, text: arguments });
                // A call without its end counts as cut off and does not run.
                deltas.push(Delta::CallEnd { index, opaque: None });
            }
            deltas.push(Delta::End(EndReason::Complete));
            Ok(stream::iter(deltas.into_iter().map(Ok)).boxed())
        })
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [url, question] = arguments.as_slice() else {
        println!("a_model_of_your_own URL QUESTION");
        return Ok(());
    };
    let add = tool! {
        /// Adds two numbers.
        read async fn add(a: i64, b: i64) -> Result<Json<i64>, ToolError> { Ok(Json(a + b)) }
    };
    let model = MyServer { http: Http::new()?, url: url.clone() };
    println!("{}", Agent::new(model, vec![add])?.ask(question.as_str()).await?.text);
    Ok(())
}
