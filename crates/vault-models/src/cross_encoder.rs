//! Cross-encoders: by the names of fastembed, and from a folder.
//!
//! Each pair is a run of its own, on all cores. In a batch, pairs are padded, and dynamically quantised models take one
//! scale for all of them, so a score would depend on its neighbours. The model returns one unbounded number per pair,
//! its logit; the score is its logistic, `1 / (1 + e^-logit)`, as in the training of the models.

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use fastembed::{
    RerankInitOptions, RerankInitOptionsUserDefined, RerankerModel, TextRerank, UserDefinedRerankingModel,
};
use serde_json::Value;

use super::WINDOW;
use super::error::{ModelError, Result, with_causes};
use super::files::ModelFiles;
use super::runtime;

/// The required contents of a user's folder.
const WANTED: &str = "it must be an ONNX export of a cross-encoder: a sequence classifier with one label";

/// A cross-encoder on ONNX Runtime: a model that reads a query and a passage together. Its session is created for the
/// first passage.
pub struct CrossEncoder {
    id: String,
    source: Source,
    session: Mutex<Option<TextRerank>>,
}

enum Source {
    Named { model: RerankerModel, folder: PathBuf },
    Folder { files: ModelFiles, window: usize },
}

impl CrossEncoder {
    /// The names of the models that fastembed knows, ordered.
    pub fn names() -> Vec<String> {
        let models = TextRerank::list_supported_models().into_iter();
        let mut names: Vec<_> = models.map(|info| format!("{:?}", info.model)).collect();
        names.sort();
        names
    }

    /// A model of [`names`](Self::names). It is downloaded to `folder` for the first passage, unless it is there.
    ///
    /// # Errors
    /// When there is no such model, or no ONNX Runtime.
    pub fn named(name: &str, folder: &Path) -> Result<Self> {
        let known = TextRerank::list_supported_models().into_iter().map(|info| info.model);
        let model = known.into_iter().find(|model| format!("{model:?}") == name).ok_or_else(|| {
            ModelError::new(format!("fastembed has no reranker `{name}`"))
                .with_remedy(format!("it has {}", Self::names().join(", ")))
        })?;
        runtime::find()?;
        Ok(Self {
            id: format!("fastembed:{model:?}"),
            source: Source::Named { model, folder: folder.to_path_buf() },
            session: Mutex::new(None),
        })
    }

    /// A model in a folder of the user's: `model.onnx` and its tokenizer.
    ///
    /// # Errors
    /// When files are missing or unsuitable, or there is no ONNX Runtime.
    pub fn in_folder(folder: &Path) -> Result<Self> {
        let files = ModelFiles::open(folder)?;
        let labels = labels(&files.config()?);
        if labels > 1 {
            let message = format!("this model has {labels} labels; a cross-encoder must have one");
            return Err(ModelError::new(message).at(folder).with_remedy(WANTED).into());
        }
        // Some tokenizers give 1e30 to mean "no limit".
        let window = files.tokenizer_window()?.map_or(WINDOW, |tokens| tokens as usize).clamp(1, WINDOW);
        runtime::find()?;
        Ok(Self {
            id: format!("onnx:{}", folder.display()),
            source: Source::Folder { files, window },
            session: Mutex::new(None),
        })
    }

    /// `fastembed:NAME`, or `onnx:` with the folder's path.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// Returns one score for each passage, in their order: 0 to 1, higher for a passage that answers the query better. A
    /// score depends only on its pair. Pairs that are too long are truncated. Without passages, nothing is loaded.
    ///
    /// # Errors
    /// When the model cannot be downloaded, loaded or run.
    pub fn score(&self, query: &str, passages: &[&str]) -> Result<Vec<f32>> {
        if passages.is_empty() {
            return Ok(Vec::new());
        }
        Ok(self.logits(query, passages)?.into_iter().map(logistic).collect())
    }

    fn make_session(&self) -> Result<TextRerank> {
        Ok(match &self.source {
            Source::Named { model, folder } => {
                let options = RerankInitOptions::new(model.clone())
                    .with_cache_dir(folder.clone())
                    .with_max_length(WINDOW)
                    .with_show_download_progress(false);
                TextRerank::try_new(options).map_err(|error| {
                    ModelError::new(format!("the reranker `{}` could not be loaded", self.id))
                        .because(with_causes(&error))
                        .with_remedy(
                            "it is downloaded once: check the network, or name a folder that has it as `onnx:DIR`",
                        )
                })?
            }
            Source::Folder { files, window } => {
                let model = UserDefinedRerankingModel::new(files.model().to_path_buf(), files.tokenizer()?);
                let options = RerankInitOptionsUserDefined::new().with_max_length(*window);
                TextRerank::try_new_from_user_defined(model, options).map_err(|error| {
                    ModelError::new("the reranker could not be loaded")
                        .at(files.folder())
                        .because(with_causes(&error))
                        .with_remedy(WANTED)
                })?
            }
        })
    }

    /// Returns the logits, in the order of the passages.
    fn logits(&self, query: &str, passages: &[&str]) -> Result<Vec<f32>> {
        let mut session = self.session.lock().unwrap_or_else(PoisonError::into_inner);
        let session = match &mut *session {
            Some(session) => session,
            none => none.insert(self.make_session()?),
        };
        let failed = |why: String| {
            ModelError::new(format!("the reranker `{}` failed", self.id)).because(why).with_remedy(WANTED)
        };
        // fastembed assumes that the logits are a matrix of pairs and labels, and panics otherwise.
        let ranked = catch_unwind(AssertUnwindSafe(|| session.rerank(query, passages, false, Some(1))))
            .map_err(|_| failed("its logits are not a matrix of pairs and labels".to_owned()))?
            .map_err(|error| failed(with_causes(&error)))?;
        let mut logits = vec![f32::NAN; passages.len()];
        for result in &ranked {
            logits[result.index] = result.score;
        }
        Ok(logits)
    }
}

