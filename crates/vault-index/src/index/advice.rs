//! The advice of `status`: whether the model reads the language of the notes, and whether it is the requested one.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::sync::OnceLock;
use std::thread::available_parallelism;
use std::time::{Duration, Instant};

use crate::embed::{Embedder, LoadOptions, MULTILINGUAL, ModelName, Role};
use crate::error::{Error, ErrorKind, Result};
use crate::index::Index;
use crate::models::KnownModel;
use crate::store::{ReadContents, least_size};
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
            advice.push(found + &multilingual(store, languages.bytes)?);
        }
        advice.extend(differs.map(|differs| differs.error().one_line() + "; until then search ranks by words only"));
        Ok((unknown_share, advice))
    }
}

/// The proposal of the multilingual model: its commands, their cost, and what it finds less well. Empty for an index that
/// has this model. The passages have this many bytes.
fn multilingual(store: &dyn ReadContents, bytes: u64) -> Result<String> {
    if store.meta("model")?.as_deref() == Some(MULTILINGUAL) || !cfg!(feature = "minilm") {
        return Ok(String::new());
    }
    let texts = store.passage_count()? + store.note_count()?;
    let time = time_to_embed(bytes / BYTES_A_TOKEN + least_size(texts))?;
    Ok(format!(
        "; for search by meaning in other languages: vault-index models add {MULTILINGUAL} (shows the size of the download, then asks), then vault-index rebuild --model {MULTILINGUAL} (embeds all notes again, in about {} on this machine); it finds English notes less well by meaning",
        about(time)
    ))
}

/// The bytes of a token of the multilingual model: 4.0 to 4.3 in English, German, Spanish, Chinese, Japanese and Korean,
/// 6.3 in Russian and Arabic, 11 in Thai. The tokens that the index counts are those of its own model, which takes a word in
/// an unknown script, however long, for one.
const BYTES_A_TOKEN: u64 = 4;

/// The time that the multilingual model takes for texts of this many tokens on this machine. The speed that the index stores
/// says nothing about texts that its model cannot read, because it skips them.
fn time_to_embed(tokens: u64) -> Result<Duration> {
    let cost = KnownModel::named(MULTILINGUAL).map_or(1.0, |model| f64::from(model.cost));
    Ok(Duration::from_secs_f64(cost * tokens as f64 * seconds_a_token()?))
}

/// The time that the bundled model takes for a token on this machine. It is measured on a few texts, once by a
/// process, because some ask for the status again and again.
fn seconds_a_token() -> Result<f64> {
    static MEASURED: OnceLock<f64> = OnceLock::new();
    if let Some(measured) = MEASURED.get() {
        return Ok(*measured);
    }
    let bundled = ModelName::MiniLm.load(&LoadOptions::default())?;
    // About as long as passages; different ones, because equal ones are computed once.
    let text = |n| format!("Note {n}: {}", "A heron stands in the shallow water and waits for a fish. ".repeat(8));
    let texts: Vec<String> = (0..2 * available_parallelism().map_or(1, |threads| threads.get())).map(text).collect();
    let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
    // The first text loads the weights.
    bundled.embed(&["heron"], Role::Passage)?;
    let start = Instant::now();
    bundled.embed(&texts, Role::Passage)?;
    let took = start.elapsed().as_secs_f64();
    let tokens: usize = texts.iter().map(|text| bundled.count(text)).sum();
    Ok(*MEASURED.get_or_init(|| took / tokens as f64))
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
    /// The length of all passages, estimated.
    bytes: u64,
}

fn languages(store: &dyn ReadContents, embedder: &dyn Embedder) -> Result<Languages> {
    let passages = store.passage_count()?;
    let texts = store.sample_texts((passages / 200).max(1))?;
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
    let bytes = texts.iter().map(String::len).sum::<usize>() * passages / texts.len().max(1);
    Ok(Languages { unknown: share(unknown), others, not_read: share(not_read), bytes: bytes as u64 })
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
