//! Lists the models of a provider, as the provider reports them.

use std::time::Duration;

use agent_loop::{Failure, Http, HttpReply, Provider, Wire};
use futures_util::StreamExt;
use serde_json::Value;
use vault_tools::{Error, ErrorKind, Result};

use crate::known_providers::{Listing, ProviderChoice, host_of};

/// The time limit for each page of the list.
const WITHIN: Duration = Duration::from_secs(20);

/// The maximum bytes of a page.
const MOST_BYTES: usize = 16 << 20;

/// The maximum number of pages. A provider with more is assumed to repeat itself.
const MOST_PAGES: usize = 20;

/// The maximum characters shown of a provider's error message.
const LONGEST_MESSAGE: usize = 300;

/// A model in a provider's list.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct ListedModel {
    pub name: String,
    /// In tokens, if the provider reports it.
    pub context_length: Option<u64>,
    /// Whether the model supports tools, if the provider reports it.
    pub takes_tools: Option<bool>,
}

/// Returns the models of a provider, by name.
///
/// # Errors
/// A provider that cannot be reached, refuses the key or sends an invalid response.
pub(crate) async fn list(choice: &ProviderChoice, provider: &Provider, http: &Http) -> Result<Vec<ListedModel>> {
    let Some(listing) = choice.listing() else { return Ok(Vec::new()) };
    let failed = |error: Error| error.at(choice.name());
    let mut models = Vec::new();
    let mut page = Some(first_page(listing, &provider.base_url));
    for _ in 0..MOST_PAGES {
        let Some(url) = page else { break };
        let asked = tokio::time::timeout(WITHIN, fetch(http, provider, &url)).await;
        let answer = asked.unwrap_or_else(|_| {
            let message = format!("it did not answer within {} seconds", WITHIN.as_secs());
            Err(Error::new(ErrorKind::TimedOut, message).with_remedy("try again later"))
        });
        let answer = answer.map_err(failed)?;
        models.extend(read(listing, &answer).ok_or_else(|| failed(no_list(&provider.base_url)))?);
        page = next_page(listing, &provider.base_url, &answer);
    }
    models.sort_by(|a, b| a.name.cmp(&b.name));
    models.dedup_by(|a, b| a.name == b.name);
    Ok(models)
}

fn first_page(listing: Listing, base_url: &str) -> String {
    match listing {
        Listing::OpenAi => format!("{base_url}/models"),
        Listing::Anthropic => format!("{base_url}/models?limit=1000"),
        Listing::Gemini => format!("{base_url}/models?pageSize=1000"),
        Listing::Ollama => format!("{base_url}/api/tags"),
    }
}

fn next_page(listing: Listing, base_url: &str, answer: &Value) -> Option<String> {
    let text = |value: &Value| value.as_str().filter(|text| !text.is_empty()).map(vault_search::url_text);
    match listing {
        Listing::Anthropic if answer["has_more"] == true => {
            Some(format!("{base_url}/models?limit=1000&after_id={}", text(&answer["last_id"])?))
        }
        Listing::Gemini => {
            Some(format!("{base_url}/models?pageSize=1000&pageToken={}", text(&answer["nextPageToken"])?))
        }
        _ => None,
    }
}

/// Returns the models on a page, or `None` if it is not a list.
fn read(listing: Listing, answer: &Value) -> Option<Vec<ListedModel>> {
    let entries = match listing {
        // Some servers leave out the object around the list.
        Listing::OpenAi | Listing::Anthropic => answer.get("data").unwrap_or(answer),
        Listing::Gemini | Listing::Ollama => answer.get("models")?,
    };
    let chats = |entry: &&Value| {
        let methods = entry["supportedGenerationMethods"].as_array();
        methods.is_none_or(|methods| methods.iter().any(|method| method == "generateContent"))
    };
    let listed = entries.as_array()?.iter().filter(chats).filter_map(|entry| {
        let name = entry["id"].as_str().or(entry["name"].as_str())?;
        let name = name.strip_prefix("models/").filter(|_| listing == Listing::Gemini).unwrap_or(name);
        // The field's names at OpenRouter and LM Studio, vLLM, Groq, Anthropic, Gemini and llama.cpp.
        let fields = ["context_length", "max_model_len", "context_window", "max_input_tokens", "inputTokenLimit"];
        let stated = fields.iter().find_map(|field| entry[field].as_u64()).or(entry["meta"]["n_ctx"].as_u64());
        // The field's names at OpenRouter and Ollama.
        let lists = entry["supported_parameters"].as_array().or(entry["capabilities"].as_array());
        let takes_tools = lists.map(|list| list.iter().any(|can| can == "tools"));
        Some(ListedModel { name: name.to_owned(), context_length: stated, takes_tools })
    });
    Some(listed.collect())
}

