//! The flags of each command, each with the arguments that prove it.

use super::drive::Run;

/// Rows of a command.
pub struct Group {
    /// The command.
    pub path: &'static str,
    /// Its arguments. `{said}` is what is said to it, here and in `input`.
    args: &'static str,
    said: &'static str,
    input: &'static str,
    setup: &'static [&'static str],
    /// A flag with its value, and after `@` what the run without it has, too. `!word` there is said instead.
    pub rows: Vec<&'static str>,
    /// None where another group of the command has them.
    pub common: Option<Common>,
}

/// The flags that every command has.
#[derive(Clone, Copy)]
pub struct Common {
    pub vault: &'static str,
    pub index: &'static str,
}

/// Of conversations, which open the index to search.
const SEARCHING: Common = Common { index: "--index {root}/named.db @ !searching", ..COMMON };

const COMMON: Common = Common { vault: "--vault {root}/Other", index: "--index {root}/named.db" };

impl Group {
    /// A run with more arguments, with a flag before the command, and with one after it.
    pub fn run(&self, more: &str, before: &str, after: &str) -> Run {
        let said = more.split_whitespace().find_map(|word| word.strip_prefix('!')).unwrap_or(self.said);
        let said = said.replace('_', " ");
        let words = [before, self.path, self.args, more, after].into_iter().flat_map(str::split_whitespace);
        let args = words.filter(|word| !word.starts_with('!')).map(|word| word.replace("{said}", &said)).collect();
        Run { setup: self.setup, args, said: self.input.replace("{said}", &said) }
    }

    fn with(self, more: &[&'static str]) -> Self {
        Self { rows: [&self.rows, more].concat(), ..self }
    }

    fn input(self, input: &'static str) -> Self {
        Self { input, ..self }
    }

    fn setup(self, setup: &'static [&'static str]) -> Self {
        Self { setup, ..self }
    }

    fn common(self, common: Common) -> Self {
        Self { common: Some(common), ..self }
    }

    fn again(self) -> Self {
        Self { common: None, ..self }
    }
}

