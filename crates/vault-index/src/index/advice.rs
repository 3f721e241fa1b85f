//! The advice of `status`: whether the model reads the language of the notes, and whether it is the requested one.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::time::Duration;

use crate::embed::{Embedder, MULTILINGUAL, ModelName};
use crate::error::{Error, ErrorKind, Result};
use crate::index::Index;
use crate::indexer::Pace;
use crate::models::KnownModel;
use crate::store::{PACE, ReadContents};
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
        let languages = languages(store, embedder.as_ref())?;
        let unknown_share = languages.unknown;
        let found = if unknown_share >= 0.5 {
            Some(format!(
                "in {:.0} % of the passages the model does not know most words: they are ranked by words only",
                100.0 * unknown_share
            ))
        } else if languages.not_read >= 0.5 {
            Some(format!(
                "{:.0} % of the passages are not in English ({}), but the model reads only English: search by meaning finds them poorly, search by words as usual",
                100.0 * languages.not_read,
                languages.others.join(", ")
            ))
        } else {
            None
        };
        if let Some(found) = found {
            advice.push(found + &multilingual(store, unknown_share)?);
        }
        advice.extend(differs.map(|differs| differs.error().one_line() + "; until then search ranks by words only"));
        Ok((unknown_share, advice))
    }
}

/// The proposal of the multilingual model: its commands, their cost, and what it finds less well. Empty for an index that
/// has this model.
fn multilingual(store: &dyn ReadContents, unknown_share: f32) -> Result<String> {
    let has = store.meta("model")?.unwrap_or_default();
    if has == MULTILINGUAL || !cfg!(feature = "minilm") {
        return Ok(String::new());
    }
    let time = match time_to_embed_again(store, &has, unknown_share)? {
        Some(time) => format!("embeds all notes again, in about {} on this machine", about(time)),
        None => "embeds all notes again, and shows the time that is left".to_owned(),
    };
    Ok(format!(
        "; for search by meaning in other languages: vault-index models add {MULTILINGUAL} (shows the size of the download, then asks), then vault-index rebuild --model {MULTILINGUAL} ({time}); it finds English notes less well by meaning"
    ))
}

/// The time that the multilingual model takes for all passages, from the speed of the index's model. `None` if nothing
/// was embedded yet, or by a model whose speed says nothing about that of another.
fn time_to_embed_again(store: &dyn ReadContents, has: &str, unknown_share: f32) -> Result<Option<Duration>> {
    let cost = |name: &str| KnownModel::named(name).map(|known| f32::from(known.cost));
    let has = match has.parse() {
        Ok(ModelName::MiniLm) => Some(1.0),
        Ok(ModelName::Known(name)) => cost(name),
        _ => None,
    };
    let (Some(has), Some(wants)) = (has, cost(MULTILINGUAL)) else { return Ok(None) };
    // Passages that the model does not know took no time, and will.
    let embedded_share = 1.0 - unknown_share;
    if embedded_share < 0.1 {
        return Ok(None);
    }
    let time = Pace::new(store.meta(PACE)?.as_deref()).time(store.whole_size()?);
    Ok(time.map(|time| time.mul_f32(wants / has / embedded_share)))
}

/// `40 s`, `12 min`, `3 h`.
fn about(time: Duration) -> String {
    match time.as_secs() {
        seconds @ 0..100 => format!("{} s", seconds.max(1)),
        seconds @ 100..6_000 => format!("{} min", (seconds + 30) / 60),
        seconds => format!("{} h", (seconds + 1_800) / 3_600),
    }
}

/// Shares of the passages, of a sample.
struct Languages {
    /// In which most words are unknown to the model.
    unknown: f32,
    /// The languages that the model was not made for, most frequent first, and `…` if they are not all.
    others: Vec<&'static str>,
    /// Either of the two.
    not_read: f32,
}

fn languages(store: &dyn ReadContents, embedder: &dyn Embedder) -> Result<Languages> {
    let texts = store.sample_texts((store.passage_count()? / 200).max(1))?;
    let share = |count: usize| count as f32 / texts.len().max(1) as f32;
    let (mut unknown, mut not_read) = (0, 0);
    let mut others: BTreeMap<&str, usize> = BTreeMap::new();
    for text in &texts {
        let is_unknown = embedder.known_share(text) < 0.5;
        let other = if embedder.is_english() { other_language(text) } else { None };
        unknown += usize::from(is_unknown);
        not_read += usize::from(is_unknown || other.is_some());
        other.into_iter().for_each(|name| *others.entry(name).or_default() += 1);
    }
    let mut others: Vec<(&str, usize)> = others.into_iter().collect();
    others.sort_by_key(|(_, count)| Reverse(*count));
    others.truncate(MOST_NAMED);
    let named: usize = others.iter().map(|(_, count)| count).sum();
    let mut others: Vec<&str> = others.into_iter().map(|(name, _)| name).collect();
    if named < not_read {
        others.push("…");
    }
    Ok(Languages { unknown: share(unknown), others, not_read: share(not_read) })
}

/// Whether an error is about the model, so that the index can still be read.
fn is_of_the_model(error: &Error) -> bool {
    matches!(error.kind(), ErrorKind::Model | ErrorKind::OtherModel | ErrorKind::Query)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_rounded_for_a_person() {
        for (seconds, expected) in
            [(0, "1 s"), (99, "99 s"), (100, "2 min"), (5_999, "100 min"), (6_000, "2 h"), (86_400, "24 h")]
        {
            assert_eq!(about(Duration::from_secs(seconds)), expected);
        }
    }
}
