//! The tiny models of `testdata/tiny`, beside what the original libraries computed with them (`recipe/make_tiny_models.py`).

use std::path::{Path, PathBuf};
use std::sync::LazyLock;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use proptest::prelude::*;
use serde_json::Value;
use tempfile::TempDir;

use super::published::PublishedTensors;
use super::{CompileOptions, ModelFolder};
use crate::kernel::Kernel;
use crate::model_file::{DESCRIPTION_END, Description, TokenizerTables, header};
use crate::unigram::UnigramRules;
use crate::{Model, ModelError, Pooling};

const NAMES: [&str; 3] = ["bert-mean", "bert-first", "xlmr-mean"];

fn folder(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata/tiny").join(name)
}

fn texts() -> Vec<String> {
    serde_json::from_slice(&std::fs::read(folder("texts.json")).unwrap()).unwrap()
}

/// The results of the original libraries.
struct Reference {
    /// A text with its rows after the embeddings and after each layer.
    states: Vec<(String, Vec<Vec<f32>>)>,
    /// The vector of each of [`texts`].
    vectors: Vec<Vec<f32>>,
    tokens: Vec<(String, Vec<u32>)>,
}

fn reference(name: &str, model: &ModelFolder) -> Reference {
    let json: Value = serde_json::from_slice(&std::fs::read(folder(name).join("reference.json")).unwrap()).unwrap();
    let bytes = std::fs::read(folder(name).join("reference.f32")).unwrap();
    let mut numbers = bytes.as_chunks().0.iter().map(|four| f32::from_le_bytes(*four));
    let mut take = |count: usize| {
        let taken: Vec<f32> = numbers.by_ref().take(count).collect();
        assert_eq!(taken.len(), count);
        taken
    };
    let sizes = model.sizes();
    let strings = |value: &Value| value.as_str().unwrap().to_owned();
    let lengths = json["lengths"].as_array().unwrap().iter().map(|length| length.as_u64().unwrap() as usize);
    let texts_of_layers = json["layers_of"].as_array().unwrap().iter().map(strings);
    let states = texts_of_layers
        .zip(lengths)
        .map(|(text, length)| (text, (0..=sizes.layers).map(|_| take(length * sizes.width)).collect()))
        .collect();
    let dimensions = sizes.dense.unwrap_or(sizes.width);
    let vectors = texts().iter().map(|_| take(dimensions)).collect();
    assert_eq!(numbers.next(), None);
    let id = |id: &Value| id.as_u64().unwrap() as u32;
    let ids = |entry: &Value| entry["ids"].as_array().unwrap().iter().map(id).collect();
    let tokens = json["tokens"].as_array().unwrap().iter().map(|entry| (strings(&entry["text"]), ids(entry))).collect();
    Reference { states, vectors, tokens }
}

/// The file of each model, made once.
fn compiled(name: &str) -> PathBuf {
    static FILES: LazyLock<TempDir> = LazyLock::new(|| {
        let dir = tempfile::tempdir().unwrap();
        for name in NAMES {
            compile(&folder(name), &dir.path().join(name), None).unwrap();
        }
        dir
    });
    FILES.path().join(name)
}

fn compile(from: &Path, to: &Path, dimensions: Option<usize>) -> Result<(), ModelError> {
    let name = from.file_name().unwrap().to_string_lossy().into_owned();
    let options = CompileOptions { name, dimensions, ..CompileOptions::default() };
    ModelFolder::open(from)?.compile(to, &options, &AtomicBool::new(false), &|_| ()).map(|_| ())
}

#[test]
fn ids_are_those_of_the_original_tokenizer() {
    for name in NAMES {
        let model = Model::open(&compiled(name)).unwrap();
        for (text, ids) in reference(name, &ModelFolder::open(&folder(name)).unwrap()).tokens {
            assert_eq!(model.tokens(&text), ids, "{name}: {text:?}");
            assert_eq!(model.count(&text), ids.len());
        }
    }
}

#[test]
fn each_layer_in_f32_is_that_of_the_original() {
    for name in NAMES {
        let model = ModelFolder::open(&folder(name)).unwrap();
        let published = PublishedTensors::of(&model).unwrap();
        let (positions, norm) = (published.positions().unwrap(), published.embedded_norm().unwrap());
        let mut ids = Vec::new();
        let mut largest = 0f32;
        for (text, states) in reference(name, &model).states {
            model.tokenizer.tokenizer().model_input(&text, model.sizes.positions, &mut ids);
            let mut x = published.embed(&ids, &positions, &norm).unwrap();
            for (layer, expected) in states.iter().enumerate() {
                if layer > 0 {
                    x = published.layer(layer - 1).unwrap().prepare().run(x).output;
                }
                assert_eq!(x.len(), expected.len(), "{name}: {text:?}");
                let off = x.iter().zip(expected).map(|(x, expected)| (x - expected).abs());
                largest = off.fold(largest, f32::max);
            }
        }
        assert!(largest < 1e-4, "{name} is off by {largest}");
    }
}

