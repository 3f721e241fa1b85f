//! The known providers of models: the format of each, the variables of its key, and the context lengths of its models.

use std::path::PathBuf;

use agent_loop::{Http, Provider, Wire};
use axum::http::Uri;
use vault_index::likeness::nearest;
use vault_tools::{Error, ErrorKind, Result};

/// A provider that is known by name.
#[derive(Debug)]
pub(crate) struct KnownProvider {
    pub name: &'static str,
    /// Other accepted names.
    pub aliases: &'static [&'static str],
    /// The usual environment variables of its key; the first that is set counts.
    pub key_variables: &'static [&'static str],
    /// The API of its list of models.
    pub listing: Listing,
    make: fn() -> Provider,
}

/// The API of a provider's list of models, relative to the base URL.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Listing {
    /// `GET models`, as at OpenAI.
    OpenAi,
    /// `GET models`, in pages.
    Anthropic,
    /// `GET models`, in pages.
    Gemini,
    /// `GET /api/tags`.
    Ollama,
}

const fn known(
    name: &'static str,
    aliases: &'static [&'static str],
    key_variables: &'static [&'static str],
    listing: Listing,
    make: fn() -> Provider,
) -> KnownProvider {
    KnownProvider { name, aliases, key_variables, listing, make }
}

/// All known providers. A new one is a line here, and a function of [`Provider`] if its format needs options.
pub(crate) const KNOWN: [KnownProvider; 12] = [
    known("openai", &[], &["OPENAI_API_KEY"], Listing::OpenAi, || Provider::openai("")),
    known("openai-chat", &[], &["OPENAI_API_KEY"], Listing::OpenAi, || {
        Provider::new("openai", Wire::OpenAiChat, "https://api.openai.com/v1", None)
    }),
    known("anthropic", &["claude"], &["ANTHROPIC_API_KEY"], Listing::Anthropic, || Provider::anthropic("")),
    known("gemini", &["google"], &["GEMINI_API_KEY", "GOOGLE_API_KEY"], Listing::Gemini, || Provider::gemini("")),
    known("openrouter", &[], &["OPENROUTER_API_KEY"], Listing::OpenAi, || Provider::openrouter("")),
    known("deepseek", &[], &["DEEPSEEK_API_KEY"], Listing::OpenAi, || Provider::deepseek("")),
    known("moonshot", &["kimi"], &["MOONSHOT_API_KEY"], Listing::OpenAi, || Provider::moonshot("")),
    known("z.ai", &["zai"], &["ZAI_API_KEY"], Listing::OpenAi, || Provider::z_ai("")),
    known("azure", &[], &["AZURE_OPENAI_API_KEY"], Listing::OpenAi, || {
        Provider::azure_openai("", "").base_url(String::new())
    }),
    known("ollama", &[], &["OLLAMA_API_KEY"], Listing::Ollama, Provider::ollama),
    known("lmstudio", &["lm-studio"], &["LM_API_TOKEN"], Listing::OpenAi, Provider::lm_studio),
    known("llama.cpp", &["llamacpp"], &["LLAMA_API_KEY"], Listing::OpenAi, Provider::llama_cpp),
];

/// The variable of the key for an address.
pub(crate) const KEY_OF_ADDRESS: &str = "VAULT_AGENT_API_KEY";

/// A provider as the settings name it.
#[derive(Debug, Clone)]
pub(crate) enum ProviderChoice {
    Known(&'static KnownProvider),
    /// A URL of a Chat Completions API, such as `https://host/v1`.
    Address(String),
    /// `local:FILE.gguf`: a model in this process.
    LocalFile(PathBuf),
    /// `llama-server:PATH`: a model in a server of llama.cpp that is started for it.
    LlamaServer(PathBuf),
}

impl ProviderChoice {
    /// Parses the provider in the settings.
    ///
    /// # Errors
    /// The reason why it is invalid.
    pub fn parse(text: &str) -> Result<Self, String> {
        let text = text.trim();
        if let Some(path) = text.strip_prefix("local:") {
            return path_of(path, "local:FILE.gguf").map(Self::LocalFile);
        }
        if let Some(path) = text.strip_prefix("llama-server:") {
            return path_of(path, "llama-server:FILE.gguf").map(Self::LlamaServer);
        }
        if text.contains("://") {
            return host_of(text).map(|_| Self::Address(text.trim_end_matches('/').to_owned()));
        }
        let name = text.to_lowercase();
        let found = KNOWN.iter().find(|known| known.name == name || known.aliases.contains(&&*name));
        found.map(Self::Known).ok_or_else(|| {
            let names: Vec<&str> = KNOWN.iter().map(|known| known.name).collect();
            let meant = meant(&name, names.iter().copied()).map(|near| format!("did you mean {near}? "));
            let others = "an address such as https://host/v1, local:FILE.gguf, llama-server:PATH";
            format!("unknown provider {text:?} ({}one of {}, {others})", meant.unwrap_or_default(), names.join(", "))
        })
    }

