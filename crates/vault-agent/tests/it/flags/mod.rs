//! Every flag that a command accepts has an effect there, and the flags of the vault work before and after the command.
//!
//! A flag is proved by two runs of the program that differ by it alone: the run with it is observed to be another one,
//! while two runs without it are the same.

mod rows;
mod drive;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock};

use regex::Regex;

use crate::stdio::PROGRAM;
use drive::{Run, observed};
use rows::{Common, Group, groups};

/// Most of a run is waiting for the program.
const THREADS: usize = 3;

/// What the program prints as the help of a command.
fn help(path: &str, flag: &str) -> String {
    let output = std::process::Command::new(PROGRAM).args(path.split_whitespace()).arg(flag).output().unwrap();
    assert!(output.status.success(), "{path} {flag}: {output:?}");
    String::from_utf8(output.stdout).unwrap()
}

/// The program's commands with what they print for `--help`, the program itself first as an empty name.
fn commands() -> Vec<(String, String)> {
    fn walk(path: &str, all: &mut Vec<(String, String)>) {
        let help = help(path, "--help");
        all.push((path.to_owned(), help.clone()));
        let Some((_, below)) = help.split_once("\nCommands:\n") else { return };
        for line in below.lines().take_while(|line| !line.is_empty()) {
            let name = line.split_whitespace().next().unwrap();
            // What is longer than a line goes on further right.
            if name != "help" && !line.starts_with("   ") {
                walk(format!("{path} {name}").trim(), all);
            }
        }
    }
    let mut all = Vec::new();
    walk("", &mut all);
    all
}

/// The long names of the flags that a command accepts.
fn flags_in(help: &str) -> BTreeSet<String> {
    let flag = Regex::new(r"(?m)^ {2,6}(?:-\w, )?(--[a-z][a-z-]*)").unwrap();
    flag.captures_iter(help).map(|found| found[1].to_owned()).collect()
}

/// The flags that the rows prove, of each command.
fn proved(groups: &[Group]) -> BTreeMap<String, BTreeSet<String>> {
    let mut proved: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for group in groups {
        let flags = proved.entry(group.path.to_owned()).or_default();
        flags.extend(group.rows.iter().map(|row| row.split_whitespace().next().unwrap().to_owned()));
        flags.extend(group.common.iter().flat_map(|_| ["--vault", "--index"]).map(str::to_owned));
    }
    proved
}

#[test]
fn every_flag_has_a_row_and_every_row_a_flag() {
    let groups = groups();
    let mut proved = proved(&groups);
    let mut faults = Vec::new();
    for (path, help) in commands() {
        let mut flags = flags_in(&help);
        // A command that only holds others does nothing by itself.
        let is_group = help.contains(" <COMMAND>") && !help.contains(" [OPTIONS]\n");
        flags.retain(|flag| !["--help", "--version"].contains(&flag.as_str()));
        let rows = proved.remove(&path).unwrap_or_default();
        if is_group {
            faults.extend(rows.iter().map(|row| format!("{path} {row}: it does nothing by itself")));
            continue;
        }
        faults
            .extend(flags.difference(&rows).map(|flag| format!("{path} {flag}: no row proves that it has an effect")));
        faults.extend(rows.difference(&flags).map(|flag| format!("{path} {flag}: there is no such flag")));
    }
    faults.extend(proved.into_keys().map(|path| format!("{path}: there is no such command")));
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

/// Runs that are made once, by what they are.
#[derive(Default)]
struct OutputCache(Mutex<BTreeMap<String, Arc<OnceLock<String>>>>);

impl OutputCache {
    /// What is observed of a run, the first or second time that it is made.
    fn observed(&self, run: &Run, time: usize) -> String {
        let slot = Arc::clone(self.0.lock().unwrap().entry(format!("{time} {run:?}")).or_default());
        slot.get_or_init(|| observed(run)).clone()
    }
}

/// A flag with the runs that prove it.
struct Proof {
    name: String,
    base: Run,
    /// Runs with the flag, which are all the same.
    with: Vec<Run>,
}

fn proofs() -> Vec<Proof> {
    let mut proofs = Vec::new();
    for group in groups() {
        for row in &group.rows {
            let (flag, more) = row.split_once(" @").unwrap_or((row, ""));
            let base = group.run(more, "", "");
            let name = format!("{} {}", group.path, flag.split_whitespace().next().unwrap());
            proofs.push(Proof { name, base, with: vec![group.run(more, "", flag)] });
        }
        let common = group.common.map(|Common { vault, index }| [vault, index]);
        for flag in common.into_iter().flatten() {
            let (flag, more) = flag.split_once(" @").unwrap_or((flag, ""));
            let with = vec![group.run(more, flag, ""), group.run(more, "", flag)];
            let name = format!("{} {}", group.path, flag.split_whitespace().next().unwrap());
            proofs.push(Proof { name, base: group.run(more, "", ""), with });
        }
    }
    proofs
}

#[test]
fn every_flag_has_an_effect() {
    let (proofs, made, next) = (proofs(), OutputCache::default(), AtomicUsize::new(0));
    let faults = Mutex::new(Vec::new());
    let prove = |proof: &Proof| {
        let Proof { name, base, with } = proof;
        let (first, second) = (made.observed(base, 1), made.observed(base, 2));
        let seen: Vec<String> = with.iter().map(|run| made.observed(run, 1)).collect();
        let args = &with[0].args;
        if first != second {
            return Some(format!("{name}: two equal runs differ: {:?}\n{}", base.args, difference(&first, &second)));
        }
        if seen[0] == first {
            // The requests to the model are long.
            let seen: Vec<String> = first.lines().take(12).map(|line| line.chars().take(200).collect()).collect();
            return Some(format!("{name}: it has no effect: {args:?}\n{}", seen.join("\n")));
        }
        let other = seen.iter().find(|other| **other != seen[0])?;
        Some(format!("{name}: before and after the command it does two things\n{}", difference(&seen[0], other)))
    };
    std::thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(|| {
                while let Some(proof) = proofs.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let fault = prove(proof);
                    faults.lock().unwrap().extend(fault);
                }
            });
        }
    });
    let faults = faults.into_inner().unwrap();
    assert!(faults.is_empty(), "{} faults\n{}", faults.len(), faults.join("\n\n"));
}

/// Where two texts begin to differ.
fn difference(one: &str, other: &str) -> String {
    let same = one.char_indices().zip(other.chars()).find(|((_, char), other)| char != other).map(|((at, _), _)| at);
    let from = same.unwrap_or(one.len().min(other.len())).saturating_sub(80);
    let part = |text: &str| {
        text.chars().skip(one[..one.floor_char_boundary(from)].chars().count()).take(240).collect::<String>()
    };
    format!("- {}\n+ {}", part(one), part(other))
}