fn dot(a: &[f32], b: &[f32]) -> f64 {
    a.iter().zip(b).map(|(x, y)| f64::from(*x) * f64::from(*y)).sum()
}

/// The ten nearest others of each vector.
fn nearest(vectors: &[Vec<f32>]) -> Vec<Vec<usize>> {
    let ten = |(i, vector): (usize, &Vec<f32>)| {
        let mut others: Vec<(f64, usize)> =
            vectors.iter().enumerate().filter(|(j, _)| *j != i).map(|(j, other)| (dot(vector, other), j)).collect();
        others.sort_by(|a, b| b.0.total_cmp(&a.0));
        others.into_iter().take(10).map(|(_, j)| j).collect()
    };
    vectors.iter().enumerate().map(ten).collect()
}

/// The vectors without what all of them have in common.
fn centred(vectors: &[Vec<f32>]) -> Vec<Vec<f32>> {
    let mut mean = vec![0.0; vectors[0].len()];
    for vector in vectors {
        mean.iter_mut().zip(vector).for_each(|(mean, x)| *mean += x / vectors.len() as f32);
    }
    vectors.iter().map(|vector| vector.iter().zip(&mean).map(|(x, mean)| x - mean).collect()).collect()
}

#[test]
fn vectors_of_integers_are_near_the_original_ones() {
    let texts = texts();
    let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
    for name in NAMES {
        let model = Model::open(&compiled(name)).unwrap();
        model.verify().unwrap();
        let vectors = model.embed_batch(&texts, 2);
        let expected = reference(name, &ModelFolder::open(&folder(name)).unwrap()).vectors;
        for vector in &vectors {
            assert!((dot(vector, vector) - 1.0).abs() < 1e-5, "{name}");
        }
        let (ours, theirs) = (centred(&vectors), centred(&expected));
        for ((a, b), text) in ours.iter().zip(&theirs).zip(&texts) {
            let cosine = dot(a, b) / (dot(a, a) * dot(b, b)).sqrt();
            assert!(cosine >= 0.98, "{name}: {cosine} for {text:?}");
        }
        let shared: usize = nearest(&vectors)
            .iter()
            .zip(nearest(&expected))
            .map(|(ours, theirs)| ours.iter().filter(|found| theirs.contains(found)).count())
            .sum();
        let mean = shared as f64 / texts.len() as f64;
        assert!(mean >= 9.0, "{name}: {mean} of the ten nearest are those of the original");
    }
}

#[test]
fn a_folder_gives_the_same_file_and_every_kernel_the_same_bits() {
    let dir = tempfile::tempdir().unwrap();
    let texts = ["query: the old mill", "", "Größere Äpfel 知識 по реке", &"long ".repeat(200)];
    for name in NAMES {
        let again = dir.path().join(name);
        compile(&folder(name), &again, None).unwrap();
        assert!(std::fs::read(&again).unwrap() == std::fs::read(compiled(name)).unwrap(), "{name}");
        let best = Model::open(&again).unwrap().embed_batch(&texts, 2);
        for kernel in Kernel::all() {
            let model = Model::on(kernel, &again).unwrap();
            for (text, expected) in texts.iter().zip(&best) {
                assert_eq!(&model.embed(text), expected, "{name} on {model:?}");
            }
        }
    }
}

#[test]
fn what_a_folder_says_is_in_the_description() {
    let of = |name: &str| Model::open(&compiled(name)).unwrap().description().clone();
    let first = of("bert-first");
    assert_eq!((first.pooling, first.dimensions, first.sizes.dense), (Pooling::First, 128, Some(128)));
    assert_eq!((first.prompts.query.as_str(), first.prompts.passage.as_str()), ("query: ", ""));
    let xlmr = of("xlmr-mean");
    assert_eq!((xlmr.pooling, xlmr.dimensions, xlmr.sizes.epsilon), (Pooling::Mean, 64, 1e-5));
    assert_eq!(xlmr.prompts.passage, "passage: ");
}