    /// The name for records and for the key: the provider's name, or the host of an address.
    pub fn name(&self) -> String {
        match self {
            Self::Known(known) => known.name.to_owned(),
            Self::Address(address) => host_of(address).unwrap_or_else(|_| address.clone()),
            Self::LocalFile(_) => "local".to_owned(),
            Self::LlamaServer(_) => "llama-server".to_owned(),
        }
    }

    /// The account of its key in the keyring. Both APIs of one provider share it.
    pub fn account(&self) -> String {
        match self {
            Self::Known(known) => (known.make)().name,
            _ => self.name(),
        }
    }

    /// The environment variables of its key.
    pub fn key_variables(&self) -> &'static [&'static str] {
        match self {
            Self::Known(known) => known.key_variables,
            Self::Address(_) => &[KEY_OF_ADDRESS],
            Self::LocalFile(_) | Self::LlamaServer(_) => &[],
        }
    }

    /// Whether it is a file on this machine, with a single model.
    pub fn is_file(&self) -> bool {
        matches!(self, Self::LocalFile(_) | Self::LlamaServer(_))
    }

    /// The API of its list of models; `None` for local models.
    pub fn listing(&self) -> Option<Listing> {
        match self {
            Self::Known(known) => Some(known.listing),
            Self::Address(_) => Some(Listing::OpenAi),
            Self::LocalFile(_) | Self::LlamaServer(_) => None,
        }
    }

    /// Returns the provider without a key; `None` for local models.
    ///
    /// # Errors
    /// An invalid address, or a missing one if the provider has no default.
    pub fn provider(&self, base_url: Option<&str>) -> Result<Option<Provider>> {
        let provider = match self {
            Self::Known(known) => (known.make)().key(None),
            Self::Address(address) => Provider::new(self.name(), Wire::Chat, address, None),
            Self::LocalFile(_) | Self::LlamaServer(_) => return Ok(None),
        };
        let provider = match base_url.map(|address| address.trim().trim_end_matches('/')) {
            Some(address) => {
                let address = whole_address(&provider, address);
                provider.base_url(address)
            }
            None => provider,
        };
        if provider.base_url.is_empty() {
            let message = format!("the provider {} needs the address of your own resource", self.name());
            let remedy = "set base_url, such as https://NAME.openai.azure.com";
            return Err(Error::new(ErrorKind::Config, message).with_remedy(remedy));
        }
        host_of(&provider.base_url).map_err(|why| Error::new(ErrorKind::Config, why))?;
        Ok(Some(provider))
    }
}

/// Completes an address to the base of the API: adds the path to an Azure resource, and removes the path of OpenAI's
/// format from an Ollama address.
fn whole_address(provider: &Provider, address: &str) -> String {
    match provider.name.as_str() {
        "azure" if !address.contains("/openai") => format!("{address}/openai/v1"),
        "ollama" => address.trim_end_matches("/v1").to_owned(),
        _ => address.to_owned(),
    }
}

fn path_of(path: &str, form: &str) -> Result<PathBuf, String> {
    match path.trim() {
        "" => Err(format!("the file of the model is missing (write {form})")),
        path => Ok(path.into()),
    }
}

/// Returns the host of an address, with its port if it has one.
///
/// # Errors
/// The reason why the address is invalid.
pub(crate) fn host_of(address: &str) -> Result<String, String> {
    let uri: Option<Uri> = address.trim().parse().ok();
    let uri = uri.filter(|uri| matches!(uri.scheme_str(), Some("http" | "https")));
    let host = uri.as_ref().and_then(|uri| Some((uri.host()?, uri.port_u16())));
    match host {
        Some((host, port)) if !host.is_empty() => {
            Ok(port.map_or_else(|| host.to_owned(), |port| format!("{host}:{port}")))
        }
        // The address is not repeated, because it may contain a password.
        _ => Err("this is not a URL (write one such as https://host/v1)".to_owned()),
    }
}

