//! Provider settings as plain data, with presets.
//! A provider that `vault-agent` knows by name is also a line in its `known_providers.rs`.

use std::fmt;

use crate::error::{Error, ErrorKind, Result};

/// A name, the environment variables for the key, of which the first that is set counts, and the provider for a key. A
/// provider without variables needs no key.
type NamedProvider = (&'static str, &'static [&'static str], fn(String) -> Provider);

const NAMED: [NamedProvider; 10] = [
    ("openai", &["OPENAI_API_KEY"], |key| Provider::openai(key)),
    ("anthropic", &["ANTHROPIC_API_KEY"], |key| Provider::anthropic(key)),
    ("gemini", &["GEMINI_API_KEY", "GOOGLE_API_KEY"], |key| Provider::gemini(key)),
    ("openrouter", &["OPENROUTER_API_KEY"], |key| Provider::openrouter(key)),
    ("deepseek", &["DEEPSEEK_API_KEY"], |key| Provider::deepseek(key)),
    ("moonshot", &["MOONSHOT_API_KEY"], |key| Provider::moonshot(key)),
    ("z.ai", &["ZAI_API_KEY"], |key| Provider::z_ai(key)),
    ("ollama", &[], |_| Provider::ollama()),
    ("lm-studio", &[], |_| Provider::lm_studio()),
    ("llama.cpp", &[], |_| Provider::llama_cpp()),
];

/// The connection settings of a provider.
#[derive(Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Provider {
    /// The name in errors and events.
    pub name: String,
    /// The API format.
    pub wire: Wire,
    /// The base URL of the API, without the wire's own path: `https://api.openai.com/v1`.
    pub base_url: String,
    /// The API key, if needed. It never appears in errors or debug output.
    pub key: Option<String>,
    /// The header that contains only the key; `None` means the header of the wire.
    pub key_header: Option<String>,
    /// Added to the URL of every request after `?`, for example `api-version=preview`.
    pub query: Option<String>,
    /// Sent with every request, after the headers of the wire. They are not saved with a run, because they may contain
    /// secrets.
    pub headers: Vec<(String, String)>,
    /// Whether replies are streamed.
    pub streaming: Streaming,
    /// Whether streamed text is incremental or cumulative.
    pub text_deltas: TextDeltas,
    /// Which reasoning fields of Chat Completions are returned to the provider.
    pub return_reasoning: ReturnReasoning,
    /// Which field requests reasoning over Chat Completions.
    pub reasoning_field: ReasoningField,
}

setters!(Provider {
    base_url: String,
    key: Option<String>,
    key_header: Option<String>,
    query: Option<String>,
    headers: Vec<(String, String)>,
    streaming: Streaming,
    text_deltas: TextDeltas,
    return_reasoning: ReturnReasoning,
    reasoning_field: ReasoningField,
});

/// Whether replies are streamed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Streaming {
    /// Replies are streamed. A server that answers with one object anyway is supported: its bytes count as progress,
    /// and its content arrives at the end.
    #[default]
    Yes,
    /// Replies arrive whole, for servers that cannot stream, or not with tools. They send nothing, not even the head,
    /// before the reply is complete, so the agent's limit of silence limits the whole reply.
    No,
}

/// Whether streamed text is incremental or cumulative.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum TextDeltas {
    /// Only the new text, as all the formats specify.
    #[default]
    Incremental,
    /// The complete text of the reply so far, as some servers and gateways send it. The new part is found by its
    /// position.
    Cumulative,
}

/// Which reasoning fields of Chat Completions (`reasoning_content`, `reasoning` and `reasoning_details`) are returned
/// in later requests. They are returned only to a provider with the name of the one that sent them. The other formats
/// define this themselves.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum ReturnReasoning {
    /// Every field, unchanged. DeepSeek, Kimi and others reject a conversation with tools without it.
    #[default]
    AsReceived,
    /// Only `reasoning_details`, if it was sent, because it contains the text of the others. For OpenRouter.
    Details,
    /// No field, for servers that reject these fields.
    Never,
}

