//! Checks the citations in an answer against the notes as the answer streams: places such as `[path:line]`, and the
//! quotes before them. Citations and quotes that do not exist are removed and reported; notes that are named in any
//! other form are found, and left as written.
//!
//! Text is passed on up to the first character that can begin a place or a quote. From there it is held until the place
//! or quote is complete, for a bounded number of characters.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use regex::{Captures, Regex};
use serde::{Deserialize, Serialize};

/// A place in a note that an answer cites.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, schemars::JsonSchema)]
pub(crate) struct Source {
    /// The note.
    pub path: String,
    /// The line, from 1; left out if the whole note is cited.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub line: Option<usize>,
    /// The last line of a range.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last: Option<usize>,
    /// Whether the note was not read in this conversation.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub unread: bool,
}

impl Source {
    /// Formats the place as `path:line-last`, without the parts that are unknown.
    pub fn place(&self) -> String {
        let Self { path, line, last, .. } = self;
        let line = line.map(|line| format!(":{line}")).unwrap_or_default();
        let last = last.map(|last| format!("-{last}")).unwrap_or_default();
        format!("{path}{line}{last}")
    }
}

/// A note that was found.
pub(crate) struct CitedNote {
    /// Its path, as the person knows it.
    pub path: String,
    pub text: String,
}

/// The maximum bytes to hold for a place or a quote if the answer streams to a person.
pub(crate) const ON_SCREEN: usize = 200;

/// The minimum letters of a quote to check. Shorter quotes are usually names and single words.
const SHORTEST_QUOTE: usize = 12;

/// The maximum number of words before a line's number, or before `.md`, among which a note's name is searched.
const MOST_WORDS: usize = 12;

/// The characters that can begin a place or a quote.
const OPENERS: [char; 8] = ['[', '(', '"', '“', '„', '«', '`', '【'];

/// One line or a range, for example `19` or `L8-L19`.
const LINES: &str = r"[Ll]?\d{1,7}(?:\s*[-–]\s*[Ll]?\d{1,7})?";

/// Places within brackets, including the kinds of brackets that models write instead, for example `[path:line]`,
/// `[path:line-line; path#L4]` or `[path, line 3]`. A path ends with a file extension.
static CITATION: LazyLock<Regex> = LazyLock::new(|| {
    let one = format!(r"[^\[\]()`\n:;|#【】]+\.[A-Za-z]{{1,8}}{}", place_pattern());
    let inside = format!(r"(?P<inside>{one}(?:\s*[;,]\s*{one})*)");
    Regex::new(&format!(r"[ \t]?(?:`\[|\[\[|\[|\(|【){inside}(?:\]`|\]\]|\]|\)|】)")).expect("a valid pattern")
});

fn place_pattern() -> String {
    format!(r"(?::\s?{LINES}(?:\s*,\s*{LINES})*|#{LINES}|,?\s+(?:{LINE_WORDS})\s+{LINES})")
}

/// "line" in the likely languages of answers.
const LINE_WORDS: &str = "lines?|Zeilen?|lignes?|líneas?|righe|riga|linhas?|regels?|rader|rad";

/// One of the places of a [`CITATION`].
static ONE_PLACE: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(&format!(r"^\s*[;,]?\s*(?P<path>[^\n:;|#]+?\.[A-Za-z]{{1,8}})(?P<place>{})", place_pattern()))
        .expect("a valid pattern")
});

static NUMBERS: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r"(\d{1,7})(?:\s*[-–]\s*[Ll]?(\d{1,7}))?").expect("a valid pattern"));

static QUOTE: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r#""(?P<straight>[^"\n]+)"|“(?P<curly>[^”\n]+)”|„(?P<low>[^“”\n]+)[“”]|«(?P<angle>[^»\n]+)»"#)
        .expect("a valid pattern")
});