/// Whether an address is this machine's, so that data sent there does not leave it.
pub(crate) fn is_this_machine(address: &str) -> bool {
    let host = address.parse::<Uri>().ok().and_then(|uri| uri.host().map(str::to_owned)).unwrap_or_default();
    let host = host.trim_start_matches('[').trim_end_matches(']');
    host == "localhost" || host.parse().is_ok_and(|ip: std::net::IpAddr| ip.is_loopback())
}

/// The context lengths of hosted models in tokens, by the prefix of their names; the longest prefix counts. The data is
/// from models.dev on 2 July 2026, which takes it from the providers' own pages. Where models with one prefix differ,
/// and for later models, it is the smallest length of the family. Models on the user's own servers are not listed,
/// because the length depends on how the server was started.
const CONTEXT_LENGTHS: [(&str, u64); 40] = [
    ("gpt-3.5-turbo", 16_385),
    ("gpt-4", 8_192),
    ("gpt-4-turbo", 128_000),
    ("gpt-4o", 128_000),
    ("gpt-4.1", 1_047_576),
    ("gpt-5", 400_000),
    ("gpt-5.1-chat", 128_000),
    ("gpt-5.2-chat", 128_000),
    ("gpt-5.3-chat", 128_000),
    ("gpt-5.3-codex-spark", 128_000),
    ("gpt-5.4", 1_050_000),
    ("gpt-5.4-mini", 400_000),
    ("gpt-5.4-nano", 400_000),
    ("gpt-5.5", 1_050_000),
    ("o1", 200_000),
    ("o3", 200_000),
    ("o4-mini", 200_000),
    ("claude-", 200_000),
    ("claude-fable-5", 1_000_000),
    ("claude-opus-4-6", 1_000_000),
    ("claude-opus-4-7", 1_000_000),
    ("claude-opus-4-8", 1_000_000),
    ("claude-sonnet-4-6", 1_000_000),
    ("claude-sonnet-5", 1_000_000),
    ("gemini-", 1_048_576),
    ("gemini-2.5-flash-image", 32_768),
    ("gemini-3-pro-image", 131_072),
    ("gemini-3.1-flash-image", 65_536),
    ("deepseek-", 128_000),
    ("deepseek-v4", 1_000_000),
    ("kimi-k2", 131_072),
    ("kimi-k2-0905", 262_144),
    ("kimi-k2-t", 262_144),
    ("kimi-k2.", 262_144),
    ("glm-4.5", 131_072),
    ("glm-4.5v", 64_000),
    ("glm-4.6", 204_800),
    ("glm-4.6v", 128_000),
    ("glm-4.7", 200_000),
    ("glm-5", 200_000),
];

/// The context length that is requested from Ollama and local models unless it is set, because less would hold the
/// tools and little else, and more takes memory.
pub(crate) const LOCAL_CONTEXT: u64 = 16_384;

/// Returns the context length of a model, request and reply together, if it is known.
pub(crate) fn context_length(choice: &ProviderChoice, model: &str) -> Option<u64> {
    let ProviderChoice::Known(KnownProvider { listing, name, .. }) = choice else { return None };
    // The user's own server may give a model any name.
    if *listing == Listing::Ollama || matches!(*name, "lmstudio" | "llama.cpp") {
        return None;
    }
    // OpenRouter prepends the vendor: `anthropic/claude-sonnet-4.6`.
    let model = model.rsplit_once('/').map_or(model, |(_, model)| model);
    let fits = CONTEXT_LENGTHS.iter().filter(|(prefix, _)| model.starts_with(prefix));
    fits.max_by_key(|(prefix, _)| prefix.len()).map(|(_, tokens)| *tokens)
}

/// Prefixes of models in these families that do not support tools, from the same source.
const WITHOUT_TOOLS: [&str; 6] =
    ["gpt-5-chat", "o1-mini", "o1-preview", "gemini-2.5-flash-image", "gemini-3-pro-image", "gemini-3.1-flash-image"];

/// Whether a model supports tools, if that is known.
pub(crate) fn takes_tools(choice: &ProviderChoice, model: &str) -> Option<bool> {
    context_length(choice, model)?;
    let model = model.rsplit_once('/').map_or(model, |(_, model)| model);
    Some(!WITHOUT_TOOLS.iter().any(|prefix| model.starts_with(prefix)))
}

