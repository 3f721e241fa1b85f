//! After a search at a terminal a process goes on embedding; after any other search nothing stays behind.

use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use crate::commands::{command, run, stderr, stdout};
use crate::terminal::run_at;
use crate::vault::Vault;

/// Notes that take the bundled model much longer than a search waits.
fn notes(count: usize) -> Vault {
    let vault = Vault::new("");
    let words = ["heron", "river", "apple", "ladder", "winter", "kettle", "garden", "letter", "candle", "harbour"];
    for n in 0..count {
        let text: String = (0..220).map(|i| format!("{} ", words[(n * 7 + i * i + n * i) % words.len()])).collect();
        vault.write(&format!("Note {n}.md"), format!("# Note {n}\n\n{text}\n"));
    }
    vault
}

fn search_at_terminal(vault: &Vault, args: &[&str]) -> String {
    // Lines that were broken between words are one.
    run_at(vault, command(vault, "vault-search", args), [true, true]).0.replace("\n  ", " ")
}

/// The processes that embed for this vault.
pub fn processes(vault: &Vault) -> Vec<i32> {
    let index = vault.index_file();
    let is_one = |pid: &i32| {
        let line = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        let words: Vec<&[u8]> = line.split(|byte| *byte == 0).collect();
        words.contains(&&b"vault-embed"[..]) && words.contains(&index.as_os_str().as_encoded_bytes())
    };
    let pids = std::fs::read_dir("/proc").unwrap().filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
    pids.filter(is_one).collect()
}

/// The process as a search starts it, but with a limit of its own.
fn process(vault: &Vault, seconds: u32) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_vault-search"));
    command.args(["--started-as", "vault-embed"]).args([vault.root(), vault.index_file()]).arg(seconds.to_string());
    command.stdin(Stdio::null());
    command
}

fn status(vault: &Vault) -> serde_json::Value {
    serde_json::from_str(&stdout(&run(vault, "vault-index", &["status", "--json"]))).unwrap()
}

fn wait_until(what: &str, mut is_so: impl FnMut() -> bool) {
    let started = Instant::now();
    while !is_so() {
        assert!(started.elapsed() < Duration::from_secs(300), "{what}: not after five minutes");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Ends what a test that fails would leave behind.
struct StopGuard<'v>(&'v Vault);

impl Drop for StopGuard<'_> {
    fn drop(&mut self) {
        for pid in processes(self.0) {
            let _ = kill_process(Pid::from_raw(pid).unwrap(), Signal::KILL);
        }
    }
}

#[test]
fn what_a_search_leaves_out_is_embedded_after_the_answer() {
    let vault = notes(1500);
    let _stopped = StopGuard(&vault);
    let shown = search_at_terminal(&vault, &["-n", "1", "heron"]);
    assert!(shown.contains("made in the background") && shown.contains("vault-index stop"), "{shown}");
    wait_until("the process is at work", || status(&vault)["background"]["process"].is_string());
    let [pid] = processes(&vault)[..] else { panic!("{:?}", processes(&vault)) };
    let line = std::fs::read_to_string(format!("/proc/{pid}/cmdline")).unwrap();
    assert!(line.ends_with("\0900\0"), "for at most 15 minutes: {line}");
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    let fields: Vec<&str> = stat.rsplit(')').next().unwrap().split_whitespace().collect();
    assert_eq!((fields[3], fields[16]), (&*pid.to_string(), "19"), "its own session, the lowest priority: {stat}");
    assert_eq!(std::fs::read_link(format!("/proc/{pid}/cwd")).unwrap().to_str(), Some("/"));

    // Many searches at once: still one process.
    std::thread::scope(|scope| {
        for _ in 0..20 {
            scope.spawn(|| search_at_terminal(&vault, &["-n", "1", "river"]));
        }
    });
    // Those that found it at work are ending.
    wait_until("one process", || processes(&vault).len() <= 1);
    assert_eq!(processes(&vault), [pid]);

    // Who wants to embed gets the lock; the process is gone.
    let stopped = run(&vault, "vault-index", &["stop"]);
    assert!(stopped.status.success(), "{}", stderr(&stopped));
    assert!(stdout(&stopped).contains("stopped"), "{}", stdout(&stopped));
    wait_until("the process is gone", || processes(&vault).is_empty());
    let (before, now) = (status(&vault), run(&vault, "vault-index", &["stop"]));
    assert!(before["pending"].as_u64().unwrap() < 1500 && before["background"]["ended"].is_string(), "{before}");
    assert!(stdout(&now).contains("no process is embedding"), "{}", stdout(&now));
}

#[test]
fn a_script_leaves_nothing_behind_and_converges() {
    let vault = notes(400);
    let _stopped = StopGuard(&vault);
    assert!(run(&vault, "vault-index", &["sync", "--no-vectors"]).status.success());
    let pending = || status(&vault)["pending"].as_u64().unwrap();
    let mut left = vec![pending()];
    let search = |args: &[&str]| command(&vault, "vault-search", args);
    // A pipe; errors in a file; cron; flags for programs.
    for (args, terminals) in [
        (&["heron"][..], [false, true]),
        (&["heron"], [true, false]),
        (&["heron"], [false, false]),
        (&["--json", "heron"], [true, true]),
        (&["--files", "heron"], [true, true]),
        (&["--jsonl", "heron"], [true, true]),
        (&["-0", "heron"], [true, true]),
        (&["--count", "heron"], [true, true]),
    ] {
        run_at(&vault, search(args), terminals);
        assert!(processes(&vault).is_empty(), "{args:?} {terminals:?}");
        left.push(pending());
    }
    assert!(left.is_sorted_by(|a, b| a >= b) && left[8] < left[0], "each keeps what it made: {left:?}");
}

