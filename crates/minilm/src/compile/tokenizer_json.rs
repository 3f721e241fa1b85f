//! The tables of a tokenizer from its `tokenizer.json`, if it is of a kind that this crate runs to the last id.
//!
//! Whatever it says that would change an id and is not supported is an error, never ignored.

use std::path::Path;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;

use super::json_file;
use crate::WordPiece;
use crate::charsmap::Charsmap;
use crate::error::ModelError;
use crate::model_file::TokenizerTables;
use crate::tokenizer::Tokenizer;
use crate::trie::{self, Trie};
use crate::unigram::{NormalizationStep, SpecialToken, Unigram, UnigramRules};
use crate::vocabulary::{LONGEST_TOKEN, MOST_TOKENS};
use crate::wordpiece::SPECIAL;

/// A tokenizer with its tables, as they go to a model's file.
pub(super) enum CompiledTokenizer {
    WordPiece { text: String, tokenizer: Box<WordPiece> },
    Unigram { pieces: Vec<[u32; 2]>, scores: Vec<f64>, charsmap: CharsmapTables, rules: UnigramRules },
}

/// The units of a charsmap and its replacements.
#[derive(Default)]
pub(super) struct CharsmapTables {
    units: Vec<u32>,
    replacements: Vec<u8>,
}

impl CompiledTokenizer {
    /// The least number of words that a model with these ids has.
    pub(super) fn tokens(&self) -> usize {
        match self {
            CompiledTokenizer::WordPiece { text, .. } => text.lines().count(),
            CompiledTokenizer::Unigram { scores, rules, .. } => {
                let special = rules.special.iter().map(|special| special.id).chain([rules.start, rules.end]).max();
                scores.len().max(special.map_or(0, |id| id as usize + 1))
            }
        }
    }

    pub(super) fn tokenizer(&self) -> Tokenizer<'_> {
        match self {
            CompiledTokenizer::WordPiece { tokenizer, .. } => Tokenizer::WordPiece(tokenizer),
            CompiledTokenizer::Unigram { pieces, scores, charsmap, rules } => {
                let charsmap = Charsmap::new(&charsmap.units, &charsmap.replacements);
                Tokenizer::Unigram(Unigram { rules, charsmap, pieces: Trie(pieces), scores })
            }
        }
    }

    /// The tables' bytes, in the order in which a model's file has them.
    pub(super) fn bytes(&self) -> Vec<Vec<u8>> {
        match self {
            CompiledTokenizer::WordPiece { text, .. } => vec![text.clone().into_bytes()],
            CompiledTokenizer::Unigram { pieces, scores, charsmap, .. } => vec![
                pieces.iter().flatten().flat_map(|number| number.to_le_bytes()).collect(),
                scores.iter().flat_map(|score| score.to_le_bytes()).collect(),
                charsmap.units.iter().flat_map(|unit| unit.to_le_bytes()).collect(),
                charsmap.replacements.clone(),
            ],
        }
    }

    pub(super) fn tables(&self) -> TokenizerTables {
        let lengths: Vec<usize> = self.bytes().iter().map(Vec::len).collect();
        match self {
            CompiledTokenizer::WordPiece { .. } => TokenizerTables::WordPiece { vocabulary: lengths[0] },
            CompiledTokenizer::Unigram { rules, .. } => TokenizerTables::Unigram {
                pieces: lengths[0],
                scores: lengths[1],
                charsmap: lengths[2],
                replacements: lengths[3],
                rules: rules.clone(),
            },
        }
    }
}

type Result<T, E = String> = std::result::Result<T, E>;

pub(super) fn compile(path: &Path) -> Result<CompiledTokenizer, ModelError> {
    let json = json_file::read(path)?;
    let compiled = match json["model"]["type"].as_str() {
        Some("WordPiece") => wordpiece(&json),
        Some("Unigram") => unigram(&json),
        other => Err(format!("a tokenizer of kind {} is not supported", other.unwrap_or("unknown"))),
    };
    compiled.map_err(|what| ModelError::unsupported(path, what))
}

/// An error unless a part of the file is as expected.
fn expect(what: &str, value: &Value, is_expected: bool) -> Result<()> {
    if is_expected { Ok(()) } else { Err(format!("the tokenizer's {what} is not supported: {value}")) }
}

