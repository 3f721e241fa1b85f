//! The error codes and messages of providers: a table of codes, a table of messages, and the delays in messages.
//!
//! Statuses alone are not sufficient: Gemini reports a wrong key with 400, and so do most providers a conversation that
//! is too long.

use std::time::Duration;

use serde_json::Value;

use crate::error::ErrorKind::{self, *};

/// Values of `code`, `type`, `status`, or of the reason of a detail: value, kind, source.
const CODES: &[(&str, ErrorKind, &str)] = &[
    ("context_length_exceeded", ContextTooLong, "OpenAI, error codes"),
    ("exceed_context_size_error", ContextTooLong, "llama.cpp, tools/server"),
    ("model_max_prompt_tokens_exceeded", ContextTooLong, "GitHub Copilot, anomalyco/opencode#20105"),
    ("insufficient_quota", Authentication, "OpenAI, error codes: paying helps, waiting does not"),
    ("usage_not_included", Authentication, "OpenAI, codex-rs: the plan lacks this model"),
    ("exceeded_current_quota_error", Authentication, "Moonshot, error codes"),
    ("invalid_api_key", Authentication, "OpenAI, error codes"),
    ("api_key_invalid", Authentication, "Gemini, google.rpc.ErrorInfo of a 400"),
    ("authentication_error", Authentication, "Anthropic, errors"),
    ("permission_error", Authentication, "Anthropic, errors"),
    ("billing_error", Authentication, "Anthropic, errors"),
    ("content_policy_violation", Filtered, "OpenAI, error codes"),
    ("content_filter", Filtered, "Azure OpenAI, content filtering"),
    ("rate_limit_error", RateLimit, "Anthropic, errors"),
    ("rate_limit_exceeded", RateLimit, "OpenAI, error codes"),
];

/// Parts of messages, in lower case and with `*` for anything between them: text, kind, source.
const MESSAGES: &[(&str, ErrorKind, &str)] = &[
    ("does not support tool", ToolsUnsupported, "Ollama, server/routes.go"),
    ("does not support function", ToolsUnsupported, "Together, function calling"),
    ("support tool use", ToolsUnsupported, "OpenRouter: no endpoints found that support tool use"),
    ("tools param requires", ToolsUnsupported, "llama.cpp, tools/server"),
    ("tool use is not supported", ToolsUnsupported, "Bedrock, Converse"),
    ("tools are not supported", ToolsUnsupported, "LiteLLM"),
    ("tool calling is not supported", ToolsUnsupported, "Groq, tool use"),
    ("tool choice requires --enable-auto-tool-choice", ToolsUnsupported, "vLLM, entrypoints/openai"),
    ("context length", ContextTooLong, "OpenAI, OpenRouter, LM Studio, Ollama, DeepSeek"),
    ("context size", ContextTooLong, "llama.cpp, tools/server"),
    ("context window", ContextTooLong, "OpenAI Responses, MiniMax"),
    ("maximum context", ContextTooLong, "Mistral, LiteLLM"),
    ("prompt is too long", ContextTooLong, "Anthropic, errors"),
    ("exceed context limit", ContextTooLong, "Anthropic, extended thinking: input and max_tokens together"),
    ("input token count*exceeds the maximum number of tokens", ContextTooLong, "Gemini, google-gemini/gemini-cli#6678"),
    ("input token count is*only supports up to", ContextTooLong, "Vertex AI"),
    ("maximum prompt length is", ContextTooLong, "xAI"),
    ("exceeded model token limit", ContextTooLong, "Moonshot"),
    ("prompt exceeds max length", ContextTooLong, "Z.ai, error code 1261"),
    ("maximum model length", ContextTooLong, "vLLM, renderers"),
    ("prompt token count*exceeds the limit of", ContextTooLong, "GitHub Copilot"),
    ("input is too long for requested model", ContextTooLong, "Bedrock"),
    ("too many input tokens", ContextTooLong, "Bedrock"),
    ("reduce the length of the messages", ContextTooLong, "Groq, errors"),
    ("range of input length should be", ContextTooLong, "Alibaba Model Studio, error messages"),
    ("`inputs` tokens + `max_new_tokens` must be", ContextTooLong, "Hugging Face TGI, router/src/validation.rs"),
    ("api key not valid", Authentication, "Gemini, 400"),
    ("incorrect api key", Authentication, "xAI, 400"),
    ("credit balance is too low", Authentication, "Anthropic, 400"),
    // All rows of this kind are about images.
    ("image input is not supported", BadRequest, "llama.cpp, tools/server: a 500"),
    ("support image input", BadRequest, "OpenRouter: no endpoints found that support image input"),
    ("unknown variant `image_url`", BadRequest, "DeepSeek"),
    ("missing data required for image input", BadRequest, "Ollama"),
];

