//! What some models want before a text to tell passages from queries, as their model cards say.

use std::borrow::Cow;

use super::Role;

/// Raised whenever an entry below changes, since then the same text gets another vector.
const VERSION: u32 = 1;

/// The words before each kind of text.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Prompts {
    passage: Cow<'static, str>,
    query: Cow<'static, str>,
}

const SEARCHING: &str = "Represent this sentence for searching relevant passages: ";
const SEARCHING_ZH: &str = "为这个句子生成表示以用于检索相关文章：";
const INSTRUCT: &str = "Instruct: Given a web search query, retrieve relevant passages that answer the query\nQuery:";

/// A family, as found in a model's name without signs and in lower case, and what goes before a
/// passage and before a query. The first that fits counts.
const FAMILIES: &[(&str, &str, &str)] = &[
    ("multilinguale5", "passage: ", "query: "),
    ("nomicembedtext", "search_document: ", "search_query: "),
    ("modernbertembed", "search_document: ", "search_query: "),
    ("bgesmallzh", "", SEARCHING_ZH),
    ("bgelargezh", "", SEARCHING_ZH),
    ("bgesmall", "", SEARCHING),
    ("bgebase", "", SEARCHING),
    ("bgelarge", "", SEARCHING),
    ("mxbaiembedlarge", "", SEARCHING),
    ("snowflakearcticembed2", "", "query: "),
    ("snowflakearcticembedlv2", "", "query: "),
    ("snowflakearcticembedmv2", "", "query: "),
    ("snowflakearcticembed", "", SEARCHING),
    ("embeddinggemma", "title: none | text: ", "task: search result | query: "),
    ("qwen3embedding", "", INSTRUCT),
];

impl Prompts {
    /// The prompts of a model, by its name; none for one we do not know.
    pub(super) fn of(model: &str) -> Self {
        // What follows a colon is a size or quantisation: snowflake-arctic-embed:22m is no embed2.
        let name = model.split(':').next().unwrap_or(model);
        let plain: String = name.chars().filter(char::is_ascii_alphanumeric).map(|c| c.to_ascii_lowercase()).collect();
        let found = FAMILIES.iter().find(|(family, ..)| plain.contains(family));
        found.map_or_else(Self::default, |&(_, passage, query)| Self { passage: passage.into(), query: query.into() })
    }

    /// The prompts of a `config_sentence_transformers.json`; none if it names none of ours.
    #[cfg(feature = "fastembed")]
    pub(super) fn of_config(config: &serde_json::Value) -> Option<Self> {
        let named = |names: &[&str]| names.iter().find_map(|name| config["prompts"][name].as_str().map(str::to_owned));
        let (passage, query) = (named(&["passage", "document"]), named(&["query"]));
        (passage.is_some() || query.is_some())
            .then(|| Self { passage: passage.unwrap_or_default().into(), query: query.unwrap_or_default().into() })
    }

    /// What belongs before a text.
    pub(super) fn before(&self, role: Role) -> &str {
        match role {
            Role::Passage => &self.passage,
            Role::Query => &self.query,
        }
    }

    /// The text with what belongs before it.
    pub(super) fn apply(&self, role: Role, text: &str) -> String {
        [self.before(role), text].concat()
    }

    /// What a model's id ends in: nothing where there are no prompts.
    pub(super) fn id_suffix(&self) -> String {
        if *self == Self::default() { String::new() } else { format!("+prompts{VERSION}") }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn families() {
        let cases = [
            ("MultilingualE5Small", "query: "),
            ("nomic-embed-text:latest", "search_query: "),
            ("BAAI/bge-small-en-v1.5", SEARCHING),
            ("BGESmallZHV15", SEARCHING_ZH),
            ("snowflake-arctic-embed2", "query: "),
            ("snowflake-arctic-embed:22m", SEARCHING),
            ("SnowflakeArcticEmbedXSQ", SEARCHING),
            ("text-embedding-3-small", ""),
            ("BGEM3", ""),
            ("all-minilm", ""),
        ];
        for (model, expected) in cases {
            let prompts = Prompts::of(model);
            assert_eq!(prompts.before(Role::Query), expected, "{model}");
            assert_eq!(prompts.id_suffix().is_empty(), expected.is_empty());
        }
        assert_eq!(Prompts::of("MultilingualE5Small").apply(Role::Passage, "x"), "passage: x");
    }
}