#[test]
fn the_first_dimensions_are_the_start_of_the_vector_at_unit_length() {
    let dir = tempfile::tempdir().unwrap();
    for (name, dimensions) in [("bert-mean", 32), ("bert-first", 48)] {
        let cut = dir.path().join(name);
        compile(&folder(name), &cut, Some(dimensions)).unwrap();
        let (whole, cut) = (Model::open(&compiled(name)).unwrap(), Model::open(&cut).unwrap());
        assert_ne!(whole.id(), cut.id());
        let (mut expected, found) = (whole.embed("apple trees"), cut.embed("apple trees"));
        expected.truncate(dimensions);
        let length = dot(&expected, &expected).sqrt() as f32;
        assert_eq!(found.len(), dimensions);
        assert!(expected.iter().zip(&found).all(|(a, b)| (a / length - b).abs() < 1e-6), "{name}");
    }
    for dimensions in [0, 65] {
        let to = dir.path().join("x");
        let error = compile(&folder("bert-mean"), &to, Some(dimensions)).unwrap_err();
        assert!(error.to_string().contains(&format!("{dimensions} dimensions")), "{error}");
        assert!(!to.exists(), "found before anything is computed");
    }
}

/// A copy of a tiny model's folder, to change something in it.
fn copy(name: &str) -> TempDir {
    let dir = tempfile::tempdir().unwrap();
    let dense = ["2_Dense/config.json", "2_Dense/model.safetensors"];
    let files = ["config.json", "tokenizer.json", "model.safetensors", "modules.json", "1_Pooling/config.json"];
    for file in files.into_iter().chain(dense).filter(|file| folder(name).join(file).exists()) {
        let to = dir.path().join(file);
        std::fs::create_dir_all(to.parent().unwrap()).unwrap();
        std::fs::copy(folder(name).join(file), to).unwrap();
    }
    dir
}

/// Sets one value of a JSON file.
fn set(dir: &TempDir, file: &str, pointer: &str, value: Value) {
    let path = dir.path().join(file);
    let mut json: Value = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
    *json.pointer_mut(pointer).unwrap() = value;
    std::fs::write(path, json.to_string()).unwrap();
}

/// Removes one value of a JSON file.
fn unset(dir: &TempDir, file: &str, key: &str) {
    let path = dir.path().join(file);
    let mut json: Value = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
    json.as_object_mut().unwrap().remove(key).unwrap();
    std::fs::write(path, json.to_string()).unwrap();
}

fn refusal(dir: &TempDir) -> String {
    compile(dir.path(), &dir.path().join("model"), None).unwrap_err().to_string()
}

#[test]
fn other_models_are_refused_with_what_is_not_supported() {
    let cases = [
        ("config.json", "/model_type", "modernbert".into(), "modernbert"),
        ("config.json", "/hidden_act", "gelu_new".into(), "gelu_new"),
        ("config.json", "/num_attention_heads", 4.into(), "4 heads"),
        ("config.json", "/hidden_size", 100.into(), "width 100"),
        ("config.json", "/num_hidden_layers", 3.into(), "encoder.layer.2"),
        ("config.json", "/vocab_size", 7.into(), "7 words"),
        ("config.json", "/intermediate_size", 128.into(), "[256, 64] instead of [128, 64]"),
        ("tokenizer.json", "/normalizer/lowercase", false.into(), "normalizer"),
        ("tokenizer.json", "/model/type", "BPE".into(), "BPE"),
        ("tokenizer.json", "/pre_tokenizer/type", "Whitespace".into(), "pre_tokenizer"),
        ("tokenizer.json", "/post_processor/type", "ByteLevel".into(), "post_processor"),
        ("modules.json", "/1/type", "sentence_transformers.models.LSTM".into(), "LSTM"),
        ("modules.json", "/1/path", "../elsewhere".into(), "../elsewhere"),
        ("1_Pooling/config.json", "/pooling_mode_mean_tokens", false.into(), "pooling"),
    ];
    for (file, pointer, value, expected) in cases {
        let dir = copy("bert-mean");
        set(&dir, file, pointer, value);
        let refusal = refusal(&dir);
        assert!(refusal.contains(expected), "{pointer}: {refusal}");
    }
    let cases = [
        ("/model/byte_fallback", true.into(), "byte_fallback"),
        ("/model/vocab/7/1", Value::Null, "entry 7"),
        ("/normalizer/precompiled_charsmap", "AAAA".into(), "charsmap"),
        ("/pre_tokenizer/pretokenizers/0/type", "Digits".into(), "pre_tokenizer"),
    ];
    for (pointer, value, expected) in cases {
        let dir = copy("xlmr-mean");
        set(&dir, "tokenizer.json", pointer, value);
        let refusal = refusal(&dir);
        assert!(refusal.contains(expected), "{pointer}: {refusal}");
    }
}

