//! Citations in answers: `[path:line]` and quotes before them, checked against the notes as the answer streams. What does
//! not exist is taken out and named.
//!
//! Text is passed on at once up to the first character of a line that can begin a citation or a quote; from there on the
//! line is held until it is complete.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use regex::Regex;
use serde::{Deserialize, Serialize};

/// A place in a note that an answer used.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, schemars::JsonSchema)]
pub(crate) struct Source {
    /// The note.
    pub path: String,
    /// The line, from 1.
    pub line: usize,
}

/// The most bytes of a line that are held. A longer line is checked in pieces.
const LONGEST: usize = 16 << 10;

/// The fewest letters of a quote that is looked for: shorter ones are names and single words.
const SHORTEST_QUOTE: usize = 12;

/// `[path:line]` and `[path:line-line]`, also several with `;` or `,` between them, and with the brackets that models
/// write instead; a path ends like a file's name.
static CITATION: LazyLock<Regex> = LazyLock::new(|| {
    let one = r"[^\[\]()`\n:;|]+\.[A-Za-z]{1,8}(?::\s?[Ll]?\d{1,7}(?:\s*[-–]\s*[Ll]?\d{1,7})?)";
    let inside = format!(r"(?P<inside>{one}(?:\s*[;,]\s*{one})*)");
    Regex::new(&format!(r"[ \t]?(?:`\[|\[\[|\[|\(){inside}(?:\]`|\]\]|\]|\))")).expect("a valid pattern")
});

static QUOTE: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r#""(?P<straight>[^"\n]+)"|“(?P<curly>[^”\n]+)”"#).expect("a valid pattern"));

/// Reads a note by its path; `None` where there is none that may be read.
type Lookup<'l> = dyn FnMut(&str) -> Option<String> + Send + 'l;

/// Checks an answer as it streams.
pub(crate) struct CitationCheck<'l> {
    lookup: Box<Lookup<'l>>,
    /// What the person said, which may be quoted.
    question: String,
    notes: BTreeMap<String, Option<String>>,
    /// What is held of the last line.
    held: String,
    /// Whether the last line has begun to be held.
    is_holding: bool,
    /// Whether something of the last line was shown, blanks aside: what is held does not begin it.
    has_begun: bool,
    is_in_fence: bool,
    sources: Vec<Source>,
    removed: Vec<String>,
}

impl<'l> CitationCheck<'l> {
    /// A check of the answer to a question, which reads notes by `lookup`, each once.
    pub fn new(question: &str, lookup: impl FnMut(&str) -> Option<String> + Send + 'l) -> Self {
        Self {
            lookup: Box::new(lookup),
            question: question.to_owned(),
            notes: BTreeMap::new(),
            held: String::new(),
            is_holding: false,
            has_begun: false,
            is_in_fence: false,
            sources: Vec::new(),
            removed: Vec::new(),
        }
    }

    /// More of the answer: what of it, and of what was held, can be shown now.
    pub fn push(&mut self, text: &str) -> String {
        let mut shown = String::new();
        for piece in text.split_inclusive('\n') {
            if self.is_holding {
                self.held.push_str(piece);
            } else {
                // Blanks before a citation go with it, so they wait for what follows.
                let line = std::mem::take(&mut self.held) + piece;
                let begins = line.find(['[', '(', '"', '“', '`']);
                self.is_holding = begins.is_some();
                let before = line[..begins.unwrap_or(line.len())].trim_end_matches([' ', '\t']);
                shown.push_str(before);
                self.has_begun = !before.ends_with('\n') && (self.has_begun || !before.trim().is_empty());
                self.held.push_str(&line[before.len()..]);
                if !self.is_holding {
                    continue;
                }
            }
            if piece.ends_with('\n') || self.held.len() > LONGEST {
                shown.push_str(&self.release());
            }
        }
        shown
    }

    /// The end of the answer: what is left of it.
    pub fn finish(&mut self) -> String {
        self.release()
    }

    /// The places that the answer cites, in the order in which it does, each once.
    pub fn sources(&self) -> &[Source] {
        &self.sources
    }

    /// What was taken out, and why, one sentence each.
    pub fn removed(&self) -> &[String] {
        &self.removed
    }

    fn release(&mut self) -> String {
        self.is_holding = false;
        let line = std::mem::take(&mut self.held);
        if !self.has_begun && line.trim_start().starts_with("```") {
            self.is_in_fence = !self.is_in_fence;
        }
        self.has_begun = !line.ends_with('\n') && (self.has_begun || !line.is_empty());
        if self.is_in_fence || line.is_empty() { line } else { self.checked(&line) }
    }

