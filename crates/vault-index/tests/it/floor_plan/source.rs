//! One Rust file as the rules see it: its text, what of it is code, and which crate paths it names.

/// A Rust file of a package.
pub(super) struct Source {
    /// From the package's folder, with `/`.
    pub(super) path: String,
    /// All of it, lines ending in `\n`.
    pub(super) text: String,
    /// The lines that are code of the program: no comments, no `#[cfg(test)]` modules.
    pub(super) code: String,
    /// Only compiled for tests.
    pub(super) is_test: bool,
}

impl Source {
    pub(super) fn new(path: String, text: &str) -> Self {
        let name = path.rsplit('/').next().unwrap_or_default();
        let is_test = name == "tests.rs" || name.ends_with("_tests.rs") || path.split('/').any(|part| part == "tests");
        Self { code: code_of(text), is_test, text: text.replace("\r\n", "\n"), path }
    }

    /// The lines that count against the limit: all but those of test modules.
    pub(super) fn length(&self) -> usize {
        if self.is_test { 0 } else { without_test_modules(&self.text).count() }
    }

    /// The names of modules this file declares for tests only: `#[cfg(test)] mod laws;`.
    fn test_modules(&self) -> Vec<String> {
        let mut names = Vec::new();
        let mut lines = self.text.lines().peekable();
        while let Some(line) = lines.next() {
            if is_test_attribute(line)
                && let Some(name) = lines.peek().and_then(|next| declared(next))
            {
                names.push(name.to_string());
            }
        }
        names
    }

    /// The folder its sub-modules lie in: `a` for `a.rs`, `a/mod.rs`; the file's own for `lib.rs`.
    fn module_folder(&self) -> &str {
        let folder = self.path.rsplit_once('/').map_or("", |(folder, _)| folder);
        match self.path.rsplit('/').next() {
            Some("mod.rs" | "lib.rs" | "main.rs") => folder,
            _ => self.path.strip_suffix(".rs").unwrap_or(&self.path),
        }
    }

    /// What stands directly behind `crate::` in its code, each once: `error`, `Index`.
    pub(super) fn crate_names(&self) -> Vec<String> {
        let mut names: Vec<String> = Vec::new();
        for (at, _) in self.code.match_indices("crate::") {
            let before = self.code[..at].chars().next_back();
            if before.is_some_and(|c| c.is_alphanumeric() || c == '_') {
                continue;
            }
            let rest = &self.code[at + "crate::".len()..];
            match rest.strip_prefix('{') {
                Some(group) => names.extend(group_heads(group)),
                None => names.push(word(rest).to_string()),
            }
        }
        names.sort();
        names.dedup();
        names
    }
}

/// Marks the files that are compiled for tests only because their parent says so.
pub(super) fn mark_tests(sources: &mut [Source]) {
    let mut folders: Vec<String> = Vec::new();
    for source in &*sources {
        folders.extend(source.test_modules().iter().map(|name| format!("{}/{name}", source.module_folder())));
    }
    for source in sources {
        let of = |folder: &String| source.path.strip_prefix(folder).is_some_and(|rest| rest.starts_with(['.', '/']));
        source.is_test |= folders.iter().any(of);
    }
}

/// The name in `mod name;`, whatever its visibility.
pub(super) fn declared(line: &str) -> Option<&str> {
    let (visibility, name) = line.trim().strip_suffix(';')?.split_once("mod ")?;
    let visible = visibility.is_empty() || visibility.starts_with("pub");
    (visible && name == word(name)).then_some(name)
}

/// The identifier a text begins with.
pub(super) fn word(text: &str) -> &str {
    &text[..text.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(text.len())]
}

fn is_test_attribute(line: &str) -> bool {
    line.strip_prefix("#[cfg(").is_some_and(|rest| rest.starts_with("test)") || rest.starts_with("all(test,"))
}

/// The lines of a file without its `#[cfg(test)] mod … { … }`, which the formatter ends with `}` in the first column.
fn without_test_modules(text: &str) -> impl Iterator<Item = &str> {
    let mut lines = text.lines().peekable();
    std::iter::from_fn(move || {
        let line = lines.next()?;
        if is_test_attribute(line) && lines.peek().is_some_and(|next| next.starts_with("mod ") && next.ends_with('{')) {
            lines.by_ref().find(|line| *line == "}");
            return Some("");
        }
        Some(line)
    })
}

fn code_of(text: &str) -> String {
    without_test_modules(text)
        .filter(|line| !line.trim_start().starts_with("//"))
        .flat_map(|line| [line.split(" // ").next().unwrap_or(line), "\n"])
        .collect()
}

/// The first words of the items of a `{…}` group, whose opening brace is already behind us.
fn group_heads(group: &str) -> Vec<String> {
    let mut heads = Vec::new();
    let (mut depth, mut at_head) = (0, true);
    for (at, c) in group.char_indices() {
        match c {
            '{' => depth += 1,
            '}' if depth == 0 => break,
            '}' => depth -= 1,
            ',' if depth == 0 => at_head = true,
            c if at_head && !c.is_whitespace() => {
                heads.push(word(&group[at..]).to_string());
                at_head = false;
            }
            _ => {}
        }
    }
    heads
}

#[test]
fn what_a_file_names() {
    let text = "//! Doc of crate::no.\nuse crate::{a::{b, c}, d, self::e};\n// crate::no\nfn f() { crate::g::h(); x } // crate::no
pub(crate) fn i() -> crate::J {}\n#[cfg(test)]\nmod tests {\n    use crate::no;\n}\nmacro!($crate::k);\n#[cfg(test)]\nmod laws;\n";
    let source = Source::new("src/x.rs".into(), text);
    assert_eq!(source.crate_names(), ["J", "a", "d", "g", "k", "self"]);
    assert_eq!(source.length(), 9);
    let mut sources = [source, Source::new("src/x/laws.rs".into(), ""), Source::new("src/x/laws_of.rs".into(), "")];
    mark_tests(&mut sources);
    assert_eq!(sources.map(|source| source.is_test), [false, true, false]);
    assert_eq!(declared("pub(crate) mod x;"), Some("x"));
    assert_eq!(declared("mod x {"), None);
}
