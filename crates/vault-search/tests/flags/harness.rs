//! Walks every flag of every subcommand of a program, and its help.
//!
//! A row of the walk is a command line without the flag, and what the flag adds to it. Both run in equal folders; the flag
//! has an effect when what can be observed differs: exit code, output, and files. Which flags there are is read from the
//! program's `--help`, so that a flag without a row fails the walk.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex, mpsc};
use std::thread;
use std::time::{Duration, Instant};

/// A program under test, and the folders that its runs begin with.
#[derive(Clone, Copy)]
pub struct Program {
    pub name: &'static str,
    pub path: &'static str,
    /// Variables of its environment, beside the folders of the user.
    pub environment: &'static [(&'static str, &'static str)],
    /// Prepares the folders of a state: `place.vault()` is where the program runs.
    pub prepare: fn(&str, &Place),
}

/// What is walked.
pub struct Walk<'a> {
    /// The command line without the flag, and what is added: `("sync", "--full")`, `("@changed undo", "--yes")`. Words with
    /// spaces stand in ' '.
    ///
    /// Words in front: `@STATE` names the state that the run begins with. `%tty` runs it at a terminal. `%until=TEXT`
    /// ends it once it has printed TEXT, or one of `TEXT|TEXT`; with `%write=FILE:TEXT` it then writes a file, and waits for the other text, and with
    /// `%least=MS` it is observed whether that took so long.
    pub rows: &'a [(&'a str, &'a str)],
    /// Flags that all subcommands take, with a value. They are walked by the first row of a subcommand that is in `plain`, or
    /// by rows of their own.
    pub shared: &'a [(&'a str, &'a str)],
    /// A command line of each subcommand.
    pub plain: &'a [&'a str],
}

/// The folders of a run.
pub struct Place {
    root: PathBuf,
    program: Program,
}

/// All that can be observed of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Observation {
    code: Option<i32>,
    out: String,
    err: String,
    files: BTreeMap<PathBuf, Vec<u8>>,
}

#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Line {
    state: String,
    markers: Vec<String>,
    words: Vec<String>,
}

impl Line {
    fn parse(text: &str) -> Self {
        let mut line = Self { state: String::new(), markers: Vec::new(), words: Vec::new() };
        for word in words(text) {
            match word.split_at_checked(1) {
                Some(("@", state)) if line.words.is_empty() => line.state = state.to_owned(),
                Some(("%", marker)) if line.words.is_empty() => line.markers.push(marker.to_owned()),
                _ => line.words.push(word),
            }
        }
        line
    }

    fn with(&self, added: &[String]) -> Self {
        Self { words: [&self.words[..], added].concat(), ..self.clone() }
    }

    fn before(&self, added: &[String]) -> Self {
        Self { words: [added, &self.words[..]].concat(), ..self.clone() }
    }

    fn marker(&self, name: &str) -> Option<&str> {
        self.markers.iter().find_map(|marker| marker.strip_prefix(name))
    }
}

/// Splits at spaces outside of ' '.
fn words(text: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut is_word = false;
    for (n, part) in text.split('\'').enumerate() {
        if n % 2 == 1 {
            if !is_word {
                words.push(String::new());
            }
            words.last_mut().unwrap().push_str(part);
            is_word = true;
            continue;
        }
        for (n, piece) in part.split(' ').enumerate() {
            is_word &= n == 0;
            if piece.is_empty() {
                continue;
            }
            if !is_word {
                words.push(String::new());
            }
            words.last_mut().unwrap().push_str(piece);
            is_word = true;
        }
        is_word &= !part.ends_with(' ');
    }
    words
}

impl Place {
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Where the program runs.
    pub fn vault(&self) -> PathBuf {
        self.root.join("vault")
    }

    pub fn write(&self, path: &str, text: &str) {
        let file = self.root.join(path);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(file, text).unwrap();
    }

    pub fn command(&self, path: impl AsRef<OsStr>) -> Command {
        let mut command = Command::new(path);
        command.env_clear().current_dir(self.vault()).stdin(Stdio::null());
        command.env("HOME", self.root.join("home")).env("TERM", "xterm").env("TZ", "UTC");
        for name in ["STATE", "CACHE", "CONFIG", "DATA"] {
            command.env(format!("XDG_{name}_HOME"), self.root.join("home").join(name.to_lowercase()));
        }
        command.envs(self.program.environment.iter().copied());
        command
    }

