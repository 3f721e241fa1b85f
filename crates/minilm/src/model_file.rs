//! A model in one file, which is mapped: nothing is parsed or copied when it is opened but its description.
//!
//! ```text
//! 0      "minilm\0m", version (u32), length of the description (u32), its BLAKE3 digest
//! 48     the description, in JSON: sizes, tokenizer, prompts, and the digests of the two parts below
//! 16384  the tables of the tokenizer
//! …      the weights (see weights.rs), to the end of the file
//! ```
//!
//! Numbers have their lowest byte first, and every table starts on a line of 64 bytes. Opening checks the description
//! and the tokenizer's tables against their digests, and all lengths. The weights are most of the file, so they are
//! checked only when [`ModelFile::verify`] is asked to.

use std::path::{Path, PathBuf};

use memmap2::Mmap;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::charsmap::Charsmap;
use crate::error::ModelError;
use crate::kernel::{PANEL, doubles, pairs, words};
use crate::mapped::map;
use crate::tokenizer::Tokenizer;
use crate::trie::Trie;
use crate::unigram::{Unigram, UnigramRules};
use crate::vocabulary::{LONGEST_TOKEN, MOST_TOKENS};
use crate::weights::{Pooling, Sizes, Weights};
use crate::wordpiece::SPECIAL;
use crate::{MAX_TOKENS, WordPiece};

const MAGIC: &[u8; 8] = b"minilm\0m";
/// The version of the format, and of the arithmetic that reads it: every change that gives other bits raises it. It is
/// part of the id, so vectors of two versions are never compared. A file of another version is made again from the
/// original files.
const VERSION: u32 = 2;
const DIGEST: usize = 32;
/// Where the description starts.
const HEADER: usize = 8 + 4 + 4 + DIGEST;
/// Where the tables start.
pub(crate) const DESCRIPTION_END: usize = 16_384;

/// The prompt before a text, by its role.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct ModelPrompts {
    /// Before a passage.
    pub passage: String,
    /// Before a query.
    pub query: String,
}

/// The cosines of a model, measured with eight questions and their answers when its file is made.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct CosineRange {
    /// The mean of a question and the answers to other questions.
    pub unrelated: f32,
    /// The mean of a question and its answer, which has few of its words.
    pub related: f32,
}

/// The shape of a model.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Description {
    /// For people, and the beginning of the id.
    pub name: String,
    /// Its sizes.
    pub sizes: Sizes,
    /// How a text's tokens become a vector.
    pub pooling: Pooling,
    /// The length of a vector: all of its components, or the first ones of a model that was trained for it.
    pub dimensions: usize,
    /// The prompt before each text.
    pub prompts: ModelPrompts,
    /// The range of its cosines; no part of the id, because it follows from the rest.
    pub cosine_range: CosineRange,
    /// Where it came from, for whoever made the file; no part of the id.
    pub record: Value,
    pub(crate) tokenizer: TokenizerTables,
    /// BLAKE3 of the tokenizer's tables and of the weights.
    pub(crate) digests: [String; 2],
}

/// The lengths of the tables in bytes, and what else the tokenizer needs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum TokenizerTables {
    /// A vocabulary with one token a line.
    WordPiece {
        vocabulary: usize,
    },
    Unigram {
        pieces: usize,
        scores: usize,
        charsmap: usize,
        replacements: usize,
        rules: UnigramRules,
    },
}

impl TokenizerTables {
    fn lengths(&self) -> Vec<usize> {
        match self {
            TokenizerTables::WordPiece { vocabulary } => vec![*vocabulary],
            TokenizerTables::Unigram { pieces, scores, charsmap, replacements, .. } => {
                vec![*pieces, *scores, *charsmap, *replacements]
            }
        }
    }
}

impl Description {
    /// The name, and a digest of all that decides a vector.
    fn id(&self) -> String {
        self.id_of(VERSION)
    }

    pub(crate) fn id_of(&self, version: u32) -> String {
        let deciding = Description { record: Value::Null, cosine_range: CosineRange::default(), ..self.clone() };
        let mut bytes = version.to_le_bytes().to_vec();
        bytes.extend(serde_json::to_vec(&deciding).unwrap_or_default());
        format!("{}-int8-{}", self.name, &digest(&bytes)[..16])
    }
}

