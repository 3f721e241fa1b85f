//! Settings of a request that not every provider has. Each wire maps what it has; `docs/wires.md` has the table.

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// How a model is to answer. What is left open is the provider's own.
///
/// A setting that a provider does not have and that would change the reply is refused with `BadRequest`; one that would
/// only change what it costs is left out.
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
    /// The most tokens of reasoning, for models that are given a number in place of an effort: Claude up to 4.6,
    /// Gemini 2.5, models of OpenRouter. On Anthropic the limit of the reply includes it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub thinking_budget: Option<u32>,
    /// Nucleus sampling: only the most probable tokens that make up this share, 0 to 1, are drawn from.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub top_p: Option<f64>,
    /// Texts at which the reply ends. They are not part of it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub stop: Vec<String>,
    /// Makes sampling repeatable, as far as the provider can.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seed: Option<i64>,
    /// For how long a provider keeps the beginning of a conversation, so that the next request costs less.
    #[serde(skip_serializing_if = "is_default")]
    pub prompt_cache: PromptCache,
    /// What requests with the same beginning have in common, for OpenAI's cache. Runs with the same tools and system
    /// text may share one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prompt_cache_key: Option<String>,
    /// The provider's name for a class of speed and price: `flex`, `priority` …
    #[serde(skip_serializing_if = "Option::is_none")]
    pub service_tier: Option<String>,
    /// The tokens of context that Ollama gives the model. Its own default is small, and a longer conversation is refused.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub context_length: Option<u32>,
    /// For how many seconds Ollama keeps the model in memory; a negative number: until it is stopped.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub keep_alive: Option<i64>,
    /// Anything else of the provider's format: an object that is merged into the body of each request, as a
    /// [JSON Merge Patch](https://www.rfc-editor.org/rfc/rfc7396). It has the last word.
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

/// How much a model reasons. Few models know every level; a provider refuses those that its model does not know.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum ReasoningEffort {
    /// Not at all.
    None,
    /// As little as possible.
    Minimal,
    /// A little.
    Low,
    /// The middle.
    Medium,
    /// Much.
    High,
    /// More than that.
    XHigh,
    /// As much as possible.
    Max,
}

/// For how long a provider keeps the beginning of a conversation.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum PromptCache {
    /// For minutes. Anthropic is told what to keep, in requests that others will follow: those that offer tools or go on
    /// with a conversation. Other providers do it unasked.
    #[default]
    Short,
    /// For an hour on Anthropic and a day on OpenAI; elsewhere as `Short`.
    Long,
    /// Anthropic is told nothing. Other providers keep what they like.
    Off,
}

/// Whether a field has its default, and need not be written.
pub(crate) fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}
