//! The texts that describe a prepared change to people: its title, the effect of undo, and the question of a form.

use vault_search::tools::{texts_for_client, texts_of_change};
use vault_search::{counted, sanitize_line};
use vault_tools::approval::PreparedChange;
use vault_tools::{ContentHash, Risk};

/// The maximum characters of a title, and of a line of an excerpt.
const LONGEST_TITLE: usize = 120;
const LONGEST_LINE: usize = 1_000;

/// The maximum lines of an excerpt for a client, and of the beginning that a form shows of a change that is too long
/// for it.
const EXCERPT_LINES: usize = 60;
const BEGINNING_LINES: usize = 12;

/// The size of the largest change that a form shows and can approve.
const FORM_BYTES: usize = 32_000;
const FORM_LINES: usize = 1_000;

/// Returns the kind of a change, without any text from notes.
pub(crate) fn kind(change: &PreparedChange) -> String {
    if change.plan().is_some() { "a plan".to_owned() } else { change.title() }
}

/// Returns the title of a change on one line.
pub(crate) fn title(change: &PreparedChange) -> String {
    cut_line(&sanitize_line(&change.title()), LONGEST_TITLE)
}

/// Describes how far a change of this risk can be undone.
pub(crate) fn what_undo_does(risk: Risk) -> &'static str {
    match risk {
        Risk::Command => "A command of the editor cannot be undone.",
        Risk::Read => "Nothing is changed: the assistant gets to read it.",
        _ => "It can be undone as a whole, byte for byte.",
    }
}

/// Returns the question for a form, with the whole change, or `None` if the change is too long for a form. Our own text
/// comes first. The rest can come from notes: it is indented so that it cannot pass for our text, and so that clients
/// that render Markdown show it as code.
pub(crate) fn question(change: &PreparedChange, vault: &str) -> Option<String> {
    let whole = texts_of_change(change, Vec::new()).1;
    let fits = whole.len() <= FORM_BYTES && whole.lines().count() <= FORM_LINES;
    fits.then(|| format!("{}\n{}", introduction(change, vault), indented(&whole)))
}

/// Returns the text of a form for a change that is too long to be approved in a form.
pub(crate) fn too_long(change: &PreparedChange, vault: &str, code: &str, has_page: bool) -> String {
    let whole = texts_of_change(change, Vec::new()).1;
    let page = if has_page { " or on the approval page, which show" } else { ", which shows" };
    format!(
        "{}\nThis change is too long to be approved here ({}, {} kB). Approve it with `vault-agent approve {code}` in a \
         terminal{page} all of it. Here it can only be declined. It begins:\n{}",
        introduction(change, vault),
        counted(whole.lines().count(), "line"),
        whole.len().div_ceil(1_000),
        indented(&excerpt(&whole, BEGINNING_LINES, LONGEST_TITLE))
    )
}

fn introduction(change: &PreparedChange, vault: &str) -> String {
    let vault = cut_line(&sanitize_line(vault), LONGEST_TITLE);
    let risk = change.risk();
    format!("{} in the vault {vault} (risk: {})\n{}", kind(change), risk.name(), what_undo_does(risk))
}

fn indented(text: &str) -> String {
    text.lines().map(|line| format!("\n    {line}")).collect()
}

/// Returns an excerpt and the whole of a change, for a client that may not read it before a person approves. Content
/// that requires approval to be read is not included.
pub(crate) fn told_to_client(change: &PreparedChange) -> (String, String) {
    let (short, whole) = texts_for_client(change, Vec::new());
    let missing = whole.lines().count().saturating_sub(EXCERPT_LINES);
    let more = (missing > 0).then(|| format!("\n... {}", counted(missing, "more line")));
    (excerpt(&short, EXCERPT_LINES, LONGEST_LINE) + &more.unwrap_or_default(), whole)
}

/// Returns the first lines of a text, each cut to `longest` characters.
fn excerpt(text: &str, lines: usize, longest: usize) -> String {
    text.lines().take(lines).map(|line| cut_line(line, longest)).collect::<Vec<_>>().join("\n")
}

/// Cuts a line to at most `most` characters, and states how many are missing.
fn cut_line(line: &str, most: usize) -> String {
    let missing = line.chars().count().saturating_sub(most);
    let shown: String = line.chars().take(most).collect();
    if missing > 0 { format!("{shown} … ({missing} more characters)") } else { shown }
}

pub(crate) fn digest_of(text: &str) -> String {
    ContentHash::of(text.as_bytes()).to_string()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use proptest::prelude::*;
    use proptest::sample::select;
    use serde_json::{Map, json};
    use vault_tools::approval::{ChangeRequest, now};
    use vault_tools::{Cancel, Headless, IndexUse, Policy, Toolbox, Vault, VaultOptions};

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

    fn asked(request: &ChangeRequest, files: &[(&str, &str)]) -> Option<(String, String)> {
        let folder = tempfile::tempdir().unwrap();
        let dir = folder.path().join("Notes");
        std::fs::create_dir(&dir).unwrap();
        for (name, text) in files {
            std::fs::write(dir.join(name), text).ok()?;
        }
        let options = VaultOptions::new().state_folder(folder.path().join("state")).use_index(IndexUse::Scan);
        let vault = Arc::new(Vault::open(&dir, options).unwrap());
        let mut toolbox = Toolbox::new(vault, Box::new(Headless::default()), Policy::default());
        let prepared = request.prepare(&mut toolbox, &now(), Cancel::default()).ok()?;
        Some((question(&prepared, "Notes")?, texts_of_change(&prepared, Vec::new()).1))
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
            let request = ChangeRequest::Call { tool: "write_note".to_owned(), args };
            let asked = asked(&request, &[(&name, &before)]);
            prop_assume!(asked.is_some());
            let (question, whole) = asked.unwrap();
            prop_assert!(has_only_what_is_seen(&question) && has_only_what_is_seen(&whole), "{:?}", question);
            let lines = below(&question, "write_note");
            prop_assert!(lines[0].starts_with("modify n") && is_marked(&lines[1..]), "{:#?}", lines);
        }

        #[test]
        fn a_question_about_a_plan_cannot_be_forged_by_it(goal in text(20), says in text(20), content in text(40)) {
            let plan = json!({
                "version": "1.0", "goal": format!("g{goal}"), "riskLevel": "writes", "assumptions": [says],
                "steps": [{ "id": "one", "tool": "vault.createFile", "preview": says, "args": { "path": "New.md", "content": content } }],
            });
            let asked = asked(&ChangeRequest::Plan { plan, parameters: Map::new() }, &[]);
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
