//! The syntax of queries: from text to the words to rank by, and the condition that notes must meet.
//!
//! ```text
//! any    = all ("OR" all)*                      OR is a word at the beginning and at the end
//! all    = item*
//! item   = "-"? (group | phrase | property | regex | operator | word)       "--": all that follows is words
//! group  = "(" any ")"                          what is not closed ends with the text, as with quotes
//! phrase = '"' … '"'                            \" is a quote
//! operator = key ":" (group | phrase | regex | word)
//! property = "[" key (":" any)? "]"             no operators within
//! note   = "[[" … "]]"                          the value of `link:` and `linked-from:`, beside those of operators
//! ```
//!
//! Parsing fails only for an operator with an invalid value. Text that only looks like syntax is read as words:
//! `/etc/passwd`, `12:30`, `:-)`, `[[link]]`, `- [ ] task`, `foo:bar`.
//!
//! A plain word affects only the ranking. It is also a condition if it is negated, within an operator's parentheses, or
//! in an OR with a condition.

use jiff::Zoned;

use crate::error::{Error, ErrorKind, Result};
use crate::search::query::condition::{Condition, Expression, Scope, Test};
use crate::search::query::dates::DateRange;
use crate::search::query::filter::{checked_path, checked_tag};
use crate::search::query::property_condition::{Comparison, PropertyTest};
use crate::search::query::text_condition::{TextPattern, TextTest};
use crate::search::query::tokens::{key_at, prefix, property_at, quoted_at, regex_at, word_at};
use crate::terms::Terms;

/// The nesting limit of groups. Deeper parentheses are characters of words.
const MAX_DEPTH: usize = 16;

/// The most tests in a query.
const MAX_TESTS: usize = 200;

/// The contents of a query.
pub(super) struct ParsedQuery {
    /// The words to rank by, in order.
    pub text: String,
    /// Those of them that were written with a `*`.
    pub prefixes: Vec<String>,
    pub condition: Option<Condition>,
    /// Whether it has words that are not conditions.
    pub has_free_words: bool,
    /// Words that look like operators but are not.
    pub unknown: Vec<String>,
}

/// Parses a query. Dates such as `yesterday` are relative to `now`.
///
/// # Errors
/// [`ErrorKind::Query`] for an invalid tag, path, regular expression, date or comparison, and for more than 200 tests.
pub(super) fn parse(text: &str, now: &Zoned) -> Result<ParsedQuery> {
    let mut parser = Parser::new(text, now);
    let expression = parser.any(&Place::Query)?;
    let literal = parser.rest.trim();
    let mut has_free_words = !literal.is_empty();
    if has_free_words {
        parser.words.push(literal.to_string());
    }
    let condition = expression.and_then(|expression| required(expression, &mut has_free_words));
    if condition.as_ref().map_or(0, count) > MAX_TESTS {
        return Err(too_many());
    }
    let Parser { words, prefixes, unknown, .. } = parser;
    Ok(ParsedQuery { text: words.join(" ").trim().to_string(), prefixes, condition, has_free_words, unknown })
}

fn too_many() -> Error {
    Error::new(ErrorKind::Query, format!("the query has more than {MAX_TESTS} conditions"))
        .with_remedy("put `-- ` before a query to search for all of it as words")
}

/// A part of a query.
enum Leaf {
    /// A word that ranks; it is a condition only where it must be one.
    Word(TextTest),
    /// A condition.
    Test(Test),
}

/// The context of a part of a query, which decides the meaning of its words.
enum Place {
    Query,
    /// Within an operator that searches texts.
    Texts {
        match_case: bool,
    },
    FileName,
    Path,
    Tag,
    /// Within `link:` or `linked-from:`, with the test for a note's name.
    Link(fn(String) -> Test),
    Property(String),
}

enum Value<'a> {
    Word(&'a str),
    Quoted(String),
    Regex(&'a str),
}

struct Parser<'a> {
    rest: &'a str,
    now: &'a Zoned,
    depth: usize,
    negations: usize,
    /// Whether everything from here on is words.
    is_literal: bool,
    /// Whether the last word was a list mark.
    after_bullet: bool,
    words: Vec<String>,
    prefixes: Vec<String>,
    unknown: Vec<String>,
    /// The number of regular expressions so far.
    patterns: usize,
    terms: Terms,
}

impl<'a> Parser<'a> {
    fn new(text: &'a str, now: &'a Zoned) -> Self {
        Self {
            rest: text,
            now,
            depth: 0,
            negations: 0,
            is_literal: false,
            after_bullet: false,
            words: Vec::new(),
            prefixes: Vec::new(),
            unknown: Vec::new(),
            patterns: 0,
            terms: Terms::new(),
        }
    }

