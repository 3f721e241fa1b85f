//! Suggests existing paths for one that does not exist. Only the code that answers a caller asks for suggestions.

use std::cmp::Reverse;

use vault_index::likeness::{LEAST, likeness};

use crate::error::Error;
use crate::sandbox::{Entry, SafePath, View};

/// The maximum number of suggestions.
const OFFERED: usize = 3;

/// Returns the error for a path that does not exist, with similar existing paths. `may_be_named` tells which paths may
/// be suggested, because a suggestion must not reveal a path that the caller may not read.
pub fn missing(path: &SafePath, view: &dyn View, may_be_named: &dyn Fn(&Entry) -> bool) -> Error {
    let entries = view.walk(None).unwrap_or_default();
    // The path of a note cannot mean a folder.
    let is_note = path.is_markdown();
    let named = entries.iter().filter(|entry| may_be_named(entry) && (!is_note || entry.path.is_markdown()));
    Error::not_found(path, &nearest(path.as_str(), named.map(|entry| entry.path.as_str())))
}

/// Returns the paths that are most similar to `wanted`, best first: those with the same name, the same spelling before
/// others, then those that are most similar as a whole. Linear in the length of all paths.
fn nearest<'p>(wanted: &str, paths: impl Iterator<Item = &'p str>) -> Vec<String> {
    // A bare name is compared with names only, so that the length of a path does not matter.
    fn compared(path: &str, is_name: bool) -> &str {
        if is_name { stem(path) } else { path }
    }
    let is_name = !wanted.contains('/');
    let name = stem(wanted).to_lowercase();
    let rank = |path: &'p str| {
        let same = i32::from(stem(path).to_lowercase() == name) + i32::from(stem(path) == stem(wanted));
        let likeness = likeness(compared(wanted, is_name), compared(path, is_name));
        (same > 0 || likeness >= LEAST).then_some((Reverse(1000 * same + (100.0 * likeness) as i32), path))
    };
    let mut ranked: Vec<_> = paths.filter_map(rank).collect();
    ranked.sort_unstable();
    ranked.into_iter().take(OFFERED).map(|(_, path)| path.to_owned()).collect()
}

fn stem(path: &str) -> &str {
    let name = path.rsplit('/').next().unwrap_or(path);
    name.strip_suffix(".md").or_else(|| name.strip_suffix(".markdown")).unwrap_or(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wrong_path_finds_the_nearest_note() {
        let paths = ["Garden/Compost.md", "Garden/Roses.md", "Kitchen/Sourdough.md", "Compost heap.md"];
        for (wanted, expected) in [
            ("Compost", vec!["Garden/Compost.md"]),
            ("garden/roses", vec!["Garden/Roses.md"]),
            ("Sourdugh", vec!["Kitchen/Sourdough.md"]),
            ("Kitchen/Sourdugh.md", vec!["Kitchen/Sourdough.md"]),
            ("Completely else", vec![]),
        ] {
            let found = nearest(wanted, paths.into_iter());
            assert_eq!(found.first().map(String::as_str), expected.first().copied(), "{wanted}");
        }
        for wanted in ["PLAN", "plan"] {
            assert_eq!(
                nearest(wanted, ["PLAN.md", "x/plan.md"].into_iter())[0].rsplit('/').next(),
                Some(&*format!("{wanted}.md"))
            );
        }
    }
}
