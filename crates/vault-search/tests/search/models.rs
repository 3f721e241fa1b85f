//! `vault-index models add` and `remove`, with a hub on this machine.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};
use std::sync::LazyLock;
use std::time::Duration;

use serde_json::{Value, json};

use crate::commands::{command, run, stderr, stdout};
use crate::hub::{Hub, Mood, WEIGHTS};
use crate::vault::Vault;

/// A model of the table that needs no prompts and no layers after the encoder.
const NAME: &str = "gte-small";
const REPOSITORY: &str = "thenlper/gte-small";

/// A model of the width that `NAME` has, of one small layer, with weights that mean nothing.
fn files() -> &'static BTreeMap<String, Vec<u8>> {
    static FILES: LazyLock<BTreeMap<String, Vec<u8>>> = LazyLock::new(|| {
        let tokenizer = concat!(env!("CARGO_MANIFEST_DIR"), "/../minilm/testdata/tiny/bert-mean/tokenizer.json");
        let tokenizer = std::fs::read(tokenizer).unwrap();
        let json: Value = serde_json::from_slice(&tokenizer).unwrap();
        let words = json["model"]["vocab"].as_object().unwrap().len();
        let config = json!({
            "model_type": "bert", "hidden_act": "gelu", "hidden_size": 384, "intermediate_size": 384,
            "layer_norm_eps": 1e-12, "max_position_embeddings": 64, "num_attention_heads": 12, "num_hidden_layers": 1,
            "type_vocab_size": 2, "vocab_size": words,
        });
        BTreeMap::from([
            ("config.json".to_owned(), config.to_string().into_bytes()),
            ("tokenizer.json".to_owned(), tokenizer),
            (WEIGHTS.to_owned(), safetensors(words)),
            ("README.md".to_owned(), b"not asked for".to_vec()),
        ])
    });
    &FILES
}

fn safetensors(words: usize) -> Vec<u8> {
    const WIDTH: usize = 384;
    let mut tensors = vec![
        ("embeddings.word_embeddings.weight".to_owned(), vec![words, WIDTH]),
        ("embeddings.position_embeddings.weight".to_owned(), vec![64, WIDTH]),
        ("embeddings.token_type_embeddings.weight".to_owned(), vec![2, WIDTH]),
    ];
    let at = "encoder.layer.0";
    for norm in ["embeddings.LayerNorm", &format!("{at}.attention.output.LayerNorm"), &format!("{at}.output.LayerNorm")]
    {
        tensors.extend(["weight", "bias"].map(|part| (format!("{norm}.{part}"), vec![WIDTH])));
    }
    for dense in ["attention.self.query", "attention.self.key", "attention.self.value", "attention.output.dense"]
        .into_iter()
        .chain(["intermediate.dense", "output.dense"])
    {
        tensors.push((format!("{at}.{dense}.weight"), vec![WIDTH, WIDTH]));
        tensors.push((format!("{at}.{dense}.bias"), vec![WIDTH]));
    }
    let (mut header, mut data, mut state) = (serde_json::Map::new(), Vec::new(), 1u32);
    for (name, shape) in tensors {
        let start = data.len();
        for _ in 0..shape.iter().product() {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            let number = state as f32 / u32::MAX as f32 - 0.5;
            data.extend(((number / 8.0).to_bits() >> 16).to_le_bytes()[..2].to_vec());
        }
        header.insert(name, json!({"dtype": "BF16", "shape": shape, "data_offsets": [start, data.len()]}));
    }
    let mut json = Value::Object(header).to_string().into_bytes();
    json.resize(json.len().next_multiple_of(8), b' ');
    [&(json.len() as u64).to_le_bytes()[..], &json, &data].concat()
}

fn hub() -> Hub {
    Hub::serve(REPOSITORY, files().clone())
}

fn vault() -> Vault {
    Vault::new("//- Garden.md\nPrune apple trees in late winter.\n")
}

fn add_command(vault: &Vault, hub: &Hub) -> Command {
    command(vault, "vault-index", &["models", "add", NAME, "--yes", "--hub", hub.address()])
}

