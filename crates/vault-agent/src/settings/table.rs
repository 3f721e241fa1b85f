//! The table of settings: the name, kind, flag and description of each.

use serde_json::Value;
use toml_edit::Value as Toml;

use super::value::Kind;
use crate::known_providers::meant;

/// A setting.
#[derive(Debug)]
pub(crate) struct Setting {
    /// The name in `agent.toml`.
    pub name: &'static str,
    pub kind: Kind,
    /// Whether `none` is a valid value.
    pub is_optional: bool,
    pub flag: Option<Flag>,
    pub what: &'static str,
}

/// The flag of a setting.
#[derive(Debug)]
pub(crate) struct Flag {
    /// Without the dashes. A name that begins with `no-` turns a switch off; the other flags of switches turn them on.
    pub name: &'static str,
    /// The placeholder of the value in the help; empty for a switch.
    pub value: &'static str,
    /// The description in `-h`, on one line.
    pub brief: &'static str,
    /// Whether `-h` shows it.
    pub is_common: bool,
}

const fn common(name: &'static str, value: &'static str, brief: &'static str) -> Option<Flag> {
    Some(Flag { name, value, brief, is_common: true })
}

const fn rare(name: &'static str, value: &'static str, brief: &'static str) -> Option<Flag> {
    Some(Flag { name, value, brief, is_common: false })
}

impl Setting {
    /// The environment variable of the setting.
    pub fn variable(&self) -> String {
        format!("VAULT_AGENT_{}", self.name.to_uppercase())
    }

    /// Parses a value from a variable or a flag.
    ///
    /// # Errors
    /// The values that are valid.
    pub fn of_text(&self, text: &str) -> Result<Value, String> {
        if self.is_optional && text.trim() == "none" {
            return Ok(Value::Null);
        }
        self.kind.of_text(text)
    }

    /// Parses a value from a file.
    ///
    /// # Errors
    /// The values that are valid.
    pub fn of_toml(&self, toml: &Toml) -> Result<Value, String> {
        if self.is_optional && toml.as_str() == Some("none") {
            return Ok(Value::Null);
        }
        self.kind.of_toml(toml)
    }
}

const fn required(name: &'static str, kind: Kind, flag: Option<Flag>, what: &'static str) -> Setting {
    Setting { name, kind, is_optional: false, flag, what }
}

const fn optional(name: &'static str, kind: Kind, flag: Option<Flag>, what: &'static str) -> Setting {
    Setting { name, kind, is_optional: true, flag, what }
}

const ANY: u64 = u64::MAX;

