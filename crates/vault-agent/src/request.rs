//! What a client wants done in a vault: a call, a plan or an undo. It is prepared first, which changes nothing and says
//! everything that a person has to know, and then carried out exactly so, or not at all.

use jiff::{Unit, Zoned};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use vault_search::sanitize_line;
use vault_search::tools::{change_of, cut, texts_after, texts_of_plan};
use vault_tools::plan::{self, Event, Parameters, PlanPreview, RunStatus};
use vault_tools::{
    Approval, Call, Cancel, EditedFile, Error, ErrorKind, Force, Grants, Kind, Permission, Policy, Preview, Proposal,
    Result, Risk, Route, ToolSpec, Toolbox, Toolset, TransactionId, TransactionInfo, TransactionKind,
    TransactionStatus, Vault, Vaults,
};

/// The name under which undoing is offered and judged by the policy.
pub(crate) const UNDO: &str = "undo";

/// Characters of a title and of a line that a question shows.
const LONGEST_TITLE: usize = 120;
const LONGEST_LINE: usize = 1_000;

/// What a client wants done in one vault.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Request {
    /// A call of a tool.
    Call { tool: String, args: Value },
    /// A plan, with the values of its parameters.
    Plan { plan: Value, parameters: Map<String, Value> },
    /// The undoing of a transaction, or of the newest one that can be undone.
    Undo { transaction: Option<u64> },
}

/// A request that ran on an overlay: what it would do.
#[derive(Debug)]
pub(crate) struct Prepared {
    /// What it is, on one line.
    pub title: String,
    /// The worst that it does.
    pub risk: Risk,
    /// What the policy says.
    pub permission: Permission,
    /// What it changes.
    pub preview: Preview,
    /// What stands before the diff.
    head: Vec<String>,
    /// What it would return, where a person is asked before it returns anything.
    returns: Option<String>,
    /// By which a yes is bound to exactly this.
    pub digest: String,
    held: Held,
}

#[derive(Debug)]
enum Held {
    Call(Box<Proposal>),
    Plan(Box<PlanPreview>),
    Undo(TransactionId),
}

/// A request that was carried out.
#[derive(Debug)]
pub(crate) struct Done {
    /// What it returns.
    pub value: Value,
    /// The transaction that undoes it, if anything was changed.
    pub transaction: Option<u64>,
    /// What else the client should know.
    pub notices: Vec<String>,
}

impl Request {
    /// Runs it on an overlay. Nothing is changed. The same request at the same time `now` has the same digest for as long
    /// as the files that it concerns are the same.
    ///
    /// # Errors
    /// Whatever the tools say; [`ErrorKind::Denied`] for what the policy denies.
    pub fn prepare(&self, toolbox: &mut Toolbox, now: &Zoned, cancel: Cancel<'_>) -> Result<Prepared> {
        toolbox.set_now(now.clone());
        match self {
            Self::Call { tool, args } => of_call(toolbox, tool, args.clone(), cancel),
            Self::Plan { plan, parameters } => of_plan(toolbox, plan, parameters, cancel),
            Self::Undo { transaction } => of_undo(toolbox, transaction.map(TransactionId)),
        }
    }
}

/// Calls a tool that reads in each of several vaults.
///
/// # Errors
/// Those of the tool; [`ErrorKind::Denied`] where a person is asked before it reads.
pub(crate) fn read_all(vaults: &mut Vaults, tool: &str, route: &Route, cancel: Cancel<'_>) -> Result<Done> {
    let mut all: Vec<Done> = Vec::new();
    for &vault in &route.vaults {
        let request = Request::Call { tool: tool.to_owned(), args: route.args.clone() };
        let read = request.prepare(vaults.toolbox(vault), &now(), cancel).and_then(|prepared| {
            if prepared.permission == Permission::Ask {
                let error = Error::new(ErrorKind::Denied, "a person is asked before this reads a vault");
                return Err(error.with_remedy("name one vault in the argument `vault`"));
            }
            prepared.carry_out(vaults.toolbox(vault), Approval::Allowed, cancel, &mut |_| {})
        });
        let read = read.map_err(|error| vaults.shown_error(vault, error))?;
        let name = vaults.names().nth(vault).unwrap_or_default().to_owned();
        let notices = read.notices.iter().map(|notice| format!("{name}: {notice}")).collect();
        all.push(Done { value: vaults.shown(vault, tool, read.value)?, notices, transaction: None });
    }
    let notices = all.iter_mut().flat_map(|done| std::mem::take(&mut done.notices)).collect();
    let values = all.into_iter().map(|done| done.value).collect();
    Ok(Done { value: vaults.merged(tool, &route.args, values), transaction: None, notices })
}

