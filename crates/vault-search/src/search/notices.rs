//! Notices about the gaps of an answer: nothing was found, unread notes, passages without a vector.

use vault_index::{Index, Mode, Query, Substitution, UnmatchedConditions};

use crate::{Paint, counted, padded, sanitize, wrapped};

use super::answer::SearchAnswer;
use super::progress::about;

/// Returns the notices about an answer. `why` is the reason why the index is not up to date; `going_on` is whether
/// embedding continues in the background.
pub(super) fn of(
    answer: &SearchAnswer,
    indexes: &[&Index],
    why: Option<String>,
    unmatched: &UnmatchedConditions,
    query: &Query,
    going_on: bool,
) -> Vec<String> {
    let several = answer.vaults.len() > 1;
    let mut notices: Vec<String> = unknown_words(answer).into_iter().collect();
    notices.extend(answer.substitutions.iter().map(|read| substituted(read, several)));
    if answer.results.is_empty() && answer.count.is_none_or(|count| count == 0) {
        notices.push("nothing was found".to_string());
        notices.extend(unmatched.wanted.iter().cloned());
        for miss in &answer.near_misses {
            notices.push(format!("near: {}  {:.2}  {}", padded(miss.path.as_str(), 24), miss.score, miss.title));
        }
    }
    if answer.fell_back && !answer.results.is_empty() {
        let why = "no note is close to it in meaning, so words alone rank (does the model know its language?)";
        notices.push(why.to_string());
    }
    notices.extend(unmatched.excluded.iter().cloned());
    for (text, notes) in &unmatched.left_out {
        let notes = counted(*notes, "note");
        let word = text.trim_start_matches('-').trim_matches('"');
        notices.push(format!("`-{word}` leaves out {notes}; to search for it, write \"-{word}\" in quotes"));
    }
    let is_unexplained = why.is_none();
    let mut why: Vec<String> = why.into_iter().collect();
    if answer.unread > 0 {
        why.push(format!("not read yet, so not found: {}", counted(answer.unread, "note")));
        if is_unexplained {
            why.push("`vault-index sync` reads them".to_string());
        }
    }
    notices.extend((!why.is_empty()).then(|| why.join("; ")));
    let pending = answer.pending - answer.unread;
    if pending > 0 && needs_vectors(query) {
        notices.push(pending_vectors(pending, answer.mode, indexes, going_on));
    }
    for word in &query.unknown_operators {
        notices.push(format!("`{word}` is searched for as words; `vault-search --help` lists the operators"));
    }
    notices
}

/// Whether a query needs vectors. A lexical query and one of filters alone do not.
pub(super) fn needs_vectors(query: &Query) -> bool {
    query.like.is_some() || (!query.text.trim().is_empty() && query.mode != Mode::Lexical)
}

/// Returns the notice that words of the query are in no note. It is printed before the results, which cannot have these
/// words.
pub(super) fn unknown_words(answer: &SearchAnswer) -> Option<String> {
    (!answer.unknown_words.is_empty()).then(|| format!("no note has {}", alternatives(&answer.unknown_words)))
}

fn alternatives(words: &[String]) -> String {
    match words.split_last() {
        Some((last, others)) if !others.is_empty() => format!("{} or {last}", others.join(", ")),
        _ => words.concat(),
    }
}

/// Returns the notice about the correction of a word that is in no note. With several vaults, it applies to those in
/// which no note has the word.
fn substituted(read: &Substitution, several: bool) -> String {
    let words = alternatives(&read.read_as);
    match several {
        false => format!("searched for {words} ({} is in no note)", read.word),
        true => format!("searched for {words} in a vault where no note has {}", read.word),
    }
}

/// Returns the notice about passages without a vector: how many there are, the effect on the ranking, and how and when
/// the vectors are computed.
fn pending_vectors(pending: usize, mode: Mode, indexes: &[&Index], going_on: bool) -> String {
    let so = if mode == Mode::Semantic { "cannot be found by meaning" } else { "are ranked by their words" };
    let time = indexes.iter().filter_map(|index| index.time_to_embed().ok().flatten()).reduce(|a, b| a + b);
    let time = time.map_or_else(String::new, |time| format!(", in about {}", about(time)));
    let others = indexes.iter().find_map(|index| index.watcher().or_else(|| index.embedding()));
    let made = match others {
        Some(other) => format!("{other} makes them{time}"),
        None if going_on => format!(
            "they are made in the background{time} (`vault-index stop` ends that, VAULT_BACKGROUND=0 turns it off)"
        ),
        None => format!("`vault-index sync` makes them{time}"),
    };
    let (without, so) = match pending {
        1 => ("1 passage has no vector yet".to_string(), so.replacen("are", "is", 1)),
        n => (format!("{n} passages have no vector yet"), so.to_string()),
    };
    format!("{without} and {so}; {made}")
}

/// Returns the number of rows that the notices take on a terminal. Without a terminal, the number does not matter.
pub(super) fn rows(notices: &[String], paint: Paint) -> usize {
    let width = paint.width().unwrap_or(usize::MAX);
    notices.iter().map(|notice| wrapped(&format!("note: {}", sanitize(notice)), width).lines().count()).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_word_was_taken_for() {
        fn check(read_as: &[&str], several: bool, expected: &str) {
            let read = serde_json::from_value(serde_json::json!({ "word": "hern", "read_as": read_as })).unwrap();
            assert_eq!(substituted(&read, several), expected);
        }
        check(&["heron"], false, "searched for heron (hern is in no note)");
        check(&["fern", "heron", "hen"], false, "searched for fern, heron or hen (hern is in no note)");
        check(&["heron"], true, "searched for heron in a vault where no note has hern");
    }
}