    /// Runs the program to prepare a state.
    #[track_caller]
    pub fn done(&self, line: &str) -> String {
        let output = self.command(self.program.path).args(words(line)).output().unwrap();
        assert!(output.status.success(), "{line}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    }

    fn observe(&self, line: &Line) -> Observation {
        let mut command = self.command(self.program.path);
        command.args(&line.words);
        let (code, out, err) = match line.marker("until=") {
            _ if line.marker("tty").is_some() => at_terminal(command),
            Some(text) => self.until(command, text, line),
            None => {
                let output = command.output().unwrap();
                (output.status.code(), lossy(&output.stdout), lossy(&output.stderr))
            }
        };
        let mut files = BTreeMap::new();
        read_files(&self.root, &mut files);
        Observation { code, out: without_times(&out), err: without_times(&err), files }
    }

    /// Runs a command that does not end by itself.
    fn until(&self, mut command: Command, text: &str, line: &Line) -> (Option<i32>, String, String) {
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let id = child.id();
        // A text that never comes ends the run all the same.
        let (is_over, waits) = mpsc::channel::<()>();
        let guard = thread::spawn(move || {
            if waits.recv_timeout(Duration::from_secs(30)) == Err(mpsc::RecvTimeoutError::Timeout) {
                stop(id);
            }
        });
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines().map(Result::unwrap);
        let mut out = String::new();
        let mut read_until = |text: &str| {
            for line in lines.by_ref() {
                out.push_str(&line);
                out.push('\n');
                if text.split('|').any(|text| line.contains(text)) {
                    break;
                }
            }
        };
        read_until(text);
        if let Some((file, text)) = line.marker("write=").and_then(|marker| marker.split_once(':')) {
            let begun = Instant::now();
            self.write(file, "# Written\n");
            read_until(text);
            let least = line.marker("least=").map(|ms| begun.elapsed() >= Duration::from_millis(ms.parse().unwrap()));
            out.push_str(&format!("{least:?}\n"));
        }
        // It may have ended by itself, with an error that is observed.
        stop(id);
        out.extend(lines.map(|line| line + "\n"));
        let mut err = String::new();
        child.stderr.take().unwrap().read_to_string(&mut err).unwrap();
        drop(is_over);
        guard.join().unwrap();
        (child.wait().unwrap().code(), out, err)
    }
}

#[cfg(unix)]
fn stop(id: u32) {
    if let Some(id) = rustix::process::Pid::from_raw(id.cast_signed()) {
        let _ = rustix::process::kill_process(id, rustix::process::Signal::TERM);
    }
}

/// Runs a command whose input, output and errors are a terminal.
#[cfg(unix)]
fn at_terminal(mut command: Command) -> (Option<i32>, String, String) {
    use rustix::fs::{Mode, OFlags};
    use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
    let terminal = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
    // Another test's program must not hold it open.
    rustix::io::fcntl_setfd(&terminal, rustix::io::FdFlags::CLOEXEC).unwrap();
    grantpt(&terminal).unwrap();
    unlockpt(&terminal).unwrap();
    let name = ptsname(&terminal, Vec::new()).unwrap();
    let flags = OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC;
    let side = File::from(rustix::fs::open(name, flags, Mode::empty()).unwrap());
    command.stdin(side.try_clone().unwrap()).stdout(side.try_clone().unwrap()).stderr(side);
    let mut child = command.spawn().unwrap();
    // The command holds the terminal's other side open until it is dropped: without it, reading ends with the child.
    drop(command);
    let mut bytes = Vec::new();
    let mut some = [0; 4096];
    let mut terminal = File::from(terminal);
    while let Ok(1..) = terminal.read(&mut some).inspect(|n| bytes.extend_from_slice(&some[..*n])) {}
    (child.wait().unwrap().code(), lossy(&bytes), String::new())
}

fn lossy(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// The files of a run. Those that differ from run to run are there with their names alone.
fn read_files(folder: &Path, files: &mut BTreeMap<PathBuf, Vec<u8>>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        if path.is_dir() {
            files.insert(path.clone(), Vec::new());
            read_files(&path, files);
        } else if !["-wal", "-shm", "-journal", ".lock"].iter().any(|end| name.ends_with(end)) {
            // What programs store for themselves.
            let is_opaque = name == "lock" || [".db", ".jsonl"].iter().any(|part| name.contains(part));
            let content = if is_opaque { Vec::new() } else { without_times(&lossy(&fs::read(&path).unwrap())).into() };
            files.insert(path, content);
        }
    }
}

/// Replaces durations, moments and digests, which differ from run to run.
fn without_times(text: &str) -> String {
    let mut kept = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let of = |end: usize| rest[end..].find(|c: char| !c.is_ascii_alphanumeric()).map_or(rest.len(), |n| end + n);
        let is_inside = kept.ends_with(|c: char| c.is_ascii_alphanumeric());
        let word = &rest[..of(0)];
        let digits = word.len() - word.trim_start_matches(|c: char| c.is_ascii_digit()).len();
        if is_inside || word.is_empty() {
            kept.push(first);
            rest = &rest[first.len_utf8()..];
            continue;
        }
        let after = &rest[word.len()..];
        let is_date = word.len() == 4 && digits == 4 && after.starts_with('-') && is_number(after.get(1..3));
        let is_clock = word.len() == 2 && digits == 2 && after.starts_with(':') && is_number(after.get(1..3));
        if is_date || is_clock {
            let end = rest.find(|c: char| !(c.is_ascii_alphanumeric() || "-:.+".contains(c))).unwrap_or(rest.len());
            kept.push_str(if rest[..end].contains(':') { "TIME" } else { &rest[..end] });
            rest = &rest[end..];
        } else if digits > 0 && is_duration(word, digits, after, &kept) {
            kept.push_str("NUMBER");
            rest = &rest[digits..];
        } else if word.len() >= 16 && word.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            kept.push_str("HEX");
            rest = after;
        } else {
            kept.push_str(word);
            rest = after;
        }
    }
    // How long a run took, in which unit, and which of its steps took time.
    let kept = kept.replace("(NUMBER.NUMBER s", "(NUMBER ms");
    let mut parts = kept.split("(NUMBER ms");
    let mut text = parts.next().unwrap_or_default().to_owned();
    parts.for_each(|part| text.push_str(&format!("(STEPS{}", &part[part.find(')').unwrap_or(0)..])));
    text
}

