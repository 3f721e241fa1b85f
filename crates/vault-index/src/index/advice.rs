//! The advice of `status`: whether the model reads the language of the notes, and whether it is the requested one.

use std::collections::BTreeMap;

use crate::embed::{Embedder, MULTILINGUAL};
use crate::error::{Error, ErrorKind, Result};
use crate::index::Index;
use crate::store::ReadContents;
use crate::terms::other_language;

/// The number of languages to name, most frequent first.
const MOST_NAMED: usize = 3;

impl Index {
    /// The share of passages in which most words are unknown to the model, and advice for the reader.
    pub(super) fn advice(&self, store: &dyn ReadContents) -> Result<(f32, Vec<String>)> {
        let model = self.check_model(store).and_then(|()| Ok((self.embedder(store)?, self.differs(store)?)));
        let (embedder, differs) = match model {
            Ok(model) => model,
            // The index can be described without its model.
            Err(error) if is_of_the_model(&error) => return Ok((0.0, vec![error.one_line()])),
            Err(error) => return Err(error),
        };
        let mut advice = Vec::new();
        let (unknown_share, others) = languages(store, embedder.as_ref())?;
        let other_share: f32 = others.iter().map(|(_, share)| share).sum();
        let remedy = match cfg!(feature = "minilm") {
            true => format!(
                "; for search by meaning in other languages: vault-index models add {MULTILINGUAL}, then vault-index rebuild --model {MULTILINGUAL}; it finds English notes less well"
            ),
            false => String::new(),
        };
        if unknown_share >= 0.5 {
            advice.push(format!(
                "in {:.0} % of the passages the model does not know most words: they are ranked by words only{remedy}",
                100.0 * unknown_share
            ));
        } else if other_share >= 0.5 {
            let names: Vec<&str> = others.iter().take(MOST_NAMED).map(|(name, _)| *name).collect();
            advice.push(format!(
                "{:.0} % of the passages are in {}, but the model reads only English: search by meaning finds them poorly, search by words as usual{remedy}",
                100.0 * other_share,
                names.join(", ")
            ));
        }
        advice.extend(differs.map(|differs| differs.error().one_line() + "; until then search ranks by words only"));
        Ok((unknown_share, advice))
    }
}

/// The share of passages (of a sample) in which most words are unknown to the model, and the languages that it was not
/// made for with their shares, most frequent first.
fn languages(store: &dyn ReadContents, embedder: &dyn Embedder) -> Result<(f32, Vec<(&'static str, f32)>)> {
    let texts = store.sample_texts((store.passage_count()? / 200).max(1))?;
    let share = |count: usize| count as f32 / texts.len().max(1) as f32;
    let unknown = texts.iter().filter(|text| embedder.known_share(text) < 0.5).count();
    let mut others: BTreeMap<&str, usize> = BTreeMap::new();
    if embedder.is_english() {
        texts.iter().filter_map(|text| other_language(text)).for_each(|name| *others.entry(name).or_default() += 1);
    }
    let mut others: Vec<(&str, f32)> = others.into_iter().map(|(name, count)| (name, share(count))).collect();
    others.sort_by(|a, b| b.1.total_cmp(&a.1));
    Ok((share(unknown), others))
}

/// Whether an error is about the model, so that the index can still be read.
fn is_of_the_model(error: &Error) -> bool {
    matches!(error.kind(), ErrorKind::Model | ErrorKind::OtherModel | ErrorKind::Query)
}
