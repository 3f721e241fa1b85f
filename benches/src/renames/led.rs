//! The targets of all links of a vault, by the parser and the resolver of the index, but without an index.

use std::collections::BTreeMap;

use vault_index::links::{Names, Resolver};
use vault_index::note::{ParseOptions, parse};
use vault_index::{FileId, VaultPath};

use super::tree::Tree;

/// A link with its target.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Led {
    /// Its line, from 1.
    pub line: u32,
    /// The whole link as written.
    pub raw: String,
    /// Its path, decoded.
    pub path: String,
    /// The file that it leads to, if that exists.
    pub target: Option<String>,
}

/// The links of each note, in their order. Notes without links have an empty list.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Links(pub BTreeMap<String, Vec<Led>>);

impl Links {
    /// Resolves the links of a vault with these files.
    pub fn of(tree: &Tree) -> Self {
        let files: Vec<(VaultPath, &[u8])> =
            tree.files().filter_map(|(path, bytes)| Some((VaultPath::new(path)?, bytes))).collect();
        let names: Names = files.iter().zip(0..).map(|((path, _), id)| (FileId(id), path.clone())).collect();
        let resolver = Resolver::new(&names);
        let notes = files.iter().filter(|(path, _)| path.kind().is_note()).map(|(path, bytes)| {
            let note = parse(path, bytes, &ParseOptions::default());
            let links = note.links.into_iter().map(|link| {
                let target = resolver.resolve(&link.path, path).target.and_then(|id| names.path(id));
                Led { line: link.line, raw: link.raw, path: link.path, target: target.map(ToString::to_string) }
            });
            (path.to_string(), links.collect())
        });
        Self(notes.collect())
    }

    /// Returns the number of links.
    pub fn count(&self) -> usize {
        self.0.values().map(Vec::len).sum()
    }

    /// Returns the paths of unresolved links, without duplicates.
    pub fn dangling(&self) -> Vec<&str> {
        let wanted = self.0.values().flatten().filter(|link| link.target.is_none()).map(|link| link.path.as_str());
        wanted.collect::<std::collections::BTreeSet<_>>().into_iter().collect()
    }

    /// Checks that each link has the same target as before a note was renamed from one path to another, and that
    /// unresolved links are still unresolved, except those in `satisfied` (note, line, link), which must all be
    /// resolved.
    ///
    /// # Errors
    /// The first link that fails the check.
    pub fn kept(
        &self,
        after: &Self,
        (from, to): (&str, &str),
        satisfied: &[(String, u32, String)],
    ) -> Result<(), String> {
        let follow = |path: &str| if path == from { to.to_owned() } else { path.to_owned() };
        let mut listed = satisfied.to_vec();
        listed.sort();
        let mut found = Vec::new();
        for (note, links) in &self.0 {
            let note = follow(note);
            let Some(now) = after.0.get(&note) else { return Err(format!("{note} is gone")) };
            if now.len() != links.len() {
                return Err(format!("{note} has {} links instead of {}", now.len(), links.len()));
            }
            for (old, new) in links.iter().zip(now) {
                match (old.target.as_deref().map(follow), &new.target) {
                    (Some(target), Some(now)) if target == *now => {}
                    (None, None) => {}
                    (None, Some(_)) => found.push((note.clone(), new.line, new.raw.clone())),
                    (Some(target), now) => {
                        let now = now.as_deref().unwrap_or("nowhere");
                        let was = if old.raw == new.raw { String::new() } else { format!(", once {}", old.raw) };
                        return Err(format!(
                            "{note}:{}: {}{was} led to {target} and leads to {now}",
                            new.line, new.raw
                        ));
                    }
                }
            }
        }
        found.sort();
        if after.0.len() != self.0.len() {
            return Err(format!("there are {} notes instead of {}", after.0.len(), self.0.len()));
        }
        if found != listed {
            return Err(format!(
                "links that led nowhere and lead to a note now: {found:?}; the preview names {listed:?}"
            ));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn links(files: &[(&str, &str)]) -> Links {
        Links::of(&Tree(files.iter().map(|(path, text)| (path.to_string(), Some(text.as_bytes().to_vec()))).collect()))
    }

    #[test]
    fn what_leads_elsewhere_is_seen() {
        let before = links(&[("a.md", ""), ("s.md", "[[a]] [[new]]")]);
        let kept = |text: &str, satisfied: &[(String, u32, String)]| {
            before.kept(&links(&[("f/new.md", ""), ("s.md", text)]), ("a.md", "f/new.md"), satisfied)
        };
        let told = [("s.md".to_owned(), 1, "[[new]]".to_owned())];
        assert_eq!(kept("[[f/new]] [[new]]", &told), Ok(()));
        assert!(kept("[[f/new]] [[new]]", &[]).unwrap_err().contains("the preview names []"));
        assert!(kept("[[a]] [[new]]", &told).unwrap_err().contains("leads to nowhere"));
        assert!(kept("[[new]]", &told).unwrap_err().contains("1 links instead of 2"));
        assert!(kept("[[new]] [[f/no]]", &told).is_err());
        assert_eq!(before.dangling(), ["new"]);
    }
}
