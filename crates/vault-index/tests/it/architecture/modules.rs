//! The modules of one crate, and which file names what of which other: paths are followed through imports and
//! re-exports to the file that defines the item.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use super::tokens::{behind_group, is_word, tokens};

/// A crate's modules by their path: `[]` is the root, `["search", "rank", "fuse"]` is `search/rank/fuse.rs`.
pub(super) struct Crate {
    pub(super) modules: BTreeMap<Vec<String>, Module>,
}

/// One file.
pub(super) struct Module {
    /// From the crate's `src`, with `/`.
    pub(super) file: String,
    /// The modules it declares, in order.
    pub(super) children: Vec<String>,
    imports: Vec<Import>,
    /// The names of its items, and which are functions.
    items: BTreeMap<String, NamedKind>,
    /// Every path of its code that is no import.
    paths: Vec<Vec<String>>,
}

/// One name of a `use`; `*` for all.
struct Import {
    path: Vec<String>,
    name: String,
    is_public: bool,
}

/// What a path names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum NamedKind {
    Module,
    /// A type, a trait, a constant, a macro.
    Item,
    Function,
}

/// A module that a file names, and what of it.
pub(super) type Use = (Vec<String>, NamedKind);

impl Crate {
    /// Follows the `mod` lines from `lib.rs`; `None` where there is none. Modules for tests only are left out.
    pub(super) fn read(src: &Path) -> Option<Self> {
        let text_of = |file: &str| std::fs::read_to_string(src.join(file)).ok();
        Self::from_files(&text_of)
    }

    fn from_files(text_of: &dyn Fn(&str) -> Option<String>) -> Option<Self> {
        let mut modules = BTreeMap::new();
        let mut open = vec![(Vec::new(), "lib.rs".to_string(), text_of("lib.rs")?)];
        while let Some((path, file, text)) = open.pop() {
            let module = Module::new(file, &tokens(&text));
            for child in &module.children {
                let path: Vec<String> = path.iter().chain([child]).cloned().collect();
                let names = [format!("{}.rs", path.join("/")), format!("{}/mod.rs", path.join("/"))];
                let (file, text) = names.into_iter().find_map(|name| text_of(&name).map(|text| (name, text)))?;
                open.push((path, file, text));
            }
            modules.insert(path, module);
        }
        Some(Self { modules })
    }

    /// What a module names of the others, each once. A re-export of something below it is no use: it is the list of
    /// what its folder offers.
    pub(super) fn uses(&self, module: &[String]) -> BTreeSet<Use> {
        let own = &self.modules[module];
        let imports = own.imports.iter().map(|import| (&import.path, import.is_public));
        let paths = own.paths.iter().map(|path| (path, false));
        let mut uses = BTreeSet::new();
        for (path, is_public) in imports.chain(paths) {
            let Some((target, named)) = self.resolve(module, path, 0) else { continue };
            if target != module && !(is_public && target.starts_with(module)) {
                uses.insert((target, named));
            }
        }
        uses
    }

    /// The module a path leads to from another, and whether to an item in it. `None` for other crates and for
    /// names that are no module's.
    fn resolve(&self, from: &[String], path: &[String], depth: usize) -> Option<Use> {
        let (first, rest) = path.split_first()?;
        if depth > 20 {
            return None;
        }
        match first.as_str() {
            "crate" => self.descend(&[], rest, depth),
            "self" => self.descend(from, rest, depth),
            "super" => self.descend(&from[..from.len().checked_sub(1)?], rest, depth),
            _ => {
                let own = &self.modules[from];
                let import = own.imports.iter().find(|import| import.name == *first);
                if let Some(import) = import.filter(|import| import.path[0] != *first) {
                    let path: Vec<String> = import.path.iter().chain(rest).cloned().collect();
                    return self.resolve(from, &path, depth + 1);
                }
                own.children.contains(first).then(|| self.descend(from, path, depth))?
            }
        }
    }

    /// As `resolve`, behind the words that say where to begin.
    fn descend(&self, from: &[String], path: &[String], depth: usize) -> Option<Use> {
        let Some((first, rest)) = path.split_first() else { return Some((from.to_vec(), NamedKind::Module)) };
        let own = &self.modules[from];
        if first == "super" {
            return self.descend(&from[..from.len().checked_sub(1)?], rest, depth);
        }
        let import = own.imports.iter().find(|import| import.name == *first);
        let is_last = rest.is_empty();
        if own.children.contains(first) && !(is_last && import.is_some()) {
            let child: Vec<String> = from.iter().chain([first]).cloned().collect();
            return self.descend(&child, rest, depth);
        }
        if let Some(import) = import.filter(|_| depth <= 20) {
            // The rest of the path is inside a type, unless the import is of a module.
            let path: Vec<String> = import.path.iter().chain(rest).cloned().collect();
            return self.resolve(from, &path, depth + 1);
        }
        if !own.items.contains_key(first) {
            for glob in own.imports.iter().filter(|import| import.name == "*") {
                let Some((module, _)) = self.resolve(from, &glob.path, depth + 1) else { continue };
                let target = &self.modules[&module];
                if target.items.contains_key(first) || target.imports.iter().any(|import| import.name == *first) {
                    return self.descend(&module, path, depth + 1);
                }
            }
        }
        Some((from.to_vec(), own.items.get(first).copied().unwrap_or(NamedKind::Item)))
    }
}

