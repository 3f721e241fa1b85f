//! Settings of a request that not every provider has. Each wire maps those that it has; `docs/wires.md` has the table.

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Settings for a model's reply. Unset ones have the provider's default.
///
/// A setting that a provider does not have is rejected with `BadRequest` if it would change the reply, and left out if
/// it would only change the cost.
///
/// ```
/// use agent_loop::{ModelSettings, ReasoningEffort, RunOptions};
///
/// let settings = ModelSettings::default().reasoning_effort(Some(ReasoningEffort::Low)).stop(vec!["END".into()]);
/// let options = RunOptions::default().settings(settings);
/// # assert!(options.settings.seed.is_none());
/// ```
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct ModelSettings {
    /// How much a model reasons before it answers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reasoning_effort: Option<ReasoningEffort>,
    /// The most reasoning tokens, for models that take a number instead of an effort: Claude up to 4.6, Gemini 2.5,
    /// models of OpenRouter. On Anthropic the limit of the reply includes it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub thinking_budget: Option<u32>,
    /// Nucleus sampling: only the most probable tokens that together have this probability, 0 to 1, are sampled.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub top_p: Option<f64>,
    /// Texts at which the reply ends. They are not part of it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub stop: Vec<String>,
    /// Makes sampling reproducible, as far as the provider can.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seed: Option<i64>,
    /// How long a provider caches the beginning of a conversation, so that the next request costs less.
    #[serde(skip_serializing_if = "is_default")]
    pub prompt_cache: PromptCache,
    /// A key for requests with the same beginning, for OpenAI's cache. Runs with the same tools and system text may
    /// share one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prompt_cache_key: Option<String>,
    /// The provider's name for a class of speed and price, for example `flex` or `priority`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub service_tier: Option<String>,
    /// The context length in tokens that Ollama uses for the model. Its default is small, and a longer conversation is
    /// rejected.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub context_length: Option<u32>,
    /// How many seconds Ollama keeps the model in memory; a negative number means until it is stopped.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub keep_alive: Option<i64>,
    /// Any other fields of the provider's format: an object that is merged into the body of each request, as a [JSON
    /// Merge Patch](https://www.rfc-editor.org/rfc/rfc7396). It is applied last, so it overrides all other settings.
    #[serde(skip_serializing_if = "Value::is_null")]
    pub extra_body: Value,
}

setters!(ModelSettings {
    reasoning_effort: Option<ReasoningEffort>,
    thinking_budget: Option<u32>,
    top_p: Option<f64>,
    stop: Vec<String>,
    seed: Option<i64>,
    prompt_cache: PromptCache,
    prompt_cache_key: Option<String>,
    service_tier: Option<String>,
    context_length: Option<u32>,
    keep_alive: Option<i64>,
    extra_body: Value,
});

/// How much a model reasons. Few models support every level; a provider rejects those that its model does not support.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum ReasoningEffort {
    /// No reasoning.
    None,
    /// As little as possible.
    Minimal,
    /// A little.
    Low,
    /// The middle.
    Medium,
    /// Much.
    High,
    /// More than `High`.
    XHigh,
    /// As much as possible.
    Max,
}

/// How long a provider caches the beginning of a conversation.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum PromptCache {
    /// Minutes. Anthropic gets markers for the parts to cache in requests that others will follow, that is, those that
    /// offer tools or continue a conversation. Other providers cache without being asked.
    #[default]
    Short,
    /// One hour on Anthropic and one day on OpenAI; on others the same as `Short`.
    Long,
    /// Anthropic gets no markers. Other providers may still cache.
    Off,
}

/// Returns whether a field has its default and need not be written.
pub(crate) fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}