fn start(vault: &Vault, hub: &Hub) -> Child {
    add_command(vault, hub).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
}

fn add(vault: &Vault, hub: &Hub) -> Output {
    add_command(vault, hub).output().unwrap()
}

fn is_installed(vault: &Vault) -> bool {
    let listed: Value = serde_json::from_slice(&run(vault, "vault-index", &["models", "--json"]).stdout).unwrap();
    let row = listed.as_array().unwrap().iter().find(|row| row["name"] == NAME).unwrap();
    row["installed"].as_bool().unwrap()
}

/// The folder of models in the home of a vault's test.
fn models(vault: &Vault) -> PathBuf {
    let cache = if cfg!(target_os = "macos") { "Library/Caches" } else { ".cache" };
    vault.root().parent().unwrap().join(cache).join("vault-models")
}

#[track_caller]
fn assert_works(vault: &Vault, output: &Output) {
    assert_eq!(output.status.code(), Some(0), "{}", stderr(output));
    assert!(is_installed(vault));
    let left: Vec<_> = std::fs::read_dir(models(vault)).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(left.len(), 2, "the model and the lock: {left:?}");
    let rebuilt = run(vault, "vault-index", &["rebuild", "--model", NAME]);
    assert!(rebuilt.status.success(), "{}", stderr(&rebuilt));
    let status: Value = serde_json::from_slice(&run(vault, "vault-index", &["status", "--json"]).stdout).unwrap();
    assert_eq!(status["model"], NAME);
}

#[test]
fn added_used_and_removed() {
    let (vault, hub) = (vault(), hub());
    hub.is_in(Mood { redirects: true, ..Mood::default() });
    let added = add(&vault, &hub);
    assert_works(&vault, &added);
    let (told, printed) = (stderr(&added), stdout(&added));
    for part in [hub.address(), &"a".repeat(40), "licence mit", "MB", "not tested by us"] {
        assert!(told.contains(part), "{part}: {told}");
    }
    assert!(printed.contains("vault-index rebuild --model gte-small"), "{printed}");
    let requests = hub.requests().join("\n");
    assert!(!requests.contains("README") && requests.contains("/elsewhere/model.safetensors"), "{requests}");
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        let mode = |path: PathBuf| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!((mode(models(&vault)), mode(models(&vault).join("gte-small.model"))), (0o700, 0o600));
    }

    let again = add(&vault, &hub);
    assert!(stdout(&again).contains("the same files"), "{}", stdout(&again));
    assert_eq!(hub.requests().len(), 1, "only the listing was asked for");
    hub.is_in(Mood { is_newer: true, ..Mood::default() });
    let newer = add(&vault, &hub);
    assert!(newer.status.success() && stderr(&newer).contains(&"b".repeat(40)), "{}", stderr(&newer));
    assert!(stderr(&newer).contains(&format!("{} then", "a".repeat(40))), "{}", stderr(&newer));

    let remove = || run(&vault, "vault-index", &["models", "remove", NAME]);
    assert!(remove().status.success() && !is_installed(&vault));
    assert_eq!(remove().status.code(), Some(2));
    let synced = run(&vault, "vault-index", &["sync"]);
    assert!(stderr(&synced).contains("vault-index models add gte-small"), "{}", stderr(&synced));
}

#[test]
fn nothing_is_asked_of_the_hub_without_consent() {
    let (vault, hub) = (vault(), hub());
    let refused = run(&vault, "vault-index", &["models", "add", NAME, "--hub", hub.address()]);
    assert_eq!(refused.status.code(), Some(3));
    assert!(stderr(&refused).contains("vault-index models add gte-small --yes"), "{}", stderr(&refused));
    assert!(hub.requests().is_empty());
    let unknown = run(&vault, "vault-index", &["models", "add", "gpt", "--yes", "--hub", hub.address()]);
    assert_eq!(unknown.status.code(), Some(2));
    assert!(stderr(&unknown).contains("multilingual-e5-small") && hub.requests().is_empty());
}

