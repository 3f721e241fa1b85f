//! The settings, one line each: name, what it takes, its flag, what it does.

use serde_json::Value;
use toml_edit::Value as Toml;

use super::value::Kind;
use crate::providers::meant;

/// A setting.
#[derive(Debug)]
pub(crate) struct Setting {
    /// As in `agent.toml`.
    pub name: &'static str,
    pub kind: Kind,
    /// Whether `none` is a value.
    pub is_optional: bool,
    pub flag: Option<Flag>,
    pub what: &'static str,
}

/// The flag of a setting.
#[derive(Debug)]
pub(crate) struct Flag {
    /// Without its dashes. One that begins with `no-` turns a switch off, and other flags of switches turn them on.
    pub name: &'static str,
    /// The name of its value; nothing for a switch.
    pub value: &'static str,
    /// One line for `-h`.
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

    /// Reads a value from a variable or a flag.
    ///
    /// # Errors
    /// What may be written instead.
    pub fn of_text(&self, text: &str) -> Result<Value, String> {
        if self.is_optional && text.trim() == "none" {
            return Ok(Value::Null);
        }
        self.kind.of_text(text)
    }

    /// Reads a value from a file.
    ///
    /// # Errors
    /// What may be written instead.
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

/// All of them, in the order of the fields of `Settings`.
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
    required("allowed_models", Kind::List, None, "If any are given, no other models are asked"),
    optional(
        "context_length",
        Kind::Count(1024, ANY),
        rare("context-length", "N", "How many tokens the model reads, request and reply together"),
        "How many tokens the model reads, request and reply together; older turns are summarised before it is full",
    ),
    optional("models_folder", Kind::Text, None, "The folder in which model files are looked for"),
    optional(
        "system",
        Kind::Text,
        rare("system", "TEXT", "A system message of your own"),
        "A system message of your own, after the one that explains the vault",
    ),
    optional(
        "temperature",
        Kind::Number(0.0, 2.0),
        common("temperature", "N", "How freely the model chooses its words, 0 to 2"),
        "How freely the model chooses its words; none leaves it to the provider",
    ),
    optional("top_p", Kind::Number(0.0, 1.0), None, "Of which part of the likely words the model chooses"),
    optional(
        "seed",
        Kind::Count(0, u32::MAX as u64),
        None,
        "The same request with the same seed has the same reply, where the model keeps to it; openai and anthropic take none",
    ),
    optional(
        "max_tokens",
        Kind::Count(1, u32::MAX as u64),
        rare("max-tokens", "N", "The most tokens of one reply"),
        "The most tokens of one reply",
    ),
    optional(
        "reasoning_effort",
        Kind::Text,
        rare("reasoning-effort", "EFFORT", "How much the model reasons before it answers"),
        "How much the model reasons before it answers: off, minimal, low, medium, high, xhigh, max, as far as it can",
    ),
    required(
        "streaming",
        Kind::Switch,
        rare("no-stream", "", "Have replies come whole"),
        "Whether replies are shown as they are written",
    ),
    required(
        "tools",
        Kind::Switch,
        common("no-tools", "", "Let the model call no tools"),
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
        "Whether tools are called in text: auto (where the model takes no tools), never, or always in the form of a family: \
hermes, qwen3_coder, glm, llama3, pythonic, mistral, deepseek, deepseek_dsml, kimi_k2, harmony, granite, phi, gemma, \
functionary, react",
    ),
    required(
        "review",
        Kind::Text,
        rare("review", "WHICH", "Which results you see before the model: chat, always, never"),
        "Which results you see before the model does: chat (those of the toolset chat), always, never",
    ),
    required(
        "max_turns",
        Kind::Count(1, 1000),
        common("max-turns", "N", "The most replies of the model to one message of yours"),
        "The most replies of the model to one message of yours",
    ),
    optional(
        "max_calls",
        Kind::Count(1, u32::MAX as u64),
        rare("max-calls", "N", "The most tool calls for one message of yours"),
        "The most tool calls for one message of yours",
    ),
    optional(
        "max_total_tokens",
        Kind::Count(1, ANY),
        common("max-total-tokens", "N", "The most tokens, in and out, for one message of yours"),
        "The most tokens, in and out, for one message of yours",
    ),
    optional(
        "max_seconds",
        Kind::Count(1, ANY),
        rare("max-seconds", "N", "The most seconds of work for one message of yours"),
        "The most seconds that model and tools may work for one message of yours",
    ),
    required(
        "show_traffic",
        Kind::Switch,
        common("show-traffic", "", "Print what is sent to the model and what comes back"),
        "Print what is sent to the model and what comes back, exactly, on standard error; never keys",
    ),
    required("bell", Kind::Switch, None, "Whether the terminal rings when chat asks you something"),
    optional("threads", Kind::Count(1, 1024), None, "Of local: how many threads compute; by default one for each core"),
    optional(
        "gpu_layers",
        Kind::Count(0, u32::MAX as u64),
        None,
        "Of local: how many layers of the model the graphics card computes, where the program was built for one",
    ),
    optional(
        "repeat_penalty",
        Kind::Number(1.0, 2.0),
        None,
        "Of local: what the likelihood of the last 64 tokens is divided by; 1 changes nothing",
    ),
];

/// The setting of a name.
///
/// # Errors
/// The names there are, the one first that was probably meant.
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