impl fmt::Debug for CrossEncoder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CrossEncoder").field("id", &self.id).finish()
    }
}

/// The number of classes in `config.json`, which names each of them unless there is only one.
fn labels(config: &Value) -> usize {
    let named = config["id2label"].as_object().map(|names| names.len());
    named.or_else(|| config["num_labels"].as_u64().map(|count| count as usize)).unwrap_or(1)
}

/// Maps every number to 0 to 1; NaN stays NaN.
fn logistic(logit: f32) -> f32 {
    (1.0 / (1.0 + (-f64::from(logit)).exp())) as f32
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Error;
    use crate::tests::{has_runtime, testdata};

    const TINY: &str = "tiny-cross-encoder";

    /// The files of the tiny model in a separate folder, to be damaged.
    fn copy() -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        for name in ["model.onnx", "tokenizer.json", "tokenizer_config.json", "config.json"] {
            std::fs::copy(testdata(TINY).join(name), folder.path().join(name)).unwrap();
        }
        folder
    }

    /// The error of a model, which is about its folder or its id.
    fn model_error<T: fmt::Debug>(result: Result<T>) -> ModelError {
        match result.unwrap_err() {
            Error::Model(error) => error,
            other => panic!("{other}"),
        }
    }

    fn refused(folder: &Path) -> String {
        let error = model_error(CrossEncoder::in_folder(folder));
        assert_eq!(error.path.as_deref(), Some(folder));
        error.to_string()
    }

    #[test]
    fn scores_are_the_logistic_of_the_logit() {
        for (logit, score) in [(0.0, 0.5), (f32::INFINITY, 1.0), (f32::NEG_INFINITY, 0.0), (-500.0, 0.0)] {
            assert_eq!(logistic(logit), score);
        }
        assert!((logistic(3.0) - 0.952_574_1).abs() < 1e-6 && logistic(2.0) < logistic(3.0));
        assert!(logistic(f32::NAN).is_nan());
    }

    #[test]
    fn the_names_are_fastembeds() {
        assert!(CrossEncoder::names().contains(&format!("{:?}", RerankerModel::default())));
        let error = CrossEncoder::named("NoSuchModel", Path::new("downloads")).unwrap_err();
        assert!(error.to_string().contains("(it has BGERerankerBase, "), "{error}");
    }

    #[test]
    fn a_folder_is_looked_through_before_anything_is_loaded() {
        let folder = copy();
        std::fs::write(folder.path().join("config.json"), r#"{"id2label": {"0": "no", "1": "yes"}}"#).unwrap();
        let says = refused(folder.path());
        assert!(says.contains("2 labels") && says.contains("one label"), "{says}");
        std::fs::remove_file(folder.path().join("tokenizer.json")).unwrap();
        assert!(refused(folder.path()).contains("no tokenizer.json here"));
    }

    /// The tiny model's logit is the number of pairs of words, one of the query and one of the passage, that have the
    /// same subject, minus 3.
    #[test]
    fn a_cross_encoder_of_ones_own() {
        if !has_runtime() {
            return;
        }
        let model = CrossEncoder::in_folder(&testdata(TINY)).unwrap();
        assert!(model.score("prune", &[]).unwrap().is_empty());
        assert!(model.session.lock().unwrap().is_none(), "nothing is loaded before it is needed");

        let passages = ["the bank", "apple branches in winter", "", "apple pasta", "garden"];
        let scores = model.score("how to prune trees", &passages).unwrap();
        for (passage, (score, logit)) in passages.iter().zip(scores.iter().zip([-3.0, 3.0, -3.0, -1.0, -1.0])) {
            assert!((score - logistic(logit)).abs() < 1e-6, "{passage}: {score}");
        }
        let alone = model.score("how to prune trees", &passages[1..2]).unwrap();
        assert_eq!(alone[0], scores[1], "the same bits, whatever stands beside it");
        assert_ne!(model.score("money", &["the bank"]).unwrap()[0], scores[0]);
        // 32 tokens are read; the rest of the longer text is truncated.
        let long = "the ".repeat(40);
        let cut = model.score("prune", &[&(long.clone() + "apple"), &("apple ".to_owned() + &long)]).unwrap();
        assert!((cut[0] - logistic(-3.0)).abs() < 1e-6 && (cut[1] - logistic(-2.0)).abs() < 1e-6, "{cut:?}");
    }

    #[test]
    fn what_is_no_cross_encoder_is_said() {
        if !has_runtime() {
            return;
        }
        let spoilt = copy();
        for (other, says) in [("tiny-onnx/model.onnx", "logits"), ("tiny-cross-encoder/flat.onnx", "not a matrix")] {
            std::fs::copy(testdata(other), spoilt.path().join("model.onnx")).unwrap();
            let error = model_error(CrossEncoder::in_folder(spoilt.path()).unwrap().score("prune", &["apple"]));
            let cause = error.cause.as_ref().expect("a cause").to_string();
            assert!(cause.contains(says) && error.to_string().contains("cross-encoder"), "{error}: {cause}");
        }
        std::fs::write(spoilt.path().join("model.onnx"), "none").unwrap();
        let error = model_error(CrossEncoder::in_folder(spoilt.path()).unwrap().score("prune", &["apple"]));
        assert_eq!(error.path.as_deref(), Some(spoilt.path()));
        assert!(error.to_string().contains("could not be loaded"), "{error}");
    }
}
