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
    /// Sent with every request, after those of the wire.
    pub headers: Vec<(String, String)>,
    /// Whether replies are streamed.
    pub streaming: Streaming,
    /// Whether streamed text is incremental or cumulative.
    pub text_deltas: TextDeltas,
    /// What goes back of the reasoning that came over Chat Completions.
    pub return_reasoning: ReturnReasoning,
}

setters!(Provider {
    base_url: String,
    key: Option<String>,
    headers: Vec<(String, String)>,
    streaming: Streaming,
    text_deltas: TextDeltas,
    return_reasoning: ReturnReasoning,
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

/// A format of requests and replies. A new one is a file beside `anthropic.rs` and its arms in `hosted/mod.rs`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wire {
    /// Chat Completions as OpenAI has it, with strict schemas.
    OpenAiChat,
    /// Chat Completions as everybody else has it: OpenRouter, Ollama, LM Studio, llama.cpp, vLLM, Groq, Mistral …
    Chat,
    /// OpenAI's Responses, nothing stored, with strict schemas.
    OpenAiResponses,
    /// Anthropic's Messages.
    Anthropic,
    /// Gemini's generateContent.
    Gemini,
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
            headers: Vec::new(),
            streaming: Streaming::Yes,
            text_deltas: TextDeltas::Incremental,
            return_reasoning: ReturnReasoning::AsReceived,
        }
    }

    /// OpenAI, by its Responses.
    pub fn openai(key: impl Into<String>) -> Self {
        Self::new("openai", Wire::OpenAiResponses, "https://api.openai.com/v1", Some(key.into()))
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
        provider.return_reasoning(ReturnReasoning::Details)
    }

    /// DeepSeek.
    pub fn deepseek(key: impl Into<String>) -> Self {
        Self::new("deepseek", Wire::Chat, "https://api.deepseek.com", Some(key.into()))
    }

    /// Moonshot, whose models are called Kimi.
    pub fn moonshot(key: impl Into<String>) -> Self {
        Self::new("moonshot", Wire::Chat, "https://api.moonshot.ai/v1", Some(key.into()))
    }

    /// Z.ai, whose models are called GLM.
    pub fn z_ai(key: impl Into<String>) -> Self {
        Self::new("z.ai", Wire::Chat, "https://api.z.ai/api/paas/v4", Some(key.into()))
    }

    /// Ollama on this machine.
    pub fn ollama() -> Self {
        Self::new("ollama", Wire::Chat, "http://127.0.0.1:11434/v1", None)
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
