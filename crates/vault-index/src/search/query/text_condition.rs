//! Tests whether a text contains words, a prefix of a word, a series of characters, or a match of a regular expression.

use std::cell::OnceCell;
use std::fmt;

use regex::{Regex, RegexBuilder};
use unicode_normalization::{UnicodeNormalization, char::is_combining_mark};

use crate::error::{Error, ErrorKind, Result};
use crate::terms::{TermMatch, Terms, letters};

/// The most characters of a regular expression.
const MAX_PATTERN: usize = 1000;

/// The memory limit of a compiled regular expression, in bytes.
const MAX_COMPILED: usize = 4_000_000;

/// A test of a text.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct TextTest {
    /// The pattern that the text must contain.
    pub holds: TextPattern,
    /// Whether upper and lower case differ.
    pub match_case: bool,
}

/// A pattern that a text must contain.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum TextPattern {
    /// These words, side by side. Diacritics and punctuation are ignored. A text without a word, such as `=>`, is
    /// searched literally.
    Words(String),
    /// A word that starts with this.
    Prefix(String),
    /// These characters, anywhere. Diacritics are ignored.
    Characters(String),
    /// A regular expression, in the syntax of the crate `regex`; `^` and `$` match at line ends.
    Regex(String),
}

impl TextTest {
    /// Creates a test that ignores case.
    ///
    /// # Errors
    /// [`ErrorKind::Query`] for a regular expression that is invalid, is longer than 1,000 characters, or would take
    /// more than 4 MB.
    pub fn new(holds: TextPattern) -> Result<Self> {
        let test = Self { holds, match_case: false };
        test.matcher()?;
        Ok(test)
    }

    /// Compiles the test, to apply it to many texts.
    pub(in crate::search) fn matcher(&self) -> Result<TextMatcher> {
        let case = self.match_case;
        Ok(match &self.holds {
            TextPattern::Words(text) | TextPattern::Prefix(text) => {
                let matching =
                    if matches!(self.holds, TextPattern::Prefix(_)) { TermMatch::Prefix } else { TermMatch::Whole };
                match terms(text, matching) {
                    None => TextMatcher::Raw(text.clone()),
                    Some(terms) => {
                        let cased = case.then(|| cased_words(text, matching)).map(|words| {
                            // Scripts without spaces between words have no case.
                            let spaced = words.chars().all(|c| (c as u32) < 0x0e00);
                            if spaced { words } else { words.trim().to_string() }
                        });
                        TextMatcher::Words { terms, cased }
                    }
                }
            }
            TextPattern::Characters(text) => TextMatcher::Characters { text: folded(text, case), case },
            TextPattern::Regex(pattern) => TextMatcher::Regex(regex(pattern, case)?),
        })
    }
}

/// In the syntax of a query.
impl fmt::Display for TextTest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.match_case {
            f.write_str("match-case:")?;
        }
        match &self.holds {
            TextPattern::Words(text) | TextPattern::Characters(text) => f.write_str(&quoted(text)),
            TextPattern::Prefix(text) => write!(f, "{text}*"),
            TextPattern::Regex(pattern) => write!(f, "/{pattern}/"),
        }
    }
}

/// A text in quotes, in the syntax of a query.
pub(super) fn quoted(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
}

/// A [`TextTest`] that is compiled.
pub(in crate::search) enum TextMatcher {
    /// Terms in the form of the keyword index, and the words with their case if that matters.
    Words {
        terms: String,
        cased: Option<String>,
    },
    Characters {
        text: String,
        case: bool,
    },
    /// A text without terms, such as `=>`.
    Raw(String),
    Regex(Regex),
}

impl TextMatcher {
    pub(in crate::search) fn holds(&self, text: &Text<'_>) -> bool {
        match self {
            Self::Words { terms, cased } => {
                cased.as_ref().is_none_or(|words| cased_words(text.raw, TermMatch::Whole).contains(words))
                    && text.terms().contains(terms)
            }
            Self::Characters { text: wanted, case } => folded(text.raw, *case).contains(wanted),
            Self::Raw(wanted) => text.raw.contains(wanted),
            Self::Regex(regex) => regex.is_match(text.raw),
        }
    }
}

/// A text to which several tests apply; its terms are computed only once.
pub(in crate::search) struct Text<'a> {
    raw: &'a str,
    terms: OnceCell<String>,
}

impl<'a> Text<'a> {
    pub(in crate::search) fn new(raw: &'a str) -> Self {
        Self { raw, terms: OnceCell::new() }
    }

    /// All terms, with a space before and after each.
    fn terms(&self) -> &str {
        self.terms.get_or_init(|| {
            let mut terms = String::from(" ");
            Terms::new().each(self.raw, |term, _| {
                terms.push_str(term);
                terms.push(' ');
            });
            terms
        })
    }
}

/// The terms of a phrase in the form of [`Text::terms`]. `None`: it has no terms.
fn terms(phrase: &str, matching: TermMatch) -> Option<String> {
    let terms = Terms::new().phrase(phrase);
    let is_prefix = matching == TermMatch::Prefix || terms.last()?.matching == TermMatch::Prefix;
    let joined: String = terms.iter().map(|term| format!(" {}", term.text)).collect();
    Some(if is_prefix { joined } else { joined + " " })
}