    /// Parses alternatives, up to the end of the group or text. `None`: there is nothing to test.
    fn any(&mut self, place: &Place) -> Result<Option<Expression<Leaf>>> {
        let mut alternatives = Vec::new();
        let mut together = Vec::new();
        let mut is_first = true;
        while !self.at_end() {
            if !is_first && self.is_here("OR") && !self.ends_after("OR") {
                self.rest = &self.rest[2..];
                alternatives.extend(Expression::all(std::mem::take(&mut together)));
                is_first = true;
                continue;
            }
            together.extend(self.item(place)?);
            is_first = false;
        }
        alternatives.extend(Expression::all(together));
        Ok(Expression::any(alternatives))
    }

    /// Skips white space. Returns whether the group or the text ends here.
    fn at_end(&mut self) -> bool {
        self.rest = self.rest.trim_start();
        self.rest.is_empty() || self.is_literal || (self.depth > 0 && self.rest.starts_with(')'))
    }

    /// Whether this word is at the current position. It does not look further, because a text without spaces would be
    /// read again for each of its parts.
    fn is_here(&self, word: &str) -> bool {
        let is_end = |c: char| c.is_whitespace() || (self.depth > 0 && c == ')');
        self.rest.strip_prefix(word).is_some_and(|behind| behind.chars().next().is_none_or(is_end))
    }

    /// Whether the group or the text ends after a word.
    fn ends_after(&self, word: &str) -> bool {
        let behind = self.rest[word.len()..].trim_start();
        behind.is_empty() || (self.depth > 0 && behind.starts_with(')'))
    }

    fn item(&mut self, place: &Place) -> Result<Option<Expression<Leaf>>> {
        let is_value = matches!(place, Place::Property(_));
        if !is_value && self.is_here("--") {
            self.rest = &self.rest[2..];
            self.is_literal = true;
            return Ok(None);
        }
        if !is_value && self.rest.starts_with('-') && self.is_negation() {
            self.rest = &self.rest[1..];
            self.negations += 1;
            let negated = self.operand(place);
            self.negations -= 1;
            return Ok(negated?.map(Expression::not));
        }
        self.operand(place)
    }

    /// Whether the `-` at the current position negates the next item.
    fn is_negation(&mut self) -> bool {
        let negated = &self.rest[1..];
        match negated.chars().next() {
            None => false,
            Some(c) if c.is_whitespace() => false,
            // A number: `temperature -5`.
            Some(c) if c.is_ascii_digit() => false,
            Some('"' | '(') => true,
            Some('[') if property_at(negated).is_some() => true,
            Some('/') if regex_at(negated, self.depth > 0).is_some() => true,
            Some(_) => {
                let word = word_at(negated, self.depth > 0);
                self.is_word(word)
            }
        }
    }

    fn operand(&mut self, place: &Place) -> Result<Option<Expression<Leaf>>> {
        let after_bullet = std::mem::take(&mut self.after_bullet);
        if let Some(inside) = self.rest.strip_prefix('(').filter(|_| self.depth < MAX_DEPTH) {
            self.rest = inside;
            return self.group(place);
        }
        if let Some(value) = self.quoted_or_regex() {
            return self.leaf(place, value);
        }
        if matches!(place, Place::Query)
            && let Some((key, value, length)) = property_at(self.rest)
            && !(after_bullet && length == 3)
        {
            self.rest = &self.rest[length..];
            return self.property(key, value);
        }
        if let Place::Property(key) = place
            && let Some(found) = self.comparison(key)
        {
            return Ok(Some(found));
        }
        if let Some((key, behind)) = key_at(self.rest) {
            let known = match place {
                Place::Query => self.operator(key, behind)?,
                Place::Texts { .. } => self.case(key, behind)?,
                _ => None,
            };
            if let Some(expression) = known {
                return Ok(expression);
            }
            if matches!(place, Place::Query | Place::Texts { .. }) && !behind.starts_with(['/', '\\', ':', ')']) {
                let has_group = behind.starts_with('(');
                self.unknown.push(if has_group { format!("{key}:(…)") } else { self.word_here().to_string() });
            }
        }
        let word = self.word_here();
        self.rest = &self.rest[word.len()..];
        // The text after the space may have been meant as the value.
        if matches!(place, Place::Query) && word.strip_suffix(':').is_some_and(is_operator) && !self.rest.is_empty() {
            self.unknown.push(word.to_string());
        }
        self.after_bullet = matches!(word, "-" | "*" | "+");
        if matches!(place, Place::Query) && matches!(word, "AND" | "NOT") {
            self.unknown.push(word.to_string());
        }
        self.leaf(place, Value::Word(word))
    }