#[test]
fn no_process_starts_where_it_is_turned_off_or_cannot_write() {
    let vault = notes(1500);
    let _stopped = StopGuard(&vault);
    assert!(run(&vault, "vault-index", &["sync", "--no-vectors"]).status.success());
    let starts = |command: Command| {
        let (shown, code) = run_at(&vault, command, [true, true]);
        assert!(shown.contains("no vector yet") && code == Some(0), "{shown}");
        assert_eq!(shown.contains("in the background"), !processes(&vault).is_empty(), "{shown}");
        !processes(&vault).is_empty()
    };
    let search = |variables: &[(&str, &str)]| {
        let mut command = command(&vault, "vault-search", &["-n", "1", "heron"]);
        command.envs(variables.iter().copied());
        command
    };
    assert!(!starts(search(&[("VAULT_BACKGROUND", "0")])));
    assert!(!starts(search(&[("CI", "true")])));

    let config = tempfile::tempdir().unwrap();
    std::fs::create_dir(config.path().join("vault-index")).unwrap();
    std::fs::write(config.path().join("vault-index/config.toml"), "background = false\n").unwrap();
    let configured = ("XDG_CONFIG_HOME", config.path().to_str().unwrap());
    assert!(!starts(search(&[configured])));

    let permissions = std::fs::metadata(vault.index_file()).unwrap().permissions();
    let mut read_only = permissions.clone();
    read_only.set_readonly(true);
    std::fs::set_permissions(vault.index_file(), read_only).unwrap();
    assert!(!starts(bound_by_permissions(search(&[]))));
    std::fs::set_permissions(vault.index_file(), permissions).unwrap();

    // The variable decides, and nothing else stood in the way.
    assert!(starts(search(&[configured, ("VAULT_BACKGROUND", "1")])));
}

/// The same command line without the privilege of root to write files that are read-only.
fn bound_by_permissions(command: Command) -> Command {
    if !rustix::process::geteuid().is_root() {
        return command;
    }
    let mut bound = Command::new("/usr/bin/setpriv");
    bound.arg("--bounding-set=-dac_override").arg(command.get_program()).args(command.get_args()).env_clear();
    bound.envs(command.get_envs().filter_map(|(name, value)| Some((name, value?)))).stdin(Stdio::null());
    bound
}

#[test]
fn a_signal_or_its_limit_ends_it_and_the_next_search_goes_on() {
    let vault = notes(1500);
    let _stopped = StopGuard(&vault);
    assert!(run(&vault, "vault-index", &["sync", "--no-vectors"]).status.success());
    let pending = || status(&vault)["pending"].as_u64().unwrap();
    let mut left = vec![pending()];
    for (seconds, signal) in [(900, Some(Signal::TERM)), (1, None)] {
        let mut process = process(&vault, seconds).spawn().unwrap();
        if let Some(signal) = signal {
            wait_until("a passage is embedded", || pending() < left[0]);
            kill_process(Pid::from_child(&process), signal).unwrap();
        }
        wait_until("the process is gone", || process.try_wait().unwrap().is_some());
        assert!(process.wait().unwrap().success());
        let status = status(&vault);
        let background = &status["background"];
        assert!(background["ended"].is_string() && background["error"].is_null(), "{status}");
        left.push(pending());
    }
    assert!(left.is_sorted_by(|a, b| a > b) && left[2] > 0, "each keeps what it made, and ends before all: {left:?}");
    let check = run(&vault, "vault-index", &["check"]);
    assert!(check.status.success(), "{}{}", stdout(&check), stderr(&check));
    // That it ended early is no failure, after which none would start for an hour.
    let shown = search_at_terminal(&vault, &["-n", "1", "heron"]);
    assert!(shown.contains("made in the background"), "{shown}");
    wait_until("another process goes on", || pending() < left[2]);
}

#[test]
fn killed_at_any_moment_the_index_is_sound() {
    let vault = notes(120);
    let _stopped = StopGuard(&vault);
    assert!(run(&vault, "vault-index", &["sync", "--no-vectors"]).status.success());
    for moment in 0..20 {
        let mut process = process(&vault, 900).spawn().unwrap();
        // The moment is not waited for but chosen: any moment must do.
        std::thread::sleep(Duration::from_millis(7 * moment));
        process.kill().unwrap();
        process.wait().unwrap();
    }
    let check = run(&vault, "vault-index", &["check"]);
    assert!(check.status.success(), "{}{}", stdout(&check), stderr(&check));
    let sync = run(&vault, "vault-index", &["sync"]);
    assert!(sync.status.success(), "{}", stderr(&sync));
    assert_eq!(status(&vault)["pending"], 0);
}