#[test]
fn a_mirror_is_named_by_the_hubs_own_variable() {
    let (vault, hub) = (vault(), hub());
    let mut command = command(&vault, "vault-index", &["models", "add", NAME, "--yes"]);
    assert_works(&vault, &command.env("HF_ENDPOINT", hub.address()).output().unwrap());
}

#[test]
fn a_cut_connection_is_continued() {
    let (vault, hub) = (vault(), hub());
    let part = hub.bytes(WEIGHTS) / 4 + 1;
    hub.is_in(Mood { cut_after: Some(part), ..Mood::default() });
    assert_works(&vault, &add(&vault, &hub));
    let ranges = hub.requests().into_iter().filter(|request| request.contains(" from ")).count();
    assert_eq!(ranges, 3);
}

#[test]
fn a_server_without_ranges_starts_again() {
    let (vault, hub) = (vault(), hub());
    hub.is_in(Mood { hold_at: Some(hub.bytes(WEIGHTS) / 2), ..Mood::default() });
    let mut child = start(&vault, &hub);
    hub.held.recv_timeout(Duration::from_secs(60)).unwrap();
    child.kill().unwrap();
    child.wait().unwrap();
    hub.is_in(Mood { ignores_ranges: true, ..Mood::default() });
    assert_works(&vault, &add(&vault, &hub));
}

#[test]
fn a_busy_server_is_asked_again() {
    let (vault, hub) = (vault(), hub());
    hub.is_in(Mood { codes: vec![429, 503], ..Mood::default() });
    assert_works(&vault, &add(&vault, &hub));
}

#[test]
fn what_the_hub_refuses_is_said() {
    for (codes, expected) in [
        (vec![401], "login"),
        (vec![403], "login"),
        (vec![404], "nothing of this name"),
        (vec![429; 9], "asked too often"),
        (vec![500; 9], "failed (500)"),
        (vec![418], "418"),
    ] {
        let (vault, hub) = (vault(), hub());
        hub.is_in(Mood { codes, ..Mood::default() });
        let failed = add(&vault, &hub);
        assert_eq!(failed.status.code(), Some(2));
        assert!(stderr(&failed).contains(expected), "{expected}: {}", stderr(&failed));
        assert!(!is_installed(&vault));
    }
}

#[test]
fn other_bytes_than_listed_are_not_kept() {
    for mood in [
        Mood { falsifies: Some(WEIGHTS), ..Mood::default() },
        Mood { falsifies: Some("tokenizer.json"), ..Mood::default() },
        Mood { lengthens: Some(WEIGHTS), ..Mood::default() },
    ] {
        let (vault, hub) = (vault(), hub());
        let name = mood.falsifies.or(mood.lengthens).unwrap();
        let expected = if mood.falsifies.is_some() { "digest" } else { "longer" };
        hub.is_in(mood);
        let failed = add(&vault, &hub);
        assert_eq!(failed.status.code(), Some(2));
        let told = stderr(&failed);
        assert!(told.contains(name) && told.contains(expected), "{told}");
        assert!(!is_installed(&vault));
        let part = models(&vault).join("gte-small.part").join(name);
        assert!(!part.exists() && !part.with_extension("safetensors.part").exists());
        hub.is_in(Mood::default());
        assert_works(&vault, &add(&vault, &hub));
    }
}