    /// Parses up to the `)`, which is skipped.
    fn group(&mut self, place: &Place) -> Result<Option<Expression<Leaf>>> {
        self.depth += 1;
        let found = self.any(place);
        self.depth -= 1;
        if !self.is_literal {
            self.rest = self.rest.strip_prefix(')').unwrap_or(self.rest);
        }
        found
    }

    fn quoted_or_regex(&mut self) -> Option<Value<'a>> {
        if let Some(inside) = self.rest.strip_prefix('"') {
            let (text, behind) = quoted_at(inside);
            self.rest = behind;
            return Some(Value::Quoted(text));
        }
        let pattern = regex_at(self.rest, self.depth > 0)?;
        self.rest = &self.rest[pattern.len() + 2..];
        Some(Value::Regex(pattern))
    }

    /// Parses the value of an operator, which begins at `behind`. `None`: it has no value, and the operator is a word.
    fn value(&mut self, place: &Place, behind: &'a str) -> Result<Option<Option<Expression<Leaf>>>> {
        let before = std::mem::replace(&mut self.rest, behind);
        if let Some(inside) = behind.strip_prefix('(').filter(|_| self.depth < MAX_DEPTH) {
            self.rest = inside;
            return self.group(place).map(Some);
        }
        if let Place::Link(test) = place
            && let Some((inside, end)) = behind.strip_prefix("[[").and_then(|inside| inside.split_once("]]"))
        {
            self.rest = end;
            let name = inside.split(['|', '#']).next().unwrap_or_default().trim();
            return Ok(Some((!name.is_empty()).then(|| Expression::Is(Leaf::Test(test(name.to_string()))))));
        }
        if let Some(value) = self.quoted_or_regex() {
            return self.leaf(place, value).map(Some);
        }
        let word = self.word_here();
        if word.is_empty() || (matches!(place, Place::Texts { .. }) && !self.is_word(word)) {
            self.rest = before;
            return Ok(None);
        }
        self.rest = &self.rest[word.len()..];
        self.leaf(place, Value::Word(word)).map(Some)
    }

    /// Parses the operators of a query. `None`: the key is not an operator.
    fn operator(&mut self, key: &str, behind: &'a str) -> Result<Option<Option<Expression<Leaf>>>> {
        let key = key.to_ascii_lowercase();
        if let Some((_, scope)) = Scope::OPERATORS.iter().find(|(operator, _)| *operator == key) {
            let is_task = matches!(scope, Scope::Task | Scope::OpenTask | Scope::DoneTask);
            let Some(found) = self.value(&Place::Texts { match_case: false }, behind)? else { return Ok(None) };
            let texts = match found {
                Some(found) => texts(found)?,
                // `task-todo:""` matches all of them.
                None if is_task => Expression::All(Vec::new()),
                None => return Ok(Some(None)),
            };
            return Ok(Some(Some(Expression::Is(Leaf::Test(Test::Within(*scope, texts))))));
        }
        match key.as_str() {
            "tag" => self.value(&Place::Tag, behind),
            "path" => self.value(&Place::Path, behind),
            "file" => self.value(&Place::FileName, behind),
            "date" => self.date(behind),
            "link" => self.value(&Place::Link(Test::LinksTo), behind),
            "linked-from" => self.value(&Place::Link(Test::LinkedFrom), behind),
            "is" => Ok(self.is(behind)),
            _ => self.case(&key, behind),
        }
    }

    /// `match-case:` and `ignore-case:`, which turn words into conditions.
    fn case(&mut self, key: &str, behind: &'a str) -> Result<Option<Option<Expression<Leaf>>>> {
        let match_case = key.eq_ignore_ascii_case("match-case");
        if !match_case && !key.eq_ignore_ascii_case("ignore-case") {
            return Ok(None);
        }
        let found = self.value(&Place::Texts { match_case }, behind)?;
        let condition = |found| texts(found)?.map(&|test| Ok(Leaf::Test(Test::Text(test))));
        found.map(|found| found.map(condition).transpose()).transpose()
    }

    /// `is:orphan`; any other value makes it a word.
    fn is(&mut self, behind: &'a str) -> Option<Option<Expression<Leaf>>> {
        let word = word_at(behind, self.depth > 0);
        word.eq_ignore_ascii_case("orphan").then(|| {
            self.rest = &behind[word.len()..];
            Some(Expression::Is(Leaf::Test(Test::Orphan)))
        })
    }

    fn date(&mut self, behind: &'a str) -> Result<Option<Option<Expression<Leaf>>>> {
        let (text, end) = match behind.strip_prefix('"') {
            Some(inside) => quoted_at(inside),
            None => {
                let word = word_at(behind, self.depth > 0);
                (word.to_string(), &behind[word.len()..])
            }
        };
        if text.is_empty() {
            return Ok(None);
        }
        let range = DateRange::parse(&text, self.now)?;
        self.rest = end;
        Ok(Some(Some(Expression::Is(Leaf::Test(Test::Date(range))))))
    }

    fn property(&mut self, key: String, value: Option<&'a str>) -> Result<Option<Expression<Leaf>>> {
        let test = |test| Expression::Is(Leaf::Test(Test::Property(test)));
        let exists = test(PropertyTest { key: key.clone(), test: Comparison::Exists, value: String::new() });
        let Some(value) = value else { return Ok(Some(exists)) };
        let found = Parser::new(value, self.now).any(&Place::Property(key))?;
        Ok(Some(found.unwrap_or(exists)))
    }

    /// `<5`, `>=2026-01`, `<"last week"`, `~"text"` within the brackets of a property.
    fn comparison(&mut self, key: &str) -> Option<Expression<Leaf>> {
        let behind = self.rest.trim_start_matches(['<', '>', '=', '~']);
        let sign = &self.rest[..self.rest.len() - behind.len()];
        let test = Comparison::written(sign).filter(|_| !sign.starts_with('='))?;
        let behind = behind.trim_start();
        let (value, end) = match behind.strip_prefix('"') {
            Some(inside) => quoted_at(inside),
            None => {
                let word = word_at(behind, self.depth > 0);
                (word.to_string(), &behind[word.len()..])
            }
        };
        if value.trim().is_empty() {
            return None;
        }
        self.rest = end;
        Some(Expression::Is(Leaf::Test(Test::Property(PropertyTest { key: key.to_string(), test, value }))))
    }

    /// Converts a value according to its context. `None`: it is empty.
    fn leaf(&mut self, place: &Place, value: Value<'_>) -> Result<Option<Expression<Leaf>>> {
        if matches!(value, Value::Regex(_)) {
            self.patterns += 1;
            // Each of them is compiled here, which can take some 20 ms.
            if self.patterns > MAX_TESTS {
                return Err(too_many());
            }
        }
        let leaf = match place {
            Place::Query | Place::Texts { .. } => return self.text(place, value),
            Place::FileName => Leaf::Test(Test::FileName(TextTest::new(match value {
                Value::Word(text) => TextPattern::Characters(text.to_string()),
                Value::Quoted(text) if text.is_empty() => return Ok(None),
                Value::Quoted(text) => TextPattern::Characters(text),
                Value::Regex(pattern) => TextPattern::Regex(pattern.to_string()),
            })?)),
            Place::Path => Leaf::Test(match value {
                Value::Word(text) => Test::Path(checked_path(text)?),
                Value::Quoted(text) => Test::Path(checked_path(&text)?),
                Value::Regex(pattern) => Test::PathText(TextTest::new(TextPattern::Regex(pattern.to_string()))?),
            }),
            Place::Tag => Leaf::Test(Test::Tag(match value {
                Value::Word(text) => checked_tag(text)?,
                Value::Quoted(text) => checked_tag(&text)?,
                Value::Regex(pattern) => checked_tag(&format!("/{pattern}/"))?,
            })),
            Place::Link(test) => Leaf::Test(test(match value {
                Value::Word(text) => text.to_string(),
                Value::Quoted(text) if text.trim().is_empty() => return Ok(None),
                Value::Quoted(text) => text,
                Value::Regex(pattern) => format!("/{pattern}/"),
            })),
            Place::Property(key) => {
                let (test, value) = match value {
                    Value::Word(text) => (Comparison::Contains, text.to_string()),
                    Value::Quoted(text) if text.trim().is_empty() => return Ok(None),
                    Value::Quoted(text) => (Comparison::Equal, text),
                    Value::Regex(pattern) => (Comparison::Contains, format!("/{pattern}/")),
                };
                let test = PropertyTest { key: key.clone(), test, value };
                test.contained()?;
                Leaf::Test(Test::Property(test))
            }
        };
        Ok(Some(Expression::Is(leaf)))
    }

    /// A word, phrase or pattern to search texts for. All except patterns affect the ranking, unless they are negated.
    fn text(&mut self, place: &Place, value: Value<'_>) -> Result<Option<Expression<Leaf>>> {
        let match_case = matches!(place, Place::Texts { match_case: true });
        let is_plain = matches!(value, Value::Word(_));
        let ranks = self.negations == 0;
        let holds = match value {
            Value::Regex(pattern) => TextPattern::Regex(pattern.to_string()),
            Value::Quoted(text) if text.trim().is_empty() => return Ok(None),
            Value::Quoted(text) => {
                let text = text.trim().to_string();
                if ranks {
                    self.words.push(text.clone());
                }
                TextPattern::Words(text)
            }
            Value::Word(word) => {
                let start = prefix(word);
                if ranks {
                    self.words.push(start.unwrap_or(word).to_string());
                    self.prefixes.extend(start.map(str::to_string));
                }
                if !self.is_word(word) {
                    return Ok(None);
                }
                start.map_or_else(
                    || TextPattern::Words(word.trim().to_string()),
                    |start| TextPattern::Prefix(start.to_string()),
                )
            }
        };
        let mut test = TextTest::new(holds)?;
        test.match_case = match_case;
        let leaf = if is_plain { Leaf::Word(test) } else { Leaf::Test(Test::Text(test)) };
        Ok(Some(Expression::Is(leaf)))
    }

    /// Whether a word contains anything to search for.
    fn is_word(&mut self, word: &str) -> bool {
        word.chars().any(char::is_alphanumeric) || (!word.is_ascii() && !self.terms.words(word).is_empty())
    }

    /// The word at the current position, up to white space or the end of the group.
    fn word_here(&self) -> &'a str {
        word_at(self.rest, self.depth > 0)
    }
}

