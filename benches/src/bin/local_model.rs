//! Measures a model in the process: tokens evaluated in a turn with two calls, and its speed compared with llama.cpp.

#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a program that reports")]

use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitCode, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use agent_llama::{LocalModel, LocalOptions};
use agent_loop::{
    Delta, Effect, Message, Messages, Model, Parallel, Part, Reply, ReplyBuilder, Request, Status, ToolChoice,
    ToolResult, ToolSpec,
};
use benches::median;
use clap::Parser;
use futures_util::StreamExt;
use serde_json::{Value, json};

type Result<T> = std::result::Result<T, Box<dyn std::error::Error + Send + Sync>>;

/// A ChatML template with calls as Qwen 2.5 writes them. Earlier messages are rendered unchanged.
const STAYS: &str = "{% if tools %}<|im_start|>system\nTools:{% for tool in tools %}\n{{ tool | tojson }}{% endfor %}<|im_end|>\n\
    {% endif %}{% for m in messages %}{% if m.role == 'tool' %}<|im_start|>user\n<tool_response>\n{{ m.content }}\n\
    </tool_response>{% else %}<|im_start|>{{ m.role }}\n{{ m.content }}{% for call in m.tool_calls %}<tool_call>\n\
    {\"name\": \"{{ call.function.name }}\", \"arguments\": {{ call.function.arguments | tojson }}}\n</tool_call>{% endfor %}\
    {% endif %}<|im_end|>\n{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}";

/// The maximum number of tokens of the prompts whose evaluation is timed, and of the replies.
const PROMPT: usize = 512;
const REPLY: u32 = 128;

/// Measures a model in the process.
#[derive(Parser)]
struct Arguments {
    /// The model, in the format GGUF.
    model: PathBuf,
    /// llama.cpp's `llama-bench`, to measure in turns with it.
    #[arg(long)]
    llama_bench: Option<PathBuf>,
    /// llama.cpp's `llama-server`, to measure in turns with it.
    #[arg(long)]
    llama_server: Option<PathBuf>,
    /// The number of measurements of each.
    #[arg(long, default_value_t = 5)]
    rounds: usize,
    /// The number of threads for all of them.
    #[arg(long, default_value_t = 2)]
    threads: u32,
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let measured = runtime.map_err(Into::into).and_then(|runtime| runtime.block_on(measure(&arguments)));
    match measured {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::from(2)
        }
    }
}

async fn measure(arguments: &Arguments) -> Result<()> {
    // A template that rewrites earlier messages: the calls of earlier turns lose their arguments.
    let rewrites = STAYS.replace(
        "{{ call.function.arguments | tojson }}",
        "{% if m == messages[-2] %}{{ call.function.arguments | tojson }}{% else %}\
        {\"alpha\": \"one\", \"beta\": [1, 2]}{% endif %}",
    );
    println!("a turn with two calls: tokens of the prompts, tokens evaluated");
    for (name, template) in [("what was said stays", STAYS), ("calls of earlier turns are rewritten", &rewrites)] {
        let model = load(arguments, template).await?;
        turn(&model).await?;
        let used = model.cache_use();
        println!("  {name}: {} {} ({:.2})", used.prompt, used.evaluated, used.evaluated as f64 / used.prompt as f64);
    }

    let model = load(arguments, STAYS).await?;
    let mut rounds: [Vec<f64>; 7] = Default::default();
    for round in 0..arguments.rounds {
        let plain = timed(&model, round, None).await?;
        let schema = json!({"type": "array", "minItems": 60, "items": {"type": "string"}});
        let held = timed(&model, round, Some(schema)).await?;
        for (all, figure) in rounds.iter_mut().zip([plain.0, plain.1, held.1]) {
            all.push(figure);
        }
        if let Some(program) = &arguments.llama_bench {
            let (prefill, decode) = llama_bench(program, arguments, plain.2)?;
            rounds[3].push(prefill);
            rounds[4].push(decode);
        }
        if let Some(program) = &arguments.llama_server {
            // Stop it again, because it would take processor time from the others.
            let (prefill, decode) = Server::start(program, arguments)?.timed(round)?;
            rounds[5].push(prefill);
            rounds[6].push(decode);
        }
    }
    println!("tokens a second with {} threads, {} rounds: best, median", arguments.threads, arguments.rounds);
    let names = ["prompt", "reply", "reply held by a grammar"].map(str::to_owned);
    let both = |name| [format!("{name}, prompt"), format!("{name}, reply")];
    let theirs = ["llama-bench", "llama-server"].into_iter().flat_map(both);
    for (name, all) in names.into_iter().chain(theirs).zip(&rounds).filter(|(_, all)| !all.is_empty()) {
        println!("  {name}: {:.1} {:.1}", all.iter().copied().fold(f64::NAN, f64::max), median(all));
    }
    println!("ours to theirs, round by round: lowest, median, highest");
    for (name, ours, theirs) in [
        ("llama-bench, prompt", 0, 3),
        ("llama-bench, reply", 1, 4),
        ("llama-server, prompt", 0, 5),
        ("llama-server, reply", 1, 6),
        ("a reply held by a grammar to one that is not", 2, 1),
    ] {
        let mut ratios: Vec<f64> =
            rounds[ours].iter().zip(&rounds[theirs]).map(|(ours, theirs)| ours / theirs).collect();
        ratios.sort_by(f64::total_cmp);
        if let [lowest, .., highest] = ratios[..] {
            println!("  {name}: {lowest:.2} {:.2} {highest:.2}", median(&ratios));
        }
    }
    Ok(())
}

