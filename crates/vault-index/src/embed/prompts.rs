//! The prompts that some models expect before a text to distinguish passages from queries, from their model cards.

use std::borrow::Cow;

use super::Role;

/// Increased whenever an entry below changes, because then the same text gets another vector.
const VERSION: u32 = 1;

/// The prompt before each kind of text.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Prompts {
    passage: Cow<'static, str>,
    query: Cow<'static, str>,
}

const SEARCHING: &str = "Represent this sentence for searching relevant passages: ";
const SEARCHING_ZH: &str = "为这个句子生成表示以用于检索相关文章：";
const INSTRUCT: &str = "Instruct: Given a web search query, retrieve relevant passages that answer the query\nQuery:";

/// A family, as it appears in a model's name in lower case without punctuation, and its prompts for a passage and for a
/// query. The first match counts.
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
    /// The prompts of a model, by its name; empty for an unknown model.
    pub(super) fn of(model: &str) -> Self {
        // The part after a colon is a size or quantisation: snowflake-arctic-embed:22m is not an embed2.
        let name = model.split(':').next().unwrap_or(model);
        let plain: String = name.chars().filter(char::is_ascii_alphanumeric).map(|c| c.to_ascii_lowercase()).collect();
        let found = FAMILIES.iter().find(|(family, ..)| plain.contains(family));
        found.map_or_else(Self::default, |&(_, passage, query)| Self { passage: passage.into(), query: query.into() })
    }

    /// The prompts that a model's own files name.
    #[cfg(feature = "fastembed")]
    pub(super) fn new(passage: String, query: String) -> Self {
        Self { passage: passage.into(), query: query.into() }
    }

    /// The prompt before a text.
    pub(super) fn before(&self, role: Role) -> &str {
        match role {
            Role::Passage => &self.passage,
            Role::Query => &self.query,
        }
    }

    /// The text with its prompt.
    pub(super) fn apply(&self, role: Role, text: &str) -> String {
        [self.before(role), text].concat()
    }

    /// The suffix of the model's id, which is empty if there are no prompts.
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