fn is_operator(key: &str) -> bool {
    let key = key.to_ascii_lowercase();
    matches!(key.as_str(), "tag" | "path" | "file" | "date" | "link" | "linked-from" | "match-case" | "ignore-case")
        || Scope::OPERATORS.iter().any(|(operator, _)| *operator == key)
}

/// The condition of a part, if it has one. Plain words affect only the ranking, unless they are alternatives to a
/// condition. `is_free` is set if there are plain words of the first kind.
fn required(part: Expression<Leaf>, is_free: &mut bool) -> Option<Condition> {
    match part {
        Expression::All(parts) => {
            let parts = parts.into_iter().filter_map(|part| required(part, is_free)).collect();
            Expression::all(paths_as_one(parts))
        }
        other if is_condition(&other) => Some(wrapped_all(other)),
        _ => {
            *is_free = true;
            None
        }
    }
}

/// Whether any part is more than a plain word.
fn is_condition(part: &Expression<Leaf>) -> bool {
    match part {
        Expression::All(parts) | Expression::Any(parts) => parts.iter().any(is_condition),
        Expression::Not(_) | Expression::Is(Leaf::Test(_)) => true,
        Expression::Is(Leaf::Word(_)) => false,
    }
}

/// Turns the whole part into a condition.
fn wrapped_all(part: Expression<Leaf>) -> Condition {
    match part {
        Expression::All(parts) => {
            let parts = paths_as_one(parts.into_iter().map(wrapped_all).collect());
            Expression::all(parts).unwrap_or(Expression::All(Vec::new()))
        }
        Expression::Any(parts) => {
            Expression::any(parts.into_iter().map(wrapped_all).collect()).unwrap_or(Expression::Any(Vec::new()))
        }
        Expression::Not(part) => Expression::not(wrapped_all(*part)),
        Expression::Is(Leaf::Word(test)) => Expression::Is(Test::Text(test)),
        Expression::Is(Leaf::Test(test)) => Expression::Is(test),
    }
}

/// Joins adjacent paths as alternatives, as with `--path`, because a note is in only one folder.
fn paths_as_one(parts: Vec<Condition>) -> Vec<Condition> {
    let is_path = |part: &Condition| matches!(part, Expression::Is(Test::Path(_)));
    let Some(first) = parts.iter().position(is_path) else { return parts };
    let (paths, mut others): (Vec<_>, Vec<_>) = parts.into_iter().partition(is_path);
    if let Some(paths) = Expression::any(paths) {
        others.insert(first, paths);
    }
    others
}

/// The tests of texts within an operator.
fn texts(part: Expression<Leaf>) -> Result<Expression<TextTest>> {
    part.map(&|leaf| match leaf {
        Leaf::Word(test) | Leaf::Test(Test::Text(test)) => Ok(test),
        // Other tests do not occur within an operator.
        Leaf::Test(other) => TextTest::new(TextPattern::Words(other.to_string())),
    })
}

fn count(condition: &Condition) -> usize {
    let count = |test: &&Test| match test {
        Test::Within(_, tests) => tests.tests().len().max(1),
        _ => 1,
    };
    condition.tests().iter().map(count).sum()
}