impl Module {
    fn new(file: String, tokens: &[&str]) -> Self {
        let mut module =
            Self { file, children: Vec::new(), imports: Vec::new(), items: BTreeMap::new(), paths: Vec::new() };
        let (mut at, mut depth) = (0, 0);
        let mut is_public = false;
        while let Some(token) = tokens.get(at) {
            match *token {
                "{" | "(" | "[" => depth += 1,
                "}" | ")" | "]" => depth -= 1,
                _ => {}
            }
            let next = tokens.get(at + 1).copied().unwrap_or_default();
            at = match *token {
                "pub" => {
                    is_public = true;
                    if next == "(" { behind_group(tokens, at + 1) } else { at + 1 }
                }
                // Not the `use<'a>` of a type.
                "use" if next != "<" => {
                    let from = module.imports.len();
                    let end = module.read_use(tokens, at + 1, &[]);
                    module.imports[from..].iter_mut().for_each(|import| import.is_public = is_public);
                    is_public = false;
                    end
                }
                "mod" if tokens.get(at + 2) == Some(&";") => {
                    if !module.children.iter().any(|child| child == next) {
                        module.children.push(next.to_string());
                    }
                    is_public = false;
                    at + 3
                }
                "fn" | "struct" | "enum" | "trait" | "type" | "const" | "static" | "union" | "mod" if depth == 0 => {
                    is_public = false;
                    let named = if *token == "fn" { NamedKind::Function } else { NamedKind::Item };
                    module.items.insert(next.to_string(), named);
                    at + 1
                }
                _ if next == "::" && token.starts_with(is_word) => module.read_path(tokens, at),
                _ => at + 1,
            };
        }
        module
    }

    /// Reads one tree of a `use` and gives the position behind it.
    fn read_use(&mut self, tokens: &[&str], mut at: usize, prefix: &[String]) -> usize {
        let mut path = prefix.to_vec();
        while let Some(token) = tokens.get(at) {
            match *token {
                "::" => at += 1,
                "{" => {
                    let end = behind_group(tokens, at);
                    at += 1;
                    while at < end - 1 {
                        let begin = at;
                        at = self.read_use(tokens, at, &path);
                        assert!(at > begin, "{}: a `use` that cannot be read", self.file);
                        at += usize::from(tokens[at] == ",");
                    }
                    return end;
                }
                "as" => {
                    let name = tokens.get(at + 1).copied().unwrap_or_default().to_string();
                    self.imports.push(Import { path, name, is_public: false });
                    return at + 2;
                }
                "*" => {
                    self.imports.push(Import { path, name: "*".to_string(), is_public: false });
                    return at + 1;
                }
                "," | "}" | ";" => break,
                "self" if !path.is_empty() => at += 1,
                word => {
                    path.push(word.to_string());
                    at += 1;
                }
            }
        }
        if let Some(name) = path.last().cloned() {
            self.imports.push(Import { path, name, is_public: false });
        }
        at
    }

    /// Reads a path of at least two words and gives the position behind it.
    fn read_path(&mut self, tokens: &[&str], mut at: usize) -> usize {
        let mut path = vec![tokens[at].to_string()];
        while tokens.get(at + 1) == Some(&"::") && tokens.get(at + 2).is_some_and(|word| word.starts_with(is_word)) {
            path.push(tokens[at + 2].to_string());
            at += 2;
        }
        self.paths.push(path);
        at + 1
    }
}

#[cfg(test)]
pub(super) fn example(files: &[(&str, &str)]) -> Crate {
    let text_of = |name: &str| files.iter().find(|(file, _)| *file == name).map(|(_, text)| (*text).to_string());
    Crate::from_files(&text_of).expect("every declared module has a file")
}

#[test]
fn a_path_is_followed_to_the_file_that_defines_its_item() {
    let crate_ = example(&[
        ("lib.rs", "mod a; mod b; pub use b::deep::{Deep as Alias, self}; pub struct Root;"),
        ("a.rs", "use crate::{Alias, Root, b::{self, *}}; fn f() { b::made(); b::deep::inner(); std::mem::take() }"),
        ("b/mod.rs", "pub(crate) mod deep; pub use deep::made; use super::a; fn own(x: deep::Deep) {}"),
        ("b/deep.rs", "use super::own; pub struct Deep; pub fn made() { super::super::Root } pub fn inner() {}"),
    ]);
    let uses = |path: &[&str]| -> Vec<String> {
        let path: Vec<String> = path.iter().map(|part| (*part).to_string()).collect();
        let uses = crate_.uses(&path);
        uses.iter().map(|(target, named)| format!("{} {named:?}", target.join("/"))).collect()
    };
    assert_eq!(uses(&["a"]), [" Item", "b Module", "b/deep Item", "b/deep Function"]);
    assert_eq!(uses(&["b"]), ["a Module", "b/deep Item"]);
    assert_eq!(uses(&["b", "deep"]), [" Item", "b Function"]);
    assert!(uses(&[]).is_empty());
}