/// Returns the name that was probably meant.
pub(crate) fn meant<'n>(wanted: &str, names: impl Iterator<Item = &'n str>) -> Option<&'n str> {
    nearest(wanted, names.map(|name| (name, name))).first().copied()
}

/// Returns the connection for hosted models.
///
/// # Errors
/// An invalid proxy in the environment.
pub(crate) fn connection() -> Result<Http> {
    Http::new().map_err(|error| {
        Error::new(ErrorKind::Config, error.message())
            .with_remedy(error.remedy().unwrap_or("check HTTPS_PROXY and HTTP_PROXY"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn providers_are_known_by_name_and_address() {
        for known in &KNOWN {
            let choice = ProviderChoice::parse(known.name).unwrap();
            assert_eq!(choice.name(), known.name);
            assert_eq!(choice.account(), known.name.trim_end_matches("-chat").replace("lms", "lm-s"));
            if known.name != "azure" {
                let provider = choice.provider(None).unwrap().unwrap();
                assert_eq!(provider.key, None, "{}", known.name);
                assert!(host_of(&provider.base_url).is_ok(), "{}", known.name);
            }
        }
        let custom = ProviderChoice::parse("https://gateway.example/v1/").unwrap();
        assert_eq!(custom.name(), "gateway.example");
        assert_eq!(custom.provider(None).unwrap().unwrap().base_url, "https://gateway.example/v1");
        let azure = ProviderChoice::parse("azure").unwrap();
        assert!(azure.provider(None).unwrap_err().to_string().contains("set base_url"));
        assert!(azure.provider(Some("nowhere")).is_err());
        let address = |provider: &str, given| {
            ProviderChoice::parse(provider).unwrap().provider(Some(given)).unwrap().unwrap().base_url
        };
        assert_eq!(address("azure", "https://n.openai.azure.com/"), "https://n.openai.azure.com/openai/v1");
        assert_eq!(address("azure", "https://n.openai.azure.com/openai/v1"), "https://n.openai.azure.com/openai/v1");
        assert_eq!(address("ollama", "http://10.0.0.2:11434/v1/"), "http://10.0.0.2:11434");
        assert_eq!(address("lmstudio", "http://10.0.0.2:1234/v1"), "http://10.0.0.2:1234/v1");
        let error = ProviderChoice::parse("antropic").unwrap_err();
        assert!(error.contains("did you mean anthropic?"), "{error}");
        for wrong in ["", "local:", "ftp://x/v1", "https://"] {
            assert!(ProviderChoice::parse(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn what_stays_on_this_machine() {
        for (address, is_here) in [
            ("http://127.0.0.1:11434/v1", true),
            ("http://localhost:1234/v1", true),
            ("http://[::1]:8080/v1", true),
            ("https://api.openai.com/v1", false),
            ("http://localhost.example.org/v1", false),
            ("http://127.0.0.1@example.org/v1", false),
            ("http://192.168.1.5/v1", false),
        ] {
            assert_eq!(is_this_machine(address), is_here, "{address}");
        }
    }

    #[test]
    fn context_lengths_of_families() {
        let of = |provider: &str, model: &str| context_length(&ProviderChoice::parse(provider).unwrap(), model);
        assert_eq!(of("openai", "gpt-4.1-mini"), Some(1_047_576));
        assert_eq!(of("openai", "gpt-4-0613"), Some(8_192));
        assert_eq!((of("openai", "gpt-5.4-mini"), of("openai", "gpt-5.9")), (Some(400_000), Some(400_000)));
        assert_eq!(of("anthropic", "claude-haiku-4-5"), Some(200_000));
        assert_eq!(of("openrouter", "google/gemini-2.5-pro"), Some(1_048_576));
        assert_eq!(of("openai", "my-own"), None);
        assert_eq!(of("ollama", "gpt-4"), None);
        let tools = |provider: &str, model: &str| takes_tools(&ProviderChoice::parse(provider).unwrap(), model);
        assert_eq!(tools("openai", "gpt-5.4-mini"), Some(true));
        assert_eq!(tools("openrouter", "openai/gpt-5-chat"), Some(false));
        assert_eq!((tools("openai", "my-own"), tools("lmstudio", "gpt-4")), (None, None));
    }
}
