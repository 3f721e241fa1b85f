//! Reads the header of a GGUF file: the model's architecture, its size, and its chat template. It never reads weights.
//!
//! ```text
//! "GGUF", version u32, tensors u64, entries u64 │ entries: key, kind u32, value │ tensors: name, dimensions, type, offset
//! ```
//!
//! All numbers are little-endian. A text is stored as its length in u64 and its bytes. The tensors' data follows,
//! aligned; offsets count from there.

use std::collections::HashMap;
use std::fs::File;
use std::io::{self, BufReader, Read};
use std::path::Path;

use agent_loop::text_calls::Format;
use agent_loop::{Error, ErrorKind, error::Result};

/// The newest supported version.
const NEWEST: u32 = 3;
/// The longest text that is stored. Templates have some 10 kB.
const LONGEST_TEXT: u64 = 1 << 20;
/// How deep arrays may be nested.
const DEEPEST: u8 = 4;

/// The header of a GGUF file.
#[derive(Debug, Clone, PartialEq, Default)]
#[non_exhaustive]
pub struct Gguf {
    /// The architecture, for example `llama` or `qwen3`.
    pub architecture: String,
    /// The model's name, if it has one.
    pub name: Option<String>,
    /// The context length in tokens with which the model was trained.
    pub context_length: Option<u64>,
    /// The size of the file in bytes.
    pub file_bytes: u64,
    /// The size of the weights in this file in bytes.
    pub weight_bytes: u64,
    /// The chat template, in the Jinja language.
    pub chat_template: Option<String>,
    /// The size of the attention cache for one token in bytes, with 16 bits for each number. 0 if the header does not
    /// have the data to compute it.
    pub cache_bytes_per_token: u64,
}

impl Gguf {
    /// Reads the header of a file. It takes as long as reading the vocabulary, which is some milliseconds.
    ///
    /// # Errors
    /// `Io` if the file cannot be read; `Damaged` if it is not a GGUF file or is truncated; `Newer` for a newer version
    /// of the format.
    pub fn read(path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref();
        let named = |error: Error| error.with_path(path.display().to_string());
        let io = |error| named(unreadable(error));
        // Checked before the file is opened, because opening a named pipe waits for its writer.
        let metadata = std::fs::metadata(path).map_err(io)?;
        if !metadata.is_file() {
            return Err(named(no_gguf("this is not a file")));
        }
        let file = File::open(path).map_err(io)?;
        Self::from_reader(BufReader::with_capacity(1 << 16, file), metadata.len()).map_err(named)
    }

    /// Returns whether the model generates text. Models for embeddings and models with an encoder do not.
    pub fn writes_text(&self) -> bool {
        let embeds = ["bert", "embedding"].into_iter().any(|name| self.architecture.contains(name));
        !embeds && !["t5", "t5encoder", "clip", "wavtokenizer-dec"].contains(&&*self.architecture)
    }

    /// Reads the header from the beginning of a file of `file_bytes`.
    ///
    /// # Errors
    /// The same as those of [`read`](Self::read), without the path.
    pub fn from_reader(reader: impl Read, file_bytes: u64) -> Result<Self> {
        let mut input = Input { reader, at: 0, file_bytes };
        if input.array()? != *b"GGUF" {
            return Err(no_gguf("the file is not in the GGUF format"));
        }
        let version = input.u32()?;
        if version.swap_bytes() <= NEWEST {
            return Err(no_gguf("the file is for a big-endian processor"));
        }
        if version > NEWEST {
            let message = format!("the file has version {version} of GGUF, and {NEWEST} is the newest one known here");
            return Err(Error::new(ErrorKind::Newer, message).with_remedy("use a newer version of this program"));
        }
        if version < 2 {
            let remedy = "convert it with llama.cpp's tools, or download it again";
            return Err(no_gguf("the file has version 1 of GGUF, which is no longer read").with_remedy(remedy));
        }
        let (tensors, count) = (input.u64()?, input.u64()?);
        let mut entries = Entries::default();
        for _ in 0..count {
            let key = input.text()?;
            let kind = input.u32()?;
            input.value(kind, 0, &mut |value| entries.add(&key, value))?;
        }
        let data_bytes = input.tensors(tensors)?;
        let alignment = entries.number("general.alignment").filter(|bytes| bytes.is_power_of_two()).unwrap_or(32);
        let begin = input.at.checked_next_multiple_of(alignment).unwrap_or(u64::MAX);
        if begin.saturating_add(data_bytes) > file_bytes && data_bytes > 0 {
            let expected = begin.saturating_add(data_bytes);
            return Err(cut(format!("the file has {file_bytes} bytes, but its header requires {expected}")));
        }
        Ok(entries.header(file_bytes, data_bytes))
    }