/// Notes that are named in other forms: a wikilink, a Markdown link, a name with a line in brackets, a path with or
/// without a line, words before "line 3".
static NAMED: LazyLock<Regex> = LazyLock::new(|| {
    let place = place_pattern();
    Regex::new(&format!(
        r"\[\[(?P<wiki>[^\[\]|\n]+)(?:\|[^\[\]\n]*)?\]\]|\]\(<?(?P<link>[^()<>\n]+)>?\)|\[(?P<name>[^\[\]\n:|]+):(?P<line>{LINES})\]|(?P<path>[^\[\]()`\x22“”|:;#\n]+?\.md)\b(?P<place>{place}|#[^\[\]()`\n,;]+)?|(?P<words>[^\[\]()`\x22“”|:;#\n,]+),\s+(?P<at>(?:{LINE_WORDS})\s+{LINES})"
    ))
    .expect("a valid pattern")
});

/// Finds a note by its path, or by its name as a link does. Returns `None` if there is no such note or it may not be
/// read.
type Lookup<'l> = dyn FnMut(&str) -> Option<CitedNote> + Send + 'l;

/// Checks an answer as it streams.
pub(crate) struct CitationCheck<'l> {
    lookup: Box<Lookup<'l>>,
    /// The person's message, which the answer may quote.
    question: String,
    /// The maximum bytes to hold; `None` holds whole lines.
    hold: Option<usize>,
    notes: BTreeMap<String, Option<CitedNote>>,
    /// The parts of the last line that were held and passed on.
    held: String,
    shown: String,
    is_in_fence: bool,
    sources: Vec<Source>,
    removed: Vec<String>,
}

impl<'l> CitationCheck<'l> {
    /// Creates a check for the answer to a question. It finds notes by `lookup`, once per name, and holds at most
    /// `hold` bytes, or whole lines without a limit.
    pub fn new(question: &str, hold: Option<usize>, lookup: impl FnMut(&str) -> Option<CitedNote> + Send + 'l) -> Self {
        Self {
            lookup: Box::new(lookup),
            question: question.to_owned(),
            hold,
            notes: BTreeMap::new(),
            held: String::new(),
            shown: String::new(),
            is_in_fence: false,
            sources: Vec::new(),
            removed: Vec::new(),
        }
    }

    /// Checks a whole answer, and returns the text to show.
    pub fn whole(&mut self, text: &str) -> String {
        let shown = self.push(text);
        shown + &self.finish()
    }

    /// Adds text of the answer. Returns the text that can be shown now, including text that was held before.
    pub fn push(&mut self, text: &str) -> String {
        let mut shown = String::new();
        // Go by characters, so that the result does not depend on how the text is split.
        for c in text.chars() {
            self.held.push(c);
            if c == '\n' {
                shown.push_str(&self.end_line());
            } else if self.is_in_fence {
                shown.push_str(&std::mem::take(&mut self.held));
                self.shown.push(c);
            } else if let Some(hold) = self.hold {
                let decided = self.decided(hold);
                self.shown.push_str(&decided);
                shown.push_str(&decided);
            }
        }
        shown
    }

    /// Ends the answer, or a part of it. Returns the remaining text.
    pub fn finish(&mut self) -> String {
        self.end_line()
    }

    /// The part of the last line that is held.
    pub fn held(&self) -> &str {
        &self.held
    }

    /// Discards the sources and removals so far, because the text was not an answer.
    pub fn restart(&mut self) {
        (self.is_in_fence, self.held, self.shown) = Default::default();
        self.sources.clear();
        self.removed.clear();
    }

    /// The places that the answer cites, each once, in the order of the citations.
    pub fn sources(&self) -> &[Source] {
        &self.sources
    }

    /// The citations, quotes and links that lead to nothing, with the reasons, one sentence each. Links stay in the text.
    pub fn removed(&self) -> &[String] {
        &self.removed
    }

    /// Takes the part of the held text that is decided.
    fn decided(&mut self, hold: usize) -> String {
        let mut decided = String::new();
        loop {
            let opener = self.held.find(OPENERS);
            // Spaces before a place are removed with it, so they are held too.
            let before = self.held[..opener.unwrap_or(self.held.len())].trim_end_matches([' ', '\t']).len();
            decided.extend(self.held.drain(..before));
            let Some(opener) = opener.map(|at| at - before) else { return decided };
            // A citation is decided by the character after it, which can make it a link.
            let place = CITATION.find(&self.held).map(|place| place.end()).filter(|end| *end < self.held.len());
            let end = match place {
                Some(end) => {
                    let piece: String = self.held.drain(..end).collect();
                    let next = self.held.chars().next();
                    decided.push_str(&self.checked(&piece, next));
                    continue;
                }
                None if self.held.len() - opener > hold => {
                    end_of_quote(&self.held, opener).unwrap_or(opener_end(&self.held, opener))
                }
                None => match end_of_bracket(&self.held, opener) {
                    Some(end) => end,
                    None => return decided,
                },
            };
            decided.extend(self.held.drain(..end));
        }
    }

