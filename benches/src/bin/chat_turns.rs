//! Measures the start of `vault-agent chat` and `ask`, and the memory of a long conversation: `chat_turns --help`.
//!
//! The model is on loopback and answers at once: in each turn a search, then a text. Linux only, because it needs /proc
//! and a terminal.

#![allow(clippy::print_stdout, reason = "a program that reports")]

#[cfg(target_os = "linux")]
fn main() -> Result<(), Box<dyn std::error::Error>> {
    linux::main()
}

#[cfg(not(target_os = "linux"))]
fn main() {
    println!("this measures on Linux only");
}

#[cfg(target_os = "linux")]
mod linux {
    use std::error::Error;
    use std::fs;
    use std::fs::File;
    use std::io::{BufRead, BufReader, Read, Write};
    use std::net::{TcpListener, TcpStream};
    use std::path::{Path, PathBuf};
    use std::process::{Child, Command, Stdio};
    use std::time::Instant;

    use benches::{VaultPlan, demo_vault, make_vault, median};
    use clap::Parser;
    use rustix::fs::{Mode, OFlags};
    use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
    use serde_json::{Value, json};

    type Result<T> = std::result::Result<T, Box<dyn Error>>;

    /// The escape sequence that the line editor sends when it starts to read input.
    const READS: &[u8] = b"\x1b[?2004h";

    /// The escape sequence that asks a terminal for the position of the cursor.
    const WHERE: &[u8] = b"\x1b[6n";

    /// Measures the start of `vault-agent chat` and `ask`, and the memory of `chat` over many turns.
    #[derive(Debug, Parser)]
    struct Args {
        /// The release binary
        #[arg(long, value_name = "FILE", default_value = "target/release/vault-agent")]
        program: PathBuf,
        /// Number of notes in the generated vault
        #[arg(long, default_value_t = 5000)]
        notes: usize,
        /// Number of turns; memory is compared with that after a tenth of them
        #[arg(long, default_value_t = 500)]
        turns: usize,
        /// Number of measured starts
        #[arg(long, default_value_t = 30)]
        starts: usize,
    }

    pub fn main() -> Result<()> {
        let args = Args::parse();
        let folder = tempfile::tempdir()?;
        let vault = folder.path().join("Notes");
        make_vault(&vault, &demo_vault(), &VaultPlan { notes: args.notes, bytes: 1500, links: 6, seed: 2 })?;
        let place = Place { program: fs::canonicalize(&args.program)?, home: folder.path().join("home"), vault };
        fs::create_dir_all(&place.home)?;
        // Create the index first, without vectors, because they do not matter here.
        place
            .command(&["ask", "a first search"], "http://127.0.0.1:9/v1")
            .env_remove("VAULT_AGENT_PROVIDER")
            .env_remove("VAULT_AGENT_MODEL")
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status()?;

        let mut starts = Vec::new();
        for _ in 0..=args.starts {
            starts.push(place.start_to_prompt()?);
        }
        // The first start does not count, because it reads the program from disk.
        let starts = &mut starts[1..];
        starts.sort_by(f64::total_cmp);
        println!("start to prompt, {} notes, {} starts", args.notes, starts.len());
        if let Some(p95) = starts.get(starts.len() * 95 / 100) {
            println!("median {:.1} ms, p95 {p95:.1} ms", median(starts));
        }

        let listener = TcpListener::bind("127.0.0.1:0")?;
        let model = format!("http://{}/v1", listener.local_addr()?);
        std::thread::spawn(move || serve(&listener));
        let mut asked = (0..args.starts).map(|number| place.ask(number, &model)).collect::<Result<Vec<f64>>>()?;
        asked.sort_by(f64::total_cmp);
        if let Some(p95) = asked.get(asked.len() * 95 / 100) {
            println!("`ask` to the line of its first search: median {:.1} ms, p95 {p95:.1} ms", median(&asked));
        }
        place.talk(args.turns, &model)
    }

    struct Place {
        program: PathBuf,
        home: PathBuf,
        vault: PathBuf,
    }

