//! Which existing paths may have been meant by one that names nothing. Only who answers asks for it.

use std::cmp::Reverse;

use vault_index::likeness::{LEAST, likeness};

use crate::error::Error;
use crate::sandbox::{Entry, SafePath, View};

/// How many are offered.
const OFFERED: usize = 3;

/// The error of a path at which nothing is, with the paths that may have been meant. `may_be_named` says which may
/// be: a guess must not tell of what its reader is not to know.
pub fn missing(path: &SafePath, view: &dyn View, may_be_named: &dyn Fn(&Entry) -> bool) -> Error {
    let entries = view.walk(None).unwrap_or_default();
    // A folder is not meant by the path of a note.
    let is_note = path.is_markdown();
    let named = entries.iter().filter(|entry| may_be_named(entry) && (!is_note || entry.path.is_markdown()));
    Error::not_found(path, &nearest(path.as_str(), named.map(|entry| entry.path.as_str())))
}

/// The paths that are most like `wanted`, best first: those of the same name, the same spelling before others, then those
/// that are most alike as a whole. Linear in the letters of all paths.
fn nearest<'p>(wanted: &str, paths: impl Iterator<Item = &'p str>) -> Vec<String> {
    // A bare name is compared with names, however long their paths are.
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