#[test]
fn killed_at_twenty_moments() {
    const MOMENTS: usize = 20;
    let (vault, hub) = (vault(), hub());
    for moment in 1..=MOMENTS {
        let at = hub.bytes(WEIGHTS) * moment / (MOMENTS + 1);
        hub.is_in(Mood { hold_at: Some(at), ..Mood::default() });
        let mut child = start(&vault, &hub);
        hub.held.recv_timeout(Duration::from_secs(60)).unwrap();
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(!is_installed(&vault), "after {at} bytes");
    }
    let continued = hub.requests().iter().filter(|request| request.contains("safetensors from ")).count();
    // The hub has sent what the killed program may not have read yet, so some begin where the one before began.
    assert!(continued >= MOMENTS / 2, "{continued} went on where the one before stopped");
    // Others while its integers are made: any moment must do.
    hub.is_in(Mood::default());
    for moment in 0..5 {
        let mut child = start(&vault, &hub);
        std::thread::sleep(Duration::from_millis(50 + 150 * moment));
        drop(child.kill());
        child.wait().unwrap();
    }
    let done = add(&vault, &hub);
    assert!(done.status.success(), "{}", stderr(&done));
    assert!(is_installed(&vault));
    let rebuilt = run(&vault, "vault-index", &["rebuild", "--model", NAME]);
    assert!(rebuilt.status.success(), "{}", stderr(&rebuilt));
}

#[test]
fn a_rebuild_adds_its_model_after_a_yes() {
    let (vault, hub) = (vault(), hub());
    let rebuild = |yes: &[&str]| {
        let arguments = [&["rebuild", "--model", NAME, "--json"], yes].concat();
        command(&vault, "vault-index", &arguments).env("HF_ENDPOINT", hub.address()).output().unwrap()
    };
    let refused = rebuild(&[]);
    assert_eq!(refused.status.code(), Some(3), "{}", stderr(&refused));
    assert!(stderr(&refused).contains("vault-index models add gte-small --yes"), "{}", stderr(&refused));
    assert!(hub.requests().is_empty() && !is_installed(&vault));
    let rebuilt = rebuild(&["--yes"]);
    assert!(rebuilt.status.success() && is_installed(&vault), "{}", stderr(&rebuilt));
    serde_json::from_slice::<Value>(&rebuilt.stdout).expect("the report alone");
}

#[test]
fn from_a_folder_and_as_a_folder_without_a_network() {
    let vault = vault();
    let folder = vault.root().parent().unwrap().join("downloads");
    std::fs::create_dir(&folder).unwrap();
    for (name, bytes) in files() {
        std::fs::write(folder.join(name), bytes).unwrap();
    }
    let folder = folder.to_str().unwrap();
    let added = run(&vault, "vault-index", &["models", "add", NAME, "--from", folder]);
    assert!(added.status.success() && is_installed(&vault), "{}", stderr(&added));
    let other = run(&vault, "vault-index", &["models", "add", "leaf-ir", "--from", folder]);
    assert_eq!(other.status.code(), Some(2));
    assert!(stderr(&other).contains("384, but leaf-ir has 768"), "{}", stderr(&other));

    let model = format!("dir:{folder}");
    let sync = || run(&vault, "vault-index", &["sync", "--json", "--model", &model]);
    assert!(sync().status.success(), "{}", stderr(&sync()));
    let status: Value = serde_json::from_slice(&run(&vault, "vault-index", &["status", "--json"]).stdout).unwrap();
    assert_eq!(status["model"], model.as_str());
    std::fs::remove_file(format!("{folder}/config.json")).unwrap();
    let failed = sync();
    assert_eq!(failed.status.code(), Some(2));
    assert!(stderr(&failed).contains("config.json"), "{}", stderr(&failed));
}

#[test]
fn a_damaged_file_is_never_embedded_with() {
    let (vault, hub) = (vault(), hub());
    assert!(add(&vault, &hub).status.success());
    let file = models(&vault).join("gte-small.model");
    let mut bytes = std::fs::read(&file).unwrap();
    let last = bytes.len() - 100;
    bytes[last] ^= 1;
    std::fs::write(&file, &bytes).unwrap();
    let failed = run(&vault, "vault-index", &["rebuild", "--model", NAME]);
    assert!(!failed.status.success() && stderr(&failed).contains("damaged"), "{}", stderr(&failed));
    std::fs::write(&file, &bytes[..last]).unwrap();
    let failed = run(&vault, "vault-index", &["rebuild", "--model", NAME]);
    assert!(!failed.status.success() && stderr(&failed).contains("cut off"), "{}", stderr(&failed));
}