    /// Returns the format of tool calls in the template; `None` if the template has no calls, or there is no template.
    pub fn tool_format(&self) -> Option<Format> {
        self.chat_template.as_deref().filter(|template| template.contains("tools")).and_then(Format::of_template)
    }
}

fn unreadable(error: io::Error) -> Error {
    Error::new(ErrorKind::Io, "the file cannot be read").with_source(error)
}

fn no_gguf(message: &str) -> Error {
    Error::new(ErrorKind::Damaged, message).with_remedy("name a model's file in the format GGUF, which ends in .gguf")
}

fn cut(message: String) -> Error {
    Error::new(ErrorKind::Damaged, message).with_remedy("the file is not complete: download it again")
}

/// A value of the header. The items of an array are passed one by one.
enum Value {
    Text(String),
    Number(u64),
    Other,
}

#[derive(Default)]
struct Entries {
    texts: HashMap<String, String>,
    /// The largest one of an array.
    numbers: HashMap<String, u64>,
}

impl Entries {
    fn add(&mut self, key: &str, value: Value) {
        match value {
            Value::Text(text) => drop(self.texts.entry(key.into()).or_insert(text)),
            Value::Number(number) => {
                let most = self.numbers.entry(key.into()).or_default();
                *most = number.max(*most);
            }
            Value::Other => {}
        }
    }

    fn number(&self, key: &str) -> Option<u64> {
        self.numbers.get(key).copied()
    }

    fn header(mut self, file_bytes: u64, weight_bytes: u64) -> Gguf {
        let architecture = self.texts.remove("general.architecture").unwrap_or_default();
        let of_model = |key: &str| self.number(&format!("{architecture}.{key}"));
        let heads = of_model("attention.head_count").unwrap_or(0);
        let heads_kv = of_model("attention.head_count_kv").unwrap_or(heads);
        let width = of_model("embedding_length").and_then(|width| width.checked_div(heads)).unwrap_or(0);
        let length = |key: &str| of_model(key).unwrap_or(width);
        let both = length("attention.key_length").saturating_add(length("attention.value_length"));
        let layers = of_model("block_count").unwrap_or(0);
        let cache_bytes_per_token = [heads_kv, both, 2].into_iter().fold(layers, u64::saturating_mul);
        let context_length = of_model("context_length");
        Gguf {
            name: self.texts.remove("general.name"),
            context_length,
            file_bytes,
            weight_bytes,
            chat_template: self.texts.remove("tokenizer.chat_template"),
            cache_bytes_per_token,
            architecture,
        }
    }
}

struct Input<R> {
    reader: R,
    at: u64,
    file_bytes: u64,
}

impl<R: Read> Input<R> {
    fn bytes(&mut self, out: &mut [u8]) -> Result<()> {
        match self.reader.read_exact(out) {
            Ok(()) => self.at += out.len() as u64,
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Err(self.end()),
            Err(error) => return Err(unreadable(error)),
        }
        Ok(())
    }

    fn end(&self) -> Error {
        match self.at {
            0 => no_gguf("the file is not in the GGUF format"),
            at => cut(format!("the file ends within its header, behind byte {at}")),
        }
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N]> {
        let mut bytes = [0; N];
        self.bytes(&mut bytes)?;
        Ok(bytes)
    }

    fn u32(&mut self) -> Result<u32> {
        self.array().map(u32::from_le_bytes)
    }

    fn u64(&mut self) -> Result<u64> {
        self.array().map(u64::from_le_bytes)
    }

    /// Skips bytes that are not needed. It never skips more than the file has.
    fn skip(&mut self, bytes: u64) -> Result<()> {
        if bytes > self.file_bytes.saturating_sub(self.at) {
            return Err(self.end());
        }
        let skipped = io::copy(&mut self.reader.by_ref().take(bytes), &mut io::sink());
        self.at += skipped.map_err(unreadable)?;
        Ok(())
    }