    fn end_line(&mut self) -> String {
        let held = std::mem::take(&mut self.held);
        let rest = if self.is_in_fence { held } else { self.checked(&held, None) };
        let line = std::mem::take(&mut self.shown) + &rest;
        if line.trim_start().starts_with("```") {
            self.is_in_fence = !self.is_in_fence;
        } else if !self.is_in_fence {
            self.find_named(&line);
        }
        rest
    }

    /// Returns a part of a line without the places and quotes that do not exist; `next` is the character after it.
    fn checked(&mut self, part: &str, next: Option<char>) -> String {
        let mut text = String::new();
        let mut from = 0;
        for found in CITATION.captures_iter(part) {
            let (Some(all), Some(inside)) = (found.get(0), found.name("inside")) else { continue };
            let written = all.as_str().trim_start();
            let next = part[all.end()..].chars().next().or(next);
            // A Markdown link, `[text](address)`, a host with its port, `(host.org:80)`, and code are not citations.
            let is_address = part[..all.start()].ends_with(']') || self.shown.ends_with(']') && all.start() == 0;
            let is_host = written.starts_with('(') && !inside.as_str().contains(".md");
            let in_code = (self.shown.matches('`').count() + part[..all.start()].matches('`').count()) % 2 == 1;
            let is_half_code = written.starts_with('`') != written.ends_with('`');
            if (written.starts_with('(') && is_address) || is_host || next == Some('(') || in_code || is_half_code {
                continue;
            }
            let written = places(inside.as_str());
            let sentence = self.without_false_quotes(&part[from..all.start()], &written);
            text.push_str(&sentence);
            from = all.end();
            let mut cited: Vec<Source> = Vec::new();
            for source in written {
                match self.found(source) {
                    Ok(source) => cited.push(source),
                    Err(fault) => self.removed.push(fault),
                }
            }
            if !cited.is_empty() {
                let space = if all.as_str().starts_with([' ', '\t']) { " " } else { "" };
                let shown: Vec<String> = cited.iter().map(Source::place).collect();
                text.push_str(&format!("{space}[{}]", shown.join("; ")));
            }
        }
        text.push_str(&part[from..]);
        text
    }

    /// Returns the place with the path of its note, or the reason why it cannot be cited.
    fn found(&mut self, source: Source) -> Result<Source, String> {
        let place = source.place();
        let Some(note) = self.note(&source.path) else { return Err(format!("[{place}]: there is no such note")) };
        let (path, lines) = (note.path.clone(), note.text.lines().count());
        match source.line {
            Some(line) if line == 0 || line > lines => Err(format!("[{place}]: the note has {lines} lines")),
            _ => {
                let last =
                    source.last.filter(|last| source.line.is_some_and(|line| *last > line)).map(|last| last.min(lines));
                Ok(Source { path, last, ..source })
            }
        }
    }

