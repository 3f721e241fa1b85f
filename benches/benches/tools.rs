//! The tools on a vault of 5,000 notes: reads in a warm process, a rename with 50 backlinks, a plan of 1,000 creations.
//!
//! Nothing is embedded. A call is timed as a whole: with the check of its arguments, the policy, its line in the log,
//! and for changes the journal, which is on disk when the call returns. `-- memory` prints only the peak memory of
//! plans, each in its own process.

use std::cell::LazyCell;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, Instant};

use benches::{VaultPlan, demo_vault, make_vault, notes_in};
use criterion::{Criterion, SamplingMode};
use serde_json::{Value, json};
use tempfile::TempDir;
use vault_index::HashedEmbedder;
use vault_tools::approval::{AutoApprover, HeadlessApprover, run_plan};
use vault_tools::plan::{Parameters, RunStatus, dry_run, validate};
use vault_tools::{Cancel, Force, Headless, Policy, Toolbox, VaultOptions};

/// The number of notes in the vault.
const NOTES: usize = 5000;
/// The number of notes that link to the renamed note.
const BACKLINKS: usize = 50;
/// The number of files that the plan creates.
const CREATIONS: usize = 1000;
/// A variable for a process that runs one plan with this number of creations, and reports its memory.
const CHILD: &str = "BENCH_PLAN_MEMORY";

#[allow(clippy::print_stdout, reason = "a program that reports")]
fn main() {
    if let Ok(task) = std::env::var(CHILD) {
        println!("{}", plan_in_child(&task));
        return;
    }
    let words: Vec<String> = std::env::args().skip(1).collect();
    let is_for_memory = words.iter().any(|word| word == "memory");
    let has_filter = words.iter().any(|word| !word.starts_with('-'));
    let vault: LazyCell<Vault> = LazyCell::new(Vault::new);
    if !is_for_memory {
        let mut criterion = Criterion::default()
            .warm_up_time(Duration::from_secs(1))
            .measurement_time(Duration::from_secs(4))
            .sample_size(20)
            .configure_from_args();
        reads(&mut criterion, &vault);
        renames(&mut criterion, &vault, "rename_note");
        plans(&mut criterion, &vault);
        // By now the journal contains dozens of runs with a thousand files.
        renames(&mut criterion, &vault, "rename_note_later");
        criterion.final_summary();
    }
    let is_test = words.iter().any(|word| word == "--test" || word == "--list");
    if (is_for_memory || !has_filter) && !is_test {
        print!("{}", memory(&vault));
    }
}

/// Times read-only calls, one after the other.
fn reads(criterion: &mut Criterion, vault: &LazyCell<Vault>) {
    let mut warm = None;
    let mut group = criterion.benchmark_group("read");
    for (tool, args) in [
        ("read_note", json!({ "path": "Target.md" })),
        ("get_note_metadata", json!({ "path": "Target.md" })),
        ("list_backlinks", json!({ "path": "Target.md" })),
        ("list_forward_links", json!({ "path": "Target.md" })),
        ("search_by_tag", json!({ "tags": ["topic/7"] })),
        ("vault.readFile", json!({ "path": "Target.md" })),
    ] {
        group.bench_function(tool, |bencher| {
            let toolbox = warm.get_or_insert_with(|| {
                let toolbox = vault.toolbox();
                toolbox.vault().index().expect("an index");
                toolbox
            });
            bencher.iter(|| toolbox.call(tool, args.clone(), &mut HeadlessApprover).expect("an answer"));
        });
    }
    group.finish();
}

/// Times a rename, and the time that the next reader of the index waits after it.
fn renames(criterion: &mut Criterion, vault: &LazyCell<Vault>, name: &str) {
    let mut group = criterion.benchmark_group(name);
    group.sample_size(10).sampling_mode(SamplingMode::Flat);
    group.measurement_time(Duration::from_secs(2)).warm_up_time(Duration::from_millis(1));
    for (name, is_timed) in [("50_backlinks", [true, false]), ("index_after", [false, true])] {
        group.bench_function(name, |bencher| {
            let mut toolbox = vault.toolbox();
            toolbox.vault().index().expect("an index");
            let mut places = ["Target.md", "Moved/A new goal.md"];
            bencher.iter_custom(|rounds| {
                let mut took = Duration::ZERO;
                for _ in 0..rounds {
                    let args = json!({ "path": places[0], "new_path": places[1] });
                    let started = Instant::now();
                    let output = toolbox.call("rename_note", args, &mut AutoApprover).expect("a rename");
                    let renamed = started.elapsed();
                    assert_eq!(output.value["notes_updated"].as_array().map(Vec::len), Some(BACKLINKS));
                    let started = Instant::now();
                    toolbox.vault().index().expect("an index");
                    let parts = [renamed, started.elapsed()];
                    took += parts.iter().zip(is_timed).filter(|(_, is_timed)| *is_timed).map(|(part, _)| *part).sum();
                    places.reverse();
                }
                took
            });
            if places[0] != "Target.md" {
                toolbox.vault().undo(None, Force::No).expect("an undo");
            }
        });
    }
    group.finish();
}