fn is_number(text: Option<&str>) -> bool {
    text.is_some_and(|text| text.bytes().all(|byte| byte.is_ascii_digit()))
}

fn is_duration(word: &str, digits: usize, after: &str, before: &str) -> bool {
    let unit = &word[digits..];
    let unit_after = after.strip_prefix(' ').unwrap_or_default();
    let is_unit = |text: &str| ["ms", "s"].contains(&text);
    let next = unit_after.split(|c: char| !c.is_ascii_alphanumeric()).next().unwrap_or_default();
    let is_fraction =
        after.starts_with('.') && after[1..].trim_start_matches(|c: char| c.is_ascii_digit()).starts_with(" s");
    let key = before.trim_end_matches([' ', ':', '"']);
    is_unit(unit)
        || unit.is_empty() && (is_unit(next) || is_fraction || key.ends_with("_ms"))
        || before.ends_with('.') && is_unit(next)
}

/// Each command line with each flag.
pub fn product<'a>(bases: &[&'a str], added: &[&'a str]) -> Vec<(&'a str, &'a str)> {
    bases.iter().flat_map(|base| added.iter().map(|added| (*base, *added))).collect()
}

/// Copies a state over a place, with the times of its files.
fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let path = entry.unwrap().path();
        let target = to.join(path.file_name().unwrap());
        if path.is_dir() {
            copy(&path, &target);
        } else {
            fs::copy(&path, &target).unwrap();
            let modified = fs::metadata(&path).unwrap().modified().unwrap();
            File::options().write(true).open(&target).unwrap().set_modified(modified).unwrap();
        }
    }
}

