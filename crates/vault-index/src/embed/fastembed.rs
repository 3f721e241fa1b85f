//! Models on ONNX Runtime: `fastembed:NAME` and `onnx:DIR`.
//!
//! Tokens are estimated when notes are cut, so that neither runtime nor tokenizer is needed before the first embedding.

use std::path::Path;

use vault_models::EmbeddingModel;

use super::prompts::Prompts;
use super::{Embedder, LoadOptions, Role, to_unit, token_estimate};
use crate::chunk::TokenCount;
use crate::dirs::downloads_folder;
use crate::error::{Error, Result};

const SPECIAL_TOKENS: usize = 2;

/// A model with the prompts that it expects. It is loaded, and downloaded if necessary, for the first text.
#[derive(Debug)]
pub(super) struct OnnxModel {
    id: String,
    model: EmbeddingModel,
    prompts: Prompts,
}

/// A model from fastembed's list.
pub(super) fn named(name: &str, options: &LoadOptions) -> Result<OnnxModel> {
    let downloads = downloads_folder(options.model_folder.as_deref())?;
    let model = EmbeddingModel::named(name, &downloads).map_err(|error| {
        let error = Error::from(error);
        match error.remedy() {
            Some(_) => error,
            None => error.with_remedy("`vault-index models` lists the names"),
        }
    })?;
    Ok(OnnxModel::new(model, Prompts::of(name)))
}

/// A model in a user's folder. Prompts that it does not name are those of the model with the folder's name.
pub(super) fn folder(folder: &Path, options: &LoadOptions) -> Result<OnnxModel> {
    let model = EmbeddingModel::in_folder(folder, options.dimensions)?;
    let prompts = match model.prompts().cloned() {
        Some(named) => Prompts::new(named.passage, named.query),
        None => Prompts::of(&folder.file_name().unwrap_or_default().to_string_lossy()),
    };
    Ok(OnnxModel::new(model, prompts))
}

impl OnnxModel {
    fn new(model: EmbeddingModel, prompts: Prompts) -> Self {
        Self { id: [model.id(), &prompts.id_suffix()].concat(), model, prompts }
    }
}

impl TokenCount for OnnxModel {
    /// An upper estimate, because the tokenizer is not loaded before the model.
    fn count(&self, text: &str) -> usize {
        token_estimate::tokens(text)
    }
}

impl Embedder for OnnxModel {
    fn id(&self) -> &str {
        &self.id
    }

    fn dimensions(&self) -> usize {
        self.model.dimensions()
    }

    fn max_tokens(&self) -> usize {
        let reserved = SPECIAL_TOKENS + token_estimate::tokens(self.prompts.before(Role::Passage));
        self.model.window().saturating_sub(reserved).max(1)
    }