fn wordpiece(json: &Value) -> Result<CompiledTokenizer> {
    let (model, normalizer) = (&json["model"], &json["normalizer"]);
    let unlike = |key: &str, value: bool| normalizer[key].as_bool().is_some_and(|found| found != value);
    let is_bert = normalizer["type"] == "BertNormalizer"
        && normalizer["lowercase"] == true
        && !["clean_text", "handle_chinese_chars", "strip_accents"].iter().any(|key| unlike(key, true));
    expect("normalizer", normalizer, is_bert)?;
    expect("pre_tokenizer", &json["pre_tokenizer"], json["pre_tokenizer"]["type"] == "BertPreTokenizer")?;
    let is_usual = model["unk_token"] == "[UNK]"
        && model["continuing_subword_prefix"] == "##"
        && model["max_input_chars_per_word"].as_u64().is_none_or(|most| most == 100);
    if !is_usual {
        return Err("the tokenizer's unknown token, prefix or longest word is not supported".to_owned());
    }
    let vocabulary = model["vocab"].as_object().ok_or("the tokenizer has no vocabulary")?;
    if vocabulary.len() > MOST_TOKENS {
        return Err(format!("a vocabulary of {} pieces is not supported; {MOST_TOKENS} are", vocabulary.len()));
    }
    let mut lines = vec![""; vocabulary.len()];
    for (token, id) in vocabulary {
        let line = id.as_u64().and_then(|id| lines.get_mut(id as usize));
        let line = line.filter(|line| line.is_empty()).ok_or("the ids of the vocabulary have gaps")?;
        if token.is_empty() || token.contains('\n') || token.len() > LONGEST_TOKEN {
            return Err(format!("the piece {token:?} is not supported"));
        }
        *line = token;
    }
    if let Some(missing) = SPECIAL.iter().find(|special| !vocabulary.contains_key(**special)) {
        return Err(format!("the vocabulary has no {missing}"));
    }
    for added in json["added_tokens"].as_array().into_iter().flatten() {
        let is_known = added["content"].as_str().is_some_and(|text| SPECIAL.contains(&text));
        let is_plain = ["lstrip", "rstrip", "single_word"].iter().all(|key| added[key] != true);
        expect("added token", added, is_known && is_plain)?;
    }
    let special = |name: &str| vocabulary.get(name).and_then(Value::as_u64);
    let ends = ends_of(&json["post_processor"])?;
    let is_usual = [Some(u64::from(ends[0])), Some(u64::from(ends[1]))] == ["[CLS]", "[SEP]"].map(special);
    expect("post_processor", &json["post_processor"], is_usual)?;
    let text = lines.iter().flat_map(|line| [line, "\n"]).collect::<String>();
    Ok(CompiledTokenizer::WordPiece { tokenizer: Box::new(WordPiece::new(&text)), text })
}

fn unigram(json: &Value) -> Result<CompiledTokenizer> {
    let model = &json["model"];
    expect("byte_fallback", &model["byte_fallback"], model["byte_fallback"] != true)?;
    let vocabulary = model["vocab"].as_array().ok_or("the tokenizer has no vocabulary")?;
    let unknown = model["unk_id"].as_u64().filter(|id| (*id as usize) < vocabulary.len());
    let unknown = unknown.ok_or("the tokenizer has no unknown token")? as u32;
    let mut pieces = Vec::with_capacity(vocabulary.len());
    let mut scores = Vec::with_capacity(vocabulary.len());
    for (id, entry) in vocabulary.iter().enumerate() {
        let (piece, score) = (entry[0].as_str(), entry[1].as_f64().filter(|score| score.is_finite()));
        let (Some(piece), Some(score)) = (piece, score) else {
            return Err(format!("entry {id} of the vocabulary is not a piece with a score: {entry}"));
        };
        expect("piece", entry, !piece.is_empty() && !piece.contains('\0'))?;
        pieces.push((piece.as_bytes(), id as u32));
        scores.push(score);
    }
    pieces.sort_unstable();
    if let Some(twice) = pieces.windows(2).find(|two| two[0].0 == two[1].0) {
        return Err(format!("the piece {:?} is in the vocabulary twice", String::from_utf8_lossy(twice[0].0)));
    }
    let mut charsmap = CharsmapTables::default();
    let steps = steps(&json["normalizer"], &mut charsmap)?;
    let mut special = Vec::new();
    for added in json["added_tokens"].as_array().into_iter().flatten() {
        let (text, id) = (added["content"].as_str(), added["id"].as_u64());
        let (Some(text), Some(id)) = (text, id.and_then(|id| u32::try_from(id).ok())) else {
            return Err(format!("an added token without text or id: {added}"));
        };
        // Tokens are looked for where a `<` is.
        expect("added token", added, text.starts_with('<') && added["single_word"] != true)?;
        let (takes_left, takes_right) = (added["lstrip"] == true, added["rstrip"] == true);
        special.push(SpecialToken { text: text.to_owned(), id, takes_left, takes_right });
    }
    let [start, end] = ends_of(&json["post_processor"])?;
    let rules = UnigramRules {
        steps,
        splits_at_white_space: splits_at_white_space(&json["pre_tokenizer"])?,
        least_score: scores.iter().copied().fold(f64::INFINITY, f64::min),
        unknown,
        start,
        end,
        special,
    };
    Ok(CompiledTokenizer::Unigram { pieces: trie::build(&pieces), scores, charsmap, rules })
}