/// The digest of some bytes in hexadecimal digits.
pub(crate) fn digest(bytes: &[u8]) -> String {
    blake3::hash(bytes).to_hex().to_string()
}

/// The first bytes of a file with this description. `None` if it is too long.
pub(crate) fn header(description: &Description) -> Option<Vec<u8>> {
    let json = serde_json::to_vec(description).ok()?;
    let mut bytes = MAGIC.to_vec();
    bytes.extend(VERSION.to_le_bytes());
    bytes.extend(u32::try_from(json.len()).ok()?.to_le_bytes());
    bytes.extend(blake3::hash(&json).as_bytes());
    bytes.extend(json);
    (bytes.len() <= DESCRIPTION_END).then(|| {
        bytes.resize(DESCRIPTION_END, 0);
        bytes
    })
}

/// A model's file, open.
pub(crate) struct ModelFile {
    path: PathBuf,
    map: Mmap,
    pub(crate) description: Description,
    pub(crate) id: String,
    wordpiece: Option<WordPiece>,
    /// Where the weights start.
    weights_at: usize,
}

impl ModelFile {
    pub(crate) fn open(path: &Path) -> Result<ModelFile, ModelError> {
        let map = map(path)?;
        let damaged = |what: &str| ModelError::damaged(path, what);
        let (description, id) = read_description(&map).map_err(|what| damaged(&what))?;
        let lengths = description.tokenizer.lengths();
        let tables =
            lengths.iter().try_fold(0usize, |sum, length| sum.checked_add(length.checked_next_multiple_of(64)?));
        let weights_at = tables.and_then(|length| length.checked_add(DESCRIPTION_END));
        let weights_at = weights_at.filter(|at| *at <= map.len()).ok_or_else(|| damaged("the file is cut off"))?;
        if digest(&map[DESCRIPTION_END..weights_at]) != description.digests[0] {
            return Err(damaged("the tokenizer's tables are damaged"));
        }
        let mut file = ModelFile { path: path.to_owned(), map, description, id, wordpiece: None, weights_at };
        if Weights::in_file(file.description.sizes, file.description.pooling, 0, &file.map[weights_at..]).is_none() {
            return Err(damaged("the file has another length than its description says; it may be cut off"));
        }
        match &file.description.tokenizer {
            TokenizerTables::WordPiece { .. } => {
                let text = std::str::from_utf8(file.tables()[0]).map_err(|_| damaged("the vocabulary is not text"))?;
                check_vocabulary(text, file.description.sizes.words).map_err(|what| damaged(&what))?;
                file.wordpiece = Some(WordPiece::new(text));
            }
            TokenizerTables::Unigram { rules, .. } => {
                let [pieces, scores, charsmap, _] = file.tables()[..] else { unreachable!() };
                let is_whole = pieces.len().is_multiple_of(8) && scores.len().is_multiple_of(8);
                if !is_whole || !charsmap.len().is_multiple_of(4) {
                    return Err(damaged("the tokenizer's tables are damaged"));
                }
                rules.check(scores.len() / 8, file.description.sizes.words).map_err(|what| damaged(&what))?;
            }
        }
        Ok(file)
    }

    /// Compares the weights with their digest: some 50 ms for 100 MB.
    pub(crate) fn verify(&self) -> Result<(), ModelError> {
        if digest(&self.map[self.weights_at..]) != self.description.digests[1] {
            return Err(ModelError::damaged(&self.path, "the weights are damaged"));
        }
        Ok(())
    }

    pub(crate) fn weights(&self) -> Weights<'_> {
        let Description { sizes, pooling, dimensions, .. } = self.description;
        let weights = Weights::in_file(sizes, pooling, dimensions, &self.map[self.weights_at..]);
        weights.unwrap_or_else(|| unreachable!("checked when the file was opened"))
    }

    pub(crate) fn tokenizer(&self) -> Tokenizer<'_> {
        match (&self.description.tokenizer, &self.wordpiece) {
            (TokenizerTables::Unigram { rules, .. }, _) => {
                let [pieces, scores, charsmap, replacements] = self.tables()[..] else { unreachable!() };
                let charsmap = Charsmap::new(words(charsmap), replacements);
                Tokenizer::Unigram(Unigram { rules, charsmap, pieces: Trie(pairs(pieces)), scores: doubles(scores) })
            }
            (TokenizerTables::WordPiece { .. }, Some(tokenizer)) => Tokenizer::WordPiece(tokenizer),
            (TokenizerTables::WordPiece { .. }, None) => unreachable!("built when the file was opened"),
        }
    }

    fn tables(&self) -> Vec<&[u8]> {
        let mut at = DESCRIPTION_END;
        let lengths = self.description.tokenizer.lengths();
        let table = |length: usize| {
            let table = &self.map[at..at + length];
            at += length.next_multiple_of(64);
            table
        };
        lengths.into_iter().map(table).collect()
    }
}