    impl Place {
        fn command(&self, arguments: &[&str], model: &str) -> Command {
            let mut command = Command::new(&self.program);
            command.args(arguments).env("VAULT_DIR", &self.vault).env("HOME", &self.home).env("TERM", "xterm-256color");
            command.env("VAULT_AGENT_PROVIDER", model).env("VAULT_AGENT_MODEL", "scripted");
            for name in ["XDG_STATE_HOME", "XDG_CACHE_HOME", "XDG_CONFIG_HOME"] {
                command.env(name, &self.home);
            }
            command
        }

        /// Returns the milliseconds from the start of the process until a line can be typed.
        fn start_to_prompt(&self) -> Result<f64> {
            let terminal = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY)?;
            rustix::io::fcntl_setfd(&terminal, rustix::io::FdFlags::CLOEXEC)?;
            grantpt(&terminal)?;
            unlockpt(&terminal)?;
            let name = ptsname(&terminal, Vec::new())?;
            let side =
                File::from(rustix::fs::open(name, OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC, Mode::empty())?);
            let mut command = self.command(&["chat"], "http://127.0.0.1:9/v1");
            command.stdin(side.try_clone()?).stdout(side.try_clone()?).stderr(side);
            let started = Instant::now();
            let mut child = command.spawn()?;
            drop(command);
            let mut terminal = File::from(terminal);
            let (mut shown, mut bytes) = (Vec::new(), [0; 4096]);
            let has = |shown: &[u8], wanted: &[u8]| shown.windows(wanted.len()).any(|window| window == wanted);
            let mut is_answered = false;
            // The prompt is drawn only after the terminal has reported the position of the cursor.
            while !(has(&shown, READS) && has(&shown, b"> ")) {
                let read = terminal.read(&mut bytes)?;
                shown.extend_from_slice(&bytes[..read]);
                if !is_answered && has(&shown, WHERE) {
                    terminal.write_all(b"\x1b[2;1R")?;
                    is_answered = true;
                }
            }
            let took = started.elapsed().as_secs_f64() * 1000.0;
            terminal.write_all(b"\x04")?;
            // Discard its last output, so that it can exit.
            while terminal.read(&mut bytes).is_ok_and(|read| read > 0) {}
            child.wait()?;
            Ok(took)
        }

        /// Returns the milliseconds from the start of the process until it reports its first search.
        fn ask(&self, number: usize, model: &str) -> Result<f64> {
            let mut command = self.command(&["ask", &format!("what do I know of matter number {number}?")], model);
            let started = Instant::now();
            let mut child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn()?;
            let errors = BufReader::new(child.stderr.take().ok_or("no errors")?);
            let mut lines = errors.lines();
            let first = lines.find(|line| line.as_ref().is_ok_and(|line| line.starts_with("tool: search_notes")));
            let took = started.elapsed().as_secs_f64() * 1000.0;
            // Read the other lines, because the process would end at the next line if the pipe were closed.
            lines.for_each(drop);
            child.wait()?;
            first.map(|_| took).ok_or_else(|| "`ask` did not search".into())
        }