    fn checked(&mut self, line: &str) -> String {
        let mut text = String::new();
        let mut from = 0;
        for found in CITATION.captures_iter(line) {
            let (Some(all), Some(inside)) = (found.get(0), found.name("inside")) else { continue };
            // A Markdown link, `[text](address)`, and a host with its port, `(host.org:80)`, cite nothing.
            let in_parentheses = all.as_str().trim_start().starts_with('(');
            let is_address = line[..all.start()].ends_with(']') || !inside.as_str().contains(".md:");
            if (in_parentheses && is_address) || line[all.end()..].starts_with('(') {
                continue;
            }
            let cited: Vec<Source> = split(inside.as_str()).filter_map(source).collect();
            let sentence = self.without_false_quotes(&line[from..all.start()], &cited);
            text.push_str(&sentence);
            from = all.end();
            let mut kept = Vec::new();
            for source in cited {
                match self.fault(&source) {
                    None => kept.push(source),
                    Some(fault) => self.removed.push(fault),
                }
            }
            if kept.is_empty() {
                continue;
            }
            let space = if all.as_str().starts_with([' ', '\t']) { " " } else { "" };
            let shown: Vec<String> = kept.iter().map(|source| format!("{}:{}", source.path, source.line)).collect();
            text.push_str(&format!("{space}[{}]", shown.join("; ")));
            for source in kept {
                if !self.sources.contains(&source) {
                    self.sources.push(source);
                }
            }
        }
        text.push_str(&line[from..]);
        text
    }

    /// Why a place cannot be cited.
    fn fault(&mut self, source: &Source) -> Option<String> {
        let Source { path, line } = source;
        let Some(text) = self.note(path) else { return Some(format!("[{path}:{line}]: there is no such note")) };
        let lines = text.lines().count();
        (*line == 0 || *line > lines).then(|| format!("[{path}:{line}]: the note has {lines} lines"))
    }

    /// A text before a citation, without the quotes that none of the cited notes has.
    fn without_false_quotes(&mut self, text: &str, cited: &[Source]) -> String {
        let mut checked = String::new();
        let mut from = 0;
        for found in QUOTE.captures_iter(text) {
            let (Some(all), Some(quote)) = (found.get(0), found.name("straight").or_else(|| found.name("curly")))
            else {
                continue;
            };
            let is_true = folded(quote.as_str()).len() < SHORTEST_QUOTE
                || holds(&self.question, quote.as_str())
                || cited.iter().any(|source| self.note(&source.path).is_some_and(|note| holds(&note, quote.as_str())));
            if !is_true {
                let paths: Vec<&str> = cited.iter().map(|source| source.path.as_str()).collect();
                self.removed.push(format!("\"{}\": not in {}", quote.as_str().trim(), paths.join(", ")));
                checked.push_str(&text[from..all.start()]);
                checked.push_str("[…]");
                from = all.end();
            }
        }
        checked.push_str(&text[from..]);
        checked
    }

    fn note(&mut self, path: &str) -> Option<String> {
        if !self.notes.contains_key(path) {
            let text = (self.lookup)(path);
            self.notes.insert(path.to_owned(), text);
        }
        self.notes[path].clone()
    }
}

fn split(inside: &str) -> impl Iterator<Item = &str> {
    // A comma can be a part of a path; one that ends a citation follows a number.
    static END: LazyLock<Regex> = LazyLock::new(|| Regex::new(r"(\d)\s*[;,]\s*").expect("a valid pattern"));
    let mut from = 0;
    let mut parts = Vec::new();
    for found in END.find_iter(inside) {
        parts.push(&inside[from..=found.start()]);
        from = found.end();
    }
    parts.push(&inside[from..]);
    parts.into_iter()
}

fn source(text: &str) -> Option<Source> {
    let (path, lines) = text.trim().rsplit_once(':')?;
    let first: String =
        lines.trim_start().trim_start_matches(['L', 'l']).chars().take_while(char::is_ascii_digit).collect();
    let path = path.trim().trim_start_matches("./");
    Some(Source { path: path.to_owned(), line: first.parse().ok()? })
}

/// Letters and digits alone, with single spaces between them: Markdown, line breaks and typography do not count.
fn folded(text: &str) -> String {
    let mut folded = String::with_capacity(text.len());
    for c in text.chars() {
        if c.is_alphanumeric() {
            folded.extend(c.to_lowercase());
        } else if !folded.ends_with(' ') && !matches!(c, '\'' | '’' | '*' | '_' | '`' | '=') {
            folded.push(' ');
        }
    }
    folded.trim().to_owned()
}

