//! Conditions that results must meet: a tree of and, or and not over tests of notes and their texts.

use std::fmt;

use jiff::Timestamp;

use crate::error::Result;
use crate::search::query::dates::DateRange;
use crate::search::query::property_condition::{Comparison, PropertyTest};
use crate::search::query::text_condition::{TextTest, quoted};

/// Tests joined by and, or and not.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Expression<T> {
    /// All of them hold.
    All(Vec<Self>),
    /// At least one of them holds.
    Any(Vec<Self>),
    /// It does not hold.
    Not(Box<Self>),
    /// This test holds.
    Is(T),
}

/// The condition that a note must meet to be found.
///
/// Each test applies to a whole note: `"a" "b"` finds notes that contain both, `-(a b)` excludes notes that contain
/// both. In a note that meets the condition, the passages that contain a requested text are found, or all passages if
/// no text was requested.
///
/// ```
/// use vault_index::Query;
///
/// let query = Query::parse("prune (tag:garden OR \"apple tree\") -pear")?;
/// assert_eq!(query.condition.unwrap().to_string(), "(tag:garden OR \"apple tree\") -\"pear\"");
/// # Ok::<(), vault_index::Error>(())
/// ```
pub type Condition = Expression<Test>;

/// A test of a note.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Test {
    /// One of its passages, together with the note's names, tags and properties, contains this. Regular expressions and
    /// case-sensitive texts are searched in the passage's text only.
    Text(TextTest),
    /// Its text contains all of this within one of these.
    Within(Scope, Expression<TextTest>),
    /// The name of its file contains this.
    FileName(TextTest),
    /// Its path is this, is below it, or matches this glob.
    Path(String),
    /// Its path matches this.
    PathText(TextTest),
    /// It has this tag (without `#`) or one below it.
    Tag(String),
    /// It has a property that meets this condition.
    Property(PropertyTest),
    /// It links to the note with this name, as in [`Query::like`](crate::Query::like).
    LinksTo(String),
    /// The note with this name links to it.
    LinkedFrom(String),
    /// It has no links to it.
    Orphan,
    /// Its date is within these days: see [`Filter::dates`](crate::Filter::dates).
    Date(DateRange),
    /// Its file was changed at this moment or later.
    ModifiedSince(Timestamp),
    /// Its file was changed before this moment.
    ModifiedBefore(Timestamp),
}

/// The unit that must contain all texts together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Scope {
    /// The text of a passage, without the note's names, tags and properties.
    Content,
    /// A line.
    Line,
    /// A paragraph, or an item of a list.
    Block,
    /// The text from a heading to the next one, including the heading.
    Section,
    /// A task: an item of a list with `[ ]`, `[x]` or another mark.
    Task,
    /// A task with `[ ]`.
    OpenTask,
    /// A task with any mark except a space.
    DoneTask,
}

impl Scope {
    /// All scopes, with their operators.
    pub(super) const OPERATORS: [(&'static str, Self); 7] = [
        ("content", Self::Content),
        ("line", Self::Line),
        ("block", Self::Block),
        ("section", Self::Section),
        ("task", Self::Task),
        ("task-todo", Self::OpenTask),
        ("task-done", Self::DoneTask),
    ];

    fn operator(self) -> &'static str {
        Self::OPERATORS.iter().find(|(_, scope)| *scope == self).map_or("", |(operator, _)| operator)
    }
}

impl<T> Expression<T> {
    /// A conjunction. A single expression stays as it is.
    pub(super) fn all(parts: Vec<Self>) -> Option<Self> {
        let mut flat = Vec::with_capacity(parts.len());
        for part in parts {
            match part {
                Self::All(inner) => flat.extend(inner),
                other => flat.push(other),
            }
        }
        if flat.len() > 1 { Some(Self::All(flat)) } else { flat.pop() }
    }

    /// A disjunction. A single expression stays as it is.
    pub(super) fn any(parts: Vec<Self>) -> Option<Self> {
        let mut flat = Vec::with_capacity(parts.len());
        for part in parts {
            match part {
                Self::Any(inner) => flat.extend(inner),
                other => flat.push(other),
            }
        }
        if flat.len() > 1 { Some(Self::Any(flat)) } else { flat.pop() }
    }

    /// The negation of an expression.
    pub(super) fn not(part: Self) -> Self {
        Self::Not(Box::new(part))
    }

    /// Whether the expression holds, given the result of each test.
    pub(in crate::search) fn holds(&self, is: &impl Fn(&T) -> bool) -> bool {
        match self {
            Self::All(parts) => parts.iter().all(|part| part.holds(is)),
            Self::Any(parts) => parts.iter().any(|part| part.holds(is)),
            Self::Not(part) => !part.holds(is),
            Self::Is(test) => is(test),
        }
    }