async fn fetch(http: &Http, provider: &Provider, url: &str) -> Result<Value> {
    let mut headers = vec![("accept".to_owned(), "application/json".to_owned())];
    if let Some(key) = &provider.key {
        headers.push(match provider.wire {
            _ if provider.key_header.is_some() => (provider.key_header.clone().unwrap_or_default(), key.clone()),
            Wire::Anthropic => ("x-api-key".to_owned(), key.clone()),
            Wire::Gemini => ("x-goog-api-key".to_owned(), key.clone()),
            _ => ("authorization".to_owned(), format!("Bearer {key}")),
        });
    }
    if provider.wire == Wire::Anthropic {
        headers.push(("anthropic-version".to_owned(), "2023-06-01".to_owned()));
    }
    headers.extend(provider.headers.iter().cloned());
    let key = provider.key.as_deref().unwrap_or_default();
    let failed = |error: agent_loop::Error| Error::new(ErrorKind::Io, Failure::from(&error).message);
    let reply = http.get(url, headers).await.map_err(failed)?;
    let status = reply.status;
    let bytes = body(reply).await.map_err(failed)?;
    if !(200..300).contains(&status) {
        return Err(refused(status, &bytes, key, &provider.base_url));
    }
    serde_json::from_slice(&bytes).map_err(|_| no_list(&provider.base_url))
}

/// Reads the body of a list.
///
/// # Errors
/// A body that breaks off or is too long.
pub(crate) async fn body(mut reply: HttpReply) -> agent_loop::error::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    while let Some(part) = reply.body.next().await {
        bytes.extend_from_slice(&part?);
        if bytes.len() > MOST_BYTES {
            let message = format!("the list has more than {MOST_BYTES} bytes");
            return Err(agent_loop::Error::new(agent_loop::ErrorKind::BadResponse, message));
        }
    }
    Ok(bytes)
}

fn refused(status: u16, body: &[u8], key: &str, base_url: &str) -> Error {
    let host = host_of(base_url).unwrap_or_default();
    let body: Value = serde_json::from_slice(body).unwrap_or_default();
    let said = body["error"]["message"].as_str().or(body["error"].as_str()).or(body["message"].as_str());
    let said = said.map(|said| if key.is_empty() { said.to_owned() } else { said.replace(key, "[key]") });
    let said = said.map(|said| format!(": {}", said.chars().take(LONGEST_MESSAGE).collect::<String>()));
    let error = Error::new(ErrorKind::Io, format!("{host} answered with status {status}{}", said.unwrap_or_default()));
    match status {
        401 | 403 => error.with_remedy("check the key: vault-agent login PROVIDER stores another one"),
        404 => error.with_remedy("check the address: it ends before /models, mostly with /v1"),
        _ => error.with_remedy("try again later"),
    }
}

fn no_list(base_url: &str) -> Error {
    let host = host_of(base_url).unwrap_or_default();
    Error::new(ErrorKind::Io, format!("the response of {host} is not a list of models"))
        .with_remedy("check the address: it ends before /models, mostly with /v1")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn each_list_is_read() {
        let read = |listing, answer: Value| read(listing, &answer).unwrap();
        let one =
            |name: &str, context_length| vec![ListedModel { name: name.to_owned(), context_length, takes_tools: None }];
        assert_eq!(read(Listing::OpenAi, json!({"data": [{"id": "a", "context_length": 8}]})), one("a", Some(8)));
        assert_eq!(read(Listing::OpenAi, json!([{"id": "a", "max_model_len": 8}])), one("a", Some(8)));
        assert_eq!(read(Listing::Anthropic, json!({"data": [{"id": "a"}, {"type": "x"}]})), one("a", None));
        assert_eq!(read(Listing::Ollama, json!({"models": [{"name": "a:7b"}]})), one("a:7b", None));
        for (fields, takes_tools) in [
            (json!({"supported_parameters": ["temperature", "tools"]}), Some(true)),
            (json!({"capabilities": ["completion"]}), Some(false)),
            (json!({"capabilities": {"tools": true}}), None),
        ] {
            let mut entry = fields;
            entry["id"] = json!("a");
            assert_eq!(read(Listing::OpenAi, json!([entry]))[0].takes_tools, takes_tools);
        }
        let gemini = json!({"models": [
            {"name": "models/a", "inputTokenLimit": 8, "supportedGenerationMethods": ["generateContent"]},
            {"name": "models/embedding", "supportedGenerationMethods": ["embedContent"]},
        ]});
        assert_eq!(read(Listing::Gemini, gemini), one("a", Some(8)));
        for other in [json!({}), json!("x"), json!({"data": 1})] {
            assert_eq!(super::read(Listing::OpenAi, &other), None, "{other}");
        }
    }
}