async fn load(arguments: &Arguments, template: &str) -> Result<LocalModel> {
    let options =
        LocalOptions::new(&arguments.model).context(Some(4_096)).threads(Some(arguments.threads)).seed(Some(1));
    let options = options.template(Some(template.into())).temperature(0.0);
    Ok(LocalModel::load(options, |_| {}, &Default::default()).await?)
}

fn tools() -> Arc<[ToolSpec]> {
    let tool = |name: &str| ToolSpec {
        name: name.into(),
        description: "Searches the notes by meaning and by words, and gives the best passages with their lines.".into(),
        parameters: json!({"type": "object", "required": ["query"], "properties": {
            "query": {"type": "string", "maxLength": 40}, "limit": {"type": "integer", "minimum": 1, "maximum": 20}}}),
        effect: Effect::Read,
        time_limit: None,
    };
    ["search_notes", "list_notes", "read_note"].map(tool).into()
}

/// A conversation of a question, two consecutive calls with a result of some 150 tokens each, and an answer.
async fn turn(model: &LocalModel) -> Result<()> {
    let mut messages: Messages =
        [Message::user("Which of my notes say when to prune apple trees?")].into_iter().collect();
    let result = "trees/apple.md:12: Prune in late winter, before the buds open. ".repeat(8);
    for index in 0..2 {
        let request = Request::default().messages(messages.clone()).tools(tools()).parallel(Parallel::One);
        let request = request.tool_choice(ToolChoice::Tool("search_notes".into())).max_output_tokens(Some(200));
        let mut reply = Reply::collect(model.reply(request).await?).await?;
        let Some(Part::Call(call)) = reply.parts.last_mut() else { return Err("there is no call".into()) };
        call.id = format!("c{index}").into();
        let results = vec![ToolResult::new(call, Status::Ok, &result)];
        let more = [Message::Assistant { parts: reply.parts }, Message::Results { results }];
        messages = messages.iter().map(|message| Message::clone(message)).chain(more).collect();
    }
    let request = Request::default().messages(messages).tools(tools()).max_output_tokens(Some(32));
    Reply::collect(model.reply(request).await?).await?;
    Ok(())
}