    /// Reads a text. A text that is too long to be needed becomes an empty one.
    fn text(&mut self) -> Result<String> {
        let length = self.u64()?;
        if length > LONGEST_TEXT {
            self.skip(length)?;
            return Ok(String::new());
        }
        if length > self.file_bytes.saturating_sub(self.at) {
            return Err(self.end());
        }
        let mut bytes = vec![0; length as usize];
        self.bytes(&mut bytes)?;
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }

    fn value(&mut self, kind: u32, depth: u8, out: &mut dyn FnMut(Value)) -> Result<()> {
        let value = match kind {
            // Unsigned and signed integers. No needed value is negative.
            0 => Value::Number(self.array::<1>()?[0].into()),
            2 => Value::Number(u16::from_le_bytes(self.array()?).into()),
            4 => Value::Number(self.u32()?.into()),
            5 => u64::try_from(i32::from_le_bytes(self.array()?)).map_or(Value::Other, Value::Number),
            10 => Value::Number(self.u64()?),
            11 => u64::try_from(i64::from_le_bytes(self.array()?)).map_or(Value::Other, Value::Number),
            1 | 7 => self.array::<1>().map(|_| Value::Other)?,
            3 => self.array::<2>().map(|_| Value::Other)?,
            6 => self.array::<4>().map(|_| Value::Other)?,
            12 => self.array::<8>().map(|_| Value::Other)?,
            8 => Value::Text(self.text()?),
            9 if depth < DEEPEST => {
                let (kind, length) = (self.u32()?, self.u64()?);
                // Every item has at least one byte, so that reading stops at the end of the file if the length is
                // wrong.
                for _ in 0..length {
                    self.value(kind, depth + 1, &mut |item| {
                        // Arrays of texts are the vocabulary.
                        if let Value::Number(_) = item {
                            out(item);
                        }
                    })?;
                }
                return Ok(());
            }
            kind => return Err(cut(format!("the header has a value of the unknown kind {kind}"))),
        };
        out(value);
        Ok(())
    }

    /// Returns how many bytes the data of the tensors has, from the first to the last tensor.
    fn tensors(&mut self, count: u64) -> Result<u64> {
        let mut end = 0;
        for _ in 0..count {
            self.text()?;
            let dimensions = self.u32()?;
            if dimensions > 8 {
                return Err(cut(format!("a tensor has {dimensions} dimensions")));
            }
            let mut elements = 1_u64;
            for _ in 0..dimensions {
                elements = elements.saturating_mul(self.u64()?);
            }
            let (kind, offset) = (self.u32()?, self.u64()?);
            end = end.max(offset.saturating_add(bytes_of(kind, elements)));
        }
        Ok(end)
    }
}

