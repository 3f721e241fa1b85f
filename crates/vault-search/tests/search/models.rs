//! `vault-index models add` and `remove`, with a hub on this machine.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;

use serde_json::Value;

use crate::commands::{command, run, stderr, stdout};
use crate::hub::{Hub, Mood, Proxy, WEIGHTS};
use crate::small_model::{NAME, REPOSITORY, files};
use crate::vault::Vault;

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

/// Begins to add the model, and kills the program when the hub holds the download.
fn kill_when_held(vault: &Vault, hub: &Hub) {
    let mut child = start(vault, hub);
    hub.held.recv_timeout(Duration::from_secs(60)).unwrap();
    child.kill().unwrap();
    child.wait().unwrap();
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
    for part in [hub.address(), &"a".repeat(40), "licence mit", "MB", "not tested by us", "config.json: ", "git:"] {
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
    assert!(!stderr(&newer).contains("its vectors"), "a blank changes no vector: {}", stderr(&newer));
    // Another commit with the same files.
    hub.requests();
    hub.is_in(Mood { is_newer: true, commit: Some('c'), ..Mood::default() });
    let same = add(&vault, &hub);
    assert!(stdout(&same).contains("the same files") && hub.requests().len() == 1, "{}", stderr(&same));

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
    kill_when_held(&vault, &hub);
    hub.is_in(Mood { ignores_ranges: true, ..Mood::default() });
    assert_works(&vault, &add(&vault, &hub));
}

#[test]
fn a_server_whose_file_is_shorter_starts_again() {
    let (vault, hub) = (vault(), hub());
    hub.is_in(Mood { hold_at: Some(hub.bytes(WEIGHTS) / 2), ..Mood::default() });
    let mut child = start(&vault, &hub);
    hub.held.recv_timeout(Duration::from_secs(60)).unwrap();
    // The hub has sent half, and the program has written something of it.
    let part = models(&vault).join("gte-small.part").join(format!("{WEIGHTS}.part"));
    while !std::fs::metadata(&part).is_ok_and(|part| part.len() > 0) {
        assert_eq!(child.try_wait().unwrap(), None);
        std::thread::sleep(Duration::from_millis(1));
    }
    child.kill().unwrap();
    child.wait().unwrap();
    hub.requests();
    hub.is_in(Mood { refuses_ranges: true, ..Mood::default() });
    assert_works(&vault, &add(&vault, &hub));
    let asked: Vec<String> = hub.requests().into_iter().filter(|request| request.contains(WEIGHTS)).collect();
    assert!(
        matches!(&asked[..], [first, second] if first.contains(" from ") && !second.contains(" from ")),
        "{asked:?}"
    );
}

#[test]
fn a_listing_without_bounds_is_refused() {
    for (mood, expected) in [
        (Mood { licence: Some("x".repeat(1000)), ..Mood::default() }, None),
        (Mood { size: Some(u64::MAX), ..Mood::default() }, Some("more than a model has")),
        (Mood { size: Some(5 << 30), ..Mood::default() }, Some("more than a model has")),
        (Mood { dense_layers: 40, ..Mood::default() }, Some("more than a model has")),
        (Mood { lists_twice: true, ..Mood::default() }, Some("twice")),
    ] {
        let (vault, hub) = (vault(), hub());
        hub.is_in(mood);
        let answer = add(&vault, &hub);
        let Some(expected) = expected else {
            assert!(answer.status.success() && !stderr(&answer).contains(&"x".repeat(100)), "{}", stderr(&answer));
            continue;
        };
        assert_eq!(answer.status.code(), Some(2));
        assert!(stderr(&answer).contains(expected), "{}", stderr(&answer));
        assert_eq!(hub.requests().len(), 1, "no file was asked for");
    }
}

#[test]
fn a_busy_server_is_asked_again() {
    let (vault, hub) = (vault(), hub());
    hub.is_in(Mood { codes: vec![429, 503], ..Mood::default() });
    assert_works(&vault, &add(&vault, &hub));
}

#[test]
fn what_the_hub_refuses_is_said() {
    for (codes, expected, requests) in [
        (vec![401; 9], "login", 1),
        (vec![403; 9], "login", 1),
        (vec![404; 9], "nothing of this name", 1),
        (vec![429; 9], "asked too often", 5),
        (vec![500; 9], "failed (500)", 5),
        (vec![418; 9], "418", 1),
    ] {
        let (vault, hub) = (vault(), hub());
        hub.is_in(Mood { codes, ..Mood::default() });
        let failed = add(&vault, &hub);
        assert_eq!(failed.status.code(), Some(2));
        assert!(stderr(&failed).contains(expected), "{expected}: {}", stderr(&failed));
        assert_eq!(hub.requests().len(), requests, "{expected}");
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
        let folder = models(&vault).join("gte-small.part");
        assert!(folder.join("config.json").exists(), "the file before it is kept");
        for left in [name.to_owned(), format!("{name}.part")] {
            assert!(!folder.join(&left).exists(), "{left}");
        }
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
        kill_when_held(&vault, &hub);
        assert!(!is_installed(&vault), "after {at} bytes");
    }
    let continued = hub.requests().iter().filter(|request| request.contains("safetensors from ")).count();
    // The hub has sent what the killed program may not have read yet, so some begin where the one before began; on a
    // busy machine, most.
    assert!(continued > 0, "none went on where the one before stopped");
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
    let add_from = || run(&vault, "vault-index", &["models", "add", NAME, "--from", folder]);
    for added in [add_from(), add_from()] {
        assert!(added.status.success() && is_installed(&vault), "{}", stderr(&added));
        assert!(!stderr(&added).contains("its vectors"), "the vectors stay the same: {}", stderr(&added));
    }
    let other = run(&vault, "vault-index", &["models", "add", "leaf-ir", "--from", folder]);
    assert_eq!(other.status.code(), Some(2));
    assert!(stderr(&other).contains("384, but leaf-ir has 768"), "{}", stderr(&other));

    let model = format!("dir:{folder}");
    let sync = || run(&vault, "vault-index", &["sync", "--json", "--model", &model]);
    assert!(sync().status.success(), "{}", stderr(&sync()));
    let status: Value = serde_json::from_slice(&run(&vault, "vault-index", &["status", "--json"]).stdout).unwrap();
    assert_eq!(status["model"], model.as_str());
    // Its compiled file is a cache, so a damaged one is made again.
    let compiled = std::fs::read_dir(models(&vault)).unwrap().map(|entry| entry.unwrap().path());
    let compiled = compiled
        .filter(|path| path.to_string_lossy().contains("dir-"))
        .find(|path| path.extension() == Some("model".as_ref()));
    flip(&compiled.unwrap(), 100);
    std::fs::write(vault.root().join("New.md"), "A note that has no vector yet.\n").unwrap();
    let damaged = sync();
    assert!(!damaged.status.success() && stderr(&damaged).contains("made again"), "{}", stderr(&damaged));
    assert!(sync().status.success(), "{}", stderr(&sync()));
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
    flip(&file, 100);
    let failed = run(&vault, "vault-index", &["rebuild", "--model", NAME]);
    assert!(!failed.status.success() && stderr(&failed).contains("damaged"), "{}", stderr(&failed));
    assert!(stderr(&failed).contains("vault-index models add gte-small"), "{}", stderr(&failed));
    // The command that it names repairs it, whichever part is damaged.
    let repaired = add(&vault, &hub);
    assert!(
        stderr(&repaired).contains("is replaced") && stderr(&repaired).contains("damaged"),
        "{}",
        stderr(&repaired)
    );
    assert_works(&vault, &repaired);
    let whole = std::fs::read(&file).unwrap();
    std::fs::write(&file, &whole[..whole.len() - 100]).unwrap();
    let failed = run(&vault, "vault-index", &["rebuild", "--model", NAME]);
    assert!(!failed.status.success() && stderr(&failed).contains("cut off"), "{}", stderr(&failed));
    assert_works(&vault, &add(&vault, &hub));
    // A file of an older program.
    let mut older = whole.clone();
    older[8] = 0;
    std::fs::write(&file, older).unwrap();
    let failed = run(&vault, "vault-index", &["rebuild", "--model", NAME]);
    assert!(!failed.status.success() && stderr(&failed).contains("format 0"), "{}", stderr(&failed));
    assert_works(&vault, &add(&vault, &hub));
    assert!(std::fs::read(&file).unwrap() == whole);
}

/// Changes one byte, at this distance from the end.
fn flip(file: &Path, from_end: usize) {
    let mut bytes = std::fs::read(file).unwrap();
    let at = bytes.len() - from_end;
    bytes[at] ^= 1;
    std::fs::write(file, bytes).unwrap();
}

#[test]
fn a_finished_file_of_a_download_is_checked_again() {
    let (vault, hub) = (vault(), hub());
    hub.is_in(Mood { hold_at: Some(hub.bytes(WEIGHTS) / 2), ..Mood::default() });
    kill_when_held(&vault, &hub);
    let config = models(&vault).join("gte-small.part/config.json");
    let sound = std::fs::read(&config).unwrap();
    flip(&config, 1);
    hub.requests();
    hub.is_in(Mood { hold_at: Some(hub.bytes(WEIGHTS) - 1), ..Mood::default() });
    kill_when_held(&vault, &hub);
    assert!(std::fs::read(&config).unwrap() == sound);
    let requests = hub.requests().join("\n");
    assert!(requests.contains("config.json") && !requests.contains("tokenizer.json"), "{requests}");

    let removed = run(&vault, "vault-index", &["models", "remove", NAME]);
    assert!(removed.status.success(), "{}", stderr(&removed));
    let left: Vec<_> = std::fs::read_dir(models(&vault)).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(left, ["gte-small.lock"]);
}

/// A tar file with these files, as `tar` writes it.
fn archive(vault: &Vault, files: &BTreeMap<String, Vec<u8>>, is_compressed: bool) -> PathBuf {
    let mut tar = Vec::new();
    for (name, bytes) in files {
        let mut header = vec![0; 512];
        let name = format!("gte-small/{name}");
        header[..name.len()].copy_from_slice(name.as_bytes());
        header[124..136].copy_from_slice(format!("{:011o}\0", bytes.len()).as_bytes());
        header[156] = b'0';
        header[257..263].copy_from_slice(b"ustar\0");
        header[148..156].fill(b' ');
        let sum: u64 = header.iter().map(|byte| u64::from(*byte)).sum();
        header[148..155].copy_from_slice(format!("{sum:06o}\0").as_bytes());
        tar.extend(header);
        tar.extend(bytes);
        tar.resize(tar.len().next_multiple_of(512), 0);
    }
    tar.resize(tar.len() + 1024, 0);
    let path = vault.root().parent().unwrap().join(if is_compressed { "model.tar.gz" } else { "model.tar" });
    if is_compressed {
        let mut gz = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        gz.write_all(&tar).unwrap();
        tar = gz.finish().unwrap();
    }
    std::fs::write(&path, tar).unwrap();
    path
}

#[test]
fn from_an_archive() {
    for is_compressed in [false, true] {
        let vault = vault();
        let path = archive(&vault, files(), is_compressed);
        let add_from = || run(&vault, "vault-index", &["models", "add", NAME, "--from", path.to_str().unwrap()]);
        let added = add_from();
        assert!(!stderr(&added).contains("its vectors"), "{}", stderr(&added));
        assert_works(&vault, &added);
        let whole = std::fs::read(&path).unwrap();
        std::fs::write(&path, &whole[..whole.len() / 2]).unwrap();
        let failed = add_from();
        assert_eq!(failed.status.code(), Some(2));
        assert!(stderr(&failed).contains("it is damaged") && is_installed(&vault), "{}", stderr(&failed));
        assert!(!models(&vault).join("gte-small.unpacked").exists());
    }
}

#[test]
fn other_vectors_are_told_and_the_next_sync_makes_them() {
    let (vault, hub) = (vault(), hub());
    let mut others = files().clone();
    *others.get_mut(WEIGHTS).unwrap().last_mut().unwrap() ^= 1;
    let path = archive(&vault, &others, false);
    let added = run(&vault, "vault-index", &["models", "add", NAME, "--from", path.to_str().unwrap()]);
    assert_works(&vault, &added);
    let now = add(&vault, &hub);
    for told in ["model.tar, whose files cannot be compared with the hub's", "the next `vault-index sync` embeds"] {
        assert!(stderr(&now).contains(told), "{}", stderr(&now));
    }
    let synced = run(&vault, "vault-index", &["sync", "--json"]);
    let report: Value = serde_json::from_slice(&synced.stdout).unwrap();
    assert!(report["embedded"].as_u64() > Some(0) && report["pending"] == 0, "{report}");
}

#[test]
fn a_mistyped_path_is_named_and_nothing_is_made() {
    let vault = vault();
    let none = run(&vault, "vault-index", &["models", "add", NAME, "--from", "/no/such/folder"]);
    assert_eq!(none.status.code(), Some(2));
    assert!(stderr(&none).contains("/no/such/folder") && !models(&vault).exists(), "{}", stderr(&none));
}

#[test]
fn a_model_is_added_although_its_original_files_cannot_be_deleted() {
    let (vault, hub) = (vault(), hub());
    std::fs::create_dir_all(models(&vault)).unwrap();
    std::fs::write(models(&vault).join("gte-small.unpacked"), "a file in the place of the folder").unwrap();
    let added = add(&vault, &hub);
    assert!(added.status.success() && is_installed(&vault), "{}", stderr(&added));
}

#[test]
fn an_archive_that_fails_costs_no_download() {
    let (vault, hub) = (vault(), hub());
    hub.is_in(Mood { hold_at: Some(hub.bytes(WEIGHTS) / 2), ..Mood::default() });
    kill_when_held(&vault, &hub);
    hub.requests();
    let no_archive = vault.root().parent().unwrap().join("typo.tgz");
    std::fs::write(&no_archive, "no archive").unwrap();
    let others = BTreeMap::from([("config.json".to_owned(), b"{}".to_vec())]);
    for path in [&no_archive, Path::new("/no/such/file"), &archive(&vault, &others, true)] {
        let failed = run(&vault, "vault-index", &["models", "add", NAME, "--from", path.to_str().unwrap()]);
        assert_eq!(failed.status.code(), Some(2));
        assert!(!models(&vault).join("gte-small.unpacked").exists(), "{}", path.display());
    }
    hub.is_in(Mood::default());
    assert_works(&vault, &add(&vault, &hub));
    let requests = hub.requests().join("\n");
    assert!(!requests.contains("config.json"), "the file before the weights was kept: {requests}");

    let unpacked = models(&vault).join("gte-small.unpacked");
    std::fs::create_dir(&unpacked).unwrap();
    assert!(run(&vault, "vault-index", &["models", "remove", NAME]).status.success() && !unpacked.exists());
}

#[cfg(unix)]
#[test]
fn an_interrupted_quantization_leaves_nothing() {
    let (vault, hub) = (vault(), hub());
    let mut command = add_command(&vault, &hub);
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    let new = models(&vault).join("gte-small.new");
    while !new.exists() {
        assert_eq!(child.try_wait().unwrap(), None, "it is quantizing when it is interrupted");
        std::thread::sleep(Duration::from_millis(1));
    }
    let id = rustix::process::Pid::from_child(&child);
    rustix::process::kill_process(id, rustix::process::Signal::INT).unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130), "{}", stderr(&output));
    assert!(stderr(&output).contains("was not installed"), "{}", stderr(&output));
    assert!(!new.exists() && !is_installed(&vault));
    hub.requests();
    assert_works(&vault, &add(&vault, &hub));
    assert_eq!(hub.requests().len(), 1, "the files are kept: only the listing was asked for");
}

#[test]
fn a_proxy_is_used() {
    let (vault, hub) = (vault(), hub());
    let proxy = Proxy::to(&hub);
    // A name that only the proxy knows.
    let arguments = ["models", "add", NAME, "--yes", "--hub", "http://hub.test"];
    for variable in ["HTTPS_PROXY", "HTTP_PROXY", "ALL_PROXY"] {
        let added = command(&vault, "vault-index", &arguments).env(variable, proxy.address()).output().unwrap();
        assert!(added.status.success(), "{variable}: {}", stderr(&added));
        assert!(proxy.uses() > 0, "{variable}");
    }
    assert!(is_installed(&vault));
    let unreachable = "http://user:secret@127.0.0.1:9";
    let failed = command(&vault, "vault-index", &arguments).env("HTTPS_PROXY", unreachable).output().unwrap();
    assert_eq!(failed.status.code(), Some(2));
    assert!(!stderr(&failed).contains("secret"), "{}", stderr(&failed));
}
