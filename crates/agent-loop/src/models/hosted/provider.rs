//! Provider settings as plain data, with presets.

use std::fmt;

/// How to reach a provider.
#[derive(Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Provider {
    /// What it is called in errors and events.
    pub name: String,
    /// The format it speaks.
    pub wire: Wire,
    /// Where its API begins, without the wire's own path: `https://api.openai.com/v1`.
    pub base_url: String,
    /// The API key, if needed. It appears in no error and no debug output.
    pub key: Option<String>,
    /// The header that has the key, alone; `None`: that of the wire.
    pub key_header: Option<String>,
    /// Added to the address of every request behind `?`: `api-version=preview`.
    pub query: Option<String>,
    /// Sent with every request, after those of the wire. They are not saved with a run, since they may hold secrets.
    pub headers: Vec<(String, String)>,
    /// Whether replies are streamed.
    pub streaming: Streaming,
    /// Whether streamed text is incremental or cumulative.
    pub text_deltas: TextDeltas,
    /// What goes back of the reasoning that came over Chat Completions.
    pub return_reasoning: ReturnReasoning,
    /// How reasoning is asked for over Chat Completions.
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
    /// As they are written. A server that answers with one object all the same is read too: its bytes are signs of
    /// life, and what it says comes at its end.
    #[default]
    Yes,
    /// Whole, for servers that cannot stream, or not with tools. They say nothing, not even the head, before all is
    /// written: the agent's limit of silence is then one on the reply.
    No,
}

/// Whether streamed text is incremental or cumulative.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum TextDeltas {
    /// Only the new text, as all the formats specify.
    #[default]
    Incremental,
    /// All text of the reply so far, as some servers and gateways send it; what is new is known by its position.
    Cumulative,
}

/// What goes back of the reasoning that came over Chat Completions: `reasoning_content`, `reasoning` and
/// `reasoning_details`, only ever to a provider of the name that it came from. The other formats say themselves what
/// goes back.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum ReturnReasoning {
    /// Every field, as it came. DeepSeek, Kimi and others refuse a conversation with tools without it.
    #[default]
    AsReceived,
    /// Where `reasoning_details` came, nothing else: they hold the text of the others. OpenRouter's.
    Details,
    /// Nothing, for servers that refuse these fields.
    Never,
}

/// How reasoning is asked for over Chat Completions.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum ReasoningField {
    /// `reasoning_effort`, as OpenAI has it.
    #[default]
    Effort,
    /// `reasoning`, an object that takes an effort or a budget of tokens. OpenRouter's.
    Reasoning,
    /// `thinking`, which is enabled or disabled, and the effort beside it. DeepSeek's, Moonshot's and Z.ai's.
    Thinking,
}

/// A format of requests and replies. A new one is a file beside `anthropic.rs` and its arms in `hosted/mod.rs`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wire {
    /// Chat Completions as OpenAI has it, with strict schemas.
    OpenAiChat,
    /// Chat Completions as everybody else has it: OpenRouter, LM Studio, llama.cpp, vLLM, Groq, Mistral …
    Chat,
    /// OpenAI's Responses, nothing stored, with strict schemas.
    OpenAiResponses,
    /// Anthropic's Messages.
    Anthropic,
    /// Gemini's generateContent.
    Gemini,
    /// Ollama's own `/api/chat`.
    Ollama,
}

impl Provider {
    /// A provider under an address.
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

    /// OpenAI, by its Responses.
    pub fn openai(key: impl Into<String>) -> Self {
        Self::new("openai", Wire::OpenAiResponses, "https://api.openai.com/v1", Some(key.into()))
    }

    /// OpenAI's models on Azure, by their Responses: the address of the resource (`https://NAME.openai.azure.com`), and a
    /// key of it. A model's name is that of its deployment.
    pub fn azure_openai(resource: &str, key: impl Into<String>) -> Self {
        let base_url = format!("{}/openai/v1", resource.trim_end_matches('/'));
        let provider = Self::new("azure", Wire::OpenAiResponses, base_url, Some(key.into()));
        provider.key_header(Some("api-key".into()))
    }

    /// One deployment on Azure by a dated version of the API, over Chat Completions.
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

    /// Anthropic.
    pub fn anthropic(key: impl Into<String>) -> Self {
        Self::new("anthropic", Wire::Anthropic, "https://api.anthropic.com/v1", Some(key.into()))
    }

    /// Gemini.
    pub fn gemini(key: impl Into<String>) -> Self {
        let base_url = "https://generativelanguage.googleapis.com/v1beta";
        Self::new("gemini", Wire::Gemini, base_url, Some(key.into()))
    }

    /// OpenRouter.
    pub fn openrouter(key: impl Into<String>) -> Self {
        let provider = Self::new("openrouter", Wire::Chat, "https://openrouter.ai/api/v1", Some(key.into()));
        provider.return_reasoning(ReturnReasoning::Details).reasoning_field(ReasoningField::Reasoning)
    }

    /// DeepSeek.
    pub fn deepseek(key: impl Into<String>) -> Self {
        let provider = Self::new("deepseek", Wire::Chat, "https://api.deepseek.com", Some(key.into()));
        provider.reasoning_field(ReasoningField::Thinking)
    }

    /// Moonshot, whose models are called Kimi.
    pub fn moonshot(key: impl Into<String>) -> Self {
        let provider = Self::new("moonshot", Wire::Chat, "https://api.moonshot.ai/v1", Some(key.into()));
        provider.reasoning_field(ReasoningField::Thinking)
    }

    /// Z.ai, whose models are called GLM.
    pub fn z_ai(key: impl Into<String>) -> Self {
        let provider = Self::new("z.ai", Wire::Chat, "https://api.z.ai/api/paas/v4", Some(key.into()));
        provider.reasoning_field(ReasoningField::Thinking)
    }

    /// Ollama on this machine. [`ModelSettings::context_length`](crate::ModelSettings::context_length) is worth setting.
    pub fn ollama() -> Self {
        Self::new("ollama", Wire::Ollama, "http://127.0.0.1:11434", None)
    }

    /// LM Studio on this machine.
    pub fn lm_studio() -> Self {
        Self::new("lm-studio", Wire::Chat, "http://127.0.0.1:1234/v1", None)
    }

    /// The server of llama.cpp on this machine.
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