/// Whether a text holds what is quoted of it: the parts between `…` one behind the other.
fn holds(text: &str, quote: &str) -> bool {
    let text = folded(text);
    let mut rest = &text[..];
    quote.split('…').flat_map(|part| part.split("...")).map(folded).all(|part| {
        let found = rest.find(&part).map(|at| at + part.len());
        rest = &rest[found.unwrap_or(0)..];
        found.is_some()
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const ROSES: &str = "# Roses\n\nPrune them in *late* winter,\nnever in autumn.\n";

    fn lookup(path: &str) -> Option<String> {
        match path {
            "Garden/Roses.md" => Some(ROSES.to_owned()),
            "A, b.md" => Some("one\n".to_owned()),
            _ => None,
        }
    }

    fn checked(answer: &str) -> (String, Vec<Source>, Vec<String>) {
        let mut check = CitationCheck::new("when do I water?", lookup);
        let mut text = check.push(answer);
        text.push_str(&check.finish());
        (text, check.sources().to_vec(), check.removed().to_vec())
    }

    #[test]
    fn what_exists_stays_and_what_does_not_is_taken_out_and_named() {
        for (answer, shown, sources, removed) in [
            ("Prune them [Garden/Roses.md:3].", "Prune them [Garden/Roses.md:3].", vec![3], 0),
            ("Prune them [Garden/Roses.md:3-4].", "Prune them [Garden/Roses.md:3].", vec![3], 0),
            ("Prune them [Garden/Roses.md:9].", "Prune them.", vec![], 1),
            ("Prune them [Garden/Lilies.md:1].\nYes.", "Prune them.\nYes.", vec![], 1),
            ("Both [Garden/Roses.md:3; No.md:1].", "Both [Garden/Roses.md:3].", vec![3], 1),
            (
                "It says \"prune them in late winter\" [Garden/Roses.md:3].",
                "It says \"prune them in late winter\" [Garden/Roses.md:3].",
                vec![3],
                0,
            ),
            (
                "It says “late winter, never in autumn” [Garden/Roses.md:3].",
                "It says “late winter, never in autumn” [Garden/Roses.md:3].",
                vec![3],
                0,
            ),
            (
                "It says \"prune them in early spring\" [Garden/Roses.md:3].",
                "It says […] [Garden/Roses.md:3].",
                vec![3],
                1,
            ),
            (
                "It says \"prune them … never in autumn\" [Garden/Roses.md:3].",
                "It says \"prune them … never in autumn\" [Garden/Roses.md:3].",
                vec![3],
                0,
            ),
            (
                "It says \"never in autumn … prune them\" [Garden/Roses.md:3].",
                "It says […] [Garden/Roses.md:3].",
                vec![3],
                1,
            ),
            (
                "You ask \"When do I water?\": never [Garden/Roses.md:4].",
                "You ask \"When do I water?\": never [Garden/Roses.md:4].",
                vec![4],
                0,
            ),
            ("Not `[No.md:1]`, not [[No.md:1]], not (No.md: 1).", "Not, not, not.", vec![], 3),
            ("So (./Garden/Roses.md:3).", "So [Garden/Roses.md:3].", vec![3], 0),
            ("It runs here (host.org:8080).", "It runs here (host.org:8080).", vec![], 0),
            ("A [link](Garden/Roses.md:3) (and more).", "A [link](Garden/Roses.md:3) (and more).", vec![], 0),
            (
                "A link [text.md:1](https://example.org) cites nothing.",
                "A link [text.md:1](https://example.org) cites nothing.",
                vec![],
                0,
            ),
            ("```\nlet a = b[x.md:1];\n```\n", "```\nlet a = b[x.md:1];\n```\n", vec![], 0),
        ] {
            let (text, cited, faults) = checked(answer);
            assert_eq!(text, shown);
            assert_eq!(cited.iter().map(|source| source.line).collect::<Vec<_>>(), sources, "{answer}");
            assert_eq!(faults.len(), removed, "{answer}: {faults:?}");
        }
        let (text, cited, faults) = checked("Yes [A, b.md:1, Garden/Roses.md:4].");
        assert_eq!((text.as_str(), cited.len(), faults.len()), ("Yes [A, b.md:1; Garden/Roses.md:4].", 2, 0));
    }

    #[test]
    fn text_without_citations_streams_at_once() {
        let mut check = CitationCheck::new("when do I water?", lookup);
        assert_eq!(check.push("Prune "), "Prune");
        assert_eq!(check.push("them [Gar"), " them");
        assert_eq!(check.push("den/Roses.md:3]"), "");
        assert_eq!(check.push(".\nNow"), " [Garden/Roses.md:3].\nNow");
    }

    proptest! {
        #[test]
        fn every_split_gives_the_same(
            parts in proptest::collection::vec(prop_oneof![
                Just("[Garden/Roses.md:3]".to_owned()), Just(" [No.md:1]".to_owned()), Just("\n".to_owned()),
                Just("\"prune them in late winter\"".to_owned()), Just("```\n".to_owned()), Just("“".to_owned()),
                "[a-z \\[\\]:.\"]{0,12}",
            ], 0..12),
            cuts in proptest::collection::vec(0_usize..200, 0..8),
        ) {
            let answer = parts.concat();
            let mut check = CitationCheck::new("when do I water?", lookup);
            let mut cuts: Vec<usize> = cuts.into_iter().filter(|cut| answer.is_char_boundary(*cut)).collect();
            cuts.sort_unstable();
            let (mut text, mut from) = (String::new(), 0);
            for cut in cuts.into_iter().filter(|cut| *cut <= answer.len()) {
                text.push_str(&check.push(&answer[from..cut.max(from)]));
                from = cut.max(from);
            }
            text.push_str(&check.push(&answer[from..]));
            text.push_str(&check.finish());
            let (whole, sources, removed) = checked(&answer);
            prop_assert_eq!(&text, &whole);
            prop_assert_eq!(check.sources(), &sources[..]);
            prop_assert_eq!(check.removed(), &removed[..]);
        }
    }
}