/// Reads a normalizer; the rules of a charsmap and its replacements go to `charsmap`.
fn steps(json: &Value, charsmap: &mut CharsmapTables) -> Result<Vec<NormalizationStep>> {
    match json["type"].as_str() {
        None if json.is_null() => Ok(Vec::new()),
        Some("Sequence") => {
            let parts = json["normalizers"].as_array().map(Vec::as_slice).unwrap_or_default();
            let steps = parts.iter().map(|part| steps(part, charsmap)).collect::<Result<Vec<_>>>()?;
            Ok(steps.concat())
        }
        Some("Precompiled") => {
            let text = json["precompiled_charsmap"].as_str().filter(|_| charsmap.units.is_empty());
            let bytes = text.and_then(|text| STANDARD.decode(text).ok());
            let split = bytes.as_deref().and_then(|bytes| {
                let (length, rest) = bytes.split_first_chunk::<4>()?;
                rest.split_at_checked(u32::from_le_bytes(*length) as usize)
            });
            let (units, replacements) = split.ok_or("the tokenizer's precompiled_charsmap is damaged")?;
            if !units.len().is_multiple_of(4) || std::str::from_utf8(replacements).is_err() {
                return Err("the tokenizer's precompiled_charsmap is damaged".to_owned());
            }
            let unit = |four: &[u8; 4]| u32::from_le_bytes(*four);
            *charsmap = CharsmapTables {
                units: units.as_chunks().0.iter().map(unit).collect(),
                replacements: replacements.to_vec(),
            };
            Ok(vec![NormalizationStep::Charsmap])
        }
        Some("Strip") => {
            let side = |key: &str| json[key].as_bool().unwrap_or(true);
            Ok(vec![NormalizationStep::Strip(side("strip_left"), side("strip_right"))])
        }
        Some("Replace") => {
            expect("normalizer", json, json["pattern"]["Regex"] == " {2,}")?;
            let by = json["content"].as_str().ok_or("the tokenizer's normalizer replaces spaces by nothing")?;
            Ok(vec![NormalizationStep::ReplaceSpaces(by.to_owned())])
        }
        _ => Err(format!("the tokenizer's normalizer is not supported: {json}")),
    }
}

/// Reads a pre-tokenizer: words with ▁ before, perhaps after a split at white space.
fn splits_at_white_space(json: &Value) -> Result<bool> {
    let is_metaspace = |json: &Value| {
        let always = json["prepend_scheme"] == "always"
            || (json["prepend_scheme"].is_null() && json["add_prefix_space"] != false);
        json["type"] == "Metaspace" && json["replacement"] == "▁" && always && json["split"] != false
    };
    let parts = json["pretokenizers"].as_array().map(Vec::as_slice).unwrap_or_default();
    match parts {
        [split, metaspace] if split["type"] == "WhitespaceSplit" && is_metaspace(metaspace) => Ok(true),
        [metaspace] if is_metaspace(metaspace) => Ok(false),
        [] if is_metaspace(json) => Ok(false),
        _ => Err(format!("the tokenizer's pre_tokenizer is not supported: {json}")),
    }
}

/// The ids of the tokens before and after a text.
fn ends_of(json: &Value) -> Result<[u32; 2]> {
    let unsupported = || format!("the tokenizer's post_processor is not supported: {json}");
    let id_of = |value: &Value| value.as_u64().and_then(|id| u32::try_from(id).ok());
    let ids = match json["type"].as_str() {
        Some("BertProcessing" | "RobertaProcessing") => [id_of(&json["cls"][1]), id_of(&json["sep"][1])],
        Some("TemplateProcessing") => {
            let single = json["single"].as_array().ok_or_else(unsupported)?;
            let [first, text, last] = single.as_slice() else { return Err(unsupported()) };
            if text["Sequence"]["id"] != "A" {
                return Err(unsupported());
            }
            [first, last].map(|token| {
                let ids = json["special_tokens"][token["SpecialToken"]["id"].as_str()?]["ids"].as_array()?;
                if ids.len() == 1 { id_of(&ids[0]) } else { None }
            })
        }
        _ => return Err(unsupported()),
    };
    match ids {
        [Some(start), Some(end)] => Ok([start, end]),
        _ => Err(unsupported()),
    }
}