#[test]
fn what_sentence_transformers_would_compute_otherwise_is_refused() {
    let dir = copy("bert-first");
    compile(dir.path(), &dir.path().join("model"), None).unwrap();
    unset(&dir, "2_Dense/config.json", "activation_function");
    assert!(refusal(&dir).contains("Tanh"), "{}", refusal(&dir));

    let dir = copy("bert-mean");
    let path = dir.path().join("1_Pooling/config.json");
    let mut json: Value = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
    for (include, is_refused) in [(true, false), (false, true)] {
        json["include_prompt"] = include.into();
        std::fs::write(&path, json.to_string()).unwrap();
        let refused = compile(dir.path(), &dir.path().join("model"), None).err();
        assert_eq!(refused.is_some_and(|error| error.to_string().contains("prompt")), is_refused);
    }
}

#[test]
fn missing_and_damaged_files_are_named() {
    for file in ["config.json", "tokenizer.json", "model.safetensors", "1_Pooling/config.json"] {
        let dir = copy("bert-mean");
        let path = dir.path().join(file);
        let named = |what: &str| format!("{file}: {what}");
        std::fs::write(&path, "{ nonsense").unwrap();
        assert!(refusal(&dir).contains(&named("th")), "{}", refusal(&dir));
        std::fs::remove_file(&path).unwrap();
        let missing = if file.starts_with('1') { "it does not say" } else { "" };
        assert!(refusal(&dir).contains(&named(missing)), "{}", refusal(&dir));
    }
    let dir = copy("bert-mean");
    let path = dir.path().join("model.safetensors");
    let whole = std::fs::read(&path).unwrap();
    std::fs::write(&path, &whole[..whole.len() - 4]).unwrap();
    assert!(refusal(&dir).contains("these are no safetensors"), "{}", refusal(&dir));
    // The last number of the last tensor.
    let mut nan = whole.clone();
    nan.splice(whole.len() - 4.., f32::NAN.to_le_bytes());
    std::fs::write(&path, &nan).unwrap();
    assert!(refusal(&dir).contains("NaN"), "{}", refusal(&dir));
}

#[test]
fn a_file_that_is_no_model_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("file");
    let foreign = "this is not a model file";
    for (bytes, expected) in
        [(&b""[..], foreign), (b"minilm", foreign), (b"minilm\0m", "the file is cut off"), (&[0; 20_000], foreign)]
    {
        std::fs::write(&path, bytes).unwrap();
        let error = Model::open(&path).unwrap_err().to_string();
        assert_eq!(error, format!("{}: {expected}", path.display()));
    }
    let mut newer = std::fs::read(compiled("bert-mean")).unwrap();
    newer[8] += 1;
    std::fs::write(&path, &newer).unwrap();
    let error = Model::open(&path).unwrap_err().to_string();
    assert!(error.contains("format 3"), "{error}");
}

/// If this test fails, vectors have changed: raise `VERSION` of `model_file.rs`, so that stored ones are computed again.
#[test]
fn an_id_stands_for_these_bits() {
    let pinned = [
        ("bert-mean", "bert-mean-int8-e8050b84e62acf19", "8b6817ede908a056"),
        ("bert-first", "bert-first-int8-98f31099869374d1", "5f56d2ebd22267f2"),
        ("xlmr-mean", "xlmr-mean-int8-8cca67872c5c5405", "e863bf4c26389418"),
    ];
    for (name, id, bits) in pinned {
        let model = Model::open(&compiled(name)).unwrap();
        let mut hash = blake3::Hasher::new();
        for text in ["", "query: the old mill", "Größere Äpfel 知識 по реке"] {
            let bytes: Vec<u8> = model.embed(text).iter().flat_map(|x| x.to_le_bytes()).collect();
            hash.update(&bytes);
        }
        let found = (model.id().to_owned(), hash.finalize().to_hex()[..16].to_owned());
        assert_eq!(found, (id.to_owned(), bits.to_owned()));
        let description = model.description();
        assert_ne!(description.id_of(0), description.id_of(1), "the version is part of the id");
    }
}