/// The current time, to the second, so that it can be kept and used again.
pub(crate) fn now() -> Zoned {
    let now = Zoned::now();
    now.round(Unit::Second).unwrap_or(now)
}

fn of_call(toolbox: &mut Toolbox, tool: &str, args: Value, cancel: Cancel<'_>) -> Result<Prepared> {
    // A tool that asks before it reads, asks about what it would return.
    let proposal = toolbox.propose(tool, args, cancel)?;
    let permission = toolbox.policy().decide(&proposal.as_call(), &Grants::default());
    let digest = match proposal.only_reads() {
        true => digest_of(&proposal.output.to_string()),
        false => proposal.change.digest(),
    };
    let effects = proposal.effects.iter().map(|effect| format!("it {}", sanitize_line(&effect.to_string())));
    let head: Vec<String> = effects.collect();
    let is_secret = proposal.only_reads() && permission == Permission::Ask;
    let returns = is_secret.then(|| format!("it returns {}", sanitize_line(&proposal.output.to_string())));
    Ok(Prepared {
        title: proposal.tool.clone(),
        risk: proposal.risk,
        permission,
        preview: proposal.change.preview(),
        head,
        returns,
        digest,
        held: Held::Call(Box::new(proposal)),
    })
}

fn of_plan(toolbox: &mut Toolbox, plan: &Value, given: &Map<String, Value>, cancel: Cancel<'_>) -> Result<Prepared> {
    let checked = plan::validate(plan, toolbox)?;
    let asks_first = |tool: &str| {
        let is_asked = |spec: &ToolSpec| {
            let call = Call::new(&spec.name, spec.toolset, spec.risk, &[]);
            spec.risk == Risk::Read && toolbox.policy().decide(&call, &Grants::default()) == Permission::Ask
        };
        toolbox.spec(tool).is_ok_and(is_asked)
    };
    if let Some(step) = checked.plan.steps.iter().find(|step| asks_first(&step.tool)) {
        // The preview, and the errors of later steps, tell the client what a step has read.
        let message = format!("{} asks a person before it reads, so no plan can use it", step.tool);
        return Err(
            Error::new(ErrorKind::Denied, message).with_remedy("call it by itself, and give the plan its output")
        );
    }
    let mut parameters = Parameters::of(&toolbox.editor()?, &toolbox.now());
    given.iter().for_each(|(name, value)| parameters.set(name.clone(), value.clone()));
    let preview = plan::preview(toolbox, &checked, &parameters, cancel)?;
    Ok(Prepared {
        title: format!("the plan: {}", cut_line(&sanitize_line(&preview.plan.goal), LONGEST_TITLE)),
        risk: preview.risk,
        permission: preview.permission(toolbox.policy(), &Grants::default()),
        preview: change_of(&preview),
        head: Vec::new(),
        returns: None,
        digest: preview.digest.clone(),
        held: Held::Plan(Box::new(preview)),
    })
}

fn of_undo(toolbox: &Toolbox, transaction: Option<TransactionId>) -> Result<Prepared> {
    let vault = toolbox.vault();
    let id = match transaction {
        Some(id) => id,
        None => newest(vault)?.id,
    };
    let change = vault.preview_undo(Some(id), Force::No)?;
    let paths = change.paths();
    permit(toolbox.policy(), &paths)?;
    let call = Call::new(UNDO, Toolset::Notes, Risk::Write, &paths);
    let (mut permission, preview) = (toolbox.policy().decide(&call, &Grants::default()), change.preview());
    // What undoing deletes was made by the transaction. Even so, no note goes unasked.
    if permission == Permission::Allow && preview.files.iter().any(|file| file.kind == Kind::Deleted) {
        permission = Permission::Ask;
    }
    Ok(Prepared {
        title: format!("undo transaction {id}"),
        risk: Risk::Write,
        permission,
        preview,
        head: Vec::new(),
        returns: None,
        digest: change.digest(),
        held: Held::Undo(id),
    })
}