/// Returns the bytes of a tensor; 0 for an unknown type, which llama.cpp may support.
fn bytes_of(kind: u32, elements: u64) -> u64 {
    let (block, bytes) = match kind {
        0 | 26 => (1, 4),
        1 | 25 | 30 => (1, 2),
        24 => (1, 1),
        27 | 28 => (1, 8),
        2 | 20 => (32, 18),
        3 => (32, 20),
        6 => (32, 22),
        7 => (32, 24),
        8 => (32, 34),
        9 => (32, 36),
        39 => (32, 17),
        40 => (64, 36),
        10 => (256, 84),
        11 | 21 => (256, 110),
        12 => (256, 144),
        13 => (256, 176),
        14 => (256, 210),
        15 => (256, 292),
        16 | 35 => (256, 66),
        17 => (256, 74),
        18 => (256, 98),
        19 => (256, 50),
        22 => (256, 82),
        23 => (256, 136),
        29 => (256, 56),
        34 => (256, 54),
        _ => return 0,
    };
    elements.div_ceil(block).saturating_mul(bytes)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn text(text: &str) -> Vec<u8> {
        [&(text.len() as u64).to_le_bytes()[..], text.as_bytes()].concat()
    }

    fn entry(key: &str, kind: u32, value: &[u8]) -> Vec<u8> {
        [&text(key)[..], &kind.to_le_bytes(), value].concat()
    }

    /// A file with one tensor of 64 numbers.
    fn file(version: u32) -> Vec<u8> {
        let vocabulary = [&8_u32.to_le_bytes()[..], &2_u64.to_le_bytes(), &text("a"), &text("b")].concat();
        let per_layer = [&4_u32.to_le_bytes()[..], &2_u64.to_le_bytes(), &1_u32.to_le_bytes(), &2_u32.to_le_bytes()];
        let template = "{% for tool in tools %}<tool_call>{% endfor %}";
        let entries = [
            entry("general.architecture", 8, &text("llama")),
            entry("general.name", 8, &text("Tiny")),
            entry("tokenizer.ggml.tokens", 9, &vocabulary),
            entry("llama.attention.head_count_kv", 9, &per_layer.concat()),
            entry("llama.attention.head_count", 4, &4_u32.to_le_bytes()),
            entry("llama.embedding_length", 4, &64_u32.to_le_bytes()),
            entry("llama.block_count", 4, &2_u32.to_le_bytes()),
            entry("llama.context_length", 10, &4096_u64.to_le_bytes()),
            entry("llama.scale", 6, &1_f32.to_le_bytes()),
            entry("tokenizer.chat_template", 8, &text(template)),
        ];
        let counts = [1_u64.to_le_bytes(), (entries.len() as u64).to_le_bytes()].concat();
        let tensor = [&text("w")[..], &1_u32.to_le_bytes(), &64_u64.to_le_bytes(), &[0; 4], &[0; 8]].concat();
        let mut file = [&b"GGUF"[..], &version.to_le_bytes(), &counts, &entries.concat(), &tensor].concat();
        file.resize(file.len().next_multiple_of(32) + 256, 0);
        file
    }

    fn read(file: &[u8]) -> Result<Gguf> {
        Gguf::from_reader(file, file.len() as u64)
    }

    #[test]
    fn a_header_tells_the_model() {
        let header = read(&file(3)).unwrap();
        assert_eq!((header.architecture.as_str(), header.name.as_deref()), ("llama", Some("Tiny")));
        assert_eq!((header.context_length, header.weight_bytes), (Some(4096), 256));
        // Two layers, two heads at most, 16 numbers for a key and a value each, two bytes.
        assert_eq!(header.cache_bytes_per_token, 2 * 2 * (16 + 16) * 2);
        assert_eq!(header.tool_format(), Some(Format::Hermes));
        assert_eq!(read(&file(2)).unwrap(), header);
    }

    #[test]
    fn what_cannot_be_read_is_named() {
        let swapped = 3_u32.swap_bytes();
        for (version, kind, says) in [
            (4, ErrorKind::Newer, "version 4 of GGUF"),
            (1, ErrorKind::Damaged, "version 1"),
            (swapped, ErrorKind::Damaged, "big-endian"),
        ] {
            let error = read(&file(version)).unwrap_err();
            assert_eq!(error.kind(), kind, "{error}");
            assert!(error.message().contains(says) && error.remedy().is_some(), "{error}");
        }
        for other in [&b"PK\x03\x04 a zip"[..], b"", b"GG"] {
            assert!(read(other).unwrap_err().message().contains("not in the GGUF format"));
        }
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(Gguf::read(folder.path()).unwrap_err().kind(), ErrorKind::Damaged);
        #[cfg(unix)]
        {
            let pipe = folder.path().join("pipe.gguf");
            assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
            assert_eq!(Gguf::read(&pipe).unwrap_err().kind(), ErrorKind::Damaged);
        }
        let error = Gguf::read(folder.path().join("none.gguf")).unwrap_err();
        assert!(error.kind() == ErrorKind::Io && error.to_string().contains("none.gguf"), "{error}");
    }

    #[test]
    fn a_file_that_is_cut_anywhere_is_damaged() {
        let whole = file(3);
        for end in 0..whole.len() {
            let error = read(&whole[..end]).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Damaged, "cut at {end}: {error}");
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2_000))]

        /// Reading terminates for any bytes, and needs no more memory than the size of the file.
        #[test]
        fn any_bytes_are_read_or_refused(
            changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..12),
            end in any::<prop::sample::Index>(),
        ) {
            let mut bytes = file(3);
            for (at, byte) in changes {
                let at = at.index(bytes.len());
                bytes[at] = byte;
            }
            bytes.truncate(end.index(bytes.len()) + 1);
            if let Err(error) = read(&bytes) {
                prop_assert!(matches!(error.kind(), ErrorKind::Damaged | ErrorKind::Newer), "{error}");
            }
        }

        #[test]
        fn random_bytes_behind_the_magic_are_refused(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let file = [b"GGUF\x03\0\0\0", &bytes[..]].concat();
            let _ = read(&file);
        }
    }
}