    /// Converts every test.
    ///
    /// # Errors
    /// The first error of a test.
    pub(in crate::search) fn map<U>(self, map: &impl Fn(T) -> Result<U>) -> Result<Expression<U>> {
        let all = |parts: Vec<Self>| parts.into_iter().map(|part| part.map(map)).collect::<Result<_>>();
        Ok(match self {
            Self::All(parts) => Expression::All(all(parts)?),
            Self::Any(parts) => Expression::Any(all(parts)?),
            Self::Not(part) => Expression::not(part.map(map)?),
            Self::Is(test) => Expression::Is(map(test)?),
        })
    }

    /// The operands of a conjunction.
    pub fn into_parts(self) -> Vec<Self> {
        match self {
            Self::All(parts) => parts,
            other => vec![other],
        }
    }

    /// The tests, in the order of the query.
    pub(in crate::search) fn tests(&self) -> Vec<&T> {
        match self {
            Self::All(parts) | Self::Any(parts) => parts.iter().flat_map(Self::tests).collect(),
            Self::Not(part) => part.tests(),
            Self::Is(test) => vec![test],
        }
    }
}

/// In the syntax of a query.
impl<T: fmt::Display> fmt::Display for Expression<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::All(parts) => {
                for (n, part) in parts.iter().enumerate() {
                    let space = if n > 0 { " " } else { "" };
                    match part {
                        Self::Any(_) => write!(f, "{space}({part})")?,
                        _ => write!(f, "{space}{part}")?,
                    }
                }
                Ok(())
            }
            Self::Any(parts) => {
                for (n, part) in parts.iter().enumerate() {
                    let or = if n > 0 { " OR " } else { "" };
                    write!(f, "{or}{part}")?;
                }
                Ok(())
            }
            Self::Not(part) => match **part {
                Self::Is(_) => write!(f, "-{part}"),
                _ => write!(f, "-({part})"),
            },
            Self::Is(test) => test.fmt(f),
        }
    }
}

/// In the syntax of a query. Modification times have options of their own, and are shown as timestamps.
impl fmt::Display for Test {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Text(test) => test.fmt(f),
            Self::Within(scope, Expression::Is(test)) if !test.match_case => write!(f, "{}:{test}", scope.operator()),
            // Any task.
            Self::Within(scope, Expression::All(tests)) if tests.is_empty() => write!(f, "{}:\"\"", scope.operator()),
            Self::Within(scope, tests) => write!(f, "{}:({tests})", scope.operator()),
            Self::FileName(test) => write!(f, "file:{test}"),
            Self::Path(glob) => write!(f, "path:{}", value(glob)),
            Self::PathText(test) => write!(f, "path:{test}"),
            Self::Tag(tag) => write!(f, "tag:{}", value(tag)),
            Self::Property(test) => property(test, f),
            Self::LinksTo(note) => write!(f, "link:{}", value(note)),
            Self::LinkedFrom(note) => write!(f, "linked-from:{}", value(note)),
            Self::Orphan => f.write_str("is:orphan"),
            Self::Date(range) => write!(f, "date:{}", value(&range.to_string())),
            Self::ModifiedSince(moment) => write!(f, "modified>={moment}"),
            Self::ModifiedBefore(moment) => write!(f, "modified<{moment}"),
        }
    }
}

fn property(test: &PropertyTest, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let key = match test.key.contains(|c: char| !(c.is_alphanumeric() || " -_.".contains(c))) {
        true => quoted(&test.key),
        false => test.key.clone(),
    };
    let text = match test.test {
        Comparison::Exists => return write!(f, "[{key}]"),
        Comparison::Equal => quoted(&test.value),
        Comparison::NotEqual => return write!(f, "[{key}] -[{key}:{}]", quoted(&test.value)),
        Comparison::Less => format!("<{}", value(&test.value)),
        Comparison::LessOrEqual => format!("<={}", value(&test.value)),
        Comparison::Greater => format!(">{}", value(&test.value)),
        Comparison::GreaterOrEqual => format!(">={}", value(&test.value)),
        Comparison::Contains if is_pattern(&test.value) => test.value.clone(),
        Comparison::Contains => format!("~{}", quoted(&test.value)),
    };
    write!(f, "[{key}:{text}]")
}

fn is_pattern(value: &str) -> bool {
    value.len() > 2 && value.starts_with('/') && value.ends_with('/')
}

/// In quotes, unless it is one plain word.
fn value(text: &str) -> String {
    let is_plain = |c: char| c.is_alphanumeric() || "-_./#*?<>=+".contains(c);
    if text.chars().all(is_plain) && !text.starts_with('/') { text.to_string() } else { quoted(text) }
}