/// The text before a delay in a message: OpenAI and Groq, Azure, Gemini.
const DELAYS: &[&str] = &["try again in ", "retry after ", "retry in "];

/// Returns the kind for the codes of an error object.
pub(super) fn of_codes(error: &Value) -> Option<ErrorKind> {
    let reasons = error["details"].as_array().into_iter().flatten().map(|detail| &detail["reason"]);
    let words = [&error["code"], &error["type"], &error["status"]].into_iter().chain(reasons);
    words.filter_map(Value::as_str).find_map(|word| {
        let row = CODES.iter().find(|(code, ..)| word.eq_ignore_ascii_case(code));
        row.map(|(_, kind, _)| *kind)
    })
}

/// Returns the kind for a message.
pub(super) fn of_message(message: &str) -> Option<ErrorKind> {
    let message = message.to_ascii_lowercase();
    MESSAGES.iter().find(|(words, ..)| says(&message, words)).map(|(_, kind, _)| *kind)
}

fn says(message: &str, words: &str) -> bool {
    let mut rest = Some(message);
    words.split('*').all(|part| {
        rest = rest.and_then(|rest| rest.split_once(part)).map(|(_, behind)| behind);
        rest.is_some()
    })
}

/// Returns the delay that an error object requests: Gemini's `retryDelay`, or text of the message.
pub(super) fn delay(error: &Value, message: &str) -> Option<Duration> {
    let details = error["details"].as_array().into_iter().flatten();
    let told = details.filter_map(|detail| detail["retryDelay"].as_str()).find_map(duration);
    let message = message.to_ascii_lowercase();
    told.or_else(|| DELAYS.iter().filter_map(|words| message.split_once(words)).find_map(|(_, text)| duration(text)))
}