/// All settings, in the order of the fields of `Settings`.
pub(crate) const TABLE: [Setting; 26] = [
    optional(
        "provider",
        Kind::Text,
        common("provider", "NAME", "Who serves the model, such as ollama, openai, https://host/v1"),
        "Who serves the model: openai, openai-chat, anthropic, gemini, openrouter, deepseek, moonshot, z.ai, azure, ollama, \
lmstudio, llama.cpp, an address that speaks Chat Completions (https://host/v1), local:FILE.gguf, llama-server:FILE.gguf",
    ),
    optional(
        "model",
        Kind::Text,
        common("model", "NAME", "The model, by the provider's name for it"),
        "The model, by the provider's name for it",
    ),
    optional(
        "base_url",
        Kind::Text,
        rare("base-url", "URL", "Another address of the provider's API"),
        "Another address of the provider's API, such as a gateway's",
    ),
    required("allowed_models", Kind::List, None, "The only models that may be used; if empty, any model may be"),
    optional(
        "context_length",
        Kind::Count(1024, ANY),
        rare("context-length", "N", "Context length of the model in tokens"),
        "Context length in tokens, request and reply together; older turns are summarised before it is full",
    ),
    optional("models_folder", Kind::Text, None, "The folder to search for model files"),
    optional(
        "system",
        Kind::Text,
        rare("system", "TEXT", "A system message of your own"),
        "A system message of your own, after the one that explains the vault",
    ),
    optional(
        "temperature",
        Kind::Number(0.0, 2.0),
        common("temperature", "N", "Sampling temperature, 0 to 2"),
        "Sampling temperature, 0 to 2; `none`: the provider's default",
    ),
    optional("top_p", Kind::Number(0.0, 1.0), None, "Nucleus sampling (top-p), 0 to 1"),
    optional(
        "seed",
        Kind::Count(0, u32::MAX as u64),
        None,
        "Sampling seed, for repeatable replies where the provider supports it; openai and anthropic do not",
    ),
    optional(
        "max_tokens",
        Kind::Count(1, u32::MAX as u64),
        rare("max-tokens", "N", "Maximum tokens in one reply"),
        "Maximum tokens in one reply",
    ),
    optional(
        "reasoning_effort",
        Kind::Text,
        rare("reasoning-effort", "EFFORT", "How much the model reasons before it answers"),
        "How much the model reasons before it answers: off, minimal, low, medium, high, xhigh, max, as far as supported",
    ),
    required(
        "streaming",
        Kind::Switch,
        rare("no-stream", "", "Do not stream replies"),
        "Whether replies are shown as they are written",
    ),
    required(
        "tools",
        Kind::Switch,
        common("no-tools", "", "Do not let the model call tools"),
        "Whether the model may call tools",
    ),
    required(
        "toolsets",
        Kind::List,
        common("toolset", "NAME", "The model's tools: notes, chat, actions, bulk (comma-separated)"),
        "The tools that the model gets: notes, chat, actions, bulk (comma-separated)",
    ),
    required(
        "text_calls",
        Kind::Text,
        rare("text-calls", "FORM", "Whether, and in which form, tools are called in text"),
        "Whether tools are called in text: auto (if the model does not support tools), never, or always in the form of a family: \
hermes, qwen3_coder, glm, llama3, pythonic, mistral, deepseek, deepseek_dsml, kimi_k2, harmony, granite, phi, gemma, \
functionary, react",
    ),
    required(
        "review",
        Kind::Text,
        rare("review", "WHICH", "When to ask before a tool's result is sent to the model"),
        "When to ask before a tool's result is sent to the model: chat (for the toolset chat), always, never",
    ),
    required(
        "max_turns",
        Kind::Count(1, 1000),
        common("max-turns", "N", "Maximum replies of the model per message of yours"),
        "Maximum replies of the model per message of yours",
    ),
    optional(
        "max_calls",
        Kind::Count(1, u32::MAX as u64),
        rare("max-calls", "N", "Maximum tool calls per message of yours"),
        "Maximum tool calls per message of yours",
    ),
    optional(
        "max_total_tokens",
        Kind::Count(1, ANY),
        common("max-total-tokens", "N", "Maximum tokens, in and out, per message of yours"),
        "Maximum tokens, in and out, per message of yours",
    ),
    optional(
        "max_seconds",
        Kind::Count(1, ANY),
        rare("max-seconds", "N", "Maximum seconds of work per message of yours"),
        "Maximum seconds that model and tools may work per message of yours",
    ),
    required(
        "show_traffic",
        Kind::Switch,
        common("show-traffic", "", "Print requests to the model and its responses"),
        "Print requests to the model and its responses, exactly but without keys, on standard error",
    ),
    required("bell", Kind::Switch, None, "Whether the terminal rings when chat asks you something"),
    optional("threads", Kind::Count(1, 1024), None, "Threads for `local:` models; default one per core"),
    optional(
        "gpu_layers",
        Kind::Count(0, u32::MAX as u64),
        None,
        "Layers of a `local:` model to run on the GPU, in a build with GPU support",
    ),
    optional(
        "repeat_penalty",
        Kind::Number(1.0, 2.0),
        None,
        "Repeat penalty for `local:` models, on the last 64 tokens; 1 turns it off",
    ),
];

/// Finds a setting by its name.
///
/// # Errors
/// All names, or the nearest one if the name looks like a typo.
pub(crate) fn find(name: &str) -> Result<&'static Setting, String> {
    TABLE.iter().find(|setting| setting.name == name).ok_or_else(|| {
        let names = || TABLE.iter().map(|setting| setting.name);
        let spelled = name.to_lowercase().replace('-', "_");
        let meant = match meant(&spelled, names()) {
            Some(near) => format!("did you mean {near}?"),
            None => format!("there are {}", names().collect::<Vec<_>>().join(", ")),
        };
        format!("there is no setting {name:?} ({meant})")
    })
}