    /// Removes the quotes from the text before a place that are in none of the cited notes.
    fn without_false_quotes(&mut self, text: &str, cited: &[Source]) -> String {
        let mut checked = String::new();
        let mut from = 0;
        for found in QUOTE.captures_iter(text) {
            let (Some(all), Some(quote)) = (found.get(0), found.iter().skip(1).flatten().next()) else { continue };
            let is_true = folded(quote.as_str()).len() < SHORTEST_QUOTE
                || holds(&self.question, quote.as_str())
                || cited
                    .iter()
                    .any(|source| self.note(&source.path).is_some_and(|note| holds(&note.text, quote.as_str())));
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

    /// Finds the notes that a line of the answer names in any form.
    fn find_named(&mut self, line: &str) {
        for found in NAMED.captures_iter(line) {
            for source in self.sources_of(&found) {
                if !self.sources.contains(&source) {
                    self.sources.push(source);
                }
            }
        }
    }

    fn sources_of(&mut self, found: &Captures<'_>) -> Vec<Source> {
        let text = |name: &str| found.name(name).map(|found| found.as_str().trim());
        if let Some(wiki) = text("wiki") {
            return self.linked(wiki, &format!("[[{wiki}]]"));
        }
        if let Some(link) = text("link") {
            let address = percent_encoding::percent_decode_str(link).decode_utf8_lossy().into_owned();
            let is_note = address.split('#').next().is_some_and(|path| path.ends_with(".md"));
            let is_url = address.contains("://") || address.starts_with("mailto:");
            return if is_note && !is_url { self.linked(&address, &format!("({link})")) } else { Vec::new() };
        }
        let (name, place) = match (text("name"), text("path"), text("words")) {
            (Some(name), ..) => (name, text("line")),
            (_, Some(path), _) => (path, text("place")),
            (.., words) => (words.unwrap_or_default(), text("at")),
        };
        let Some(path) = self.last_words_that_name(name) else { return Vec::new() };
        let subpath = place.and_then(|place| place.strip_prefix('#')).filter(|subpath| ranges(subpath).is_empty());
        match (place, subpath) {
            (_, Some(subpath)) => vec![self.at_subpath(path, subpath)],
            (Some(place), None) => {
                let sources = ranges(place).into_iter().map(|(line, last)| Source {
                    path: path.clone(),
                    line: Some(line),
                    last,
                    unread: false,
                });
                sources.filter_map(|source| self.found(source).ok()).collect()
            }
            (None, None) => vec![Source { path, ..Source::default() }],
        }
    }

    /// Returns the note that a link leads to. A broken link is reported, but stays in the text.
    fn linked(&mut self, link: &str, written: &str) -> Vec<Source> {
        let (name, subpath) = link.split_once('#').map_or((link, None), |(name, subpath)| (name, Some(subpath)));
        let Some(path) = self.note(name).map(|note| note.path.clone()) else {
            let fault = format!("{written}: there is no such note");
            if !self.removed.contains(&fault) {
                self.removed.push(fault);
            }
            return Vec::new();
        };
        vec![match subpath {
            Some(subpath) => self.at_subpath(path, subpath),
            None => Source { path, ..Source::default() },
        }]
    }

    fn at_subpath(&mut self, path: String, subpath: &str) -> Source {
        let line = self.note(&path).and_then(|note| line_of(&note.text, subpath));
        Source { path, line, ..Source::default() }
    }

    /// Returns the path of the note that the last words of a text name; the longest name wins.
    fn last_words_that_name(&mut self, text: &str) -> Option<String> {
        let starts =
            text.char_indices().filter(|(at, c)| !c.is_whitespace() && text[..*at].ends_with(char::is_whitespace));
        let starts: Vec<usize> = [0].into_iter().chain(starts.map(|(at, _)| at)).collect();
        let from = starts.len().saturating_sub(MOST_WORDS);
        starts[from..].iter().find_map(|at| {
            let name = text[*at..].trim().trim_start_matches(['*', '_']).trim_start_matches("./");
            self.note(name).map(|note| note.path.clone())
        })
    }

    fn note(&mut self, name: &str) -> Option<&CitedNote> {
        if !self.notes.contains_key(name) {
            let found = (self.lookup)(name);
            self.notes.insert(name.to_owned(), found);
        }
        self.notes[name].as_ref()
    }
}

fn opener_end(text: &str, opener: usize) -> usize {
    opener + text[opener..].chars().next().map_or(0, char::len_utf8)
}

/// Returns the end of the quote that begins at `opener`.
fn end_of_quote(text: &str, opener: usize) -> Option<usize> {
    let closers: &[char] = match text[opener..].chars().next()? {
        '"' => &['"'],
        '“' => &['”'],
        '„' => &['“', '”'],
        '«' => &['»'],
        _ => return None,
    };
    let from = opener_end(text, opener);
    text[from..].find(closers).map(|at| opener_end(text, from + at))
}

/// Returns the end of the bracket or code that begins at `opener`, once a character follows it. A quote is only decided
/// at the end of its line, because a place may follow it.
fn end_of_bracket(text: &str, opener: usize) -> Option<usize> {
    let close = match text[opener..].chars().next()? {
        '[' => ']',
        '(' => ')',
        '【' => '】',
        '`' => '`',
        _ => return None,
    };
    let from = opener_end(text, opener);
    // `[[` and `` `[ `` end with their second mark.
    let end = from + text[from..].find(close)? + close.len_utf8();
    let doubled = if close == ']' && text[from..].starts_with('[') { end + 1 } else { end };
    (doubled < text.len()).then_some(end)
}

/// Returns the places within brackets.
fn places(inside: &str) -> Vec<Source> {
    let (mut rest, mut all) = (inside, Vec::new());
    while let Some(found) = ONE_PLACE.captures(rest) {
        let path = found["path"].trim().trim_start_matches("./");
        let of_path = ranges(&found["place"]).into_iter();
        all.extend(of_path.map(|(line, last)| Source { path: path.to_owned(), line: Some(line), last, unread: false }));
        rest = &rest[found[0].len()..];
    }
    all
}

/// Returns the lines that a text names, each with the end of its range; empty for a heading.
fn ranges(text: &str) -> Vec<(usize, Option<usize>)> {
    let words = text.trim_start_matches([':', '#', ',', ' ', '\t']);
    let is_heading =
        text.starts_with('#') && !words.trim_start_matches(['L', 'l']).starts_with(|c: char| c.is_ascii_digit());
    if is_heading {
        return Vec::new();
    }
    let number = |text: &str| text.parse().ok();
    let range = |found: Captures<'_>| Some((number(&found[1])?, found.get(2).and_then(|last| number(last.as_str()))));
    NUMBERS.captures_iter(words).filter_map(range).collect()
}

/// Returns the line of a heading or a block in a note.
fn line_of(text: &str, subpath: &str) -> Option<usize> {
    let wanted = subpath.rsplit('#').next().unwrap_or(subpath).trim();
    let is_it = |line: &str| match wanted.strip_prefix('^') {
        Some(block) => line.trim_end().ends_with(&format!("^{block}")),
        None => line.starts_with('#') && folded(line.trim_start_matches('#')) == folded(wanted),
    };
    text.lines().position(is_it).map(|at| at + 1)
}

/// Reduces a text to lower-case letters and digits with single spaces between words, so that Markdown, line breaks and
/// typography do not matter.
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

/// Whether a text contains a quote. The parts between `…` must occur in order.
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

    const ROSES: &str = "# Roses\n\nPrune them in *late* winter,\nnever in autumn.\n\n## Feeding\nBone meal. ^meal\n";

    /// As links are resolved: by path, by name, in any case, with or without the extension.
    fn lookup(name: &str) -> Option<CitedNote> {
        let (path, text) = match name.to_lowercase().trim_end_matches(".md") {
            "garden/roses" | "roses" => ("Garden/Roses.md", ROSES),
            "a, b" => ("A, b.md", "one\n"),
            _ => return None,
        };
        Some(CitedNote { path: path.to_owned(), text: text.to_owned() })
    }

    fn check(hold: Option<usize>) -> CitationCheck<'static> {
        CitationCheck::new("when do I water?", hold, lookup)
    }