#[test]
fn a_cancelled_compilation_stops() {
    let dir = tempfile::tempdir().unwrap();
    let to = dir.path().join("model");
    let cancel = AtomicBool::new(false);
    let model = ModelFolder::open(&folder("bert-mean")).unwrap();
    let compile = || {
        let steps = AtomicUsize::new(0);
        let progress = |_: f32| {
            steps.fetch_add(1, Ordering::Relaxed);
            cancel.store(true, Ordering::Relaxed);
        };
        let result = model.compile(&to, &CompileOptions::default(), &cancel, &progress);
        assert!(matches!(result, Err(ModelError::Cancelled(_))), "{result:?}");
        steps.into_inner()
    };
    assert_eq!(compile(), 1, "one of two layers");
    assert_eq!(compile(), 0, "it was cancelled before");
}

/// A model's file whose description was changed, with digests that fit.
fn foreign(name: &str, change: impl FnOnce(&mut Description)) -> Result<Model, ModelError> {
    let mut bytes = std::fs::read(compiled(name)).unwrap();
    let mut description = Model::open(&compiled(name)).unwrap().description().clone();
    change(&mut description);
    bytes.splice(..DESCRIPTION_END, header(&description).unwrap());
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("file");
    std::fs::write(&path, bytes).unwrap();
    Model::open(&path)
}

#[test]
fn a_foreign_file_gives_no_ids_behind_the_words() {
    type Change = fn(&mut UnigramRules, u32);
    let changes: [(Change, &str); 5] = [
        (|rules, words| rules.unknown = words, "words"),
        (|rules, words| rules.start = words, "words"),
        (|rules, words| rules.end = words, "words"),
        (|rules, words| rules.special[0].id = words, "words"),
        (|rules, _| rules.special[0].text.clear(), "special token"),
    ];
    foreign("xlmr-mean", |_| ()).unwrap();
    for (change, expected) in changes {
        let error = foreign("xlmr-mean", |description| {
            let words = description.sizes.words as u32;
            let TokenizerTables::Unigram { rules, .. } = &mut description.tokenizer else { panic!() };
            change(rules, words);
        });
        let error = error.unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    }
    // The words of the table stay; one of them has no row any more.
    let bytes = std::fs::read(compiled("bert-mean")).unwrap();
    let mut description = Model::open(&compiled("bert-mean")).unwrap().description().clone();
    let TokenizerTables::WordPiece { vocabulary } = &mut description.tokenizer else { panic!() };
    let old = DESCRIPTION_END..DESCRIPTION_END + vocabulary.next_multiple_of(64);
    let text = String::from_utf8(bytes[old.start..old.start + *vocabulary].to_vec()).unwrap();
    for (text, expected) in [
        (format!("{text}more\n"), "words"),
        (text.replacen("[CLS]", "[ELS]", 1), "[CLS]"),
        (text.replacen("[MASK]", &"m".repeat(300), 1), "words"),
    ] {
        let mut table = text.into_bytes();
        let TokenizerTables::WordPiece { vocabulary } = &mut description.tokenizer else { panic!() };
        *vocabulary = table.len();
        table.resize(table.len().next_multiple_of(64), 0);
        description.digests[0] = crate::model_file::digest(&table);
        let file = [&header(&description).unwrap(), &table, &bytes[old.end..]].concat();
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("file");
        std::fs::write(&path, file).unwrap();
        let error = Model::open(&path).unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, failure_persistence: None, ..ProptestConfig::default() })]

    /// Each byte of the file is covered by a digest: a changed one is found, by opening or by verifying, and until it is
    /// found nothing worse than other numbers comes of it.
    #[test]
    fn damage_is_found(which in 0..NAMES.len(), at in any::<prop::sample::Index>(), bits in 1u8..=255, in_front in any::<bool>()) {
        let mut bytes = std::fs::read(compiled(NAMES[which])).unwrap();
        let at = at.index(if in_front { 2500 } else { bytes.len() });
        // Behind the description are zeros, which nobody reads.
        prop_assume!(!(at < DESCRIPTION_END && bytes[at] == 0));
        bytes[at] ^= bits;
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("model");
        std::fs::write(&path, &bytes).unwrap();
        if let Ok(model) = Model::open(&path) {
            prop_assert!(model.verify().is_err());
            prop_assert_eq!(model.embed("apple trees").len(), model.description().dimensions);
        }
    }

    #[test]
    fn a_cut_file_is_refused(which in 0..NAMES.len(), length in any::<prop::sample::Index>()) {
        let bytes = std::fs::read(compiled(NAMES[which])).unwrap();
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("model");
        std::fs::write(&path, &bytes[..length.index(bytes.len())]).unwrap();
        prop_assert!(Model::open(&path).is_err());
    }
}