        /// Runs a conversation of `turns` turns, and prints the memory of the process and the size of its transcript.
        fn talk(&self, turns: usize, model: &str) -> Result<()> {
            let mut command = self.command(&["chat"], model);
            let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn()?;
            let mut input = child.stdin.take().ok_or("no input")?;
            let mut output = BufReader::new(child.stdout.take().ok_or("no output")?);
            let started = Instant::now();
            let mut early = None;
            println!("turn, MB resident, MB of its own, MB of the transcript, seconds");
            for turn in 1..=turns {
                writeln!(input, "what do I know of matter number {turn}?")?;
                let mut answer = String::new();
                while !answer.contains("That is all.") {
                    answer.clear();
                    if output.read_line(&mut answer)? == 0 {
                        return Err(format!("it ended in turn {turn}").into());
                    }
                }
                if turn % (turns / 10).max(1) != 0 {
                    continue;
                }
                let held = [resident(&child, "VmRSS:")?, resident(&child, "RssAnon:")?, transcript(&self.home)?];
                let [all, own, written] = held;
                println!("{turn}, {all:.1}, {own:.1}, {written:.2}, {:.0}", started.elapsed().as_secs_f64());
                let early = *early.get_or_insert(held);
                if turn == turns {
                    let [all, own, written] = [0, 1, 2].map(|figure| held[figure] - early[figure]);
                    println!("the transcript grew by {written:.2} MB");
                    println!("memory of its own by {own:.1} MB, {:.2} times", own / written);
                    println!("with the pages of the program's file by {all:.1} MB, {:.2} times", all / written);
                }
            }
            drop(input);
            child.wait()?;
            Ok(())
        }
    }

    /// Returns the memory of a process in megabytes, from a line of its status. Its own memory is the pages that it has
    /// written to; other pages are shared and read from the program's file, such as the vocabulary of the bundled
    /// model.
    fn resident(child: &Child, line: &str) -> Result<f64> {
        let status = fs::read_to_string(format!("/proc/{}/status", child.id()))?;
        let line = status.lines().find(|text| text.starts_with(line)).ok_or("no such line")?;
        let kilobytes: f64 = line.split_whitespace().nth(1).ok_or("no number")?.parse()?;
        Ok(kilobytes / 1024.0)
    }

    /// Returns the size of all transcripts below a folder in megabytes.
    fn transcript(folder: &Path) -> Result<f64> {
        let mut bytes = 0.0;
        for entry in fs::read_dir(folder)? {
            let entry = entry?;
            if entry.file_type()?.is_dir() {
                bytes += transcript(&entry.path())? * 1048576.0;
            } else if entry.path().extension().is_some_and(|ending| ending == "jsonl")
                && entry.path().parent().is_some_and(|parent| parent.ends_with("sessions"))
            {
                bytes += entry.metadata()?.len() as f64;
            }
        }
        Ok(bytes / 1048576.0)
    }

    /// A model that replies with a search, then with a text.
    fn serve(listener: &TcpListener) {
        for (number, stream) in listener.incoming().map_while(|stream| stream.ok()).enumerate() {
            // Ignore a client that has disconnected.
            let _ = answer(stream, number);
        }
    }

    fn answer(mut stream: TcpStream, number: usize) -> std::io::Result<()> {
        let mut reader = BufReader::new(stream.try_clone()?);
        let mut length = 0;
        loop {
            let mut line = String::new();
            reader.read_line(&mut line)?;
            match line.trim_end().split_once(':') {
                Some((name, value)) if name.eq_ignore_ascii_case("content-length") => {
                    length = value.trim().parse().unwrap_or(0);
                }
                None if line.trim_end().is_empty() => break,
                _ => {}
            }
        }
        std::io::copy(&mut reader.take(length), &mut std::io::sink())?;
        let chunk = |delta: Value, finish: Value| {
            let choices = json!([{ "index": 0, "delta": delta, "finish_reason": finish }]);
            format!("data: {}\n\n", json!({ "choices": choices }))
        };
        let body = if number.is_multiple_of(2) {
            let arguments = json!({ "query": format!("matter number {number}"), "top_k": 5 }).to_string();
            let function = json!({ "name": "search_notes", "arguments": arguments });
            let call = json!({ "index": 0, "id": format!("call_{number}"), "type": "function", "function": function });
            chunk(json!({ "tool_calls": [call] }), Value::Null) + &chunk(json!({}), json!("tool_calls"))
        } else {
            let text =
                format!("## Matter {number}\n\n{}\n\nThat is all.\n", "Your notes say this and that. ".repeat(12));
            let pieces = text.as_bytes().chunks(24).map(|piece| String::from_utf8_lossy(piece).into_owned());
            pieces.map(|piece| chunk(json!({ "content": piece }), Value::Null)).collect::<String>()
                + &chunk(json!({}), json!("stop"))
        };
        let body = body + "data: [DONE]\n\n";
        write!(
            stream,
            "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{body}",
            body.len()
        )
    }
}
