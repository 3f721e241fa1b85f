//! Which existing paths may have been meant by one that names nothing. Only who answers asks for it.

use std::cmp::Reverse;

use crate::error::Error;
use crate::sandbox::{Entry, SafePath, View};

/// How many are offered.
const OFFERED: usize = 3;

/// The error of a path at which nothing is, with the paths that may have been meant. `may_be_named` says which may
/// be: a guess must not tell of what its reader is not to know.
pub fn missing(path: &SafePath, view: &dyn View, may_be_named: &dyn Fn(&Entry) -> bool) -> Error {
    let entries = view.walk(None).unwrap_or_default();
    let named = entries.iter().filter(|entry| may_be_named(entry));
    Error::not_found(path, &nearest(path.as_str(), named.map(|entry| entry.path.as_str())))
}

/// The paths that are most like `wanted`, best first: those of the same name, the same spelling before others, then those
/// that share the most pairs of letters with it. Linear in the letters of all paths.
fn nearest<'p>(wanted: &str, paths: impl Iterator<Item = &'p str>) -> Vec<String> {
    let spelled = stem(wanted);
    let wanted = wanted.to_lowercase();
    // A bare name is compared with names, however long their paths are.
    let is_name = !wanted.contains('/');
    let compared = |path: &str| pairs_of(if is_name { stem(path) } else { path });
    let (name, pairs) = (stem(&wanted), compared(&wanted));
    let mut ranked: Vec<(Reverse<u32>, &str)> = Vec::new();
    for path in paths {
        let lower = path.to_lowercase();
        let same = u32::from(stem(&lower) == name) * 1000 + u32::from(stem(path) == spelled) * 1000;
        let others = compared(&lower);
        let shared = pairs.iter().filter(|pair| others.binary_search(pair).is_ok()).count();
        let likeness = (200 * shared / (pairs.len() + others.len()).max(1)) as u32;
        if same > 0 || likeness >= 50 {
            ranked.push((Reverse(same + likeness), path));
        }
    }
    ranked.sort_unstable();
    ranked.into_iter().take(OFFERED).map(|(_, path)| path.to_owned()).collect()
}

fn stem(path: &str) -> &str {
    let name = path.rsplit('/').next().unwrap_or(path);
    name.strip_suffix(".md").unwrap_or(name)
}

/// Neighbouring letters, each pair once, sorted.
fn pairs_of(text: &str) -> Vec<(char, char)> {
    let mut pairs: Vec<(char, char)> = text.chars().zip(text.chars().skip(1)).collect();
    pairs.sort_unstable();
    pairs.dedup();
    pairs
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