/// Which field requests reasoning over Chat Completions.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum ReasoningField {
    /// `reasoning_effort`, as in OpenAI's API.
    #[default]
    Effort,
    /// `reasoning`, an object with an effort or a budget of tokens. For OpenRouter.
    Reasoning,
    /// `thinking`, which is enabled or disabled, with the effort beside it. For DeepSeek, Moonshot and Z.ai.
    Thinking,
}

/// A format of requests and replies. A new one needs a file beside `anthropic.rs` and match arms in `hosted/mod.rs`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wire {
    /// Chat Completions as OpenAI defines it, with strict schemas.
    OpenAiChat,
    /// Chat Completions as all others implement it: OpenRouter, LM Studio, llama.cpp, vLLM, Groq, Mistral …
    Chat,
    /// OpenAI's Responses API, without storage, with strict schemas.
    OpenAiResponses,
    /// Anthropic's Messages API.
    Anthropic,
    /// Gemini's generateContent API.
    Gemini,
    /// Ollama's own `/api/chat`.
    Ollama,
}

impl Provider {
    /// Creates a provider with this base URL.
    pub fn new(name: impl Into<String>, wire: Wire, base_url: impl Into<String>, key: Option<String>) -> Self {
        let base_url = base_url.into().trim_end_matches('/').to_string();
        Self {
            name: name.into(),
            wire,
            base_url,
            key,
            key_header: None,
            query: None,
            headers: Vec::new(),
            streaming: Streaming::Yes,
            text_deltas: TextDeltas::Incremental,
            return_reasoning: ReturnReasoning::AsReceived,
            reasoning_field: ReasoningField::Effort,
        }
    }

    /// Returns a provider by its name, with the key that the environment has for it: `openai` (`OPENAI_API_KEY`),
    /// `anthropic`, `gemini` (or `GOOGLE_API_KEY`), `openrouter`, `deepseek`, `moonshot`, `z.ai` (`ZAI_API_KEY`), or
    /// without a key `ollama`, `lm-studio`, `llama.cpp`.
    ///
    /// # Errors
    /// `Authentication` if the variable is not set, `BadRequest` if the name is unknown.
    pub fn from_env(name: &str) -> Result<Self> {
        Self::named(name, |variable| std::env::var(variable).ok())
    }

    fn named(name: &str, value: impl Fn(&str) -> Option<String>) -> Result<Self> {
        let Some((_, variables, make)) = NAMED.iter().find(|(known, ..)| *known == name) else {
            let known: Vec<&str> = NAMED.iter().map(|(known, ..)| *known).collect();
            let message = format!("unknown provider {name:?}, known are {}", known.join(", "));
            return Err(Error::new(ErrorKind::BadRequest, message));
        };
        let key = variables.iter().find_map(|variable| value(variable).filter(|key| !key.is_empty()));
        if key.is_none() && !variables.is_empty() {
            let error = Error::new(ErrorKind::Authentication, "there is no API key").with_path(name);
            return Err(error.with_remedy(format!("set {}", variables.join(" or "))));
        }
        Ok(make(key.unwrap_or_default()))
    }

    /// Returns the settings for OpenAI, over its Responses API.
    pub fn openai(key: impl Into<String>) -> Self {
        Self::new("openai", Wire::OpenAiResponses, "https://api.openai.com/v1", Some(key.into()))
    }

    /// Returns the settings for OpenAI's models on Azure, over the Responses API. It takes the URL of the resource
    /// (`https://NAME.openai.azure.com`) and one of its keys. The name of a model is that of its deployment.
    pub fn azure_openai(resource: &str, key: impl Into<String>) -> Self {
        let base_url = format!("{}/openai/v1", resource.trim_end_matches('/'));
        let provider = Self::new("azure", Wire::OpenAiResponses, base_url, Some(key.into()));
        provider.key_header(Some("api-key".into()))
    }

    /// Returns the settings for one deployment on Azure with a dated version of the API, over Chat Completions.
    pub fn azure_openai_deployment(
        resource: &str,
        deployment: &str,
        api_version: &str,
        key: impl Into<String>,
    ) -> Self {
        let base_url = format!("{}/openai/deployments/{deployment}", resource.trim_end_matches('/'));
        let provider = Self::new("azure", Wire::OpenAiChat, base_url, Some(key.into()));
        provider.key_header(Some("api-key".into())).query(Some(format!("api-version={api_version}")))
    }