/// A folder in which runs follow each other, each from a prepared state. Paths are in what programs store, so that each
/// worker prepares its own.
struct Worker {
    folder: tempfile::TempDir,
    program: Program,
    states: BTreeSet<String>,
}

impl Worker {
    fn new(program: Program) -> Self {
        Self { folder: tempfile::tempdir().unwrap(), program, states: BTreeSet::new() }
    }

    fn observe(&mut self, line: &Line) -> Observation {
        let root = self.folder.path().canonicalize().unwrap();
        let (place, kept) = (Place { root: root.join("place"), program: self.program }, root.join("states"));
        let clear = || drop(fs::remove_dir_all(&place.root));
        let state = kept.join(format!("state-{}", line.state));
        if self.states.insert(line.state.clone()) {
            clear();
            fs::create_dir_all(place.vault()).unwrap();
            (self.program.prepare)(&line.state, &place);
            copy(&place.root, &state);
        }
        clear();
        copy(&state, &place.root);
        place.observe(line)
    }
}

/// The subcommands of a program as they are typed, `""` for itself, with their flags.
pub fn flags(program: &Program) -> BTreeMap<String, BTreeSet<String>> {
    let mut all = BTreeMap::new();
    each_command(program, &mut Vec::new(), &mut |path, help| {
        let flags = options(help).filter(|name| !matches!(name.as_str(), "--help" | "--version")).collect();
        // One that has subcommands, and does something without, says so first.
        let usage = help.lines().find(|line| line.starts_with("Usage:"));
        if !usage.is_some_and(|usage| usage.contains("COMMAND")) {
            all.insert(path.join(" "), flags);
        }
    });
    all
}

fn each_command(program: &Program, path: &mut Vec<String>, visit: &mut dyn FnMut(&[String], &str)) {
    let help = help(program, path, "--help");
    visit(path, &help);
    for name in commands(&help).filter(|name| name != "help") {
        path.push(name);
        each_command(program, path, visit);
        path.pop();
    }
}

fn help(program: &Program, path: &[String], flag: &str) -> String {
    let output = Command::new(program.path).args(path).arg(flag).output().unwrap();
    assert!(output.status.success(), "{path:?} {flag}");
    String::from_utf8(output.stdout).unwrap()
}

fn commands(help: &str) -> impl Iterator<Item = String> {
    let lines = help.lines().skip_while(|line| *line != "Commands:").skip(1).take_while(|line| !line.is_empty());
    lines
        .filter(|line| line.starts_with("  ") && !line.starts_with("   "))
        .filter_map(|line| Some(line.split_whitespace().next()?.to_owned()))
}

/// Whether this line of a help begins a flag, and its long name.
fn option(line: &str) -> Option<String> {
    let indent = line.len() - line.trim_start().len();
    let word = line.split_whitespace().find(|word| word.len() > 2 && word.starts_with("--")).filter(|_| {
        indent == 6 && line.trim_start().starts_with("--") || indent == 2 && line.trim_start().starts_with('-')
    })?;
    Some(word.split(['[', '=', '.']).next().unwrap_or(word).to_owned())
}

fn options(help: &str) -> impl Iterator<Item = String> {
    help.lines().filter_map(option)
}

/// `-h` is one screen, a line each flag; `--help` has every flag of it, and examples.
pub fn check_help(program: &Program) {
    let mut wrong = Vec::new();
    each_command(program, &mut Vec::new(), &mut |path, long| {
        let short = help(program, path, "-h");
        let name = format!("{} {}", program.name, path.join(" "));
        let lines: Vec<&str> = short.lines().collect();
        if lines.len() > 40 {
            wrong.push(format!("{name} -h: {} lines", lines.len()));
        }
        let is_list = |line: &str| line.starts_with("  ") && !line.trim_start().is_empty();
        let mut section = "";
        for line in lines {
            if line.ends_with(':') && !line.starts_with(' ') {
                section = line;
            }
            // An argument, a flag or a command begins at most 6 columns from the left.
            let is_wrapped = is_list(line) && line.starts_with("        ") && !section.is_empty();
            if line.chars().count() > 100
                || is_wrapped
                || option(line).is_some_and(|_| !line.trim_start().contains("  "))
            {
                wrong.push(format!("{name} -h: {line}"));
            }
        }
        let long_options: BTreeSet<String> = options(long).collect();
        wrong.extend(
            options(&short).filter(|flag| !long_options.contains(flag)).map(|flag| format!("{name} --help: no {flag}")),
        );
        if commands(long).next().is_none() && !long.contains("\nExample") {
            wrong.push(format!("{name} --help: no example"));
        }
    });
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
}