/// Returns the tokens per second of a completely new prompt and of the reply, and the number of tokens in the prompt.
async fn timed(model: &LocalModel, round: usize, schema: Option<Value>) -> Result<(f64, f64, u64)> {
    let request = Request::default().messages([Message::user(question(round, schema.is_some()))].into_iter().collect());
    let request = request.max_output_tokens(Some(REPLY)).answer_schema(schema.map(Arc::new));
    let begun = Instant::now();
    let mut stream = model.reply(request).await?;
    let (mut builder, mut prompt) = (ReplyBuilder::new(), Duration::ZERO);
    while let Some(delta) = stream.next().await {
        let delta = delta?;
        if matches!(delta, Delta::Usage(_)) && prompt.is_zero() {
            prompt = begun.elapsed();
        }
        builder.push(&delta)?;
    }
    let written = begun.elapsed() - prompt;
    let usage = builder.finish()?.usage.ok_or("no tokens were counted")?;
    let rate = |tokens: u64, time: Duration| tokens as f64 / time.as_secs_f64();
    let evaluated = usage.input - usage.cached;
    Ok((rate(evaluated, prompt), rate(usage.output, written), evaluated))
}

/// Returns a prompt that shares no prefix with another one.
fn question(round: usize, is_held: bool) -> String {
    let words = "the garden in spring needs water and light ".repeat(PROMPT / 8 - 8);
    format!("{round}{is_held} Tell me a long story about this: {words}")
}

/// llama.cpp's server.
struct Server {
    process: Child,
    address: SocketAddr,
}

impl Server {
    fn start(program: &Path, arguments: &Arguments) -> Result<Self> {
        let address = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?;
        let mut command = Command::new(program);
        command.arg("--model").arg(&arguments.model).args(["--ctx-size", "4096", "--parallel", "1"]);
        command.args(["--port", &address.port().to_string(), "--threads", &arguments.threads.to_string()]);
        let process = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn()?;
        let mut server = Self { process, address };
        while !server.asked("GET /health", "").is_ok_and(|reply| reply["status"] == "ok") {
            if let Some(status) = server.process.try_wait()? {
                return Err(format!("llama-server ended, {status}").into());
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        Ok(server)
    }

    /// [`timed`] by the clock of the server.
    fn timed(&self, round: usize) -> Result<(f64, f64)> {
        let prompt = format!("<|im_start|>user\n{}<|im_end|>\n<|im_start|>assistant\n", question(round, false));
        let body = json!({"prompt": prompt, "n_predict": REPLY, "temperature": 0, "cache_prompt": false});
        let timings = &self.asked("POST /completion", &body.to_string())?["timings"];
        let rate = |field: &str| timings[field].as_f64().ok_or("llama-server gave no figures");
        Ok((rate("prompt_per_second")?, rate("predicted_per_second")?))
    }

    fn asked(&self, what: &str, body: &str) -> Result<Value> {
        let mut stream = TcpStream::connect(self.address)?;
        let length = body.len();
        write!(stream, "{what} HTTP/1.0\r\nHost: localhost\r\nContent-Type: application/json\r\n")?;
        write!(stream, "Content-Length: {length}\r\n\r\n{body}")?;
        let mut reply = String::new();
        stream.read_to_string(&mut reply)?;
        let (_, body) = reply.split_once("\r\n\r\n").ok_or("llama-server gave no reply")?;
        Ok(serde_json::from_str(body)?)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // Ignore the error if the server has already exited.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Measures prompts and replies of the same length with llama-bench.
fn llama_bench(program: &Path, arguments: &Arguments, prompt: u64) -> Result<(f64, f64)> {
    let rate = |test: [&str; 6]| -> Result<f64> {
        let threads = arguments.threads.to_string();
        let mut command = Command::new(program);
        command.arg("--model").arg(&arguments.model).args(test);
        let output = command.args(["--threads", &threads, "--repetitions", "1", "--output", "json"]).output()?;
        let tests: Value = serde_json::from_slice(&output.stdout)?;
        Ok(tests[0]["avg_ts"].as_f64().ok_or("llama-bench gave no figures")?)
    };
    let (prompt, reply) = (prompt.to_string(), REPLY.to_string());
    let prefill = rate(["--n-prompt", &prompt, "--n-gen", "0", "--n-depth", "0"])?;
    let decode = rate(["--n-prompt", "0", "--n-gen", &reply, "--n-depth", &prompt])?;
    Ok((prefill, decode))
}