    /// Returns the settings for Anthropic.
    pub fn anthropic(key: impl Into<String>) -> Self {
        Self::new("anthropic", Wire::Anthropic, "https://api.anthropic.com/v1", Some(key.into()))
    }

    /// Returns the settings for Gemini.
    pub fn gemini(key: impl Into<String>) -> Self {
        let base_url = "https://generativelanguage.googleapis.com/v1beta";
        Self::new("gemini", Wire::Gemini, base_url, Some(key.into()))
    }

    /// Returns the settings for OpenRouter.
    pub fn openrouter(key: impl Into<String>) -> Self {
        let provider = Self::new("openrouter", Wire::Chat, "https://openrouter.ai/api/v1", Some(key.into()));
        provider.return_reasoning(ReturnReasoning::Details).reasoning_field(ReasoningField::Reasoning)
    }

    /// Returns the settings for DeepSeek.
    pub fn deepseek(key: impl Into<String>) -> Self {
        let provider = Self::new("deepseek", Wire::Chat, "https://api.deepseek.com", Some(key.into()));
        provider.reasoning_field(ReasoningField::Thinking)
    }

    /// Returns the settings for Moonshot, with the Kimi models.
    pub fn moonshot(key: impl Into<String>) -> Self {
        let provider = Self::new("moonshot", Wire::Chat, "https://api.moonshot.ai/v1", Some(key.into()));
        provider.reasoning_field(ReasoningField::Thinking)
    }

    /// Returns the settings for Z.ai, with the GLM models.
    pub fn z_ai(key: impl Into<String>) -> Self {
        let provider = Self::new("z.ai", Wire::Chat, "https://api.z.ai/api/paas/v4", Some(key.into()));
        provider.reasoning_field(ReasoningField::Thinking)
    }

    /// Returns the settings for Ollama on this machine. Consider setting
    /// [`ModelSettings::context_length`](crate::ModelSettings::context_length).
    pub fn ollama() -> Self {
        Self::new("ollama", Wire::Ollama, "http://127.0.0.1:11434", None)
    }

    /// Returns the settings for LM Studio on this machine.
    pub fn lm_studio() -> Self {
        Self::new("lm-studio", Wire::Chat, "http://127.0.0.1:1234/v1", None)
    }

    /// Returns the settings for the llama.cpp server on this machine.
    pub fn llama_cpp() -> Self {
        Self::new("llama.cpp", Wire::Chat, "http://127.0.0.1:8080/v1", None)
    }
}

impl fmt::Debug for Provider {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut provider = f.debug_struct("Provider");
        provider.field("name", &self.name).field("wire", &self.wire).field("base_url", &self.base_url);
        provider.finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_come_from_the_first_variable_that_is_set() {
        let value = |variable: &str| match variable {
            "GOOGLE_API_KEY" | "ZAI_API_KEY" => Some(format!("of {variable}")),
            "GEMINI_API_KEY" | "OPENAI_API_KEY" => Some(String::new()),
            _ => None,
        };
        for (name, key) in [("gemini", Some("of GOOGLE_API_KEY")), ("z.ai", Some("of ZAI_API_KEY")), ("ollama", None)] {
            let provider = Provider::named(name, value).unwrap();
            assert_eq!((provider.name.as_str(), provider.key.as_deref()), (name, key));
        }
        for (name, kind, text) in [
            ("openai", ErrorKind::Authentication, "set OPENAI_API_KEY"),
            ("anthropic", ErrorKind::Authentication, "set ANTHROPIC_API_KEY"),
            ("opnai", ErrorKind::BadRequest, "known are openai, anthropic"),
        ] {
            let error = Provider::named(name, value).unwrap_err();
            assert!(error.kind() == kind && error.to_string().contains(text), "{error}");
        }
    }

    #[test]
    fn every_name_is_the_providers_own() {
        for (name, _, make) in NAMED {
            assert_eq!(make("key".into()).name, name);
        }
    }
}