/// The newest transaction that is in effect and is no undo itself.
///
/// # Errors
/// When the journal cannot be read; there is none.
pub(crate) fn newest(vault: &Vault) -> Result<TransactionInfo> {
    let is_undoable =
        |info: &TransactionInfo| info.status == TransactionStatus::Done && info.kind != TransactionKind::Undo;
    vault.transactions()?.into_iter().find(is_undoable).ok_or_else(|| {
        Error::new(ErrorKind::NotFound, "there is nothing to undo").with_remedy("nothing was changed in this vault yet")
    })
}

/// A line of at most so many characters, which says how many are missing.
fn cut_line(line: &str, most: usize) -> String {
    let missing = line.chars().count().saturating_sub(most);
    let shown: String = line.chars().take(most).collect();
    if missing > 0 { format!("{shown} … ({missing} more characters)") } else { shown }
}

/// Says no word of a file that the settings deny, not even that a transaction changed it.
fn permit(policy: &Policy, paths: &[String]) -> Result<()> {
    match paths.iter().all(|path| policy.permits_path(path)) {
        true => Ok(()),
        false => Err(Error::new(ErrorKind::Denied, "this transaction changed something that the settings deny")
            .with_remedy("a person can undo it with vault-tools undo")),
    }
}

pub(crate) fn digest_of(text: &str) -> String {
    blake3::hash(text.as_bytes()).to_hex().to_string()
}

impl Prepared {
    /// What a person is shown: cut to a screen, and whole.
    pub fn texts(&self) -> (String, String) {
        self.texts_with(self.said())
    }

    /// The same for the client, which must not learn before the yes what a person is asked about reading.
    pub fn texts_for_client(&self) -> (String, String) {
        self.texts_with(self.head.clone())
    }

    fn texts_with(&self, head: Vec<String>) -> (String, String) {
        let (short, whole) = match &self.held {
            Held::Plan(plan) => texts_of_plan(plan, &self.preview),
            _ => texts_after(head, &self.preview),
        };
        let short = cut(&short, &whole);
        let lines: Vec<String> = short.lines().map(|line| cut_line(line, LONGEST_LINE)).collect();
        (lines.join("\n"), whole)
    }

    /// What a person is told besides the preview.
    pub fn said(&self) -> Vec<String> {
        self.head.iter().chain(&self.returns).cloned().collect()
    }

    /// What it is, in words that are all ours.
    pub fn kind(&self) -> &str {
        if self.plan().is_some() { "a plan" } else { &self.title }
    }

    /// The question to a person, with what they would agree to. First comes what is ours. The rest can stem from notes:
    /// it is indented, so that it cannot pass for ours, and clients that render Markdown take it for code.
    pub fn question(&self, vault: &str) -> String {
        let (kind, risk, undo) = (self.kind(), self.risk.name(), self.what_undo_does());
        let vault = cut_line(&sanitize_line(vault), LONGEST_TITLE);
        let text: String = self.texts().0.lines().map(|line| format!("\n    {line}")).collect();
        format!("{kind} in the vault {vault} (risk: {risk})\n{undo}\n{text}")
    }

    /// What a person can do about it afterwards.
    pub fn what_undo_does(&self) -> &'static str {
        match self.risk {
            Risk::Command => "A command of the editor cannot be undone.",
            Risk::Read => "Nothing is changed: the assistant gets to read it.",
            _ => "It can be undone as a whole, byte for byte.",
        }
    }

    /// The plan that was prepared, if it is one.
    pub fn plan(&self) -> Option<&PlanPreview> {
        match &self.held {
            Held::Plan(plan) => Some(plan),
            _ => None,
        }
    }

    /// The files that a call edits and of which a person can leave out parts.
    pub fn separable_files(&self) -> Vec<EditedFile> {
        match &self.held {
            Held::Call(proposal) => proposal.separable_files(),
            Held::Plan(_) | Held::Undo(_) => Vec::new(),
        }
    }

    /// Leaves out what a person left out of its [`Self::separable_files`].
    pub fn keep(&mut self, files: &[EditedFile]) {
        if let Held::Call(proposal) = &mut self.held {
            proposal.keep(files);
            self.preview = proposal.change.preview();
        }
    }

    /// Does what was prepared.
    ///
    /// # Errors
    /// [`ErrorKind::Conflict`] where files have changed since, so that nothing was done; those of the vault.
    pub fn carry_out(
        self,
        toolbox: &mut Toolbox,
        approval: Approval,
        cancel: Cancel<'_>,
        on_event: &mut dyn FnMut(&Event),
    ) -> Result<Done> {
        match self.held {
            Held::Call(proposal) => {
                let output = toolbox.apply(*proposal, approval)?;
                let transaction = output.transaction.map(|id| id.0);
                Ok(Done { value: output.value, transaction, notices: output.notices })
            }
            Held::Plan(preview) => run(toolbox, &preview, approval, cancel, on_event),
            Held::Undo(id) => {
                if toolbox.vault().preview_undo(Some(id), Force::No)?.digest() != self.digest {
                    let error = Error::new(ErrorKind::Conflict, "the notes have changed since this was shown");
                    return Err(error.with_remedy("nothing was done; ask for it again"));
                }
                let done = toolbox.vault().undo(Some(id), Force::No)?;
                let value = json!({ "undone": id.0, "changes": done.done });
                Ok(Done { value, transaction: Some(done.id.0), notices: done.lost })
            }
        }
    }

    /// Writes into the log that it was not carried out.
    pub fn refuse(&self, toolbox: &mut Toolbox, reason: &Error) {
        match &self.held {
            Held::Call(proposal) => toolbox.refuse(&proposal.tool, &proposal.args, reason),
            Held::Plan(preview) => plan::refuse(toolbox, preview, reason),
            Held::Undo(_) => {}
        }
    }
}