/// Times a plan from its text to the last file, and its undo.
fn plans(criterion: &mut Criterion, vault: &LazyCell<Vault>) {
    let mut group = criterion.benchmark_group("plan");
    group.sample_size(10).sampling_mode(SamplingMode::Flat);
    group.measurement_time(Duration::from_secs(8)).warm_up_time(Duration::from_millis(1));
    for (name, timed) in [("1000_creations", 0), ("undo_1000_creations", 1)] {
        group.bench_function(name, |bencher| {
            let mut toolbox = vault.toolbox();
            bencher.iter_custom(|rounds| {
                let mut took = Duration::ZERO;
                for _ in 0..rounds {
                    toolbox.vault().index().expect("an index");
                    took += create(&mut toolbox, CREATIONS)[timed];
                }
                took
            });
        });
    }
    group.finish();
}

/// Creates `count` files by a plan, and undoes it. Returns the times of check, preview and run, and of the undo.
fn create(toolbox: &mut Toolbox, count: usize) -> [Duration; 2] {
    let started = Instant::now();
    let checked = validate(&plan(), toolbox).expect("a plan");
    let mut parameters = Parameters::of(&toolbox.editor().expect("an editor"), &toolbox.now());
    parameters.set("bullets", (0..count).map(|n| format!("- A thing to be done, number {n}\n")).collect::<String>());
    let shown = dry_run(toolbox, &checked, &parameters, Cancel::default()).expect("a preview");
    let actions = shown.actions().len();
    let done = run_plan(toolbox, shown, &mut AutoApprover, Cancel::default(), &mut |_| {}).expect("a run");
    let made = started.elapsed();
    assert_eq!((done.status, actions), (RunStatus::Done, count + 1));
    let started = Instant::now();
    toolbox.vault().undo(done.transaction, Force::No).expect("an undo");
    [made, started.elapsed()]
}

fn plan() -> Value {
    let content = format!("# ${{item.text}}\n\n{}\n", "Some words about it, and why it should be done. ".repeat(12));
    json!({
        "version": "1.0",
        "goal": "A note for each bullet",
        "riskLevel": "writes",
        "steps": [
            { "id": "parse", "tool": "util.parseMarkdownBullets", "args": { "text": "${bullets}" } },
            {
                "id": "make",
                "tool": "vault.createFile",
                "foreach": { "from": "$steps.parse.items", "itemName": "item" },
                "args": { "path": "Made/${item.text}.md", "content": content }
            }
        ]
    })
}

/// Returns a table of the peak memory of processes that run plans.
fn memory(vault: &Vault) -> String {
    // Create it first, so that each process finds it.
    vault.toolbox().vault().index().expect("an index");
    let mut table = "\n| creations of a plan, then its undo | peak memory |\n| --- | --- |\n".to_owned();
    for count in [1, 1000, 4000] {
        let program = std::env::current_exe().expect("this program");
        let task = format!("{count} {}", vault.folder.path().display());
        let output = Command::new(program).env(CHILD, task).output().expect("a process");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        table += &format!("| {count} | {} |\n", String::from_utf8_lossy(&output.stdout).trim());
    }
    table
}

fn plan_in_child(task: &str) -> String {
    let (count, folder) = task.split_once(' ').expect("a number and a folder");
    // With its own journal, because the content of a journal is in the memory of a process that changes the vault.
    let state = tempfile::tempdir().expect("a folder");
    create(&mut toolbox(Path::new(folder), state.path()), count.parse().expect("a number"));
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")?.trim().strip_suffix(" kB")?.parse().ok());
    peak.map_or("unknown here".into(), |kilobytes: f64| format!("{:.0} MB", kilobytes / 1024.0))
}

/// The vault in a folder that is deleted with it, next to its index and state.
struct Vault {
    folder: TempDir,
}

impl Vault {
    fn new() -> Self {
        let vault = Self { folder: tempfile::tempdir().expect("a folder") };
        let notes = vault.folder.path().join("notes");
        let plan = VaultPlan { notes: NOTES, bytes: 1500, links: 6, seed: 2 };
        make_vault(&notes, &demo_vault(), &plan).expect("a vault");
        let all = notes_in(&notes).expect("notes");
        for note in all.iter().step_by(NOTES / BACKLINKS) {
            let text = std::fs::read_to_string(note).expect("a note");
            std::fs::write(note, format!("{text}\nMore of it in [[Target#Part|the target]].\n")).expect("a note");
        }
        let mut text = std::fs::read_to_string(&all[1]).expect("a note");
        text += "\n## Part\n\nSee [[Not yet 1]].\n";
        std::fs::write(notes.join("Target.md"), text).expect("a note");
        vault
    }

    fn toolbox(&self) -> Toolbox {
        toolbox(self.folder.path(), &self.folder.path().join("state"))
    }
}

fn toolbox(folder: &Path, state: &Path) -> Toolbox {
    let index =
        vault_index::Options::new().index_file(folder.join("index/index.db")).embedder(Arc::new(HashedEmbedder));
    let options = VaultOptions::new().state_folder(state).index(index);
    let vault = vault_tools::Vault::open(folder.join("notes"), options).expect("a vault");
    Toolbox::new(Arc::new(vault), Box::new(Headless::default()), Policy::default())
}