/// Parses the duration at the beginning of a text: `34s`, `1.2s`, `7m12.5s`, `8 seconds`.
fn duration(mut text: &str) -> Option<Duration> {
    let mut seconds = None;
    loop {
        let digits = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
        let (number, behind) = text.split_at(digits);
        let behind = behind.trim_start();
        let letters = behind.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(behind.len());
        let unit = match &behind[..letters] {
            "ms" | "milliseconds" => 0.001,
            "s" | "second" | "seconds" => 1.0,
            "m" | "minute" | "minutes" => 60.0,
            "h" | "hour" | "hours" => 3_600.0,
            _ => break,
        };
        let Ok(number) = number.parse::<f64>() else { break };
        seconds = Some(seconds.unwrap_or(0.0) + number * unit);
        text = &behind[letters..];
    }
    Duration::try_from_secs_f64(seconds?).ok()
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    /// Messages as providers send them.
    const SAID: &[(&str, ErrorKind)] = &[
        ("registry.ollama.ai/library/gemma does not support tools", ToolsUnsupported),
        ("This model does not support function calling", ToolsUnsupported),
        ("No endpoints found that support tool use.", ToolsUnsupported),
        ("tools param requires --jinja flag", ToolsUnsupported),
        ("Tool use is not supported in streaming mode.", ToolsUnsupported),
        ("Tools are not supported for this model", ToolsUnsupported),
        ("`tool calling` is not supported with this model; tool calling is not supported", ToolsUnsupported),
        ("\"auto\" tool choice requires --enable-auto-tool-choice and --tool-call-parser to be set", ToolsUnsupported),
        ("This model's maximum context length is 8192 tokens.", ContextTooLong),
        ("The number of tokens to keep is greater than the context length", ContextTooLong),
        ("the request exceeds the available context size, try increasing it", ContextTooLong),
        ("Your input exceeds the context window of this model.", ContextTooLong),
        ("Prompt contains 40000 tokens, too large for model with 32768 maximum context", ContextTooLong),
        ("prompt is too long: 210000 tokens > 200000 maximum", ContextTooLong),
        ("input length and `max_tokens` exceed context limit: 188240 + 21333 > 200000", ContextTooLong),
        ("The input token count (1200293) exceeds the maximum number of tokens allowed (1048576).", ContextTooLong),
        (
            "Unable to submit request because the input token count is 32775 but model only supports up to 32768.",
            ContextTooLong,
        ),
        ("This model's maximum prompt length is 131072 but the request contains 537812 tokens.", ContextTooLong),
        ("Invalid request: Your request exceeded model token limit: 262144 (requested: 300000)", ContextTooLong),
        ("Prompt exceeds max length", ContextTooLong),
        ("The decoder prompt (length 9000) is longer than the maximum model length of 8192.", ContextTooLong),
        ("prompt token count of 151998 exceeds the limit of 128000", ContextTooLong),
        ("The model returned the following errors: Input is too long for requested model.", ContextTooLong),
        ("Too many input tokens. Max input tokens: 8192, request input token count: 9279", ContextTooLong),
        ("Please reduce the length of the messages or completion.", ContextTooLong),
        ("Range of input length should be [1, 30720]", ContextTooLong),
        ("`inputs` tokens + `max_new_tokens` must be <= 4096. Given: 4000 `inputs` tokens", ContextTooLong),
        ("API key not valid. Please pass a valid API key.", Authentication),
        ("Incorrect API key provided: xa***ey.", Authentication),
        ("Your credit balance is too low to access the Anthropic API.", Authentication),
        ("image input is not supported - hint: you may need to provide the mmproj", BadRequest),
        ("No endpoints found that support image input", BadRequest),
        ("Failed to deserialize the JSON body: messages[0]: unknown variant `image_url`, expected `text`", BadRequest),
        ("this model is missing data required for image input", BadRequest),
    ];

    #[test]
    fn every_row_of_the_messages_is_found_in_what_a_provider_says() {
        let mut rows: HashSet<&str> = HashSet::new();
        for (message, kind) in SAID {
            assert_eq!(of_message(message), Some(*kind), "{message}");
            let lower = message.to_ascii_lowercase();
            rows.extend(MESSAGES.iter().filter(|(words, ..)| says(&lower, words)).map(|(words, ..)| *words));
        }
        for (words, _, source) in MESSAGES {
            assert!(rows.contains(words), "nobody says {words:?} of {source}");
            assert_eq!(*words, words.to_ascii_lowercase());
        }
    }

    #[test]
    fn other_messages_tell_no_kind() {
        for message in ["", "Bad tool name", "the input token count is fine", "maximum number of tokens", "API key"] {
            assert_eq!(of_message(message), None, "{message}");
        }
    }

    #[test]
    fn every_code_is_found_in_each_place_and_in_any_case() {
        for (code, kind, source) in CODES {
            let upper = code.to_ascii_uppercase();
            for error in [
                json!({"code": code}),
                json!({"type": code, "code": null}),
                json!({"status": upper}),
                json!({"code": 400, "status": "INVALID_ARGUMENT", "details": [{}, {"reason": upper}]}),
            ] {
                assert_eq!(of_codes(&error), Some(*kind), "{error} of {source}");
            }
        }
        assert_eq!(of_codes(&json!("text")), None);
    }

    #[test]
    fn delays_are_read_from_details_and_messages() {
        let seconds = |error: &Value, message: &str| delay(error, message).map(|delay| delay.as_secs_f64());
        let retry = json!({"details": [{"reason": "x"}, {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "34s"}]});
        assert_eq!(seconds(&retry, "Please retry in 2s."), Some(34.0));
        for (message, expected) in [
            ("Rate limit reached … Please try again in 1.2s. Visit", Some(1.2)),
            ("Please try again in 20ms.", Some(0.02)),
            ("Please try again in 7m12.5s. Need more?", Some(432.5)),
            ("Please retry after 8 seconds.", Some(8.0)),
            ("Please retry in 34.074824224s.", Some(34.074824224)),
            ("Please try again in 1h2m3s", Some(3723.0)),
            ("try again in a while", None),
            ("try again in 5", None),
            ("try again in 1.2.3s", None),
            ("", None),
        ] {
            assert_eq!(seconds(&Value::Null, message), expected, "{message}");
        }
    }

    proptest! {
        #[test]
        fn no_message_breaks_the_reading_of_delays(text in "\\PC*", number in "[0-9.]{0,400}", unit in "ms|s|m|h|é|") {
            let message = format!("{text} try again in {number}{unit}{text}");
            of_message(&message);
            delay(&json!({"details": [{"retryDelay": message}]}), &message);
        }
    }
}