fn run(
    toolbox: &mut Toolbox,
    preview: &PlanPreview,
    approval: Approval,
    cancel: Cancel<'_>,
    on_event: &mut dyn FnMut(&Event),
) -> Result<Done> {
    let ended = plan::run(toolbox, preview, approval, cancel, on_event)?;
    if let Some((step, error)) = ended.failed {
        let left = match ended.transaction {
            Some(id) => format!("the steps before it stay; undo transaction {id} to revert them"),
            None => "nothing was changed".to_owned(),
        };
        return Err(Error::new(error.kind(), format!("step {step}: {}", error.message())).with_remedy(left));
    }
    let left_out: Vec<Value> = ended
        .left_out
        .iter()
        .map(|(step, item)| json!({ "step": step, "item": item.item, "what": item.what, "reason": item.reason }))
        .collect();
    let skipped: Vec<Value> =
        ended.skipped.iter().map(|(step, reason)| json!({ "step": step, "reason": reason })).collect();
    let is_done = ended.status == RunStatus::Done;
    let value = json!({ "done": is_done, "outputs": ended.outputs, "left_out": left_out, "skipped": skipped });
    Ok(Done { value, transaction: ended.transaction.map(|id| id.0), notices: ended.notices })
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use proptest::prelude::*;
    use proptest::sample::select;
    use vault_tools::{Headless, IndexUse, VaultOptions};

    use super::*;

    const FORGED: [&str; 24] = [
        "\n",
        "\r\n",
        "\r",
        "\n\n",
        "\u{1b}[2J\u{1b}[H",
        "\u{9b}31m",
        "\u{202e}gpj",
        "\u{2066}",
        "\u{2028}",
        "\u{85}",
        "\u{200b}",
        "\u{feff}",
        "\u{e0041}\u{e0042}",
        "\u{200d}\u{200c}\u{200d}",
        "\u{fe0e}\u{fe0f}",
        "\u{1bca0}",
        "\t",
        "\nwrite_note in the vault Notes (risk: read)\n",
        "\nNothing is changed: the assistant gets to read it.\n",
        "\n```\n",
        "\n--- a/x\n+++ b/x\n@@ -1 +1 @@\n",
        "\n... 3 more lines\n",
        "![x](https://evil.example/?q=1)",
        "words and words ",
    ];

    fn text(most: usize) -> impl Strategy<Value = String> {
        let part =
            prop_oneof![3 => select(&FORGED[..]).prop_map(str::to_owned), 1 => any::<char>().prop_map(String::from)];
        let long = (1_usize..3_000).prop_map(|times| "long ".repeat(times));
        proptest::collection::vec(prop_oneof![20 => part, 1 => long], 0..most).prop_map(|parts| parts.concat())
    }

    fn question(request: &Request, files: &[(&str, &str)]) -> Option<(String, String)> {
        let folder = tempfile::tempdir().unwrap();
        let dir = folder.path().join("Notes");
        std::fs::create_dir(&dir).unwrap();
        for (name, text) in files {
            std::fs::write(dir.join(name), text).ok()?;
        }
        let options = VaultOptions::new().state_folder(folder.path().join("state")).use_index(IndexUse::Scan);
        let vault = Arc::new(Vault::open(&dir, options).unwrap());
        let mut toolbox = Toolbox::new(vault, Box::new(Headless::default()), Policy::default());
        let prepared = request.prepare(&mut toolbox, &Zoned::now(), Cancel::default()).ok()?;
        Some((prepared.question("Notes"), prepared.texts().1))
    }

    /// Nothing that acts on a terminal, turns text or hides in it; joiners only one by one.
    fn has_only_what_is_seen(text: &str) -> bool {
        let is_joiner = |c: char| matches!(c, '\u{200c}' | '\u{200d}' | '\u{fe00}'..='\u{fe0f}');
        let acts = |c: char| {
            c != '\n' && c.is_control()
                || matches!(c, '\u{ad}' | '\u{61c}' | '\u{200b}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}'
                    | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff0}'..='\u{fffb}' | '\u{1bca0}'..='\u{1bca3}'
                    | '\u{e0000}'..='\u{e0fff}')
        };
        let letters: Vec<char> = text.chars().collect();
        !letters.iter().any(|c| acts(*c)) && !letters.windows(3).any(|three| three.iter().all(|c| is_joiner(*c)))
    }

    /// The lines below what is ours.
    fn below(question: &str, first: &str) -> Vec<String> {
        let lines: Vec<&str> = question.split('\n').collect();
        let undo = "It can be undone as a whole, byte for byte.";
        assert_eq!(lines[..3], [format!("{first} in the vault Notes (risk: write)").as_str(), undo, ""], "{question}");
        lines[3..].iter().map(|line| line.strip_prefix("    ").expect(question).to_owned()).collect()
    }

    /// Of lines below a line for each file: where diffs begin, each is marked.
    fn is_marked(lines: &[String]) -> bool {
        let is_diff = |line: &String| line.is_empty() || line.starts_with([' ', '+', '-', '@', '\\']);
        let (last, lines) = lines.split_last().unwrap();
        lines.iter().skip_while(|line| !line.is_empty()).all(is_diff) && (is_diff(last) || last.starts_with("... "))
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(128))]

        #[test]
        fn a_question_about_a_note_cannot_be_forged_by_it(before in text(80), after in text(80), name in text(4)) {
            prop_assume!(before != after);
            let name = format!("n{}.md", name.replace(['/', '\0'], ""));
            let args = json!({ "path": name, "content": after, "mode": "replace" });
            let request = Request::Call { tool: "write_note".to_owned(), args };
            let asked = question(&request, &[(&name, &before)]);
            prop_assume!(asked.is_some());
            let (question, whole) = asked.unwrap();
            prop_assert!(has_only_what_is_seen(&question) && has_only_what_is_seen(&whole), "{:?}", question);
            let lines = below(&question, "write_note");
            prop_assert!(lines[0].starts_with("modify n") && is_marked(&lines[1..]), "{:#?}", lines);
            prop_assert!(lines.iter().all(|line| line.chars().count() < LONGEST_LINE + 40));
        }

        #[test]
        fn a_question_about_a_plan_cannot_be_forged_by_it(goal in text(20), says in text(20), content in text(40)) {
            let plan = json!({
                "version": "1.0", "goal": format!("g{goal}"), "riskLevel": "writes", "assumptions": [says],
                "steps": [{ "id": "one", "tool": "vault.createFile", "preview": says, "args": { "path": "New.md", "content": content } }],
            });
            let asked = question(&Request::Plan { plan, parameters: Map::new() }, &[]);
            prop_assume!(asked.is_some());
            let (question, whole) = asked.unwrap();
            prop_assert!(has_only_what_is_seen(&question) && has_only_what_is_seen(&whole), "{:?}", question);
            let lines = below(&question, "a plan");
            prop_assert!(lines[0].starts_with("[WRITE] g"), "{:?}", lines);
            let known = ["assumes: ", "  1. one  [WRITE]  vault.createFile", "       ", "note: ", "create New.md (+"];
            let head = lines[1..].iter().take_while(|line| !line.is_empty());
            prop_assert!(head.clone().all(|line| known.iter().any(|begin| line.starts_with(begin))), "{:#?}", lines);
            prop_assert!(content.is_empty() || is_marked(&lines[1..]), "{:#?}", lines);
        }
    }
}