    fn checked(answer: &str) -> (String, Vec<String>, Vec<String>) {
        let mut check = check(Some(ON_SCREEN));
        let text = check.whole(answer);
        let mut whole = CitationCheck::new("when do I water?", None, lookup);
        assert_eq!((whole.whole(answer), whole.sources()), (text.clone(), check.sources()), "held or not");
        (text, check.sources().iter().map(Source::place).collect(), check.removed().to_vec())
    }

    #[test]
    fn what_exists_stays_and_what_does_not_is_taken_out_and_named() {
        const R3: &str = "Garden/Roses.md:3";
        for (answer, shown, sources, removed) in [
            ("Prune them [Garden/Roses.md:3].", "Prune them [Garden/Roses.md:3].", &[R3][..], 0),
            ("Prune them [Garden/Roses.md:3-4].", "Prune them [Garden/Roses.md:3-4].", &["Garden/Roses.md:3-4"], 0),
            ("Prune them [Garden/Roses.md:99].", "Prune them.", &[], 1),
            ("Prune them [Garden/Lilies.md:1].\nYes.", "Prune them.\nYes.", &[], 1),
            ("Both [Garden/Roses.md:3; No.md:1].", "Both [Garden/Roses.md:3].", &[R3], 1),
            (
                "It says \"prune them in late winter\" [Garden/Roses.md:3].",
                "It says \"prune them in late winter\" [Garden/Roses.md:3].",
                &[R3],
                0,
            ),
            (
                "It says “late winter, never in autumn” [Garden/Roses.md:3].",
                "It says “late winter, never in autumn” [Garden/Roses.md:3].",
                &[R3],
                0,
            ),
            (
                "It says \"prune them in early spring\" [Garden/Roses.md:3].",
                "It says […] [Garden/Roses.md:3].",
                &[R3],
                1,
            ),
            ("It says „prune them in early spring“ [Garden/Roses.md:3].", "It says […] [Garden/Roses.md:3].", &[R3], 1),
            ("It says «prune them in early spring» [Garden/Roses.md:3].", "It says […] [Garden/Roses.md:3].", &[R3], 1),
            (
                "It says \"prune them … never in autumn\" [Garden/Roses.md:3].",
                "It says \"prune them … never in autumn\" [Garden/Roses.md:3].",
                &[R3],
                0,
            ),
            (
                "It says \"never in autumn … prune them\" [Garden/Roses.md:3].",
                "It says […] [Garden/Roses.md:3].",
                &[R3],
                1,
            ),
            (
                "You ask \"When do I water?\": never [Garden/Roses.md:4].",
                "You ask \"When do I water?\": never [Garden/Roses.md:4].",
                &["Garden/Roses.md:4"],
                0,
            ),
            ("Not `[No.md:1]`, not [[No.md:1]], not (No.md: 1).", "Not, not, not.", &[], 3),
            ("So (./Garden/Roses.md:3).", "So [Garden/Roses.md:3].", &[R3], 0),
            ("So [Roses.md:3], [garden/roses.md:3].", "So [Garden/Roses.md:3], [Garden/Roses.md:3].", &[R3], 0),
            ("It runs here (host.org:8080).", "It runs here (host.org:8080).", &[], 0),
            (
                "A link [text.md:1](https://example.org) cites nothing.",
                "A link [text.md:1](https://example.org) cites nothing.",
                &[],
                0,
            ),
            ("```\nlet a = b[x.md:1];\n```\n", "```\nlet a = b[x.md:1];\n```\n", &[], 0),
            ("Use `x[a.md:1]` ok", "Use `x[a.md:1]` ok", &[], 0),
            (
                "Yes [A, b.md:1, Garden/Roses.md:4].",
                "Yes [A, b.md:1; Garden/Roses.md:4].",
                &["A, b.md:1", "Garden/Roses.md:4"],
                0,
            ),
        ] {
            let (text, cited, faults) = checked(answer);
            assert_eq!(text, shown);
            assert_eq!(cited, sources, "{answer}");
            assert_eq!(faults.len(), removed, "{answer}: {faults:?}");
        }
    }

