//! The conditions of a query that no note meets at all, mostly because of a misspelled name.

use std::collections::BTreeSet;

use jiff::Timestamp;
use jiff::tz::TimeZone;

use crate::error::{Error, Result};
use crate::likeness::nearest;
use crate::search::query::Query;
use crate::search::query::condition::{Condition, Expression, Test};
use crate::search::query::property_condition::{Comparison, PropertyTest};
use crate::search::searcher::Searcher;
use crate::search::select::eligible::Evaluator;
use crate::terms::Terms;

/// Conditions that no note meets, one line each.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct UnmatchedConditions {
    /// Conditions that must hold, so nothing can be found.
    pub wanted: Vec<String>,
    /// Conditions that must not hold. They exclude nothing, so the notes that were meant to be excluded are found.
    pub excluded: Vec<String>,
    /// Words that must not be in a note, as they were written, and the number of notes that each excludes. For example,
    /// a pasted command (`ssh -T git`) has such words.
    pub left_out: Vec<(String, usize)>,
}

impl Searcher {
    /// The conditions of a query's syntax and filter that, taken alone, no note meets. Costs as much as they cost in a
    /// search.
    ///
    /// # Errors
    /// If the index cannot be read, for an invalid glob, or for an invalid regular expression.
    pub fn unmatched(&self, query: &Query) -> Result<UnmatchedConditions> {
        let evaluator = Evaluator::new(&self.snapshot);
        let meets = |part: &Condition| Ok::<_, Error>(evaluator.passages(part)?.contains(&true));
        let mut unmatched = UnmatchedConditions::default();
        unmatched.wanted.extend(without_words(query.text.trim()));
        for part in query.whole_condition().map(Condition::into_parts).unwrap_or_default() {
            match part {
                Expression::Not(not) => {
                    if not.tests().into_iter().all(is_text) {
                        // The query intends that no note contains the word.
                        match self.notes_with(&evaluator.passages(&not)?) {
                            0 => {}
                            notes => unmatched.left_out.push((Expression::Not(not).to_string(), notes)),
                        }
                    } else if !meets(&not)? {
                        let why = self.no_note(&not)?;
                        unmatched.excluded.push(format!("`{}` leaves nothing out: {why}", Expression::Not(not)));
                    }
                }
                // A misspelled alternative is not noticed beside the others.
                Expression::Any(parts) => {
                    for part in &parts {
                        if !meets(part)? {
                            unmatched.wanted.push(self.no_note(part)?);
                        }
                    }
                }
                part => {
                    // The property itself comes before its value.
                    for part in property(&part).iter().chain([&part]) {
                        if !meets(part)? {
                            unmatched.wanted.push(self.no_note(part)?);
                            break;
                        }
                    }
                }
            }
        }
        Ok(unmatched)
    }

    /// The number of notes with some of the passages.
    fn notes_with(&self, passages: &[bool]) -> usize {
        let held = self.snapshot.passages.iter().zip(passages).filter(|(_, held)| **held);
        held.map(|(passage, _)| passage.note).collect::<BTreeSet<_>>().len()
    }

    /// Says that no note meets a condition, and the probable reason.
    fn no_note(&self, condition: &Condition) -> Result<String> {
        let Expression::Is(test) = condition else { return Ok(format!("no note meets `{condition}`")) };
        Ok(match test {
            Test::Tag(tag) => {
                let tags = self.snapshot.store()?.tag_counts()?;
                let near = nearest(tag, tags.iter().map(|there| (there.tag.as_str(), there.tag.as_str())));
                match near.is_empty() {
                    true => format!("no note has the tag `{tag}`; `vault-index tags` lists those there are"),
                    false => format!("no note has the tag `{tag}`; near: {}", near.join(", ")),
                }
            }
            Test::Path(glob) => format!("no note's path is `{glob}`, is below it or matches it"),
            Test::PathText(text) => format!("no note's path matches `{text}`"),
            Test::FileName(text) => format!("no note's file name holds {text}"),
            Test::Property(PropertyTest { key, test: Comparison::Exists, .. }) => {
                let keys = self.snapshot.store()?.property_keys()?;
                let near = nearest(key, keys.iter().map(|there| (there.as_str(), there.as_str())));
                match near.is_empty() {
                    true => format!("no note has the property `{key}`"),
                    false => format!("no note has the property `{key}`; near: {}", near.join(", ")),
                }
            }
            Test::Property(test) => format!("no note meets `{test}`"),
            Test::LinksTo(note) => format!("no note links to `{note}`"),
            Test::LinkedFrom(note) => format!("`{note}` links to no note"),
            Test::Orphan => "every note has links to it".to_string(),
            Test::Date(range) => {
                format!("no note has a date that is of `{range}`, in a property `date` or `created` or in its name")
            }
            Test::ModifiedSince(after) => format!("no note was modified since {}", day(*after)),
            Test::ModifiedBefore(before) => format!("no note was last modified before {}", day(*before)),
            Test::Text(text) => format!("no note holds {text}"),
            Test::Within(..) => format!("no note meets `{test}`"),
        })
    }
}

/// Advice for searching a text without words, such as `§` or `->`, which cannot be ranked. `None`: it has words, or is
/// empty.
fn without_words(text: &str) -> Option<String> {
    if text.is_empty() || !Terms::new().words(text).is_empty() {
        return None;
    }
    let quoted = if text.contains(char::is_whitespace) { format!("\"{text}\"") } else { text.to_string() };
    let pattern = regex::escape(text).replace('/', "\\/");
    Some(format!(
        "there is no word in `{text}`; write file:{quoted} to search names for it, /{pattern}/ to search texts"
    ))
}

/// The condition that a property exists, for a condition that compares it.
fn property(condition: &Condition) -> Option<Condition> {
    let Expression::Is(Test::Property(test)) = condition else { return None };
    let exists = PropertyTest { key: test.key.clone(), test: Comparison::Exists, value: String::new() };
    Some(Expression::Is(Test::Property(exists)))
}

fn is_text(test: &Test) -> bool {
    matches!(test, Test::Text(_) | Test::Within(..))
}

fn day(time: Timestamp) -> String {
    time.to_zoned(TimeZone::system()).strftime("%Y-%m-%d %H:%M").to_string()
}