/// Asserts that each flag of each subcommand has a row, and an effect.
pub fn walk(program: Program, walk: &Walk<'_>) {
    let flags = flags(&program);
    let command_of = |line: &Line| {
        let prefixes = (0..=line.words.len()).rev().map(|n| line.words[..n].join(" "));
        prefixes
            .into_iter()
            .find(|path| flags.contains_key(path))
            .unwrap_or_else(|| panic!("no subcommand: {:?}", line.words))
    };
    let mut wrong: Vec<String> = Vec::new();
    let mut rows: BTreeMap<Line, Vec<(String, Vec<String>)>> = BTreeMap::new();
    let mut walked: BTreeSet<(String, String)> = BTreeSet::new();
    let mut add = |base: Line, added: &str, is_own: bool| {
        let (command, added) = (command_of(&base), words(added));
        let is_new = walked.insert((command.clone(), added[0].clone()));
        match flags[&command].contains(&added[0]) {
            true if is_own || is_new => rows.entry(base).or_default().push((command, added)),
            false if is_own => wrong.push(format!("{command} {}: there is no such flag", added[0])),
            _ => {}
        }
    };
    walk.rows.iter().for_each(|(base, added)| add(Line::parse(base), added, true));
    for base in walk.plain {
        walk.shared.iter().for_each(|(flag, value)| add(Line::parse(base), &format!("{flag} {value}"), false));
    }
    for (command, flags) in &flags {
        let unwalked = flags.iter().filter(|flag| !walked.contains(&(command.clone(), (*flag).clone())));
        wrong.extend(unwalked.map(|flag| format!("{command} {flag}: no row")));
    }
    let is_shared = |flag: &str| walk.shared.iter().any(|(name, _)| *name == flag);
    let (rows, wrong) = (Arc::new(Mutex::new(rows.into_iter())), Mutex::new(wrong));
    // Two, as a small machine has cores.
    thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                let mut worker = Worker::new(program);
                loop {
                    let Some((base, added)) = rows.lock().unwrap().next() else { break };
                    let seen = worker.observe(&base);
                    let again = worker.observe(&base);
                    let say = |text: String| wrong.lock().unwrap().push(text);
                    if seen != again {
                        say(format!("{:?} differs from run to run:\n{}", base.words, difference(&seen, &again)));
                    }
                    for (command, added) in added {
                        let with = worker.observe(&base.with(&added));
                        if with == seen {
                            say(format!(
                                "{command} {added:?}: no effect on {:?}: {:?} {}{}",
                                base.words, seen.code, seen.out, seen.err
                            ));
                        }
                        if is_shared(&added[0]) {
                            let before = worker.observe(&base.before(&added));
                            if before != with {
                                say(format!(
                                    "{command} {added:?}: another effect before it:\n{}",
                                    difference(&before, &with)
                                ));
                            }
                        }
                    }
                }
            });
        }
    });
    let wrong = wrong.into_inner().unwrap();
    assert!(wrong.is_empty(), "{} of the flags of {}:\n{}", wrong.len(), program.name, wrong.join("\n"));
}

fn difference(one: &Observation, other: &Observation) -> String {
    let file = one.files.iter().find(|(path, content)| other.files.get(*path) != Some(content));
    let file = file.or(other.files.iter().find(|(path, _)| !one.files.contains_key(*path)));
    format!(
        "{:?} {:?}\n{}---\n{}---\n{}---\n{}---\n{:?}",
        one.code,
        other.code,
        one.out,
        other.out,
        one.err,
        other.err,
        file.map(|(path, content)| (path, lossy(content)))
    )
}