    /// Blank texts get zeros, because some tokenizers return no tokens for them, on which models fail.
    fn embed(&self, texts: &[&str], role: Role) -> Result<Vec<Vec<f32>>> {
        let is_blank = |text: &str| text.trim().is_empty();
        let filled: Vec<String> =
            texts.iter().filter(|text| !is_blank(text)).map(|text| self.prompts.apply(role, text)).collect();
        let mut vectors = self.model.embed(&filled)?.into_iter();
        let zeros = || vec![0.0; self.dimensions()];
        let vector = |text: &&str| match is_blank(text) {
            true => Ok(zeros()),
            false => to_unit(vectors.next().unwrap_or_default(), self.dimensions()),
        };
        texts.iter().map(vector).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::ErrorKind;

    const TINY: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../vault-models/testdata/tiny-onnx");

    /// Whether `ORT_DYLIB_PATH` names a runtime. A test that needs one fails if the variable is not set, and is skipped if
    /// it is empty.
    fn has_runtime() -> bool {
        !std::env::var_os("ORT_DYLIB_PATH").expect("ORT_DYLIB_PATH names an ONNX Runtime, or nothing").is_empty()
    }

    fn load(folder: &Path, dimensions: usize) -> OnnxModel {
        super::folder(folder, &LoadOptions { dimensions: Some(dimensions), ..LoadOptions::default() }).unwrap()
    }

    #[test]
    fn vectors_have_length_one_and_blank_texts_zeros() {
        if !has_runtime() {
            return;
        }
        let model = load(Path::new(TINY), 16);
        assert_eq!((model.dimensions(), model.max_tokens()), (16, 30));
        let vectors = model.embed(&["", "apple", " \n", "the bank"], Role::Passage).unwrap();
        let length = |vector: &Vec<f32>| vector.iter().map(|x| x * x).sum::<f32>();
        let lengths = vectors.iter().map(length);
        assert!(lengths.zip([0.0, 1.0, 0.0, 1.0]).all(|(length, expected)| (length - expected).abs() < 1e-5));
        assert_eq!(vectors[1], model.embed(&["apple"], Role::Query).unwrap()[0]);

        let wrong = load(Path::new(TINY), 8).embed(&["bank"], Role::Query).unwrap_err();
        assert!(wrong.to_string().contains("16 dimensions instead of 8"), "{wrong}");
    }

    #[test]
    fn prompts_are_those_of_the_folder_else_those_of_its_name() {
        if !has_runtime() {
            return;
        }
        let dir = tempfile::tempdir().unwrap();
        let folder = dir.path().join("multilingual-e5-small");
        std::fs::create_dir(&folder).unwrap();
        for name in ["model.onnx", "tokenizer.json", "tokenizer_config.json", "config.json"] {
            std::fs::copy(Path::new(TINY).join(name), folder.join(name)).unwrap();
        }
        let by_name = load(&folder, 16);
        assert_eq!(by_name.prompts.before(Role::Query), "query: ");
        assert!(by_name.id().ends_with("+prompts1") && by_name.id().starts_with("onnx:multilingual-e5-small-"));
        assert!(by_name.max_tokens() < 30, "the prompt is a part of the text");

        let config = r#"{"prompts": {"query": "bank ", "document": "apple "}}"#;
        std::fs::write(folder.join("config_sentence_transformers.json"), config).unwrap();
        let named = load(&folder, 16);
        assert_ne!(named.id(), by_name.id());
        let plain = load(Path::new(TINY), 16);
        let embed = |model: &OnnxModel, text, role| model.embed(&[text], role).unwrap();
        assert_eq!(embed(&named, "money", Role::Query), embed(&plain, "bank money", Role::Query));
        assert_eq!(embed(&named, "money", Role::Passage), embed(&plain, "apple money", Role::Query));
    }

    /// Ids are stored in indexes, so a change of one embeds every note again.
    #[test]
    fn ids_stay() {
        if !has_runtime() {
            return;
        }
        assert_eq!(load(Path::new(TINY), 16).id(), "onnx:tiny-onnx-283e6cb392f18467");
        let named = |name| named(name, &LoadOptions::default()).unwrap().id;
        assert_eq!(named("AllMiniLML6V2"), "fastembed:AllMiniLML6V2");
        assert_eq!(named("MultilingualE5Small"), "fastembed:MultilingualE5Small+prompts1");
    }

    #[test]
    fn errors_keep_their_kind_path_and_remedy() {
        let dir = tempfile::tempdir().unwrap();
        let error = || folder(dir.path(), &LoadOptions::default()).unwrap_err();
        assert_eq!((error().kind(), error().path()), (ErrorKind::Model, Some(dir.path())));
        assert!(error().remedy().unwrap().contains("onnx:DIR takes a folder with model.onnx"), "{}", error());
        for name in ["model.onnx", "tokenizer.json", "tokenizer_config.json", "config.json"] {
            std::fs::copy(Path::new(TINY).join(name), dir.path().join(name)).unwrap();
        }
        let unreadable = dir.path().join("sentence_bert_config.json");
        std::fs::create_dir(&unreadable).unwrap();
        assert_eq!((error().kind(), error().path()), (ErrorKind::Io, Some(&*unreadable)));
        std::fs::remove_dir(&unreadable).unwrap();
        std::fs::write(&unreadable, "{").unwrap();
        assert_eq!((error().kind(), error().message()), (ErrorKind::Model, "this is not JSON"));
        assert!(error().one_line().contains("EOF"), "its cause: {}", error().one_line());
    }

    #[test]
    fn an_unknown_name_says_where_the_names_are() {
        let error = |name| named(name, &LoadOptions::default()).unwrap_err().to_string();
        assert!(error("NoSuchModel").contains("`vault-index models` lists the names"));
        assert!(error("multilingual-e5-small").contains("did you mean `fastembed:MultilingualE5Small`?"));
        // The advice of `vault-index status`.
        assert!(crate::models::KnownModel::named(crate::embed::MULTILINGUAL).is_some());
    }
}