fn regex(pattern: &str, case: bool) -> Result<Regex> {
    let refuse = |message: String, remedy: &str| Err(Error::new(ErrorKind::Query, message).with_remedy(remedy));
    let characters = pattern.chars().count();
    if characters > MAX_PATTERN {
        let message = format!("a regular expression has {characters} characters, and may have {MAX_PATTERN}");
        return refuse(message, "write a shorter one");
    }
    let mut builder = RegexBuilder::new(pattern);
    match builder.case_insensitive(!case).multi_line(true).size_limit(MAX_COMPILED).build() {
        Ok(regex) => Ok(regex),
        Err(regex::Error::CompiledTooBig(_)) => {
            refuse(format!("`/{pattern}/` is too large"), "write fewer or smaller repetitions")
        }
        Err(error) => refuse(
            format!("`/{pattern}/` is not a regular expression: {}", reason(&error.to_string())),
            "put \"quotes\" around text to search for it literally",
        ),
    }
}

/// The reason and the position in an error of the crate `regex`, which is formatted as a picture: the pattern, a `^`
/// below the position, and a line that begins with `error: `.
fn reason(picture: &str) -> String {
    let reason = picture.lines().find_map(|line| line.strip_prefix("error: ")).unwrap_or("it has an error");
    let caret = picture.lines().find(|line| line.trim_start().starts_with('^'));
    // The pattern is indented by four.
    match caret.and_then(|line| line.find('^')?.checked_sub(3)) {
        Some(character) => format!("{reason}, at character {character}"),
        None => reason.to_string(),
    }
}

/// Letters and digits with their case, without diacritics, with a space before and after each word; with
/// [`TermMatch::Prefix`] without the last space.
fn cased_words(text: &str, matching: TermMatch) -> String {
    let mut words = String::with_capacity(text.len() + 2);
    words.push(' ');
    for c in folded(text, true).chars() {
        if c.is_alphanumeric() {
            words.push(c);
        } else if !words.ends_with(' ') && !matches!(c, '\'' | '’') {
            words.push(' ');
        }
    }
    if matching == TermMatch::Prefix {
        words.truncate(words.trim_end().len());
    } else if !words.ends_with(' ') {
        words.push(' ');
    }
    words
}

/// Text without diacritics, and in lower case where `case` is false.
fn folded(text: &str, case: bool) -> String {
    if text.is_ascii() {
        return if case { text.to_string() } else { text.to_ascii_lowercase() };
    }
    let mut folded = String::with_capacity(text.len());
    for c in text.chars() {
        if c.is_ascii() {
            folded.push(if case { c } else { c.to_ascii_lowercase() });
            continue;
        }
        for c in std::iter::once(c).nfkd().filter(|c| !is_combining_mark(*c)) {
            if case { folded.push(c) } else { letters(c, |c| folded.push(c)) }
        }
    }
    folded
}

#[cfg(test)]
mod tests {
    use super::*;

    fn holds(test: &TextTest, text: &str) -> bool {
        test.matcher().unwrap().holds(&Text::new(text))
    }

    #[test]
    fn words_side_by_side() {
        fn check(text: &str, phrase: &str, expected: bool) {
            assert_eq!(
                holds(&TextTest::new(TextPattern::Words(phrase.into())).unwrap(), text),
                expected,
                "{phrase:?} in {text:?}"
            );
        }
        check("The apple tree grows", "apple tree", true);
        check("The apple trees grow", "apple tree", false);
        check("An **Apple**\ntree.", "apple tree", true);
        check("un café noir", "CAFE noir", true);
        check("pineapple tree", "apple tree", false);
        check("東京都に行く", "東京", true);
        check("don’t panic", "don't panic", true);
        check("die Straße", "STRASSE", true);
        check("nad Łódzką rzeką, w Łodzi", "w lodzi", true);
        check("ἡ ὁδός", "ΟΔΟΣ", true);
        check("if a => b", "=>", true);
        check("if a -> b", "=>", false);
    }

    #[test]
    fn case_prefixes_characters_and_patterns() {
        fn check(text: &str, holds_: TextPattern, match_case: bool, expected: bool) {
            let test = TextTest { holds: holds_, match_case };
            assert_eq!(holds(&test, text), expected, "{test} in {text:?}");
        }
        let words = |text: &str| TextPattern::Words(text.into());
        check("a HappyCat", words("happycat"), false, true);
        check("a HappyCat", words("happycat"), true, false);
        check("a HappyCat", words("HappyCat"), true, true);
        check("le Café", words("Cafe"), true, true);
        let prefix = |text: &str| TextPattern::Prefix(text.into());
        check("an Excalidraw plugin", prefix("excal"), false, true);
        check("an Excalidraw plugin", prefix("draw"), false, false);
        check("東京都", prefix("京"), false, true);
        check("2022-07-24 a.md", TextPattern::Characters("07-2".into()), false, true);
        check("Café.md", TextPattern::Characters("AFE.".into()), false, true);
        check("on 2022-07-24.", TextPattern::Regex(r"\d{4}-\d\d-\d\d".into()), false, true);
        check("one\ntwo\n", TextPattern::Regex("^TWO$".into()), false, true);
        check("one\ntwo\n", TextPattern::Regex("TWO".into()), true, false);
    }

    #[test]
    fn patterns_that_cannot_be_understood() {
        let error = |pattern: &str| TextTest::new(TextPattern::Regex(pattern.into())).unwrap_err().to_string();
        assert!(error("ab(c").contains("unclosed group, at character 3"), "{}", error("ab(c"));
        assert!(error("a\nb(c").contains("unclosed group"));
        assert!(error("(?=a)").contains("look-around"));
        assert!(error(r"(\w{100}){100}").contains("too large"));
        assert!(error(&"a".repeat(1001)).contains("1001 characters"));
    }
}