    #[test]
    fn notes_that_are_named_in_any_form_are_sources() {
        const NOTE: &str = "Garden/Roses.md";
        for (answer, sources) in [
            ("[Garden/Roses.md]", &[NOTE][..]),
            ("(Garden/Roses.md)", &[NOTE]),
            ("see Garden/Roses.md:3", &["Garden/Roses.md:3"]),
            ("`Garden/Roses.md:3`", &["Garden/Roses.md:3"]),
            ("**Garden/Roses.md**", &[NOTE]),
            ("[Garden/Roses.md#Feeding]", &["Garden/Roses.md:6"]),
            ("[Garden/Roses.md#L3-L4]", &["Garden/Roses.md:3-4"]),
            ("[Garden/Roses.md, line 3]", &["Garden/Roses.md:3"]),
            ("[Garden/Roses.md, lines 3-4]", &["Garden/Roses.md:3-4"]),
            ("[Garden/Roses.md:1, 3]", &["Garden/Roses.md:1", "Garden/Roses.md:3"]),
            ("[Garden/Roses:3]", &["Garden/Roses.md:3"]),
            ("[Roses:3]", &["Garden/Roses.md:3"]),
            ("【Garden/Roses.md:3】", &["Garden/Roses.md:3"]),
            ("[[Roses]]", &[NOTE]),
            ("[[Garden/Roses]]", &[NOTE]),
            ("[[Roses#Feeding]]", &["Garden/Roses.md:6"]),
            ("[[Roses#^meal]]", &["Garden/Roses.md:7"]),
            ("[[Garden/Roses|them]]", &[NOTE]),
            ("[them](Garden/Roses.md)", &[NOTE]),
            ("[them](Garden%2FRoses.md)", &[NOTE]),
            ("[^1]\n\n[^1]: Garden/Roses.md:3", &["Garden/Roses.md:3"]),
            ("[1]\n\n1. Garden/Roses.md:3", &["Garden/Roses.md:3"]),
            ("Source: Garden/Roses.md, line 3", &["Garden/Roses.md:3"]),
            ("as the note Roses, line 3, says", &["Garden/Roses.md:3"]),
            ("in der Notiz Roses, Zeile 3", &["Garden/Roses.md:3"]),
            ("| [Garden/Roses.md:3] | x |", &["Garden/Roses.md:3"]),
            ("I like roses. In other words, line 3 is fine.", &[]),
            ("[x](https://example.org/Roses.md)", &[]),
        ] {
            let (text, cited, faults) = checked(answer);
            assert_eq!(cited, sources, "{answer} -> {text}");
            assert_eq!(faults, Vec::<String>::new(), "{answer}");
        }
        let (text, cited, faults) = checked("See [[Garden/Lilies]] and [it](Lilies.md).");
        assert_eq!((text.as_str(), cited.len(), faults.len()), ("See [[Garden/Lilies]] and [it](Lilies.md).", 0, 2));
    }

