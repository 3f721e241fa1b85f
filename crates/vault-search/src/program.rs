//! The name by which this program was started: one file answers to several names.

use std::ffi::{OsStr, OsString};
use std::iter::once;
use std::path::Path;

/// Names the command in place of the file's name, as the first argument. A launcher of Windows starts the one file so,
/// since links do not survive in a zip archive: `vault-agent.exe --started-as vault-search WORDS`.
pub(crate) const STARTED_AS: &str = "--started-as";

/// The arguments of this process, headed by the name it was started by. Read arguments from here, not from the
/// standard library, which knows nothing of launchers.
pub fn arguments() -> impl Iterator<Item = OsString> {
    named(std::env::args_os().collect()).into_iter()
}

/// The name by which this program was started, for advice on what to run next.
pub fn program() -> String {
    arguments().next().map(|path| stem(&path)).unwrap_or_default()
}

/// The words that start this program again from anywhere.
pub fn command_line() -> Vec<String> {
    let name = program();
    let Ok(file) = std::env::current_exe() else { return vec![name] };
    let words = once(file.to_string_lossy().into_owned());
    // A symbolic link was resolved, or a launcher started the file.
    match stem(file.as_os_str()) == name {
        true => words.collect(),
        false => words.chain([STARTED_AS.to_owned(), name]).collect(),
    }
}

fn named(mut words: Vec<OsString>) -> Vec<OsString> {
    if words.len() > 2 && words[1] == STARTED_AS {
        words.drain(..2);
    }
    words
}

fn stem(path: &OsStr) -> String {
    Path::new(path).file_stem().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_launcher_gives_the_name() {
        let named = |words: &[&str]| named(words.iter().map(OsString::from).collect());
        assert_eq!(named(&["/bin/vault-agent", STARTED_AS, "vault-search", "a"]), ["vault-search", "a"]);
        for words in [&["vault-agent", STARTED_AS][..], &["vault-search", "a", STARTED_AS, "b"], &["vault-agent"], &[]]
        {
            assert_eq!(named(words), words);
        }
    }
}