/// Whether a tokenizer can be built from this vocabulary, and gives only ids of a model's words.
fn check_vocabulary(text: &str, words: usize) -> Result<(), String> {
    let tokens = text.lines().count();
    if tokens > words.min(MOST_TOKENS) || text.lines().any(|token| token.is_empty() || token.len() > LONGEST_TOKEN) {
        return Err(format!("the vocabulary is not one of {words} words"));
    }
    match SPECIAL.iter().find(|special| !text.lines().any(|token| token == **special)) {
        Some(missing) => Err(format!("the vocabulary has no {missing}")),
        None => Ok(()),
    }
}

/// The description, and the id.
fn read_description(bytes: &[u8]) -> Result<(Description, String), String> {
    let number = |at: usize| bytes.get(at..at + 4).and_then(|four| four.try_into().ok()).map(u32::from_le_bytes);
    if !bytes.starts_with(MAGIC) {
        return Err("this is not a model file".to_owned());
    }
    match number(8) {
        Some(VERSION) => {}
        Some(version) => return Err(format!("the file has format {version}, and this program reads {VERSION}")),
        None => return Err("the file is cut off".to_owned()),
    }
    let json = number(12).and_then(|length| bytes.get(HEADER..HEADER.checked_add(length as usize)?));
    let json = json.filter(|_| bytes.len() >= DESCRIPTION_END).ok_or("the file is cut off")?;
    let digest = blake3::hash(json);
    if bytes[HEADER - DIGEST..HEADER] != *digest.as_bytes() {
        return Err("the description is damaged".to_owned());
    }
    let description: Description = serde_json::from_slice(json).map_err(|error| format!("the description: {error}"))?;
    description.sizes.check()?;
    check_dimensions(&description.sizes, description.dimensions)?;
    let id = description.id();
    Ok((description, id))
}

/// Whether the vectors of a model with these sizes have as many components.
pub(crate) fn check_dimensions(sizes: &Sizes, dimensions: usize) -> Result<(), String> {
    let components = sizes.dense.unwrap_or(sizes.width);
    match (1..=components).contains(&dimensions) {
        true => Ok(()),
        false => Err(format!("a vector of {components} components has no {dimensions} dimensions")),
    }
}

impl Sizes {
    /// Whether the engine runs such a model.
    pub(crate) fn check(&self) -> Result<(), String> {
        let Sizes { layers, width, heads, inner, words, positions, epsilon, dense } = *self;
        let is_panels = |width: usize, most: usize| width > 0 && width.is_multiple_of(PANEL) && width <= most;
        if !is_panels(width, 1024) || !is_panels(inner, 4096) {
            return Err(format!("a model of width {width} with {inner} between its matrices is not supported"));
        }
        if heads == 0 || ![32, 64].contains(&(width / heads)) || !width.is_multiple_of(heads) {
            return Err(format!("{heads} heads in a width of {width} are not supported: a head needs 32 or 64"));
        }
        if !(1..=48).contains(&layers) || !(1..1 << 21).contains(&words) || !(3..=MAX_TOKENS).contains(&positions) {
            return Err(format!("{layers} layers, {words} words or {positions} positions are not supported"));
        }
        if !(epsilon > 0.0 && epsilon < 1.0) || dense.is_some_and(|columns| !(1..=4096).contains(&columns)) {
            return Err(format!("an epsilon of {epsilon} or a dense layer of {dense:?} is not supported"));
        }
        Ok(())
    }
}

impl std::fmt::Debug for ModelFile {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ModelFile").field("path", &self.path).field("id", &self.id).finish_non_exhaustive()
    }
}