    #[test]
    fn text_without_citations_streams_at_once() {
        let mut check = check(Some(ON_SCREEN));
        assert_eq!(check.push("Prune "), "Prune");
        assert_eq!(check.push("them [Gar"), " them");
        assert_eq!(check.push("den/Roses.md:3]"), "");
        assert_eq!(check.push(".\nNow"), " [Garden/Roses.md:3].\nNow");
        assert_eq!(check.push(" (as said) x"), " (as said) x");
        assert_eq!(check.push(" \"a quote"), "");
        let long = " that goes on".repeat(20);
        assert!(check.push(&long).starts_with(" \"a quote that goes on"));
    }

    proptest! {
        #[test]
        fn every_split_gives_the_same(
            parts in proptest::collection::vec(prop_oneof![
                Just("[Garden/Roses.md:3]".to_owned()), Just(" [No.md:1]".to_owned()), Just("\n".to_owned()),
                Just("\"prune them in late winter\"".to_owned()), Just("```\n".to_owned()), Just("“".to_owned()),
                Just(" some more words".repeat(16)), Just("[[Roses]]".to_owned()),
                "[a-z \\[\\]:.\"`(),]{0,12}",
            ], 0..12),
            cuts in proptest::collection::vec(0_usize..200, 0..8),
        ) {
            let answer = parts.concat();
            let mut check = check(Some(ON_SCREEN));
            let mut cuts: Vec<usize> = cuts.into_iter().filter(|cut| answer.is_char_boundary(*cut)).collect();
            cuts.retain(|cut| *cut <= answer.len());
            cuts.sort_unstable();
            let (mut text, mut from) = (String::new(), 0);
            for cut in cuts.into_iter().chain([answer.len()]) {
                text.push_str(&check.push(&answer[from..cut]));
                from = cut;
            }
            text.push_str(&check.finish());
            let mut whole = CitationCheck::new("when do I water?", Some(ON_SCREEN), lookup);
            prop_assert_eq!(text, whole.whole(&answer));
            prop_assert_eq!(check.sources(), whole.sources());
            prop_assert_eq!(check.removed(), whole.removed());
        }
    }
}