fn group(path: &'static str, args: &'static str, rows: &[&'static str]) -> Group {
    Group { path, args, said: "roses", input: "", setup: &[], rows: rows.to_vec(), common: Some(COMMON) }
}

const LIST: [&str; 3] = ["--json", "--jsonl", "--schema"];

/// What is sent to the model.
const REQUEST: [&str; 9] = [
    "--provider ollama @ --base-url {model}",
    "--model other",
    "--base-url {model}/deep",
    "--context-length 4096 @ --provider ollama --base-url {model}",
    "--system Mumble",
    "--temperature 0.7",
    "--max-tokens 500",
    "--reasoning-effort low",
    "--no-stream",
];

const TOOLS: [&str; 5] = ["--no-tools", "--toolset bulk", "--text-calls hermes", "--review always", "--max-calls 1"];

const LIMITS: [&str; 4] =
    ["--max-turns 1", "--max-total-tokens 100", "--max-seconds 1 @ !slowly", "--show-traffic @ --no-tools"];

/// What plans are run with.
const EDITOR: [&str; 4] = [
    "--selection picked @ --dry-run !picking",
    "--selection-from Home.md:1-1 @ --dry-run !picking",
    "--active-file Home.md @ --dry-run !viewing",
    "--cursor 0:3 @ --dry-run --active-file Home.md !inserting",
];

/// The rows of the whole program.
pub fn groups() -> Vec<Group> {
    let asking = |group: Group| group.with(&REQUEST).with(&TOOLS).with(&LIMITS);
    vec![
        asking(group(
            "ask",
            "{said}",
            &[
                "--note Home.md",
                "--continue",
                "--insert @ --note Home.md",
                "--yes @ --note Home.md --insert",
                "--json",
                "--output-format stream-json",
                "--schema",
                "--selection picked",
                "--selection-from Home.md:1-1",
                "--active-file Home.md",
                "--cursor 0:3 @ --note Home.md --insert --yes",
            ],
        )),
        asking(group("chat", "", &["--note Home.md"]).input("{said}\n")).common(SEARCHING),
        asking(group("resume", "", &[]).input("{said}\n").setup(&["ask --no-tools hello"])).common(SEARCHING),
        group(
            "plan",
            "{said}",
            &[
                "--print",
                "--yes",
                "--digest 00",
                "--dry-run",
                "--jsonl @ --yes",
                "--set name=x @ --yes !named",
                "--allow-delete @ --yes !deleting",
                "--max-turns 1 @ !badly",
                "--max-total-tokens 100 @ !badly",
                "--max-seconds 1 @ !badly_slowly",
                "--show-traffic",
            ],
        )
        .with(&REQUEST)
        .with(&EDITOR),
        group("sessions", "", &LIST).setup(&["ask --no-tools hello"]),
        group("sessions list", "", &LIST).setup(&["ask --no-tools hello"]),
        group("sessions search", "hello", &LIST).setup(&["ask --no-tools hello"]),
        group("sessions show", "", &["--full"]).setup(&["ask --no-tools hello"]),
        group("setup", "", &["--assistant none", "--provider none"]).common(Common {
            index: "--index {root}/named.db @ --vault {root}/Notes --assistant none --provider none",
            ..COMMON
        }),
        group("setup", "--vault {root}/Notes --assistant none", &["--model other @ --provider ollama --no-sync"])
            .again(),
        group("setup", "--vault {root}/Notes --assistant none --provider none", &["--no-sync"]).again(),
        group("demo", "", &["--keep"]),
        group("doctor", "", &LIST),
        // Where the index can be made, the second run finds it there.
        group("sync", "", &["--json", "--schema"]).common(Common { index: "--index /dev/null/named.db", ..COMMON }),
        group("sessions delete", "{session}", &["--yes"]).setup(&["ask --no-tools hello"]),
        group("macro save", "other", &["--run 1", "--description why"]).setup(RUN_TWO),
        group("macro save", "other", &["--untried @ named.json", "--default name=y @ named.json --untried"]).again(),
        group("macro save", "simple simple.json --untried", &["--force"]).setup(MACROS).again(),
        group("macro list", "", &["--shipped", "--json", "--jsonl", "--schema"]).setup(MACROS),
        group("macro show", "simple", &[]).setup(MACROS),
        group("macro run", "simple", &["--yes", "--digest 00", "--dry-run", "--jsonl @ --yes"]).setup(MACROS),
        group("macro run", "named --dry-run", &["--set name=y"]).setup(MACROS).again(),
        group("macro run", "deleting --yes", &["--allow-delete"]).setup(MACROS).again(),
        group("macro run", "{said}", &EDITOR).setup(MACROS).again(),
        group("macro rename", "simple other", &[]).setup(MACROS),
        group("macro delete", "simple", &["--yes"]).setup(MACROS),
        group("macro export", "", &[]).setup(MACROS),
        group("macro import", "macros.json", &["--force", "--json"]).setup(MACROS),
        group("undo", "", &["--list", "--recover", "--keep", "--yes", "--dry-run", "--json @ --yes"])
            .with(&["--jsonl @ --list", "--schema"])
            .setup(RUN),
        group("undo", "--yes", &["--force"]).setup(CHANGED_SINCE).again(),
        group("redo", "", &["--yes", "--dry-run", "--json @ --yes"])
            .setup(UNDONE)
            .common(Common { index: "--index {root}/named.db @ --dry-run", ..COMMON }),
        group("redo", "--yes", &["--force"]).setup(WRITTEN_SINCE).again(),
        group("log", "", &["--stats", "--limit 1", "--json", "--jsonl", "--schema"]).setup(&["ask hello"]),
        group(
            "mcp",
            "",
            &[
                "--http 127.0.0.1:0",
                "--key-file {root}/key @ --http 127.0.0.1:0",
                "--host notes.example.org @ --http 127.0.0.1:0",
                "--toolset bulk",
                "--read-only",
                "--allow-write",
                "--allow-delete",
                "--trust-client",
                "--approval-page",
                "--require-expect",
                "--ask-outside",
            ],
        ),
        group(
            "mcp install",
            "codex",
            &[
                "--print",
                "--toolset bulk",
                "--read-only",
                "--allow-write",
                "--allow-delete",
                "--trust-client",
                "--approval-page",
                "--require-expect",
                "--ask-outside",
            ],
        ),
        group("mcp uninstall", "codex", &["--print"]).setup(&["mcp install codex"]),
        group("mcp doctor", "", &["--http 127.0.0.1:0", "--json", "--jsonl", "--schema"]),
        group("mcp add", "web /gone/program", &["--env A=b", "--reads"]),
        group("mcp add", "web", &["--url http://127.0.0.1:9/mcp"]).again(),
        group("mcp add", "web --url http://127.0.0.1:9/mcp", &["--header A=b"]).again(),
        group("mcp list", "", &LIST).setup(&["mcp add web --url http://127.0.0.1:9/mcp"]),
        group("mcp remove", "web", &[]),
        group("mcp skill", "", &[]),
        asking(group("acp", "", &["--schema", "--choose-model"]).input("{said}")).common(SEARCHING),
        group(
            "proxy",
            "--http 127.0.0.1:0",
            &[
                "--http 0.0.0.0:0",
                "--key-file {root}/key",
                "--host notes.example.org",
                "--with-vault-tools",
                "--text-calls hermes",
                "--show-traffic",
                "--no-tools @ --with-vault-tools",
                "--toolset bulk @ --with-vault-tools",
                "--review always @ --with-vault-tools",
                "--max-turns 1 @ --with-vault-tools",
                "--max-calls 1 @ --with-vault-tools",
                "--max-total-tokens 100 @ --with-vault-tools",
                "--max-seconds 1 @ --with-vault-tools !slowly",
            ],
        )
        .with(&REQUEST)
        .input("{said}")
        .common(Common {
            vault: "--vault {root}/Other @ --with-vault-tools",
            index: "--index {root}/named.db @ --with-vault-tools !searching",
        }),
        group("models", "{web}", &LIST),
        group("models", "", &["--all"]).again(),
        group("config show", "", &LIST).with(&REQUEST).with(&TOOLS).with(&LIMITS),
        group("config path", "", &[]),
        group("config set", "model x", &[]),
        group("config set", "model", &["--unset"]).again(),
        group(
            "config check",
            "",
            &[
                "--provider ollama",
                "--model other",
                "--base-url nowhere",
                "--context-length 1",
                "--temperature 3",
                "--max-tokens 0",
                "--reasoning-effort much",
                "--toolset none",
                "--text-calls none",
                "--review sometimes",
                "--max-turns 0",
                "--max-calls 0",
                "--max-total-tokens 0",
                "--max-seconds 0",
            ],
        )
        .with(&LIST)
        .common(Common { vault: "--vault {root}/Faulty", ..COMMON }),
        group("approve", "K7Q2MX", &[]),
        group("login", "openai", &[]),
        group("logout", "openai", &[]),
        group("completions", "bash", &[]),
        group("man", "", &[]),
    ]
}

/// A macro for each plan.
const MACROS: &[&str] = &["macro import macros.json"];

/// A macro that has run.
const RUN: &[&str] = &["macro import macros.json", "macro run simple --yes"];

/// Two macros that have run.
const RUN_TWO: &[&str] = &["macro import macros.json", "macro run simple --yes", "macro run named --set name=a --yes"];

const CHANGED_SINCE: &[&str] = &["macro import macros.json", "macro run simple --yes", "write New.md"];

/// A deletion, which looks for links that lead nowhere then.
const UNDONE: &[&str] = &["macro import macros.json", "macro run deleting --allow-delete --yes", "undo --yes"];

const WRITTEN_SINCE: &[&str] = &["macro import macros.json", "macro run simple --yes", "undo --yes", "write New.md"];
